#!/usr/bin/env python3
"""`make bench` and `make bench-full`: compares llmgw with other proxies.

    bench/run.py [--full] [--rounds N] [--write] [PART...]

Parts are the names that --list prints; without any, the whole plan runs.
Results go to build/bench/results.json, and with --write to docs/benchmarks.md.
Exit: 0 all goals are met, 1 some are not or could not be measured, 2 usage.
A part that fails is reported with its reason, and the others go on.  At the
hard time limit everything is stopped and what was measured is reported.
"""

import argparse
import json
import os
import pathlib
import signal
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "t")]
from measure import alone, instructions, machine, micro  # noqa: E402
from measure import openai, page, paired, peers, plots  # noqa: E402
from measure import stall, tables  # noqa: E402
from measure.bench import SLOW, Bench  # noqa: E402

PICTURES = ROOT / "docs" / "img"
RESULTS = ROOT / "build" / "bench" / "results.json"

LIMIT_S = {False: 480, True: 1200}
USUAL = [peers.Nginx, peers.Haproxy, peers.Floor, peers.Llmgw]
FULL_ALONE = {"p200l", "storm", *(s.name for s in openai.SCENARIOS)}
SCENARIOS = paired.SCENARIOS + openai.SCENARIOS


class TimeLimit(BaseException):
    pass


class Parts(Bench):
    """Those of make bench."""

    def streams(self):
        return {str(n): self.paired(paired.by_streams(n), 2)
                for n in paired.STREAMS}

    def memory(self):
        full = self.options.full
        kinds = USUAL + SLOW[:1] if full else list(USUAL)
        if self.options.before:
            kinds.append(peers.LlmgwBefore)
        rows = alone.memory(self, kinds, [1000, 5000], 2)
        rows.update(alone.memory(self, [peers.Llmgw], [10000],
                                 self.options.hold or (60 if full else 8)))
        return rows

    def failover(self):
        full = self.options.full
        return alone.failover(self, [*USUAL, *SLOW] if full else USUAL,
                              3 if full else 2)

    def plan(self):
        """name -> (in make bench, what runs it)"""
        by_name = {s.name: s for s in SCENARIOS}
        counted = [by_name[name] for name in ("p200", "p200l", "p200c")]
        return {
            **{name: (name not in FULL_ALONE, lambda s=s: self.paired(s))
               for name, s in by_name.items()},
            "memory": (True, self.memory),
            "openai_memory": (False, lambda: openai.memory(
                self, self.options.full)),
            "openai_stall": (False, lambda: stall.stall(self)),
            "syscalls": (True, lambda: alone.syscalls(self, counted,
                                                      USUAL)),
            "instructions": (False, lambda: instructions.run(self)),
            "failover": (True, self.failover),
            "hedging": (True, lambda: alone.hedging(self)),
            "overload": (True, lambda: alone.overload(self)),
            "stalled": (True, lambda: alone.stalled(self,
                                                    self.options.rounds)),
            "micro": (True, lambda: micro.run(self)),
            "scale": (False, lambda: alone.scale(
                self, [3, 10, 100, 1000, 10000], 2)),
            "churn": (False, lambda: alone.churn(self, [1000, 10000], 3)),
            "streams": (False, self.streams),
        }

    def run(self):
        wanted, plan = self.options.part, self.plan()
        for name, (usual, part) in plan.items():
            if name in wanted or not wanted and (usual or self.options.full):
                self.say(f"== {name}")
                self.keep(name, {"fail": "the time limit came"})
                self.keep(name, self.guard(part))

    def keep(self, name, got):
        if name in {s.name for s in SCENARIOS}:
            self.results.setdefault("paired", {})[name] = got
        elif "fail" in got and not isinstance(got["fail"], dict):
            self.results[name] = {"all": got}
        else:
            self.results[name] = got


def on_limit(*_):
    raise TimeLimit


def on_term(*_):
    raise SystemExit("told to end")


def parse():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--full", action="store_true",
                   help="more proxies, longer runs, the plots")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--window", type=int, default=1000, metavar="MS")
    p.add_argument("--warmup", type=int, default=400, metavar="MS")
    p.add_argument("--hold", type=int, metavar="S",
                   help="how long 10,000 streams are held")
    p.add_argument("--limit", type=int, metavar="S",
                   help="hard end (480; --full: 780)")
    p.add_argument("--results", type=pathlib.Path, default=RESULTS,
                   metavar="FILE", help="where the figures are kept, as JSON")
    p.add_argument("--before", type=pathlib.Path, metavar="SO",
                   help="another build of the module, measured beside this"
                        " one where rows compare")
    p.add_argument("--write", action="store_true",
                   help="the results go to docs/benchmarks.md too")
    p.add_argument("--list", action="store_true", help="print the parts")
    p.add_argument("part", nargs="*")
    options = p.parse_args()
    if options.write and options.part:
        p.error("--write is for a whole run")
    return options


def finish(bench, options):
    results = bench.results
    results["seconds"] = bench.elapsed()
    results["load_at_end"] = os.getloadavg()[0]
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(results, indent=1) + "\n")
    pictures = plots.draw(results, PICTURES if options.write
                          else options.results.parent / "img")
    text = tables.document(results, pictures)
    print(text)
    if options.write:
        page.write("proxies", text)
    return 1 if "MISSED" in text or "FAIL" in text else 0


def main():
    options = parse()
    options.limit = options.limit or LIMIT_S[options.full]
    bench = Parts(options)
    if options.list:
        print("\n".join(bench.plan()))
        return 0
    unknown = set(options.part) - set(bench.plan())
    if unknown:
        print(f"no part {', '.join(sorted(unknown))}: see --list",
              file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, on_term)
    signal.signal(signal.SIGALRM, on_limit)
    signal.alarm(bench.limit)
    machine.pin_harness()
    peers.LlmgwBefore.module = options.before and options.before.resolve()
    bench.results["machine"] = machine.describe()
    bench.results["options"] = {
        "command": " ".join(["bench/run.py", *sys.argv[1:]]),
        "rounds": options.rounds, "window_ms": options.window,
        "warmup_ms": options.warmup}
    try:
        bench.run()
    except TimeLimit:
        bench.say(f"the limit of {bench.limit} s has come")
    signal.alarm(0)
    return finish(bench, options)


if __name__ == "__main__":
    sys.exit(main())
