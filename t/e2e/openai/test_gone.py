"""A client that goes away ends its request at the engine: only that makes
vLLM, SGLang and llama.cpp stop."""

import statistics
import time

import pytest

from llmgw import sse
from llmgw.place import SLOW
from llmgw.wait import never, wait_for

# The front promises 10 ms; a busy machine gets more.
LIMIT = 0.1 * SLOW


@pytest.fixture(scope="module")
def nginx(shared):
    """No engine that is silent is thought to hang."""
    return shared.engines_fleet(
        1, adapter={"max_capacity": 2, "stall_timeout": "2m"},
        nginx={"openai": "llmgw_token_timeout 2m;"})


@pytest.fixture
def engine(shared, nginx):
    e = shared.engines["e1"]
    yield e
    e.faults(token_delay=None, first_delay=None)
    wait_for(lambda: not e.state()["running"] and not nginx.in_flight(), 5,
             "the engine to be idle")


def begin(engine, nginx, body):
    """A request that the engine has begun: (connection, response, its id)."""
    before = len(engine.events("place"))
    connection = sse.Connection(nginx.api)
    response = connection.request(sse.CHAT, body)
    places = wait_for(lambda: engine.events("place")[before:], 5,
                      "the request at the engine")
    return connection, response, places[0]["id"]


def seconds_until_told(engine, number, go):
    """How long after go() the engine has noticed."""
    at = time.monotonic()
    go()
    told = wait_for(lambda: [e for e in engine.events("disconnect")
                             if e["id"] == number], 10,
                    "the engine to lose its client")
    return told[0]["t"] - at


WAYS = ("close", "reset", "half_close")


def leave_in_prefill(engine, nginx, stream, way):
    """No token will tell the gateway that its client is gone."""
    engine.faults(first_delay=60)
    c, _, number = begin(engine, nginx, sse.chat("x", stream=stream))
    took = seconds_until_told(engine, number, getattr(c, way))
    c.close()
    return took


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stream", (True, False))
def test_client_leaves_in_prefill(engine, nginx, stream, way):
    leave_in_prefill(engine, nginx, stream, way)


@pytest.mark.alone
def test_engine_is_told_in_a_moment(engine, nginx):
    """As a rule: a machine may be slow now and then."""
    took = [leave_in_prefill(engine, nginx, stream, way)
            for way in WAYS for stream in (True, False)]
    assert statistics.median(took) < LIMIT, took


@pytest.mark.parametrize("way", WAYS)
def test_client_leaves_in_the_stream(engine, nginx, way):
    engine.faults(token_delay=0.02)
    c, response, number = begin(engine, nginx,
                                sse.chat("x len=900;", stream=True))
    response.wait_events(3)
    engine.faults(token_delay=60)
    seconds_until_told(engine, number, getattr(c, way))
    c.close()


def test_client_leaves_while_a_whole_answer_is_made(engine, nginx):
    engine.faults(token_delay=0.02)
    c, _, number = begin(engine, nginx, sse.chat("x len=900;"))
    before = engine.state()["tokens"]
    wait_for(lambda: engine.state()["tokens"] > before + 3, 5, "some tokens")
    engine.faults(token_delay=60)
    seconds_until_told(engine, number, c.close)


@pytest.mark.parametrize("stream", (True, False))
def test_client_leaves_the_queue(engine, nginx, stream):
    engine.faults(token_delay=0.05)
    busy = [begin(engine, nginx, sse.chat(f"{i} len=900;", stream=True))
            for i in range(2)]
    before = len(engine.events("request", sse.CHAT))
    c = sse.Connection(nginx.api)
    c.request(sse.CHAT, sse.chat("waits", stream=stream))
    wait_for(lambda: nginx.waiting() == 1, 5, "a request in the queue")
    c.close()
    wait_for(lambda: nginx.waiting() == 0, 10, "an empty queue")
    for one in busy:
        one[0].close()
    never(lambda: len(engine.events("request", sse.CHAT)) > before, 0.2,
          "a request for nobody")


def test_pipelined_bytes_are_no_goodbye(engine, nginx):
    engine.faults(token_delay=0.01)
    with sse.Connection(nginx.api) as c:
        first = c.request(sse.CHAT, sse.chat("one len=30;", stream=True))
        first.wait_events(2)
        second = c.request(sse.CHAT, sse.chat("two len=3;", stream=True))
        assert sse.result_of(first).done == 1
        assert sse.result_of(second).done == 1
