"""OpenAI's API while replicas fail, fill up or are missing, and clients go."""

import json
import threading

import pytest

from llmgw.fleet import words
from llmgw.proc.wait import Stopwatch, never, wait_for
from llmgw.speak import sse


def fleet(cluster, n=1, openai=True, pool="llmgw_queue hold=0;", nginx=None,
          **replica):
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

@pytest.mark.parametrize("at, stream", [
    (0, True), (7, True), (7, False),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in
      ((0, False), (1, True), (1, False), (40, True), (40, False)))])
def test_killed_replica_is_not_noticed(cluster, expect, stream, at):
    nginx = fleet(cluster, 3)
    cluster.hold(at)
    call = Call(nginx.api, sse.text("go on", stream=stream, max_tokens=50))
    replica, = wait_for(lambda: busy(cluster), "a replica to have it").values()
    wait_for(lambda: replica.stats().tokens == at, f"{at} tokens")
    replica.kill()
    cluster.let_go()
    got = call.done()
    assert got.text == ["".join(expect("go on", 50))]
    assert got.finish_reason == ["length"]
    assert (got.error, got.roles, got.done) == (None, 0, int(stream))
    assert len(got.ids) == 1


def test_stream_that_nobody_can_finish_ends_with_an_error(cluster, expect):
    nginx = fleet(cluster, 1)
    cluster.hold(5)
    with sse.Connection(nginx.api) as c:
        r = open_stream(c, "alone", tokens=5)
        cluster.replicas["r1"].kill()
        got = sse.result_of(r)
    assert got.done == 0 and got.finish_reason == [None]
    assert got.error["type"] == "server_error"
    assert got.error["code"] in (words.TRIES_EXHAUSTED, words.NO_REPLICAS)
    assert got.text == ["".join(expect("alone", 5))]
    assert r.complete and not r.broken


def test_silence_lasts_as_long_as_its_time_out(cluster, expect):
    """Pings to the client are no sign of the replica.  If the silence lasted
    twice as long, the answer would be slow."""
    nginx = fleet(cluster, 2, "llmgw_sse_keepalive 200ms;"
                              " llmgw_token_timeout 1500ms;")
    cluster.hold(1)
    with sse.Connection(nginx.api) as connection:
        watch = Stopwatch()
        r = open_stream(connection, "silent", 9)
        silent, = busy(cluster)
        for id, replica in cluster.replicas.items():
            if id != silent:
                replica.faults(gate=-1)
        r.wait_comments(2)
        got = sse.result_of(r)
        watch.over("the end of a stream that fell silent")
    assert "".join(got.text) == "".join(expect("silent", 9))


def test_whole_answer_that_nobody_can_finish(cluster):
    nginx = fleet(cluster, 1)
    cluster.hold(5)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.TEXT, sse.text("alone", max_tokens=9))
        wait_for(lambda: busy(cluster), "the replica to have it")
        cluster.replicas["r1"].kill()
        r.read()
    assert r.status in (502, 503), r.body
    assert r.json["error"]["code"] in (words.TRIES_EXHAUSTED,
                                       words.NO_REPLICAS)
    if r.status == 502:
        assert r.headers["x-should-retry"] == "false"


# --- no room

# A second queue before the same replicas, in which no request waits long.
QUICK = {"http": """upstream quick {{
        llmgw_members {members};
        llmgw_hash;
        llmgw_queue 1 timeout=100ms;
    }}""", "server": "location /quick/ { llmgw_openai quick; }"}


def test_full_queue_and_timeout(cluster, expect):
    members = cluster.dir / "gw.members"
    nginx = fleet(cluster, 1, pool="llmgw_queue 1;", max_capacity=1, nginx={
        **QUICK, "http": QUICK["http"].format(members=members)})
    cluster.hold(1)
    with sse.Connection(nginx.api) as c:
        open_stream(c, "busy")
        wait = Call(nginx.api, sse.text("waits", stream=True, max_tokens=1))
        wait_for(lambda: nginx.waiting() == 1, "one in the queue")
        with sse.Connection(nginx.api) as full:
            r = full.request(sse.TEXT, sse.text("full", stream=True))
            r.read()
        assert r.status == 429
        assert r.headers["retry-after"] == "1"
        assert r.headers["retry-after-ms"] == "1000"
        assert "x-should-retry" not in r.headers
        assert r.json["error"]["code"] == words.QUEUE_FULL
        assert r.json["error"]["type"] == "rate_limit_error"
        got = sse.call(nginx.api, "/quick/v1/completions",
                       sse.text("late", stream=True, max_tokens=1))
        assert got.status == 429
        assert got.error["code"] == words.QUEUE_TIMEOUT
    cluster.let_go()
    assert wait.done().text == expect("waits", 1)


@pytest.mark.soak
def test_waiting_request_is_served(cluster, expect):
    nginx = fleet(cluster, 1, max_capacity=1)
    cluster.hold(1)
    with sse.Connection(nginx.api) as c:
        open_stream(c, "busy")
        calls = [Call(nginx.api, sse.text("later", stream=s, max_tokens=3))
                 for s in (True, False)]
        wait_for(lambda: nginx.waiting() == 2, "both in the queue")
    cluster.let_go()
    for call in calls:
        assert call.done().text == ["".join(expect("later", 3))]


def test_no_replicas(cluster):
    nginx = fleet(cluster, 1)
    cluster.replicas["r1"].kill()
    wait_for(lambda: not nginx.routable(), "no routable replica")
    for stream in (True, False):
        with sse.Connection(nginx.api) as c:
            r = c.request(sse.TEXT, sse.text("x", stream=stream))
            got = sse.result_of(r)
        assert got.status == 503
        assert (got.error["type"], got.error["code"]) == ("server_error",
                                                          words.NO_REPLICAS)
        assert r.headers["retry-after"] == "1"
        assert r.headers["retry-after-ms"] == "1000"
        assert "x-should-retry" not in r.headers


def test_deadline(cluster):
    nginx = fleet(cluster, 1, "llmgw_timeout_header X-Stainless-Timeout;")
    cluster.hold()

    def ask(seconds, **more):
        with sse.Connection(nginx.api, takes=4) as c:
            r = c.request(sse.TEXT, sse.text("slow", max_tokens=9, **more),
                          headers={"x-stainless-timeout": seconds})
            return r, sse.result_of(r)
    r, got = ask("0.2", stream=True)            # before the first token
    assert (r.status, got.error["code"]) == (504, words.DEADLINE_EXCEEDED)
    assert r.headers["x-should-retry"] == "false"
    r, got = ask("0.3")                         # a whole answer
    assert (r.status, got.error["type"]) == (504, "timeout_error")
    cluster.hold(2)
    r, got = ask("1.5", stream=True)            # in the stream
    assert r.status == 200 and got.text[0] and not got.done
    assert got.error["code"] == words.DEADLINE_EXCEEDED


# --- clients that go

def leave(connection, how):
    {"close": connection.close, "reset": connection.reset,
     "half": connection.half_close}[how]()


@pytest.mark.parametrize("how", ["close", *(
    pytest.param(how, marks=pytest.mark.soak) for how in ("reset", "half"))])
def test_client_that_goes_frees_the_replica(cluster, how):
    """In the stream, in prefill, waiting for a whole answer, in the queue.  No
    token comes that could not be sent: only its end shows the failure."""
    nginx = fleet(cluster, 1, max_capacity=1)
    replica = cluster.replicas["r1"]
    cluster.hold(1)

    def freed(connection, what):
        before = replica.stats().cancelled
        leave(connection, how)
        wait_for(lambda: replica.stats().cancelled == before + 1, what)
        connection.close()

    c = sse.Connection(nginx.api)
    open_stream(c, "streaming")
    freed(c, "stream")
    cluster.hold()
    for stream in (True, False):
        c = sse.Connection(nginx.api)
        c.request(sse.TEXT, sse.text("prefill", stream=stream))
        wait_for(lambda: busy(cluster), "the replica to have it")
        freed(c, f"prefill, stream {stream}")
    cluster.hold(1)
    c = sse.Connection(nginx.api)
    open_stream(c, "holds the place")
    waiting = sse.Connection(nginx.api)
    waiting.request(sse.TEXT, sse.text("waits"))
    wait_for(lambda: nginx.waiting() == 1, "one in the queue")
    leave(waiting, how)
    wait_for(lambda: nginx.waiting() == 0, "an empty queue")
    waiting.close()
    c.close()


def test_client_that_goes_with_its_request(cluster):
    """The end of the connection comes in the same segment as the body."""
    nginx = fleet(cluster, 1)
    replica = cluster.replicas["r1"]
    cluster.hold(1)
    body = json.dumps(sse.text("gone", max_tokens=9)).encode()
    for n in range(1, 6):
        with sse.Connection(nginx.api) as c:
            c.send(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\n"
                   b"content-type: application/json\r\ncontent-length: "
                   + str(len(body)).encode() + b"\r\n\r\n" + body)
            c.half_close()
            wait_for(lambda: n == nginx.log().count("client prematurely closed")
                     and not replica.stats().active_requests,
                     "the request to be given up")


def test_pipelined_bytes_are_no_end(cluster, expect):
    nginx = fleet(cluster, 1)
    cluster.hold(3)
    with sse.Connection(nginx.api) as c:
        first = c.request(sse.TEXT, sse.text("a", stream=True, max_tokens=40))
        first.wait_events(3)
        second = c.request(sse.TEXT, sse.text("b", max_tokens=3))
        never(lambda: not nginx.in_flight(), 0.2, "an end of the first")
        cluster.let_go()
        assert sse.result_of(first).text == ["".join(expect("a", 40))]
        assert sse.result_of(second).text == ["".join(expect("b", 3))]


# --- what is told of it

def test_variables_and_metrics(cluster):
    nginx = cluster.fleet(1, nginx={
        "openai": "access_log @dir@/openai.log openai;",
        "http": "log_format openai '$llmgw_model|$llmgw_prompt_tokens|"
                "$llmgw_completion_tokens|$llmgw_cached_tokens|"
                "$llmgw_finish_reason|$llmgw_code|$llmgw_request_id';",
        "server": "location = /metrics { llmgw_metrics; }"})
    sse.call(nginx.api, sse.TEXT, sse.text("x", "m1", max_tokens=3),
             headers={"x-request-id": "one"})
    cluster.hold(2)
    with sse.Connection(nginx.api) as c:
        r = open_stream(c, "x", model="m2", tokens=2)
        got = len(r.events)
    log = nginx.dir / "openai.log"
    wait_for(lambda: log.read_text().count("\n") == 2, "two lines")
    first, second = log.read_text().splitlines()
    assert first == "m1|0|3|0|length|OK|one"
    model, prompt, sent, cached, finish, code, _ = second.split("|")
    assert (model, prompt, cached, finish, code) \
        == ("m2", "0", "0", "-", "CANCELLED")
    assert int(sent) == got == 2
    wait_for(lambda: (
        f'llmgw_openai_tokens_total{{upstream="llm",kind="completion"}}'
        f" {3 + int(sent)}\n") in nginx.get("/metrics")[1].decode(),
        "both to be counted")
