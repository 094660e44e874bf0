"""A client's deadline and a client that goes away reach the replica."""

import statistics
import time

import grpc
import pytest

from llmgw.proc.place import SLOW
from llmgw.proc.wait import wait_for
from llmgw.speak import rawh2, rpc

LIMIT = 0.050 * SLOW


def test_deadline_ends_a_slow_stream(cluster, client):
    nginx = cluster.fleet(1)
    replica = cluster.replicas["r1"]
    c = client(nginx)
    c.stream("warm", 1)
    before = replica.stats().cancelled

    cluster.hold(1)
    call = c.start("slow", 2, timeout=1)
    next(call)
    got = rpc.drain(call)
    assert (got.code, got.tokens) == ("DEADLINE_EXCEEDED", [])
    wait_for(lambda: replica.stats().cancelled == before + 1,
             "the replica's stream to be cancelled")
    assert replica.stats().active_requests == 0


def test_gateway_keeps_the_deadline_itself(cluster):
    """The client sends it as a header but would wait for ever itself."""
    nginx = cluster.fleet(1)
    cluster.hold(1)
    for value in ("300m", "300000u"):
        with rawh2.RawH2(nginx.target) as h:
            sid = rpc.ask(h, "slow", 2, [("grpc-timeout", value)])
            answer = h.wait(sid)
        assert answer.grpc_status == 4, vars(answer)
        assert rawh2.unframe(answer.data)[1] == b""


@pytest.mark.soak
def test_deadline_before_the_first_token(cluster):
    nginx = cluster.fleet(1)
    cluster.hold()
    with rawh2.RawH2(nginx.target) as h:
        sid = rpc.ask(h, "slow", 5, [("grpc-timeout", "200m")])
        assert h.wait(sid).grpc_status == 4


def _seconds_till_cancelled(replica, act):
    before = replica.stats().cancelled
    start = time.monotonic()
    act()
    wait_for(lambda: replica.stats().cancelled > before,
             "the cancel at the replica", interval=0.001)
    return time.monotonic() - start


def test_cancel_reaches_the_replica(cluster, client):
    nginx = cluster.fleet(1)
    replica, c = cluster.replicas["r1"], client(nginx)
    cluster.hold(1)
    call = c.start("cancelled", 2)
    next(call)
    _seconds_till_cancelled(replica, call.cancel)
    with pytest.raises(grpc.RpcError):
        next(call)
    assert replica.stats().active_requests == 0


@pytest.mark.soak
def test_cancel_before_the_first_token(cluster, client):
    nginx = cluster.fleet(1)
    replica, c = cluster.replicas["r1"], client(nginx)
    cluster.hold()
    call = c.start("cancelled", 10)
    wait_for(lambda: replica.stats().active_requests == 1, "the stream")
    _seconds_till_cancelled(replica, call.cancel)


def test_killed_client_with_many_streams(cluster, load):
    nginx = cluster.fleet(2)
    cluster.hold(1)
    work = load(nginx, [[f"killed {i}", 2] for i in range(60)],
                connections=3)
    work.running()
    work.proc.kill()
    wait_for(lambda: sum(r.stats().cancelled
                         for r in cluster.replicas.values()) == 60,
             "60 cancelled streams")
    wait_for(lambda: not nginx.counts(), "counts of zero")


@pytest.mark.alone
@pytest.mark.timed
def test_cancel_is_quick(cluster, client):
    nginx = cluster.fleet(1)
    replica, c, took = cluster.replicas["r1"], client(nginx), []
    cluster.hold(1)
    for _ in range(5):
        call = c.start("cancelled", 2)
        next(call)
        took.append(_seconds_till_cancelled(replica, call.cancel))
    assert statistics.median(took) <= LIMIT, took


@pytest.mark.alone
@pytest.mark.timed
def test_killed_client_is_noticed_quickly(cluster, load):
    nginx = cluster.fleet(1)
    replica, took = cluster.replicas["r1"], []
    cluster.hold(1)
    for _ in range(3):
        work = load(nginx, [["killed", 2]])
        work.running()
        took.append(_seconds_till_cancelled(replica, work.proc.kill))
    assert statistics.median(took) <= LIMIT, took
    assert replica.stats().active_requests == 0
