"""Several runs of pytest share the tests: each takes the next one that none
of the others has.

All of them collect the same list in the same order, so the number of the next
test, in a file under a lock, is all that they share.  Tests that share a
module's fixture stay together.  These and the tests marked `first` begin
before the others, so that nothing long is left for the end.  With an order, a
word, they come in the random order that it is the seed of.
"""

import fcntl
import random
import time

import pytest


class Share:
    """A pytest plugin.  path: the file, empty at the beginning.  seconds: none
    begins later."""

    def __init__(self, path, order=None, seconds=float("inf")):
        self.path, self.order = path, order
        self.end = time.monotonic() + seconds

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        if session.testsfailed:
            return None             # in collection: pytest reports it itself
        mine = self._mine(session.items)
        item = next(mine, None)
        while item is not None:
            after = next(mine, None)    # decides which fixtures are kept
            item.config.hook.pytest_runtest_protocol(item=item,
                                                     nextitem=after)
            if session.shouldfail or session.shouldstop:
                raise session.Interrupted(session.shouldfail
                                          or session.shouldstop)
            item = after
        return True

    def _mine(self, items):
        pieces = _pieces(items)
        if self.order:
            random.Random(self.order).shuffle(pieces)
        while time.monotonic() < self.end \
                and (number := self._take()) < len(pieces):
            yield from pieces[number]

    def _take(self):
        """The next number."""
        with open(self.path, "r+") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            number = int(f.read() or 0)
            f.seek(0)
            f.write(str(number + 1))
        return number


def _pieces(items):
    """Groups of tests, each for one run."""
    pieces = {}
    for item in items:
        key = item.module if _is_of_module(item) else item
        pieces.setdefault(key, []).append(item)
    return sorted(pieces.values(), key=lambda piece: not (
        len(piece) > 1 or piece[0].get_closest_marker("first")))


def _is_of_module(item):
    return any(defs[-1].scope == "module"
               for defs in item._fixtureinfo.name2fixturedefs.values())
