"""OpenAI's API over replicas that send plain tokens: the answers' form."""

import json
import re
import socket
import ssl
import subprocess
import time

import pytest

from llmgw.fleet.nginx import version
from llmgw.proc.place import FLAVOUR, SLOW
from llmgw.proc.process import rss_kb
from llmgw.proc.wait import never, readable, still, wait_for
from llmgw.speak import rawh2, sse

SLACK_KB = 65536 if FLAVOUR == "asan" else 8192


def said(prompt):
    """The prompt that a replica reads for a chat with only this message."""
    return f"user: {prompt}\nassistant:"


def fleet(cluster, n=1, openai=True, nginx=None, **replica):
    return cluster.fleet(n, nginx={"openai": openai, **(nginx or {})},
                         replica=replica)


@pytest.fixture(scope="module")
def plain(shared):
    """Three fast replicas, for all tests that break nothing."""
    return shared.fleet(3, nginx={"openai": True})


# --- streams

def test_chat_stream(plain, expect):
    got = sse.call(plain.api, sse.CHAT,
                   sse.chat("hello", stream=True, max_tokens=20))
    assert got.text == ["".join(expect(said("hello"), 20))]
    assert got.finish_reason == ["length"]
    assert (got.roles, got.done, got.error) == (1, 1, None)
    assert len(got.ids) == 1 and re.fullmatch("chatcmpl-[0-9a-f]{32}",
                                              got.ids[0])
    assert got.usage is None


def test_chunks_are_as_openai_writes_them(plain, expect):
    with sse.Connection(plain.api) as c:
        r = c.request(sse.CHAT, sse.chat(
            "form", model="m/1", stream=True, max_tokens=2,
            stream_options={"include_usage": True}))
        *chunks, done = r.wait_events(None)
    assert r.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert r.headers["cache-control"] == "no-cache"
    assert r.headers["x-accel-buffering"] == "no"
    assert int(r.headers["openai-processing-ms"]) >= 0
    assert r.headers["x-request-id"]
    assert done.data == "[DONE]"
    first, second, end, usage = [e.json for e in chunks]
    one, two = expect(said("form"), 2)
    now = time.time()
    for chunk in (first, second, end, usage):
        assert chunk["object"] == "chat.completion.chunk"
        assert chunk["model"] == "m/1"
        assert now - 60 < chunk["created"] <= now + 1

    def choice(delta, reason=None):
        return [{"index": 0, "delta": delta, "logprobs": None,
                 "finish_reason": reason}]
    assert first["choices"] == choice({"role": "assistant", "content": one})
    assert second["choices"] == choice({"content": two})
    assert end["choices"] == choice({}, "length")
    assert {c["usage"] for c in (first, second, end)} == {None}
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 2


def test_completions_stream(plain, expect):
    with sse.Connection(plain.api) as c:
        r = c.request(sse.TEXT, sse.text("once", stream=True, max_tokens=3))
        *chunks, done = [e.data for e in r.wait_events(None)]
    assert done == "[DONE]"
    chunks = [json.loads(c) for c in chunks]
    assert {c["object"] for c in chunks} == {"text_completion"}
    assert chunks[0]["id"].startswith("cmpl-")
    assert [c["choices"][0] for c in chunks] == [
        {"index": 0, "text": t, "logprobs": None, "finish_reason": None}
        for t in expect("once", 3)] + [
        {"index": 0, "text": "", "logprobs": None, "finish_reason": "length"}]
    assert not any("usage" in c for c in chunks)


def test_default_of_tokens(cluster, expect):
    nginx = fleet(cluster, 1, "llmgw_default_max_tokens 7;")
    got = sse.call(nginx.api, sse.TEXT, sse.text("how long", stream=True))
    assert got.text == ["".join(expect("how long", 7))]
    got = sse.call(nginx.api, sse.CHAT,
                   sse.chat("how long", max_completion_tokens=5))
    assert got.usage["completion_tokens"] == 5


# --- whole answers

def test_whole_chat(plain, expect):
    with sse.Connection(plain.api) as c:
        r = c.request(sse.CHAT, sse.chat("all of it", max_tokens=30))
        r.read()
        assert r.status == 200
        assert r.headers["content-type"] == "application/json"
        assert int(r.headers["content-length"]) == len(r.body)
        got = r.json
        assert got.pop("id").startswith("chatcmpl-")
        assert got.pop("created") > 1e9
        assert got == {
            "object": "chat.completion", "model": "mock-model",
            "choices": [{"index": 0, "message": {
                "role": "assistant",
                "content": "".join(expect(said("all of it"), 30))},
                "logprobs": None, "finish_reason": "length"}],
            "usage": {"prompt_tokens": 0, "completion_tokens": 30,
                      "total_tokens": 30,
                      "prompt_tokens_details": {"cached_tokens": 0}}}

        # the same connection, and the next ones
        for n in (1, 2):
            got = sse.result_of(c.request(sse.TEXT,
                                          sse.text("more", max_tokens=n)))
            assert got.text == ["".join(expect("more", n))]
        got = sse.result_of(c.request(sse.TEXT, sse.text(
            "more", max_tokens=9, stream=True)))
        assert got.text == ["".join(expect("more", 9))]


@pytest.mark.soak
def test_long_whole_answer(plain, expect):
    got = sse.call(plain.api, sse.TEXT, sse.text("long", max_tokens=1500))
    assert got.text == ["".join(expect("long", 1500))]


@pytest.mark.soak
def test_curl(plain, expect):
    """HTTP/1.1, HTTP/1.0 and HTTP/2, whole and as a stream."""
    for target, version_ in ((plain.api, "--http1.1"),
                             (plain.api, "--http1.0"),
                             (plain.target, "--http2-prior-knowledge")):
        for stream in (False, True):
            out = subprocess.run(
                ["curl", "-sSN", "--fail-with-body", "-m", "10", version_,
                 f"http://{target}/v1/completions", "-H",
                 "content-type: application/json", "-d",
                 json.dumps(sse.text("curl", max_tokens=9, stream=stream))],
                capture_output=True, text=True, check=True).stdout
            if not stream:
                out = json.loads(out)["choices"][0]["text"]
            else:
                *chunks, done, rest = out.split("\n\n")
                assert (done, rest) == ("data: [DONE]", "")
                out = "".join(json.loads(c[6:])["choices"][0]["text"]
                              for c in chunks)
            assert out == "".join(expect("curl", 9)), (version_, stream)


# --- the replica that serves

@pytest.mark.ring("a key has a home")
def test_key_from_a_header(cluster):
    """Other prompts, one session: one replica."""
    nginx = fleet(cluster, 3, "llmgw_key $http_x_session;")
    for i in range(12):
        sse.call(nginx.api, sse.TEXT, sse.text(f"p{i}", max_tokens=1),
                 headers={"x-session": "same"})
    started = [r.stats().started for r in cluster.replicas.values()]
    assert sorted(started) == [0, 0, 12]
    for i in range(12):
        sse.call(nginx.api, sse.TEXT, sse.text(f"p{i}", max_tokens=1))
    started = [r.stats().started for r in cluster.replicas.values()]
    assert sum(started) == 24 and sorted(started) != [0, 0, 24]


# --- the way out

def gaps(events):
    return [b.at - a.at for a, b in zip(events, events[1:])]


def tls(cluster, options=""):
    """Lines of a server, and a context for its clients."""
    certificate, key = cluster.dir / "server.crt", cluster.dir / "server.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", key, "-out", certificate], check=True, capture_output=True)
    port = cluster.ports.take()
    context = ssl.create_default_context(cafile=certificate)
    return (f"127.0.0.1:{port}", context,
            f"listen 127.0.0.1:{port} ssl{options};"
            f" ssl_certificate {certificate}; ssl_certificate_key {key};")


@pytest.mark.timed
@pytest.mark.alone
@pytest.mark.parametrize("secure", [False, True], ids=["clear", "tls"])
def test_each_token_is_sent_when_it_comes(cluster, expect, secure):
    """The first request of a connection is where Nagle would wait, each time;
    a machine with other work does so now and then."""
    target, context, lines = tls(cluster)
    nginx = fleet(cluster, 1, nginx={"server": lines}, token_delay="30ms")

    def between():
        with sse.Connection(target if secure else nginx.api) as c:
            if secure:
                c.sock = context.wrap_socket(c.sock,
                                             server_hostname="127.0.0.1")
            r = c.request(sse.TEXT, sse.text("pace", max_tokens=30,
                                             stream=True))
            tokens = r.wait_events(31)[:30]
        assert "".join(e.json["choices"][0]["text"] for e in tokens) \
            == "".join(expect("pace", 30))
        return gaps(tokens)

    def is_even(gaps):
        return max(gaps) < 0.080 * SLOW \
            and min(max(a, b) for a, b in zip(gaps, gaps[1:])) > 0.010
    seen = []
    while not any(map(is_even, seen)) and len(seen) < 4:
        seen.append(between())
    assert is_even(seen[-1]), seen


def test_header_and_first_event_come_together(cluster):
    nginx = fleet(cluster, 1)
    cluster.hold(1)
    with sse.Connection(nginx.api) as c:
        c.request(sse.TEXT, sse.text("together", max_tokens=9, stream=True))
        got = c.sock.recv(1 << 16)
    assert got.startswith(b"HTTP/1.1 200") and b"\r\ndata: {" in got
    assert got.endswith(b"\n\n\r\n")


def test_keepalive(cluster):
    nginx = fleet(cluster, 1, "llmgw_sse_keepalive 100ms;")
    cluster.hold()
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.TEXT, sse.text("quiet", max_tokens=2, stream=True))
        never(lambda: readable([c.sock]), 0.3,
              "something before the first token")
        cluster.hold(1)
        r.wait_comments(3)
        cluster.let_go()
        r.wait_events(None)
    first, second = r.events[0].at, r.events[1].at
    assert all(first <= t <= second for t in r.comments)


def test_header_waits_no_longer_than_it_is_told(cluster):
    nginx = fleet(cluster, 1, "llmgw_sse_keepalive 200ms header=400ms;")
    cluster.hold()
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.TEXT, sse.text("quiet", max_tokens=1, stream=True))
        assert r.head().status == 200
        r.wait_comments(2)
        cluster.let_go()
        r.wait_events(None)
    assert r.comments[0] < r.events[0].at and r.events[-1].data == "[DONE]"


@pytest.mark.soak
def test_keepalive_of_a_client_that_reads_again(cluster):
    """It stood still for some of them; nothing but those that come later tells
    it, and what is between, that its stream is alive."""
    nginx = fleet(cluster, 1, "llmgw_sse_keepalive 200ms header=200ms;")
    cluster.hold()
    body = json.dumps(sse.text("quiet", max_tokens=1, stream=True)).encode()

    def ask(c):
        sid = c.request(sse.TEXT, body, content_type="application/json")
        return sid, c.answers[sid]

    def has(c, answer, what, n):
        c.pump(0.01)
        return answer.data.count(what) >= n

    with rawh2.RawH2(nginx.target, window=3) as slow, \
            rawh2.RawH2(nginx.target) as quick:
        slow.reading = False
        sid, got = ask(slow)
        wait_for(lambda: has(slow, got, b": p", 1), what="its whole window")
        _, other = ask(quick)
        wait_for(lambda: has(quick, other, b": ping", 4),
                 what="pings that the slow one cannot get")
        slow.h2.increment_flow_control_window(10000, sid)
        slow.flush()
        wait_for(lambda: has(slow, got, b": ping", 3), "pings")
    assert got.headers[":status"] == "200" and not got.ended


@pytest.mark.soak
def test_keepalive_off(cluster):
    """In a location of a server in which it is on."""
    nginx = fleet(cluster, 1, "llmgw_sse_keepalive off;",
                  nginx={"http": "llmgw_sse_keepalive 50ms;"})
    cluster.hold(1)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.TEXT, sse.text("quiet", max_tokens=2, stream=True))
        r.wait_events(1)
        never(lambda: readable([c.sock]), 0.4, "a ping")
        cluster.let_go()
        r.wait_events(None)
    assert not r.comments and len(r.events) == 4


@pytest.mark.parametrize("secure", [False, pytest.param(
    True, marks=pytest.mark.soak)], ids=["clear", "tls"])
def test_slow_reader_holds_up_the_replica(cluster, expect, secure):
    """Memory is bounded; when the client reads again it gets everything."""
    port = cluster.ports.take()
    target, context, lines = tls(cluster, " sndbuf=32k")
    nginx = fleet(cluster, 1, "send_timeout 60s;", token_delay="0ms", nginx={
        "server": f"{lines} listen 127.0.0.1:{port} sndbuf=32k;"})
    replica, n = cluster.replicas["r1"], 60000
    sse.call(nginx.api, sse.TEXT, sse.text("warm", max_tokens=2000))
    worker, = nginx.workers()
    before = rss_kb(worker)
    with sse.Connection(target if secure else f"127.0.0.1:{port}") as c:
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32768)
        if secure:
            c.sock = context.wrap_socket(c.sock, server_hostname="127.0.0.1")
        r = c.request(sse.TEXT, sse.text("slow", max_tokens=n, stream=True))
        r.wait_events(1)
        made = still(lambda: replica.stats().tokens)
        assert made < n * 0.7, "the replica was never held up"
        assert rss_kb(worker) - before < SLACK_KB
        got = sse.result_of(r, 60)
    assert got.text == ["".join(expect("slow", n))]
    assert (got.done, got.error) == (1, None)


def test_client_that_never_reads_is_dropped(cluster):
    nginx = fleet(cluster, 1, "send_timeout 500ms;", token_delay="0ms")
    replica = cluster.replicas["r1"]
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.TEXT, sse.text("stuck", max_tokens=500000,
                                         stream=True))
        r.wait_events(1)
        wait_for(lambda: replica.stats().active_requests == 0,
                 "the replica to be free")
    wait_for(lambda: "client does not read" in nginx.log(), "the log line")


def test_h2_over_tls(cluster, expect):
    http2 = "" if version() >= (1, 25, 1) else " http2"
    target, _, lines = tls(cluster, http2)
    fleet(cluster, 1, nginx={"server": lines})
    out = subprocess.run(
        ["curl", "-sSNk", "-m", "10", "--http2", "-w", "%{http_version}",
         f"https://{target}/v1/completions", "-H",
         "content-type: application/json", "-d",
         json.dumps(sse.text("h2", max_tokens=9, stream=True))],
        capture_output=True, text=True, check=True).stdout
    *chunks, done, number = out.split("\n\n")
    assert (done, number) == ("data: [DONE]", "2")
    assert "".join(json.loads(c[6:])["choices"][0]["text"]
                   for c in chunks) == "".join(expect("h2", 9))
