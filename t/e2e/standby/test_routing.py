"""Standby groups as nginx routes them: agents are real, and tests set the
states of their members (llmgw/standby/told.py)."""

import os
import signal

import pytest

from llmgw.fleet import words
from llmgw.fleet.native import QUEUED, grpc
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc, sse
from llmgw.speak.callers import finish
from llmgw.speak.traffic import Stream
from llmgw.standby import told
from llmgw.standby.told import group, states

METRICS = "location = /metrics { llmgw_metrics; }"
LONG = 100000                       # tokens: it ends when a test cancels it


def ask(client, nginx, prompt="p", n=3):
    return client(nginx).stream(prompt, n)


def served_by(client, nginx, expect, n=8):
    """The ids of all replicas that served one of n prompts."""
    found = set()
    for i in range(n):
        got = ask(client, nginx, f"{i}").check(expect(f"{i}", 3))
        found.update(got.replicas)
    return found


def goes_on_at(to, stream, expect):
    """A stream that "a" began, and that nothing of was lost."""
    wait_for(lambda: stream.result.replicas == ["a", to]
             or not stream.thread.is_alive(), f"a token of {to}")
    stream.wait_tokens(5)
    stream.cancel()
    stream.check(expect)
    assert stream.result.replicas == ["a", to]


def refused(client, nginx, code, reason):
    got = ask(client, nginx)
    assert got.code == code and got.trailers[words.REASON] == reason, got


def metric(nginx, name):
    """{labels but the upstream: value} of one family."""
    found = {}
    for line in nginx.get("/metrics")[1].decode().splitlines():
        if line.startswith(name + "{"):
            labels, value = line[len(name) + 1:].split("} ")
            found[labels.removeprefix('upstream="llm",')] = float(value)
    return found


def of_group(nginx, name="g"):
    return next(g for g in nginx.pool()["groups"] if g["name"] == name)


# who is asked


def test_the_greatest_epoch_is_asked_and_no_other(cluster, client, expect):
    """Also where its record is that of a dead one."""
    m, nginx = group(cluster, nginx={"pool": "llmgw_queue hold=0;"})
    assert nginx.routable() == ["a"]
    assert served_by(client, nginx, expect) == {"a"}
    assert nginx.replicas()["b"]["routable"] is False

    m["b"].active(2)                    # a is alive, and says that it is active
    wait_for(lambda: nginx.routable() == ["b"], "b alone")
    assert served_by(client, nginx, expect) == {"b"}
    assert m["a"].replica.stats().active_requests == 0

    m["b"].die()
    wait_for(lambda: nginx.routable() == [], "nobody")
    assert states(nginx) == {"a": "active", "b": "active"}
    refused(client, nginx, "UNAVAILABLE", words.NO_REPLICAS)

    m["a"].active(3)
    wait_for(lambda: nginx.routable() == ["a"], "a again")
    assert served_by(client, nginx, expect) == {"a"}


def test_two_lock_services_are_a_conflict(cluster, client, expect):
    m, nginx = group(cluster, nginx={"server": METRICS})
    assert of_group(nginx)["conflict"] is False
    assert metric(nginx, "llmgw_group_conflict") == {'group="g"': 0}

    m["b"].active(2, lock=told.OTHER_LOCK)
    wait_for(lambda: of_group(nginx)["conflict"], "the conflict")
    assert metric(nginx, "llmgw_group_conflict") == {'group="g"': 1}
    assert of_group(nginx)["lock"] == told.OTHER_LOCK
    assert served_by(client, nginx, expect) == {"b"}
    assert nginx.error_log.read_text().count("two lock services") == 1

    m["a"].die()
    wait_for(lambda: not of_group(nginx)["conflict"], "its end")


# takeovers


def test_takeover_under_streams(cluster, client, expect):
    """Streams with tokens and new requests wait, use no try, and are served by
    the successor as soon as the view has it."""
    m, nginx = group(cluster, nginx={"server": METRICS, "workers": 2},
                     replica={"token_delay": "10ms"})
    running = [Stream(client, nginx, "a", LONG) for _ in range(8)]
    m["a"].die()
    wait_for(lambda: nginx.waiting() == 8, "the streams to wait")
    new = [client(nginx).start(f"new {i}", 5) for i in range(8)]
    wait_for(lambda: nginx.waiting() == 16, "the requests to wait")
    wait_for(lambda: nginx.pool()["queue"]["waits_for"] == "standby"
             and of_group(nginx)["active"] is None, "a to be known as gone")

    m["b"].waking(2)
    wait_for(lambda: states(nginx)["b"] == "waking", "b to wake")
    assert nginx.waiting() == 16
    m["b"].active(2)
    for stream in running:
        goes_on_at("b", stream, expect)
    for i, call in enumerate(new):
        got = list(call)
        assert [t.token for t in got] == expect(f"new {i}", 5)
        assert {t.replica_id for t in got} == {"b"}

    # eight attempts at "a" broke off, and nothing else was a failure
    failed = nginx.pool()["totals"]
    assert sum(failed["failovers"].values()) == 8
    assert sum(failed["attempts_failed"].values()) == 8
    assert nginx.replicas()["b"]["failures"] == 0

    g = of_group(nginx)
    assert g["active"] == "b" and g["takeovers"] == 1
    assert 0 < g["active_ms"] <= g["first_token_ms"]
    assert metric(nginx, "llmgw_group_takeovers_total") == {'group="g"': 1}
    assert metric(nginx, "llmgw_group_standbys") == {'group="g"': 0}
    assert metric(nginx, "llmgw_group_takeover_seconds") == {
        'group="g",phase="active"': g["active_ms"] / 1000,
        'group="g",phase="first_token"': g["first_token_ms"] / 1000}
    assert metric(nginx, "llmgw_replica_group_state") == {
        'replica="a"': 4, 'replica="b"': 4}


def test_paused_primary_is_reset(cluster, client, expect):
    """It stands still, its successor goes on; then it runs again, and sends
    what nobody wants."""
    m, nginx = group(cluster, replica={"token_delay": "10ms"})
    streams = [Stream(client, nginx, "a", LONG) for _ in range(6)]
    m["a"].replica.proc.freeze()
    m["b"].active(2)
    for stream in streams:
        wait_for(lambda: stream.result.replicas == ["a", "b"], "b")
    m["a"].replica.proc.thaw()
    stats = m["a"].replica.stats
    wait_for(lambda: stats().cancelled == 6, "its streams to be reset")
    assert stats().active_requests == 0 and stats().finished == 0
    for stream in streams:
        goes_on_at("b", stream, expect)
    assert nginx.pool()["totals"]["failovers"]["member_superseded"] == 6
    assert served_by(client, nginx, expect) == {"b"}


def test_dead_primary_that_gossip_still_lists_burns_no_try(cluster, client,
                                                           expect):
    """Its agent reports for long that it is alive; no process listens there."""
    m, nginx = group(cluster)
    stream = Stream(client, nginx, "a", LONG)
    m["a"].replica.kill()
    calls = [client(nginx).start(f"new {i}", 5) for i in range(4)]
    wait_for(lambda: nginx.waiting() == 5, "all to wait")
    # after each back-off one of them tests whether a process listens there
    before = nginx.replicas()["a"]["attempts"]
    wait_for(lambda: nginx.replicas()["a"]["attempts"] >= before + 4,
             "more looks than one of them has tries")
    wait_for(lambda: nginx.waiting() == 5, "all to wait still")
    assert nginx.replicas()["a"]["breaker"]["state"] == "closed"

    m["b"].active(2)
    goes_on_at("b", stream, expect)
    for i, call in enumerate(calls):
        assert [t.token for t in call] == expect(f"new {i}", 5)


# the queue


@pytest.mark.soak
def test_without_a_queue_nobody_waits(cluster, client):
    m, nginx = group(cluster, nginx={"pool": "llmgw_queue off;"})
    m["a"].die()
    wait_for(lambda: nginx.routable() == [], "a to be gone")
    refused(client, nginx, "UNAVAILABLE", words.NO_REPLICAS)


def test_the_queue_limits_the_wait(cluster, client, caller):
    m, nginx = group(cluster, nginx={"pool": "llmgw_queue 2;"})
    brief = cluster.nginx(pool="llmgw_queue timeout=300ms;")
    m["a"].die()
    wait_for(lambda: nginx.routable() == brief.routable() == [],
             "a to be gone")
    refused(client, brief, "RESOURCE_EXHAUSTED", words.QUEUE_TIMEOUT)

    waiting = [caller(nginx).ask(f"{i}", 3) for i in range(2)]
    wait_for(lambda: nginx.waiting() == 2, "two to wait")
    refused(client, nginx, "RESOURCE_EXHAUSTED", words.QUEUE_FULL)
    for one in waiting:
        one.cancel()
    wait_for(lambda: nginx.waiting() == 0, "an empty queue")


@pytest.mark.soak
def test_standby_that_dies_too_ends_the_wait(cluster, client, caller):
    m, nginx = group(cluster, nginx={"pool": "llmgw_queue hold=0;"})
    m["a"].die()
    one = caller(nginx).ask("p", 3)
    wait_for(lambda: nginx.waiting() == 1, "it to wait")
    m["b"].die()
    finish([one])
    assert one.reason == words.NO_REPLICAS


def test_other_replicas_serve_while_a_group_takes_over(cluster, client,
                                                       expect):
    """c is of no group: it takes over what a has lost, and nobody waits."""
    m, nginx = group(cluster)
    cluster.pair("c", token_delay="5ms")
    wait_for(lambda: nginx.routable() == ["a", "c"], "c")
    stream = Stream(client, nginx, "a", LONG)
    m["a"].die()
    goes_on_at("c", stream, expect)
    assert served_by(client, nginx, expect) == {"c"}


@pytest.mark.soak
def test_native_passes_wait_too(cluster, client, expect):
    m, nginx = group(cluster, nginx=grpc(QUEUED))
    m["a"].die()
    wait_for(lambda: nginx.routable() == [], "a to be gone")
    c = client(nginx)
    call = c.start("p", 3, method=rpc.GENERATE)
    wait_for(lambda: nginx.waiting() == 1, "it to wait")
    m["b"].active(2)
    assert [t.token for t in call] == expect("p", 3)


def test_native_pass_finds_the_active_one_dead_and_waits(cluster, client,
                                                         expect):
    """Gossip does not know it yet: the pass is sent there, refused, and waits
    within nginx's upstream."""
    m, nginx = group(cluster, nginx=grpc(QUEUED))
    m["a"].replica.kill()
    c = client(nginx)
    call = c.start("p", 3, method=rpc.GENERATE)
    wait_for(lambda: nginx.waiting() == 1, "it to wait")
    m["b"].active(2)
    assert [t.token for t in call] == expect("p", 3)
    assert nginx.pool()["totals"]["failures"] == 0


@pytest.mark.soak
def test_chats_wait_for_a_standby_that_says_no_model(cluster):
    """It serves what the active one does: so an adapter is waited for, too."""
    m, nginx = group(cluster, nginx={"openai": True}, replica={
        "engine": "model", "latency_model": "linear", "token_delay": None,
        "alpha_coeffs": "0,0,0", "beta_coeffs": "5000,0,0",
        "models": ["base", "adapter"]})
    assert nginx.replicas()["b"]["models"] == ["base", "adapter"]

    def chat(to, model):
        return to.request(sse.CHAT, sse.chat("Once", stream=True, model=model,
                                             max_tokens=200))

    def text(answer):
        return "".join(c["delta"].get("content", "")
                       for e in answer.wait_events(None) if e.data != "[DONE]"
                       for c in e.json["choices"])
    with sse.Connection(nginx.api) as first, \
            sse.Connection(nginx.api) as second:
        whole = text(chat(first, "base"))
        assert whole == text(chat(second, "adapter"))
        running = chat(first, "base")
        running.wait_events(3)
        m["a"].die()
        wait_for(lambda: nginx.waiting() == 1, "the stream to wait")
        new = chat(second, "adapter")
        wait_for(lambda: nginx.waiting() == 2, "the request to wait")
        m["b"].active(2)
        assert text(running) == text(new) == whole


@pytest.mark.soak
def test_worker_killed_in_the_wait_leaves_nothing(cluster, caller, expect):
    m, nginx = group(cluster, nginx={"workers": 4})
    m["a"].die()
    wait_for(lambda: nginx.routable() == [], "a to be gone")
    callers = [caller(nginx) for _ in range(16)]
    workers = [c.worker() for c in callers]
    for i, one in enumerate(callers):
        one.ask(f"{i}", 3)
    wait_for(lambda: nginx.waiting() == 16, "all to wait")
    cluster.allowed.append(r"exited on signal 9")
    os.kill(workers[0], signal.SIGKILL)
    left = [c for c, w in zip(callers, workers) if w != workers[0]]
    wait_for(lambda: nginx.waiting() == len(left),
             "its places to be given up")
    m["b"].active(2)
    finish(left)
    for one in left:
        assert one.tokens == expect(f"{callers.index(one)}", 3)
    wait_for(lambda: not nginx.counts(), "counts of zero")


# stale views


@pytest.mark.soak
def test_standby_that_became_active_serves_in_a_stale_view(cluster, client,
                                                           expect):
    """The gateway's agent is dead, and then the primary.  No engine is known to
    be active: the standby is tried last, refuses, and is tried again."""
    m, nginx = group(cluster, nginx=grpc(QUEUED, workers=2))
    cluster.gateway.kill()
    wait_for(lambda: nginx.pool()["view"]["stale"]
             and words.AGENT_SILENT in nginx.log(), "a stale view",
             takes=5)
    assert served_by(client, nginx, expect) == {"a"}

    stream = Stream(client, nginx, "a", LONG)
    m["a"].die()
    calls = [client(nginx).start(f"new {i}", 5) for i in range(8)]
    native = client(nginx).start("native", 5, method=rpc.GENERATE)
    wait_for(lambda: nginx.waiting() == 10, "all to wait")
    wait_for(lambda: nginx.replicas()["b"]["attempts"] >= 3,
             "b to be tried")
    m["b"].serve()                      # and the view has it as a standby
    goes_on_at("b", stream, expect)
    for i, call in enumerate(calls):
        got = list(call)
        assert [t.token for t in got] == expect(f"new {i}", 5)
        assert {t.replica_id for t in got} == {"b"}
    assert [t.token for t in native] == expect("native", 5)
    b = nginx.replicas()["b"]
    assert b["failures"] == 0 and b["breaker"]["state"] == "closed"
    assert b["group"]["state"] == "standby"
