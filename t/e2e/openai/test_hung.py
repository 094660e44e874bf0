"""An engine that hangs while its /health says 200."""

import concurrent.futures
import re

import pytest

from llmgw import clients, sse
from llmgw.engine import model
from llmgw.wait import never, wait_for

STREAMS = 8
DEFAULT = {"stall_timeout": None}       # 2.5 s


def right(body):
    return model.decode(model.said(model.render(body["messages"])))


@pytest.mark.first
def test_streams_move_from_a_hung_engine(cluster):
    nginx = cluster.engines_fleet(2, adapter=DEFAULT)
    hung, well = cluster.engines["e1"], cluster.engines["e2"]
    cluster.hold(5)
    asks = [sse.chat(f"{n} hung len=20;", stream=True) for n in range(STREAMS)]
    with concurrent.futures.ThreadPoolExecutor(STREAMS) as pool:
        jobs = [pool.submit(sse.call, nginx.api, sse.CHAT, ask, takes=6)
                for ask in asks]
        wait_for(lambda: hung.state()["running"] and well.state()["running"]
                 and hung.state()["tokens"] + well.state()["tokens"]
                 == STREAMS * 5, "both engines to run some")
        hung.faults(hang=True)
        well.faults(gate=None)
        wait_for(lambda: nginx.replicas()["a1"]["service"] == "STALLED",
                 "a1 to be STALLED", takes=6)
        results = [job.result() for job in jobs]
    hung.faults(hang=None, gate=None)
    for ask, got in zip(asks, results):
        assert (got.error, got.text) == (None, [right(ask)])
        assert (got.done, len(got.ids), got.roles) == (1, 1, 1)
    wait_for(lambda: nginx.replicas()["a1"]["service"] == "READY",
             "a1 to be well again", takes=4)


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
