#!/usr/bin/env python3
"""`make test-packages`: whether the packages of `make deb` are good ones.

  lintian      says neither error nor warning
  life         install, upgrade, remove, purge: life.py
  piuparts     the same, by Debian's own tool
  autopkgtest  debian/tests
  twice        another build, in another directory, has the same bytes
  trixie       built for the next release of Debian, and `life` there

All of them, or those that are named.  The machine of the middle ones is that of
llmgw/proc/fresh.py.  Root.
"""

import filecmp
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
from llmgw.pages.facts import Facts  # noqa: E402
from llmgw.proc import fresh  # noqa: E402

LIMIT_S = 600
AGAIN = ROOT / "build" / "deb-again"
BOOKWORM = fresh.Debian()


def lintian():
    return subprocess.run(
        ["lintian", "--fail-on", "error,warning", "--tag-display-limit", "0",
         *BOOKWORM.debs.glob("*.deb")]).returncode == 0


def in_fresh(script):
    return lambda: BOOKWORM.run(HERE / script, LIMIT_S) == 0


def twice():
    subprocess.run(["sh", ROOT / "build-aux/deb.sh", AGAIN], cwd=ROOT,
                   check=True, stdout=subprocess.DEVNULL)
    here, there = ({p.relative_to(top) for p in top.rglob("*.deb")}
                   for top in (BOOKWORM.debs, AGAIN))
    differ = sorted(here ^ there) + [
        p for p in sorted(here & there)
        if not filecmp.cmp(BOOKWORM.debs / p, AGAIN / p, shallow=False)]
    for p in differ:
        print("differs:", p, flush=True)
        subprocess.run(["diffoscope", "--max-report-size", "4000",
                        BOOKWORM.debs / p, AGAIN / p])
    return bool(here) and not differ


def trixie():
    there = fresh.Debian("trixie")
    subprocess.run(["sh", ROOT / "build-aux/deb.sh", there.debs], cwd=ROOT,
                   env={**os.environ, "DEB_SUITE": there.suite},
                   check=True, stdout=subprocess.DEVNULL)
    return there.run(HERE / "life.py", LIMIT_S) == 0


PARTS = {
    "lintian": lintian,
    "life": in_fresh("life.py"),
    "piuparts": in_fresh("piuparts.sh"),
    "autopkgtest": in_fresh("autopkgtest.sh"),
    "twice": twice,
    "trixie": trixie,
}

if __name__ == "__main__":
    fact = Facts()
    for name in sys.argv[1:] or PARTS:
        print(f"--- {name}", flush=True)
        fact(PARTS[name](), name)
    sys.exit(fact.end())
