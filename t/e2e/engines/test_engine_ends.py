"""An engine that was told to end finishes what it has begun: none of its
streams is cut, and nothing new is sent there."""

import concurrent.futures
import contextlib
import signal

import pytest

from llmgw.fleet import words
from llmgw.proc.wait import wait_for
from llmgw.speak import generate, sse

TOOL = {"type": "function", "function": {
    "name": "f", "parameters": {"type": "object", "properties": {}}}}

# Those that no other engine could go on with, and one that one could.
SHAPES = {"plain": {}, "n": {"n": 3}, "tools": {"tools": [TOOL]},
          "logprobs": {"logprobs": True, "top_logprobs": 2}}
TOKENS = 3

# How an engine closes its door, by kind.
DOORS = [("sglang", {"health": 503}), ("vllm", {"deaf": True})]


def body(shape):
    return sse.chat("the end call=f; len=12;", stream=True, **SHAPES[shape])


def says(result):
    return (result.error, result.text, result.finish_reason, result.logprobs,
            [{k: v for k, v in call.items() if k != "id"}
             for call in result.tool_calls])


@pytest.fixture
def streams(cluster):
    """Starts one of each shape, holds them at a token; called with nothing it
    lets them finish and returns what they said."""
    with contextlib.ExitStack() as stack:
        def start(nginx):
            cluster.hold(TOKENS)
            for shape in SHAPES:
                c = stack.enter_context(sse.Connection(nginx.api, takes=20))
                begun[shape] = c.request(sse.CHAT, body(shape))
            tokens = TOKENS * sum(s.get("n", 1) for s in SHAPES.values())
            wait_for(lambda: cluster.engines["e1"].state()["tokens"] == tokens,
                     "all to be held")
        begun = {}
        start.results = lambda: {shape: says(sse.result_of(r))
                                 for shape, r in begun.items()}
        yield start


@pytest.fixture(params=DOORS, ids=[kind for kind, _ in DOORS])
def ending(request, cluster, streams):
    """A fleet whose first engine has streams and closes its door."""
    kind, faults = request.param
    nginx = cluster.engines_fleet(1, kind,
                                  nginx={"pool": "llmgw_queue hold=0;"})
    right = cluster.engine("right", kind)
    told = {shape: says(sse.call(right.target, sse.CHAT, body(shape),
                                 strict=False)) for shape in SHAPES}
    right.proc.kill()
    streams(nginx)
    engine = cluster.engines["e1"]
    seen = len(engine.events("request"))
    wait_for(lambda: len(engine.events("request")) > seen,
             "a probe, whose connection the engine keeps")
    engine.faults(**faults)
    wait_for(lambda: nginx.replicas()["a1"]["draining"], "a1 to be draining",
             takes=4)
    return nginx, engine, streams, told


def test_streams_of_an_engine_that_ends_are_finished(ending, cluster):
    """With n > 1, tools and logprobs among them.  New requests are not sent
    there, and those who ask it all the same are told that it drains."""
    nginx, engine, streams, told = ending
    before = len(engine.events("request", path=sse.CHAT))
    got = sse.call(nginx.api, sse.CHAT, sse.chat("late len=3;"))
    assert got.error["code"] == words.NO_REPLICAS
    late = generate.ask(cluster.replicas["a1"].client,
                        sse.chat("late len=3;", stream=True))
    assert late.code == "UNAVAILABLE"
    assert late.trailers["llmgw-draining"] == "1"
    engine.proc.send(signal.SIGUSR1)
    assert streams.results() == told
    assert len(engine.events("request", path=sse.CHAT)) == before
    assert nginx.replicas()["a1"]["service"] != "STALLED"


@pytest.mark.soak
def test_engine_that_is_ready_again_gets_work(ending, cluster):
    """The next process, or the same one that answers 200 again."""
    nginx, engine, streams, told = ending
    engine.proc.send(signal.SIGUSR1)
    assert streams.results() == told
    engine.proc.kill()
    engine.start()
    wait_for(lambda: not nginx.replicas()["a1"]["draining"]
             and nginx.routable() == ["a1"], "a1 to be routable", takes=4)
    got = sse.call(nginx.api, sse.CHAT, sse.chat("new len=3;"))
    assert got.error is None


@pytest.mark.soak
def test_engine_that_answers_ends_its_own_drain_alone(cluster):
    """An operator's drain stays.  SGLang's health takes over a second, since it
    generates a token."""
    nginx = cluster.engines_fleet(1, "sglang")
    engine, replica = cluster.engines["e1"], cluster.replicas["a1"]
    engine.faults(health_delay=1.1)
    draining = lambda: nginx.replicas()["a1"]["draining"]   # noqa: E731
    engine.faults(health=503)
    wait_for(draining, "it to be draining", takes=5)
    engine.faults(health=None)
    wait_for(lambda: not draining(), "it to be back", takes=5)
    engine.faults(health=503)
    wait_for(draining, "it to be draining", takes=5)
    assert replica.client.drain().success
    engine.faults(health=None)
    wait_for(lambda: replica.proc.text().count("it was DRAINING") == 2,
             "the engine to be back", takes=5)
    assert draining() and "does not answer" not in replica.proc.text()
    assert replica.client.undrain().success
    wait_for(lambda: not draining(), "it to be back")


def test_engine_that_says_that_it_is_dead_is_down(cluster):
    """vLLM's 503: the engine behind the server has failed."""
    nginx = cluster.engines_fleet(2)
    cluster.hold(TOKENS)
    dead = None
    with concurrent.futures.ThreadPoolExecutor() as pool:
        job = pool.submit(sse.call, nginx.api, sse.CHAT,
                          sse.chat("dead len=9;", stream=True), takes=8)
        wait_for(lambda: any(e.state()["running"] for e
                             in cluster.engines.values()), "the stream")
        dead = next(e for e in cluster.engines.values()
                    if e.state()["running"])
        dead.faults(health=503, hang=True)
        wait_for(lambda: nginx.replicas()[f"a{dead.id[1:]}"]["service"]
                 == "DOWN", "it to be DOWN", takes=4)
        cluster.let_go()
        got = job.result()
    assert got.error is None and got.finish_reason == ["stop"]
    dead.faults(health=None, hang=None)
