"""Waiting for facts, with a deadline."""

import time

from .place import SLOW

# What a fact may take on a busy machine, whose processes stand still for a
# while now and then.
PATIENCE = 20.0


class TooLate(AssertionError):
    pass


def wait_for(predicate, timeout=PATIENCE, what="it", interval=0.01):
    """Returns what predicate() returns, as soon as that is true.

    The deadline only keeps a test from hanging: it is never below PATIENCE.
    A limit that the product must meet is asserted by the test itself, or is
    that of within().
    """
    return within(max(timeout, PATIENCE), predicate, what, interval)


def within(seconds, predicate, what="it", interval=0.01):
    """The same, where the product has to be so quick; seconds is multiplied by
    place.SLOW."""
    deadline = time.monotonic() + seconds * SLOW
    while True:
        got = predicate()
        if got:
            return got
        if time.monotonic() >= deadline:
            raise TooLate(f"waited {seconds * SLOW:g} s for {what}"
                          f", last answer: {got!r}")
        time.sleep(interval)


def never(predicate, during, what="it", interval=0.02):
    """Checks that predicate() stays false for a while."""
    deadline = time.monotonic() + during
    while time.monotonic() < deadline:
        got = predicate()
        assert not got, f"{what}: {got!r}"
        time.sleep(interval)


def still(count, during=0.5, timeout=60, interval=0.02):
    """Waits until a count has not changed for a while, and was looked at as
    often as this takes: the while may be one in which nobody ran."""
    deadline = time.monotonic() + timeout * SLOW
    last, since, looks = count(), time.monotonic(), 0
    while time.monotonic() - since < during or looks * interval < during:
        assert time.monotonic() < deadline, "the count keeps changing"
        time.sleep(interval)
        now, looks = count(), looks + 1
        if now != last:
            last, since, looks = now, time.monotonic(), 0
    return last
