"""Replicas, agents and nginx of one test, under one directory."""

import json
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import urllib.request

from ..engine import real
from ..proc import logs, place
from ..proc.daemon import Daemon
from ..proc.process import Proc
from ..proc.wait import PATIENCE, TooLate, wait_for
from .nginx import Nginx


ANYBODY = ssl._create_unverified_context()      # whose certificate it may be


def _options(options):
    """token_delay="5ms", remote_drain=True -> --token-delay 5ms ..."""
    argv = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            argv.append(flag)
        elif value is not None and value is not False:
            argv += [flag, str(value)]
    return argv


class Replica(Daemon):
    def __init__(self, cluster, id, agent=None, machine=None, **options):
        self.id = id
        self.port = cluster.ports.take()
        self.target = f"{cluster.host_of(machine)}:{self.port}"
        self.agent = agent
        if not options.keys() & {"engine", "engine_url", "engine_command",
                                 "shard", "orchestrate"}:
            options["engine"] = "sim"
        self.is_simulated = options.get("engine") == "sim"
        self.tls = options.get("tls_cert"), options.get("tls_key"), \
            options.get("tls_client_ca")
        self._client = None
        argv = [place.binary("llmgw-replica"), "--id", id, "--listen",
                self.target, *_options(options)]
        if agent:
            argv += ["--agent", agent.control]
        super().__init__(cluster, f"replica-{id}", argv, machine)

    def start(self):
        self._client = None         # it would tell of the process before
        return super().start()

    @property
    def client(self):
        from ..speak.rpc import Client  # the demo needs no grpcio
        if self._client is None:
            cert, key, ca = self.tls
            self._client = Client(
                self.target, ca and ca.read_bytes(), cert and (cert, key),
                self.id if cert else None)
            self.cluster.closers.append(self._client.close)
        return self._client

    def stats(self):
        return self.client.stats()

    def faults(self, **faults):
        return self.client.faults(**faults)


class Agent(Daemon):
    def __init__(self, cluster, id, role, /, join=(), machine=None, **options):
        self.id, self.role = id, role
        self.gossip = f"{cluster.host_of(machine)}:{cluster.ports.take()}"
        self.control = str(cluster.dir / f"{id}.sock")
        self.members = None
        argv = [place.binary("llmgw-agent"), "--id", id, "--role", role,
                "--gossip", self.gossip, "--control", self.control]
        if role == "gateway":
            self.members = str(cluster.dir / f"{id}.members")
            argv += ["--members", self.members]
        if join:
            argv += ["--join", ",".join(join)]
        super().__init__(cluster, f"agent-{id}", argv + _options(options),
                         machine)

    def ctl(self, *words):
        return subprocess.run(
            [place.binary("llmgwctl"), "-s", self.control, *words],
            capture_output=True, text=True, timeout=PATIENCE)

    def table(self):
        """llmgwctl members, by id; empty while the agent does not answer."""
        out = self.ctl("--json", "members")
        if out.returncode != 0:
            return {}
        return {m["id"]: m for m in json.loads(out.stdout)["members"]}


class Engine(Daemon):
    """A running engine_mock.py."""

    def __init__(self, cluster, id, kind, **options):
        self.id, self.kind = id, kind
        self.port = cluster.ports.take()
        self.target = f"127.0.0.1:{self.port}"
        self.url = f"http{'s' if options.get('tls') else ''}://{self.target}"
        self.log = cluster.dir / f"engine-{id}.jsonl"
        script = place.HARNESS / "engine_mock.py"
        super().__init__(cluster, f"engine-{id}", [
            place.PYTHON, str(script), "--kind", kind, "--listen",
            self.target, "--log", str(self.log), *_options(options)])

    def start(self):
        super().start()
        wait_for(self._answers, f"engine {self.id} to answer")
        return self

    def _answers(self):
        if not self.proc.alive():
            raise AssertionError(self.proc.text())
        try:
            return self.state()
        except OSError:
            return None

    def state(self):
        return self._ask("state")

    def faults(self, **faults):
        """engine/faults.py has their names; None sets one back."""
        return self._ask("faults", json.dumps(faults).encode())

    def _ask(self, what, body=None):
        with urllib.request.urlopen(f"{self.url}/mock/{what}", body, PATIENCE,
                                    context=ANYBODY) as answer:
            return json.loads(answer.read())

    def events(self, event=None, path=None):
        """What its log says, but for the tests' own requests; it outlives
        the process.  path: of `request` events."""
        rows = [json.loads(line) for line in
                self.log.read_text().split("\n")[:-1]]     # whole lines
        return [r for r in rows if event in (None, r["event"])
                and not r.get("path", "").startswith("/mock/")
                and (path is None or r.get("path") == path)]


class Cluster:
    def __init__(self, ports, name="test", policy=None):
        self.ports, self.policy = ports, policy
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"llmgw-{name}-"))
        self.dir.chmod(0o755)       # nginx's workers may be another user
        self.procs, self.nginxes, self.closers = [], [], []
        self.agents, self.replicas, self.engines = {}, {}, {}
        self.allowed = []
        self.host = "127.0.0.1"     # of agents and replicas without a Machine
        self.gateway = None
        self._nginx = None

    # parts

    def host_of(self, machine):
        return machine.address if machine else self.host

    def run(self, name, argv, **options):
        log = self.dir / f"{name}.log"
        proc = Proc(name, argv, log, **options)
        self.procs.append(proc)
        return proc

    def script(self, name, file, *argv, **options):
        """Runs a Python script of this package."""
        return self.run(name, [place.PYTHON, str(place.HARNESS / file), *argv],
                        **options)

    def agent(self, id, role="replica", start=True, **options):
        options.setdefault("join", [a.gossip for a in self.agents.values()])
        agent = Agent(self, id, role, **options)
        self.agents[id] = agent
        if role == "gateway" and self.gateway is None:
            self.gateway = agent
        return agent.start() if start else agent

    def replica(self, id, agent=None, start=True, **options):
        replica = Replica(self, id, agent, **options)
        self.replicas[id] = replica
        return replica.start() if start else replica

    def pair(self, id, start=True, agent_options=None, machine=None,
             **options):
        """A replica and its sidecar."""
        replica = self.replica(id, None, start=False, machine=machine,
                               **options)
        replica.agent = self.agent(id, start=start, machine=machine, **{
            "grpc": replica.target, **(agent_options or {})})
        replica.argv += ["--agent", replica.agent.control]
        return replica.start() if start else replica

    def engine(self, id="e1", kind=None, start=True, **options):
        """A mock of an engine, or a real one where any will do; options of
        engine_mock.py."""
        engine = (real.engine(self, id, kind, options) if place.IS_REAL
                  else Engine(self, id, kind or "vllm", **options))
        self.engines[id] = engine
        return engine.start() if start else engine

    def adapter(self, engine, id=None, **options):
        """The replica that speaks for an engine, and its sidecar.  An engine
        whose streams hold() holds is not called hung."""
        options.setdefault("stall_timeout", "60s")
        return self.pair(id or f"a-{engine.id}", engine=engine.kind,
                         engine_url=engine.url, **options)

    def nginx(self, upstream=None, start=True, hash="prefix=64", pool="",
              gateway=None, **options):
        """pool: further lines of the upstream block."""
        if upstream is None:
            members = (gateway or self.gateway).members
            upstream = f"llmgw_members {members};\n        llmgw_hash {hash};"
        if pool:
            upstream += f"\n        {pool}"
        self.wait_serving(upstream)
        options.setdefault("policy", self.policy)
        nginx = Nginx(self.dir / f"nginx{len(self.nginxes) or ''}",
                      self.ports, upstream, **options)
        self.nginxes.append(nginx)
        if start:
            self.procs.append(nginx.start().proc)
        return nginx

    def launch(self, nginx):
        """Starts an nginx that was made with start=False."""
        self.procs.append(nginx.start().proc)
        return nginx

    def static(self, replicas, hash="prefix=64", **options):
        """nginx over `server` lines, without agents."""
        lines = [f"llmgw_hash {hash};"]
        lines += [f"server {r.target};" for r in replicas]
        return self.nginx("\n        ".join(lines), **options)

    def wait_serving(self, upstream):
        """Waits for the replicas of its `server` lines, which nobody else does.
        """
        started = [r.proc for r in self.replicas.values()
                   if isinstance(r, Replica) and r.proc
                   and f"server {r.target}" in upstream]
        wait_for(lambda: all("serving" in proc.text() or not proc.alive()
                             for proc in started), "replicas to serve")

    def fleet(self, n=3, nginx=None, replica=None, agent=None, each=None):
        """A gateway agent, r1 .. rn with their agents, nginx; all routable.

        nginx, replica, agent: options; each: id -> options of one replica.
        A test that wants a stream in its middle calls hold() next.
        """
        self.agent("gw", "gateway", **(agent or {}))
        ids = [f"r{i + 1}" for i in range(n)]
        for id in ids:
            options = {"token_delay": "1ms", **(replica or {}),
                       **(each or {}).get(id, {})}
            self.pair(id, agent_options=agent, **options)
        self.wait_ready([self.gateway], ids)
        got = self.nginx(**(nginx or {}))
        wait_for(lambda: got.routable() == ids, f"{ids} to be routable")
        return got

    def wait_ready(self, agents=None, ids=None):
        """Waits until these agents (None: all) know that these replicas
        (None: all) are ready.

        An agent that is asked for a drain judges by what it knows itself.  And
        nginx finds what the gateway's agent knows in its first view; a
        newcomer is taken over later, by each worker for itself, of which
        `routable` asks one.
        """
        agents, ids = agents or self.agents.values(), ids or self.replicas

        def are_ready(table):
            return all(table.get(id, {}).get("service") == "READY"
                       for id in ids)
        wait_for(lambda: all(are_ready(agent.table()) for agent in agents),
                 what=f"agents to know {[*ids]}")

    def engines_fleet(self, n=2, kind=None, nginx=None, adapter=None,
                      agent=None, **engine):
        """A gateway agent, engines e1 .. en with adapters a1 .. an, nginx with
        the front of OpenAI's API; all routable."""
        self.agent("gw", "gateway", **(agent or {}))
        ids = [f"a{i + 1}" for i in range(n)]
        for i, id in enumerate(ids):
            self.adapter(self.engine(f"e{i + 1}", kind, **engine), id,
                         agent_options=agent, **(adapter or {}))
        self.wait_ready([self.gateway], ids)
        got = self.nginx(**{"openai": True, **(nginx or {})})
        wait_for(lambda: got.routable() == ids, f"{ids} to be routable")
        return got

    def pyreplica(self, name, **options):
        """An engine made with grpcio; has .target and .proc."""
        replica = PyReplica(self, name, options)
        self.replicas[name] = replica
        return replica

    def hold(self, tokens=0):
        """From now on each stream gets only its first tokens, whichever
        replica it comes to, until let_go() or another hold().

        Simulated replicas and mock engines that run now obey it; not one that
        starts later.
        """
        self._set_gate(tokens)

    def let_go(self):
        """Streams that hold() held, and all later ones, run on."""
        self._set_gate(-1)

    def _set_gate(self, index):
        gated = [r for r in self.replicas.values()
                 if isinstance(r, Replica) and r.is_simulated]
        gated += [e for e in self.engines.values() if isinstance(e, Engine)]
        for one in gated:
            if one.proc and one.proc.alive():
                one.faults(gate=index)

    # the end

    def close(self):
        """Stops everything.  Returns what was wrong, as lines."""
        wrong = []
        for closer in self.closers:
            try:
                closer()
            except Exception as e:      # the processes are ended all the same
                wrong.append(f"at the end: {e!r}")
        for nginx in self.nginxes:
            wrong += self._counts(nginx)
        for proc in self._ending_order():
            said = proc.stop(signal.SIGQUIT if proc.name == "nginx"
                             else signal.SIGTERM)
            if said:
                wrong.append(said)
        for path in self.logs():
            wrong += logs.complaints(path, self.allowed)
        return wrong

    def _counts(self, nginx):
        if nginx.proc is None or not nginx.proc.alive() \
                or nginx.proc.told_to_end:
            return []
        try:
            wait_for(lambda: not nginx.counts(), "in-flight counts of 0")
        except TooLate:
            return [f"in flight at the end: {nginx.counts()}"]
        except OSError as e:
            return [f"nginx does not answer at the end: {e}"]
        return []

    def _ending_order(self):
        """Clients first, nginx, then replicas, agents, engines and what these
        hold on to."""
        rank = {"nginx": 1, "replica": 2, "py": 2, "agent": 3, "engine": 4,
                "lock": 5, "weights": 5}
        return sorted(self.procs, key=lambda p: rank.get(
            re.split("[-.]", p.name)[0], 0))

    def logs(self):
        return sorted(self.dir.rglob("*.log"))

    def tails(self):
        parts = []
        for path in self.logs():
            text = logs.tail(path)
            if text and path.name != "access.log":
                parts.append(f"--- {path}\n{text}")
        return "\n".join(parts)

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


class PyReplica:
    def __init__(self, cluster, name, options):
        self.id = name
        self.target = f"127.0.0.1:{cluster.ports.take()}"
        self.proc = cluster.script(f"py-{name}", "engine/pyreplica.py",
                                   "--listen", self.target, *_options(options))
        self.kill = self.proc.kill
        from ..speak.rpc import Client
        with Client(self.target) as client:
            wait_for(lambda: client.check(), f"{name} to serve")
