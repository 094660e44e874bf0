"""What every part of a benchmark gets: ports, options, the time that is left,
and a guard against what fails."""

import subprocess
import sys
import time

from llmgw.proc.ports import Ports

from . import paired, peers
from .machine import Fail

CLOSING_S = 30          # reserved for the current rows and for writing
SLOW = [peers.Threads, peers.Caddy]


class Bench:
    """What every part gets."""

    def __init__(self, options):
        self.options = options
        self.window_ms, self.warmup_ms = options.window, options.warmup
        self.ports = Ports()
        self.began = time.monotonic()
        self.limit = options.limit
        self.results = {}

    def elapsed(self):
        return time.monotonic() - self.began

    def left(self):
        return self.limit - CLOSING_S - self.elapsed()

    def is_late(self):
        return self.left() <= 0

    def say(self, text):
        print(f"[{self.elapsed():4.0f} s] {text}", file=sys.stderr,
              flush=True)

    def guard(self, call, *args):
        """Its result, or {"fail": why}: one row does not end a run."""
        try:
            if self.is_late():
                raise Fail("out of time")
            return call(*args)
        except Fail as e:
            return {"fail": str(e)}
        except (OSError, subprocess.SubprocessError, ImportError,
                AssertionError, LookupError, TypeError, ValueError,
                ArithmeticError, RuntimeError) as e:
            return {"fail": f"{type(e).__name__}: {e}"}

    def paired(self, scenario, rounds=None):
        slow = SLOW if self.options.full else []
        turns = paired.Rounds(self, scenario, slow)
        return self.guard(turns.run, rounds or self.options.rounds)
