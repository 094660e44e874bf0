"""OpenAI's API while replicas fail, fill up or are missing, and clients go."""

import json
import threading
import time

import pytest

from llmgw import sse
from llmgw.wait import wait_for


def fleet(cluster, n=1, openai=True, pool="", nginx=None, **replica):
    return cluster.fleet(n, nginx={"openai": openai, "pool": pool,
                                   **(nginx or {})}, replica=replica)


class Call(threading.Thread):
    """A call in a thread, for those that run beside each other."""

    def __init__(self, target, body, path=sse.TEXT, **options):
        super().__init__()
        self.args, self.options = (target, path, body), options
        self.result = None
        self.start()

    def run(self):
        self.result = sse.call(*self.args, **self.options)

    def done(self):
        self.join(30)
        return self.result


def busy(cluster):
    return {id: r for id, r in cluster.replicas.items()
            if r.proc.alive() and r.stats().active_requests}


def open_stream(connection, prompt, n=100000, tokens=1, **more):
    r = connection.request(sse.TEXT, sse.text(prompt, stream=True,
                                              max_tokens=n, **more))
    r.wait_events(tokens)
    return r


# --- replicas that die

@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("at", [0, 1, 7, 40])
def test_killed_replica_is_not_noticed(cluster, expect, stream, at):
    nginx = fleet(cluster, 3, token_delay="10ms", first_token_delay="200ms")
    call = Call(nginx.api, sse.text("go on", stream=stream, max_tokens=50))
    replica, = wait_for(lambda: busy(cluster), 5,
                        "a replica to have it").values()
    if at:
        wait_for(lambda: replica.stats().tokens >= at, 5, f"token {at}",
                 interval=0.001)
    replica.kill()
    got = call.done()
    assert got.text == ["".join(expect("go on", 50))]
    assert got.finish_reason == ["length"]
    assert (got.error, got.roles, got.done) == (None, 0, int(stream))
    assert len(got.ids) == 1


def test_stream_that_nobody_can_finish_ends_with_an_error(cluster, expect):
    nginx = fleet(cluster, 1, token_delay="10ms")
    with sse.Connection(nginx.api) as c:
        r = open_stream(c, "alone", tokens=5)
        cluster.replicas["r1"].kill()
        got = sse.result_of(r)
    assert got.done == 0 and got.finish_reason == [None]
    assert got.error["type"] == "server_error"
    assert got.error["code"] in ("tries_exhausted", "no_replicas")
    assert got.text[0] and "".join(expect("alone", 1000)).startswith(
        got.text[0])
    assert r.complete and not r.broken


def test_whole_answer_that_nobody_can_finish(cluster):
    nginx = fleet(cluster, 1, token_delay="10ms")
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.TEXT, sse.text("alone", max_tokens=1000))
        wait_for(lambda: busy(cluster), 5, "the replica to have it")
        cluster.replicas["r1"].kill()
        r.read()
    assert r.status in (502, 503), r.body
    assert r.json["error"]["code"] in ("tries_exhausted", "no_replicas")
    if r.status == 502:
        assert r.headers["x-should-retry"] == "false"


# --- no room

# A second queue before the same replicas, in which nobody waits long.
QUICK = {"http": """upstream quick {{
        llmgw_members {members};
        llmgw_hash;
        llmgw_queue 1 timeout=100ms;
    }}""", "server": "location /quick/ { llmgw_openai quick; }"}


def test_full_queue_and_timeout(cluster, expect):
    members = cluster.dir / "gw.members"
    nginx = fleet(cluster, 1, pool="llmgw_queue 1;", token_delay="20ms",
                  max_capacity=1, nginx={
                      **QUICK, "http": QUICK["http"].format(members=members)})
    with sse.Connection(nginx.api) as c:
        open_stream(c, "busy")
        wait = Call(nginx.api, sse.text("waits", stream=True, max_tokens=1))
        wait_for(lambda: nginx.waiting() == 1, 5, "one in the queue")
        with sse.Connection(nginx.api) as full:
            r = full.request(sse.TEXT, sse.text("full", stream=True))
            r.read()
        assert r.status == 429
        assert r.headers["retry-after"] == "1"
        assert r.headers["retry-after-ms"] == "1000"
        assert "x-should-retry" not in r.headers
        assert r.json["error"]["code"] == "queue_full"
        assert r.json["error"]["type"] == "rate_limit_error"
        got = sse.call(nginx.api, "/quick/v1/completions",
                       sse.text("late", stream=True, max_tokens=1))
        assert got.status == 429
        assert got.error["code"] == "queue_timeout"
    assert wait.done().text == expect("waits", 1)


def test_waiting_request_is_served(cluster, expect):
    nginx = fleet(cluster, 1, token_delay="20ms", max_capacity=1)
    with sse.Connection(nginx.api) as c:
        open_stream(c, "busy")
        calls = [Call(nginx.api, sse.text("later", stream=s, max_tokens=3))
                 for s in (True, False)]
        wait_for(lambda: nginx.waiting() == 2, 5, "both in the queue")
    for call in calls:
        assert call.done().text == ["".join(expect("later", 3))]


def test_no_replicas(cluster):
    nginx = fleet(cluster, 1)
    cluster.replicas["r1"].kill()
    wait_for(lambda: not nginx.routable(), 5, "no routable replica")
    for stream in (True, False):
        got = sse.call(nginx.api, sse.TEXT, sse.text("x", stream=stream))
        assert got.status == 503
        assert (got.error["type"], got.error["code"]) == ("server_error",
                                                          "no_replicas")


def test_deadline(cluster):
    nginx = fleet(cluster, 1, "llmgw_timeout_header X-Stainless-Timeout;",
                  token_delay="50ms", first_token_delay="30s")

    def ask(seconds, **more):
        with sse.Connection(nginx.api) as c:
            start = time.monotonic()
            r = c.request(sse.TEXT, sse.text("slow", max_tokens=1000, **more),
                          headers={"x-stainless-timeout": seconds})
            return r, sse.result_of(r), time.monotonic() - start
    r, got, took = ask("0.2", stream=True)      # before the first token
    assert (r.status, got.error["code"]) == (504, "deadline_exceeded")
    assert r.headers["x-should-retry"] == "false"
    assert took > 0.19
    r, got, took = ask("0.5")                   # a whole answer
    assert (r.status, got.error["type"]) == (504, "timeout_error")
    cluster.replicas["r1"].faults(first_token_delay_ms=50)
    r, got, took = ask("1.5", stream=True)      # in the stream
    assert r.status == 200 and got.text[0] and not got.done
    assert got.error["code"] == "deadline_exceeded"


# --- clients that go

def leave(connection, how):
    {"close": connection.close, "reset": connection.reset,
     "half": connection.half_close}[how]()


@pytest.mark.parametrize("how", ["close", "reset", "half"])
def test_client_that_goes_frees_the_replica(cluster, how):
    """In the stream, in prefill, waiting for a whole answer, in the queue.  No
    token comes that could not be sent: its end alone tells of it."""
    nginx = fleet(cluster, 1, "llmgw_token_timeout 60s;", token_delay="60s",
                  first_token_delay="1ms", max_capacity=1)
    replica = cluster.replicas["r1"]

    def freed(connection, what):
        before = replica.stats().cancelled
        leave(connection, how)
        wait_for(lambda: replica.stats().cancelled == before + 1, 10, what)
        connection.close()

    c = sse.Connection(nginx.api)
    open_stream(c, "streaming")
    freed(c, "stream")
    replica.faults(first_token_delay_ms=60000)
    for stream in (True, False):
        c = sse.Connection(nginx.api)
        c.request(sse.TEXT, sse.text("prefill", stream=stream))
        wait_for(lambda: busy(cluster), 5, "the replica to have it")
        freed(c, f"prefill, stream {stream}")
    replica.faults(first_token_delay_ms=1)
    c = sse.Connection(nginx.api)
    open_stream(c, "holds the place")
    waiting = sse.Connection(nginx.api)
    waiting.request(sse.TEXT, sse.text("waits"))
    wait_for(lambda: nginx.waiting() == 1, 5, "one in the queue")
    leave(waiting, how)
    wait_for(lambda: nginx.waiting() == 0, 10, "an empty queue")
    waiting.close()
    c.close()


def test_client_that_goes_with_its_request(cluster):
    """The end of the connection comes in the same segment as the body."""
    nginx = fleet(cluster, 1, token_delay="50ms")
    replica = cluster.replicas["r1"]
    body = json.dumps(sse.text("gone", max_tokens=1000)).encode()
    for n in range(1, 6):
        with sse.Connection(nginx.api) as c:
            c.send(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\n"
                   b"content-type: application/json\r\ncontent-length: "
                   + str(len(body)).encode() + b"\r\n\r\n" + body)
            c.half_close()
            wait_for(lambda: n == nginx.log().count("client prematurely closed")
                     and not replica.stats().active_requests, 5,
                     "the request to be given up")


def test_pipelined_bytes_are_no_end(cluster, expect):
    nginx = fleet(cluster, 1, token_delay="5ms")
    with sse.Connection(nginx.api) as c:
        first = c.request(sse.TEXT, sse.text("a", stream=True, max_tokens=40))
        first.wait_events(3)
        second = c.request(sse.TEXT, sse.text("b", max_tokens=3))
        assert sse.result_of(first).text == ["".join(expect("a", 40))]
        assert sse.result_of(second).text == ["".join(expect("b", 3))]


# --- what is told of it

def test_variables_and_metrics(cluster):
    nginx = cluster.fleet(1, replica={"token_delay": "5ms"}, nginx={
        "openai": "access_log @dir@/openai.log openai;",
        "http": "log_format openai '$llmgw_model|$llmgw_prompt_tokens|"
                "$llmgw_completion_tokens|$llmgw_cached_tokens|"
                "$llmgw_finish_reason|$llmgw_code|$llmgw_request_id';",
        "server": "location = /metrics { llmgw_metrics; }"})
    sse.call(nginx.api, sse.TEXT, sse.text("x", "m1", max_tokens=3),
             headers={"x-request-id": "one"})
    with sse.Connection(nginx.api) as c:
        r = open_stream(c, "x", model="m2", tokens=2)
        got = len(r.events)
    log = nginx.dir / "openai.log"
    wait_for(lambda: log.read_text().count("\n") == 2, 5, "two lines")
    first, second = log.read_text().splitlines()
    assert first == "m1|0|3|0|length|OK|one"
    model, prompt, sent, cached, finish, code, _ = second.split("|")
    assert (model, prompt, cached, finish, code) \
        == ("m2", "0", "0", "-", "CANCELLED")
    assert int(sent) >= got
    wait_for(lambda: (
        f'llmgw_openai_tokens_total{{upstream="llm",kind="completion"}}'
        f" {3 + int(sent)}\n") in nginx.get("/metrics")[1].decode(), 5,
        "both to be counted")
