#!/usr/bin/env python3
"""`make test`: lint, unit tests, threads under tsan, real processes.

Runs all of them even if some fail, and ends with a line: N passed, N failed.
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

# Runs of pytest that share the end-to-end tests: most of their time is waiting,
# so two processors are enough for this many.  Jobs that do not depend on real
# time (the simulator, the build for tsan) run beside them.
SHARERS = 3
LOWEST = ("nice", "-n", "19")

# No end-to-end test takes a tenth of it (t/llmgw/limit.py).
TEST_LIMIT_S = 300

# While no end-to-end tests run, two at once; the simulator's longest tests, a
# minute each, begin first.
UNITS_AT_ONCE = 2
LONGEST_UNITS = ("sim_thousand", "sim_long_loss", "sim_crowd", "sim_loss")

# The unit tests with threads; `make test-tsan` runs only these.
TSAN = ("build/obj/tsan/t/unit/proto/members/test_members",
        "build/obj/tsan/t/unit/agent/state/test_writer",
        "build/obj/tsan/t/unit/replica/standby/test_sentry",
        "build/obj/tsan/t/unit/replica/weights/test_weights",
        "build/obj/tsan/t/unit/replica/weights/test_weights_kept",
        "build/obj/tsan/t/unit/agent/supervise/test_child_witness",
        "build/obj/tsan/t/unit/weights/test_digest")
if (ROOT / "build/llmgw-engine-llama.so").exists():
    TSAN += tuple(f"build/obj/tsan/t/unit/replica/engine/llama/plugin/{name}"
                  for name in ("head/test_head", "shard/test_shard_random"))

# `make test-policies` runs these under each policy that reads the fleet, and
# with flow control in the queue.
POLICIES = ("affinity+flow,round_robin,least_loaded,weighted,"
            "weighted llm-d+flow")
OF_POLICIES = [f"t/e2e/{path}" for path in (
    "failures", "agents/test_drain.py", "agents/test_rolling_update.py",
    "agents/test_supervise.py", "routing/test_churn.py",
    "routing/test_membership.py", "routing/test_models.py",
    "routing/test_native.py", "routing/test_native_queue.py",
    "routing/test_reload.py", "routing/test_static.py",
    "openai/test_front_failures.py", "openai/test_front_resume.py")]

# A sanitizer checks every access and is slow: one random seed is enough, other
# seeds are for the other builds.
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


def make(*words, build, before=()):
    return subprocess.run(
        [*before, "make", "--no-print-directory", "-s",
         f"-j{os.cpu_count()}", f"BUILD={build}", *words],
        cwd=ROOT, capture_output=True, text=True)


def lint(tally):
    began = time.monotonic()
    out = subprocess.run([sys.executable, "t/lint/lint.py"], cwd=ROOT)
    tally.say("lint", began, out.returncode == 0, out.returncode != 0)


def cmocka(tally, binary, label, env={}, before=()):
    """One cmocka binary; a crash is one failed test."""
    began = time.monotonic()
    try:
        out = subprocess.run([*before, ROOT / binary], cwd=ROOT,
                             capture_output=True, text=True, errors="replace",
                             timeout=1200, env={**env, **os.environ})
        said, code = out.stdout + out.stderr, out.returncode
    except subprocess.TimeoutExpired as e:
        said = b"".join(filter(None, (e.stdout, e.stderr)))
        said, code = f"{said.decode(errors='replace')}\n{e}\n", 1
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


def is_sim(binary):
    return pathlib.Path(binary).name.startswith("sim_")


class Units:
    def __init__(self, tally, build):
        self.tally = tally
        self.env = (SANITIZED_SEEDS if build in ("asan", "ubsan", "tsan")
                    else {})
        began = time.monotonic()
        out = make("units", build=build)
        self.binaries = sorted(out.stdout.split(), key=_unit_turn)
        if out.returncode != 0:
            print(out.stdout + out.stderr)
            tally.say("build of the unit tests", began, 0, 1)
            self.binaries = []

    def run(self, which=lambda binary: True, at_once=UNITS_AT_ONCE, before=()):
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            for run in [pool.submit(cmocka, self.tally, binary,
                                    pathlib.Path(binary).name, self.env,
                                    before)
                        for binary in filter(which, self.binaries)]:
                run.result()


def tsan_build(tally, before=()):
    """Compiles the tests; whether that succeeded."""
    began = time.monotonic()
    out = make(*TSAN, build="tsan", before=before)
    if out.returncode != 0:
        print(out.stdout + out.stderr)
        tally.say("build for tsan", began, 0, 1)
    return out.returncode == 0


def tsan(tally):
    for binary in TSAN:
        cmocka(tally, binary, f"{pathlib.Path(binary).name} under tsan")


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
    """One run of pytest; its output is printed when it has ended."""

    def __init__(self, build, name, tests, *words, **env):
        self.began = time.monotonic()
        self.name = name
        self.out = tempfile.TemporaryFile("w+", errors="replace")
        self.report = tempfile.NamedTemporaryFile(suffix=".xml")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
             "--durations=5", "-rs", *tests, *words,
             f"--junit-xml={self.report.name}"],
            cwd=ROOT, stdout=self.out, stderr=subprocess.STDOUT,
            env={"LLMGW_TEST_LIMIT": str(TEST_LIMIT_S), **os.environ,
                 "LLMGW_BUILD": build, **env})

    def finish(self, tally):
        code = self.process.wait()
        passed, failed, skipped = junit(self.report.name)
        failed = max(failed, int(code != 0))
        self.out.seek(0)
        lines = self.out.readlines()
        said = [x for x in lines if x.startswith("SKIPPED")]
        print("".join(lines if failed else said + lines[-9:]))
        more = f" ({skipped} skipped)" if skipped else ""
        tally.say(f"end to end, {self.name}{more}", self.began, passed,
                  failed)


def shared_e2e(tally, build, tests=("t",)):
    with tempfile.NamedTemporaryFile() as number:
        runs = [Pytest(build, f"{i + 1} of {SHARERS}", tests,
                       "-m", "not alone", LLMGW_SHARE=number.name)
                for i in range(SHARERS)]
        for run in runs:
            run.finish(tally)


def alone_e2e(tally, build, tests=("t",)):
    Pytest(build, "alone", tests, "-m", "alone").finish(tally)


def under_policies(tally, build):
    os.environ.setdefault("LLMGW_POLICY", POLICIES)
    shared_e2e(tally, build, OF_POLICIES)
    alone_e2e(tally, build, OF_POLICIES)


def everything(tally, build):
    lint(tally)
    units = Units(tally, build)
    units.run(lambda binary: not is_sim(binary))
    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        sims = beside.submit(units.run, is_sim, 1, LOWEST)
        is_built = beside.submit(tsan_build, tally, LOWEST)
        shared_e2e(tally, build)
    sims.result()
    if is_built.result():
        tsan(tally)
    alone_e2e(tally, build)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="release")
    parser.add_argument("--only", choices=("units", "tsan", "policies"))
    args = parser.parse_args()

    tally = Tally()
    if args.only == "units":
        Units(tally, args.build).run()
    elif args.only == "tsan":
        if tsan_build(tally):
            tsan(tally)
    elif args.only == "policies":
        under_policies(tally, args.build)
    else:
        everything(tally, args.build)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
