"""A standby group in states that no plan foresees: a clock that went back."""

import os

import pytest

from llmgw.place import FLAVOUR
from llmgw.preload import compiled
from llmgw.standby import Group


@pytest.fixture
def an_hour_ahead(cluster, tmp_path):
    """The environment of a daemon whose wall clock is wrong."""
    hours = cluster.dir / "hours"
    hours.write_text("1\n")
    env = {"LD_PRELOAD": compiled("shifted_clock", tmp_path),
           "LLMGW_TEST_HOURS": str(hours)}
    if FLAVOUR == "asan":           # the preload is loaded before its runtime
        env["ASAN_OPTIONS"] = ":".join(filter(None, [
            os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
    return env


def test_a_waiter_brings_the_epoch_back_that_the_service_lost(
        cluster, an_hour_ahead):
    """Its clock is right again, its file deleted, and the holder is dead: what
    gossip has of that holder must not outdo the next one for an hour."""
    g = Group(cluster, agents=False)
    g.service.env = an_hour_ahead
    a, b = g.start()
    before = a.epoch()
    g.service.kill()
    a.kill()
    g.service.state.unlink()
    g.service.env = None
    g.service.start()
    b.wait("ACTIVE")
    assert b.epoch() > before
