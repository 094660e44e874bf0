"""Members of a standby group whose states a test tells.

Their agents are real, and hear of them from a Reporter; so gossip, segment and
nginx are what they are in production, and no lock service decides.  The process
that serves is a plain llmgw-replica, which is started when its member becomes
active: before that nobody listens, as with a standby.
"""

import time

from ..engine.report_connection import Reporter
from ..proc.wait import wait_for

LOCK = "5d1f0c66a1b2c3d4"           # the instance of a lock service
OTHER_LOCK = "77aa0c66a1b2c3d4"

# Epochs are microseconds of the wall clock; tests count from one of them.
EPOCH = 1763650000000000


class Told:
    """One member.  models: what it says once it is active; options of
    llmgw-replica."""

    def __init__(self, cluster, id, group="g", models=None, **options):
        self.cluster, self.id, self.group = cluster, id, group
        self.models = models
        options.setdefault("token_delay", "5ms")
        self.replica = cluster.replica(id, start=False, **options)
        self.agent = cluster.agent(id, grpc=self.replica.target)
        self.reporter = None

    def say(self, state, epoch=0, lock=LOCK):
        """The agent is told so, and all others hear it."""
        fields = {"group": self.group, "group_state": state,
                  "group_epoch": EPOCH + epoch if epoch else None,
                  "group_lock": lock if epoch else None, "max_capacity": 0,
                  "state": None if state == "active" else "STARTING",
                  "models": self.models if state == "active" else None}
        if self.reporter is None:
            self.reporter = Reporter(
                self.cluster, self.agent,
                replica_start=int(time.time() * 1000), **fields)
        else:
            self.reporter.say(**fields)
        return self

    def standby(self):
        return self.say("standby")

    def waking(self, epoch):
        return self.say("waking", epoch)

    def serve(self):
        """Its process listens; nobody is told."""
        if self.replica.proc is None or not self.replica.proc.alive():
            self.replica.start()
            wait_for(lambda: "serving" in self.replica.proc.text(),
                     f"{self.id} to serve")
        return self

    def active(self, epoch, lock=LOCK):
        return self.serve().say("active", epoch, lock)

    def die(self):
        """kill -9; its agent tells that it is DOWN."""
        if self.replica.proc is not None:
            self.replica.kill()
        if self.reporter is not None:
            self.reporter.close()
            self.reporter = None


def group(cluster, ids="ab", nginx=None, replica=None, **more):
    """A gateway, members, nginx; ({id: Told}, nginx).

    The first is active, with epoch 1; the others stand by.
    nginx: options of it; replica: of each process; more: of the gateway's
    agent.
    """
    cluster.agent("gw", "gateway", **more)
    members = {id: Told(cluster, id, **(replica or {})) for id in ids}
    first, *others = members.values()
    first.active(1)
    for one in others:
        one.standby()
    made = cluster.nginx(**(nginx or {}))
    wait_for(lambda: states(made) == {
        first.id: "active", **{one.id: "standby" for one in others}},
        "the group to be in nginx's view")
    return members, made


def states(nginx):
    """{id: state in its group}, as nginx has it."""
    return {id: (r["group"] or {}).get("state")
            for id, r in nginx.replicas().items()}
