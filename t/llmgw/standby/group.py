"""A standby group of one test: its lock service, and engines with agents."""

import re
import urllib.error
import urllib.request
from collections import namedtuple

from ..fleet.cluster import Replica
from ..proc.wait import PATIENCE, QUICK, wait_for
from .lock import LockService

Step = namedtuple("Step", "state epoch at")

STEP = re.compile(r"standby: ([A-Z]+), epoch (\d+), at (\d+\.\d+) s$", re.M)


class StandbyEngine(Replica):
    """An llmgw-replica --standby, with what its logs and probes say."""

    def __init__(self, group, id, agent=None, **options):
        cluster = group.cluster
        self.group = group
        self.probe = f"127.0.0.1:{cluster.ports.take()}"
        super().__init__(cluster, id, agent, standby=True, group=group.name,
                         lock=group.service.socket, probe_listen=self.probe,
                         **options)
        cluster.replicas[id] = self

    def steps(self, start=None):
        """Its life so far (or an earlier one), as its log has it."""
        path = self.cluster.dir / f"{self.name}.{start or self.starts}.log"
        if not path.exists():
            return []
        return [Step(m[1], int(m[2]), float(m[3]))
                for m in STEP.finditer(path.read_text(errors="replace"))]

    def state(self):
        """"INIT" ... "ACTIVE", "DEAD"; also of a process that was killed."""
        steps = self.steps()
        if not steps or not self.proc.alive():
            return "DEAD"
        return steps[-1].state

    def epoch(self):
        """Of the grant; 0: none yet."""
        steps = self.steps()
        return steps[-1].epoch if steps else 0

    def wait(self, state, takes=QUICK):
        wait_for(lambda: self.state() == state, f"{self.id} to be {state}",
                 takes)
        return self

    def probes(self, path):
        """The status of an HTTP probe; None: nobody listens."""
        try:
            with urllib.request.urlopen(f"http://{self.probe}{path}",
                                        timeout=PATIENCE) as answer:
                return answer.status
        except urllib.error.HTTPError as e:
            return e.code
        except OSError:
            return None


class Group:
    """A lock service and engines "a", "b", ..., each with an agent if the test
    has agents.

    Group(cluster).start() gives one of "a" Active, "b" in Standby.  A test with
    a gateway starts its agent first: cluster.agent("gw", "gateway").

    service: options of LockService; each: id -> options of one engine.
    """

    def __init__(self, cluster, name="g", ids=("a", "b"), agents=True,
                 service=None, each=None, lock=None, agent_options=None,
                 **engine):
        self.cluster, self.name = cluster, name
        self.service = lock or LockService(cluster, **(service or {}))
        self.engines = {}
        engine.setdefault("token_delay", "1ms" if engine.get(
            "engine", "sim") == "sim" else None)
        for id in ids:
            options = {**engine, **(each or {}).get(id, {})}
            one = StandbyEngine(self, id, **options)
            if agents:
                one.agent = cluster.agent(id, grpc=one.target, start=False,
                                          **(agent_options or {}))
                one.argv += ["--agent", one.agent.control]
            self.engines[id] = one

    def __getitem__(self, id):
        return self.engines[id]

    def __iter__(self):
        return iter(self.engines.values())

    def start(self, takes=QUICK):
        """The first engine Active, the others in Standby.  takes: each."""
        if self.service.proc is None:
            self.service.start_settled(self.name)
        for one in self:
            if one.agent and one.agent.proc is None:
                one.agent.start()
        first, *others = self
        first.start().wait("ACTIVE", takes)
        for one in others:
            one.start().wait("STANDBY", takes)
        return self

    # who is what

    def active(self):
        """The engine that is Active, or None.  Two are an error."""
        found = [e for e in self if e.proc and e.state() == "ACTIVE"]
        assert len(found) < 2, [e.id for e in found]
        return found[0] if found else None

    def standbys(self):
        return [e for e in self if e.proc and e.state() == "STANDBY"]

    def wait_active(self, id=None, takes=QUICK):
        """The engine that is Active: any, or this one."""
        return wait_for(
            lambda: (one := self.active()) and id in (None, one.id) and one,
            f"{id or 'an engine'} of {self.name} to be active", takes)

    def wait_standby(self, id=None, takes=QUICK):
        return wait_for(
            lambda: next((e for e in self.standbys()
                          if id in (None, e.id)), None),
            f"{id or 'an engine'} of {self.name} to stand by", takes)

    def kill(self, id=None):
        """kill -9 of an engine, or of the active one; which it was."""
        one = self[id] if id else self.wait_active()
        one.kill()
        return one

    # what was

    def lives(self):
        """(engine, steps) of each process that was started, with what the
        engine has done since."""
        return [(e, e.steps(start)) for e in self
                for start in range(1, e.starts + 1)]

    def epochs(self):
        """Of the engines that were Active, in the order of time."""
        found = [s for _, steps in self.lives() for s in steps
                 if s.state == "ACTIVE"]
        return [s.epoch for s in sorted(found, key=lambda s: s.at)]

    def check(self):
        """No two had one epoch, and a later one was always greater."""
        epochs = self.epochs()
        assert epochs == sorted(set(epochs)), epochs
        return epochs


def tokens_in_order(path):
    """Checks a file of --token-log: behind the first token of an epoch comes
    none of a smaller one.  Returns [(monotonic ns, epoch)]."""
    rows = [tuple(map(int, line.split()[:2]))
            for line in path.read_text().splitlines()]
    greatest = 0
    for at, epoch in rows:
        assert epoch >= greatest, f"epoch {epoch} behind {greatest}, at {at}"
        greatest = epoch
    return rows
