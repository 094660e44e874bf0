"""Rows that look at one proxy at a time: memory, system calls, what happens to
streams when a replica dies, starts slowly or is full, and when a client does
not read."""

import statistics
import time

from . import machine, peers
from .machine import Fail
from .stand import Stand, say_errors

CONNECTIONS = 20
TOKEN_MS = 20
KILL_AFTER_S = 0.8

HEDGE_FLEET = 33        # one of them, 3 %, starts slowly
HEDGE_PACE = {"token-delay": "5ms"}
HEDGE_SLOW = {"token-delay": "5ms", "first-token-delay": "200ms"}

PLACES = 10             # of a replica, in the overload row
QUEUE = 10


# --- rows 7 and 8: many open streams

def hold(bench, kind, streams, seconds):
    """Memory a stream, after they were open for that time: the increase over
    a proxy that has served one stream, and so has started all of its
    processes and touched the code that it runs."""
    with Stand(bench, "split", token_delay="1s") as stand:
        peer = stand.peer(kind)
        stand.run(peer, requests=1, max_tokens=1, duration="10s")
        before = machine.rss(peer.pids())
        ramp_s = max(0.5, streams / 5000)
        began = time.monotonic()
        process = stand.begin(peer, dict(
            connections=CONNECTIONS, streams=streams // CONNECTIONS,
            hold=True, ramp=f"{ramp_s * 1000:.0f}ms",
            duration=f"{(ramp_s + seconds) * 1000:.0f}ms"))

        def at(share):
            until = began + ramp_s + seconds * share
            time.sleep(max(0, until - time.monotonic()))
            return machine.rss(peer.pids())
        early, late = at(0.6), at(0.9)
        sockets = machine.sockets_to(peer.pids(), set(stand.replica_ports))
        got = stand.finish(process, may_fail=True)
    if got["requests"]["started"] != streams:
        raise Fail(f"only {got['requests']['started']} of {streams} streams"
                   " were opened")
    return {"streams": streams, "seconds": seconds,
            "kb_per_stream": (late - before) / streams, "idle_kb": before,
            "growth_kb": late - early, "sockets": sockets,
            "sockets_per_replica": sockets / 2,
            "failed": got["requests"]["failed"],
            "errors": say_errors(got) if got["errors"] else "",
            "tokens": got["tokens"]["count"]}


def memory(bench, kinds, sizes, seconds):
    rows = {}
    for kind in kinds:
        for streams in sizes if kind is peers.Llmgw else sizes[:1]:
            name = f"{kind.name}, {streams}"
            rows[name] = bench.guard(hold, bench, kind, streams, seconds)
            row = rows[name]
            bench.say(f"memory {name}: " + (
                row.get("fail") or f"{row['kb_per_stream']:.1f} kB a stream,"
                                   f" {row['failed']} failed"))
    return rows


# --- row 9

def syscalls_of(bench, scenario, kind):
    with Stand(bench, scenario.kind, **scenario.replica) as stand:
        peer = stand.peer(kind)
        process = stand.begin(peer, dict(scenario.shape, duration="2500ms"))
        time.sleep(0.8)
        counter = machine.Syscalls(peer.pids())
        count = counter.count(1)
        got = stand.finish(process)
    return {"per_token": count / got["tokens"]["per_second"],
            "tool": counter.tool}


def syscalls(bench, scenarios, kinds):
    rows = {}
    for scenario in scenarios:
        for kind in kinds:
            name = f"{scenario.name}, {kind.name}"
            rows[name] = bench.guard(syscalls_of, bench, scenario, kind)
            bench.say(f"syscalls {name}: " + (
                rows[name].get("fail")
                or f"{rows[name]['per_token']:.2f} a token"))
    return rows


# --- row 10

def failover_of(bench, kind):
    """kill -9 of one of two replicas under 200 streams."""
    with Stand(bench, "split", token_delay=f"{TOKEN_MS}ms") as stand:
        peer = stand.peer(kind)
        process = stand.begin(peer, dict(
            connections=4, streams=50, requests=200, max_tokens=100,
            ramp=f"{TOKEN_MS}ms", duration="20s", drain="5s"))
        time.sleep(KILL_AFTER_S)
        stand.replicas[0].kill()
        got = stand.finish(process, may_fail=True)
    gap = got["ms"]["takeover"]
    broken = sum(e["count"] for e in got["errors"] if e["class"] == "tokens"
                 and e["code"] != "final missing")
    row = {"lost": got["requests"]["failed"], "doubled_or_wrong": broken,
           "moved": got["tokens"]["takeovers"], "ok": got["requests"]["ok"]}
    if gap:
        usual = 2 * TOKEN_MS    # an interval and the new replica's first token
        row.update({"beyond_p50_ms": max(0, gap["p50"] - usual),
                    "beyond_max_ms": max(0, gap["max"] - usual),
                    "gap_p50_ms": gap["p50"], "gap_max_ms": gap["max"]})
    return row


def failover(bench, kinds, times):
    rows = {}
    for kind in kinds:
        tries = [bench.guard(failover_of, bench, kind)
                 for _ in range(times if kind is peers.Llmgw else 1)]
        good = [t for t in tries if "fail" not in t]
        if len(good) < len(tries):
            rows[kind.name] = next(t for t in tries if "fail" in t)
        else:       # the worst of them
            rows[kind.name] = {
                k: max(t.get(k, 0) for t in good)
                for k in set().union(*good) if k != "ok"}
            rows[kind.name]["runs"] = len(good)
        row = rows[kind.name]
        bench.say(f"failover {kind.name}: " + (
            row.get("fail") or f"{row['lost']} lost, {row['moved']} moved, "
            f"{row.get('beyond_max_ms', 0):.1f} ms beyond at the most"))
    return rows


# --- row 11

def hedge_of(bench, pool):
    from llmgw.speak import rpc  # needs grpcio, as the tests do
    fleet = [HEDGE_SLOW] + [HEDGE_PACE] * (HEDGE_FLEET - 1)
    with Stand(bench, "split", replicas=fleet) as stand:
        peer = stand.peer(peers.Llmgw, pool=pool)
        got = stand.run(peer, connections=4, streams=50, max_tokens=4,
                        rate=400, duration="4s", prompts=100000, drain="2s")
        started = []
        for port in stand.replica_ports:
            with rpc.Client(f"127.0.0.1:{port}") as client:
                started.append(client.stats().started)
    asked = got["requests"]["started"]
    return {"p99_ms": got["ms"]["first_token"]["p99"],
            "p50_ms": got["ms"]["first_token"]["p50"],
            "slow_share": started[0] / sum(started),
            "extra_share": sum(started) / asked - 1, "requests": asked}


def hedging(bench):
    rows = {"off": bench.guard(hedge_of, bench, "llmgw_hedge off;"),
            "delay=10ms": bench.guard(
                hedge_of, bench, "llmgw_hedge delay=10ms budget=5%;")}
    for name, row in rows.items():
        bench.say(f"hedging {name}: " + (
            row.get("fail") or f"first token p99 {row['p99_ms']:.1f} ms,"
                               f" {row['extra_share']:.1%} more requests"))
    return rows


# --- row 15

def overload_at(bench, rate):
    with Stand(bench, "split", token_delay="2ms") as stand:
        peer = stand.peer(peers.Llmgw, max_conns=PLACES,
                          pool=f"llmgw_queue {QUEUE} timeout=30s;")
        got = stand.run(peer, may_fail=True, connections=4, streams=200,
                        max_tokens=50, rate=rate, duration="3s",
                        warmup="500ms", drain="1s")
    other = [e for e in got["errors"] if e["reason"] != "queue_full"]
    if other:
        raise Fail(say_errors(got))
    return {"p99_ms": got["ms"]["total"]["p99"],
            "p50_ms": got["ms"]["total"]["p50"],
            "refusal": got["ms"]["refusal"],
            "served_per_second": got["requests"]["per_second"],
            "refused": got["requests"]["failed"]}


def overload(bench):
    """2 x PLACES streams of 50 x 2 ms: the capacity is 200 a second."""
    rows = {name: bench.guard(overload_at, bench, rate)
            for name, rate in (("unloaded, 60/s", 60),
                               ("twice the capacity, 400/s", 400))}
    for name, row in rows.items():
        bench.say(f"overload {name}: " + (
            row.get("fail") or f"p99 {row['p99_ms']:.0f} ms, refused"
                               f" {row['refused']}"))
    return rows


# --- row 16

def ask_and_stall(target, streams):
    """A client that asks and never reads."""
    from llmgw.speak import rawh2, rpc
    h = rawh2.RawH2(target)
    h.reading = False
    for i in range(streams):
        body = rpc.pb.InferRequest(prompt=f"stalled {i}", max_tokens=10**6)
        h.request(rpc.INFER, rawh2.frame(body.SerializeToString()))
    return h


def stalled_of(bench, rounds):
    with_it, without, growth = [], [], 0
    with Stand(bench, "split", token_delay=f"{TOKEN_MS}ms") as stand:
        peer = stand.peer(peers.Llmgw)
        shape = dict(connections=199, streams=1, max_tokens=1000,
                     ramp="100ms", warmup="300ms", duration="1200ms",
                     token_delay=f"{TOKEN_MS}ms")
        stand.run(peer, **shape)        # warm-up: memory taken only once
        for _ in range(rounds):
            without.append(stand.run(peer, **shape)["ms"]["lag"]["p99"])
            before = machine.rss(peer.pids())
            h = ask_and_stall(peer.target, 100)
            try:
                with_it.append(stand.run(peer, **shape)["ms"]["lag"]["p99"])
                growth = max(growth, machine.rss(peer.pids()) - before)
            finally:
                h.close()
    ratios = [a / b for a, b in zip(with_it, without)]
    return {"ratio": statistics.median(ratios), "ratio_min": min(ratios),
            "ratio_max": max(ratios), "p99_without_ms":
            statistics.median(without), "p99_with_ms":
            statistics.median(with_it), "growth_kb": growth}


def stalled(bench, rounds):
    row = bench.guard(stalled_of, bench, rounds)
    bench.say("stalled client: " + (
        row.get("fail") or f"others' p99 x {row['ratio']:.2f}"
                           f" ({row['ratio_min']:.2f}..{row['ratio_max']:.2f}"
                           f"), {row['growth_kb']} kB"))
    return {"199 others": row}


# --- a pool of many replicas, from a segment written without agents

def with_members(stand, members, period_ms=500, kind="still"):
    """nginx over that many members, all at the stand's two replicas."""
    binary = peers.MADE / "segment"
    if not binary.exists():
        raise Fail("bench/peers/segment.c did not build")
    name = f"segment-{members}-{kind}"
    path = stand.dir / name
    writer = machine.start(name, [binary, path, members, period_ms, kind,
                                  *stand.replica_ports], stand.dir,
                           stand.pinning.rest)
    stand.procs.append(writer)
    stand.wait(lambda: "ready" in writer.text(), "the segment", writer)
    return stand.peer(peers.Llmgw, members=path,
                      pool="llmgw_zone many:64m;")


def scale(bench, sizes, rounds):
    """CPU per request, by the number of replicas."""
    values, failed = {}, {}
    try:
        with Stand(bench, "same", token_delay="0ms") as stand:
            up = {n: with_members(stand, n) for n in sizes}
            for _ in range(rounds):
                for n, peer in up.items():
                    try:
                        got = stand.run(
                            peer, connections=4, streams=50, max_tokens=1,
                            rate=2000, prompts=200, warmup="500ms",
                            duration=f"{bench.window_ms}ms")
                        values.setdefault(n, []).append(
                            got["us_per_request"])
                    except Fail as e:
                        failed[n] = str(e)
    except Fail as e:
        failed.update({n: str(e) for n in sizes})
    rows = {str(n): {"us_per_request": statistics.median(of)}
            for n, of in values.items()}
    rows.update({str(n): {"fail": why} for n, why in failed.items()})
    bench.say("scale: " + ", ".join(
        f"{n}: {row.get('fail') or round(row['us_per_request'], 1)}"
        for n, row in rows.items()))
    return rows


def churn_of(bench, members, rounds):
    """p99 of tokens while a member changes every 100 ms, and while none
    does."""
    with Stand(bench, "split", token_delay=f"{TOKEN_MS}ms") as stand:
        still = with_members(stand, members, 100, "still")
        moving = with_members(stand, members, 100, "moving")
        pairs = []
        for _ in range(rounds):
            pairs.append([stand.run(
                peer, connections=4, streams=50, max_tokens=50, prompts=200,
                token_delay=f"{TOKEN_MS}ms", ramp="200ms", warmup="500ms",
                duration=f"{bench.window_ms}ms")
                for peer in (still, moving)])
    ratios = [b["ms"]["lag"]["p99"] / a["ms"]["lag"]["p99"]
              for a, b in pairs]
    return {"ratio": statistics.median(ratios), "ratio_min": min(ratios),
            "ratio_max": max(ratios),
            "still_p99_ms": statistics.median(
                a["ms"]["lag"]["p99"] for a, _ in pairs),
            "moving_p99_ms": statistics.median(
                b["ms"]["lag"]["p99"] for _, b in pairs)}


def churn(bench, sizes, rounds):
    rows = {}
    for members in sizes:
        row = bench.guard(churn_of, bench, members, rounds)
        rows[str(members)] = row
        bench.say(f"change every 100 ms among {members}: " + (
            row.get("fail") or f"p99 x {row['ratio']:.2f}"
            f" ({row['ratio_min']:.2f}..{row['ratio_max']:.2f})"))
    return rows
