#!/usr/bin/env python3
"""`make test`: lint, unit tests, threads under tsan, real processes.

Runs them all whatever fails, and ends with one line: N passed, N failed.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Pieces of the end-to-end tests that run side by side: most of their time is
# waiting, and two processors are enough for this many.
SHARDS = 2

# The simulator computes all the time: half a minute to one for each of these,
# seconds for the others.  The longest are the first to begin.
UNITS_AT_ONCE = 2
LONGEST_UNITS = ("sim_long_loss", "sim_thousand", "sim_crowd", "sim_loss")

# The unit tests that have threads; `make test-tsan` runs them alone.
THREADED = ("proto/members/test_members",
            "agent/supervise/test_child_witness")

# A sanitizer looks at every load: seeds that differ by chance alone are for
# the other builds.
SANITIZED_SEEDS = {"LLMGW_SIM_SEEDS": "1"}


class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    def add(self, passed, failed):
        self.passed += passed
        self.failed += failed

    def say(self, what, began, passed, failed):
        self.add(passed, failed)
        print(f"{what:<28} {passed:4} passed, {failed:3} failed"
              f" {time.monotonic() - began:6.1f} s", flush=True)


def make(*words, build):
    return subprocess.run(
        ["make", "--no-print-directory", "-s", f"BUILD={build}", *words],
        cwd=ROOT, capture_output=True, text=True)


def lint(tally):
    began = time.monotonic()
    out = subprocess.run([sys.executable, "t/lint/lint.py"], cwd=ROOT)
    tally.say("lint", began, out.returncode == 0, out.returncode != 0)


def cmocka(tally, binary, label, env={}):
    """One cmocka binary; a crash is one failed test."""
    began = time.monotonic()
    try:
        out = subprocess.run([ROOT / binary], cwd=ROOT, capture_output=True,
                             text=True, errors="replace", timeout=1200,
                             env={**env, **os.environ})
        said, code = out.stdout + out.stderr, out.returncode
    except subprocess.TimeoutExpired as e:
        said, code = f"{e}\n", 1
    passed = sum(map(int, re.findall(r"\[  PASSED  \] (\d+) test", said)))
    failed = sum(map(int, re.findall(r"\[  FAILED  \] (\d+) test", said)))
    if code != 0:
        failed = max(failed, 1)
        print(said, flush=True)
    tally.say(label, began, passed, failed)


def _unit_turn(binary):
    name = pathlib.Path(binary).name
    if name in LONGEST_UNITS:
        return LONGEST_UNITS.index(name)
    return len(LONGEST_UNITS) + (not name.startswith("sim_"))


def units(tally, build):
    began = time.monotonic()
    out = make("units", build=build)
    if out.returncode != 0:
        print(out.stdout + out.stderr)
        tally.say("build of the unit tests", began, 0, 1)
        return
    env = SANITIZED_SEEDS if build in ("asan", "ubsan", "tsan") else {}
    binaries = sorted(out.stdout.split(), key=_unit_turn)
    with concurrent.futures.ThreadPoolExecutor(UNITS_AT_ONCE) as pool:
        for run in [pool.submit(cmocka, tally, binary,
                                pathlib.Path(binary).name, env)
                    for binary in binaries]:
            run.result()


def tsan(tally):
    for name in THREADED:
        began = time.monotonic()
        binary = f"build/obj/tsan/t/unit/{name}"
        out = make(binary, build="tsan")
        if out.returncode != 0:
            print(out.stdout + out.stderr)
            tally.say(f"build of {name} for tsan", began, 0, 1)
            continue
        cmocka(tally, binary, f"{name} under tsan")


def junit(path):
    """(passed, failed, skipped) of a pytest report."""
    try:
        suite = xml.etree.ElementTree.parse(path).getroot().find("testsuite")
    except (OSError, xml.etree.ElementTree.ParseError):
        return 0, 1, 0
    count = {k: int(suite.get(k))
             for k in ("tests", "failures", "errors", "skipped")}
    failed = count["failures"] + count["errors"]
    return (count["tests"] - failed - count["skipped"], failed,
            count["skipped"])


class Pytest:
    """One run of pytest over t/; its output is kept till it has ended."""

    def __init__(self, build, shard):
        self.began = time.monotonic()
        self.shard = shard
        self.out = tempfile.TemporaryFile("w+", errors="replace")
        self.report = tempfile.NamedTemporaryFile(suffix=".xml")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
             "--durations=5", "t", f"--shard={shard}",
             f"--junit-xml={self.report.name}"],
            cwd=ROOT, stdout=self.out, stderr=subprocess.STDOUT,
            env={**os.environ, "LLMGW_BUILD": build})

    def finish(self, tally):
        code = self.process.wait()
        passed, failed, skipped = junit(self.report.name)
        failed = max(failed, int(code != 0))
        self.out.seek(0)
        print("".join(self.out.readlines()[0 if failed else -9:]))
        more = f" ({skipped} skipped)" if skipped else ""
        tally.say(f"end to end, {self.shard}{more}", self.began, passed,
                  failed)


def e2e(tally, build):
    side_by_side = [Pytest(build, f"{i}/{SHARDS}") for i in range(SHARDS)]
    for part in side_by_side:
        part.finish(tally)
    Pytest(build, "alone").finish(tally)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="release")
    parser.add_argument("--only", choices=("units", "tsan"))
    args = parser.parse_args()

    tally = Tally()
    if not args.only:
        lint(tally)
    if args.only != "tsan":
        units(tally, args.build)
    if args.only != "units":
        tsan(tally)
    if not args.only:
        e2e(tally, args.build)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
