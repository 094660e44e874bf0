"""A client that goes away ends its request at the engine: only that makes
vLLM, SGLang and llama.cpp stop."""

import statistics
import time

import pytest

from llmgw.proc.place import SLOW
from llmgw.proc.wait import never, wait_for
from llmgw.speak import sse

# The front promises 10 ms; a busy machine gets more.
LIMIT = 0.1 * SLOW


@pytest.fixture(scope="module")
def nginx(shared):
    return shared.engines_fleet(1, adapter={"max_capacity": 2})


@pytest.fixture
def engine(shared, nginx):
    e = shared.engines["e1"]
    yield e
    e.faults(gate=None)
    wait_for(lambda: not e.state()["running"] and not nginx.in_flight(),
             "the engine to be idle")


def begin(engine, nginx, body):
    """A request that the engine has begun: (connection, response, its id)."""
    before = len(engine.events("place"))
    connection = sse.Connection(nginx.api)
    response = connection.request(sse.CHAT, body)
    places = wait_for(lambda: engine.events("place")[before:],
                      "the request at the engine")
    return connection, response, places[0]["id"]


def until_told(engine, number, go):
    """Waits until the engine has noticed; returns the seconds since go()."""
    at = time.monotonic()
    go()
    told = wait_for(lambda: [e for e in engine.events("disconnect")
                             if e["id"] == number],
                    "the engine to lose its client")
    return told[0]["t"] - at


WAYS = ("close", "reset", "half_close")


def leave_in_prefill(engine, nginx, stream, way):
    """No token will tell the gateway that its client is gone."""
    engine.faults(gate=0)
    c, _, number = begin(engine, nginx, sse.chat("x", stream=stream))
    took = until_told(engine, number, getattr(c, way))
    c.close()
    return took


@pytest.mark.parametrize("stream, way", [
    (True, "close"), (False, "half_close"),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in
      ((True, "reset"), (True, "half_close"), (False, "close"),
       (False, "reset")))])
def test_client_leaves_in_prefill(engine, nginx, stream, way):
    leave_in_prefill(engine, nginx, stream, way)


@pytest.mark.timed
@pytest.mark.alone
def test_engine_is_told_in_a_moment(engine, nginx):
    """As a rule: a machine may be slow now and then."""
    took = [leave_in_prefill(engine, nginx, stream, way)
            for way in WAYS for stream in (True, False)]
    assert statistics.median(took) < LIMIT, took


@pytest.mark.parametrize("way", ("reset", *(
    pytest.param(way, marks=pytest.mark.soak)
    for way in ("close", "half_close"))))
def test_client_leaves_in_the_stream(engine, nginx, way):
    engine.faults(gate=5)
    c, response, number = begin(engine, nginx,
                                sse.chat("x len=9;", stream=True))
    response.wait_events(3)
    until_told(engine, number, getattr(c, way))
    c.close()


@pytest.mark.soak
def test_client_leaves_while_a_whole_answer_is_made(engine, nginx):
    engine.faults(gate=3)
    before = engine.state()["tokens"]
    c, _, number = begin(engine, nginx, sse.chat("x len=9;"))
    wait_for(lambda: engine.state()["tokens"] == before + 3, "some tokens")
    until_told(engine, number, c.close)


@pytest.mark.parametrize("stream", (True, pytest.param(
    False, marks=pytest.mark.soak)))
def test_client_leaves_the_queue(engine, nginx, stream):
    engine.faults(gate=2)
    busy = [begin(engine, nginx, sse.chat(f"{i} len=9;", stream=True))
            for i in range(2)]
    before = len(engine.events("request", sse.CHAT))
    c = sse.Connection(nginx.api)
    c.request(sse.CHAT, sse.chat("waits", stream=stream))
    wait_for(lambda: nginx.waiting() == 1, "a request in the queue")
    c.close()
    wait_for(lambda: nginx.waiting() == 0, "an empty queue")
    for one in busy:
        one[0].close()
    never(lambda: len(engine.events("request", sse.CHAT)) > before, 0.2,
          "a request for nobody")


@pytest.mark.soak
def test_pipelined_bytes_are_no_goodbye(engine, nginx):
    engine.faults(gate=5)
    with sse.Connection(nginx.api) as c:
        first = c.request(sse.CHAT, sse.chat("one len=30;", stream=True))
        first.wait_events(2)
        second = c.request(sse.CHAT, sse.chat("two len=3;", stream=True))
        never(lambda: not nginx.in_flight(), 0.2, "an end of the first")
        engine.faults(gate=None)
        assert sse.result_of(first).done == 1
        assert sse.result_of(second).done == 1
