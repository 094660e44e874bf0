"""Runs of pytest that share the end-to-end tests, and their results.

Nothing else runs beside them, and there are as many as processors: what a test
measures against its own waits is then the product.
"""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

from .tally import ROOT

SHARERS = os.cpu_count()

# No end-to-end test of the gate takes a tenth of it (t/llmgw/proc/limit.py).
TEST_LIMIT_S = 120

TESTS = ("t/e2e", "t/gate", "t/lint")

JUNIT = ROOT / "build/junit"


class Case:
    """One test of a junit report.  outcome: passed, failed, skipped, or
    expired, of a test that waited too long and did nothing else wrong."""

    def __init__(self, element):
        said = {p.get("name"): p.get("value")
                for p in element.iter("property")}
        self.key = element.get("classname"), element.get("name")
        self.id = said.get("nodeid", "::".join(self.key))
        self.seconds = float(element.get("time"))
        wrong = [x for x in element if x.tag in ("failure", "error")]
        self.outcome = "passed"
        if wrong:
            is_expired = "expired" in said and len(wrong) == 1
            self.outcome = "expired" if is_expired else "failed"
        elif element.find("skipped") is not None:
            self.outcome = "skipped"


def read(path):
    """The cases of a report; None if pytest did not come to write it."""
    try:
        suite = xml.etree.ElementTree.parse(path).getroot().find("testsuite")
    except (OSError, xml.etree.ElementTree.ParseError):
        return None
    cases = {}
    for element in suite.iter("testcase"):
        case = Case(element)
        had = cases.setdefault(case.key, case)
        if had is not case:     # what went wrong as it was taken down
            had.id, had.outcome = case.id, "failed"
    return list(cases.values())


class Pytest:
    """One run of pytest; its output is printed when it has ended."""

    def __init__(self, build, name, tests, *words, **env):
        self.began = time.monotonic()
        self.name = name
        self.out = tempfile.TemporaryFile("w+", errors="replace")
        JUNIT.mkdir(parents=True, exist_ok=True)
        self.report = JUNIT / f"{name.replace(' ', '-')}.xml"
        self.report.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
             "-rs", *tests, *words, f"--junit-xml={self.report}"],
            cwd=ROOT, stdout=self.out, stderr=subprocess.STDOUT,
            env={"LLMGW_TEST_LIMIT": str(TEST_LIMIT_S), **os.environ,
                 "LLMGW_BUILD": build, **env})

    def finish(self, tally):
        """Tells the tally; returns the cases that expired."""
        self.process.wait()
        cases = read(self.report)
        of = {o: [c for c in cases or () if c.outcome == o]
              for o in ("passed", "failed", "skipped", "expired")}
        failed = len(of["failed"]) + (cases is None)
        if self.process.returncode not in (0, 1, 5):    # 5: no test at all
            failed = max(failed, 1)
        self.out.seek(0)
        lines = self.out.readlines()
        is_calm = not failed and not of["expired"]
        print("".join([x for x in lines if x.startswith("SKIPPED")]
                      if is_calm else lines), end="")
        tally.cases += [(c.seconds, c.id) for c in cases or ()]
        more = "".join(f", {len(of[o])} {o}" for o in ("skipped", "expired")
                       if of[o])
        tally.say(f"end to end, {self.name}", self.began, len(of["passed"]),
                  failed, more)
        return of["expired"]


def shared(tally, build, label, marks, tests=TESTS, sharers=SHARERS, **env):
    """Those with these marks; then, one by one, those marked `alone`, too.
    Returns the cases that expired."""
    expired = []
    with tempfile.NamedTemporaryFile() as number:
        runs = [Pytest(build, f"{label} {i + 1} of {sharers}", tests, "-m",
                       f"({marks}) and not alone", LLMGW_SHARE=number.name,
                       **env) for i in range(sharers)]
        for run in runs:
            expired += run.finish(tally)
    expired += Pytest(build, f"{label} alone", tests, "-m",
                      f"({marks}) and alone", **env).finish(tally)
    return expired


def one(build, case, name):
    """One test by itself: whether it passed."""
    run = Pytest(build, name, [case.id])
    run.process.wait()
    cases = read(run.report) or []
    if [c.outcome for c in cases] == ["passed"]:
        return True
    run.out.seek(0)
    print(run.out.read())
    return False
