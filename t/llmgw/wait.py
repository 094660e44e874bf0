"""Waiting for facts, with a deadline."""

import time

from .place import SLOW


class TooLate(AssertionError):
    pass


def wait_for(predicate, timeout=5.0, what="it", interval=0.01):
    """Returns what predicate() returns, as soon as that is true.

    The deadline keeps a test from hanging; it is multiplied by place.SLOW.
    A limit that the product must meet is asserted by the test itself.
    """
    deadline = time.monotonic() + timeout * SLOW
    while True:
        got = predicate()
        if got:
            return got
        if time.monotonic() >= deadline:
            raise TooLate(f"waited {timeout * SLOW:g} s for {what}"
                          f", last answer: {got!r}")
        time.sleep(interval)


def never(predicate, during, what="it", interval=0.02):
    """Checks that predicate() stays false for a while."""
    deadline = time.monotonic() + during
    while time.monotonic() < deadline:
        got = predicate()
        assert not got, f"{what}: {got!r}"
        time.sleep(interval)


def still(count, during=0.5, timeout=20):
    """Waits until a count has not changed for a while."""
    deadline, last, since = time.monotonic() + timeout, count(), \
        time.monotonic()
    while time.monotonic() - since < during:
        assert time.monotonic() < deadline, "the count keeps changing"
        time.sleep(0.02)
        now = count()
        if now != last:
            last, since = now, time.monotonic()
    return last
