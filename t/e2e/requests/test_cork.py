"""One write carries what an event-loop iteration brought for all streams of a
connection, and nothing leaks when that write fails."""

import os
import pathlib
import signal
import socket
import struct

import pytest

from llmgw import rawh2, rpc
from llmgw.proc import writes
from llmgw.wait import wait_for

STREAMS = 20
PROMPTS = [f"lockstep {i}" for i in range(STREAMS)]


def begun(h, n):
    """n streams of h, each with its first token."""
    sids = [rpc.ask(h, prompt, n) for prompt in PROMPTS]
    have_begun(h, sids)
    return sids


def have_begun(h, sids):
    while not all(h.answers[sid].data for sid in sids):
        assert h.pump(10)


def check(h, sids, n, expect):
    for prompt, sid in zip(PROMPTS, sids):
        assert rpc.tokens(h.wait(sid, 60)) == expect(prompt, n)


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
    nginx = cluster.fleet(1, replica={"token_delay": "20ms"})
    expect("lockstep 0", 50)
    with rawh2.RawH2(nginx.target, window=1 << 20) as h:
        sids = rpc.ask_in_step(h, nginx, cluster.replicas["r1"], PROMPTS, 50)
        have_begun(h, sids)
        before = writes(nginx.workers()[0])
        check(h, sids, 50, expect)
        made = writes(nginx.workers()[0]) - before
    assert made < 0.5 * 50 * STREAMS, made


@pytest.fixture
def lockstep(cluster, client):
    """(nginx, worker, its sockets): one event per iteration of the loop, so
    that a write sees a client's end before a read does."""
    nginx = cluster.fleet(1, replica={"token_delay": "200ms"},
                          nginx={"worker_connections":
                                 "8192; epoll_events 1"})
    client(nginx).stream("warm", 1)
    worker = nginx.workers()[0]
    return nginx, worker, sockets(worker)


def held_write_fails(cluster, worker, clients):
    """The clients are gone just when buffered tokens are written to them."""
    replica = cluster.replicas["r1"]
    os.kill(worker, signal.SIGSTOP)
    made = replica.stats().tokens
    wait_for(lambda: (now := replica.stats()).active_requests == 0
             or now.tokens >= made + 2 * STREAMS * len(clients), 10,
             "tokens of every stream, or its end")
    for h in clients:
        reset(h)
    os.kill(worker, signal.SIGCONT)


@pytest.mark.parametrize("clients", [1, 5])
def test_write_for_many_streams_fails(cluster, lockstep, clients):
    nginx, worker, before = lockstep
    hs = [rawh2.RawH2(nginx.target) for _ in range(clients)]
    for h in hs:
        begun(h, 1000)
    held_write_fails(cluster, worker, hs)
    wait_for(lambda: cluster.replicas["r1"].stats().active_requests == 0, 5,
             "every stream to be cancelled")
    wait_for(lambda: sockets(worker) <= before, 5, "the sockets' end")


def test_write_for_streams_that_end_fails(cluster, lockstep):
    """Trailers are buffered as tokens are."""
    nginx, worker, before = lockstep
    h = rawh2.RawH2(nginx.target)
    begun(h, 6)
    wait_for(lambda: cluster.replicas["r1"].stats().tokens >= 5 * STREAMS, 10,
             "the last tokens but one")
    held_write_fails(cluster, worker, [h])
    wait_for(lambda: sockets(worker) <= before, 5, "the socket's end")
    wait_for(lambda: not nginx.counts(), 5, "counts of zero")


def test_connection_window_of_many_streams(cluster, expect):
    """The connection's window runs out for all of them, and comes back."""
    nginx = cluster.fleet(1, replica={"token_delay": "0ms"})
    with rawh2.RawH2(nginx.target) as h:
        h.reading = False
        sids = [rpc.ask(h, f"lockstep {i}", 300) for i in range(STREAMS)]
        while h.h2.inbound_flow_control_window:
            assert h.pump(10)
        h.resume()
        check(h, sids, 300, expect)


def test_many_streams_of_a_client_that_stops_reading(cluster, expect):
    """Its socket takes nothing for send_timeout: all its streams end."""
    nginx = cluster.fleet(1, replica={"token_delay": "0ms"},
                          nginx={"server": "send_timeout 1s;"})
    expect("warm", 1)
    worker = nginx.workers()[0]
    before = sockets(worker)
    h = rawh2.RawH2(nginx.target, window=(1 << 31) - 1)
    for i in range(STREAMS):
        rpc.ask(h, f"stalled {i}", 1_000_000)
    wait_for(lambda: nginx.pool()["totals"]["attempts"] == STREAMS, 5,
             "the streams")
    wait_for(lambda: not nginx.counts(), 20, "the client to be given up")
    wait_for(lambda: sockets(worker) <= before + 1, 5, "the socket's end")
    h.close()
