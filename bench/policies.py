#!/usr/bin/env python3
"""`make bench-policies`: policies of routing, live, on replicas that batch and
cache as engines do.

    bench/policies.py [--quick] [--rounds N] [--write] [--workload NAME]...
                      [--policy NAME]...

In each round every policy gets the same requests, one policy after the other,
each with fresh replicas.  A ratio compares two runs of one round.  Workloads
run beside each other, since replicas spend their time waiting; how busy the
processors were stands in the result.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "t")]
from llmgw.proc.ports import Ports  # noqa: E402
from measure import machine, policies, policy_page  # noqa: E402
from measure.machine import Fail  # noqa: E402

RESULTS = ROOT / "build" / "bench" / "policies.json"
QUICK = {"rounds": 1, "requests": 300}
FAILURES = (Fail, AssertionError, OSError, LookupError, ValueError)


class Bench:
    def __init__(self, options):
        self.options = options
        self.began = time.monotonic()
        self.machine = machine.describe()
        self.lock = threading.Lock()
        self.rounds = {}        # workload -> [{policy: figures}]

    def say(self, text):
        with self.lock:
            print(f"[{time.monotonic() - self.began:4.0f} s] {text}",
                  file=sys.stderr, flush=True)

    def workload(self, name):
        ports = Ports()
        self.rounds[name] = []
        for i in range(self.options.rounds):
            self.rounds[name].append({})
            for policy in self.options.policy:
                self.rounds[name][i][policy] = got = self.once(
                    ports, policy, name, i + 1)
                self.say(f"{name} {i + 1}/{self.options.rounds} {policy}: "
                         + (got.get("fail") or policy_page.line(got)))

    def once(self, ports, policy, workload, seed):
        """A run that fails says why, and the others go on."""
        try:
            return policies.run(ports, policy, workload,
                                self.options.requests, seed)
        except FAILURES as e:
            return {"fail": str(e) or type(e).__name__}

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(
                self.options.beside) as lanes:
            list(lanes.map(self.workload, self.options.workload))
        return {"machine": self.machine, "rounds": self.rounds,
                "options": {"rounds": self.options.rounds,
                            "beside": self.options.beside,
                            "requests": self.options.requests},
                "load_at_end": os.getloadavg()[0],
                "seconds": time.monotonic() - self.began}


def parse():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--quick", action="store_true",
                   help="one round of short runs")
    p.add_argument("--rounds", type=int)
    p.add_argument("--requests", type=int,
                   help="of a run (as its workload says)")
    p.add_argument("--beside", type=int, default=5,
                   help="workloads at the same time (5)")
    p.add_argument("--workload", action="append",
                   choices=policies.WORKLOADS)
    p.add_argument("--policy", action="append", choices=policies.POLICIES)
    p.add_argument("--results", type=pathlib.Path, default=RESULTS,
                   metavar="FILE", help="where the figures are kept, as JSON")
    p.add_argument("--show", action="store_true",
                   help="measure nothing: the page of FILE's figures")
    p.add_argument("--write", action="store_true",
                   help="the tables and plots go to docs/policies.md, too")
    options = p.parse_args()
    for name, value in {"rounds": 5, "requests": None,
                        **(QUICK if options.quick else {})}.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    options.workload = options.workload or list(policies.WORKLOADS)
    options.policy = options.policy or list(policies.POLICIES)
    return options


def main():
    options = parse()
    if options.show:
        results = json.loads(options.results.read_text())
    else:
        results = Bench(options).run()
        options.results.parent.mkdir(parents=True, exist_ok=True)
        options.results.write_text(json.dumps(results, indent=1) + "\n")
    text = policy_page.document(results, options.results.parent / "img",
                                options.write)
    print(text)
    return 1 if "FAIL" in text or "MISSED" in text else 0


if __name__ == "__main__":
    sys.exit(main())
