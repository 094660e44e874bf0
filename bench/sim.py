#!/usr/bin/env python3
"""What llmgw-sim costs: fleets of constant requests, on one processor.

    bench/sim.py [--rounds N] [--write]

Beside each row stands what BLIS took for the same work, where it ended: figures
measured once, on another day, on two processors of the same kind that did other
work as well, so only their size compares.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

from measure import page

ROOT = pathlib.Path(__file__).resolve().parents[1]
SIM = ROOT / "build/llmgw-sim"

# replicas, requests, requests a second, BLIS: seconds of processor, MB.
WORK = (
    (64, 3200, 128, "3.2 to 4.2", "450"),
    (256, 12800, 512, "38 to 41", "1,880"),
    (1000, 5000, 2000, "37", "3,680"),
    (1000, 50000, 2000, "> 100 (not ended)", "-"),
    (10000, 50000, 2000, "-", "-"),
)


def flags(replicas, requests, rate):
    tokens = [word for kind in ("prompt", "output")
              for what, n in (("", 512), ("-stdev", 0), ("-min", 512),
                              ("-max", 512))
              for word in (f"--{kind}-tokens{what}", n)]
    return ["--num-instances", replicas, "--num-requests", requests,
            "--rate", rate, "--routing-policy", "least-loaded",
            "--snapshot-refresh-interval", 0, "--total-kv-blocks", 20000,
            *tokens]


def once(work):
    """(wall s, processor s, MB, requests completed)"""
    words = ["taskset", "-c", "0", SIM, "run", *map(str, flags(*work[:3]))]
    began = time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        out = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - began
    if process.returncode:
        sys.exit(f"bench: {' '.join(map(str, words))}: {process.returncode}")
    done = json.loads(out)["completed_requests"]
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, done


def row(work, rounds):
    walls, used, memory, done = zip(*(once(work) for _ in range(rounds)))
    assert set(done) == {work[1]}, done
    replicas, requests, rate, blis_s, blis_mb = work
    return (f"| {replicas:,} | {requests:,} | {rate:,} "
            f"| {statistics.median(walls):.2f} "
            f"| {statistics.median(used):.2f} "
            f"| {max(memory):,.0f} | {blis_s} | {blis_mb} |")


def cpu():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def measure(rounds):
    before = os.getloadavg()[0]
    rows = [row(work, rounds) for work in WORK]
    return "\n".join((
        f"{time.strftime('%Y-%m-%d')}, {cpu()}, one processor, medians of "
        f"{rounds}, load",
        f"average {before:.1f} at the start.", "",
        "| replicas | requests | a second | wall s | processor s | MB "
        "| BLIS, processor s | BLIS, MB |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|", *rows))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--write", action="store_true",
                   help="put the table into docs/benchmarks.md")
    options = p.parse_args()
    text = measure(options.rounds)
    print(text)
    if options.write:
        page.write("sim", text)


if __name__ == "__main__":
    main()
