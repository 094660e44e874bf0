"""No test may hang: after a while it fails, with the stacks of all threads.

A signal ends what waits in Python.  What does not even take the signal within
GRACE_S ends this run of pytest, and those that share the tests with it go on.
"""

import faulthandler
import os
import signal

import pytest

from .place import SLOW

GRACE_S = 60


class Limit:
    """A pytest plugin.  seconds: of a test with its fixtures, multiplied by
    place.SLOW."""

    def __init__(self, seconds):
        self.seconds = int(seconds * SLOW)

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self):
        self.stderr = os.dup(2)         # pytest takes the other one away
        signal.signal(signal.SIGALRM, self._over)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self):
        self._begin(self.seconds)
        yield
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()

    def _begin(self, seconds):
        signal.alarm(seconds)
        faulthandler.dump_traceback_later(seconds + GRACE_S, exit=True,
                                          file=self.stderr)

    def _over(self, *_):
        faulthandler.dump_traceback(file=self.stderr)
        self._begin(GRACE_S)            # for what takes the test down
        pytest.fail(f"no end in {self.seconds} s")
