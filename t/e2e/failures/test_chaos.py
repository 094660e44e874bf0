"""Everything fails at random, under load; then all must come to rest.

LLMGW_CHAOS_SECONDS is the duration (180 for the long test), LLMGW_SEED chooses
the order of events.
"""

import collections
import json
import os
import signal
import subprocess
import threading
import time

import pytest

from llmgw.proc import seed
from llmgw.proc.place import SLOW, binary
from llmgw.proc.wait import wait_for

SECONDS = float(os.environ.get("LLMGW_CHAOS_SECONDS", 20))

GOSSIP = {"protocol_period": "200ms", "ping_timeout": "80ms",
          "suspect_timeout": "1s"}
REPLICAS = ("r1", "r2", "r3", "r4")
LOG = "decisions.jsonl"


class Plain:
    """What is on by default."""

    seconds, workers = SECONDS, 2
    prompts = [[f"prompt {i}", 20 + i % 7 * 10] for i in range(40)]
    queue, parts, location = "", "", ""
    fields = ({}, {"hedge": True}, {}, {})      # of each lane's requests

    def check(self, nginx, c, expect):
        """What must hold besides, at the end."""


class Everything(Plain):
    """Every part that reads the fleet, in four workers."""

    seconds, workers = SECONDS / 2, 4
    prompts = [[f"conversation {i % 4}: " * 20 + prompt, n]
               for i, (prompt, n) in enumerate(Plain.prompts)]
    queue = " order=priority fairness=round_robin shedding=on"
    parts = f"""llmgw_policy weighted; llmgw_prefix_index block=32;
        llmgw_admission token_bucket capacity=20000 rate=20000;
        llmgw_slo gold priority=7 ttft=1s; llmgw_tenant_budget small=0.5;
        llmgw_trace_decisions @dir@/{LOG} sample=100% top=all;"""
    location = "llmgw_class request; llmgw_tenant request;"
    fields = ({"slo_class": "gold"}, {"slo_class": "batch", "hedge": True},
              {"tenant_id": "small"}, {"tenant_id": "somebody"})

    def check(self, nginx, c, expect):
        for i in range(4):
            prompt = f"afterwards {i}: " * 20
            first = c.stream(prompt, 3).check(expect(prompt, 3))
            again = c.stream(prompt, 3).check(expect(prompt, 3))
            assert again.replicas == first.replicas     # the index knows it
        self.check_log(nginx.dir / LOG)

    def check_log(self, path):
        """Each choice can be made again, from every line but those that a
        worker was killed in."""
        said = subprocess.run([binary("llmgw-sim"), "explain", "--json", path],
                              capture_output=True, text=True, timeout=60)
        assert said.returncode == 0, said.stdout + said.stderr
        told = json.loads(said.stdout)
        print({k: told[k] for k in ("routed", "replayed", "unreadable")})
        assert told["replayed"] > 100
        assert told["replayed"] == told["routed"]
        assert told["unreadable"] <= 5


class Chaos:
    """Breaks something, and repairs it a while later."""

    def __init__(self, cluster, nginx, rng):
        self.cluster, self.nginx, self.rng = cluster, nginx, rng
        self.mending = []           # [when, what, how]
        self.broken = set()
        self.done = collections.Counter()
        self.actions = [self.kill_replica, self.freeze_replica,
                        self.kill_agent, self.freeze_agent,
                        self.kill_worker, self.freeze_worker, self.reload]

    def mend_later(self, what, seconds, how):
        self.broken.add(what)
        self.mending.append([time.monotonic() + seconds, what, how])

    def mend(self, everything=False):
        now = time.monotonic()
        for due in [m for m in self.mending if everything or m[0] <= now]:
            self.mending.remove(due)
            due[2]()
            self.broken.discard(due[1])

    def pick(self, kind, daemons):
        """Picks one that works; at least two replicas are kept working."""
        whole = [d for i, d in sorted(daemons.items())
                 if f"{kind} {i}" not in self.broken]
        enough = kind != "replica" or len(whole) > 2
        return self.rng.choice(whole) if whole and enough else None

    def kill(self, kind, daemons):
        victim = self.pick(kind, daemons)
        if victim:
            victim.kill()
            self.mend_later(f"{kind} {victim.id}", self.rng.uniform(0.1, 1),
                            victim.start)
        return victim

    def freeze(self, kind, daemons):
        victim = self.pick(kind, daemons)
        if victim:
            victim.proc.freeze()
            self.mend_later(f"{kind} {victim.id}", self.rng.uniform(0.2, 4),
                            victim.proc.thaw)
        return victim

    def kill_replica(self):
        return self.kill("replica", self.cluster.replicas)

    def freeze_replica(self):
        return self.freeze("replica", self.cluster.replicas)

    def kill_agent(self):
        return self.kill("agent", self.cluster.agents)

    def freeze_agent(self):
        return self.freeze("agent", self.cluster.agents)

    def worker(self):
        return self.rng.choice(self.nginx.workers() or [0])

    def kill_worker(self):
        return self._signal(self.worker(), signal.SIGKILL)

    def freeze_worker(self):
        pid = self.worker()
        if self._signal(pid, signal.SIGSTOP):
            self.mend_later(f"worker {pid}", self.rng.uniform(0.05, 0.8),
                            lambda: self._signal(pid, signal.SIGCONT))
        return pid

    def _signal(self, pid, sig):
        """Sends a signal to a worker, which must be one of this nginx."""
        if pid not in self.nginx.workers():
            return None
        try:
            os.kill(pid, sig)
        except ProcessLookupError:      # it ended meanwhile
            return None
        return pid

    def reload(self):
        os.kill(self.nginx.proc.pid, signal.SIGHUP)
        return True

    def run(self, seconds):
        over = time.monotonic() + seconds
        while time.monotonic() < over:
            self.mend()
            action = self.rng.choice(self.actions)
            if action():
                self.done[action.__name__] += 1
            time.sleep(self.rng.uniform(0.05, 0.5))
        self.mend(everything=True)


class Lane:
    """Runs one load after the other, until stopped."""

    def __init__(self, load, nginx, over, rng, prompts, is_killed=False,
                 **job):
        self.load, self.nginx, self.over = load, nginx, over
        self.rng, self.prompts = rng, prompts
        self.is_killed, self.job = is_killed, job
        self.results = []           # [(prompt, n), result]
        self.failure = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        try:
            while not self.over.is_set():
                self._once()
        except BaseException as e:
            self.failure = e

    def _once(self):
        jobs = [self.rng.choice(self.prompts) for _ in range(60)]
        work = self.load(self.nginx, jobs, connections=3,
                         starts_per_second=30 / SLOW, **self.job)
        if self.is_killed:
            time.sleep(self.rng.uniform(0.7, 2) * SLOW)
            work.proc.kill()
        else:
            self.results += zip(jobs, work.results())

    def join(self):
        self.thread.join()
        if self.failure:
            raise self.failure


def check_exact(results, expect):
    """OK: the whole text.  Else: a beginning of it, and an error."""
    codes = collections.Counter()
    for (prompt, n), got in results:
        codes[got.code] += 1
        if got.code == "OK":
            got.check(expect(prompt, n))
        else:
            assert got.tokens == expect(prompt, n)[:len(got.tokens)]
            assert got.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED",
                                "RESOURCE_EXHAUSTED", "CANCELLED",
                                "INTERNAL", "UNKNOWN"), got
    return codes


def check_quiet(cluster, nginx, workers):
    """No count is above zero, and no request waits or runs."""
    wait_for(lambda: len(nginx.workers()) == workers,
             "the old workers to go", takes=15)
    wait_for(lambda: nginx.routable() == list(REPLICAS),
             "every replica to be routable", takes=20)
    wait_for(lambda: not nginx.counts(), "counts of zero", takes=10)
    wait_for(lambda: not any(p["streams"] for p in nginx.status()["pools"]),
             "no stream in any worker", takes=10)
    for id in REPLICAS:
        r = cluster.replicas[id]
        wait_for(lambda: r.stats().active_requests == 0,
                 f"no stream at {id}", takes=10)
        s = r.stats()
        assert s.started == s.finished + s.cancelled + s.failed, (id, s)


@pytest.fixture
def gateway(cluster, form, rng):
    """nginx over the replicas, with agents that find each other again."""
    coalesce = rng.choice(["off", "1ms", "60ms"])
    print(f"llmgw_coalesce {coalesce}")
    cluster.allowed += ["exited on signal 9", "was locked by"]
    nginx = cluster.fleet(
        len(REPLICAS), agent=GOSSIP,
        replica={"token_delay": "5ms", "max_capacity": 6},
        nginx={"workers": form.workers, "http": f"llmgw_coalesce {coalesce};",
               "pool": f"llmgw_queue 100 timeout=5s{form.queue};"
               " llmgw_breaker cooldown=500ms max_cooldown=2s; " + form.parts,
               "location": "llmgw_token_timeout 1s; llmgw_tries 5;"
               " llmgw_first_token_timeout 2s; " + form.location})
    cluster.gateway.argv += ["--join", ",".join(
        a.gossip for a in cluster.agents.values() if a.role == "replica")]
    return nginx


@pytest.fixture
def rng():
    return seed.rng("chaos")


@pytest.mark.soak
@pytest.mark.first
@pytest.mark.parametrize("form", [Plain(), Everything()],
                         ids=["plain", "everything"])
def test_chaos(cluster, client, load, expect, gateway, form, rng):
    over = threading.Event()
    jobs = [{"seconds": 20}, {"seconds": 20}, {"seconds": 0.3},
            {"is_killed": True}]
    lanes = [Lane(load, gateway, over, seed.rng(f"lane {k}"), form.prompts,
                  fields=form.fields[k], **job)
             for k, job in enumerate(jobs)]
    chaos = Chaos(cluster, gateway, rng)
    try:
        chaos.run(form.seconds)
    finally:
        chaos.mend(everything=True)
        over.set()
        for lane in lanes:
            lane.join()

    codes = check_exact([x for lane in lanes for x in lane.results], expect)
    patient = check_exact(lanes[0].results + lanes[1].results, expect)
    print(dict(chaos.done), dict(codes), dict(patient))
    check_quiet(cluster, gateway, form.workers)
    assert patient["OK"] > 0.5 * sum(patient.values()), patient
    c = client(gateway)
    for i in range(20):
        c.stream(f"after {i}", 3).check(expect(f"after {i}", 3))
    form.check(gateway, c, expect)
