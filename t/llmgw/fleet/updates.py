"""Fleets whose version can be changed, and rolling updates of them."""

import base64
import contextlib
import json
import os
import secrets
import signal

from ..proc import place
from ..proc.place import SLOW
from ..proc.wait import wait_for
from .supervised import serving

# The tests' --start and --stop commands: a replica is a plain process with its
# pid in a file.  A zombie has no executable any more.
START = """\
cd {dir} || exit
setsid {replica} --id $LLMGW_ID --listen $LLMGW_GRPC \
    --agent {dir}/$LLMGW_ID.sock --model-version $LLMGW_VERSION {options} \
    >>replica-$LLMGW_ID.plain.log 2>&1 &
echo $! >$LLMGW_ID.pid
"""

STOP = """\
pid=$(cat {dir}/$LLMGW_ID.pid) && kill $pid && \
while test -e /proc/$pid/exe; do sleep 0.02; done
"""


class Member:
    """A replica and its agent; .pid() of the process that serves now."""

    def __init__(self, id, replica, agent):
        self.id, self.replica, self.agent = id, replica, agent
        self.target = replica.target

    def pid(self):
        found = serving(self.target)
        return found[0] if len(found) == 1 else None

    def kill(self):
        os.kill(wait_for(self.pid, f"one process of {self.id}"),
                signal.SIGKILL)


class Fleet:
    """gateways x (agent, nginx) over r1 .. rn of version v1.

    commands: the replicas are plain processes, for --stop and --start (in
    .stop and .start); else they are children of their agents.
    quirk: shell code that a replica runs first; it may change $version and
    $more, or exit.
    is_wrapped: that shell stays, and the replica is its child.
    pki: with its certificates all of them have TLS.
    """

    def __init__(self, cluster, n=3, gateways=1, commands=False,
                 keyring=True, quirk="", is_wrapped=False, agent=None,
                 nginx=None, pki=None, **options):
        self.cluster, self.commands, self.pki = cluster, commands, pki
        self.quirk = quirk or (":" if is_wrapped else "")
        self.is_wrapped = is_wrapped
        self.options = {"engine": "sim", "token_delay": "5ms", **options}
        self.shared = dict(agent or {})
        if keyring:
            path = cluster.dir / "keys"
            path.touch(mode=0o600)
            path.write_bytes(base64.b64encode(secrets.token_bytes(32)))
            self.shared["keyring"] = str(path)
        self.gateways = [self._agent(f"gw{i + 1}", role="gateway")
                         for i in range(gateways)]
        self.members = {f"r{i + 1}": self._member(f"r{i + 1}")
                        for i in range(n)}
        if commands:
            for member in self.members.values():
                self.shell(self.start, member)
        self.nginxes = [cluster.nginx(gateway=gw, **(nginx or {}))
                        for gw in self.gateways]
        for one in self.nginxes:
            wait_for(lambda: self.is_served(one),
                     "every replica to be routable")

    def is_served(self, nginx):
        return nginx.routable() == sorted(self.members)

    def hold(self, tokens, *ids):
        """As Cluster.hold(), which does not know these replicas; only those
        with these ids, if any.  A process that starts later does not obey it.
        """
        for id in ids or self.members:
            self.members[id].replica.faults(gate=tokens)

    def let_go(self, *ids):
        self.hold(-1, *ids)

    @property
    def gw(self):
        return self.gateways[0]

    @property
    def nginx(self):
        return self.nginxes[0]

    def _agent(self, id, **options):
        tls = self.pki.agent(id) if self.pki else {}
        return self.cluster.agent(id, **self.shared, **tls, **options)

    def _words(self, id=None):
        words, tls = [], self.pki.replica(id) if self.pki and id else {}
        for name, value in (self.options | tls).items():
            if value is not None:
                words.append("--" + name.replace("_", "-"))
                words += [] if value is True else [str(value)]
        return words

    def _member(self, id):
        tls = self.pki.replica(id) if self.pki else {}
        replica = self.cluster.replica(id, None, start=False, **tls)
        state = self.cluster.dir / "state"
        state.mkdir(exist_ok=True)
        agent = self._agent(id, grpc=replica.target, start=False,
                            state_dir=str(state))
        if not self.commands:
            agent.env = {"LLMGW_VERSION": "v1"}
            agent.argv += ["--", *self.command(replica, agent)]
        agent.start()
        return Member(id, replica, agent)

    def command(self, replica, agent):
        words = [place.binary("llmgw-replica"), "--id", agent.id, "--listen",
                 replica.target, "--agent", agent.control,
                 *self._words(agent.id)]
        if not self.quirk:
            return [*words, "--model-version", "{version}"]
        begin, end = ("", "; exit $?") if self.is_wrapped else ("exec ", "")
        return ["sh", "-c", "version={version} more=; " + self.quirk
                + "; " + begin + " ".join(words)
                + " --model-version $version $more" + end]

    # commands

    @property
    def start(self):
        return START.format(dir=self.cluster.dir,
                            replica=place.binary("llmgw-replica"),
                            options=" ".join(self._words()))

    @property
    def stop(self):
        return STOP.format(dir=self.cluster.dir)

    def shell(self, command, member, version="v1"):
        """Runs the command as the agent would."""
        proc = self.cluster.run(
            f"shell-{member.id}", ["/bin/sh", "-c", command],
            env={"LLMGW_ID": member.id, "LLMGW_VERSION": version,
                 "LLMGW_GRPC": member.target})
        proc.told_to_end = True
        assert proc.wait(10) == 0

    # what the members know

    def agents(self):
        return [*self.gateways, *(m.agent for m in self.members.values())]

    def versions(self, agent=None):
        table = (agent or self.gw).table()
        return {id: table[id]["model_version"] for id in self.members
                if id in table}

    def drained(self, agent=None):
        """Which replica is drained by which agent."""
        return {id: m["drain_owner"]
                for id, m in (agent or self.gw).table().items()
                if m["draining"] and m.get("drain_owner")}

    def is_up(self, m):
        """Does it serve, as far as that agent knows?"""
        return m["service"] == "READY"

    def whole(self, version):
        """Does every agent know each at this version, and none drained?"""
        for agent in self.agents():
            table = agent.table()
            for id in self.members:
                m = table.get(id)
                if not m or not self.is_up(m) or (
                        m["state"], m["draining"], m["model_version"]) \
                        != ("ALIVE", False, version):
                    return False
        return True

    def wait_whole(self, version, takes=5):
        wait_for(lambda: self.whole(version),
                 f"every agent to know all as {version}", takes=takes)

    def update(self, *words, to="v2", gateway=None, commands=None):
        if commands is None:
            commands = self.commands
        more = ["--stop", self.stop, "--start", self.start] if commands else []
        return Update(self.cluster, gateway or self.gw, "--to", to, *more,
                      *words)

    def close(self):
        """Ends the replicas that outlived their agents."""
        for member in self.members.values():
            for pid in serving(member.target):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            wait_for(lambda: not serving(member.target),
                     f"the end of {member.id}")


class Update:
    """llmgwctl --json rolling-update, read while it runs."""

    def __init__(self, cluster, agent, *words):
        name = f"update-{len(cluster.procs)}"
        self.proc = cluster.run(name, [
            place.binary("llmgwctl"), "-s", agent.control, "--json",
            "rolling-update", *words])

    def lines(self):
        return [json.loads(x) for x in self.proc.text().splitlines()
                if x.startswith("{") and x.endswith("}")]

    def said(self):
        """What it wrote to standard error."""
        return "\n".join(x for x in self.proc.text().splitlines()
                         if not x.startswith("{"))

    def steps(self, id):
        return [e["step"] for e in self.lines()
                if e.get("event") == "step" and e["id"] == id]

    def order(self):
        """The ids in the order in which they began."""
        return [e["id"] for e in self.lines()
                if e.get("event") == "step" and e["step"] == "drain"]

    def wait_step(self, id, step, takes=6):
        wait_for(lambda: step in self.steps(id) or not self.proc.alive(),
                 f"{step} of {id}", takes=takes)
        assert step in self.steps(id), self.proc.text()

    def end(self, takes=15):
        """Its exit status; .last is then the last line."""
        self.proc.told_to_end = True
        status = self.proc.wait(takes)
        lines = self.lines()
        self.last = lines[-1] if lines else {}
        return status

    def done(self, takes=15):
        assert self.end(takes) == 0, self.proc.text()
        return self


def fleets(cluster):
    """For a fixture, a function that makes fleets: fleet(n=3, ...).  They are
    closed before the cluster's end."""
    made = []

    def make(n=3, **options):
        made.append(Fleet(cluster, n, **options))
        return made[-1]
    yield make
    for one in made:
        one.close()


def status(agent):
    """The update that this agent drives, or drove last."""
    out = agent.ctl("--json", "status")
    return json.loads(out.stdout)["update"] if out.returncode == 0 else None


def rolling(agent, *words):
    """Runs the command without --json: exit status, stdout, stderr."""
    out = agent.ctl("rolling-update", *words)
    return out.returncode, out.stdout, out.stderr


def limit(seconds):
    """A time as an option, stretched by place.SLOW."""
    return f"{int(seconds * 1000 * SLOW)}ms"
