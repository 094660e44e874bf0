#!/usr/bin/env python3
"""`make bench-doors`: what TLS to replicas costs beside clear text, and keys,
limits and usage beside none.

    bench/doors.py [--quick] [--write]

The scenarios are those of bench/run.py.  All that is compared runs in the same
rounds.
"""

import argparse
import json
import os
import pathlib
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "t")]
from measure import doors, goals, machine, page, tables  # noqa: E402
from measure.bench import Bench  # noqa: E402
from measure.goals import Check, at, span  # noqa: E402

RESULTS = ROOT / "build/bench/doors.json"
MORE_US, MORE_NS, LATER_MS = 2, 10, 5
TRIP = 0.2      # what a measured round trip may be off


def tls_cpu(results):
    for name, what, limit in (("tls200", "token", 1.15),
                              ("tls1000", "token", 1.15),
                              ("tls_rps", "request", 1.2)):
        row = at(results, "paired", name, "rows", doors.Tls.name, "ratio")
        yield Check(f"{name}: {span(row)} x a {what}", row["median"], limit)


def tls_first_token(results):
    for name, trips in (("a full handshake", 1), ("a resumed session", 0),
                        ("a connection that stands, TLS", 0)):
        row = at(results, "first_token", name)
        yield Check(f"{name}: {row['trips']:+.2f} round trips,"
                    f" {span(row['near_more'])} ms on loopback",
                    row["trips"], trips + TRIP)


def keys_cpu(results):
    more = at(results, "paired", "keys_rps", "rows", doors.On.name, "more")
    yield Check(f"{span(more)} us a request", more["median"], MORE_US)
    on, off = (at(results, "instructions", kind.name)
               for kind in (doors.On, doors.Off))
    yield Check(f"{on['request'] - off['request']:+.0f} instructions")
    more = on["token"] - off["token"]
    yield Check(f"{more:+.0f} instructions a token", more,
                MORE_NS * goals.INSTRUCTIONS_A_NS)


def keys_rewritten(results):
    with_it = at(results, "rewritten", "rewritten", "gap", "max")
    without = at(results, "rewritten", "still", "gap", "max")
    yield Check(f"worst gap {with_it:.1f} ms, {without:.1f} without",
                with_it - without, LATER_MS)


GOALS = [
    (28, "TLS to replicas: CPU a token, a request",
     "<= 1.15 x, <= 1.2 x clear text", tls_cpu),
    ("28b", "TLS to replicas: first token, beyond that in clear text",
     "full handshake 1 round trip, resumed 0, standing 0", tls_first_token),
    (29, "keys, limits and usage: CPU a request, a token",
     f"<= {MORE_US} us, <= {MORE_NS} ns", keys_cpu),
    ("29b", "10,000 keys rewritten under 200 streams: a token's lateness",
     f"<= {LATER_MS} ms", keys_rewritten),
]


def measure(bench, quick):
    results, rounds = bench.results, bench.options.rounds
    results["paired"] = {s.name: bench.paired(s) for s in doors.SCENARIOS}
    for name, part, *words in (
            ("first_token", doors.first_tokens, 2 if quick else 6),
            ("instructions", doors.counted),
            ("rewritten", doors.rewritten, 6 if quick else 9,
             min(rounds, 3))):
        bench.say(f"== {name}")
        results[name] = bench.guard(part, bench, *words)


def spans(results, part, columns):
    """As tables.simple(), of summaries."""
    rows = {name: {key: span(row[key]) if isinstance(row[key], dict)
                   else row[key] for key in row}
            for name, row in at(results, part).items()}
    return tables.simple({part: rows}, part, columns)


def document(results):
    m = results["machine"]
    parts = [textwrap.fill(
        f"{m['date']}, {m['cpu']}, {m['processors']} processors, Linux"
        f" {m['kernel']}, load average {m['load']:.1f} at the start and"
        f" {results['load_at_end']:.1f} at the end; commit {m['commit']},"
        f" nginx {m['nginx']}; rounds: {results['rounds']},"
        f" {results['seconds']:.0f} s in all.", 80),
        tables.table(["#", "what", "goal", "measured", ""],
                     goals.judge(results, GOALS)),
        tables.compared(results)]
    for title, part, columns in SECTIONS:
        try:
            parts += [f"**{title}**", spans(results, part, columns)]
        except goals.Fail as e:
            parts.append(f"FAIL: {e}")
    return "\n\n".join(parts)


SECTIONS = [
    ("First token, one request at a time", "first_token", [
        ("ms on loopback", "near", "{}"),
        ("more than clear text", "near_more", "{}"),
        ("ms at a round trip of"
         f" {2 * doors.ONE_WAY_MS} ms", "far", "{}"),
        ("more than clear text", "far_more", "{}"),
        ("round trips more", "trips", "{:.2f}")]),
    ("Instructions beside the kernel's, one stream at a time",
     "instructions", [("a request", "request", "{:.0f}"),
                      ("a token", "token", "{:.0f}")]),
    ("A file of 10,000 keys", "rewritten", [
        ("worst gap between tokens, ms", "gap", "{}"),
        ("times read", "read", "{}")]),
]


def parse():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--quick", action="store_true",
                   help="one short round: whether all of it works")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--results", type=pathlib.Path, default=RESULTS)
    p.add_argument("--write", action="store_true",
                   help="put the tables into docs/benchmarks.md")
    p.set_defaults(full=False, before=None, limit=480, window=1000,
                   warmup=400)
    options = p.parse_args()
    if options.quick:
        options.rounds, options.window = 1, 400
    return options


def main():
    options = parse()
    bench = Bench(options)
    machine.pin_harness()
    bench.results.update(machine=machine.describe(), rounds=options.rounds)
    measure(bench, options.quick)
    bench.results.update(seconds=bench.elapsed(),
                         load_at_end=os.getloadavg()[0])
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(bench.results, indent=1) + "\n")
    text = document(bench.results)
    print(text)
    if options.write:
        page.write("doors", text)
    return 1 if "MISSED" in text or "FAIL" in text else 0


if __name__ == "__main__":
    sys.exit(main())
