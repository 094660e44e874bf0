"""Native passes that queue: llmgw_key ... queue=."""

import concurrent.futures
import contextlib
import http.client as http_client
import socket
import urllib.error
import urllib.request

import pytest

from llmgw.fleet import words
from llmgw.fleet.native import (GRPC, HTTP, QUEUED, at_once, generate, get,
    grpc, http, started)
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc
from llmgw.speak.affinity import homes


def test_queue_of_a_stock_pass(cluster, load, expect):
    nginx = cluster.fleet(2, nginx=grpc(QUEUED, workers=2),
                          replica={"max_capacity": 2})
    jobs = [[f"prompt {i}", 5] for i in range(40)]
    results = load(nginx, jobs, connections=4, method="generate",
                   metadata=[["x-session", "all the same"]]).results()
    for (prompt, n), got in zip(jobs, results):
        got.check(expect(prompt, n))
    assert sum(started(cluster).values()) == 40     # none was refused
    wait_for(lambda: not nginx.counts(), "counts of zero")


def test_full_queue_of_a_stock_pass(cluster, client):
    nginx = cluster.fleet(1, nginx=grpc(QUEUED, pool="llmgw_queue 1;"),
                          replica={"max_capacity": 1})
    cluster.hold(1)
    c = client(nginx)
    held = c.start("held", 5, method=rpc.GENERATE)
    next(held)
    waiter = c.start("waits", 2, method=rpc.GENERATE)
    wait_for(lambda: nginx.waiting() == 1, "the waiter")
    got = generate(c, "one too many")
    assert got.code in ("RESOURCE_EXHAUSTED", "UNAVAILABLE")
    assert (nginx.in_flight(), nginx.waiting()) == (1, 1)   # as before
    cluster.let_go()
    assert [len(list(x)) for x in (held, waiter)] == [4, 2]


@pytest.fixture
def aside():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield pool.submit


def thirty(nginx, made, aside):
    """30 requests at once to two servers of two slots; their answers."""
    for e in made:
        e.open.clear()
    answers = aside(at_once, 30, lambda i: get(nginx, f"{i}",
                                               body=b"x" * 1000))
    wait_for(lambda: nginx.waiting() == 26
             and all(e.active == 2 for e in made), "no free slot")
    for e in made:
        e.open.set()
    return answers.result()


@pytest.mark.soak
def test_http_engines_are_not_oversold(cluster, engines, aside):
    made = engines(2, delay=0.02)
    nginx = cluster.nginx(
        "llmgw_hash;" + "".join(f" server {e.target} max_conns=2;"
                                for e in made), **http(QUEUED))
    answers = thirty(nginx, made, aside)
    assert {status for status, _ in answers} == {200}
    assert {body.split()[1] for _, body in answers} == {"1000"}
    assert max(e.peak for e in made) == 2
    assert sum(e.started for e in made) == 30


def test_large_body_waits_and_arrives(cluster, engines, aside):
    """It is larger than client_body_buffer_size, so it waits in a file."""
    made = engines(1)
    made[0].open.clear()
    nginx = cluster.nginx(f"llmgw_hash; server {made[0].target} max_conns=1;",
                          **http(QUEUED + " client_max_body_size 8m;"))
    answers = aside(at_once, 3, lambda i: get(nginx, f"{i}",
                                              body=b"x" * 1000000))
    wait_for(lambda: nginx.waiting() == 2, "two to wait")
    made[0].open.set()
    assert answers.result() == [(200, "a 1000000")] * 3
    assert made[0].peak == 1


def test_queue_with_keepalive(cluster, engines, aside):
    """No engine is oversold."""
    made = engines(2, delay=0.02)
    nginx = cluster.nginx(
        "llmgw_hash;" + "".join(f" server {e.target} max_conns=2;"
                                for e in made) + " keepalive 8;",
        **http(QUEUED))
    answers = thirty(nginx, made, aside)
    assert {status for status, _ in answers} == {200}
    assert {body.split()[1] for _, body in answers} == {"1000"}
    assert max(e.peak for e in made) == 2
    assert sum(e.started for e in made) == 30
    assert max(e.connections for e in made) <= 4


def one_dead_of(cluster, engines, n):
    """n servers of two slots each; the first has just died."""
    made = engines(n, delay=0.02)
    nginx = cluster.nginx(
        "llmgw_hash;" + "".join(f" server {e.target} max_conns=2;"
                                for e in made), **http(QUEUED))
    made[0].close()
    return made, nginx


def test_failed_try_waits_again(cluster, engines):
    """The other servers are full by then, but each request is served."""
    made, nginx = one_dead_of(cluster, engines, 3)
    for k in range(3):
        answers = at_once(16, lambda i: get(nginx, f"{k} {i}", body=b"x" * 9))
        assert {status for status, _ in answers} == {200}, answers
    assert max(e.peak for e in made) == 2
    assert "no live upstreams" not in nginx.log()
    wait_for(lambda: not nginx.counts(), "counts of zero")


@pytest.mark.soak
def test_failed_try_of_a_grpc_pass_waits_again(cluster, client):
    replicas = [cluster.replica(x, token_delay="1ms") for x in "ab"]
    nginx = cluster.nginx(
        "llmgw_hash;" + "".join(f" server {r.target} max_conns=1;"
                                for r in replicas), **grpc(QUEUED))
    replicas[0].kill()
    c = client(nginx)
    answers = at_once(8, lambda i: generate(c, f"s{i}"))
    assert {got.code for got in answers} == {"OK"}, answers
    wait_for(lambda: not nginx.counts(), "counts of zero")


def failed_try(cluster, engines, pool="", lines=""):
    """Two servers of one slot: the first dead, the second busy until it is
    let go on.  Returns nginx, a session of each, and the second server.
    """
    made = engines(2)
    nginx = cluster.nginx(
        "llmgw_hash;" + "".join(f" server {e.target} max_conns=1;"
                                for e in made) + pool, **http(QUEUED + lines))
    of = homes(lambda key: get(nginx, f"{key}")[1].split()[0], 2)
    made[0].close()
    made[1].open.clear()
    return nginx, {name: f"{keys[0]}" for name, keys in of.items()}, made[1]


def refusals(nginx):
    """{reason: count}"""
    return {r["reason"]: r["count"]
            for r in nginx.pool()["totals"]["requests"] if r["reason"]}


@contextlib.contextmanager
def black_hole(port):
    """A server that answers no SYN: its backlog is full."""
    with contextlib.ExitStack() as stack:
        dead = stack.enter_context(socket.socket())
        dead.bind(("127.0.0.1", port))
        dead.listen(0)
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(dead.getsockname())
        yield f"127.0.0.1:{port}"


@pytest.mark.soak
def test_server_that_refused_is_tried_by_one_at_a_time(cluster, engines,
                                                       aside):
    engine, = engines(1, delay=0.1)
    with black_hole(cluster.ports.take()) as dead:
        nginx = cluster.nginx(
            f"llmgw_hash; server {dead} max_conns=4;"
            f" server {engine.target} max_conns=4; llmgw_breaker off;",
            **http(QUEUED + " proxy_connect_timeout 200ms;"))

        def is_found(key):
            assert get(nginx, f"{key}")[0] == 200
            return "connection timed out" in nginx.log().lower()
        assert any(map(is_found, range(100)))
        engine.open.clear()
        answers = aside(at_once, 40, lambda i: get(nginx, f"{i}"))
        seen = []

        def tried():
            seen.append(nginx.replicas()[dead]["in_flight"])
            return seen.count(1) > 20
        wait_for(tried, "tries of the dead one")
        engine.open.set()
        while not answers.done():
            tried()
        assert {status for status, _ in answers.result()} == {200}
    assert max(seen) == 1, seen


@pytest.mark.ring("a session has a home")
@pytest.mark.parametrize("lines", [
    " proxy_connect_timeout 100ms;",
    pytest.param("", marks=pytest.mark.soak)],
    ids=["short connect timeout", ""])
def test_failed_try_waits_for_the_queues_time(cluster, engines, aside, lines):
    nginx, of, second = failed_try(cluster, engines,
                                   " llmgw_queue timeout=400ms;", lines)
    held = aside(get, nginx, of["b"])
    wait_for(nginx.in_flight, "the second server to be held")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(
            f"http://127.0.0.1:{nginx.status_port}/http/x", data=b"x",
            headers={"X-Session": of["a"]}), timeout=20)
    assert refused.value.code == 503
    assert refused.value.headers["retry-after"] == "1"
    refused.value.close()
    wait_for(lambda: refusals(nginx) == {words.QUEUE_TIMEOUT: 1},
             "the refusal to be counted")
    assert nginx.in_flight() == 1
    second.open.set()
    assert held.result()[0] == 200
    assert "timed out" not in nginx.log()
    wait_for(lambda: not nginx.counts(), "counts of zero")


@pytest.mark.soak
@pytest.mark.ring("a session has a home")
def test_client_leaves_a_failed_try_that_waits(cluster, engines, aside):
    nginx, of, second = failed_try(cluster, engines)
    held = aside(get, nginx, of["b"])
    wait_for(nginx.in_flight, "the second server to be held")
    with socket.create_connection(("127.0.0.1", nginx.status_port)) as s:
        s.sendall(f"GET /http/x HTTP/1.1\r\nHost: x\r\nX-Session: {of['a']}"
                  "\r\n\r\n".encode())
        wait_for(nginx.waiting, "the failed try to wait")
    wait_for(lambda: nginx.waiting() == 0, "its place to be free")
    second.open.set()
    assert held.result()[0] == 200
    wait_for(lambda: not nginx.counts(), "counts of zero")


@pytest.mark.ring("a session has a home")
def test_reload_while_a_failed_try_waits(cluster, engines, aside):
    nginx, of, second = failed_try(cluster, engines)
    held = aside(get, nginx, of["b"])
    wait_for(nginx.in_flight, "the second server to be held")
    waits = aside(get, nginx, of["a"], body=b"x" * 1000)
    wait_for(nginx.waiting, "the failed try to wait")
    nginx.reload()
    second.open.set()
    assert held.result()[0] == 200
    assert waits.result() == (200, "b 1000")
    wait_for(lambda: not nginx.counts(), "counts of zero")


def test_waiting_for_too_long(cluster, engines, client):
    """The refusal is in the client's protocol, and says when to retry."""
    made = engines(1)
    made[0].open.clear()
    nginx = cluster.nginx(
        f"llmgw_hash; server {made[0].target} max_conns=1;"
        " llmgw_queue 10 timeout=1s;",
        server=HTTP.format(lines=QUEUED) + GRPC.format(lines=QUEUED))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        held = pool.submit(get, nginx, "held")
        wait_for(nginx.in_flight, "the first request")
        waits = pool.submit(generate, client(nginx), "waits")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(
                f"http://127.0.0.1:{nginx.status_port}/http/x")
        assert refused.value.code == 503
        assert refused.value.headers["retry-after"] == "1"
        got = waits.result()
        assert got.code == "RESOURCE_EXHAUSTED"
        assert got.trailers[words.REASON] == words.QUEUE_TIMEOUT
        assert int(got.trailers["grpc-retry-pushback-ms"]) > 0
        got = generate(client(nginx), "waits", timeout=0.1)
        assert got.code == "DEADLINE_EXCEEDED"
        made[0].open.set()
        assert held.result()[0] == 200
    wait_for(lambda: not nginx.counts(), "counts of zero")


def test_client_that_hangs_up_leaves_the_line(cluster, engines):
    made = engines(1)
    made[0].open.clear()
    nginx = cluster.nginx(f"llmgw_hash; server {made[0].target} max_conns=1;",
                          **http(QUEUED))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        held = pool.submit(get, nginx, "held")
        wait_for(nginx.in_flight, "the first request")
        with pytest.raises(OSError):
            get(nginx, "gone", body=b"x" * 100, timeout=0.2)
        wait_for(lambda: nginx.waiting() == 0, "nobody to wait")
        made[0].open.set()
        assert held.result()[0] == 200
    wait_for(lambda: not nginx.counts(), "counts of zero")
    assert made[0].started == 1


def test_error_page_does_not_wait_again(cluster, engines):
    made = engines(1)
    spare = engines(1)[1]
    made[0].open.clear()
    nginx = cluster.nginx(
        f"llmgw_hash; server {made[0].target} max_conns=1;"
        " llmgw_queue 10 timeout=100ms;",
        server="error_page 503 413 = /sorry; location = /sorry {"
        f" {QUEUED} proxy_pass http://{spare.target}; }}"
        + HTTP.format(lines=QUEUED + " client_max_body_size 10;"))
    cluster.allowed.append("intended to send too large chunked body")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        held = pool.submit(get, nginx, "held")
        wait_for(nginx.in_flight, "the first request")
        assert get(nginx, "waits") == (200, "a 0")
        assert spare.started == 1
        made[0].open.set()
        assert held.result()[0] == 200
    chunks = http_client.HTTPConnection("127.0.0.1", nginx.status_port,
                                        timeout=10)
    chunks.request("POST", "/http/x", iter([b"x" * 50]),
                   encode_chunked=True)
    assert chunks.getresponse().status == 200
    chunks.close()
    assert spare.started == 2
    wait_for(lambda: not nginx.counts(), "counts of zero")


def test_lease_of_a_request_that_is_sent_elsewhere(cluster, engines):
    made = engines(1)
    nginx = cluster.nginx(
        f"llmgw_hash; server {made[0].target} max_conns=1;",
        server=HTTP.format(lines=QUEUED) + f"""
        location /tried/ {{{{
            {QUEUED}
            try_files /none /http/there;
            proxy_pass http://llm;
        }}}}
        location /never/ {{{{
            {QUEUED}
            try_files /none =404;
            proxy_pass http://llm;
        }}}}""".format())
    for _ in range(3):
        assert get(nginx, "s", path="/tried/x") == (200, "a 0")
        assert get(nginx, "s", path="/never/x")[0] == 404
    assert not nginx.counts()
