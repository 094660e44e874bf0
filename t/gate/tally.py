"""What was run, line by line, and the sum."""

import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Tally:
    def __init__(self):
        self.passed = self.failed = 0
        self.cases = []         # (seconds, name) of all that has a time

    def say(self, what, began, passed, failed, more=""):
        self.passed += passed
        self.failed += failed
        print(f"{what:<28} {passed:4} passed, {failed:3} failed"
              f" {time.monotonic() - began:6.1f} s{more}", flush=True)

    def slowest(self, n=30):
        print(f"the {n} slowest:")
        for seconds, name in sorted(self.cases, reverse=True)[:n]:
            print(f"{seconds:7.1f} s  {name}")


def make(*words, build):
    return subprocess.run(
        ["make", "--no-print-directory", "-s", f"-j{os.cpu_count()}",
         f"BUILD={build}", *words], cwd=ROOT, capture_output=True, text=True)


def git(*words):
    """What git says, or None: there may be no git, no repository."""
    try:
        out = subprocess.run(["git", *words], cwd=ROOT, capture_output=True,
                             text=True)
    except OSError:
        return None
    return out.stdout.strip() if out.returncode == 0 else None
