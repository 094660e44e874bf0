"""Programs that notice late what has happened, to find the tests that count on
their haste: LLMGW_LATE is a list of programs, or of `tests` for pytest itself.

A process of a busy machine stands still now and then, and then a test fails
by chance, one run in a hundred.  Here it stands still at each step.
"""

import functools
import os
import pathlib
import random
import socket
import subprocess
import tempfile
import time

from .preload import compiled

PROGRAMS = set(filter(None, os.environ.get("LLMGW_LATE", "").split(",")))

# Of each step of a test.
MOST_S = 0.04

_sleep = time.sleep


def environment(argv, env):
    """Adds t/preload/late_events.c, if this is one of the programs."""
    if not PROGRAMS & {pathlib.Path(word).name for word in argv[:2]}:
        return env
    libraries = [_late_events()[0], env.get("LD_PRELOAD")]
    return {**env, "LD_PRELOAD": ":".join(filter(None, libraries))}


@functools.cache
def _late_events():
    """Its path, and the directory, which ends with this process."""
    directory = tempfile.TemporaryDirectory()
    return compiled("late_events", pathlib.Path(directory.name)), directory


def begin():
    """A pause before each step that a test takes outside its own process."""
    if "tests" not in PROGRAMS:
        return
    for owner, name in ((socket.socket, "connect"), (socket.socket, "sendall"),
                        (socket.socket, "recv"), (socket.socket, "close"),
                        (os, "kill"), (subprocess, "run"), (time, "sleep")):
        setattr(owner, name, _late(getattr(owner, name)))


def _late(step):
    @functools.wraps(step)
    def late(*args, **options):
        _sleep(random.random() * MOST_S)
        return step(*args, **options)
    return late
