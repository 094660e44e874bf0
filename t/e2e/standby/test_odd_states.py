"""A standby group in unusual states: a clock that went back, a log without a
reader."""

import fcntl
import os
import signal
import subprocess

import pytest

from llmgw.proc.place import FLAVOUR
from llmgw.proc.preload import compiled
from llmgw.proc.wait import wait_for
from llmgw.standby.group import Group
from llmgw.standby.lock import slow


class Clock:
    """The wall clock of the daemons that have its environment."""

    def __init__(self, cluster, library):
        self.path = cluster.dir / "hours"
        self.env = {"LD_PRELOAD": library, "LLMGW_TEST_HOURS": str(self.path)}
        if FLAVOUR == "asan":       # the preload is loaded before its runtime
            self.env["ASAN_OPTIONS"] = ":".join(filter(None, [
                os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))

    def ahead(self, hours):
        fresh = self.path.with_suffix(".new")
        fresh.write_text(f"{hours}\n")
        fresh.rename(self.path)


@pytest.fixture
def clock(cluster, tmp_path):
    return Clock(cluster, compiled("shifted_clock", tmp_path))


def test_group_is_served_again_when_its_hosts_clock_is_set_right(cluster,
                                                                 clock):
    """It was two days ahead, as before NTP has answered: gossip refuses such
    an epoch, and those above it."""
    gw = cluster.agent("gw", "gateway")
    g = Group(cluster)
    clock.ahead(48)
    for one in g:
        one.env = one.agent.env = clock.env
    g.service.env = clock.env
    a, b = g.start()
    wrong = a.epoch()

    a.proc.told_to_end = True
    clock.ahead(0)
    assert a.proc.wait(5) == 1
    assert "the epoch is more than 24 h ahead of the clock" in a.proc.text()
    b.wait("ACTIVE", takes=4)
    assert 0 < b.epoch() < wrong
    assert g.service.proc.text().count("it is given up") == 1
    wait_for(lambda: (gw.table().get("b") or {}).get("group_epoch")
             == b.epoch(), "the gateway to know it", takes=6)
    a.start().wait("STANDBY")
    b.kill()
    a.wait("ACTIVE")
    assert a.epoch() > b.epoch()


def test_a_waiter_brings_the_epoch_back_that_the_service_lost(cluster,
                                                              clock):
    """Its clock is right again, its file deleted, and the holder is dead: what
    gossip has of that holder must not outdo the next one for an hour."""
    g = Group(cluster, agents=False)
    clock.ahead(1)
    g.service.env = clock.env
    a, b = g.start()
    before = a.epoch()
    wait_for(lambda: g.service.group()["waiters"], "b to be told of it")
    g.service.kill()
    a.kill()
    g.service.state.unlink()
    g.service.env = None
    g.service.start()
    b.wait("ACTIVE")
    assert b.epoch() > before


def fill(pipe):
    """Nothing more goes into it until it is read."""
    flags = fcntl.fcntl(pipe, fcntl.F_GETFL)
    fcntl.fcntl(pipe, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    try:
        for size in (4096, 1):
            try:
                while True:
                    os.write(pipe, b"." * size)
            except BlockingIOError:
                pass
    finally:
        fcntl.fcntl(pipe, fcntl.F_SETFL, flags)


def read_until(pipe, text):
    seen = b""
    while text not in seen:
        seen += os.read(pipe, 4096)


@pytest.mark.soak
def test_a_wake_ends_in_time_though_its_log_is_blocked(cluster):
    """Each of its threads may block in a write(2), and it must not be killed
    for that."""
    g = Group(cluster, ids=["b"], agents=False, waking_timeout=slow(300),
              service={"fence": "wait"})
    holder = g.service.start_settled().engine("a")
    holder.wait("active")
    reader, writer = os.pipe()
    b = subprocess.Popen(g["b"].argv, stderr=writer)
    try:
        read_until(reader, b"STANDBY")
        wait_for(lambda: g.service.group()["waiters"], "it to wait")
        fill(writer)
        holder.kill()
        assert b.wait(timeout=20) == -signal.SIGALRM
    finally:
        b.kill()
        b.wait()
        os.close(reader)
        os.close(writer)
