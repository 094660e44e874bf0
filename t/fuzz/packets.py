#!/usr/bin/env python3
"""`make fuzz-packets N=10000000`: fuzzes until that many datagrams were tried.

A fuzzer counts inputs, and one input of fuzz_datagram is many datagrams, so
each run prints how many there were (fuzz_count.h).  The runs are short and one
after the other, so that each starts from the reduced corpus of the one before.
Half of the datagrams are plain, to a whole swim; half are sealed.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import time

FUZZ = pathlib.Path(__file__).resolve().parents[2] / "build" / "fuzz"
FUZZERS = ("fuzz_datagram", "fuzz_sealed")


def run(name, seconds):
    """The datagrams of one run; exits if the fuzzer found something."""
    corpus = FUZZ / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    out = subprocess.run(
        [FUZZ / name, f"-max_total_time={seconds}", "-verbosity=0",
         "-print_final_stats=0", "-max_len=8192", str(corpus)], cwd=FUZZ,
        stderr=subprocess.PIPE, text=True, errors="replace")
    said = re.search(r"^(\d+) datagrams$", out.stderr, re.M)
    if out.returncode != 0 or not said:
        sys.exit(f"{out.stderr}{name} ended with {out.returncode}")
    return int(said[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=int, default=30, help="of a run")
    args = parser.parse_args()

    began = time.monotonic()
    for name in FUZZERS:
        done = 0
        while done < args.n / len(FUZZERS):
            done += run(name, args.seconds)
            print(f"{name} {done} datagrams"
                  f" {time.monotonic() - began:.0f} s", flush=True)
    print(f"no report in {args.n} datagrams and more")


if __name__ == "__main__":
    main()
