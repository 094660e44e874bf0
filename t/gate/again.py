"""The reruns of a test whose only failure is an expired wait.

It may have been the machine, or a product that hangs once in a thousand times.
So it is run three times by itself, beside two busy loops: one failure is red;
three passes make it *unstable*, a defect with a date, and a line of
t/unstable.tsv, which is committed.  make lint is red when a line is older than
14 days or a test stands there twice, and a test that stands there already is
not run again.  Whatever else a test finds wrong is red at once: a wrong, lost
or doubled token, a count that is not zero, an alert, a sanitizer's line, a
crash, a second active engine, the test's own limit.
"""

import contextlib
import datetime
import subprocess
import time

from .e2e import one
from .tally import ROOT, git

UNSTABLE = ROOT / "t/unstable.tsv"
TIMES = 3
BUSY_LOOPS = 2

# So many at once are no accident, and would take too long.
MOST = 8


def lines():
    """The lines of the file, but for its heading, as lists of fields."""
    return [line.split("\t")
            for line in UNSTABLE.read_text().splitlines()[1:]]


@contextlib.contextmanager
def busy_loops():
    loops = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"])
             for _ in range(BUSY_LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _note(case, seed):
    commit = git("rev-parse", "--short", "HEAD") or "-"
    today = datetime.date.today().isoformat()
    with open(UNSTABLE, "a") as f:
        print(case.id, commit, seed, today, "-", sep="\t", file=f)


def again(tally, build, expired, seed):
    began, known = time.monotonic(), {line[0] for line in lines()}
    passed = failed = 0
    for i, case in enumerate(expired):
        name = f"again {i + 1}"
        if case.id in known:
            why = "stands in t/unstable.tsv already"
        elif i >= MOST:
            why = f"one of {len(expired)}"
        else:
            with busy_loops():
                good = [one(build, case, f"{name} time {n + 1}")
                        for n in range(TIMES)]
            why = None if all(good) else \
                f"failed {good.count(False)} times of {TIMES}"
        if why is None:
            _note(case, seed)
        print(f"{case.id} waited too long, "
              + (f"and {why}" if why else "but not again: unstable"))
        passed, failed = passed + (why is None), failed + (why is not None)
    if expired:
        tally.say("again, by themselves", began, passed, failed)


def tell():
    """The file's lines, at the end of a run."""
    if lines():
        print("unstable (t/unstable.tsv):")
        for line in lines():
            print("  " + "  ".join(line))
