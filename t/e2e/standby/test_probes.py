"""The HTTP probes take what orchestrators send, and nothing too long."""

import socket
import time

import pytest

from llmgw.proc.wait import wait_for
from llmgw.standby.group import Group


@pytest.fixture(scope="module")
def engine(shared):
    g = Group(shared, ids=["a"], agents=False)
    g.service.start()
    return g["a"].start().wait("ACTIVE")


def talk(one, *parts, close=False):
    """Sends the parts; all that is answered until the end of file."""
    host, port = one.probe.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as s:
        for part in parts:
            s.sendall(part)
            time.sleep(0.02)
        if close:
            s.shutdown(socket.SHUT_WR)
        got = b""
        while chunk := s.recv(4096):
            got += chunk
        return got.decode()


def test_an_answer_is_whole_http(engine):
    got = talk(engine, b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
    head, _, body = got.partition("\r\n\r\n")
    assert head.splitlines()[0] == "HTTP/1.1 200 OK"
    assert f"Content-Length: {len(body)}" in head
    assert "Connection: close" in head
    assert body == "ACTIVE\n"


JUDGED = [
    ((b"GET /li", b"vez HTTP/1.1\r", b"\n\r\n"), 200),
    ((b"GET / HTTP/1.1\r\n\r\n",), 404),
    ((b"GET /livez HTTP/1.1\r\nX: " + b"x" * 4096 + b"\r\n\r\n",), 431)]

MORE_JUDGED = [
    ((b"GET /livez HTTP/1.0\r\n\r\n",), 200),
    ((b"GET /livez?verbose=1 HTTP/1.1\r\n\r\n",), 200),
    ((b"GET /livezz HTTP/1.1\r\n\r\n",), 404),
    ((b"POST /livez HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",), 405),
    ((b"GET /livez\r\n\r\n",), 400),
    ((b"GET /livez HTTP/2\r\n\r\n",), 400),
    ((b"\r\n\r\n",), 405),
    ((b"\0\xff" * 20 + b"\r\n\r\n",), 405)]


@pytest.mark.parametrize("request_,status", [
    *JUDGED, *(pytest.param(*row, marks=pytest.mark.soak)
               for row in MORE_JUDGED)],
    ids=lambda value: str(value)[2:30])
def test_a_request_is_judged(engine, request_, status):
    assert talk(engine, *request_).startswith(f"HTTP/1.1 {status} ")


@pytest.mark.soak
def test_a_request_that_does_not_end_is_given_up(engine):
    assert talk(engine, b"GET /livez HTT") == ""
    assert talk(engine, b"GET /livez HTTP/1.1\r\n", close=True) == ""
    assert engine.probes("/livez") == 200


@pytest.mark.soak
def test_more_connections_than_places_wait_for_one(engine):
    host, port = engine.probe.split(":")
    idle = [socket.create_connection((host, int(port))) for _ in range(20)]
    try:
        assert wait_for(lambda: engine.probes("/livez"), "a place") == 200
    finally:
        for s in idle:
            s.close()
    assert engine.probes("/readyz") == 200
