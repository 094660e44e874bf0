"""Replicas and machines that misbehave in ways that once did harm."""

import socket
import subprocess
import threading
import time

import h2.config
import h2.connection
import h2.settings
import pytest

from llmgw.engine.scripted import Target, scripted
from llmgw.fleet import words
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc
from llmgw.speak.callers import on_each_worker


class NoStreams:
    """An HTTP/2 server that allows no stream, and counts connections."""

    def __init__(self, ports):
        self.port = ports.take()
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(conn,),
                             daemon=True).start()

    @staticmethod
    def _serve(conn):
        none = h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS
        h = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False))
        h.local_settings = h2.settings.Settings(client=False,
                                                initial_values={none: 0})
        h.initiate_connection()
        try:
            conn.sendall(h.data_to_send())
            while data := conn.recv(65536):
                h.receive_data(data)
                conn.sendall(h.data_to_send())
        except (OSError, h2.exceptions.ProtocolError):
            pass
        finally:
            conn.close()


@pytest.fixture
def no_streams(cluster):
    server = NoStreams(cluster.ports)
    yield server
    server.listener.close()


def test_replica_that_allows_no_stream_is_no_connect_storm(
        cluster, client, no_streams):
    nginx = cluster.static([Target(no_streams.port)])
    got = client(nginx).stream("x", 3, timeout=10)
    assert got.code == "UNAVAILABLE"
    assert got.trailers[words.REASON] == words.TRIES_EXHAUSTED
    assert no_streams.connections <= 10


@pytest.mark.soak
def test_replica_that_allows_no_stream_leaves_it_to_others(
        cluster, client, no_streams):
    nginx = cluster.static([Target(no_streams.port),
                            cluster.replica("good")])
    for i in range(10):
        assert client(nginx).stream(f"{i}", 3).code == "OK"


@pytest.mark.soak
def test_slow_refusals_wait_in_the_line(cluster, client):
    """Replicas that take longer to refuse than they are marked as full."""
    engines = [cluster.pyreplica(x, token_delay_ms=150, end_after=-1,
                                 end_code="RESOURCE_EXHAUSTED") for x in "ab"]
    nginx = cluster.static(engines, pool="llmgw_queue timeout=1s;")
    got = client(nginx).stream("x", 3, timeout=20)
    assert got.code == "RESOURCE_EXHAUSTED"
    assert got.trailers[words.REASON] == words.QUEUE_TIMEOUT


def test_token_over_the_limit_is_generated_few_times(cluster, client):
    generated = []

    def generate(request, context):
        generated.append(1)
        yield rpc.pb.GenerateResponse(token="x" * (1200 * 1024),
                                      is_final=True)

    port = cluster.ports.take()
    with scripted(port, generate):
        nginx = cluster.static([Target(port)])
        got = client(nginx).stream("x", 1, timeout=20)
    assert got.code == "UNAVAILABLE"
    assert got.trailers[words.REASON] == words.TRIES_EXHAUSTED
    assert len(generated) == 3


def test_messages_are_read_however_they_are_written(cluster, client):
    """Forms that protobuf allows and no encoder writes; and a field 3, which
    in the gateway's own messages names the replica, and which Infer does not
    read in a replica's."""
    messages = [
        b"\x10\x00\x0a\x02hi",                 # in reverse order
        b"\x0a\x01?\x0a\x03 yo",               # twice: the last one counts
        b"\x0a\x82\x00 a",                     # a length in two bytes
        b"",                                    # an empty token
        b"\x0a\x02 b\x1a\x04evil",             # a replica_id
        b"\x0a\x02 c\xf0\x01\x05",             # field 30, a number
        b"\x0a\x02 d\xfa\x01\x03new",          # field 31
        b"\x0a\x02 e\x10\x02",                 # true, but not as 1
    ]
    port = cluster.ports.take()
    with scripted(port, lambda request, context: iter(messages)):
        nginx = cluster.static([Target(port)])
        got = client(nginx).stream("x", len(messages))
    assert got.code == "OK"
    got.check(["hi", " yo", " a", "", " b", " c", " d", " e"])
    assert set(got.replicas) == {f"127.0.0.1:{port}"}


@pytest.mark.parametrize("message", [
    b"\x0a\x05cut", *(pytest.param(bad, marks=pytest.mark.soak)
                     for bad in (b"\x0a", b"\x10", b"\x0b", b"\xff" * 9))])
def test_message_that_is_none_is_a_failure(cluster, client, message):
    port = cluster.ports.take()
    with scripted(port, lambda request, context: iter([message])):
        nginx = cluster.static([Target(port)])
        got = client(nginx).stream("x", 3)
    assert (got.code, got.tokens) == ("UNAVAILABLE", [])
    assert got.trailers[words.REASON] == words.TRIES_EXHAUSTED
    assert "cause malformed" in nginx.error_log.read_text()


@pytest.mark.soak
def test_worker_out_of_descriptors_buries_nobody(cluster, caller):
    """It cannot read when the other workers began; none is taken for dead."""
    nginx = cluster.fleet(1, nginx={"workers": 2},
                          replica={"max_capacity": 8})
    one, two = [group[0] for group in on_each_worker(nginx, 1, caller)]
    cluster.hold(1)
    one.ask("runs on", 20).wait_first()
    limit = ["prlimit", "--pid", str(two.worker())]
    subprocess.run([*limit, "--nofile=10:1024"], check=True)
    swept = time.monotonic() + 2.2          # two sweeps of the zone
    while time.monotonic() < swept:
        one.take_in()
    subprocess.run([*limit, "--nofile=1024:1024"], check=True)
    assert one.answer.grpc_status is None
    wait_for(lambda: nginx.in_flight() == 1, "the stream to be counted")
    cluster.let_go()
    one.wait()
    wait_for(lambda: nginx.in_flight() == 0, "a count of zero")
    one.ask("again", 2).wait()
    assert one.status == 0
