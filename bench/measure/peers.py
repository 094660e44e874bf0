"""The proxies, each with one worker on one processor.

llmgw and the thread-per-stream gateway serve Infer, and name the replica in
each message; the others pass on the bytes of the replica's Generate.  Each is
configured to do well: unlimited streams and requests a connection, upstream
connections kept open, no access log.
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess

from . import machine
from .machine import ROOT, Fail

BUILD = ROOT / "build"
MADE = BUILD / "bench"

NGINX = """\
{load}
user root;
worker_processes 1;
daemon off;
pid {dir}/nginx.pid;
error_log {dir}/error.log warn;
events {{ worker_connections 16384; }}
http {{
    access_log off;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    {http}
    upstream llm {{
        {upstream}
    }}
    server {{
        listen 127.0.0.1:{port} {http2_word};
        {http2_line}
        http2_max_concurrent_streams 100000;
        keepalive_requests 1000000000;
        keepalive_timeout 1h;
        location / {{ {location} }}
    }}
    server {{
        listen 127.0.0.1:{status};
        {status_location}
    }}
}}
"""

HAPROXY = """\
global
    nbthread 1
    maxconn 9000
    tune.h2.max-concurrent-streams 20000
    tune.h2.initial-window-size 1048576
defaults
    mode http
    timeout connect 5s
    timeout client 1h
    timeout server 1h
frontend front
    bind 127.0.0.1:{port} proto h2
    default_backend back
backend back
    balance roundrobin
    http-reuse always
{servers}
"""

CADDY = """\
{{
    admin off
    auto_https off
    servers {{
        protocols h1 h2c
    }}
}}
http://127.0.0.1:{port} {{
    reverse_proxy {servers} {{
        flush_interval -1
    }}
}}
"""


def tool(name, package):
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if not path:
        raise Fail(f"{name} is not installed ({package}; make bench-deps)")
    return path


class Peer:
    """One proxy in one scenario.  ports: the replicas'."""

    name, method = "", "generate"

    def __init__(self, stand, **options):
        self.stand, self.options = stand, options
        self.port = stand.ports.take()
        self.target = f"127.0.0.1:{self.port}"
        self.dir = pathlib.Path(stand.dir, f"peer-{self.port}")
        self.dir.mkdir()
        self.proc = None

    def start(self):
        self.proc = machine.start(self.name, self.argv(), self.dir,
                                  self.stand.pinning.proxy)
        self.stand.procs.append(self.proc)
        self.stand.wait(self.is_up, f"{self.name} to listen", self.proc)
        return self

    def is_up(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def pids(self):
        return machine.pids(self.proc)

    def write(self, name, text):
        path = self.dir / name
        path.write_text(text)
        return str(path)


class Nginx(Peer):
    """nginx's grpc_pass, without llmgw."""

    name, is_http2 = "nginx", True

    def location(self):
        return ("grpc_pass grpc://llm; grpc_read_timeout 1h;"
                " grpc_send_timeout 1h;")

    def upstream(self):
        lines = [f"server 127.0.0.1:{p};" for p in self.stand.replica_ports]
        return " ".join(lines + ["keepalive 2000; keepalive_timeout 1h;"
                                 " keepalive_requests 1000000000;"])

    def load(self):
        return ""

    def http(self):
        return ""

    def status_location(self):
        return "return 204;"

    def argv(self):
        nginx = os.environ.get("NGINX_BIN") or tool("nginx", "nginx")
        said = subprocess.run([nginx, "-v"], capture_output=True,
                              text=True).stderr
        number = tuple(map(int, re.search(r"/([\d.]+)",
                                          said)[1].split(".")))
        h2, new = self.is_http2, number >= (1, 25, 1)
        self.status = self.stand.ports.take()
        conf = self.write("nginx.conf", NGINX.format(
            dir=self.dir, port=self.port, load=self.load(),
            http=self.http(), upstream=self.upstream(),
            location=self.location(),
            http2_word="http2" if h2 and not new else "",
            http2_line="http2 on;" if h2 and new else "", status=self.status,
            status_location=self.status_location()))
        return [nginx, "-p", f"{self.dir}/", "-c", conf, "-e",
                str(self.dir / "error.log")]


class Llmgw(Nginx):
    """options: pool: lines of the upstream; members: a segment's path."""

    name, method = "llmgw", "infer"

    def load(self):
        module = os.environ.get("LLMGW_SO",
                                BUILD / "ngx_http_llmgw_module.so")
        return f"load_module {module};"

    def location(self):
        return ("client_max_body_size 8m; llmgw_pass llm;"
                " llmgw_token_timeout 1h;")

    def upstream(self):
        members = self.options.get("members")
        conns = self.options.get("max_conns")
        lines = [f"llmgw_members {members};"] if members else [
            f"server 127.0.0.1:{p}{f' max_conns={conns}' if conns else ''};"
            for p in self.stand.replica_ports]
        return " ".join([*lines, "llmgw_hash prefix=64;",
                         self.options.get("pool", "")])

    def status_location(self):
        return ("location = /metrics { llmgw_metrics; }"
                " location = /status { llmgw_status; }")


class LlmgwBare(Llmgw):
    """The same without queue, breaker and hedging."""

    name = "llmgw, policy off"

    def upstream(self):
        return super().upstream() + \
            " llmgw_queue off; llmgw_breaker off; llmgw_hedge off;"


class LlmgwAtOnce(Llmgw):
    """Reads from its replicas at once, however busy it is."""

    name = "llmgw, at once"

    def http(self):
        return "llmgw_coalesce off;"


class LlmgwWaits(Llmgw):
    """Reads from its replicas at long intervals."""

    name = "llmgw, 4 ms"

    def http(self):
        return "llmgw_coalesce 4ms;"


class LlmgwBefore(Llmgw):
    """Another build of the module, in the same rounds (--before)."""

    name = "llmgw before"
    module = None

    def load(self):
        return f"load_module {self.module};"


class NginxAgain(Nginx):
    """A second nginx like the first: shows the ratio of equals."""

    name = "nginx again"


class Haproxy(Peer):
    name = "haproxy"

    def argv(self):
        servers = "\n".join(f"    server r{p} 127.0.0.1:{p} proto h2"
                            for p in self.stand.replica_ports)
        conf = self.write("haproxy.cfg", HAPROXY.format(port=self.port,
                                                        servers=servers))
        return [tool("haproxy", "haproxy"), "-db", "-q", "-f", conf]


class Caddy(Peer):
    name = "caddy"

    def argv(self):
        servers = " ".join(f"h2c://127.0.0.1:{p}"
                           for p in self.stand.replica_ports)
        conf = self.write("Caddyfile", CADDY.format(port=self.port,
                                                    servers=servers))
        return ["env", "GOMAXPROCS=1", f"HOME={self.dir}",
                tool("caddy", "caddy"), "run", "--adapter", "caddyfile",
                "--config", conf]


class Floor(Peer):
    name = "floor"

    def argv(self):
        binary = MADE / "floor"
        if not binary.exists():
            raise Fail("bench/peers/floor.c did not build")
        return [binary, self.port, *self.stand.replica_ports]


class Threads(Peer):
    """bench/peers/threads.cc."""

    name, method = "C++ threads", "infer"

    def argv(self):
        binary = MADE / "threads"
        if not binary.exists():
            raise Fail("bench/peers/threads.cc did not build"
                       " (libgrpc++-dev; make bench-deps)")
        return [binary, self.port, *self.stand.replica_ports]


class Direct(Peer):
    """No proxy: the client calls a replica."""

    name = "direct"

    def __init__(self, stand, **options):
        super().__init__(stand, **options)
        self.port = stand.replica_ports[0]
        self.target = f"127.0.0.1:{self.port}"

    def start(self):
        return self

    def pids(self):
        return []
