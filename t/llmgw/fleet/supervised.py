"""An agent that runs its replica (`-- COMMAND`), and the processes of both."""

import os
import pathlib

from ..proc import place
from ..proc.wait import wait_for


def cmdline(pid):
    try:
        raw = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return raw.decode(errors="replace").split("\0")[:-1]


def stat(pid):
    """(state, parent) or None."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[1])


def pids():
    return [int(n) for n in os.listdir("/proc") if n.isdigit()]


def processes(*words):
    """Processes whose command line has all the words."""
    return [p for p in pids()
            if all(w in cmdline(p) for w in words)
            and (stat(p) or "Z")[0] not in "ZX"]


def serving(target):
    """Replica processes there; not their agents, whose command lines
    contain the replicas'."""
    binary = place.binary("llmgw-replica")
    return [p for p in processes(binary, target) if cmdline(p)[:1] == [binary]]


def zombies(parent):
    return [p for p in pids() if stat(p) == ("Z", parent)]


class Supervised:
    """An agent whose replica is its child; .agent, .replica (never started
    here), .pid of the child."""

    def __init__(self, cluster, id, command=None, agent=None, env=None,
                 **options):
        self.id = id
        self.replica = cluster.replica(id, None, start=False, **options)
        self.agent = cluster.agent(id, grpc=self.replica.target, start=False,
                                   **(agent or {}))
        self.control = self.agent.control
        self.agent.env = env
        self.agent.argv += ["--", *(command or [
            *self.replica.argv, "--agent", self.control])]

    def start(self):
        self.agent.start()
        return self

    def children(self):
        return serving(self.replica.target)

    def pid(self, other_than=None):
        def one():
            found = self.children()
            return len(found) == 1 and found != [other_than] and found[0]
        return wait_for(one, f"one child of {self.id}")

    def service(self):
        return self.agent.table().get(self.id, {}).get("service")

    def ready(self):
        wait_for(lambda: self.service() == "READY",
                 f"{self.id} to be READY")
        return self

    def log(self):
        return self.agent.proc.text()
