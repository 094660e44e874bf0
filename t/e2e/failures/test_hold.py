"""While an upstream has no replica, its requests are held (docs/adr/0034)."""

import contextlib
import os
import re
import signal
import time

import pytest

from llmgw.fleet import words
from llmgw.fleet.native import QUEUED, grpc
from llmgw.proc.wait import never, wait_for
from llmgw.speak import rpc, sse
from llmgw.speak.callers import finish
from llmgw.speak.traffic import Traffic

# The machine may be slow; the product's own is 5 s.
LONG = "llmgw_queue 2000 hold=25s;"
METRICS = "location = /metrics { llmgw_metrics; }"


def fleet(cluster, pool=LONG, server="", replica=None, **nginx):
    return cluster.fleet(1, replica=replica, nginx={
        "pool": pool, "server": METRICS + server, **nginx})


def held(nginx):
    return nginx.pool()["queue"]["held"]


def scraped(nginx):
    """What /metrics says of held requests: (now, in all)"""
    text = nginx.get("/metrics")[1].decode()
    return tuple(float(re.search(rf'^{name}{{upstream="llm"}} (\S+)$', text,
                                 re.M)[1])
                 for name in ("llmgw_held", "llmgw_held_total"))


def gone(cluster, nginx):
    cluster.replicas["r1"].kill()
    wait_for(lambda: not nginx.routable(), "no replica")


# an engine that is restarted

@pytest.mark.parametrize("hold", ["25s", "0"])
def test_only_replica_restarted_under_traffic(cluster, load, expect, hold):
    """At 100 requests a second: none fails; without a hold only those fail
    that met the outage."""
    nginx = fleet(cluster, f"llmgw_queue 2000 hold={hold};", workers=1)
    traffic = Traffic(load, [nginx])
    wait_for(lambda: nginx.pool()["totals"]["tokens"] > 100, "traffic")
    killed = time.monotonic()
    gone(cluster, nginx)
    if hold != "0":
        wait_for(lambda: held(nginx) >= 5, "requests to be held")
    cluster.replicas["r1"].start()
    wait_for(lambda: nginx.routable() == ["r1"], "it to be back")
    back = time.monotonic()
    before = nginx.pool()["totals"]["tokens"]
    wait_for(lambda: nginx.pool()["totals"]["tokens"] > before + 1000,
             "traffic again")
    if hold != "0":
        assert traffic.check(expect) > 20
    else:
        part, = traffic.parts
        part.stop()
        failed = [r for r in part.results() if r.code != "OK"]
        assert failed and {r.trailers[words.REASON] for r in failed} \
            <= {words.NO_REPLICAS, words.TRIES_EXHAUSTED}
        assert all(killed < r.began + r.seconds and r.began < back
                   for r in failed)
    wait_for(lambda: not nginx.counts() and held(nginx) == 0, "zeros")


def test_streams_of_the_only_engine_go_on_when_it_is_back(cluster):
    """Behind an adapter, which sees at once that it is gone and back."""
    nginx = cluster.engines_fleet(1, "vllm", nginx={"pool": LONG,
                                                   "server": METRICS})
    engine = cluster.engines["e1"]

    def ask(i, c):
        return c.request(sse.CHAT, sse.chat(f"{i} len=9;", stream=True))
    right = cluster.engine("right", "vllm")
    told = []
    for i in range(20):
        with sse.Connection(right.target) as c:
            told.append(sse.result_of(ask(i, c)).text)
    cluster.hold(3)
    with contextlib.ExitStack() as stack:
        streams = [ask(i, stack.enter_context(
            sse.Connection(nginx.api, takes=60))) for i in range(20)]
        wait_for(lambda: engine.state()["tokens"] == 60, "three of each")
        engine.proc.kill()
        wait_for(lambda: held(nginx) == 20, "all to be held")
        engine.start()
        got = [sse.result_of(r) for r in streams]
    assert [(r.error, r.text) for r in got] == [(None, t) for t in told]
    assert scraped(nginx) == (0, 20)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_request_waits_for_a_replica_that_was_stopped(cluster, caller, expect,
                                                      how):
    """New ones, those that waited for room, and streams, in their order."""
    nginx = fleet(cluster, replica={"max_capacity": 1,
                                    "drain_timeout": "1ms"})
    cluster.hold(2)
    running, waiting, late = caller(nginx), caller(nginx), caller(nginx)
    running.ask("running", 9)
    running.wait_first()
    waiting.ask("waiting", 9)
    wait_for(lambda: nginx.waiting() == 1, "one in the queue")
    assert held(nginx) == 0
    cluster.replicas["r1"].stop(how)
    wait_for(lambda: held(nginx) == 2, "both to be held")
    assert nginx.pool()["queue"]["waits_for"] == "replica"
    late.ask("late", 9)
    wait_for(lambda: held(nginx) == 3, "the newcomer, too")
    assert scraped(nginx) == (3, 3)
    cluster.replicas["r1"].start()
    in_order = [running, waiting, late]
    assert finish(in_order, takes=30) == in_order
    assert [one.tokens for one in in_order] \
        == [expect(prompt, 9) for prompt in ("running", "waiting", "late")]
    assert scraped(nginx) == (0, 3)


def test_drain_that_the_view_does_not_show_yet_fails_nobody(cluster, client,
                                                            expect):
    """nginx learns of it from the refusal alone: its agent stands still."""
    nginx = fleet(cluster)
    cluster.gateway.proc.freeze()
    replica = cluster.replicas["r1"]
    replica.proc.send(signal.SIGTERM)
    replica.proc.wait()
    call = client(nginx).start("patient", 4)
    cluster.gateway.proc.thaw()
    wait_for(lambda: held(nginx) == 1, "it to be held")
    replica.start()
    assert [t.token for t in call] == expect("patient", 4)


# how a hold ends

def test_hold_has_an_end(cluster, client):
    """Each has its own, streams with tokens and whole answers included."""
    nginx = fleet(cluster, "llmgw_queue 9 hold=400ms;", openai=True)
    gone(cluster, nginx)
    got = client(nginx).stream("x", 3)
    assert (got.code, got.trailers[words.REASON]) == ("UNAVAILABLE",
                                                      words.NO_REPLICAS)
    got = sse.call(nginx.api, sse.TEXT, sse.text("x"))
    assert (got.status, got.error["code"]) == (503, words.NO_REPLICAS)
    assert scraped(nginx) == (0, 2)


@pytest.mark.parametrize("pool, code, reason", [
    ("llmgw_queue 2 hold=25s;", "DEADLINE_EXCEEDED", None),
    ("llmgw_queue 2 timeout=300ms;", "UNAVAILABLE", words.NO_REPLICAS),
    ("llmgw_queue 2 hold=25s ttl=300ms;", "UNAVAILABLE", words.NO_REPLICAS)])
def test_other_limits_end_a_hold(cluster, client, pool, code, reason):
    nginx = fleet(cluster, pool)
    gone(cluster, nginx)
    timeout = 0.4 if code == "DEADLINE_EXCEEDED" else 20
    got = client(nginx).stream("x", 3, timeout=timeout)
    assert (got.code, got.trailers.get(words.REASON)) == (code, reason)
    wait_for(lambda: not nginx.counts() and held(nginx) == 0, "zeros")


def test_queue_limits_how_many_are_held(cluster, client, caller):
    nginx = fleet(cluster, "llmgw_queue 2 hold=25s;")
    gone(cluster, nginx)
    waiting = [caller(nginx).ask(f"{i}", 3) for i in range(2)]
    wait_for(lambda: held(nginx) == 2, "two to be held")
    got = client(nginx).stream("one more", 3)
    assert (got.code, got.trailers[words.REASON]) == ("RESOURCE_EXHAUSTED",
                                                      words.QUEUE_FULL)
    for one in waiting:
        one.cancel()
    wait_for(lambda: held(nginx) == 0 and nginx.waiting() == 0, "zeros")


def test_worker_that_dies_takes_what_it_held_with_it(cluster, caller):
    cluster.allowed += ["exited on signal 9"]
    nginx = fleet(cluster, workers=1)
    gone(cluster, nginx)
    caller(nginx).ask("x", 3)
    wait_for(lambda: held(nginx) == 1, "it to be held")
    os.kill(nginx.workers()[0], signal.SIGKILL)
    wait_for(lambda: held(nginx) == 0 and nginx.waiting() == 0, "zeros")


def test_no_hold_is_as_before(cluster, client):
    """hold=0, and no queue."""
    nginx = fleet(cluster, "llmgw_queue hold=0;")
    without = cluster.nginx(pool="llmgw_queue off;", server=METRICS)
    gone(cluster, nginx)
    wait_for(lambda: not without.routable(), "no replica")
    for one in (nginx, without):
        got = client(one).stream("x", 3)
        assert got.trailers[words.REASON] == words.NO_REPLICAS
        assert scraped(one) == (0, 0)


def test_unknown_upstream_holds_nothing(cluster, client):
    """Known are those that a line names, or that a replica was listed of."""
    cluster.agent("gw", "gateway")
    unknown = cluster.nginx(pool=LONG)
    named = cluster.nginx(pool=LONG, openai="llmgw_model m;")
    got = client(unknown).stream("x", 3)
    assert got.trailers[words.REASON] == words.NO_REPLICAS
    call = client(named).start("x", 3)
    wait_for(lambda: held(named) == 1, "it to be held")
    call.cancel()
    cluster.pair("r1")
    wait_for(lambda: unknown.routable() == ["r1"], "a replica")
    cluster.replicas["r1"].kill()
    wait_for(lambda: not unknown.routable(), "it to be gone")
    call = client(unknown).start("x", 3)
    wait_for(lambda: held(unknown) == 1, "it to be held")
    call.cancel()


# what clients see meanwhile

CALM = "llmgw_sse_keepalive 100ms header=200ms;"


def test_held_stream_gets_a_header_and_pings(cluster, expect):
    nginx = fleet(cluster, openai=CALM)
    gone(cluster, nginx)
    with sse.Connection(nginx.api, takes=60) as c, \
            sse.Connection(nginx.api, takes=60) as whole:
        answer = whole.request(sse.TEXT, sse.text("whole", max_tokens=3))
        r = c.request(sse.TEXT, sse.text("calm", stream=True, max_tokens=3))
        r.wait_comments(2)
        assert r.status == 200
        assert held(nginx) == 2
        cluster.replicas["r1"].start()
        assert sse.result_of(r).text == ["".join(expect("calm", 3))]
        got = sse.result_of(answer)
        assert got.text == ["".join(expect("whole", 3))]


def test_error_after_the_header_is_an_event(cluster):
    nginx = fleet(cluster, "llmgw_queue 9 hold=700ms;", openai=CALM)
    gone(cluster, nginx)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.TEXT, sse.text("x", stream=True))
        got = sse.result_of(r)
    assert (r.status, got.done) == (200, 0)
    assert got.error["code"] == words.NO_REPLICAS


# native passes

def test_native_pass_with_queue_is_held(cluster, client, expect):
    """Without queue= it cannot wait."""
    nginx = fleet(cluster, **grpc(QUEUED))
    gone(cluster, nginx)
    call = client(nginx).start("held", 3, method=rpc.GENERATE)
    wait_for(lambda: held(nginx) == 1, "it to be held")
    cluster.replicas["r1"].start()
    assert [t.token for t in call] == expect("held", 3)

    brief = cluster.nginx(pool="llmgw_queue hold=300ms;", **grpc(QUEUED))
    gone(cluster, brief)
    got = client(brief).generate("over", 3)
    assert got.trailers[words.REASON] == words.NO_REPLICAS


# from zero

class Scaler:
    """What KEDA does with increase(llmgw_held_total[2m]): starts a replica
    when it grows."""

    def __init__(self, nginx, start):
        self.nginx, self.start = nginx, start
        self.first = scraped(nginx)[1]

    def poll(self):
        increase = scraped(self.nginx)[1] - self.first
        if increase > 0:
            self.start()
        return increase


def test_scaler_starts_the_first_replica_for_a_request(cluster, expect):
    cluster.agent("gw", "gateway")
    nginx = cluster.nginx(pool=LONG, openai="llmgw_model sim;",
                          server=METRICS)
    scaler = Scaler(nginx, lambda: cluster.pair("r1"))
    never(scaler.poll, 0.3, "a reason to start one")
    with sse.Connection(nginx.api, takes=60) as c:
        r = c.request(sse.TEXT, sse.text("first", "sim", max_tokens=5))
        wait_for(scaler.poll, "the scaler to see it")
        got = sse.result_of(r)
    assert got.text == ["".join(expect("first", 5))]
    assert scraped(nginx) == (0, 1)
