"""What a hostile client or replica of OpenAI's API gets away with."""

import re

import pytest

from llmgw.engine.scripted import Script
from llmgw.fleet import words
from llmgw.speak import sse
from llmgw.speak.rpc import pb

FORGED = "2026/11/24 01:02:03 [notice] 1#1: forged"
SMUGGLED = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled"


def raw(status, data=SMUGGLED):
    return [pb.GenerateResponse(
        raw=pb.Raw(status=status, content_type="text/plain", data=data),
        is_final=True)]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", [204, 205, 304])
def test_status_without_a_body_splits_no_answer(cluster, ports, status,
                                                stream):
    """Bytes after it would be the connection's next answer: the replica has
    failed, and its bytes are not passed to the client."""
    script = Script([raw(status), raw(status), raw(status), raw(200, b"good")])
    with script.serve(ports, 2) as targets:
        nginx = cluster.static(targets, openai=True)
        with sse.Connection(nginx.api) as c:
            r = c.request(sse.CHAT, sse.chat("x", stream=stream))
            assert sse.result_of(r).error["code"] == words.TRIES_EXHAUSTED
            assert r.status == 502 and b"smuggled" not in r.body
            r = c.request(sse.CHAT, sse.chat("y", stream=stream))
            assert (r.read(), r.status) == (b"good", 200)


def test_client_forges_no_line_of_the_error_log(cluster, ports):
    """By a model's name, which must have none in it, or by a path."""
    cluster.agent("gw", "gateway")
    cluster.adapter(cluster.engine("e1", model="m"), "a1")
    nginx = cluster.nginx(openai=True)
    cluster.wait_ready([cluster.gateway], ["a1"])
    got = sse.call(nginx.api, sse.CHAT, sse.chat("x", f"x\n{FORGED}\r\x1b[2J"))
    assert (got.status, got.error["code"]) == (400, "invalid_value")
    with sse.Connection(nginx.api) as c:
        r = c.request("/v1/x%0A" + re.sub("[^a-z]", "%20", FORGED))
        assert r.read() and r.status == 404
    lines = nginx.log().splitlines()
    assert not [line for line in lines if line.startswith((FORGED, "   "))]
    assert sum("forged" in line for line in lines) >= 1
