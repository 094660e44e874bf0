"""A stream outlives the replica that began it."""

import itertools
import signal
import socket
import threading
import time

import grpc
import pytest

from llmgw.fleet import words
from llmgw.proc.place import SLOW
from llmgw.proc.wait import wait_for
from llmgw.speak import rawh2, rpc


def serving(nginx):
    """The replica that serves the stream."""
    busy = [i for i, r in nginx.replicas().items() if r["in_flight"]]
    assert len(busy) == 1, busy
    return busy[0]


def begun(c, nginx, cluster, prompt, n, tokens=5):
    """Returns a call that is held after some tokens, its result, its replica.
    """
    start, result = time.monotonic(), rpc.Result()
    cluster.hold(tokens)
    call = c.start(prompt, n)
    for _ in range(tokens):
        result.add(next(call), start)
    return call, result, cluster.replicas[serving(nginx)]


@pytest.mark.policies("weighted")
def test_killed_replica_mid_stream(cluster, client, expect):
    nginx = cluster.fleet()
    c = client(nginx)
    call, result, replica = begun(c, nginx, cluster, "carried over", 40)
    replica.kill()
    cluster.let_go()
    rpc.drain(call, into=result)

    result.check(expect("carried over", 40))
    assert result.replicas[0] == replica.id
    assert len(result.replicas) == 2
    wait_for(lambda: not nginx.counts(), "counts of zero")


def test_two_deaths_in_one_stream(cluster, client, expect):
    nginx = cluster.fleet()
    c = client(nginx)
    call, result, first = begun(c, nginx, cluster, "twice", 40)
    first.kill()
    cluster.hold(10)
    while result.replicas[-1] == first.id:
        result.add(next(call), 0)
    second = cluster.replicas[result.replicas[-1]]
    assert second is not first
    second.kill()
    cluster.let_go()
    rpc.drain(call, into=result)
    result.check(expect("twice", 40))
    assert len(set(result.replicas)) == 3


def test_killed_before_the_first_token(cluster, client, expect):
    nginx = cluster.fleet(2)
    c = client(nginx)
    cluster.hold()
    call = c.start("early", 5)
    wait_for(lambda: nginx.in_flight() == 1, "the stream")
    victim = serving(nginx)
    wait_for(lambda: cluster.replicas[victim].stats().active_requests,
             "the stream at the replica")
    cluster.replicas[victim].kill()
    cluster.let_go()
    got = rpc.drain(call).check(expect("early", 5))
    assert victim not in got.replicas


def test_stalled_replica_by_token_timeout(cluster, client, expect):
    nginx = cluster.fleet(2, nginx={"location": "llmgw_token_timeout 1500ms;"})
    call, result, replica = begun(client(nginx), nginx, cluster, "stall", 40)
    replica.faults(stall=True)
    cluster.let_go()
    rpc.drain(call, into=result)
    result.check(expect("stall", 40))
    assert len(result.replicas) == 2
    wait_for(lambda: replica.stats().active_requests == 0,
             "the stalled stream to be cancelled")


@pytest.mark.timed
def test_token_timeout_spares_a_healthy_stream(cluster, client, expect):
    """It is for one token, and not for all."""
    nginx = cluster.fleet(1, nginx={"location": "llmgw_token_timeout 1500ms;"},
                          replica={"token_delay": "100ms"})
    got = client(nginx).stream("steady", 20).check(expect("steady", 20))
    assert len(got.replicas) == 1


def test_first_token_timeout(cluster, client, expect):
    nginx = cluster.fleet(
        2, nginx={"location": "llmgw_first_token_timeout 1500ms;"})
    c, r1 = client(nginx), cluster.replicas["r1"]
    r1.faults(stall=True)
    for i in itertools.count():
        got = c.stream(f"prompt {i}", 3).check(expect(f"prompt {i}", 3))
        assert got.replicas == ["r2"]
        if r1.stats().started:
            break


@pytest.mark.parametrize("tokens", [0, 2])
def test_silence_lasts_as_long_as_its_time_out(cluster, client, expect,
                                               tokens):
    """If it lasted twice as long, the stream would be slow."""
    nginx = cluster.fleet(2, nginx={
        "location": "llmgw_token_timeout 1500ms;"
                    " llmgw_first_token_timeout 1500ms;"})
    cluster.hold(tokens)
    call = client(nginx).start("silent", 9)
    wait_for(lambda: sum(r.stats().tokens for r in cluster.replicas.values())
             == tokens and nginx.in_flight(), "the tokens")
    silent = serving(nginx)
    for id, replica in cluster.replicas.items():
        if id != silent:
            replica.faults(gate=-1)
    rpc.drain(call).check(expect("silent", 9))


@pytest.mark.soak
def test_frozen_replica(cluster, client, expect):
    nginx = cluster.fleet(2, nginx={"location": "llmgw_token_timeout 1500ms;"})
    call, result, replica = begun(client(nginx), nginx, cluster, "ice", 40)
    replica.proc.freeze()
    other, = (r for r in cluster.replicas.values() if r is not replica)
    other.faults(gate=-1)
    rpc.drain(call, into=result)
    replica.proc.thaw()
    result.check(expect("ice", 40))


def test_connect_timeout(cluster, client, expect):
    """A host that answers no SYN, made by a listener with a full backlog."""
    live = cluster.replica("live")
    with socket.socket() as dead:
        dead.bind(("127.0.0.1", cluster.ports.take()))
        dead.listen(0)
        fill = [socket.socket() for _ in range(3)]
        for s in fill:
            s.setblocking(False)
            s.connect_ex(dead.getsockname())
        target = f"127.0.0.1:{dead.getsockname()[1]}"
        nginx = cluster.nginx(
            f"llmgw_hash; server {live.target}; server {target};",
            location="llmgw_connect_timeout 300ms;")
        c = client(nginx)
        for i in itertools.count():
            c.stream(f"prompt {i}", 2).check(expect(f"prompt {i}", 2))
            if nginx.replicas()[target]["attempts"]:
                break
        for s in fill:
            s.close()


def test_replica_that_ends_streams_early(cluster, client, expect):
    nginx = cluster.fleet(2)
    cluster.replicas["r1"].faults(die_after_tokens=4)
    c, moved = client(nginx), 0
    for i in range(10):
        got = c.stream(f"prompt {i}", 12).check(expect(f"prompt {i}", 12))
        moved += got.replicas == ["r1", "r2"]
    assert moved > 0


def test_replica_that_rejects_all(cluster, client, expect):
    nginx = cluster.fleet(2)
    cluster.replicas["r1"].faults(reject_all=True)
    c = client(nginx)
    for i in range(20):
        got = c.stream(f"prompt {i}", 2)
        got.check(expect(f"prompt {i}", 2))
        assert got.replicas == ["r2"]


def test_all_replicas_reject(cluster, client):
    nginx = cluster.fleet(3)
    for replica in cluster.replicas.values():
        replica.faults(reject_all=True)
    got = client(nginx).stream("nobody", 5)
    assert got.code == "UNAVAILABLE"
    assert got.trailers[words.REASON] == words.TRIES_EXHAUSTED
    assert sum(r.stats().failed for r in cluster.replicas.values()) == 3


@pytest.mark.parametrize("tries", [
    pytest.param(1, marks=pytest.mark.soak), 2])
def test_llmgw_tries(cluster, client, tries):
    nginx = cluster.fleet(3, nginx={"location": f"llmgw_tries {tries};"})
    for replica in cluster.replicas.values():
        replica.faults(reject_all=True)
    got = client(nginx).stream("nobody", 5)
    assert got.trailers[words.REASON] == words.TRIES_EXHAUSTED
    assert sum(r.stats().failed
               for r in cluster.replicas.values()) == tries


@pytest.mark.timed
def test_tries_at_an_only_replica_are_apart(cluster, client):
    """At least 50, 100 and 200 ms; others are asked at once."""
    nginx = cluster.fleet(1, nginx={"pool": "llmgw_breaker off;",
                                    "location": "llmgw_tries 4;"})
    cluster.replicas["r1"].faults(reject_all=True)
    got = client(nginx).stream("nobody", 5)
    assert (got.code, got.trailers[words.REASON]) \
        == ("UNAVAILABLE", words.TRIES_EXHAUSTED)
    assert cluster.replicas["r1"].stats().failed == 4
    assert got.seconds > 0.3


@pytest.mark.soak
def test_only_replica_is_well_again_meanwhile(cluster, client, expect):
    nginx = cluster.fleet(1, nginx={"pool": "llmgw_breaker off;",
                                    "location": "llmgw_tries 100;"})
    r1 = cluster.replicas["r1"]
    r1.faults(reject_all=True)
    call, result = client(nginx).start("later", 5), rpc.Result()
    wait_for(lambda: r1.stats().failed >= 2, "failed tries")
    r1.faults(reject_all=False)
    rpc.drain(call, into=result)
    result.check(expect("later", 5))


@pytest.mark.soak
def test_resumed_stream_pauses_before_it_asks_again(cluster, client, expect):
    nginx = cluster.fleet(1, nginx={"pool": "llmgw_breaker off;",
                                    "location": "llmgw_tries 100;"})
    call, result, r1 = begun(client(nginx), nginx, cluster, "go on", 40)
    r1.faults(reject_all=True, die_after_tokens=1, gate=-1)
    wait_for(lambda: "tries again soon" in nginx.log(), "a pause")
    r1.faults(reject_all=False, die_after_tokens=0)
    rpc.drain(call, into=result)
    result.check(expect("go on", 40))


@pytest.mark.soak
def test_client_leaves_in_a_pause(cluster, client):
    nginx = cluster.fleet(1, nginx={"pool": "llmgw_breaker off;",
                                    "location": "llmgw_tries 100;"})
    r1 = cluster.replicas["r1"]
    r1.faults(reject_all=True)
    call = client(nginx).start("leaves", 5)
    wait_for(lambda: r1.stats().failed >= 4, "pauses of half a second")
    call.cancel()
    wait_for(lambda: nginx.pool()["streams"] == 0,
             "the stream to be gone, long before its tries")


def test_last_replica_dies_mid_stream(cluster, client, expect):
    nginx = cluster.fleet(1, nginx={"pool": "llmgw_queue hold=0;"})
    call, result, replica = begun(client(nginx), nginx, cluster, "alone", 40)
    replica.kill()
    rpc.drain(call, into=result)
    assert result.code == "UNAVAILABLE"
    assert result.trailers[words.REASON] in (words.TRIES_EXHAUSTED,
                                             words.NO_REPLICAS)
    assert result.tokens == expect("alone", 40)[:5]
    assert result.finals == []


# full replicas

def test_full_replica_sends_to_another(cluster, load, expect):
    """The gateway knows the capacity from the members."""
    nginx = cluster.fleet(3, nginx={"hash": "load_factor=0"},
                          replica={"max_capacity": 5})
    cluster.hold()
    jobs = [["all the same", 20]] * 15
    work = load(nginx, jobs)
    wait_for(lambda: [r["in_flight"] for r in nginx.replicas().values()]
             == [5, 5, 5], what="all places to be taken")
    cluster.let_go()
    for got in work.results():
        got.check(expect("all the same", 20))
    assert sum(r.stats().failed for r in cluster.replicas.values()) == 0


def test_replica_says_it_is_full(cluster, load, expect):
    """The gateway does not know; RESOURCE_EXHAUSTED sends it elsewhere."""
    replicas = [cluster.replica(x, token_delay="1ms", max_capacity=5)
                for x in "abc"]
    nginx = cluster.static(replicas, hash="load_factor=0")
    cluster.hold()
    work = load(nginx, [["all the same", 20]] * 12)
    wait_for(lambda: sum(r.stats().active_requests for r in replicas) == 12,
             "a place for each")
    cluster.let_go()
    for got in work.results():
        got.check(expect("all the same", 20))


def test_all_replicas_full_without_a_queue(cluster, client, load, expect):
    nginx = cluster.fleet(2, nginx={"pool": "llmgw_queue off;"},
                          replica={"max_capacity": 3})
    cluster.hold(1)
    work = load(nginx, [[f"{i}", 5] for i in range(6)])
    work.running()
    with rawh2.RawH2(nginx.target) as h:    # grpcio hides the pushback
        got = h.wait(rpc.ask(h, "one too many", 2))
    assert got.grpc_status == 8
    assert got.get(words.REASON) == words.QUEUE_FULL
    assert int(got.get("grpc-retry-pushback-ms")) >= 0
    cluster.let_go()
    assert all(r.code == "OK" for r in work.results())
    client(nginx).stream("now", 2).check(expect("now", 2))


# draining replicas

def test_draining_replica_gets_nothing_new(cluster, load, client, expect):
    nginx = cluster.fleet(2)
    cluster.hold(5)
    work = load(nginx, [[f"{i}", 20] for i in range(20)])
    work.running()
    r1 = cluster.replicas["r1"]
    before = r1.stats().started
    assert r1.client.drain().success
    c = client(nginx)
    for i in range(20):     # even the first, before gossip has it
        got = c.stream(f"new {i}", 1).check(expect(f"new {i}", 1))
        assert got.replicas == ["r2"]
    wait_for(lambda: nginx.routable() == ["r2"], "r1 to be draining")
    assert nginx.replicas()["r1"]["draining"] is True
    cluster.let_go()
    results = work.results()
    for i, got in enumerate(results):           # streams stay where they are
        got.check(expect(f"{i}", 20))
        assert len(got.replicas) == 1
    assert {r.replicas[0] for r in results} == {"r1", "r2"}
    assert r1.stats().started == before

    assert r1.client.undrain().success
    wait_for(lambda: nginx.routable() == ["r1", "r2"], "r1 to be back")


def test_draining_static_replica_uses_up_no_try(cluster, client, expect):
    """The gateway learns it only from the answer, and has a single try."""
    a, b = cluster.replica("a"), cluster.replica("b")
    nginx = cluster.static([a, b], location="llmgw_tries 1;")
    a.client.drain()
    c = client(nginx)
    for i in range(10):
        got = c.stream(f"{i}", 2).check(expect(f"{i}", 2))
        assert got.replicas == [b.target]


def test_stopping_replica_hands_its_streams_over(cluster, load, expect):
    """Its drain timeout is shorter than the streams."""
    nginx = cluster.fleet(2, replica={"drain_timeout": "300ms"})
    cluster.hold(5)
    jobs = [[f"{i}", 20] for i in range(40)]
    work = load(nginx, jobs)
    work.running()
    assert cluster.replicas["r1"].stop() == 0
    cluster.let_go()
    results = work.results()
    for (prompt, n), got in zip(jobs, results):
        got.check(expect(prompt, n))
    assert any(r.replicas == ["r1", "r2"] for r in results)


def test_stopping_replica_finishes_short_streams(cluster, load, expect):
    nginx = cluster.fleet(2)
    cluster.hold(5)
    jobs = [[f"{i}", 20] for i in range(40)]
    work = load(nginx, jobs)
    work.running()
    cluster.replicas["r1"].proc.send(signal.SIGTERM)
    wait_for(lambda: nginx.routable() == ["r2"], "r1 to be draining")
    cluster.let_go()
    results = work.results()
    for (prompt, n), got in zip(jobs, results):
        got.check(expect(prompt, n))
        assert len(got.replicas) == 1
    assert cluster.replicas["r1"].proc.wait() == 0


@pytest.mark.soak
def test_deaths_and_births_under_load(cluster, load, expect):
    """Replicas killed and started one after another; no stream is lost."""
    nginx = cluster.fleet(3, replica={"token_delay": "10ms"},
                          nginx={"location": "llmgw_tries 5;"})
    jobs = [[f"prompt {i}", 30] for i in range(500)]
    work = load(nginx, jobs, connections=4, starts_per_second=100 / SLOW)
    over = threading.Event()

    def finished(id):
        try:
            return cluster.replicas[id].stats().finished
        except grpc.RpcError:       # its connection to the killed one
            return 0

    def renew(id):
        had = cluster.gateway.table()[id]["replica_start"]
        cluster.replicas[id].kill()
        wait_for(lambda: id not in nginx.routable(), f"{id} to be out")
        cluster.replicas[id].start()
        wait_for(lambda: cluster.gateway.table()[id]["replica_start"] != had
                 and id in nginx.routable(), f"{id} to be back")
        wait_for(lambda: over.is_set() or finished(id) >= 8,
                 f"{id} to serve again")

    def churn():
        for id in itertools.cycle(("r1", "r2", "r3")):
            if over.is_set():
                return
            renew(id)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        results = work.results()
    finally:
        over.set()
        thread.join()
    for (prompt, n), got in zip(jobs, results):
        got.check(expect(prompt, n))
