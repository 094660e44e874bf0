#!/usr/bin/python3
"""One host with a gateway and three replicas: from one release to another.

Each row of the table is one way from all programs of one version to all of the
other, in one order, while clients ask all the time and check each token.  A
line for each fact, then DONE.
"""

import base64
import json
import pathlib
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, "/t")
from llmgw.pages.facts import Facts  # noqa: E402
from llmgw.proc import packaged  # noqa: E402
from llmgw.proc.packaged import (  # noqa: E402
    debs, masters, outdated, sh, version_of)
from llmgw.proc.wait import within  # noqa: E402

ETC = pathlib.Path("/etc/llmgw")
CONTROL = "/run/llmgw/gw1.sock"
REPLICAS = ("r1", "r2", "r3")
UNITS = ("llmgw-agent", *(f"llmgw-agent@{r}" for r in REPLICAS))
STREAMS = 200
RATE = 100
TOKEN_MS = 50
LIMIT_S = 60

NGINX = """\
worker_processes 2;
worker_rlimit_nofile 8192;
user www-data;
pid /run/nginx.pid;
error_log /var/log/nginx/error.log notice;
include /etc/nginx/modules-enabled/*.conf;
events { worker_connections 4096; }
http {
    access_log off;
    upstream llm { llmgw_members /run/llmgw/members; }
    server {
        listen 127.0.0.1:8080 http2;
        http2_max_concurrent_streams 1000;
        keepalive_requests 1000000;
        location / { llmgw_pass llm; }
    }
    server {
        listen 127.0.0.1:8081;
        keepalive_requests 1000000;
        location /v1/ { llmgw_openai llm; }
        location = /status { llmgw_status; }
    }
}
"""

AGENT = """\
cluster    upgrade
keyring    /etc/llmgw/gossip.keys
state-dir  /var/lib/llmgw
join       127.0.0.1:22000
"""

# By their command lines: a simulated engine is another program than it was.
ADAPTERS = "pgrep -f '^/usr/sbin/llmgw-replica '"

fact = Facts()


def soon(predicate, what):
    return within(LIMIT_S, predicate, what, interval=0.1)


def write_configuration():
    pathlib.Path("/etc/nginx/nginx.conf").write_text(NGINX)
    (ETC / "gossip.keys").write_text(base64.b64encode(bytes(32)).decode())
    sh("chown llmgw: /etc/llmgw/gossip.keys; chmod 600 /etc/llmgw/gossip.keys")
    (ETC / "agent.conf").write_text(
        f"id gw1\nrole gateway\ngossip 127.0.0.1:22000\n{AGENT}"
        "members /run/llmgw/members\ncontrol /run/llmgw/gw1.sock\n")
    for n, r in enumerate(REPLICAS, 1):
        (ETC / f"{r}.conf").write_text(
            f"id {r}\nrole replica\ngossip 127.0.0.1:2100{n}\n{AGENT}"
            f"grpc 127.0.0.1:1100{n}\ncontrol /run/llmgw/{r}.sock\n")
        (ETC / f"{r}.env").write_text(
            "LLMGW_VERSION=v0\n"
            f"LLMGW_COMMAND=-- /usr/sbin/llmgw-replica --id {r} --engine sim"
            f" --listen 127.0.0.1:1100{n} --agent /run/llmgw/{r}.sock"
            f" --token-delay {TOKEN_MS}ms --model-version {{version}}\n")


def all_ready():
    return packaged.are_ready(CONTROL, REPLICAS)


def status():
    with urllib.request.urlopen("http://127.0.0.1:8081/status") as got:
        return json.load(got)


# --- steps

def packages(to, *names):
    packaged.install(fact, to, *names)


def status_page_has(to):
    """Soon: workers of the old master may accept for another moment."""
    soon(lambda: status()["version"] == version_of(to), "the version")
    fact(True, "the status page has the version")


def module(to):
    packages(to, "libnginx-mod-http-llmgw")
    status_page_has(to)


def agents(to):
    """The adapter's package comes along, and adapters run on."""
    before = sh(ADAPTERS).stdout
    packages(to, "llmgw-agent", "llmgw-replica")
    soon(lambda: not outdated("llmgw-agent") and all_ready(),
         "the agents to be there again")
    fact(sh(ADAPTERS).stdout == before,
         "agents have adopted their adapters")


def replicas(to):
    packages(to, "llmgw-tools")
    order = f"v{time.monotonic():.0f}"
    packaged.update(fact, CONTROL, "--to", order)
    soon(all_ready, "all replicas")
    fact(not outdated("llmgw-replica"), "adapters have the new file")


def everything(to):
    """As `apt upgrade` does it; then the adapters."""
    packages(to, "libnginx-mod-http-llmgw", "llmgw-agent", "llmgw-replica",
             "llmgw-tools")
    soon(lambda: not outdated("llmgw-agent") and all_ready(),
         "the agents to be there again")
    status_page_has(to)
    replicas(to)


ORDERS = {
    "module, agents, adapters": (module, agents, replicas),
    "agents, module, adapters": (agents, module, replicas),
    "agents, adapters, module": (agents, replicas, module),
    "all packages, adapters": (everything,),
}


# --- load

class Load:
    """Streams of 3 s and short requests, until .end()."""

    def __init__(self):
        self.runs = [
            self.bench("--gateway 127.0.0.1:8080 --connections 4"
                       f" --streams {STREAMS // 4} --max-tokens 60"),
            self.bench("--gateway 127.0.0.1:8081 --openai --connections 60"
                       f" --rate {RATE} --max-tokens 4")]

    def bench(self, options):
        return subprocess.Popen(
            ["/load/usr/bin/llmgw-client", "bench", "--json", "--duration",
             "10m", "--drain", "30s", *options.split()],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def end(self):
        for run in self.runs:
            run.send_signal(2)
        return [json.loads(run.communicate()[0]) for run in self.runs]


def crossed(result):
    """Requests that have met a master's GOAWAY: refused before anything was
    done (RFC 9113, 8.7), so that clients send them again by themselves."""
    return sum(e["count"] for e in result["errors"] if e["reason"] == "refused")


def lost(result):
    return (result["requests"]["failed"] + result["requests"]["unfinished"]
            - crossed(result))


def ms(result, key):
    spread = result["ms"][key]
    return f"{spread['max']:.0f}" if spread else "-"


def row(order, direction, results):
    streams, short = results
    print("|", order, "|", direction, "|", streams["requests"]["ok"], "|",
          lost(streams), "|", crossed(streams), "|", ms(streams, "gap"), "|",
          short["requests"]["ok"], "|", lost(short), "|",
          ms(short, "first_token"), "|", flush=True)
    for result in results:
        if lost(result):
            print(result["errors"])


def walk(order, to):
    direction = f"{'to' if to == 'now' else 'back to'} {version_of(to)}"
    print(f"--- {order}, {direction}", flush=True)
    load = Load()
    time.sleep(3)           # all streams are open
    for step in ORDERS[order]:
        step(to)
    time.sleep(3)
    results = load.end()
    row(order, direction, results)
    fact(sum(map(lost, results)) == 0, f"{order}, {direction}: nothing lost")
    soon(lambda: len(masters()) == 1, "the old master to end")
    fact(sh("systemctl is-active nginx", check=False).returncode == 0,
         "the old master is gone, and nginx's unit is active")


def an_agent_that_would_not_start():
    before = sh("systemctl show -p MainPID llmgw-agent@r3").stdout
    with open(ETC / "r3.conf", "a") as options:
        options.write("nonsense 1\n")
    out = sh(f"dpkg -i {debs('now', 'llmgw-agent', 'llmgw-replica')}",
             check=False).stdout
    fact("llmgw-agent@r3.service goes on with the former version" in out
         and "nonsense" in out
         and sh("systemctl show -p MainPID llmgw-agent@r3").stdout == before,
         "an agent whose options are not accepted goes on, and a line says so")
    soon(lambda: len(outdated("llmgw-agent")) == 1, "the others to be new")


def removal():
    out = sh("dpkg -r llmgw-replica llmgw-agent", check=False)
    fact(out.returncode == 0 and not sh("pgrep -f ^/usr/sbin/llmgw-",
                                        check=False).stdout,
         "removal stops all units, and nothing of them runs on")
    if not fact.all[-1]:
        print(out.stdout)


def main():
    pathlib.Path("/usr/sbin/policy-rc.d").unlink(missing_ok=True)
    sh(f"dpkg-deb -x {debs('now', 'llmgw-tools')} /load")
    out = sh("dpkg -i " + debs(
        "former", "libnginx-mod-http-llmgw", "llmgw-agent", "llmgw-replica",
        "llmgw-tools"), check=False)
    if not fact(out.returncode == 0, "the former packages are installed"):
        return print(out.stdout)
    write_configuration()
    sh("systemctl daemon-reload && systemctl start nginx " + " ".join(UNITS))
    soon(all_ready, "all replicas")
    print("| order | | streams | lost | sent again | longest gap, ms"
          " | requests | lost | first token, ms |")
    print("| --- " * 9 + "|")
    for order in ORDERS:
        walk(order, "now")
        walk(order, "former")
    an_agent_that_would_not_start()
    removal()
    print("DONE", flush=True)


try:
    main()
finally:
    for line in open("/var/log/nginx/error.log"):
        if any(word in line for word in ("[alert]", "[emerg]", "[error]")):
            print(line, end="")
    subprocess.run(["systemctl", "exit", "0"])
