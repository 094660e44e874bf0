"""Clocks wrong by days: no member stays out for it, and both sides say so."""

import json
import os
import time

import pytest

from llmgw.proc.place import FLAVOUR
from llmgw.proc.preload import compiled
from llmgw.proc.wait import wait_for

DAYS = 72           # in hours


@pytest.fixture(scope="module")
def shifted_clock(tmp_path_factory):
    return compiled("shifted_clock", tmp_path_factory.mktemp("clock"))


class Clock:
    """The wall clock of one agent."""

    def __init__(self, path, library):
        self.path = path
        self.env = {"LLMGW_TEST_HOURS": str(path), "LD_PRELOAD": library}
        if FLAVOUR == "asan":       # the preload is loaded before its runtime
            self.env["ASAN_OPTIONS"] = ":".join(filter(None, [
                os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
        self.set(0)

    def set(self, hours):
        fresh = self.path.with_suffix(".new")
        fresh.write_text(f"{hours}\n")
        fresh.rename(self.path)


@pytest.fixture
def clock(cluster, shifted_clock):
    """clock(agent): sets its wall clock from its next start on."""
    def make(agent):
        made = Clock(cluster.dir / f"{agent.id}.hours", shifted_clock)
        agent.env = made.env
        return made
    return make


def log(agent):
    return agent.proc.text()


def knows(agent, id):
    return agent.table().get(id, {}).get("state") == "ALIVE"


def clock_drops(agent):
    return status(agent)["counters"]["dropped"].get("clock", 0)


def status(agent):
    return json.loads(agent.ctl("--json", "status").stdout)


def test_agent_started_days_ahead_is_heard_when_its_clock_is_right(cluster,
                                                                   clock):
    gw = cluster.agent("gw", "gateway")
    r1 = cluster.agent("r1", start=False)
    its_clock = clock(r1)
    its_clock.set(DAYS)
    r1.start()
    wait_for(lambda: "epoch of member \"r1\"" in log(gw),
             "the gateway to say so")
    assert f"is {DAYS} hours ahead of this clock" in log(gw)
    wait_for(lambda: clock_drops(gw) > 1, what="two drops")
    assert not knows(gw, "r1"), "an epoch of the future believed"
    assert log(gw).count("epoch of member") == 1
    its_clock.set(0)
    wait_for(lambda: knows(gw, "r1") and knows(r1, "gw"), "r1 to be heard")
    assert "own epoch is 72 hours ahead of this clock" in log(r1)


@pytest.mark.soak
def test_gateways_restart_leaves_an_epoch_of_the_future(cluster, clock):
    """Its segment has that epoch, and others would refuse a higher one."""
    r1 = cluster.agent("r1")
    gw = cluster.agent("gw", "gateway", start=False)
    its_clock = clock(gw)
    its_clock.set(DAYS)
    gw.start()
    wait_for(lambda: "epoch of member \"gw\"" in log(r1), "r1 to say so")
    gw.kill()
    its_clock.set(0)
    gw.start()
    wait_for(lambda: knows(gw, "r1") and knows(r1, "gw"),
             "the gateway to be heard")
    assert "own epoch is" in log(gw)


def test_epoch_of_the_future_in_a_state_directory(cluster, tmp_path):
    gw = cluster.agent("gw", "gateway")
    ahead = int((time.time() + DAYS * 3600) * 1e6)
    file = tmp_path / "r1.epoch"
    file.write_text(f"{ahead}\n")

    def kept_epoch():
        return int(file.read_text())
    r1 = cluster.agent("r1", state_dir=tmp_path)
    wait_for(lambda: knows(gw, "r1"), "r1 to be heard")
    assert f"is {DAYS} hours ahead of this clock" in log(r1) \
        or f"is {DAYS - 1} hours ahead of this clock" in log(r1)
    wait_for(lambda: kept_epoch() < ahead - 71 * 3600 * 1e6,
             "the clock's time in the file")
    kept = kept_epoch()
    r1.stop()
    r1.start()
    wait_for(lambda: knows(gw, "r1") and knows(r1, "gw"),
             "r1 to be heard again")
    assert "ahead of this clock" not in log(r1)
    wait_for(lambda: kept_epoch() > kept, "a later epoch in the file")
