"""Clients over TLS: writes shared by many streams, and slow clients, work
through nginx's TLS as over a plain socket."""

import os
import signal
import ssl
import subprocess

import pytest

from llmgw.fleet.nginx import version
from llmgw.proc.process import writes
from llmgw.proc.wait import PATIENCE, wait_for
from llmgw.speak import rawh2, rpc
from llmgw.speak.rpc import Client

STREAMS = 20

SERVER = """
        listen 127.0.0.1:{port} ssl{http2} sndbuf=16k;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        ssl_protocols {protocol};"""


class Tls:
    """A fleet whose clients come over TLS."""

    def __init__(self, cluster, protocol, **fleet):
        self.cluster = cluster
        self.certificate = cluster.dir / "server.crt"
        key = cluster.dir / "server.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
             "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", key, "-out", self.certificate],
            check=True, capture_output=True)
        port = cluster.ports.take()
        self.target = f"127.0.0.1:{port}"
        self.nginx = cluster.fleet(nginx={"server": SERVER.format(
            port=port, key=key, certificate=self.certificate,
            protocol=protocol,
            http2="" if version() >= (1, 25, 1) else " http2")}, **fleet)

    def client(self):
        return Client(self.target, certificate=self.certificate.read_bytes())

    def raw(self, window=65535):
        tls = ssl.create_default_context(cafile=self.certificate)
        tls.set_alpn_protocols(["h2"])
        h = rawh2.RawH2(self.target, window, tls)
        assert h.sock.selected_alpn_protocol() == "h2"
        return h


@pytest.fixture(params=[
    pytest.param("TLSv1.2", marks=pytest.mark.soak), "TLSv1.3"])
def tls(request, cluster):
    return lambda **fleet: Tls(cluster, request.param, **fleet)


def have(h, sids, n):
    """Reads until each stream has n tokens."""
    while any(len(rawh2.unframe(h.answers[sid].data)[0]) < n for sid in sids):
        assert h.pump(PATIENCE)


def check(h, sids, n, expect):
    """sids: {stream: its prompt}."""
    for sid, prompt in sids.items():
        assert rpc.tokens(h.wait(sid)) == expect(prompt, n)


def test_streams_are_whole(tls, expect):
    """First grpcio's client; then many streams of one connection, in step,
    whose tokens share a write; then records of many sizes."""
    server = tls(n=1, replica={"token_delay": "0ms"})
    with server.client() as c:
        c.stream("over TLS", 20).check(expect("over TLS", 20))
    worker = server.nginx.workers()[0]
    server.cluster.hold(1)
    with server.raw(1 << 20) as h:
        sids = {rpc.ask(h, prompt, 12): prompt
                for prompt in (f"in step {i}" for i in range(STREAMS))}
        have(h, sids, 1)
        before = writes(worker)
        for n in range(2, 12):
            server.cluster.hold(n)
            have(h, sids, n)
        made = writes(worker) - before
        server.cluster.let_go()
        check(h, sids, 12, expect)
        assert made < 0.75 * 10 * STREAMS, made
    with server.client() as c:
        c.stream("at once", 5000).check(expect("at once", 5000))


def test_stream_goes_on_at_another_replica(tls, expect):
    server = tls(n=2)
    server.cluster.hold(5)
    with server.client() as c:
        call = c.start("moved", 30)
        first = [next(call) for _ in range(5)]
        server.cluster.replicas[first[0].replica_id].kill()
        server.cluster.let_go()
        rest = list(call)
    got = [m.token for m in [*first, *rest]]
    assert got == expect("moved", 30)
    assert rest[-1].replica_id != first[0].replica_id
    assert server.nginx.log().count("stream continues at replica") == 1


@pytest.mark.soak
def test_slow_client_holds_up_its_own_stream_alone(tls, expect):
    server = tls(n=1, replica={"token_delay": "0ms"})
    replica = server.cluster.replicas["r1"]
    with server.raw() as h, server.client() as c:
        h.reading = False
        sid = rpc.ask(h, "stalled", 20000)
        while h.pump(0.3):
            pass
        c.stream("another", 2000).check(expect("another", 2000))
        assert replica.stats().active_requests == 1
        assert replica.stats().tokens < 15000
        h.resume()
        assert rpc.tokens(h.wait(sid)) == expect("stalled", 20000)


def test_client_that_does_not_read_its_socket(tls, expect):
    """The windows are open, but TLS records wait for the socket."""
    server = tls(n=1, replica={"token_delay": "0ms"})
    with server.raw(64 << 20) as h, server.client() as c:
        sids = {rpc.ask(h, "waiting", 10000): "waiting"
                for _ in range(STREAMS)}
        stats = server.cluster.replicas["r1"].stats
        wait_for(lambda: stats().tokens > 1000, "tokens")
        c.stream("another", 1000).check(expect("another", 1000))
        assert stats().active_requests, "sockets hold it all"
        check(h, sids, 10000, expect)


@pytest.mark.soak
def test_cancelled_stream_is_given_back(tls):
    server = tls(n=1)
    stats = server.cluster.replicas["r1"].stats
    server.cluster.hold(1)
    with server.raw(1 << 20) as h:
        sid = rpc.ask(h, "cancelled", 2)
        have(h, [sid], 1)
        h.cancel(sid)
        wait_for(lambda: stats().active_requests == 0, "its end")
        have(h, [rpc.ask(h, "gone", 2)], 1)
    wait_for(lambda: stats().active_requests == 0, "the other's end")
    wait_for(lambda: not server.nginx.counts(), "counts of zero")


@pytest.mark.soak
def test_write_for_many_streams_fails(tls):
    """The client is gone just when buffered tokens are written to it."""
    server = tls(n=1)
    stats = server.cluster.replicas["r1"].stats
    worker = server.nginx.workers()[0]
    server.cluster.hold(1)
    h = server.raw(1 << 20)
    sids = [rpc.ask(h, f"in step {i}", 1000) for i in range(STREAMS)]
    have(h, sids, 1)
    os.kill(worker, signal.SIGSTOP)
    made = stats().tokens
    server.cluster.hold(3)
    wait_for(lambda: stats().tokens >= made + 2 * STREAMS, "more tokens")
    h.close()
    os.kill(worker, signal.SIGCONT)
    wait_for(lambda: stats().active_requests == 0, "every stream's end")
    wait_for(lambda: not server.nginx.counts(), "counts of zero")
