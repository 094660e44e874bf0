"""nginx with our module, under a directory of its own."""

import functools
import json
import os
import pathlib
import re
import signal
import subprocess
import urllib.request

from ..proc import place
from ..proc.process import Proc, pids_of_group
from ..proc.wait import PATIENCE, wait_for

OPENAI = """
        location /v1/ {{
            client_max_body_size 64m;
            llmgw_openai llm;
            {lines}
        }}
"""

CONF = """\
load_module {module};
user {user};
worker_processes {workers};
worker_rlimit_core 0;
daemon off;
master_process on;
pid {dir}/nginx.pid;
error_log {dir}/error.log info;
{main}

events {{
    worker_connections {worker_connections};
}}

http {{
    access_log {dir}/access.log;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    {patience}
    {http}

    upstream llm {{
        {upstream}
    }}

    server {{
        {listen}
        listen 127.0.0.1:{status_port};
        http2_max_concurrent_streams 10000;
        keepalive_requests 1000000;
        {server}

        location / {{
            client_max_body_size 8m;
            llmgw_pass llm;
            {location}
        }}

        location = /status {{
            llmgw_status;
        }}
    }}
}}
"""


@functools.lru_cache
def version():
    out = subprocess.run([place.NGINX, "-v"], capture_output=True, text=True)
    return tuple(map(int, re.search(r"nginx/([\d.]+)",
                                    out.stderr).group(1).split(".")))


@functools.lru_cache
def sanitizer_env():
    """A module built with asan needs its runtime preloaded into nginx."""
    if place.FLAVOUR != "asan":
        return {}
    lib = subprocess.run(["gcc", "-print-file-name=libasan.so"],
                         capture_output=True, text=True, check=True)
    return {"LD_PRELOAD": lib.stdout.strip(),
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1"
                            ":verify_asan_link_order=0"}


def listen(port):
    if version() >= (1, 25, 1):
        return f"listen 127.0.0.1:{port};\n        http2 on;"
    return f"listen 127.0.0.1:{port} http2;"


# Under these a queue without classes and tenants is what it is by default.
FLOW = ("order=priority fairness=round_robin saturation=concurrency=1000"
        " shedding=on")


# A stream that a test holds is silent for as long as the test takes.
TOKEN_TIMEOUT = "llmgw_token_timeout 60s;"


def patience(http):
    return "" if "llmgw_token_timeout" in http else TOKEN_TIMEOUT


def with_policy(upstream, policy):
    """The lines of an upstream block; its own policy goes before.

    policy: NAME, or NAME+flow, with flow control in the queue.
    """
    if policy is None or "llmgw_" not in upstream:
        return upstream
    policy, _, has_flow = policy.partition("+")
    if has_flow and "llmgw_queue" not in upstream:
        upstream += f"\n        llmgw_queue {FLOW};"
    elif has_flow:
        upstream = re.sub(r"(llmgw_queue (?!off)[^;]*);", rf"\1 {FLOW};",
                          upstream)
    if "llmgw_policy" in upstream:
        return upstream
    return f"{upstream}\n        llmgw_policy {policy};"


class Nginx:
    """upstream: lines of the upstream block.

    options: further lines of the main, http, server and location contexts
    (@dir@ is replaced by the directory); user, workers, worker_connections.
    openai: the front of OpenAI's API, too, at `api`: True, or further lines
    of its location.
    policy: the value of llmgw_policy, unless the upstream's lines have it.
    preload: a library whose functions replace those of the C library.
    """

    def __init__(self, directory, ports, upstream, preload=None, **options):
        self.dir = pathlib.Path(directory)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.port, self.status_port = ports.take(), ports.take()
        self.target = f"127.0.0.1:{self.port}"
        self.api = f"127.0.0.1:{self.status_port}"      # HTTP/1.1
        self.options = dict(user="root", workers=1, worker_connections=8192,
                            main="", http="", server="", location="",
                            openai=False, policy=None)
        self.options.update(options)
        self.upstream = upstream
        self.preload = preload
        self.proc = None
        self.configure()

    @property
    def conf(self):
        return self.dir / "nginx.conf"

    @property
    def error_log(self):
        return self.dir / "error.log"

    def configure(self, **options):
        """Writes the file again; a running nginx reads it at a reload."""
        self.upstream = options.pop("upstream", self.upstream)
        self.options.update(options)
        given = dict(self.options)
        openai, policy = given.pop("openai"), given.pop("policy")
        if openai is not False:
            given["server"] += OPENAI.format(
                lines="" if openai is True else openai)
        text = CONF.format(
            module=place.MODULE, dir="@dir@", listen=listen(self.port),
            status_port=self.status_port, patience=patience(given["http"]),
            upstream=with_policy(self.upstream, policy), **given)
        self.conf.write_text(text.replace("@dir@", str(self.dir)))

    def argv(self, *more):
        return [place.NGINX, "-p", f"{self.dir}/", "-c", str(self.conf),
                "-e", str(self.error_log), *more]

    def command(self, *more):
        """nginx -t, nginx -s quit and the like."""
        return subprocess.run(
            self.argv(*more), capture_output=True, text=True,
            env={**os.environ, **self.env()}, timeout=60)

    def env(self):
        """A test's preload comes before the sanitizer's, which has a malloc
        of its own."""
        env = dict(sanitizer_env())
        if self.preload:
            libraries = [self.preload, env.get("LD_PRELOAD")]
            env["LD_PRELOAD"] = ":".join(filter(None, libraries))
        return env

    def start(self):
        self.proc = Proc("nginx", self.argv(), self.dir / "stderr.log",
                         env=self.env())
        wait_for(self.up, "nginx to answer")
        if self.options["workers"] > 1:     # one of them has answered
            self._wait_workers(set())
        return self

    def _wait_workers(self, before):
        wait_for(lambda: len(set(self.workers()) - before)
                 >= self.options["workers"], what="all new workers")

    def up(self):
        if not self.proc.alive():
            raise AssertionError("nginx did not start:\n" + self.log())
        try:
            return self.status()
        except OSError:
            return None

    def log(self):
        parts = [self.proc.text() if self.proc else ""]
        if self.error_log.exists():
            parts.append(self.error_log.read_text(errors="replace"))
        return "".join(parts)

    # what it reports

    def get(self, path="/status"):
        url = f"http://127.0.0.1:{self.status_port}{path}"
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return answer.headers, answer.read()

    def status(self):
        return json.loads(self.get()[1])

    def pool(self, name="llm", model=None):
        """The upstream's first pool, or that of a model."""
        for pool in self.status()["pools"]:
            if pool["name"] == name and model in (None, pool["model"]):
                return pool
        raise AssertionError(f"no pool {name} of {model}")

    def models(self, name="llm"):
        """{model: its routable replicas}, of all pools of the upstream."""
        return {pool["model"]: sorted(r["id"] for r in pool["replicas"]
                                      if r["routable"])
                for pool in self.status()["pools"] if pool["name"] == name}

    def replicas(self, name="llm"):
        return {r["id"]: r for r in self.pool(name)["replicas"]}

    def routable(self, name="llm"):
        return sorted(i for i, r in self.replicas(name).items()
                      if r["routable"])

    def in_flight(self):
        return self.pool()["in_flight"]

    def waiting(self):
        return self.pool()["queue"]["length"]

    def counted(self, name):
        """A family of /metrics: {the label but upstream, or both if there is a
        reason: value}"""
        found = {}
        for line in self.get("/metrics")[1].decode().splitlines():
            got = re.fullmatch(rf'{name}{{upstream="llm",\w+="([^"]*)"'
                               r'(?:,reason="([^"]*)")?} (\d+)', line)
            if got:
                key = got[1] if got[2] is None else (got[1], got[2])
                found[key] = int(got[3])
        return found

    def counts(self):
        """Every in-flight count and queue that is not zero."""
        found = {}
        for pool in self.status()["pools"]:
            if pool["in_flight"]:
                found[pool["name"]] = pool["in_flight"]
            if (pool.get("queue") or {}).get("length"):
                found[f"queue of {pool['name']}"] = pool["queue"]["length"]
            for r in pool["replicas"]:
                if r["in_flight"]:
                    found[r["id"]] = r["in_flight"]
        return found

    # its processes

    def workers(self):
        return [p for p in pids_of_group(self.proc.pid) if p != self.proc.pid]

    def reload(self):
        """SIGHUP; waits until new workers answer, old ones accept no more."""
        before = set(self.workers())
        self.proc.send(signal.SIGHUP)
        self._wait_workers(before)
        wait_for(lambda: self.status()["worker_pid"] not in before,
                 "an answer from a new worker")
        wait_for(lambda: not self._accepting(before),
                 "the old workers to stop accepting")

    def _accepting(self, pids):
        log = self.error_log.read_text(errors="replace")
        return [p for p in pids & set(self.workers())
                if f" {p}#{p}: gracefully shutting down" not in log]

    def quit(self):
        self.proc.send(signal.SIGQUIT)
