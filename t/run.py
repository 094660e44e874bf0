#!/usr/bin/env python3
"""`make test`: lint, unit tests, threads under tsan, real processes.

Runs all of them even if some fail, and ends with a line: N passed, N failed.
Each part runs by itself, since what runs beside a test makes it wait; gate/ has
the parts.
"""

import argparse
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from gate import again, e2e, soak, units  # noqa: E402
from gate.tally import Tally  # noqa: E402

GATE = "not soak and not timed"
SEED = "1"              # of the gate; soak draws others

PARTS = ("lint", "units", "tsan", "e2e", "soak")


def gate(tally, build, parts, sharers):
    seed = os.environ.setdefault("LLMGW_SEED", SEED)
    expired = []
    if "lint" in parts:
        units.lint(tally)
    if "units" in parts:
        units.units(tally, build)
    if "tsan" in parts:
        units.tsan(tally)
    if "e2e" in parts:
        began = time.monotonic()
        expired += e2e.shared(tally, build, "gate", GATE, sharers=sharers)
        tally.say("all end-to-end tests", began, 0, 0)
    if "soak" in parts:
        expired += soak.in_gate(tally, build, seed)
    again.again(tally, build, expired, seed)


def slices(words):
    """Names with commas between, or "all"."""
    names = list(soak.SLICES) if words == "all" else words.split(",")
    unknown = [n for n in names if n not in soak.SLICES]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"no slice {unknown[0]}; there are {', '.join(soak.SLICES)}")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="release")
    parser.add_argument("--only", choices=PARTS, help="one part of it")
    parser.add_argument("--sharers", type=int, default=e2e.SHARERS,
                        help="processes that share the end-to-end tests")
    parser.add_argument("--soak", type=slices, metavar="NAME,... | all",
                        help="these slices of the soak tests instead")
    args = parser.parse_args()

    tally = Tally()
    if args.soak:
        soak.soak(tally, args.build, args.soak)
    else:
        gate(tally, args.build, (args.only,) if args.only else PARTS,
             args.sharers)
    tally.slowest()
    again.tell()
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
