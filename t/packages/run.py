#!/usr/bin/env python3
"""`make test-packages`: whether the packages of `make deb` are good ones.

  lintian      says neither error nor warning
  life         install, upgrade, remove, purge: life.py
  piuparts     the same, by Debian's own tool
  autopkgtest  debian/tests
  twice        another build, in another directory, has the same bytes

All of them, or those that are named.  The machine of the middle ones is that of
llmgw/fresh.py.  Root.
"""

import filecmp
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
from llmgw import fresh  # noqa: E402
from llmgw.facts import Facts  # noqa: E402

LIMIT_S = 600
AGAIN = ROOT / "build" / "deb-again"


def lintian():
    return subprocess.run(
        ["lintian", "--fail-on", "error,warning", "--tag-display-limit", "0",
         *fresh.DEBS.glob("*.deb")]).returncode == 0


def in_fresh(script):
    return lambda: fresh.run(HERE / script, LIMIT_S) == 0


def twice():
    subprocess.run(["sh", ROOT / "build-aux/deb.sh", AGAIN], cwd=ROOT,
                   check=True, stdout=subprocess.DEVNULL)
    here, there = ({p.relative_to(top) for p in top.rglob("*.deb")}
                   for top in (fresh.DEBS, AGAIN))
    differ = sorted(here ^ there) + [
        p for p in sorted(here & there)
        if not filecmp.cmp(fresh.DEBS / p, AGAIN / p, shallow=False)]
    for p in differ:
        print("differs:", p, flush=True)
        subprocess.run(["diffoscope", "--max-report-size", "4000",
                        fresh.DEBS / p, AGAIN / p])
    return bool(here) and not differ


PARTS = {
    "lintian": lintian,
    "life": in_fresh("life.py"),
    "piuparts": in_fresh("piuparts.sh"),
    "autopkgtest": in_fresh("autopkgtest.sh"),
    "twice": twice,
}

if __name__ == "__main__":
    fact = Facts()
    for name in sys.argv[1:] or PARTS:
        print(f"--- {name}", flush=True)
        fact(PARTS[name](), name)
    sys.exit(fact.end())
