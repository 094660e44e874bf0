"""Engines that refuse requests for now: 429 and 503, and Retry-After."""

import pytest

from llmgw.fleet import words
from llmgw.proc.wait import wait_for
from llmgw.speak import sse


def asks(engine):
    return len(engine.events("request", path=sse.CHAT))


@pytest.mark.parametrize("status", [429, pytest.param(
    503, marks=pytest.mark.soak)])
def test_request_asks_no_sooner_than_its_engine_wants(cluster, status):
    """Until its time in the queue is over: not twenty times a second."""
    nginx = cluster.engines_fleet(1, nginx={
        "pool": "llmgw_queue 10 timeout=1500ms;"})
    e = cluster.engines["e1"]
    e.faults(status=status, retry_after=1)
    got = sse.call(nginx.api, sse.CHAT, sse.chat("full len=3;"))
    assert (got.status, got.error["code"]) == (429, words.QUEUE_TIMEOUT)
    assert 1 <= asks(e) <= 3


def test_request_goes_back_when_its_engine_wants(cluster):
    nginx = cluster.engines_fleet(1)
    e = cluster.engines["e1"]
    e.faults(status=503, retry_after=1, times=1)
    got = sse.call(nginx.api, sse.CHAT, sse.chat("later len=3;"))
    assert got.error is None and got.finish_reason == ["stop"]
    assert asks(e) == 2


def test_request_without_a_time_asks_ever_less_often(cluster):
    """100 ms, doubling."""
    nginx = cluster.engines_fleet(1, nginx={
        "pool": "llmgw_queue 10 timeout=1500ms;"})
    e = cluster.engines["e1"]
    e.faults(status=503)
    got = sse.call(nginx.api, sse.CHAT, sse.chat("full len=3;"))
    assert got.error["code"] == words.QUEUE_TIMEOUT
    assert 2 <= asks(e) <= 6


def test_one_tenants_refusal_takes_the_engine_from_nobody(cluster):
    """It waits as long as it was told, and others are served meanwhile."""
    nginx = cluster.engines_fleet(1)
    e = cluster.engines["e1"]
    e.faults(status=429, retry_after=9, times=1)
    with sse.Connection(nginx.api) as c:
        c.request(sse.CHAT, sse.chat("over quota len=3;", stream=True))
        wait_for(lambda: nginx.waiting() == 1, "it to wait")
        for n in range(5):
            got = sse.call(nginx.api, sse.CHAT, sse.chat(f"{n} len=3;"))
            assert got.error is None
        assert nginx.waiting() == 1 and asks(e) == 6
    wait_for(lambda: nginx.waiting() == 0, "its client to be gone")


def test_another_engine_serves_what_one_refuses(cluster):
    nginx = cluster.engines_fleet(2)
    one, other = cluster.engines["e1"], cluster.engines["e2"]
    one.faults(status=503, retry_after=9)
    for n in range(6):
        got = sse.call(nginx.api, sse.CHAT, sse.chat(f"{n} len=3;"))
        assert got.error is None
    assert asks(other) == 6
