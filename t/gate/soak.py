"""`make soak`: all that the gate leaves out, in slices of at most ten minutes.

What draws a seed, compares a measured time, takes long, or shows again under
other circumstances what the gate shows once.  t/soak.tsv holds the commit at
which each slice was last green.  The gate runs what may be out of date by that:
the soak tests of slices whose rooms have changed since, but those that measure
time, with the gate's seed, for a few minutes.
"""

import dataclasses
import datetime
import random
import time

from . import e2e
from .tally import ROOT, git
from .units import units

SOAK = ROOT / "t/soak.tsv"
SLICE_S = 600           # what a slice may take
GATE_S = 240            # what all of them together may take in the gate
GATE_TEST_S = 40        # a test begun at the end of it may take so long

# What every slice depends on.
COMMON = ("common/", "proto/", "t/llmgw/")
GATEWAY = ("ngx_http_llmgw_module/", "config")


SOAKED = "soak or timed"


@dataclasses.dataclass
class Slice:
    tests: tuple        # folders and files of t/e2e
    rooms: tuple        # what the tests are about, besides COMMON
    env: dict = dataclasses.field(default_factory=dict)     # longer forms
    marks: str = SOAKED
    sims: bool = False  # the gossip simulator with other seeds, too


# Under each policy that reads the fleet, and with flow control in the queue.
POLICIES = ("affinity+flow,round_robin,least_loaded,weighted,"
            "weighted llm-d+flow")
OF_POLICIES = (
    "failures", "agents/test_drain.py", "agents/test_rolling_update.py",
    "agents/test_supervise.py", "routing/test_churn.py",
    "routing/test_membership.py", "routing/test_models.py",
    "routing/test_native.py", "routing/test_native_queue.py",
    "routing/test_reload.py", "routing/test_static.py",
    "openai/test_front_failures.py", "openai/test_front_resume.py")

SLICES = {
    "agents": Slice(("agents", "doctor"), ("agent/", "t/sim/"),
                    {"LLMGW_UPDATES": "3"}, sims=True),
    "requests": Slice(("requests", "routing", "tls"), GATEWAY),
    "failures": Slice(("failures",), (*GATEWAY, "replica/"),
                      {"LLMGW_CHAOS_SECONDS": "180"}),
    "policies": Slice(OF_POLICIES, GATEWAY, {"LLMGW_POLICY": POLICIES},
                      marks="not soak and not timed"),
    "openai": Slice(("openai", "engines", "launch"), (*GATEWAY, "replica/")),
    "keys": Slice(("keys",), (*GATEWAY, "replica/", "agent/ctl/files/")),
    "standby": Slice(("standby", "tools/test_demo.py"),
                     ("replica/", "lock/", "weights/"),
                     {"LLMGW_SCHEDULES": "200"}),
    "shards": Slice(("shards",), ("replica/", "slice/"),
                    {"LLMGW_SHARD_KILLS": "10", "LLMGW_SHARD_COVERS": "10"}),
    "pages": Slice(("pages", "tools", "sim", "up", "kube"),
                   (*GATEWAY, "dashboard/", "client/", "sim/", "docs/",
                    "bench/", "up/", "packaging/")),
}


def lines():
    """{slice: its line's fields}"""
    rows = [x.split("\t") for x in SOAK.read_text().splitlines()[1:]]
    return {row[0]: row for row in rows}


def _note(name, seconds, passed, seed):
    commit = git("rev-parse", "--short", "HEAD")
    if commit is None or git("status", "--porcelain", "-uno", "--", ".",
                             ":!t/*.tsv"):
        print(f"{name} is green, but not at a commit: t/soak.tsv stays")
        return
    head = SOAK.read_text().splitlines()[0]
    rows = lines()
    rows[name] = [name, commit, datetime.date.today().isoformat(),
                  f"{seconds / 60:.1f}", str(passed), str(seed)]
    text = "\n".join([head, *("\t".join(rows[n]) for n in SLICES
                              if n in rows)])
    SOAK.write_text(text + "\n")


def soak(tally, build, names):
    """The slices with these names, each with a seed of its own."""
    for name in names:
        part, began = SLICES[name], time.monotonic()
        seed = random.SystemRandom().randrange(1000, 10**6)
        print(f"slice {name}, LLMGW_SEED={seed}", flush=True)
        before = tally.passed, tally.failed
        if part.sims:
            units(tally, build, "/t/sim_", LLMGW_SIM_FIRST=str(seed))
        expired = e2e.shared(
            tally, build, f"soak {name}", part.marks,
            [f"t/e2e/{path}" for path in part.tests], LLMGW_SEED=str(seed),
            LLMGW_TEST_LIMIT=str(SLICE_S), **part.env)
        if expired:
            tally.say("expired waits", time.monotonic(), 0, len(expired))
        seconds = time.monotonic() - began
        if seconds > SLICE_S:
            print(f"slice {name} took {seconds / 60:.1f} minutes, over"
                  f" {SLICE_S // 60}")
        if tally.failed == before[1]:
            _note(name, seconds, tally.passed - before[0], seed)


def changed():
    """The names of the slices whose rooms changed since they were green, or
    without a known commit."""
    found, known = [], lines()
    for name, part in SLICES.items():
        rooms = (*COMMON, *part.rooms,
                 *(f"t/e2e/{path}" for path in part.tests))
        diff = git("diff", "--name-only", known[name][1], "--") \
            if name in known else None
        if diff is None or any(path.startswith(rooms)
                               for path in diff.splitlines()):
            found.append(name)
    return found


def in_gate(tally, build, seed):
    """Some minutes of the soak tests of changed() slices.  Returns the cases
    that expired."""
    names = changed()
    paths = sorted({f"t/e2e/{path}" for n in names for path in SLICES[n].tests
                    if SLICES[n].marks == SOAKED})
    if not paths:
        return []
    expired = e2e.shared(
        tally, build, "soak in the gate", "soak and not timed", paths,
        LLMGW_ORDER=git("rev-parse", "HEAD") or seed, LLMGW_SEED=str(seed),
        LLMGW_SHARE_SECONDS=str(GATE_S - GATE_TEST_S))
    print(f"changed since they were green: the slices {', '.join(names)};"
          " `make soak` runs the rest of them")
    return expired
