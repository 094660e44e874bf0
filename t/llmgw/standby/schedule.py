"""A standby group whose processes are killed and stopped in random order.

Stage runs them as a supervisor does: whatever dies is started anew.  Schedule
is a number of faults, by a seed.  judge() reads what the engines wrote of
themselves meanwhile: whether two were active at one instant.
"""

import collections
import os
import pathlib
import signal
import subprocess
import time

from ..model.weights import WeightsService
from ..proc import place
from ..proc.daemon import Daemon
from ..proc.wait import wait_for
from .group import Group
from .lock import LockService, slow

GOSSIP = {"protocol_period": "100ms", "ping_timeout": "50ms",
          "suspect_timeout": "500ms"}
WEIGHTS_BYTES = 1 << 20

# A process in a PID namespace of its own, as a container of a pod has it.  The
# process is the namespace's first, and unshare goes with it.
APART = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--")

# Bounds of what a supervisor and a fault may take.
RESTART_S = (0.0, 0.1)
STOPPED_S = (0.02, 0.7)
PAUSE_S = (0.0, 0.25)
SETTLED_S = 20

# State file and lock file may both be gone when a service starts anew: then
# this alone keeps a second engine out, so it is longer than any fault, and than
# an engine needs to see that its file is gone.
RECONNECT_MS = 2500

TARGETS = ("active", "active", "lock", "lock", "standby", "weights", "worker",
           "agent")

Token = collections.namedtuple("Token", "at epoch pid")


def read_tokens(path):
    """What --token-log wrote, in the order of the file."""
    rows = [line.split() for line in path.read_text().splitlines()]
    return [Token(int(ns) / 1e9, int(epoch), int(pid))
            for ns, epoch, pid in rows]


def judge(steps, tokens):
    """steps: of all lives of all engines.  Fails if two were active."""
    by_epoch(steps, "ACTIVE")
    granted = by_epoch(steps, "WAKING")
    check_order(tokens)
    last = {}
    for row in [*tokens, *steps]:
        last[row.epoch] = max(row.at, last.get(row.epoch, 0))
    for step in granted:
        late = {e: at for e, at in last.items()
                if 0 < e < step.epoch and at >= step.at}
        assert not late, ("an engine lived behind the next grant", late, step)


def by_epoch(steps, state):
    """Epochs rise with time, and each is one engine's."""
    found = sorted((s for s in steps if s.state == state),
                   key=lambda step: step.at)
    epochs = [s.epoch for s in found]
    assert epochs == sorted(set(epochs)), found
    return found


def check_order(tokens):
    """None of an epoch is behind a greater one, and each is one process's."""
    greatest, processes = 0, {}
    for token in tokens:
        assert token.epoch >= greatest, (token, greatest)
        greatest = token.epoch
        assert token.pid == processes.setdefault(token.epoch, token.pid)


class Stage:
    """Lock and weights service, engines "a" and "b" with agents, a gateway.

    is_apart: engines and lock service in sibling PID namespaces: the service
    may not kill, and waits (fence=wait).
    """

    def __init__(self, cluster, rng, is_apart=False):
        self.cluster, self.rng, self.is_apart = cluster, rng, is_apart
        self.prefix = APART if is_apart else ()
        self.restarts = {}              # name of a daemon -> when it is due
        self.lock = LockService(
            cluster, fence="wait" if is_apart else "kill",
            hang_timeout=slow(300), take_timeout=slow(300),
            reconnect_window=slow(RECONNECT_MS), prefix=self.prefix)
        self.weights = WeightsService(cluster, adopt_window=slow(300))
        self.token_log = cluster.dir / "tokens"
        cluster.agent("gw", "gateway", **GOSSIP)
        self.group = self._group()
        agents = [one.agent for one in self.group]
        cluster.gateway.argv += ["--join", ",".join(a.gossip for a in agents)]
        self.daemons = [self.lock, self.weights, *self.group, cluster.gateway,
                        *agents]
        cluster.closers.append(self._end)
        self.group.start()
        self.nginx = cluster.nginx(
            pool="llmgw_queue 100 timeout=5s;",
            location="llmgw_token_timeout 1s; llmgw_tries 5;")

    def _group(self):
        file = self.cluster.dir / "weights.bin"
        file.write_bytes(self.rng.randbytes(WEIGHTS_BYTES))
        group = Group(
            self.cluster, lock=self.lock, agent_options=GOSSIP,
            engine="model", latency_model="linear", alpha_coeffs="0,0,0",
            beta_coeffs="5000,0,0", workers=2, model_memory=4,
            weights=self.weights.path, weights_role="rw_or_ro",
            weights_file=file, weights_timeout=slow(5000),
            waking_timeout=slow(2000), token_log=self.token_log)
        for one in group:
            one.argv = [*self.prefix, *one.argv]
        return group

    def _end(self):
        """unshare passes no signal on.  And an engine whose lock file was
        deleted may end by itself even now."""
        for daemon in self.daemons:
            if daemon.proc:
                daemon.proc.told_to_end = True
                if self.pid(daemon) != daemon.proc.pid:
                    send(self.pid(daemon), signal.SIGTERM)

    # who is who

    def pid(self, daemon):
        """Of the process itself, where unshare stands before it."""
        proc = daemon.proc
        if proc.argv[0] != APART[0]:
            return proc.pid
        return next(iter(children(proc.pid)), None)

    def of_state(self, *states):
        return next((e for e in self.group if e.state() in states), None)

    # as a supervisor

    def tend(self):
        """Starts what has died, after a while."""
        now = time.monotonic()
        for daemon in self.daemons:
            if daemon.proc.alive():
                self.restarts.pop(daemon.name, None)
                continue
            daemon.proc.told_to_end = True
            due = self.restarts.setdefault(
                daemon.name, now + self.rng.uniform(*RESTART_S))
            if now >= due:
                Daemon.start(daemon)

    def wait(self, predicate, what):
        """wait_for() with the supervisor at work."""
        def met():
            self.tend()
            return predicate()
        return wait_for(met, what, takes=SETTLED_S)

    def settle(self):
        """One is active and nginx routes to it, the other stands by."""
        def settled():
            states = {e.state(): e.id for e in self.group}
            return states.keys() == {"ACTIVE", "STANDBY"} \
                and self.nginx.routable() == [states["ACTIVE"]]
        self.wait(settled, "an active engine and a standby")

    def judge(self):
        tokens = read_tokens(self.token_log)
        judge([s for _, steps in self.group.lives() for s in steps], tokens)
        return tokens


def children(pid):
    """The processes that a process has begun, those of its threads, too."""
    found = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, path.read_text().split())
        except OSError:
            pass
    return found


class Schedule:
    """Some faults, one after the other, each at a random target."""

    def __init__(self, stage, rng):
        self.stage, self.rng = stage, rng
        self.stopped = []               # (until, pid)
        self.switches = []
        self.done = []

    def run(self, steps):
        kinds = [self.kill] * 4 + [self.stop] * 4 + [self.switch] * 2 \
            + [self.remove] * 2
        try:
            for _ in range(steps):
                self.rng.choice(kinds)()
                self.pause(self.rng.uniform(*PAUSE_S))
        finally:
            self.pause(0, everything=True)
            for process in self.switches:
                process.kill()
                process.wait()

    def pause(self, seconds, everything=False):
        """The supervisor works, and what was stopped goes on in time."""
        end = time.monotonic() + seconds
        while True:
            self.stage.tend()
            now = time.monotonic()
            for until, pid in list(self.stopped):
                if everything or until <= now:
                    self.stopped.remove((until, pid))
                    send(pid, signal.SIGCONT)
            if now >= end:
                return
            time.sleep(0.005)

    def target(self):
        """(what, pid) of something that runs."""
        what = self.rng.choice(TARGETS)
        stage = self.stage
        active = stage.of_state("ACTIVE", "WAKING")
        daemon = {"active": lambda: active, "worker": lambda: active,
                  "standby": lambda: stage.of_state("STANDBY", "INIT"),
                  "lock": lambda: stage.lock,
                  "weights": lambda: stage.weights,
                  "agent": lambda: self.rng.choice(
                      list(stage.cluster.agents.values()))}[what]()
        pid = daemon and daemon.proc.alive() and stage.pid(daemon)
        if pid and what == "worker":
            pid = next(iter(children(pid)), None)
        return f"{what} {daemon.name}" if pid else what, pid

    def kill(self):
        what, pid = self.target()
        if pid:
            self.done.append(f"kill {what}")
            send(pid, signal.SIGKILL)

    def stop(self):
        what, pid = self.target()
        if pid:
            seconds = self.rng.uniform(*STOPPED_S)
            self.done.append(f"stop {what} {seconds:.2f} s")
            send(pid, signal.SIGSTOP)
            self.stopped.append((time.monotonic() + seconds, pid))

    def switch(self):
        """By the agent of the active one; where that agent does not see the
        process, as the agent would do it."""
        active = self.stage.of_state("ACTIVE")
        if not active:
            return
        self.done.append(f"switch {active.id}")
        if self.stage.is_apart:
            pid = self.stage.pid(active)
            send(pid, signal.SIGTERM)
            self.pause(0.02)
            send(pid, signal.SIGTERM)
            return
        self.switches.append(subprocess.Popen(
            [place.binary("llmgwctl"), "-s", active.agent.control, "group",
             "switch", self.stage.group.name], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL))

    def remove(self):
        """What a hand, or a cleaner of /run, takes away."""
        lock = self.stage.lock
        path = self.rng.choice([lock.state,
                                lock.lock_file(self.stage.group.name)])
        self.done.append(f"remove {path.name}")
        path.unlink(missing_ok=True)


def send(pid, sig):
    """To a process of the stage; it may have gone."""
    try:
        os.kill(pid, sig)
    except (ProcessLookupError, TypeError):
        pass
