"""The goal of each row, and whether it is met."""

from .machine import Fail

LLMGW = "llmgw"
INSTRUCTIONS_A_NS = 1.5     # in cold caches; twice as many in warm ones
STALLED_KB = 100 * 512      # for 100 streams whose client does not read


def at(results, *path):
    """The value at this path; raises Fail with the reason where none is."""
    for i, key in enumerate(path):
        if not isinstance(results, dict):
            raise Fail(f"no {key}")
        if key not in results:      # the part as a whole may have failed
            raise Fail(results.get("all", {}).get("fail")
                       or ("not measured" if i == 0 else f"no {key}"))
        results = results[key]
        if isinstance(results, dict) and "fail" in results \
                and isinstance(results["fail"], str):
            raise Fail(results["fail"])
    return results


def span(summary, digits=2):
    return (f"{summary['median']:.{digits}f}"
            f" ({summary['min']:.{digits}f}..{summary['max']:.{digits}f})")


class Check:
    """A figure with its limit, or one that is only reported."""

    def __init__(self, text, value=0, limit=0):
        self.text, self.is_met = text, value <= limit


def ratio(scenario, limit, haproxy=None):
    def checks(results):
        row = at(results, "paired", scenario, "rows", LLMGW)
        yield Check(f"{span(at(row, 'ratio'))} x nginx",
                    row["ratio"]["median"], limit)
        if haproxy:
            theirs = at(row, "to", "haproxy")
            yield Check(f"{span(theirs)} x HAProxy", theirs["median"],
                        haproxy)
            floor = at(results, "paired", scenario, "rows", "floor", "ratio")
            yield Check(f"the floor {floor['median']:.2f} x nginx")
    return checks


def requests(results):
    yield from ratio("rps", 0.42, 1.0)(results)
    row = at(results, "paired", "arrivals", "rows", LLMGW, "to", "haproxy")
    yield Check(f"one by one {span(row)} x HAProxy", row["median"], 1.0)


def memory(results):
    for n in (1000, 5000, 10000):
        kb = at(results, "memory", f"{LLMGW}, {n}")["kb_per_stream"]
        yield Check(f"{n}: {kb:.1f} kB", kb, 11)


def many(results):
    row = at(results, "memory", f"{LLMGW}, 10000")
    yield Check(f"{row['sockets_per_replica']:g} a replica",
                row["sockets_per_replica"], 4)
    yield Check(f"{row['failed']} errors in {row['seconds']} s, memory"
                f" {row['growth_kb']:+d} kB in the last third",
                row["failed"], 0)


def syscalls(results):
    for scenario, limit in (("p200", 0.3), ("p200l", 0.3), ("p200c", 1.2)):
        value = at(results, "syscalls", f"{scenario}, {LLMGW}")["per_token"]
        floor = at(results, "syscalls", f"{scenario}, floor")["per_token"]
        yield Check(f"{scenario}: {value:.2f}, the floor {floor:.2f}", value,
                    limit)


def failover(results):
    row = at(results, "failover", LLMGW)
    yield Check(f"{row['lost']} lost", row["lost"], 0)
    yield Check(f"{row['doubled_or_wrong']} doubled or wrong",
                row["doubled_or_wrong"], 0)
    yield Check(f"p50 {at(row, 'beyond_p50_ms'):.1f} ms",
                row["beyond_p50_ms"], 1)
    yield Check(f"max {row['beyond_max_ms']:.1f} ms of {row['moved']}",
                row["beyond_max_ms"], 5)


def hedging(results):
    row = at(results, "hedging", "delay=10ms")
    yield Check(f"p99 {row['p99_ms']:.1f} ms with {row['slow_share']:.1%}"
                " slow", row["p99_ms"], 17)
    yield Check(f"{row['extra_share']:.1%} more", row["extra_share"], 0.05)


def ring(results):
    for n, limit in (("10", 10), ("100", 15), ("1000", 45), ("10000", 180)):
        value = at(results, "micro", "ring", n)["find_ns"] \
            - at(results, "micro", "loop_ns")
        yield Check(f"{n}: {value:.1f} ns", value, limit)


def change(results):
    row = at(results, "micro", "ring", "1000")
    yield Check(f"{row['change_ms']:.2f} ms where one of them changes,"
                f" {row['build_ms']:.2f} where all do", row["change_ms"], 1)


def policy(results):
    """Counted: times vary by a hundred times the difference looked for."""
    on = at(results, "instructions", LLMGW)
    off = at(results, "instructions", "llmgw, policy off")
    for what, limit_ns in (("request", 300), ("token", 10)):
        more = on[what] - off[what]
        yield Check(f"{more:+.0f} instructions a {what}, of {on[what]:.0f}",
                    more, limit_ns * INSTRUCTIONS_A_NS)


def overload(results):
    calm = at(results, "overload", "unloaded, 60/s")
    full = at(results, "overload", "twice the capacity, 400/s")
    refusal = at(full, "refusal")
    if not refusal:
        raise Fail("nothing was refused")
    yield Check(f"refusals p50 {refusal['p50']:.2f}, p99"
                f" {refusal['p99']:.2f} ms", refusal["p99"], 1)
    times = full["p99_ms"] / calm["p99_ms"]
    yield Check(f"admitted p99 {full['p99_ms']:.0f} ms, x {times:.2f}",
                times, 2)


def stalled(results):
    row = at(results, "stalled", "199 others")
    yield Check(f"others' p99 x {row['ratio']:.2f} ({row['ratio_min']:.2f}"
                f"..{row['ratio_max']:.2f})", row["ratio"], 1.1)
    yield Check(f"{row['growth_kb']} kB", row["growth_kb"], STALLED_KB)


def openai_ratio(scenario, kind, limit, haproxy=None, other=None):
    """other: a second stock nginx, which has to be beaten too."""
    def checks(results):
        row = at(results, "paired", scenario, "rows", kind)
        yield Check(f"{scenario}: {span(at(row, 'ratio'))} x nginx",
                    row["ratio"]["median"], limit)
        for name, most in (("haproxy", haproxy), (other, limit)):
            if name and most:
                theirs = at(row, "to", name)
                yield Check(f"{span(theirs)} x {name}", theirs["median"],
                            most)
    return checks


def openai_tokens(kind, limit, haproxy=None):
    def checks(results):
        for scenario in ("o200", "o1000l"):
            yield from openai_ratio(scenario, kind, limit, haproxy)(results)
    return checks


def openai_requests(results):
    for scenario in ("o1k", "o400k"):
        yield from openai_ratio(scenario, LLMGW, 0.8,
                                other="nginx, 1m buffer")(results)


def openai_stall(results):
    for name, limit in ((LLMGW, 1), ("nginx, 1m buffer", None)):
        row = at(results, "openai_stall", f"{name}, with requests of 400 kB")
        yield Check(f"{name} p99 {row['p99_ms']:.2f}, longest"
                    f" {row['max_ms']:.2f} ms", row["max_ms"] if limit else 0,
                    limit or 0)


def openai_first_token(results):
    rows = at(results, "paired", "ottft", "rows")
    direct = at(rows, "direct", "value", "median")
    for name, limit in (("nginx", None), ("haproxy", None), (LLMGW, 150)):
        more = at(rows, name, "value", "median") - direct
        yield Check(f"{name} {more:+.0f} us", more if limit else 0,
                    limit or 0)


def openai_memory(results):
    for name, limit in ((f"{LLMGW}, 10000, 1 kB", 14),
                        (f"{LLMGW}, 2000, 1 kB", 14),
                        (f"{LLMGW}, 1000, 400 kB", 414)):
        if name in results.get("openai_memory", {}) or limit != 14:
            row = at(results, "openai_memory", name)
            yield Check(f"{name}: {row['kb_per_stream']:.1f} kB,"
                        f" {row['failed']} failed", row["kb_per_stream"]
                        if not row["failed"] else limit + 1, limit)


def openai_adapter(results):
    us = at(results, "paired", "o200", "rows", "adapters", "value")
    yield Check(f"{span(us, 1)} us a token", us["median"], 15)
    kb = at(results, "openai_memory", f"{LLMGW}, 2000, 1 kB", "adapter_kb")
    yield Check(f"{kb:.1f} kB a stream", kb, 16)


def fleet(results):
    ns = at(results, "micro", "ns")
    for n, limit in ((10, 2), (100, 8), (1000, 40)):
        us = at(ns, f"policy: weighted blis, {n}") / 1000
        yield Check(f"{n}: {us:.1f} us", us, limit)


GOALS = [
    (1, "p200: CPU a token", "<= .28 x nginx, not above HAProxy",
     ratio("p200", 0.28, 1.0)),
    (2, "p200c: CPU a token", "<= .68 x nginx, not above HAProxy",
     ratio("p200c", 0.68, 1.0)),
    (3, "p1000: CPU a token", "<= .32 x nginx, below HAProxy",
     ratio("p1000", 0.32, 1.0)),
    (4, "rps: CPU a request", "<= .42 x nginx, below HAProxy",
     requests),
    (5, "ttft1: first token, p50", "<= nginx", ratio("ttft1", 1.0)),
    (6, "flood: CPU a token at no delay", "<= nginx", ratio("flood", 1.0)),
    (7, "resident memory a stream", "<= 11 kB at 1k, 5k, 10k", memory),
    (8, "10,000 streams held: upstream sockets, errors",
     "<= 4 a replica, 0 errors", many),
    (9, "system calls a token", "p200 <= .3, p200c <= 1.2", syscalls),
    (10, "kill -9 under 200 streams: beyond interval and first token",
     "0 lost, 0 doubled, p50 1 ms, max 5 ms", failover),
    (11, "hedging: first token p99, more requests",
     "<= 17 ms, <= 5 %", hedging),
    (12, "ring lookup, dependent keys", "10: 10, 100: 15, 1000: 45,"
     " 10000: 180 ns", ring),
    (13, "ring change at 1000 replicas", "<= 1 ms", change),
    (14, "policy on against off", "request <= 300 ns, token <= 10 ns",
     policy),
    (15, "overload at twice the capacity", "refusals < 1 ms, admitted p99"
     " <= 2 x unloaded", overload),
    (16, "a stalled client among 199", "others' p99 within 10 %, memory"
     " bounded", stalled),
    (17, "OpenAI: CPU a token, 200 connections and 1,000 in step",
     "<= .8 x proxy_pass, below HAProxy", openai_tokens(LLMGW, 0.8, 1.0)),
    ("17b", "the same with the adapters' CPU", "<= 1.4 x proxy_pass",
     openai_tokens("llmgw and adapters", 1.4)),
    (18, "OpenAI: CPU a request of 1 kB, of 400 kB",
     "<= .8 x proxy_pass, with and without a buffer of 1m",
     openai_requests),
    ("18b", "an iteration of the event loop while requests of 400 kB come",
     "<= 1 ms", openai_stall),
    (19, "OpenAI: first token, p50 over direct", "<= 150 us",
     openai_first_token),
    (20, "OpenAI: memory a stream, bodies of 1 kB and of 400 kB",
     "<= 14 kB, body + 14 kB", openai_memory),
    (21, "adapter: CPU a token, memory of a stream", "<= 15 us, <= 16 kB",
     openai_adapter),
    (22, "weighted policy, 64 blocks that all share, with the index's update",
     "10: 2, 100: 8, 1000: 40 us", fleet),
]


def judge(results, goals=GOALS):
    """[(number, what, goal, measured, verdict)]"""
    rows = []
    for number, what, goal, checks in goals:
        said, verdict = [], "met"
        try:
            for check in checks(results):
                said.append(check.text)
                if not check.is_met:
                    verdict = "MISSED"
        except Fail as e:
            verdict = f"FAIL: {e}"
        except (TypeError, KeyError, ValueError) as e:
            verdict = f"FAIL: {type(e).__name__} {e}"
        rows.append((number, what, goal, "; ".join(said), verdict))
    return rows
