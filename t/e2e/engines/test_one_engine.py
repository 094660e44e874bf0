"""A replica before an engine behind HTTP: what lies between Generate and the
engine's socket."""

import json
import os
import ssl
import subprocess
import threading
import time

import pytest

from llmgw.fleet.certs import Authority
from llmgw.proc import place
from llmgw.proc.process import rss_kb
from llmgw.proc.wait import QUICK, still, wait_for
from llmgw.speak import generate, rawh2, rpc, sse

SHAPES = ("bytes", "crlf", "cr", "comments", "fields", "multiline", "nospace",
          "big", "trailer", "1xx")


def body(prompt="hi len=20;", stream=True, **more):
    return sse.chat(prompt, stream=stream, **more)


def ready(replica):
    wait_for(lambda: replica.client.check() == "SERVING",
             f"{replica.id} to serve")
    return replica


def adapter(cluster, engine, id=None, **options):
    """A replica before an engine, without an agent.  An engine whose streams
    are held is not called hung."""
    options.setdefault("stall_timeout", "60s")
    return ready(cluster.replica(id or f"r-{engine.id}",
                                 engine=options.pop("kind", engine.kind),
                                 engine_url=engine.url, **options))


@pytest.fixture(scope="module")
def engine(shared):
    return shared.engine()


@pytest.fixture(scope="module")
def replica(shared, engine):
    return adapter(shared, engine)


@pytest.fixture
def faults(engine):
    """Sets the shared engine's faults for one test."""
    used = {}

    def set(**values):
        used.update(values)
        return engine.faults(**values)
    yield set
    engine.faults(**dict.fromkeys(used))


def ask(replica, *args, features=0, **kw):
    return generate.ask(replica.client, body(*args, **kw), features=features)


def posts(engine):
    return engine.events("request", path=sse.CHAT)


def test_stream_through_generate(engine, replica):
    """Text, ids and usage are those that the engine gave."""
    right = sse.call(engine.target, sse.CHAT,
                     body(stream_options={"include_usage": True}))
    got = ask(replica)
    assert got.whole, got
    assert got.text == right.text[0]
    assert got.finish == {0: "stop"} and len(got.ids) == got.usage[1]
    assert got.usage == (right.usage["prompt_tokens"],
                         right.usage["completion_tokens"])
    chunks = [json.loads(m.data) for m in got.messages if m.data]
    assert {c["id"] for c in chunks} == {"chatcmpl-1"}
    assert ask(replica).ids == got.ids


def test_requests_to_the_engine(engine, replica):
    """No Expect, no compression, no key, and never an id twice."""
    for _ in range(3):
        assert ask(replica).whole
    heads = [dict(r["headers"]) for r in posts(engine)[-3:]]
    for head in heads:
        assert "expect" not in head and "authorization" not in head
        assert head["accept-encoding"] == "identity"
        assert head["content-type"] == "application/json"
        assert head["x-request-id"].startswith("ask-")
    assert len({head["x-request-id"] for head in heads}) == 3


@pytest.mark.soak
def test_large_body_is_sent_at_once(engine, replica):
    """curl asks for `100 Continue` from a megabyte on, unless told not to."""
    got = ask(replica, "hi len=3;", user="x" * 2_000_000)
    assert got.whole, got
    head = dict(posts(engine)[-1]["headers"])
    assert "expect" not in head and int(head["content-length"]) > 2_000_000


@pytest.mark.soak
@pytest.mark.parametrize("shape", SHAPES)
def test_stream_of_any_shape(engine, replica, faults, shape):
    right = ask(replica, "shapes len=12;")
    faults(shape=shape)
    got = ask(replica, "shapes len=12;")
    assert got.whole, got
    assert (got.text, got.ids, got.usage) == (right.text, right.ids,
                                              right.usage)


@pytest.mark.soak
def test_compressed_answer_is_an_error_that_says_so(replica, faults):
    faults(shape="gzip")
    got = ask(replica)
    assert got.code == "INTERNAL" and "compresses" in got.details, got


@pytest.mark.timed
def test_token_leaves_as_it_comes(replica, faults):
    faults(token_delay=0.05)
    got = ask(replica, "slow len=40;")     # not each of them is a character
    gaps = [b - a for a, b in zip(got.times, got.times[1:])]
    assert got.whole and sum(g > 0.025 for g in gaps) >= 10, gaps


# --- errors

def test_full_engine_is_no_failure(replica, faults):
    for status in (429, 503):
        faults(status=status, times=1)
        got = ask(replica)
        assert got.code == "RESOURCE_EXHAUSTED" and not got.messages, got


@pytest.mark.soak
def test_broken_engine_is_unavailable(replica, faults):
    faults(status=500, times=1)
    got = ask(replica)
    assert got.code == "UNAVAILABLE" and not got.messages, got


@pytest.mark.soak
def test_early_error_in_a_stream_of_200(replica, faults):
    """The first event decides: nothing was sent before it."""
    faults(error_at=0)
    got = ask(replica)
    assert got.code == "UNAVAILABLE" and not got.messages, got


@pytest.mark.parametrize("how", ("close_at", "end_at", *(
    pytest.param(how, marks=pytest.mark.soak)
    for how in ("reset_at", "error_at"))))
def test_stream_that_breaks_is_not_asked_again(engine, replica, faults, how):
    """Least of all one that ends cleanly, without a finish_reason."""
    before = len(posts(engine))
    faults(**{how: 5})
    got = ask(replica)
    assert got.code == "UNAVAILABLE", got
    assert len(got.ids) == 5 and not got.finish
    assert len(posts(engine)) == before + 1


# --- connections

@pytest.mark.timed
def test_idle_connections_are_left_before_the_engine_closes_them(
        engine, replica, faults):
    """The engine closes them after 5 s; within the last one we would race."""
    def four():
        """All at once, on four connections."""
        faults(hang=True)
        calls = [generate.start(replica.client, body("len=5;"))
                 for _ in range(4)]
        wait_for(lambda: engine.state()["running"] == 4, "all four")
        faults(hang=None)
        assert all(generate.drain(c).whole for c in calls)

    wait_for(lambda: not engine.state()["running"], "an idle engine")
    begin = time.monotonic()
    four()
    time.sleep(4.3)
    four()
    conn_of = {r["id"]: r["conn"] for r in posts(engine)}
    last, opened = {}, 0
    for row in engine.events():
        conn = row.get("conn")
        if row["t"] < begin:
            continue
        if row["event"] == "connect":
            opened += 1
        elif row["event"] == "request":
            assert row["t"] - last.get(conn, row["t"]) < 4.2, row
        if conn:
            last[conn] = row["t"]
        if row["event"] in ("end", "place") and row["id"] in conn_of:
            last[conn_of[row["id"]]] = row["t"]
    assert opened >= 8


@pytest.mark.soak
def test_no_request_is_lost_to_connections_that_engines_close(cluster):
    """They close them at the moment in which we send."""
    engine = cluster.engine(keep_alive=0.05)
    replica = adapter(cluster, engine)
    for i in range(60):
        got = ask(replica, f"{i} len=2;")
        assert got.whole, got
        time.sleep(0.045 + 0.0002 * i)


class Closer:
    """An HTTP server that is told what to do with each request's number on
    its connection."""

    def __init__(self, port, script, certificate=None):
        import socketserver
        owner = self
        self.seen, self.script = [], script

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                number = 0
                while (head := self.head()) is not None:
                    number += 1
                    if not owner.answer(self, head, number):
                        return

            def head(self):
                lines, size = [], 0
                while (line := self.rfile.readline()) not in (b"", b"\r\n"):
                    lines.append(line.decode().rstrip())
                    if lines[-1].lower().startswith("content-length:"):
                        size = int(lines[-1].split(":")[1])
                if not lines:
                    return None
                self.rfile.read(size)
                return lines[0]

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = daemon_threads = True
        self.server = Server(("127.0.0.1", port), Handler)
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{port}"
        if certificate:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(certificate)
            self.server.socket = tls.wrap_socket(self.server.socket,
                                                 server_side=True)
        threading.Thread(target=self.server.serve_forever).start()

    def answer(self, handler, head, number):
        """False: the connection is closed."""
        method, path, _ = head.split()
        if method == "GET":
            text = json.dumps({"object": "list", "data": [
                {"id": "mock-model", "object": "model"}]}).encode()
            handler.wfile.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                b"connection: close\r\ncontent-length: %d\r\n\r\n%s"
                % (len(text), text))
            return False
        self.seen.append(number)
        return self.script(handler, number)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


CHUNK = (b'data: {"id":"x","object":"chat.completion.chunk","created":1,'
         b'"model":"m","choices":[{"index":0,"delta":{"role":"assistant",'
         b'"content":"%s"},"finish_reason":%s}]}\n\n')
STREAM = (b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
          b"transfer-encoding: chunked\r\n\r\n")


def chunked(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


@pytest.fixture
def closer(cluster):
    made = []

    def make(script, certificate=None, **options):
        made.append(Closer(cluster.ports.take(), script, certificate))
        return made[0], ready(cluster.replica(
            "r", engine="openai", engine_url=made[0].url, **options))
    yield make
    for one in made:
        one.close()


def test_request_on_a_dead_connection_is_sent_again(closer):
    """Dead before any byte of its answer, on a connection used before."""
    def script(handler, number):
        if number > 1:
            return False
        handler.wfile.write(STREAM + chunked(CHUNK % (b"word", b'"stop"'))
                            + chunked(b"data: [DONE]\n\n") + chunked(b""))
        return True

    server, replica = closer(script)
    for _ in range(3):
        got = ask(replica)
        assert got.whole and got.text == "word", got
    assert server.seen == [1, 2, 1, 2, 1]


def test_request_on_a_fresh_connection_is_not_sent_again(closer):
    server, replica = closer(lambda handler, number: False)
    for n in range(1, 4):
        assert ask(replica).code == "UNAVAILABLE"
        assert server.seen == [1] * n


def test_request_is_not_sent_again_behind_the_first_byte(closer):
    def script(handler, number):
        handler.wfile.write(STREAM + chunked(CHUNK % (b"word", b"null")))
        return False

    server, replica = closer(script)
    for n in range(1, 6):
        got = ask(replica)
        assert got.code == "UNAVAILABLE" and got.text == "word", got
        assert len(server.seen) == n


# --- cancel, slow clients, limits

def seen_leaving(engine, leave, takes=QUICK):
    """Waits until the engine has lost the client of what it has begun."""
    number = engine.events("place")[-1]["id"]
    leave()
    wait_for(lambda: [e for e in engine.events("disconnect")
                      if e["id"] == number], "the engine to see it", takes)


@pytest.mark.soak
@pytest.mark.parametrize("stream", (True, False))
def test_cancelled_stream_leaves_the_engine(engine, replica, faults, stream):
    """How fast that is, test_gone.py tells."""
    faults(gate=3)
    before = len(engine.events("place"))
    call = generate.start(replica.client, body("len=9;", stream))
    wait_for(lambda: len(engine.events("place")) > before, "it to run")
    seen_leaving(engine, call.cancel)


@pytest.mark.soak
def test_deadline_leaves_the_engine(engine, replica, faults):
    """It is long enough for a busy machine to begin."""
    faults(gate=3)
    before = len(engine.events("place"))
    call = generate.start(replica.client, body("len=9;"), timeout=2)
    wait_for(lambda: len(engine.events("place")) > before, "it to run")
    seen_leaving(engine, lambda: None, takes=4)
    assert generate.drain(call).code == "DEADLINE_EXCEEDED"


@pytest.mark.soak
@pytest.mark.parametrize("is_tls", (False, True), ids=("http", "https"))
def test_slow_client_holds_up_the_engine(cluster, closer, is_tls):
    """And is not kept in memory: 40 MB wait at the engine."""
    sent, count, word = [], 2500, b"x" * 16384

    def script(handler, number):
        handler.wfile.write(STREAM)
        for _ in range(count):
            handler.wfile.write(chunked(CHUNK % (word, b"null")))
            sent.append(1)
        handler.wfile.write(chunked(CHUNK % (b"end", b'"stop"'))
                            + chunked(b"data: [DONE]\n\n") + chunked(b""))
        return True

    options = {}
    if is_tls:
        ours = Authority(cluster.dir, "ours")
        options = {"certificate": ours.sign(), "engine_ca_file": ours.file}
    server, replica = closer(script, **options)
    before = rss_kb(replica.proc.pid)
    message = generate.request(body()).SerializeToString()
    with rawh2.RawH2(replica.target) as h:
        h.reading = False
        stream = h.request(rpc.GENERATE, rawh2.frame(message))
        wait_for(lambda: h.pump(0.05) and sent, "a beginning")
        assert still(lambda: len(sent), during=0.3) < count
        assert rss_kb(replica.proc.pid) - before < 2000
        h.resume()
        answer = h.wait(stream, 30)
    assert answer.grpc_status == 0
    messages, rest = rawh2.unframe(answer.data)
    assert rest == b"" and len(sent) == count
    text = "".join(rpc.pb.GenerateResponse.FromString(m).token
                   for m in messages)
    assert text == "x" * 16384 * count + "end"


def test_whole_answer_comes_as_text_or_as_it_is(engine, replica):
    """As text where nothing is lost, else as the engine wrote it."""
    right = sse.call(engine.target, sse.CHAT, body(stream=False))
    got = ask(replica, stream=False)
    assert got.whole and got.text == right.text[0]
    assert got.usage[1] == right.usage["completion_tokens"]

    got = ask(replica, stream=False, n=2, features=rpc.pb.FEATURE_CHOICES)
    raw = [m.raw for m in got.messages if m.HasField("raw")]
    assert got.whole and (raw[0].status, raw[0].content_type) == (
        200, "application/json")
    assert len(json.loads(b"".join(r.data for r in raw))["choices"]) == 2


def test_capacity_that_is_told(cluster):
    engine = cluster.engine(faults='{"gate": 3}')
    replica = adapter(cluster, engine, max_capacity=2)
    calls = [generate.start(replica.client, body("len=5;"))
             for _ in range(2)]
    for call in calls:
        next(call)
    assert ask(replica).code == "RESOURCE_EXHAUSTED"
    calls[0].cancel()
    wait_for(lambda: ask(replica, "hi", max_tokens=1).whole, "a place")
    engine.faults(gate=None)
    assert generate.drain(calls[1]).whole


@pytest.mark.soak
def test_capacity_is_learnt_while_requests_wait(cluster):
    """vLLM does not tell; our queue is the better place to wait."""
    engine = cluster.engine(max_running=3, faults='{"gate": 3}')
    replica = adapter(cluster, engine)
    calls = [generate.start(replica.client, body("len=9;"))
             for _ in range(6)]
    wait_for(lambda: generate.ask(replica.client, body(), timeout=0.3).code
             == "RESOURCE_EXHAUSTED", "the replica to be full", takes=5)
    for call in calls:
        call.cancel()


# --- health

def test_replica_waits_for_its_engine(cluster):
    engine = cluster.engine(start=False)
    replica = cluster.replica("r", engine="vllm", engine_url=engine.url)
    wait_for(lambda: replica.client.check() == "NOT_SERVING", "an answer")
    got = ask(replica)
    assert got.code == "UNAVAILABLE" and "STARTING" in got.details, got
    engine.start()
    ready(replica)
    assert ask(replica).whole


@pytest.mark.parametrize("kind", ("sglang", "openai", *(
    pytest.param(kind, marks=pytest.mark.soak)
    for kind in ("vllm", "llamacpp"))))
def test_auto_finds_out_what_the_engine_is(cluster, kind):
    engine = cluster.engine(kind=kind)
    replica = adapter(cluster, engine, kind="auto")
    assert f'engine speaks "{kind}"' in replica.proc.text()
    assert ask(replica, "len=5;").finish == {0: "stop"}


def seconds_until_down(engine, replica):
    """From its death, in the middle of a stream."""
    call = generate.start(replica.client, body("len=9;"))
    next(call)
    at = time.monotonic()
    engine.proc.kill()
    got = generate.drain(call)
    assert got.code == "UNAVAILABLE", got
    wait_for(lambda: "DOWN" in ask(replica).details, "DOWN")
    return time.monotonic() - at


@pytest.mark.timed
def test_killed_engine_is_down_at_once(cluster):
    """It is not looked at again at its usual time, 1.5 s later."""
    engine = cluster.engine(faults='{"gate": 3}')
    assert seconds_until_down(engine, adapter(cluster, engine)) < place.SLOW


def test_killed_engine_is_down_and_comes_back(cluster):
    engine = cluster.engine(faults='{"gate": 3}')
    replica = adapter(cluster, engine)
    seconds_until_down(engine, replica)
    engine.start()
    engine.faults(gate=None)
    ready(replica)
    assert ask(replica, "len=2;").whole


@pytest.mark.parametrize("plain_health, takes", [
    (True, 4), pytest.param(False, 6, marks=pytest.mark.soak)])
def test_agent_is_told_what_the_engine_does(cluster, plain_health, takes):
    """The adapter lives on; llmgwctl shows what its engine is.  If its health
    hangs as well, two of its time-outs of 1 s go before.  A stream ends with
    its own connection."""
    gateway = cluster.agent("gw", "gateway")
    engine = cluster.engine(kind="sglang", start=False, adapter="sql",
                            max_running=7)
    replica = cluster.adapter(engine, "r1", stall_timeout="1s")

    def shows(**fields):
        return fields.items() <= gateway.table().get("r1", {}).items()
    wait_for(lambda: shows(service="STARTING"), "STARTING")
    engine.start()
    wait_for(lambda: shows(service="READY", models=["mock-model", "sql"],
                           max_capacity=7, running=0, waiting=0), "READY")
    assert gateway.table()["r1"]["resume_group"].startswith("sglang-")
    engine.faults(hang=True, plain_health=plain_health)
    call = generate.start(replica.client, body())
    wait_for(lambda: shows(service="STALLED"), "STALLED", takes=takes)
    engine.faults(hang=None, plain_health=None)
    wait_for(lambda: shows(service="READY"), "READY again", takes=4)
    assert generate.drain(call).whole
    engine.proc.kill()
    wait_for(lambda: shows(service="DOWN", models=["mock-model", "sql"]),
             "DOWN")
    assert replica.proc.alive()


def test_metrics_that_are_too_long_say_nothing(cluster):
    """4 MB are kept of them; what comes later is not put behind what was."""
    engine = cluster.engine(faults=json.dumps({"pad_metrics": 5_000_000}))
    replica = adapter(cluster, engine)
    wait_for(lambda: 'engine answered 200 to "/metrics" and tells no metrics'
             in replica.proc.text(), "the log to say so", takes=4)
    assert ask(replica, "len=2;").whole


@pytest.mark.soak
def test_silence_of_text_is_not_silence(cluster):
    """While the engine moves, a long prefill is told as progress."""
    engine = cluster.engine(faults=json.dumps({"token_delay": 0.1}))
    replica = adapter(cluster, engine, stall_timeout=None)
    other = generate.start(replica.client, body("other len=500;"))
    next(other)
    engine.faults(first_delay=3.3)
    got = ask(replica, "long len=2;")
    other.cancel()
    assert got.whole and len(got.ids) == got.usage[1], got
    first = [m.progress for m in got.messages].index(False)
    assert first >= 1 and not any(m.progress for m in got.messages[first:])


@pytest.mark.soak
def test_draining_replica_lets_streams_finish(cluster):
    engine = cluster.engine(faults='{"gate": 3}')
    replica = adapter(cluster, engine)
    call = generate.start(replica.client, body("len=20;"))
    next(call)
    assert replica.client.drain().success
    got = ask(replica)
    assert got.code == "UNAVAILABLE", got
    assert got.trailers.get("llmgw-draining") == "1"
    engine.faults(gate=None)
    assert generate.drain(call).whole
    assert replica.client.undrain().success
    assert ask(replica, "len=2;").whole


# --- the key

def test_key_comes_from_a_file_and_goes_into_no_log(cluster):
    engine = cluster.engine(api_key="s3cret-key")
    path = cluster.dir / "key"
    path.write_text("s3cret-key\n")
    os.chmod(path, 0o600)
    replica = adapter(cluster, engine, engine_key_file=path)
    assert ask(replica, "len=3;").whole
    assert "s3cret" not in replica.proc.text()


@pytest.mark.soak
@pytest.mark.parametrize("content, mode, reason", [
    ("key\n", 0o640, "0640"), ("", 0o600, "empty"), ("a b\n", 0o600, "key")])
def test_bad_key_file_is_refused(cluster, content, mode, reason):
    path = cluster.dir / "key"
    path.write_text(content)
    os.chmod(path, mode)
    out = subprocess.run([
        place.binary("llmgw-replica"), "--id", "r", "--listen",
        f"127.0.0.1:{cluster.ports.take()}", "--engine", "vllm",
        "--engine-url", "http://127.0.0.1:1", "--engine-key-file", path],
        capture_output=True, text=True, timeout=10)
    assert out.returncode == 1
    assert reason in out.stderr and "key file" in out.stderr
