"""What engines do to those who call them: close idle connections, say that
they are full.  No client may notice."""

import concurrent.futures
import itertools
import os
import time

import pytest

from llmgw.proc.seed import rng
from llmgw.proc.wait import wait_for
from llmgw.speak import sse

# make soak: as many requests as are quick, with an engine that closes idle
# connections early.  LLMGW_IDLE=1000: that many, with uvicorn's own 5 s.
LONG = int(os.environ.get("LLMGW_IDLE", 0))
REQUESTS = LONG or 60
IDLE = 5 if LONG else 0.25
CONNECTIONS = 50 if LONG else 6


@pytest.mark.soak
def test_idle_connections_that_engines_close_cost_no_request(cluster):
    nginx = cluster.engines_fleet(1, keep_alive=IDLE)
    right = sse.call(cluster.engines["e1"].target, sse.CHAT,
                     sse.chat("idle len=3;")).text
    numbers = itertools.count()

    def client(seed):
        pause, n = rng(seed), 0
        with sse.Connection(nginx.api) as connection:
            while next(numbers) < REQUESTS:
                got = sse.result_of(connection.request(
                    sse.CHAT, sse.chat("idle len=3;", stream=seed % 2 == 0)))
                assert (got.error, got.text) == (None, right)
                n += 1
                time.sleep(IDLE * pause.uniform(0.95, 1.05))
        return n
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        assert sum(pool.map(client, range(CONNECTIONS))) == REQUESTS
    closed = cluster.engines["e1"].events("close")
    assert len(closed) > 3      # or nothing was tried


@pytest.mark.parametrize("status", (429, pytest.param(
    503, marks=pytest.mark.soak)))
def test_full_engine_makes_requests_wait(cluster, status):
    nginx = cluster.engines_fleet(1, nginx={"pool": "llmgw_queue 100;"})
    e = cluster.engines["e1"]
    e.faults(status=status, times=3)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda n: sse.call(
            nginx.api, sse.CHAT, sse.chat(f"{n} len=4;", stream=n % 2 == 0)),
            range(4)))
    assert [g.error for g in got] == [None] * 4
    assert e.state()["faults"]["times"] == 0


def test_engine_is_never_given_more_than_it_runs(cluster):
    """Our queue stands in front, so that the engine's stays empty."""
    nginx = cluster.engines_fleet(1, "sglang", max_running=3)
    e = cluster.engines["e1"]
    cluster.hold(2)
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        jobs = [pool.submit(sse.call, nginx.api, sse.CHAT,
                            sse.chat(f"{n} len=10;", stream=True))
                for n in range(12)]
        wait_for(lambda: nginx.waiting() == 9, "all but three to wait")
        wait_for(lambda: e.state()["running"] == 3, "three at the engine")
        assert e.state()["waiting"] == 0
        cluster.let_go()
    assert [job.result().error for job in jobs] == [None] * 12
    assert e.state()["peak"] == 3
    events = [x["event"] for x in e.events() if x["event"] in ("place", "end")
              or x.get("path") == sse.CHAT]
    asked = ran = 0
    for event in events:        # none is asked for while three run
        asked += event == "request"
        ran += event == "end"
        assert asked - ran <= 3, events


@pytest.mark.soak
def test_capacity_that_nobody_tells_is_learnt(cluster):
    """vLLM does not say how many it runs at once; what waits at it does."""
    nginx = cluster.engines_fleet(1, "vllm", max_running=2)
    e = cluster.engines["e1"]
    cluster.hold(2)
    connections = [sse.Connection(nginx.api) for _ in range(6)]
    for n, connection in enumerate(connections):
        connection.request(sse.CHAT, sse.chat(f"{n} len=9;", stream=True))
    wait_for(lambda: e.state()["waiting"], "requests that wait at it")
    wait_for(lambda: nginx.replicas()["a1"]["max_capacity"] in range(1, 6),
             "a capacity below what was asked for", takes=4)
    cluster.let_go()
    for connection in connections:
        connection.close()
    wait_for(lambda: not e.state()["running"] and not nginx.in_flight(),
             "an idle engine")
    assert sse.call(nginx.api, sse.CHAT, sse.chat("len=3;")).error is None
