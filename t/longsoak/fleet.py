"""The host of the soak: nginx with two upstreams, and six replicas with their
agents.

  upstream  policy    agent  replicas   what they are
  chat      affinity  gw1    v1 v2      doubles of vLLM, model alpha
                             s1 s2      doubles of SGLang, model beta
  work      weighted  gw2    m1 m2      simulated engines

Everything but the doubles is from the packages, and systemd starts again what
ends.  TLS stands before nginx, and between nginx, agents and adapters.
"""

import base64
import json
import pathlib
import urllib.request

import grpc

from llmgw.fleet.certs import Pki
from llmgw.fleet.nginx import Nginx
from llmgw.proc import packaged
from llmgw.proc.packaged import sh
from llmgw.speak import rpc
from llmgw.speak.keyfile import KeyFile

ETC = pathlib.Path("/etc/llmgw")
STATE = pathlib.Path("/var/lib/soak")
USAGE = STATE / "usage.log"
WORKERS = 4
TLS_PORT, STATUS_PORT = 8443, 8081
GATEWAY = "gw1"                 # what nginx's certificate names
KINDS = {"v": "vllm", "s": "sglang", "m": "sim"}
MODELS = {"v": "alpha", "s": "beta"}
REPLICAS = ("v1", "v2", "s1", "s2", "m1", "m2")
ENGINES = REPLICAS[:4]
AGENT_OF = {"v": "gw1", "s": "gw1", "m": "gw2"}
UNITS = ("llmgw-agent", "llmgw-agent@gw2",
         *(f"llmgw-agent@{r}" for r in REPLICAS),
         *(f"engine@{e}" for e in ENGINES), "reference")

NGINX = """\
worker_processes {workers};
worker_rlimit_nofile 8192;
user www-data;
pid /run/nginx.pid;
error_log /var/log/nginx/error.log notice;
include /etc/nginx/modules-enabled/*.conf;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    {keys}
    llmgw_usage_log {usage} gateway={gateway};
    llmgw_token_timeout 90s;        # streams are held
    upstream chat {{
        llmgw_members /run/llmgw/gw1.members models=4;
        llmgw_queue 100 hold=20s;
        llmgw_breaker cooldown=500ms max_cooldown=2s;
        {tls}
    }}
    upstream work {{
        llmgw_members /run/llmgw/gw2.members;
        llmgw_policy weighted;
        llmgw_prefix_index block=32;
        llmgw_queue 100 hold=20s order=priority fairness=round_robin;
        llmgw_breaker cooldown=500ms max_cooldown=2s;
        {tls}
    }}
    server {{
        listen 127.0.0.1:{port} ssl http2;
        ssl_certificate {pki}/{gateway}.crt;
        ssl_certificate_key {pki}/{gateway}.key;
        http2_max_concurrent_streams 1000;
        keepalive_requests 1000000;
        location / {{ llmgw_pass work; }}
        location /v1/ {{
            client_max_body_size 64m;
            llmgw_openai chat;
            llmgw_resume text;
        }}
    }}
    server {{
        listen 127.0.0.1:{status_port};
        keepalive_requests 1000000;
        location = /status {{ llmgw_status; }}
        location = /metrics {{ llmgw_metrics; }}
    }}
}}
"""

AGENT = """\
id {id}
role {role}
gossip 127.0.0.1:{gossip}
join 127.0.0.1:{join}
cluster {cluster}
keyring /etc/llmgw/gossip.keys
state-dir /var/lib/llmgw
control /run/llmgw/{id}.sock
tls-cert {pki}/{id}.crt
tls-key {pki}/{id}.key
tls-ca {pki}/ca.crt
"""

ADAPTER = (
    "LLMGW_VERSION=v0\n"
    "LLMGW_COMMAND=-- /usr/sbin/llmgw-replica --id {id} --listen 127.0.0.1:"
    "{port} --agent /run/llmgw/{id}.sock --model-version {{version}}"
    " --tls-cert {pki}/{id}.crt --tls-key {pki}/{id}.key"
    " --tls-client-ca {pki}/ca.crt --tls-client-name gw*,{id} {engine}\n")

ENGINE_UNIT = f"""\
[Unit]
StartLimitIntervalSec=0
[Service]
EnvironmentFile=/etc/llmgw/engine-%i.env
ExecStart=/usr/bin/python3 /t/llmgw/engine_mock.py --ledger {STATE}/ledger-%i \
    --faults '{{"token_delay": 0.03}}' $OPTIONS
Restart=always
RestartSec=100ms
"""

REFERENCE_UNIT = """\
[Service]
ExecStart=/usr/sbin/llmgw-replica --id reference --engine sim \
    --listen 127.0.0.1:12000 --token-delay 0ms
"""


class Process:
    """One that is found by its command line, whichever pid it has by now."""

    def __init__(self, title):
        self.title, self.known = title, None

    @property
    def pid(self):
        """0: it does not run."""
        if self.known is None or not _is(self.known, self.title):
            self.known = next(iter(packaged.processes(self.title)), None)
        return self.known or 0

    def alive(self):
        return self.pid != 0


def _is(pid, title):
    return pid in packaged.processes(title, [pid])


class Part:
    """An adapter or a double: where it listens, and its process."""

    def __init__(self, id, port, title):
        self.id, self.target = id, f"127.0.0.1:{port}"
        self.proc = Process(title)


class Gateway(Nginx):
    """What nginx of the package says; systemd has started it."""

    def __init__(self):
        self.port, self.status_port = TLS_PORT, STATUS_PORT
        self.target = self.api = f"127.0.0.1:{TLS_PORT}"

    def workers(self):
        return [*packaged.processes("nginx: worker")]

    def accepting(self):
        """Workers that take connections, the oldest first."""
        return sorted((pid for pid, title in packaged.processes(
            "nginx: worker").items() if "shutting down" not in title),
            key=packaged.started)


class Fleet:
    def __init__(self):
        STATE.mkdir()
        STATE.chmod(0o777)
        self.pki = Pki(ETC)
        self.keyfile = KeyFile(STATE)
        self.nginx = Gateway()
        self.replicas = {r: Part(r, 11000 + i, rf"/usr/\S+ --id {r} ")
                         for i, r in enumerate(REPLICAS)}
        self.engines = {e: Part(e, 9000 + i, rf".*ledger-{e} ")
                        for i, e in enumerate(ENGINES)}
        self.ledgers = [STATE / f"ledger-{e}" for e in ENGINES]
        self._sims = None

    # before it starts

    def configure(self):
        (ETC / "gossip.keys").write_text(base64.b64encode(bytes(32)).decode())
        for id in ("gw1", "gw2", *REPLICAS):
            self.pki.issue(id)
        self._agents()
        self._engines()
        sh(f"chown -R llmgw: {ETC}/gossip.keys {self.pki.dir}")
        sh(f"chmod 600 {ETC}/gossip.keys; chmod 755 {self.pki.dir}")
        pathlib.Path("/etc/nginx/nginx.conf").write_text(NGINX.format(
            workers=WORKERS, usage=USAGE, gateway=GATEWAY, port=TLS_PORT,
            status_port=STATUS_PORT, pki=self.pki.dir,
            tls=self.pki.nginx(GATEWAY), keys=self.keyfile.directive(
                more=f"state={STATE}/used")))

    def _agents(self):
        for n, id in enumerate(("gw1", "gw2", *REPLICAS)):
            cluster = AGENT_OF.get(id[0], id)
            is_gateway = id == cluster
            text = AGENT.format(
                id=id, role="gateway" if is_gateway else "replica",
                gossip=21000 + n, join=21000 + (cluster == "gw2"),
                cluster=f"cluster-{cluster}", pki=self.pki.dir)
            if is_gateway:
                text += f"members /run/llmgw/{id}.members\n"
            else:
                target = self.replicas[id].target
                text += f"grpc {target}\n"
                self._adapter(id, target.rpartition(":")[2])
            name = "agent" if id == "gw1" else id
            (ETC / f"{name}.conf").write_text(text)

    def _adapter(self, id, port):
        kind = KINDS[id[0]]
        engine = "--engine sim --token-delay 10ms" if kind == "sim" else (
            f"--engine {kind} --engine-url http://{self.engines[id].target}"
            " --stall-timeout 90s")
        (ETC / f"{id}.env").write_text(ADAPTER.format(
            id=id, port=port, pki=self.pki.dir, engine=engine))

    def _engines(self):
        units = pathlib.Path("/etc/systemd/system")
        (units / "engine@.service").write_text(ENGINE_UNIT)
        (units / "reference.service").write_text(REFERENCE_UNIT)
        for id, engine in self.engines.items():
            (ETC / f"engine-{id}.env").write_text(
                f"OPTIONS=--kind {KINDS[id[0]]} --model {MODELS[id[0]]}"
                f" --listen {engine.target}\n")

    def start(self):
        sh("systemctl daemon-reload")
        sh("systemctl start nginx " + " ".join(UNITS))

    # while it runs

    def is_whole(self):
        """All units are active, and nginx routes to all replicas."""
        return (sh(f"systemctl is-active nginx {' '.join(UNITS)}",
                   check=False).returncode == 0
                and packaged.are_ready("/run/llmgw/gw1.sock", ENGINES)
                and packaged.are_ready("/run/llmgw/gw2.sock", REPLICAS[4:])
                and self._routes()
                and len(self.nginx.accepting()) == WORKERS)

    def _routes(self):
        try:
            return (self.nginx.models("chat") == {
                        "alpha": ["v1", "v2"], "beta": ["s1", "s2"]}
                    and self.nginx.routable("work") == ["m1", "m2"])
        except OSError:
            return False

    def main_pid(self, unit):
        return int(sh(f"systemctl show -p MainPID --value {unit}").stdout)

    def agent_pid(self, id):
        return self.main_pid("llmgw-agent" if id == "gw1"
                             else f"llmgw-agent@{id}")

    # streams that are held

    def gate(self, tokens):
        """Each stream gets so many tokens and no more; -1: all.  What is not
        there at the moment gets none."""
        for engine in self.engines.values():
            try:
                urllib.request.urlopen(
                    f"http://{engine.target}/mock/faults",
                    json.dumps({"gate": tokens}).encode(), 5).close()
            except OSError:
                pass
        for sim in self.sims():
            try:
                sim.unary(rpc.SET_FAULTS, rpc.pb.Faults(gate=tokens),
                          rpc.pb.Faults, timeout=5)
            except grpc.RpcError:
                pass

    def sims(self):
        if self._sims is None:
            ca, pair = self.pki.ca.read_bytes(), self.pki.pair(GATEWAY)
            self._sims = [rpc.Client(self.replicas[r].target, ca, pair, r)
                          for r in REPLICAS[4:]]
        return self._sims

    def running(self):
        """{id: what runs or waits there}, of the doubles and the simulated
        engines."""
        found = {}
        for id, engine in self.engines.items():
            with urllib.request.urlopen(
                    f"http://{engine.target}/mock/state", timeout=5) as got:
                state = json.load(got)
            found[id] = state["running"] + state["waiting"]
        for id, sim in zip(REPLICAS[4:], self.sims()):
            found[id] = sim.stats().active_requests
        return {id: n for id, n in found.items() if n}

    def reference(self, asks):
        """{prompt: its tokens} of (prompt, n), by an engine that nothing
        happens to."""
        with rpc.Client("127.0.0.1:12000") as client:
            return {prompt: client.generate(prompt, n).tokens
                    for prompt, n in asks}
