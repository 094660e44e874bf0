#!/usr/bin/env python3
"""`make test-soak`: all parts at once, for half an hour, under a systemd that
is booted for it.

LLMGW_SOAK_SECONDS=60 for a short form.  soak.py has what happens there, and
docs/soak.md what it shows.  Root.
"""

import json
import os
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
from llmgw.proc import booted  # noqa: E402
from llmgw.proc.seed import SEED  # noqa: E402

SECONDS = float(os.environ.get("LLMGW_SOAK_SECONDS", 1800))
BESIDE_S = 900          # to boot, to install, and to come to rest


def prepare(overlay):
    (overlay / "packages" / "now").mkdir(parents=True)
    for deb in (ROOT / "build" / "deb").glob("*.deb"):
        shutil.copy(deb, overlay / "packages" / "now")
    for name in ("t/llmgw", "t/longsoak", "proto"):
        shutil.copytree(ROOT / name, overlay / name)
    (overlay / "build").symlink_to("usr/bin")       # for place.binary()
    (overlay / "t" / "settings.json").write_text(json.dumps(
        {"seconds": SECONDS, "seed": SEED}))
    (overlay / "look").symlink_to("t/longsoak/soak.py")


if __name__ == "__main__":
    print(f"LLMGW_SEED={SEED}", flush=True)
    sys.exit(booted.run(prepare, SECONDS + BESIDE_S))
