"""Connections of strangers to a replica's port: they cost little, and keep no
other client out."""

import socket
import struct

import grpc
import pytest

from llmgw.proc.ports import outer_address
from llmgw.proc.process import rss_kb
from llmgw.proc.wait import wait_for
from llmgw.speak import rawh2
from llmgw.speak.rpc import Client

NEW = 32                # of one address that have not said anything yet
GENERATE = "/llmgateway.LLMReplica/Generate"


def silent(replica, n, source="127.0.0.9"):
    """Connections of that address that say nothing."""
    host, port = replica.target.rsplit(":", 1)
    return [socket.create_connection((host, int(port)), 10, (source, 0))
            for _ in range(n)]


def serving(cluster, client):
    replica = cluster.replica("a")
    c = client(replica)
    wait_for(lambda: "serving" in replica.proc.text(), "it to listen")
    assert c.check() == "SERVING"
    return replica, c


def hung_up(sock):
    """Once the server's first frame is read."""
    sock.setblocking(False)
    try:
        while sock.recv(4096):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        pass
    return True


def test_silent_connections_keep_no_gateway_out(cluster, client, expect):
    """Twice as many as are served, and the gateway comes after them."""
    replica, _ = serving(cluster, client)
    socks = silent(replica, 2 * NEW)
    nginx = cluster.static([replica])
    client(nginx).stream("hello", 5).check(expect("hello", 5))

    # Of their own address one is served as soon as another one goes.
    host, port = replica.target.rsplit(":", 1)
    own = socket.create_connection((host, int(port)), 10, ("127.0.0.9", 0))
    own.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\4"
                + bytes(5))
    with pytest.raises(BlockingIOError):
        own.setblocking(False)
        own.recv(1)
    own.settimeout(10)
    for sock in socks[:NEW + 1]:
        sock.close()
    assert own.recv(1)
    for sock in (*socks[NEW + 1:], own):
        sock.close()


@pytest.mark.soak
def test_a_silent_connection_ends_after_ten_seconds(cluster, client):
    replica, quiet = serving(cluster, client)
    socks = silent(replica, 2)
    wait_for(lambda: all(map(hung_up, socks)), "both to end", takes=12)
    assert quiet.check() == "SERVING"


def test_announced_bytes_take_no_memory(cluster, client):
    """A hundred streams announce 60 MB each, and send a byte."""
    replica, c = serving(cluster, client)
    before = rss_kb(replica.proc.pid)
    with rawh2.RawH2(replica.target) as raw:
        for _ in range(100):
            raw.request(GENERATE, struct.pack(">BI", 0, 60 << 20) + b"\x0a",
                        end=False)
        assert c.check() == "SERVING"
        assert rss_kb(replica.proc.pid) - before < 10 << 10


@pytest.mark.skipif(not outer_address(), reason="only loopback addresses")
def test_only_its_own_host_drains_a_replica(cluster):
    replica = cluster.replica("a", start=False)
    replica.argv[replica.argv.index("--listen") + 1] = f"0.0.0.0:{replica.port}"
    replica.argv.append("--insecure")
    replica.start()
    with Client(f"{outer_address()}:{replica.port}") as outer:
        for ask in (outer.drain, outer.undrain):
            with pytest.raises(grpc.RpcError) as caught:
                ask()
            assert caught.value.code().name == "PERMISSION_DENIED"
        assert outer.check() == "SERVING"
    with Client(f"127.0.0.1:{replica.port}") as own:
        assert own.drain().success
        assert own.check() == "NOT_SERVING"
