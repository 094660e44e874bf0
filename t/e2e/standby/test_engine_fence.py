"""The lock service dies with the active engine healthy, dead or hung; and what
counts as hung."""

import pytest

from llmgw.proc import place
from llmgw.proc.wait import still, wait_for
from llmgw.speak import rpc
from llmgw.standby.group import Group
from llmgw.standby.lock import slow


# Long enough for an engine that only has no processor.
HANG_MS = 2000
HUNG_S = 4          # until that is over, and the next engine serves


@pytest.fixture
def group(cluster):
    def make(**options):
        return Group(cluster, agents=False, **{
            "service": {"hang_timeout": slow(HANG_MS)}, **options}).start()
    return make


@pytest.mark.soak
def test_engine_and_service_die_together_and_the_standby_is_granted(group):
    g = group()
    a, b = g
    g.service.kill()
    a.kill()
    g.service.start()
    b.wait("ACTIVE")
    assert g.check() == [a.epoch(), b.epoch()]


def test_an_engine_that_was_stopped_is_killed_and_the_standby_serves(group):
    g = group()
    a, b = g
    a.proc.freeze()
    b.wait("ACTIVE", takes=HUNG_S)
    assert not a.proc.alive()
    a.proc.told_to_end = True
    assert b.epoch() > a.epoch()


@pytest.mark.soak
def test_a_stopped_engine_is_fenced_by_a_service_that_was_started_anew(group):
    g = group()
    a, b = g
    a.proc.freeze()
    g.service.kill()
    g.service.start()
    b.wait("ACTIVE")
    assert not a.proc.alive()
    a.proc.told_to_end = True
    assert b.epoch() > a.epoch()


def test_streams_without_progress_are_a_hang(group):
    g = group()
    a, b = g
    calls = [a.client.start("x", 1000, method=rpc.GENERATE) for _ in range(2)]
    for call in calls:
        next(call)
    a.faults(stall=True)
    b.wait("ACTIVE", takes=HUNG_S)
    assert not a.proc.alive()
    a.proc.told_to_end = True
    assert all(rpc.drain(call).code == "UNAVAILABLE" for call in calls)


@pytest.mark.soak
def test_clients_that_do_not_read_are_no_hang(group):
    g = group(token_delay="0ms")
    a, b = g
    call = a.client.start("x", 1_000_000, method=rpc.GENERATE)
    next(call)
    still(lambda: a.client.stats().tokens, interval=0.05,
          during=HANG_MS * 2 / 1000 * place.SLOW)
    assert a.client.stats().active_requests == 1
    assert a.state() == "ACTIVE" and b.state() == "STANDBY"
    call.cancel()
    wait_for(lambda: a.client.stats().active_requests == 0, "its end")
