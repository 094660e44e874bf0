"""Many members that come, go and move, all the time."""

import itertools
import signal
import socket
import time

import pytest

from llmgw.proc.place import ROOT
from llmgw.proc.preload import compiled
from llmgw.proc.wait import never, wait_for
from llmgw.speak import rpc


class Segment:
    """Members without agents; the newcomers answer at the last port."""

    def __init__(self, cluster, n, period_ms, ports):
        self.path = cluster.dir / "members"
        self.proc = cluster.run("segment", [
            ROOT / "build" / "bench" / "segment", self.path, n, period_ms,
            "still", *ports])
        wait_for(lambda: "ready" in self.proc.text(), "the segment")

    def toggle_changes(self):
        self.proc.send(signal.SIGHUP)

    def list_newcomers(self):
        self.proc.send(signal.SIGUSR1)

    def move_to_the_next_port(self):
        self.proc.send(signal.SIGUSR2)


def gateway(cluster, segment, zone="16m", **options):
    return cluster.nginx(f"llmgw_members {segment.path}; llmgw_hash prefix=64;"
                         f" llmgw_zone churn:{zone};", **options)


# --- one build after another

@pytest.mark.ring("a newcomer is found by its weight")
@pytest.mark.parametrize("members", [
    2000, pytest.param(8000, marks=pytest.mark.soak)])
def test_newcomer_among_many_is_soon_routable(cluster, client, members):
    """One change every 5 ms: each needs a new ring, and a ring of 8000 takes
    longer than that to build."""
    replica = cluster.replica("r", token_delay="0ms")
    segment = Segment(cluster, members, 5, [replica.port])
    nginx = gateway(cluster, segment)
    c, prompts = client(nginx), itertools.count()

    def server_of_the_next():
        got = c.stream(f"prompt {next(prompts)}", 2)
        assert got.code == "OK", (got.code, got.details)
        return got.replicas[0]

    segment.toggle_changes()
    before = nginx.pool()["view"]["generation"]
    wait_for(lambda: nginx.pool()["view"]["generation"] > before + 20,
             "many changes")
    assert server_of_the_next().startswith("m")
    segment.list_newcomers()
    wait_for(lambda: server_of_the_next().startswith("n"),
             "a newcomer's token")
    segment.toggle_changes()


@pytest.mark.soak
def test_build_that_failed_is_tried_again(cluster, tmp_path, monkeypatch):
    no_memory = tmp_path / "no_memory"
    monkeypatch.setenv("FAILING_MALLOC", str(no_memory))
    cluster.allowed.append(r"malloc\(\d+\) failed")
    segment = Segment(cluster, 500, 50, [cluster.ports.take()])
    # the status has room for each slot of the zone in one block: keep it small
    nginx = gateway(cluster, segment, zone="2m",
                    preload=compiled("failing_malloc", tmp_path))

    no_memory.touch()
    segment.list_newcomers()
    wait_for(lambda: "no ring of 504 replicas can be built" in nginx.log(),
             "a build that fails")
    never(lambda: nginx.log().count("no ring of 504 replicas") != 1, 1.5,
          "the next try to be told")        # there is one after 1 s
    assert "n00000" not in nginx.replicas()

    no_memory.unlink()
    wait_for(lambda: "n00000" in nginx.replicas(), "a newcomer on the ring")


# --- an address that moves

@pytest.fixture
def black_hole(cluster):
    """A port that accepts no more connections: SYNs are dropped."""
    port = cluster.ports.take()
    listener = socket.create_server(("127.0.0.1", port), backlog=0)
    fill = []
    for _ in range(3):
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(("127.0.0.1", port))
        fill.append(sock)
    yield port
    for sock in [listener, *fill]:
        sock.close()


@pytest.fixture
def moved(cluster, client, expect, black_hole):
    """moved(timeout): nginx, after its only replica moved to another address
    while a request tried to connect to the first."""
    def make(timeout):
        replica = cluster.replica("r", token_delay="1ms")
        segment = Segment(cluster, 1, 20, [black_hole, replica.port])
        nginx = gateway(cluster, segment,
                        location=f"llmgw_connect_timeout {timeout};")
        call = client(nginx).start("x", 3)
        wait_for(lambda: nginx.in_flight() == 1, "an attempt")
        segment.move_to_the_next_port()
        rpc.drain(call).check(expect("x", 3))
        client(nginx).stream("y", 3).check(expect("y", 3))
        return nginx
    return make


def check_no_failure(nginx):
    assert "did not take the connection" not in nginx.log()
    assert "lost replica" not in nginx.log()
    assert nginx.replicas()["m00000"]["breaker"]["failures"] == 0


def test_address_that_moves_starts_fresh(moved):
    check_no_failure(moved("60s"))


@pytest.mark.soak
def test_time_to_connect_ends_with_the_address(moved):
    nginx = moved("5s")
    time.sleep(5.3)
    check_no_failure(nginx)
