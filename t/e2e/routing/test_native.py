"""The native passes: our upstream under grpc_pass and proxy_pass."""

import http.client as http_client
import socket
import time

import pytest

from llmgw.fleet.native import (QUEUED, SESSION, at_once, generate, get, grpc,
    http, started)
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc
from llmgw.speak.affinity import homes


def served_by(cluster, act):
    """Calls act(); returns the replica whose counter it moved."""
    before = started(cluster)
    act()
    after = started(cluster)
    return [i for i in after if after[i] > before[i]]


# grpc_pass

@pytest.mark.soak
def test_grpc_pass_generates(cluster, client, expect):
    nginx = cluster.fleet(3, nginx=grpc(SESSION))
    c = client(nginx)
    for i in range(20):
        generate(c, f"s{i}", f"prompt {i}", 5).check(
            expect(f"prompt {i}", 5))
    wait_for(lambda: not nginx.counts(), "counts of zero")


@pytest.mark.ring("a session has a home")
def test_one_session_one_replica(cluster, client, expect):
    nginx = cluster.fleet(3, nginx=grpc(SESSION))
    c, homes = client(nginx), set()
    for i in range(12):
        who = served_by(cluster, lambda: [
            generate(c, f"session {i}", f"prompt {k}").check(
                expect(f"prompt {k}", 3)) for k in range(4)])
        assert len(who) == 1, who
        homes.update(who)
    assert len(homes) > 1


@pytest.mark.ring("a session has a home")
def test_key_of_the_body_is_the_prompt(cluster, client):
    """It gets the same replica as with llmgw_pass."""
    nginx = cluster.fleet(3, nginx=grpc("llmgw_key body;"))
    c = client(nginx)
    for i in range(10):
        home = c.stream(f"prompt {i}", 1).replicas
        who = served_by(cluster, lambda: c.generate(f"prompt {i}", 2))
        assert who == home


@pytest.mark.soak
@pytest.mark.ring("a session has a home")
def test_without_a_key_the_client_is_the_key(cluster, client):
    nginx = cluster.fleet(3, nginx=grpc(""))
    c = client(nginx)
    who = served_by(cluster, lambda: [c.generate(f"prompt {i}", 2)
                                      for i in range(10)])
    assert len(who) == 1


def test_dead_replica_is_retried(cluster, client, expect):
    """grpc_next_upstream does it; with static lines no gossip helps."""
    replicas = [cluster.replica(x, token_delay="1ms") for x in "abc"]
    nginx = cluster.static(replicas, pool="llmgw_breaker off;",
                           **grpc(SESSION))
    replicas[0].kill()
    c = client(nginx)
    for i in range(30):
        generate(c, f"s{i}", f"prompt {i}").check(expect(f"prompt {i}", 3))


@pytest.mark.soak
def test_capacity_without_a_queue(cluster, client):
    """A full pool gives an error at once, and no replica is overloaded."""
    nginx = cluster.fleet(2, nginx=grpc(SESSION),
                          replica={"max_capacity": 1})
    cluster.hold(1)
    c = client(nginx)
    held = [c.start(f"held {i}", 5, method=rpc.GENERATE,
                    metadata=(("x-session", f"{i}"),)) for i in range(2)]
    for call in held:
        next(call)
    got = generate(c, "third")
    assert got.code == "UNAVAILABLE", (got.code, got.details)
    assert nginx.in_flight() == 2           # it waited for neither
    cluster.let_go()
    assert [len(list(call)) for call in held] == [4, 4]
    assert sum(started(cluster).values()) == 2
    assert generate(c, "third").code == "OK"


@pytest.mark.soak
def test_capacity_is_kept_for_both_passes(cluster, load):
    """llmgw_pass and grpc_pass at the same replicas, which have no limit of
    their own."""
    replicas = [cluster.replica(x, token_delay="5ms") for x in "ab"]
    nginx = cluster.nginx(
        "llmgw_hash;" + "".join(f" server {r.target} max_conns=2;"
                                for r in replicas), **grpc(QUEUED))
    works = [load(nginx, [[f"{i}", 8] for i in range(60)], connections=2,
                  method=method, starts_per_second=60, until_told=True)
             for method in ("infer", "generate")]
    peaks = []

    def full():
        peaks.append(max(r.stats().active_requests for r in replicas))
        return peaks.count(2) >= 20
    wait_for(full, "full replicas")
    for work in works:
        work.stop()
    for work in works:
        assert {got.code for got in work.results()} == {"OK"}
    assert max(peaks) == 2


@pytest.mark.soak
def test_waiting_client_of_a_stock_pass_goes(cluster, client):
    nginx = cluster.fleet(1, nginx=grpc(QUEUED),
                          replica={"max_capacity": 1})
    cluster.hold(1)
    c = client(nginx)
    held = c.start("held", 5, method=rpc.GENERATE)
    next(held)
    waiter = c.start("waits", 2, method=rpc.GENERATE)
    wait_for(lambda: nginx.waiting() == 1, "the waiter")
    waiter.cancel()
    wait_for(lambda: nginx.waiting() == 0, "nobody to wait")
    cluster.let_go()
    assert len(list(held)) == 4
    assert started(cluster) == {"r1": 1}


def test_errors_of_a_stock_pass_open_the_circuit(cluster, client):
    """grpc-status counts, not the HTTP status of 200."""
    nginx = cluster.fleet(2, nginx=grpc(
        SESSION, pool="llmgw_breaker cooldown=60s;"))
    r1, c = cluster.replicas["r1"], client(nginx)
    r1.faults(reject_all=True)
    for i in range(40):
        generate(c, f"s{i}")
    assert nginx.replicas()["r1"]["breaker"]["state"] == "open"
    assert nginx.replicas()["r2"]["breaker"]["state"] == "closed"
    failed = r1.stats().failed
    for i in range(20):
        assert generate(c, f"s{i}").code == "OK"
    assert r1.stats().failed == failed
    for i in range(5):      # both passes share what they learn
        assert c.stream(f"p{i}", 1).replicas == ["r2"]


@pytest.mark.soak
def test_clients_faults_open_nothing(cluster, client):
    engine = cluster.pyreplica("strict", end_after=-1, token_delay_ms=1,
                               end_code="INVALID_ARGUMENT")
    nginx = cluster.static([engine], **grpc(SESSION))
    c = client(nginx)
    for i in range(20):
        assert generate(c, f"{i}").code == "INVALID_ARGUMENT"
    assert nginx.replicas()[engine.target]["breaker"]["failures"] == 0


def test_cancels_of_a_stock_pass_open_nothing(cluster, client):
    nginx = cluster.fleet(1, nginx=grpc(SESSION))
    cluster.hold(1)
    c, r1 = client(nginx), cluster.replicas["r1"]
    for i in range(8):
        call = c.start(f"{i}", 5, method=rpc.GENERATE)
        next(call)
        call.cancel()
    wait_for(lambda: r1.stats().cancelled == 8, "the cancels")
    wait_for(lambda: not nginx.counts(), "counts of zero")
    first = nginx.replicas()["r1"]
    assert first["breaker"]["state"] == "closed"
    assert first["breaker"]["failures"] == 0


def test_replica_that_dies_in_a_stock_pass(cluster, client):
    nginx = cluster.fleet(1, nginx=grpc(SESSION))
    cluster.hold(1)
    calls = [client(nginx).start(f"{i}", 5, method=rpc.GENERATE)
             for i in range(3)]
    for call in calls:
        next(call)
    cluster.replicas["r1"].kill()
    assert {rpc.drain(call).code for call in calls} <= {"INTERNAL",
                                                        "UNAVAILABLE"}
    wait_for(lambda: not nginx.counts(), "counts of zero")
    assert nginx.replicas()["r1"]["breaker"]["failures"] == 3


def test_waiter_of_a_stock_pass_outlives_a_quit(cluster, client, expect):
    nginx = cluster.fleet(1, nginx=grpc(QUEUED),
                          replica={"max_capacity": 1})
    cluster.hold(1)
    c = client(nginx)
    held = c.start("held", 5, method=rpc.GENERATE)
    next(held)
    waiter = c.start("waits", 3, method=rpc.GENERATE)
    wait_for(lambda: nginx.waiting() == 1, "the waiter")
    nginx.quit()
    wait_for(lambda: "gracefully shutting down" in nginx.log(), "the quit")
    cluster.let_go()
    rpc.drain(waiter).check(expect("waits", 3))
    assert len(list(held)) == 4
    c.close()           # nginx would linger for it
    assert nginx.proc.wait(2) == 0


# proxy_pass

@pytest.mark.parametrize("key, streams", [(SESSION, True), (QUEUED, False)])
def test_only_a_queue_reads_the_body_first(cluster, engines, key, streams):
    made = engines(1)
    nginx = cluster.static(made, **http(
        key + " proxy_request_buffering off;"))
    with socket.create_connection(("127.0.0.1", nginx.status_port)) as s:
        s.sendall(b"POST /http/x HTTP/1.1\r\nhost: x\r\n"
                  b"connection: close\r\ncontent-length: 10\r\n\r\nhalf ")
        if streams:
            wait_for(lambda: made[0].connections, "the engine's half")
        else:
            wait_for(lambda: nginx.pool()["streams"], "the request")
            assert made[0].connections == 0
        s.sendall(b"whole")
        assert s.makefile("rb").read().endswith(b"a 10")


@pytest.mark.soak
@pytest.mark.ring("a session has a home")
def test_proxy_pass_keeps_a_session(cluster, engines):
    nginx = cluster.static(engines(3), **http(SESSION))
    served = {}
    for i in range(100):
        status, body = get(nginx, f"session {i % 20}")
        assert status == 200
        served.setdefault(i % 20, set()).add(body.split()[0])
    assert all(len(home) == 1 for home in served.values()), served
    assert len(set.union(*served.values())) > 1


@pytest.mark.soak
def test_dead_http_engine_is_retried(cluster, engines):
    made = engines(3)
    nginx = cluster.static(made, **http(SESSION))
    made[0].close()
    for i in range(30):
        status, body = get(nginx, f"session {i}")
        assert (status, body.split()[0] in "bc") == (200, True)


def test_http_pool_without_a_queue_is_full(cluster, engines):
    made = engines(1)
    nginx = cluster.nginx(f"llmgw_hash; server {made[0].target} max_conns=2;",
                          **http(SESSION))
    made[0].open.clear()
    answers = []

    def ask(i):
        answers.append(get(nginx, f"{i}")[0])
        if len(answers) == 4:
            wait_for(lambda: made[0].active == 2, "both to be there")
            made[0].open.set()
    at_once(6, ask)
    assert answers == [502, 502, 502, 502, 200, 200]
    assert made[0].peak == 2


@pytest.mark.soak
def test_http_errors_open_the_circuit(cluster, engines):
    made = engines(2)
    nginx = cluster.static(made, pool="llmgw_breaker cooldown=60s;",
                           **http(SESSION))
    made[0].fails = 500

    def is_open(i):
        assert get(nginx, f"{i}")[0] in (200, 500)
        return nginx.replicas()[made[0].target]["breaker"]["state"] == "open"
    assert any(map(is_open, range(200)))
    started = made[0].started
    assert {get(nginx, f"{i}")[0] for i in range(30)} == {200}
    assert made[0].started == started


@pytest.mark.parametrize("status", [
    429, pytest.param(503, marks=pytest.mark.soak)])
def test_backpressure_opens_nothing(cluster, engines, status):
    made = engines(2)
    nginx = cluster.static(made, **http(SESSION))
    made[0].fails = status
    statuses = {get(nginx, f"{i}")[0] for i in range(60)}
    assert statuses == {200, status}
    first = nginx.replicas()[made[0].target]
    assert first["breaker"]["state"] == "closed"
    assert first["breaker"]["failures"] == 0


@pytest.mark.timed
def test_backpressure_keeps_requests_away_for_a_moment(cluster, engines):
    made = engines(2)
    nginx = cluster.static(made, **http(SESSION))
    made[0].fails = 503
    start = time.monotonic()
    for i in range(60):
        get(nginx, f"{i}")
    took = time.monotonic() - start
    assert made[0].started <= 2 + took / 0.1    # for 100 ms each time


def test_broken_answer_is_a_failure(cluster, engines):
    made = engines(1)
    nginx = cluster.static(made, **http(SESSION))
    made[0].breaks = True
    for i in range(3):
        with pytest.raises(http_client.IncompleteRead):
            get(nginx, f"{i}")
    made[0].breaks = False
    assert get(nginx, "x")[0] == 200
    assert nginx.replicas()[made[0].target]["breaker"]["failures"] == 3
    assert not nginx.counts()


@pytest.mark.soak
def test_client_that_hangs_up_is_no_failure(cluster, engines):
    made = engines(1)
    made[0].open.clear()
    nginx = cluster.static(made, **http(SESSION))
    for i in range(8):
        with pytest.raises(OSError):
            get(nginx, f"{i}", timeout=0.05)
    wait_for(lambda: not nginx.counts(), "counts of zero")
    first = nginx.replicas()[made[0].target]
    assert first["breaker"]["state"] == "closed"
    assert first["breaker"]["failures"] == 0


@pytest.mark.ring("a session has a home")
def test_keepalive_behind_our_lines(cluster, engines):
    made = engines(2)
    nginx = cluster.static(made, pool="keepalive 8;", **http(SESSION))
    of = homes(lambda key: get(nginx, f"{key}")[1], 2)
    for _ in range(20):
        for body, keys in of.items():
            assert get(nginx, f"{keys[0]}")[1] == body
    assert sum(e.started for e in made) == 40 + sum(map(len, of.values()))
    assert [e.connections for e in made] == [1, 1]
    assert not nginx.counts()


@pytest.mark.ring("a session has a home")
def test_kept_connection_that_has_died_is_no_fault(cluster, engines):
    made = engines(2)
    nginx = cluster.static(made, pool="keepalive 8;", **http(SESSION))
    cluster.allowed.append("prematurely closed connection")
    of = homes(lambda key: get(nginx, f"{key}")[1], 2)
    for e in made:
        e.once = True
    for _ in range(12):
        for body, keys in of.items():
            assert get(nginx, f"{keys[0]}") == (200, body)
    assert all(e.connections >= 12 for e in made)
    assert all(r["breaker"]["failures"] == 0
               for r in nginx.replicas().values())


@pytest.mark.ring("the route is affinity")
def test_stock_pass_in_the_log(cluster, client):
    nginx = cluster.fleet(2, nginx=grpc(
        QUEUED + " access_log @dir@/stock.log stock;",
        http="log_format stock '$llmgw_replica $llmgw_route $llmgw_tries"
             " $llmgw_queue_time $llmgw_first_token_time';"))
    who = served_by(cluster, lambda: generate(client(nginx), "s"))
    log = nginx.dir / "stock.log"
    wait_for(lambda: log.exists() and log.read_text(), "the log line")
    replica, route, tries, waited, first = log.read_text().split()
    assert ([replica], route, tries) == (who, "affinity", "1")
    assert 0 <= float(waited) <= float(first) < 10
    told = nginx.pool()["histograms"]
    assert {name: told[name]["count"] for name in told} == {
        **dict.fromkeys(told, 0), "stock_first_byte_seconds": 1,
        "stock_request_seconds": 1}


@pytest.mark.timed
def test_failed_replica_is_left_alone(cluster, client):
    """Later requests know that its connection was refused."""
    replicas = [cluster.replica(x, token_delay="1ms") for x in "ab"]
    nginx = cluster.static(replicas, pool="llmgw_breaker off;",
                           **grpc(SESSION))
    replicas[0].kill()
    c, start = client(nginx), time.monotonic()
    for i in range(40):
        assert generate(c, f"s{i}").code == "OK"
    took = time.monotonic() - start
    n = nginx.log().count("Connection refused")
    assert n >= 1       # 50 ms, then twice as long each time, up to 2 s
    assert sum(min(0.05 * 2 ** i, 2) for i in range(n - 1)) < took + 0.01
