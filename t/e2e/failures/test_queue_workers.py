"""A full pool whose workers die, freeze, or exit."""

import os
import signal
import time

import pytest

from llmgw.fleet.waiters import TWO_WORKERS, check, fill, fleet, held, line_up
from llmgw.proc.wait import wait_for
from llmgw.speak.callers import finish, on_each_worker


@pytest.mark.parametrize("victim", [
    "waiting", pytest.param("serving", marks=pytest.mark.soak)])
def test_killed_worker_takes_only_its_own_with_it(cluster, caller, expect,
                                                  victim):
    """serving: the worker that would have granted the slot is gone."""
    cluster.allowed.append("exited on signal 9")
    nginx = fleet(cluster, 1, 1, **TWO_WORKERS)
    a, b = on_each_worker(nginx, 4, caller)
    pids = [a[3].worker(), b[3].worker()]
    fill(cluster, nginx, [a[0]], 50)
    line_up(nginx, [b[0], a[1], b[1], a[2], b[2]], 3)
    dead, alive = (b, a) if victim == "waiting" else (a, b)
    os.kill(pids[dead is b], signal.SIGKILL)
    cluster.let_go()
    order = finish([c for c in alive if c.sid and c.began],
                   takes=3)     # the sweep runs every second
    assert order == sorted(order, key=lambda c: c.began)
    assert {c.status for c in order} == {0}
    wait_for(lambda: not nginx.counts(), "counts of zero")
    c = caller(nginx)
    assert c.ask("next", 2).wait().tokens == expect("next", 2)


@pytest.mark.soak
def test_stopped_worker_is_passed_over(cluster, caller, expect):
    """Its waiter is first but cannot take the slot, so the next one does; it
    is served when its worker continues."""
    nginx = fleet(cluster, 1, 1, **TWO_WORKERS)
    a, b = on_each_worker(nginx, 3, caller)
    pid = b[2].worker()
    fill(cluster, nginx, [a[0]], 30)
    line_up(nginx, [b[0], a[1], b[1]], 3)
    os.kill(pid, signal.SIGSTOP)
    try:
        cluster.let_go()
        finish(a[:2])
        assert a[1].tokens == expect("waiter 1", 3)
        time.sleep(0.5)         # every grant is stale now
    finally:
        os.kill(pid, signal.SIGCONT)
    assert finish(b[:2]) == b[:2]
    check(b[:2], expect, ["waiter 0", "waiter 2"], 3)


@pytest.mark.timed
def test_newcomer_lets_the_first_one_take_its_time(cluster, caller, expect):
    """A slot is free and granted to a waiter of a slow worker: a request that
    comes then is not served before the waiter's 200 ms are over."""
    nginx = fleet(cluster, 1, 1, **TWO_WORKERS)
    a, b = on_each_worker(nginx, 2, caller)
    pid = b[1].worker()
    fill(cluster, nginx, [a[0]], 2)
    line_up(nginx, [b[0]], 3)
    os.kill(pid, signal.SIGSTOP)
    try:
        goes = time.monotonic()         # the slot is free later than this
        cluster.let_go()
        a[0].wait()
        a[1].ask("newcomer", 3).wait()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert a[1].tokens == expect("newcomer", 3)
    assert a[1].first - goes > 0.2
    check([b[0].wait()], expect, ["waiter 0"], 3)


def test_waiters_outlive_a_reload(cluster, caller, expect):
    nginx = fleet(cluster, 1, 1, "20ms")
    old = set(nginx.workers())
    first = held(cluster, caller, nginx, 1)
    waiters = line_up(nginx, [caller(nginx) for _ in range(3)], 3)
    nginx.reload()
    assert nginx.waiting() == 3
    waiters += line_up(nginx, [caller(nginx) for _ in range(3)], 3)
    cluster.let_go()
    assert finish(waiters) == waiters
    check(waiters, expect, [f"waiter {i % 3}" for i in range(6)], 3)
    assert {c.status for c in finish(first)} == {0}
    for one in first + waiters:
        one.close()         # nginx would linger for them
    wait_for(lambda: not old & set(nginx.workers()), "the old to leave")


@pytest.mark.soak
def test_waiters_outlive_a_quit(cluster, caller, expect):
    nginx = fleet(cluster, 1, 1)
    first = held(cluster, caller, nginx, 1)
    waiters = line_up(nginx, [caller(nginx) for _ in range(3)], 3)
    nginx.quit()
    cluster.let_go()
    assert finish(waiters) == waiters
    check(waiters, expect, [f"waiter {i}" for i in range(3)], 3)
    for one in first + waiters:
        one.close()         # nginx would linger for them
    assert nginx.proc.wait() == 0
