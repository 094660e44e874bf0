"""Rows over OpenAI's API: server-sent events over HTTP/1.1.

Behind the proxies stands bench/peers/engine.c, twice.  The other proxies pass
its bytes on; llmgw has an adapter beside each engine, as in production, and
could resume every stream.  "llmgw and adapters" is the same with the adapters'
CPU added.
"""

import time

from . import machine, peers
from .machine import Fail
from .paired import Scenario, first_token, per_request, per_token
from .stand import Stand

ENGINE = peers.MADE / "engine"

HAPROXY = """\
global
    nbthread 1
    maxconn 9000
defaults
    mode http
    option http-no-delay
    timeout connect 5s
    timeout client 1h
    timeout server 1h
frontend front
    bind 127.0.0.1:{port}
    default_backend back
backend back
    balance roundrobin
    http-reuse always
{servers}
"""

CADDY = peers.CADDY


class Engines(Stand):
    """Engines in place of replicas.  token_delay: "20ms"."""

    def start_replica(self, name, port, options):
        if not ENGINE.exists():
            raise Fail("bench/peers/engine.c did not build")
        delay = options["token_delay"].removesuffix("ms")
        return machine.start(name, [ENGINE, port, delay], self.dir,
                             self.pinning.rest)

    def argv(self, peer, shape):
        return super().argv(peer, {"openai": True, **shape})


class Nginx(peers.Nginx):
    """nginx's proxy_pass: no buffering of answers, connections kept."""

    method, is_http2 = "infer", False

    def location(self):
        return ("proxy_pass http://llm; proxy_http_version 1.1;"
                " proxy_set_header Connection ''; proxy_buffering off;"
                " client_max_body_size 8m; proxy_read_timeout 1h;")


class NginxMemory(Nginx):
    """The same with a buffer that takes whole requests."""

    name = "nginx, 1m buffer"

    def location(self):
        return super().location() + " client_body_buffer_size 1m;"


class NginxAgain(Nginx):
    name = "nginx again"


class Haproxy(peers.Haproxy):
    method = "infer"

    def argv(self):
        servers = "\n".join(f"    server r{p} 127.0.0.1:{p}"
                            for p in self.stand.replica_ports)
        conf = self.write("haproxy.cfg", HAPROXY.format(port=self.port,
                                                        servers=servers))
        return [peers.tool("haproxy", "haproxy"), "-db", "-q", "-f", conf]


class Caddy(peers.Caddy):
    method = "infer"

    def argv(self):
        argv = super().argv()
        conf = self.dir / "Caddyfile"
        conf.write_text(conf.read_text().replace("h2c://", "http://"))
        return argv


class Direct(peers.Direct):
    method = "infer"


class Llmgw(peers.Llmgw):
    """An adapter beside each engine, and the OpenAI front."""

    is_http2 = False

    def http(self):
        return "llmgw_body_memory 2048m client=off;"

    def location(self):
        return ("client_max_body_size 8m; llmgw_openai llm;"
                " llmgw_token_timeout 1h;")

    def upstream(self):
        return " ".join(f"server 127.0.0.1:{p};" for p in self.ports) + \
            " llmgw_hash; llmgw_queue size=20000;"

    def argv(self):
        self.ports, self.adapters = [], []
        for port in self.stand.replica_ports:
            self.ports.append(self.stand.ports.take())
            self.adapters.append(machine.start(
                f"adapter-{self.ports[-1]}",
                [machine.ROOT / "build" / "llmgw-replica", "--id",
                 f"a{self.ports[-1]}", "--listen",
                 f"127.0.0.1:{self.ports[-1]}", "--engine", "vllm",
                 "--engine-url", f"http://127.0.0.1:{port}",
                 "--max-capacity", "20000"],
                self.dir, self.stand.pinning.rest))
        self.stand.procs += self.adapters
        return super().argv()

    def adapter_pids(self):
        return [pid for a in self.adapters for pid in machine.pids(a)]


class LlmgwAll(Llmgw):
    name = "llmgw and adapters"

    def pids(self):
        return super().pids() + self.adapter_pids()


class Adapters(Llmgw):
    name = "adapters"

    def pids(self):
        return self.adapter_pids()


KINDS = [Nginx, Haproxy, Llmgw, LlmgwAll, Adapters, NginxAgain]
STREAMS = dict(streams=1, poisson=True)


class Openai(Scenario):
    stand = Engines


SCENARIOS = [
    Openai("o200", "200 connections, a token each 20 ms", "same",
           "us CPU a token", per_token,
           dict(connections=200, max_tokens=200, ramp="200ms",
                token_delay="20ms", **STREAMS),
           dict(token_delay="20ms"), KINDS),
    Openai("o1000l", "1000 connections in step, a token each 100 ms",
           "split", "us CPU a token", per_token,
           dict(connections=1000, streams=1, max_tokens=20, lockstep=True,
                token_delay="100ms"),
           dict(token_delay="100ms"), KINDS, window_ms=3000,
           warmup_ms=2000),
    Openai("o1k", "one token, 32 at once, prompts of 1 kB", "split",
           "us CPU a request", per_request,
           dict(connections=32, streams=1, max_tokens=1, ramp="0s",
                prompt_bytes=1000),
           dict(token_delay="0ms"), KINDS + [NginxMemory]),
    Openai("o400k", "one token, 8 at once, prompts of 400 kB", "split",
           "us CPU a request", per_request,
           dict(connections=8, streams=1, max_tokens=1, ramp="0s",
                prompt_bytes=400000),
           dict(token_delay="0ms"), KINDS + [NginxMemory]),
    Openai("ottft", "first token, one connection", "same", "us p50",
           first_token,
           dict(connections=1, streams=1, max_tokens=1, ramp="0s"),
           dict(token_delay="0ms"), [Direct, Nginx, Haproxy, Llmgw]),
]


# --- row 20 and 21: many open streams

def hold(bench, kind, streams, prompt_bytes, seconds):
    """kB a stream of the proxy, and of the adapters."""
    with Engines(bench, "split", token_delay="1000ms") as stand:
        peer = stand.peer(kind)
        # both replicas have answered then, as in a gateway that runs
        stand.run(peer, connections=20, streams=1, requests=20, max_tokens=1,
                  duration="10s")
        adapters = getattr(peer, "adapter_pids", list)()
        before = machine.rss(peer.pids()), machine.rss(adapters)
        ramp_s = max(1, streams / 2000)
        process = stand.begin(peer, dict(
            connections=streams, streams=1, hold=True,
            prompt_bytes=prompt_bytes, ramp=f"{ramp_s * 1000:.0f}ms",
            duration=f"{(ramp_s + seconds) * 1000:.0f}ms"))
        time.sleep(ramp_s + seconds * 0.8)
        after = machine.rss(peer.pids()), machine.rss(adapters)
        got = stand.finish(process, may_fail=True)
    if got["requests"]["started"] != streams:
        raise Fail(f"only {got['requests']['started']} of {streams} streams"
                   " were opened")
    return {"streams": streams, "seconds": seconds,
            "kb_per_stream": (after[0] - before[0]) / streams,
            "adapter_kb": (after[1] - before[1]) / streams or None,
            "failed": got["requests"]["failed"],
            "tokens": got["tokens"]["count"]}


def memory(bench, full):
    rows = {}
    for kind, streams, size in [
            (Nginx, 2000, 1000), (Haproxy, 2000, 1000),
            (Llmgw, 2000, 1000), (Llmgw, 1000, 400000),
            *([(Llmgw, 10000, 1000)] if full else [])]:
        name = f"{kind.name}, {streams}, {size // 1000} kB"
        rows[name] = bench.guard(hold, bench, kind, streams, size,
                                 15 if size > 100000 else 4)
        row = rows[name]
        bench.say(f"memory {name}: " + (
            row.get("fail") or f"{row['kb_per_stream']:.1f} kB a stream,"
                               f" {row['failed']} failed"))
    return rows
