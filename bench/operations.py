#!/usr/bin/env python3
"""`make bench-operations`: what a rolling update and a sick replica cost the
requests that run meanwhile.

    bench/operations.py [--rounds N] [--write]

Requests come at an even rate all the time, in an open loop (`llmgw-sim
observe`).  Those that came while the replicas were updated, or one of them
was sick, are compared with the others of the same run.  The replicas are
simulated: a token each 20 ms.
"""

import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "t")]
from llmgw.fleet.cluster import Cluster  # noqa: E402
from llmgw.fleet.updates import Fleet  # noqa: E402
from llmgw.proc import place  # noqa: E402
from llmgw.proc.ports import Ports  # noqa: E402
from llmgw.proc.wait import wait_for  # noqa: E402
from measure import machine, page  # noqa: E402
from measure.machine import Fail  # noqa: E402
from measure.policies import percentile  # noqa: E402

RESULTS = ROOT / "build/bench/operations.json"
TOKEN = {"token_delay": "20ms"}
TOKENS = 60                 # of an answer: 1.2 s
RATE = 80                   # requests a second
REPLICAS = 4
QUIET_S = 4                 # before and behind
LIMIT_S = 120

ROWS = {
    "drained": "rolling update, streams end at their replica",
    "moved": "rolling update with `--drain-timeout 200ms`, streams move",
    "sick": "one of four replicas refuses all for 8 s",
}


class Requests:
    """An even stream of requests in a process of its own, until stop()."""

    def __init__(self, cluster, nginx):
        self.csv = cluster.dir / "t.csv"
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            list(map(str, [
                place.binary("llmgw-sim"), "observe", "--server-url",
                f"grpc://{nginx.target}", "--rate", RATE, "--num-requests", 0,
                "--horizon", LIMIT_S * 1_000_000, "--prompt-tokens", 32,
                "--output-tokens", TOKENS, "--output-tokens-stdev", 0,
                "--max-concurrency", 4000, "--trace-header",
                cluster.dir / "t.yaml", "--trace-data", self.csv])),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def now(self):
        return time.monotonic() - self.began

    def stop(self):
        """The rows of the trace; a first SIGINT lets running requests end."""
        self.process.send_signal(2)
        said = self.process.communicate(timeout=LIMIT_S)[1]
        if not self.csv.exists():
            raise Fail(f"observe: {said.strip()[-200:]}")
        with open(self.csv) as f:
            return list(csv.DictReader(f))


def first_token_ms(row):
    return (int(row["first_chunk_time_us"]) - int(row["arrival_time_us"])) \
        / 1000


def compared(rows, began, ended):
    """What requests had that came in this part of the run, and the others."""
    served = [r for r in rows if r["status"] == "ok"]
    during = [first_token_ms(r) for r in served
              if began <= int(r["arrival_time_us"]) / 1e6 <= ended]
    others = [first_token_ms(r) for r in served
              if not began <= int(r["arrival_time_us"]) / 1e6 <= ended]
    if min(len(during), len(others)) < 100:
        raise Fail(f"only {len(during)} and {len(others)} requests")
    return {"requests": len(rows), "failed": len(rows) - len(served),
            "during_p99": percentile(during, 99),
            "others_p99": percentile(others, 99)}


def moved(nginx):
    return sum(nginx.pool()["totals"]["failovers"].values())


def update(cluster, *words):
    """A whole rolling update under load."""
    fleet = Fleet(cluster, REPLICAS, **TOKEN)
    try:
        requests = Requests(cluster, fleet.nginx)
        time.sleep(QUIET_S)
        began = requests.now()
        fleet.update(*words).done(LIMIT_S)
        ended = requests.now()
        time.sleep(QUIET_S)
        rows = requests.stop()
        return {**compared(rows, began, ended), "moved": moved(fleet.nginx),
                "seconds": (ended - began) / REPLICAS}
    finally:
        fleet.close()


def drained(cluster):
    return update(cluster)


def carried(cluster):
    return update(cluster, "--drain-timeout", "200ms")


def sick(cluster):
    """A replica refuses everything for a while, and is well again."""
    nginx = cluster.fleet(REPLICAS, replica=TOKEN)
    replica = cluster.replicas["r1"]

    def state():
        return nginx.replicas()["r1"]["breaker"]["state"]
    requests = Requests(cluster, nginx)
    time.sleep(QUIET_S)
    began = requests.now()
    replica.faults(reject_all=True)
    wait_for(lambda: state() != "closed", "its circuit to open", takes=LIMIT_S)
    opened = requests.now()
    time.sleep(8)
    healed = requests.now()
    lost = replica.stats().failed
    replica.faults(reject_all=False)
    wait_for(lambda: state() == "closed", "its circuit to close",
             takes=LIMIT_S)
    closed = requests.now()
    time.sleep(QUIET_S)
    rows = requests.stop()
    return {**compared(rows, began, healed), "lost": lost,
            "opened": opened - began, "closed": closed - healed}


KINDS = {"drained": drained, "moved": carried, "sick": sick}
COLUMNS = {
    "requests": ("requests", "{:.0f}"), "failed": ("failed", "{:.0f}"),
    "others_p99": ("first token p99, ms", "{:.1f}"),
    "during_p99": ("meanwhile", "{:.1f}"),
    "seconds": ("s a replica", "{:.2f}"),
    "moved": ("streams moved", "{:.0f}"),
    "lost": ("asks refused by it", "{:.0f}"),
    "opened": ("s to open", "{:.3f}"), "closed": ("s to close", "{:.2f}"),
}


def measure(name):
    cluster = Cluster(Ports(), f"bench-{name}")
    wrong = None
    try:
        got = KINDS[name](cluster)
    except (Fail, AssertionError, OSError) as e:
        wrong = str(e).splitlines()[0]
        print(cluster.tails(), file=sys.stderr)
    wrong = wrong or "; ".join(cluster.close()) or None
    cluster.remove()
    print(f"{name}: {wrong or got}", file=sys.stderr, flush=True)
    return {"fail": wrong} if wrong else got


def cell(rounds, key, form):
    values = [r[key] for r in rounds if key in r]
    if not values:
        return ""
    middle = form.format(statistics.median(values))
    least, most = form.format(min(values)), form.format(max(values))
    return middle if least == most else f"{middle} ({least}..{most})"


def table(results):
    m, o = results["machine"], results["options"]
    lines = [
        f"{m['date']}, {m['cpu']}, {m['processors']} processors, Linux "
        f"{m['kernel']}, load\naverage {m['load']:.1f} at the start; commit "
        f"{m['commit']}; {o['rounds']} rounds.", "",
        "|  | " + " | ".join(head for head, _ in COLUMNS.values()) + " |",
        "|---|" + "---|" * len(COLUMNS)]
    for name, title in ROWS.items():
        rounds = results["rows"][name]
        failed = [r["fail"] for r in rounds if "fail" in r]
        lines.append(f"| {title} | " + (
            f"FAIL: {failed[0]} |" + " |" * (len(COLUMNS) - 1) if failed else
            " | ".join(cell(rounds, key, form)
                       for key, (_, form) in COLUMNS.items()) + " |"))
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--results", type=pathlib.Path, default=RESULTS)
    p.add_argument("--write", action="store_true",
                   help="put the table into docs/benchmarks.md")
    options = p.parse_args()
    results = {"machine": machine.describe(),
               "options": {"rounds": options.rounds},
               "rows": {name: [measure(name) for _ in range(options.rounds)]
                        for name in ROWS}}
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(results, indent=1) + "\n")
    text = table(results)
    print(text)
    if options.write:
        page.write("operations", text)
    return 1 if "FAIL" in text or any(
        r["failed"] for rounds in results["rows"].values()
        for r in rounds) else 0


if __name__ == "__main__":
    sys.exit(main())
