"""An engine that hangs while its /health says 200."""

import concurrent.futures
import re

import pytest

from llmgw.engine import model
from llmgw.proc.wait import never, wait_for
from llmgw.speak import clients, sse

STREAMS = 8
DEFAULT = {"stall_timeout": None}       # learnt
SHAPES = {"plain": {}, "n": {"n": 3}, "logprobs": {"logprobs": True},
          "tools": {"tools": [{"type": "function", "function": {
              "name": "f", "parameters": {"type": "object",
                                          "properties": {}}}}]}}

# Of one beginning, so that they all belong to one engine.
HERE = "all of these requests belong to one and the same engine, since they" \
       " begin alike: "


def right(body):
    return model.decode(model.said(model.render(body["messages"])))


def timeout(seconds):
    """The gateway's token time-out."""
    return {"http": f"llmgw_token_timeout {seconds}s;"}


def service(nginx, engine):
    return nginx.replicas()[f"a{engine.id[1:]}"]["service"]


def busy(cluster, tokens):
    """(The engine that has generated so many, the other one.)"""
    engines = list(cluster.engines.values())
    wait_for(lambda: sum(e.state()["tokens"] for e in engines) == tokens,
             "a stream")
    return sorted(engines, key=lambda e: -e.state()["tokens"])


@pytest.mark.first
def test_streams_move_from_a_hung_engine(cluster):
    """Its sessions and its /health stand; when there was no progress for the
    stall time-out, its streams get no sign of life any more."""
    nginx = cluster.engines_fleet(2, adapter={"stall_timeout": "1s"},
                                  nginx=timeout(3))
    hung, well = cluster.engines["e1"], cluster.engines["e2"]
    cluster.hold(5)
    asks = [sse.chat(f"{n} hung len=20;", stream=True) for n in range(STREAMS)]
    with concurrent.futures.ThreadPoolExecutor(STREAMS) as pool:
        jobs = [pool.submit(sse.call, nginx.api, sse.CHAT, ask, takes=6)
                for ask in asks]
        wait_for(lambda: hung.state()["running"] and well.state()["running"]
                 and hung.state()["tokens"] + well.state()["tokens"]
                 >= STREAMS * 5, "both engines to run some")
        hung.faults(hang=True)
        well.faults(gate=None)
        wait_for(lambda: service(nginx, hung) == "STALLED",
                 "a1 to be STALLED", takes=6)
        results = [job.result() for job in jobs]
    hung.faults(hang=None, gate=None)
    for ask, got in zip(asks, results):
        assert (got.error, got.text) == (None, [right(ask)])
        assert (got.done, len(got.ids), got.roles) == (1, 1, 1)
    wait_for(lambda: service(nginx, hung) == "READY",
             "a1 to be well again", takes=4)


def test_frozen_engine_gets_nothing_new(cluster):
    """SIGSTOP: it answers no probe either.  The token time-out moves its
    stream, and no request is sent there from then on."""
    nginx = cluster.engines_fleet(2, adapter=DEFAULT, nginx=timeout(2))
    cluster.hold(3)
    ask = sse.chat(HERE + "frozen len=9;", stream=True)
    with sse.Connection(nginx.api, takes=5) as c:
        response = c.request(sse.CHAT, ask)
        frozen, well = busy(cluster, 3)
        well.faults(gate=None)
        frozen.proc.freeze()
        got = sse.result_of(response)
    assert (got.error, got.text) == (None, [right(ask)])
    wait_for(lambda: service(nginx, frozen) == "STALLED", "a stall", takes=6)
    for n in range(5):
        got = sse.call(nginx.api, sse.CHAT, sse.chat(f"{HERE} {n} len=3;"))
        assert got.error is None
    frozen.proc.thaw()
    frozen.faults(gate=None)
    wait_for(lambda: service(nginx, frozen) == "READY", "READY", takes=4)
    assert len(frozen.events("request", path=sse.CHAT)) == 1


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_engine_that_compiles_for_40_seconds_loses_nothing(cluster, kind):
    """Both have just started; their first steps take that long, with streams in
    the middle and before their first token, whatever the streams' shape."""
    nginx = cluster.engines_fleet(2, kind, adapter=DEFAULT, nginx=timeout(10))
    cluster.hold(2)
    asks = [sse.chat(f"{n} compiles call=f; len=9;", stream=True, **shape)
            for n, shape in enumerate([*SHAPES.values()] * 4)]
    with concurrent.futures.ThreadPoolExecutor(len(asks)) as pool:
        jobs = [pool.submit(sse.call, nginx.api, sse.CHAT, ask, timeout=60,
                            takes=50) for ask in asks[:8]]
        wait_for(lambda: sum(e.state()["running"]
                             for e in cluster.engines.values()) == 8, "them")
        for e in cluster.engines.values():
            e.faults(hang=True)
        jobs += [pool.submit(sse.call, nginx.api, sse.CHAT, ask, timeout=60,
                             takes=50) for ask in asks[8:]]
        never(lambda: any(r["service"] != "READY"
                          for r in nginx.replicas().values()), 40)
        for e in cluster.engines.values():
            e.faults(hang=None, gate=None)
        results = [job.result() for job in jobs]
    for got in results:
        assert got.error is None and got.done == 1
        assert all(got.finish_reason)
    asked = sum(len(e.events("request", path=sse.CHAT))
                for e in cluster.engines.values())
    assert asked == len(asks)


def test_request_that_its_engine_lost_goes_on_elsewhere(cluster):
    """However busy the engine is with others."""
    nginx = cluster.engines_fleet(2, adapter={"stream_idle_timeout": "2s"})
    with sse.Connection(nginx.api, takes=8) as c:
        cluster.hold(3)
        beside = c.request(sse.CHAT, sse.chat(HERE + "beside len=4000;",
                                              stream=True))
        loser, other = busy(cluster, 3)
        loser.faults(lose="astray", gate=None, token_delay=0.02)
        other.faults(gate=None)
        ask = sse.chat(HERE + "astray len=5;", stream=True)
        got = sse.call(nginx.api, sse.CHAT, ask, takes=5)
        assert (got.error, got.text) == (None, [right(ask)])
        assert loser.state()["running"] == 1
        beside.wait_events(len(beside.events) + 1)
        assert len(loser.events("request", path=sse.CHAT)) == 2


@pytest.mark.soak
def test_step_of_a_resume_that_hangs_ends(cluster):
    """To render the prompt an engine has 10 s; then it is asked again."""
    def steps():
        return [e for e in heir.events("request") if "tokenize" in e["path"]]
    nginx = cluster.engines_fleet(2)
    cluster.hold(3)
    ask = sse.chat("a step len=9;", stream=True)
    with sse.Connection(nginx.api, takes=14) as c:
        response = c.request(sse.CHAT, ask)
        lost, heir = busy(cluster, 3)
        heir.faults(gate=None, hang_steps=True)
        lost.proc.kill()
        wait_for(steps, "a step")
        heir.faults(hang_steps=None)
        got = sse.result_of(response)
    assert (got.error, got.text) == (None, [right(ask)])
    assert len(steps()) > 1


@pytest.mark.soak
def test_idle_engine_that_counts_late_is_not_called_hung(cluster):
    """SGLang says for half a minute that its last request runs, if its health
    generates nothing."""
    nginx = cluster.engines_fleet(1, "sglang",
                                  adapter={"stall_timeout": "1s"})
    e = cluster.engines["e1"]
    e.faults(token_delay=0.1, plain_health=True)
    got = sse.call(nginx.api, sse.CHAT, sse.chat("last len=30;", stream=True))
    assert got.done == 1
    status, _, page, _ = clients.curl(f"{e.url}/metrics")
    assert status == 200
    assert re.search(rb"num_running_reqs\S* 1\.0\n", page)
    never(lambda: nginx.replicas()["a1"]["service"] != "READY", 4)


@pytest.mark.soak
def test_busy_engine_is_not_called_hung(cluster):
    """One that answers nobody but its streams is busy."""
    nginx = cluster.engines_fleet(1, adapter=DEFAULT)
    e = cluster.engines["e1"]
    e.faults(token_delay=0.1)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat("slow len=45;", stream=True))
        r.wait_events(2)
        e.faults(hang_metrics=True)
        while not r.complete:
            r.wait_events(len(r.events) + 1)
            assert nginx.replicas()["a1"]["service"] == "READY"
        e.faults(hang_metrics=False)
        assert sse.result_of(r).error is None
