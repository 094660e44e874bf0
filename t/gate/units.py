"""The lint, the unit tests, the gossip simulator, and threads under tsan."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

from .tally import ROOT, make

# The simulator's longest tests, a minute each, begin first.
AT_ONCE = 2
LONGEST = ("sim_thousand", "sim_long_loss", "sim_crowd", "sim_loss")
LIMIT_S = 1200

# The unit tests with threads; `make test-tsan` runs only these.
TSAN = ("build/obj/tsan/t/unit/proto/members/test_members",
        "build/obj/tsan/t/unit/common/os/test_background",
        "build/obj/tsan/t/unit/replica/standby/test_watchdog",
        "build/obj/tsan/t/unit/replica/weights/test_weights",
        "build/obj/tsan/t/unit/replica/weights/test_weights_kept",
        "build/obj/tsan/t/unit/agent/supervise/test_child_witness",
        "build/obj/tsan/t/unit/weights/test_digest")
if (ROOT / "build/llmgw-engine-llama.so").exists():
    TSAN += tuple(f"build/obj/tsan/t/unit/replica/engine/llama/plugin/{name}"
                  for name in ("head/test_head", "shard/test_shard_random"))

# A sanitizer checks every access and is slow: one random seed is enough, other
# seeds are for the other builds.
SANITIZED_SEEDS = {"LLMGW_SIM_SEEDS": "1"}


def lint(tally):
    began = time.monotonic()
    out = subprocess.run([sys.executable, "t/lint/lint.py"], cwd=ROOT)
    tally.say("lint", began, out.returncode == 0, out.returncode != 0)


def cmocka(tally, binary, label, env={}):
    """One cmocka binary; a crash is one failed test."""
    began = time.monotonic()
    try:
        out = subprocess.run([ROOT / binary], cwd=ROOT,
                             capture_output=True, text=True, errors="replace",
                             timeout=LIMIT_S, env={**env, **os.environ})
        said, code = out.stdout + out.stderr, out.returncode
    except subprocess.TimeoutExpired as e:
        said = b"".join(filter(None, (e.stdout, e.stderr)))
        said, code = f"{said.decode(errors='replace')}\n{e}\n", 1
    passed = sum(map(int, re.findall(r"\[  PASSED  \] (\d+) test", said)))
    failed = sum(map(int, re.findall(r"\[  FAILED  \] (\d+) test", said)))
    if code != 0:
        failed = max(failed, 1)
        print(said, flush=True)
    tally.cases.append((time.monotonic() - began, label))
    tally.say(label, began, passed, failed)


def _turn(binary):
    name = pathlib.Path(binary).name
    if name in LONGEST:
        return LONGEST.index(name)
    return len(LONGEST) + (not name.startswith("sim_"))


def units(tally, build, which="", **env):
    """Builds all of them, and runs those that have `which` in their path."""
    if build in ("asan", "ubsan", "tsan"):
        env = {**SANITIZED_SEEDS, **env}
    began = time.monotonic()
    out = make("units", build=build)
    if out.returncode != 0:
        print(out.stdout + out.stderr)
        tally.say("build of the unit tests", began, 0, 1)
        return
    began = time.monotonic()
    binaries = [b for b in out.stdout.split() if which in b]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for run in [pool.submit(cmocka, tally, binary,
                                pathlib.Path(binary).name, env)
                    for binary in sorted(binaries, key=_turn)]:
            run.result()
    tally.say("all unit tests", began, 0, 0)


def tsan(tally):
    began = time.monotonic()
    out = make(*TSAN, build="tsan")
    if out.returncode != 0:
        print(out.stdout + out.stderr)
        tally.say("build for tsan", began, 0, 1)
        return
    for binary in TSAN:
        cmocka(tally, binary, f"{pathlib.Path(binary).name} under tsan")
