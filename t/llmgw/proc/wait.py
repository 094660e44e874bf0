"""Waiting for facts.

No test compares a time with a bound, but a product that stands still for
seconds is broken all the same.  So each wait has two limits.  At PATIENCE the
fact is given up: TooLate.  And a fact that comes, but not within QUICK (or what
the test says that it takes), makes the test `slow` (conftest.py), which is
handled as an expired wait is: it is run again by itself (gate/again.py).  What
the machine kept from the processes of the test is not counted (contention.py).
"""

import select
import time

from .contention import Contention
from .place import SLOW

# What a fact may take on a busy machine, whose processes stand still for a
# while now and then.
PATIENCE = 20.0

# What it takes if nothing is wrong and nobody says more.
QUICK = 2.0

contention = Contention()
slow = []           # of the test that runs: what took too long


class TooLate(AssertionError):
    pass


class Stopwatch:
    """One wait: made when it begins."""

    def __init__(self, takes=QUICK):
        self.began, self.lost = time.monotonic(), contention.total
        self.takes = max(takes, QUICK) * SLOW

    @property
    def seconds(self):
        return time.monotonic() - self.began

    def over(self, what):
        """The fact came."""
        if self.seconds <= self.takes:
            return
        seconds = self.seconds - (contention.lost() - self.lost)
        if seconds > self.takes:
            slow.append(f"{seconds:.1f} s, and not {self.takes:g}, for {what}")


def readable(fds, seconds=0):
    """Those of the descriptors or sockets that have something to read, or
    their end; waits so long for the first.  select() knows none above 1,023."""
    by_fd = {fd if isinstance(fd, int) else fd.fileno(): fd for fd in fds}
    poll = select.poll()
    for fd in by_fd:
        poll.register(fd, select.POLLIN)
    return [by_fd[fd] for fd, _ in poll.poll(seconds * 1000)]


def wait_for(predicate, what="it", takes=QUICK, interval=0.01):
    """Returns what predicate() returns, as soon as that is true.

    takes: seconds, if the product needs more than QUICK for it by its own
    timers.  A limit that the product must meet is that of within().
    """
    watch = Stopwatch(takes)
    got = within(max(takes, PATIENCE), predicate, what, interval)
    watch.over(what)
    return got


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
        if time.monotonic() >= deadline:
            raise TooLate("the count keeps changing")
        time.sleep(interval)
        now, looks = count(), looks + 1
        if now != last:
            last, since, looks = now, time.monotonic(), 0
    return last
