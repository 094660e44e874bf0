#!/usr/bin/env python3
"""`make test-upgrade`: from the last release to now and back, under load.

The packages of both, under a systemd that is booted for them; the orders, and
what is counted, are in upgrade.py.  A few minutes.  Root.
"""

import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
from llmgw.proc import booted  # noqa: E402

LIMIT_S = 1200


def prepare(overlay):
    for name, where in (("now", "deb"), ("former", "upgrade/former")):
        (overlay / "packages" / name).mkdir(parents=True)
        for deb in (ROOT / "build" / where).glob("*.deb"):
            shutil.copy(deb, overlay / "packages" / name)
    shutil.copytree(HERE.parent / "llmgw", overlay / "t" / "llmgw")
    shutil.copy(HERE / "upgrade.py", overlay / "t")
    (overlay / "look").symlink_to("t/upgrade.py")


if __name__ == "__main__":
    sys.exit(booted.run(prepare, LIMIT_S))
