"""One write carries what an event-loop iteration brought for all streams of a
connection, and nothing leaks when that write fails."""

import os
import pathlib
import signal
import socket
import struct

import pytest

from llmgw.proc.process import writes
from llmgw.proc.wait import PATIENCE, wait_for
from llmgw.speak import rawh2, rpc

STREAMS = 20
PROMPTS = [f"lockstep {i}" for i in range(STREAMS)]


def begun(h, n, has=1):
    """Streams of h with n tokens, which hold() holds; each has some."""
    sids = [rpc.ask(h, prompt, n) for prompt in PROMPTS]
    have(h, sids, has)
    return sids


def have(h, sids, n):
    """Reads until each has n tokens."""
    while any(len(rawh2.unframe(h.answers[sid].data)[0]) < n for sid in sids):
        assert h.pump(PATIENCE)


def check(h, sids, n, expect):
    for prompt, sid in zip(PROMPTS, sids):
        assert rpc.tokens(h.wait(sid)) == expect(prompt, n)


def sockets(pid):
    """How many sockets a process has open."""
    found = 0
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            found += os.readlink(fd).startswith("socket:")
        except FileNotFoundError:
            pass        # closed just now
    return found


def reset(h):
    """Closes a client's connection with a RST."""
    h.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                      struct.pack("ii", 1, 0))
    h.close()


def test_tokens_of_a_connection_share_a_write(cluster, expect):
    nginx = cluster.fleet(1, replica={"token_delay": "0ms"})
    worker = nginx.workers()[0]
    cluster.hold(1)
    with rawh2.RawH2(nginx.target, window=1 << 20) as h:
        sids = begun(h, 12)
        before = writes(worker)
        for n in range(2, 12):
            cluster.hold(n)
            have(h, sids, n)
        made = writes(worker) - before
        cluster.let_go()
        check(h, sids, 12, expect)
    assert made < 0.5 * 10 * STREAMS, made


@pytest.fixture
def lockstep(cluster, client):
    """(nginx, worker, its sockets): one event per iteration of the loop, so
    that a write sees a client's end before a read does."""
    nginx = cluster.fleet(1, nginx={"worker_connections":
                                    "8192; epoll_events 1"})
    client(nginx).stream("warm", 1)
    worker = nginx.workers()[0]
    return nginx, worker, sockets(worker)


def held_write_fails(cluster, worker, clients, gate):
    """The clients are gone just when tokens up to that gate, or the ends, are
    written to them."""
    replica = cluster.replicas["r1"]
    os.kill(worker, signal.SIGSTOP)
    made = replica.stats().tokens
    cluster.hold(gate)
    wait_for(lambda: (now := replica.stats()).active_requests == 0
             or now.tokens >= made + 2 * STREAMS * len(clients),
             "tokens of every stream, or its end")
    for h in clients:
        reset(h)
    os.kill(worker, signal.SIGCONT)


@pytest.mark.parametrize("clients", [
    1, pytest.param(5, marks=pytest.mark.soak)])
def test_write_for_many_streams_fails(cluster, lockstep, clients):
    nginx, worker, before = lockstep
    hs = [rawh2.RawH2(nginx.target) for _ in range(clients)]
    cluster.hold(1)
    for h in hs:
        begun(h, 1000)
    held_write_fails(cluster, worker, hs, 3)
    wait_for(lambda: cluster.replicas["r1"].stats().active_requests == 0,
             "every stream to be cancelled")
    wait_for(lambda: sockets(worker) <= before, "the sockets' end")


def test_write_for_streams_that_end_fails(cluster, lockstep):
    """Trailers are buffered as tokens are."""
    nginx, worker, before = lockstep
    h = rawh2.RawH2(nginx.target)
    cluster.hold(5)
    begun(h, 6, 5)
    held_write_fails(cluster, worker, [h], -1)
    wait_for(lambda: sockets(worker) <= before, "the socket's end")
    wait_for(lambda: not nginx.counts(), "counts of zero")


@pytest.mark.soak
def test_connection_window_of_many_streams(cluster, expect):
    """The connection's window runs out for all of them, and comes back."""
    nginx = cluster.fleet(1, replica={"token_delay": "0ms"})
    with rawh2.RawH2(nginx.target) as h:
        h.reading = False
        sids = [rpc.ask(h, f"lockstep {i}", 300) for i in range(STREAMS)]
        while h.h2.inbound_flow_control_window:
            assert h.pump(PATIENCE)
        h.resume()
        check(h, sids, 300, expect)


def test_many_streams_of_a_client_that_stops_reading(cluster, expect):
    """Its socket takes nothing for send_timeout: all its streams end."""
    nginx = cluster.fleet(1, replica={"token_delay": "0ms"},
                          nginx={"server": "send_timeout 300ms;"})
    expect("warm", 1)
    worker = nginx.workers()[0]
    before = sockets(worker)
    cluster.hold(0)
    h = rawh2.RawH2(nginx.target, window=(1 << 31) - 1)
    for i in range(STREAMS):
        rpc.ask(h, f"stalled {i}", 1_000_000)
    wait_for(lambda: nginx.pool()["totals"]["attempts"] == STREAMS,
             "the streams")
    cluster.let_go()
    wait_for(lambda: not nginx.counts(), "the client to be given up")
    wait_for(lambda: sockets(worker) <= before + 1, "the socket's end")
    h.close()
