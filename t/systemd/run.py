#!/usr/bin/env python3
"""`make test-systemd`: the unit files under a systemd that is booted for them.

It takes a minute, partly waiting for the watchdog.  units.sh has the checks.
"""

import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from llmgw.proc import booted  # noqa: E402

LIMIT_S = 240


def prepare(overlay):
    subprocess.run(["make", "-s", "install", f"DESTDIR={overlay}"],
                   cwd=HERE.parents[1], check=True, stdout=subprocess.DEVNULL)
    shutil.copy(HERE / "units.sh", overlay / "look")
    (overlay / "look").chmod(0o755)
    shutil.copytree(HERE.parent / "llmgw", overlay / "engine")
    shutil.copy(HERE.parents[1] / "debian/llmgw-replica.prerm",
                overlay / "prerm")


if __name__ == "__main__":
    sys.exit(booted.run(prepare, LIMIT_S))
