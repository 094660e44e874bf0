"""A worker's memory for requests and answers: received bytes count, in separate
shares, so that clients that announce much take nothing from others."""

import contextlib
import fcntl
import json
import socket
import struct
import termios
import threading

import grpc
import pytest

from llmgw.engine.scripted import Target, scripted
from llmgw.proc.process import rss_kb
from llmgw.proc.wait import wait_for
from llmgw.speak import rawh2, rpc, sse

MIB = 1024 * 1024
LENGTH = 32 * MIB                   # that slow bodies announce
METRICS = "location = /metrics { llmgw_metrics; }"
EXPECT = "expect: 100-continue\r\n"

TOKENS = [rpc.pb.GenerateResponse(token=f" t{i}", token_ids=[1000 + i])
          for i in range(3000)]
FIRST = 3                           # that a stream has before anything else
END = rpc.pb.GenerateResponse(is_final=True,
                              finish=[rpc.pb.Finish(reason="stop")])
LONG = "runs meanwhile"


class Engine:
    """Two replicas.  A stream for LONG has its FIRST tokens; two thirds of the
    others, which need memory of their own, and its loss come when the test
    says so.  What a test puts into `text` is one answer's."""

    def __init__(self):
        self.lost, self.over = threading.Event(), threading.Event()
        self.text = None

    def generate(self, request, context):
        if LONG.encode() not in request.openai.body:
            yield from ([rpc.pb.GenerateResponse(token=t) for t in self.text]
                        if self.text else TOKENS[:6])
            assert self.text is None or self.over.wait(30)
        elif request.HasField("delivered"):
            yield from TOKENS[len(request.delivered.token_ids):]
        else:
            yield from TOKENS[:FIRST]
            assert self.lost.wait(60)
            yield from TOKENS[FIRST:2000]
            context.abort(grpc.StatusCode.UNAVAILABLE, "lost")
        yield END


@pytest.fixture
def front(cluster):
    """front(memory) -> nginx, engine"""
    with contextlib.ExitStack() as stack:
        def make(memory=None, **options):
            engine = Engine()
            ports = [cluster.ports.take() for _ in range(2)]
            for port in ports:
                stack.enter_context(scripted(
                    port, engine.generate, 32,
                    [("grpc.max_receive_message_length", LENGTH)]))
            return cluster.static(
                [Target(port) for port in ports], openai=True, server=METRICS,
                http=f"llmgw_body_memory {memory};" if memory else "",
                **options), engine
        yield make


@contextlib.contextmanager
def running(nginx, engine):
    """A stream that runs meanwhile; what it yields has it lose its replica, and
    checks that it goes on at the other one."""
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat(LONG, stream=True))
        r.wait_events(FIRST)

        def fails_over():
            engine.lost.set()
            got = sse.result_of(r)
            assert got.error is None
            assert got.text == ["".join(m.token for m in TOKENS)]
        yield fails_over
        assert r.complete


class Slow:
    """A client with an address of its own, and a body that never ends."""

    def __init__(self, nginx, sent, host, headers):
        name, _, port = nginx.api.rpartition(":")
        self.sock = socket.create_connection((name, int(port)), 10,
                                             source_address=(host, 0))
        self.sock.sendall(
            f"POST {sse.CHAT} HTTP/1.1\r\nhost: x\r\n{headers}"
            f"content-length: {LENGTH}\r\n\r\n".encode())
        self.sock.sendall(b" " * sent)

    def send(self, size):
        """Bytes that the worker has read when it answers the next request."""
        self.sock.sendall(b" " * size)
        wait_for(lambda: not self.unacknowledged(), "its bytes to be there")

    def unacknowledged(self):
        return struct.unpack("i", fcntl.ioctl(self.sock, termios.TIOCOUTQ,
                                              b"\0" * 4))[0]

    def trickle(self):
        with contextlib.suppress(OSError):      # it was ended
            self.sock.send(b" ", socket.MSG_DONTWAIT)

    def status(self):
        return int(self.sock.recv(4096).split()[1])


@contextlib.contextmanager
def slow(nginx, n, sent=0, hosts=1, headers=""):
    """n of them, which have that many addresses."""
    with contextlib.ExitStack() as stack:
        clients = [Slow(nginx, sent, f"127.0.0.{2 + i % hosts}", headers)
                   for i in range(n)]
        for client in clients:
            stack.enter_context(client.sock)
        yield clients


def padded(size, **keys):
    return json.dumps(sse.chat("hi", metadata={"pad": "x" * size},
                               **keys)).encode()


def answer(nginx, size=0, headers=(), **keys):
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, padded(size, **keys), headers=headers)
        r.read()
        return r


def rpc_answer(nginx, size):
    with rpc.Client(nginx.target) as client:
        return client.stream("x" * size, 6).code


def error(r):
    return r.status, r.json["error"]["code"]


def held(nginx, what="request"):
    return nginx.counted("llmgw_body_bytes")[what]


def refusals(nginx):
    return {what: n for what, n
            in nginx.counted("llmgw_body_refusals_total").items() if n}


def nothing_is_held(nginx):
    wait_for(lambda: not any(nginx.counted("llmgw_body_bytes").values()),
             "all to be given back")


def test_nine_headers_take_nothing_from_others(front):
    """32 MB each are announced, and no byte of them comes."""
    nginx, engine = front()
    with running(nginx, engine) as fails_over, \
            slow(nginx, 9, headers=EXPECT) as clients:
        assert [c.status() for c in clients] == [100] * 9
        assert held(nginx) < 100000
        assert answer(nginx, 4 * MIB).status == 200
        fails_over()
    assert refusals(nginx) == {}
    nothing_is_held(nginx)


@pytest.mark.parametrize("n, memory, hosts, share", [
    (1000, 128, 1, 4), (40, 16, 200, 2),
    pytest.param(1000, 128, 200, 2, marks=pytest.mark.soak)])
def test_slow_bodies_that_trickle(front, n, memory, hosts, share):
    """Those of one client have a quarter of the memory, and those of many a
    half.  They make room for each other, and for what others ask meanwhile."""
    nginx, engine = front(f"{memory}m")
    [worker] = nginx.workers()
    rss = rss_kb(worker)
    with running(nginx, engine) as fails_over, \
            slow(nginx, n, 200000, hosts=hosts) as clients:
        whole = 2000                # of the stream that runs
        wait_for(lambda: refusals(nginx).get("idle"), "room to be made")
        for _ in range(5):
            for client in clients:
                client.trickle()
            assert held(nginx) <= memory * MIB / share + whole
            for stream in True, False:
                assert answer(nginx, MIB, stream=stream).status == 200
            assert rpc_answer(nginx, MIB) == "OK"
            assert held(nginx) <= memory * MIB / 2
        # nginx itself has 16 kB for a body, and some for a connection
        assert rss_kb(worker) - rss < memory * 1024 / 2 + n * 32 + 16384
        fails_over()
    assert refusals(nginx).keys() == {"idle"}
    nothing_is_held(nginx)


def test_client_that_has_its_part_takes_nothing_from_others(front):
    """Clients are their addresses unless the directive says otherwise."""
    nginx, engine = front("16m")
    engine.text = ["a"]
    data = padded(3 * MIB, stream=True)
    with sse.Connection(nginx.api, host="127.0.0.2") as one, \
            sse.Connection(nginx.api, host="127.0.0.2") as more, \
            sse.Connection(nginx.api) as other:
        first = one.request(sse.CHAT, data)
        first.wait_events(1)
        refused = more.request(sse.CHAT, data)
        refused.read()
        assert error(refused) == (503, "body_memory")
        second = other.request(sse.CHAT, data)
        second.wait_events(1)
        engine.over.set()
        assert [sse.result_of(r).status for r in (first, second)] == [200] * 2
    assert refusals(nginx) == {"request": 1}
    nothing_is_held(nginx)


def test_body_that_received_nothing_for_longest_makes_room(front):
    nginx, _ = front("16m client=$http_x_client")
    with slow(nginx, 1, headers="x-client: a\r\n") as [first], \
            slow(nginx, 1, headers="x-client: b\r\n") as [second]:
        first.send(1200000)
        second.send(2500000)
        wait_for(lambda: held(nginx) == 6 * MIB, "both to be read")
        first.send(MIB)
        wait_for(lambda: held(nginx) == 8 * MIB, "more of the first one")
        assert answer(nginx, MIB, {"x-client": "c"}).status == 200
        assert second.status() == 408
        assert refusals(nginx) == {"idle": 1}
    nothing_is_held(nginx)


def test_body_of_the_same_connection_makes_room(front):
    """Over HTTP/2, where nginx offers no more window than the block has."""
    nginx, _ = front("16m", location="", pool="")
    with rawh2.RawH2(nginx.target) as h:
        def body(size, length):
            return h.request(sse.CHAT, padded(size)[:size],
                             headers=[("content-length", str(length))],
                             content_type="application/json", end=False)
        first = body(2500000, LENGTH)
        data = padded(3 * MIB)
        second = h.request(sse.CHAT, data, content_type="application/json",
                           headers=[("content-length", str(len(data)))])
        assert h.wait(second).headers[":status"] == "200"
        got = h.wait(first)
        assert got.headers[":status"] == "408"
        assert json.loads(got.data)["error"]["code"] == "request_timeout"
    nothing_is_held(nginx)


def test_client_has_half_unless_that_is_off(front):
    nginx, _ = front("16m")
    assert answer(nginx, 3 * MIB).status == 200
    assert error(answer(nginx, 5 * MIB)) == (503, "body_memory")
    nginx.configure(http="llmgw_body_memory 16m client=off;")
    nginx.reload()
    assert answer(nginx, 5 * MIB).status == 200
    assert error(answer(nginx, 9 * MIB)) == (503, "body_memory")


def test_whole_bodies_are_not_ended(front):
    """Their streams run, so the newcomer is refused."""
    nginx, engine = front("16m client=off")
    engine.text = ["a"]
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(sse.Connection(nginx.api))
                   for _ in range(2)]
        got = [c.request(sse.CHAT, padded(3 * MIB, stream=True))
               for c in running]
        for r in got:
            r.wait_events(1)
        assert held(nginx) > 6 * MIB
        assert error(answer(nginx, 3 * MIB)) == (503, "body_memory")
        engine.over.set()
        assert [sse.result_of(r).status for r in got] == [200, 200]
    assert refusals(nginx) == {"request": 1}
    nothing_is_held(nginx)


@pytest.mark.parametrize("part", [1, 300000])
def test_client_that_leaves_gives_back(front, part):
    nginx, _ = front()
    with slow(nginx, 3, part) as clients:
        wait_for(lambda: held(nginx) >= 3 * part, "them to be read")
        for client in clients:
            client.sock.close()
        nothing_is_held(nginx)


def test_worker_that_exits_reads_its_bodies(front):
    """And ends when they have ended."""
    nginx, _ = front()
    [old] = nginx.workers()
    data = padded(MIB)
    with sse.Connection(nginx.api) as c:
        c.send(f"POST {sse.CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: "
               f"{len(data)}\r\n\r\n".encode() + data[:500000])
        wait_for(lambda: held(nginx) >= 500000, "a half to be read")
        nginx.reload()
        c.send(data[500000:])
        assert sse.Response(c, True, "POST").read()
    wait_for(lambda: old not in nginx.workers(), "the old worker's end")
    nothing_is_held(nginx)


# --- what else is held

def test_answer_counts_as_it_is_written(front):
    """Control characters take six bytes each as JSON."""
    nginx, engine = front()
    engine.text = ["\1" * 5000] * 20
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat("hi"))
        wait_for(lambda: held(nginx, "answer") >= 20 * 5000 * 6,
                 "all of it to be held")
        engine.over.set()
        assert sse.result_of(r).status == 200
    nothing_is_held(nginx)


def test_members_of_a_body_count(front):
    nginx, engine = front()
    engine.text = ["a"]
    keys = {f"k{i}": 1 for i in range(1000)}
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat("hi", stream=True, **keys))
        r.wait_events(1)
        assert held(nginx) > 1000 * 50
        engine.over.set()
        assert sse.result_of(r).status == 200
    nothing_is_held(nginx)


def test_prompt_of_a_text_replica_counts(cluster):
    """It is a copy, beside the body."""
    nginx = cluster.fleet(1, nginx={"openai": True, "server": METRICS})
    cluster.hold(1)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat("x" * MIB, stream=True,
                                         max_tokens=3))
        r.wait_events(1)
        assert held(nginx) > 2 * MIB
        cluster.let_go()
        assert sse.result_of(r).status == 200
    nothing_is_held(nginx)


def test_requests_over_grpc_count(cluster, client):
    nginx = cluster.fleet(1, nginx={
        "server": METRICS, "http": "llmgw_body_memory 16m;"})
    cluster.hold(1)
    c = client(nginx)
    call = c.start("x" * 3 * MIB, 3)
    wait_for(lambda: held(nginx) > 3 * MIB, "the prompt to be held")
    got = c.stream("y" * 3 * MIB, 3)
    assert got.code == "RESOURCE_EXHAUSTED"
    assert refusals(nginx) == {"request": 1}
    cluster.let_go()
    assert rpc.drain(call).code == "OK"
    nothing_is_held(nginx)


# --- a client that does not read

def test_text_for_a_slow_client_joins(front):
    """Events of 5,000 tokens would be a megabyte: it gets all text in less."""
    nginx, engine = front()
    engine.text = [f" {i}" for i in range(5000)]
    engine.over.set()
    with rawh2.RawH2(nginx.target, window=0) as h:
        sid = h.request(sse.CHAT, json.dumps(
            sse.chat("hi", stream=True, max_tokens=5000)).encode(),
            content_type="application/json")
        wait_for(lambda: sum(nginx.counted("llmgw_tokens_total").values())
                 == 5000, "all tokens")
        h.h2.increment_flow_control_window(1 << 24)
        h.h2.increment_flow_control_window(1 << 24, sid)
        h.flush()
        got = h.wait(sid)
    events = got.data.decode().split("\n\n")[:-1]
    assert events[-1] == "data: [DONE]"
    chunks = [json.loads(e.removeprefix("data: ")) for e in events[:-1]]
    said = [c["choices"][0]["delta"].get("content", "") for c in chunks]
    assert "".join(said) == "".join(engine.text)
    assert len(got.data) < 200000, len(got.data)
    assert len(chunks) > 200        # up to the limit each token has its own
