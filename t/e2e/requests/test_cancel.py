"""A client's deadline and a client that goes away reach the replica."""

import statistics
import time

import grpc
import pytest

from llmgw import rawh2, rpc
from llmgw.place import SLOW
from llmgw.wait import wait_for

LIMIT = 0.050 * SLOW


def test_deadline_ends_a_slow_stream(cluster, client):
    nginx = cluster.fleet(1, replica={"token_delay": "100ms"})
    replica = cluster.replicas["r1"]
    c = client(nginx)
    c.stream("warm", 1)
    before = replica.stats().cancelled

    call = c.start("slow", 1000, timeout=2)
    next(call)
    got = rpc.drain(call)
    assert got.code == "DEADLINE_EXCEEDED"
    wait_for(lambda: replica.stats().cancelled == before + 1, 10,
             "the replica's stream to be cancelled")
    assert replica.stats().active_requests == 0


def test_gateway_keeps_the_deadline_itself(cluster):
    """The client sends it as a header but would wait for ever itself."""
    nginx = cluster.fleet(1, replica={"token_delay": "100ms"})
    for value in ("300m", "300000u"):
        with rawh2.RawH2(nginx.target) as h:
            start = time.monotonic()
            sid = rpc.ask(h, "slow", 1000, [("grpc-timeout", value)])
            answer = h.wait(sid)
            took = time.monotonic() - start
        assert answer.grpc_status == 4, vars(answer)
        assert took >= 0.29         # and 1000 tokens would take 100 s
        assert rawh2.unframe(answer.data)[1] == b""


def test_deadline_before_the_first_token(cluster):
    nginx = cluster.fleet(1, replica={"first_token_delay": "30s"})
    with rawh2.RawH2(nginx.target) as h:
        sid = rpc.ask(h, "slow", 5, [("grpc-timeout", "200m")])
        assert h.wait(sid).grpc_status == 4


def _seconds_till_cancelled(replica, act):
    before = replica.stats().cancelled
    start = time.monotonic()
    act()
    wait_for(lambda: replica.stats().cancelled > before, 5,
             "the cancel at the replica", interval=0.001)
    return time.monotonic() - start


@pytest.mark.alone
def test_cancel_reaches_the_replica(cluster, client):
    nginx = cluster.fleet(1, replica={"token_delay": "20ms"})
    replica, c, took = cluster.replicas["r1"], client(nginx), []
    for _ in range(5):
        call = c.start("cancelled", 10000)
        next(call)
        took.append(_seconds_till_cancelled(replica, call.cancel))
        with pytest.raises(grpc.RpcError):
            next(call)
    assert statistics.median(took) <= LIMIT, took
    assert replica.stats().active_requests == 0


def test_cancel_before_the_first_token(cluster, client):
    nginx = cluster.fleet(1, replica={"first_token_delay": "30s"})
    replica, c = cluster.replicas["r1"], client(nginx)
    call = c.start("cancelled", 10)
    wait_for(lambda: replica.stats().active_requests == 1, 5, "the stream")
    _seconds_till_cancelled(replica, call.cancel)


@pytest.mark.alone
def test_killed_client_reaches_the_replica(cluster, load):
    nginx = cluster.fleet(1, replica={"token_delay": "20ms"})
    replica, took = cluster.replicas["r1"], []
    for _ in range(3):
        work = load(nginx, [["killed", 10000]])
        work.running()
        took.append(_seconds_till_cancelled(replica, work.proc.kill))
    assert statistics.median(took) <= LIMIT, took
    assert replica.stats().active_requests == 0


def test_killed_client_with_many_streams(cluster, load):
    nginx = cluster.fleet(replica={"token_delay": "20ms"})
    work = load(nginx, [[f"killed {i}", 10000] for i in range(150)],
                connections=3)
    work.running()
    work.proc.kill()
    wait_for(lambda: sum(r.stats().cancelled
                         for r in cluster.replicas.values()) == 150, 10,
             "150 cancelled streams")
    wait_for(lambda: not nginx.counts(), 5, "counts of zero")
