"""Fleets with standby groups, whose version can be changed."""

from ..fleet.updates import Fleet
from ..proc.wait import QUICK, wait_for
from .lock import LockService


class GroupFleet(Fleet):
    """A Fleet in which some replicas are engines of standby groups.

    groups: name -> ids; the other ones of r1 .. rn are of no group.
    service: options of the lock service.
    """

    def __init__(self, cluster, groups, n=None, service=None, **options):
        self.groups = groups
        self.lock = LockService(cluster, **(service or {})).start()
        self.probes = {}
        super().__init__(cluster, n or sum(map(len, groups.values())),
                         **options)

    def group_of(self, id):
        return next((g for g, ids in self.groups.items() if id in ids), None)

    def _member(self, id):
        if self.group_of(id):
            self.probes[id] = f"127.0.0.1:{self.cluster.ports.take()}"
        words = " ".join(self._group_words(id))
        (self.cluster.dir / f"{id}.words").write_text(words)
        return super()._member(id)

    def _group_words(self, id):
        if not self.group_of(id):
            return []
        return ["--standby", "--group", self.group_of(id), "--lock",
                self.lock.socket, "--probe-listen", self.probes[id]]

    def command(self, replica, agent):
        command = super().command(replica, agent)
        words = self._group_words(agent.id)
        if command[0] == "sh":
            return [*command[:2], command[2].replace(
                " --model-version", " ".join(["", *words, "--model-version"]))]
        return command + words

    @property
    def start(self):
        return super().start.replace(
            "--model-version", "$(cat $LLMGW_ID.words) --model-version")

    # what the members know

    def is_up(self, m):
        return m.get("group_state") in ("active", "standby") \
            if m.get("group") else super().is_up(m)

    def active(self, group="g", agent=None):
        """The id of the active one; None: there is none, or several."""
        table = (agent or self.gw).table()
        found = [id for id, m in table.items() if m.get("group") == group
                 and m["group_state"] == "active" and m["service"] == "READY"
                 and m["state"] == "ALIVE"]
        return found[0] if len(found) == 1 else None

    def is_whole_group(self, group):
        """One is active, as gateways know it, and the others stand by."""
        table = self.gw.table()
        states = sorted(table.get(id, {}).get("group_state", "-")
                        for id in self.groups[group])
        return self.active(group) and \
            states == ["active"] + ["standby"] * (len(states) - 1)

    def is_served(self, nginx):
        routable = nginx.routable()
        return all(self.is_whole_group(g) for g in self.groups) and \
            routable == sorted(
                [id for id in self.members if not self.group_of(id)]
                + [self.active(g) for g in self.groups])

    def whole(self, version):
        return super().whole(version) and all(map(self.is_whole_group,
                                                  self.groups))

    def wait_whole_groups(self, takes=QUICK):
        """Waits until each group has its standbys again."""
        wait_for(lambda: all(map(self.is_whole_group, self.groups)),
                 "each group to have an active one and its standbys", takes)

    def switch(self, group="g", *words):
        """llmgwctl group switch: exit status and standard output."""
        out = self.gw.ctl("group", "switch", group, *words)
        return out.returncode, out.stdout + out.stderr

    def close(self):
        """Those that agents run end with them, and are started again before."""
        if self.commands:
            super().close()
