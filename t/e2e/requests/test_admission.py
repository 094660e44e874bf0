"""Whether a request may enter: rules, tenants' budgets, and what is refused."""

import collections
import contextlib
import json
import os
import signal

import pytest

from llmgw.engine.pyhttp import HttpEngine
from llmgw.engine.scripted import Script
from llmgw.fleet import words
from llmgw.fleet.native import HTTP, get, grpc
from llmgw.proc.wait import wait_for
from llmgw.speak import sse
from llmgw.speak.rpc import GENERATE, pb

# so slow that a test sees nothing of what it gains
SLOW_BUCKET = "llmgw_admission token_bucket capacity=100 rate=0.001;"
WHOSE = "llmgw_class request; llmgw_tenant request;"
DAY = 24 * 3600 * 1000


def reasons(results):
    return collections.Counter(
        (got.code, got.trailers.get(words.REASON, "")) for got in results)


def prompt(i, tokens):
    """A text of that many tokens, as the gateway estimates them."""
    return f"{i:04}" * tokens


def post(nginx, body, path=sse.TEXT):
    """A call over HTTP/1.1, and what its error is."""
    with sse.Connection(nginx.api) as connection:
        got = connection.request(path, body)
        whole = got.head().read(10)
    is_json = got.headers["content-type"] == "application/json"
    return got, json.loads(whole)["error"] if is_json else None


# --- the token bucket

def test_one_bucket_for_all_workers(cluster, load):
    """Ten prompts fit, whichever workers ask for the rest."""
    nginx = cluster.fleet(2, nginx={"workers": 4, "pool": SLOW_BUCKET},
                          replica={"token_delay": "1ms"})
    got = load(nginx, [[prompt(i, 10), 2] for i in range(60)],
               connections=12).results()
    assert reasons(got) == {
        ("OK", ""): 10, ("RESOURCE_EXHAUSTED", "admission_token_bucket"): 50}


def test_bucket_gains_tokens(cluster, client):
    """It says when to come back, and is right."""
    nginx = cluster.static([cluster.replica("r1", token_delay="1ms")],
                           pool="llmgw_admission token_bucket capacity=100"
                                " rate=200;")
    c = client(nginx)
    got = wait_for(lambda: [x for x in [c.stream(prompt(1, 100), 1)]
                            if x.code != "OK"], "a refusal")[0]
    assert reasons([got]) == {("RESOURCE_EXHAUSTED",
                               "admission_token_bucket"): 1}
    assert 0 < int(got.trailers["grpc-retry-pushback-ms"]) <= 500
    wait_for(lambda: c.stream(prompt(2, 100), 1).code == "OK", "a full bucket")


def test_push_back_of_the_bucket(cluster, client):
    nginx = cluster.static([cluster.replica("r1", token_delay="1ms")],
                           openai=True, pool=SLOW_BUCKET)
    c = client(nginx)
    never = c.stream(prompt(1, 101), 1)         # more than it ever holds
    assert never.trailers[words.REASON] == "admission_token_bucket"
    assert never.trailers["grpc-retry-pushback-ms"] == "-1"
    got, error = post(nginx, sse.text(prompt(1, 101)))
    assert got.status == 429 and error["code"] == "admission_token_bucket"
    assert got.headers["x-should-retry"] == "false"
    assert "retry-after" not in got.headers

    assert c.stream(prompt(1, 100), 1).code == "OK"
    later = c.stream(prompt(2, 1), 1)           # in 1000 s
    assert 900000 < int(later.trailers["grpc-retry-pushback-ms"]) <= 1000000
    late = c.stream(prompt(2, 100), 1)          # in more than a day
    assert int(late.trailers["grpc-retry-pushback-ms"]) == DAY
    got, _ = post(nginx, sse.text(prompt(2, 1)))
    assert got.headers[words.REASON] == "admission_token_bucket"
    ms = int(got.headers["retry-after-ms"])
    assert 900000 < ms <= 1000000
    assert int(got.headers["retry-after"]) == -(-ms // 1000)


def usage(prompt_tokens):
    return [pb.GenerateResponse(token="x"),
            pb.GenerateResponse(usage=pb.Usage(
                prompt_tokens=prompt_tokens, completion_tokens=1),
                is_final=True)]


def test_bucket_is_settled_by_the_engines_count(cluster, ports, client):
    """What it said counts, down and up; without a word the estimate does."""
    script = Script([usage(30), usage(60), [pb.GenerateResponse(
        token="x", is_final=True)]])
    with script.serve(ports, 1) as targets:
        nginx = cluster.static(targets, pool=SLOW_BUCKET)
        c = client(nginx)
        codes = [c.stream(prompt(i, n), 2).code for i, n in
                 enumerate([100, 71, 70, 11, 10, 10, 1])]
    # 100 taken, 70 back; 71 are too many; 70 taken, 10 back ...
    assert codes == ["OK", "RESOURCE_EXHAUSTED", "OK", "RESOURCE_EXHAUSTED",
                     "OK", "RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED"]


@pytest.mark.soak
def test_prompt_that_was_larger_is_owed(cluster, ports, client):
    script = Script([usage(4000000000), usage(1)])
    with script.serve(ports, 1) as targets:
        nginx = cluster.static(targets, pool=SLOW_BUCKET)
        c = client(nginx)
        assert c.stream(prompt(1, 50), 2).code == "OK"
        got = c.stream(prompt(2, 1), 2)
    # no more than its capacity: 101 tokens at 0.001 a second
    assert got.trailers["grpc-retry-pushback-ms"] == str(DAY)


def test_openai_text_is_estimated_and_settled(cluster, ports):
    """Roles and keys cost nothing."""
    chat = {"model": "m", "max_tokens": 1, "messages": [
        {"role": "system", "content": prompt(1, 50)},
        {"role": "user", "content": [{"type": "text",
                                      "text": prompt(2, 50)}]}]}
    script = Script([usage(1)])
    with script.serve(ports, 1) as targets:
        nginx = cluster.static(targets, openai=True, pool=SLOW_BUCKET)
        sse.call(nginx.api, sse.CHAT, chat)         # leaves 99
        _, error = post(nginx, chat, sse.CHAT)
        assert error["code"] == "admission_token_bucket"
        chat["messages"][0]["content"] = prompt(3, 49)
        sse.call(nginx.api, sse.CHAT, chat)
    assert len(script.requests) == 2


def test_retry_is_no_second_entry(cluster, client):
    """Each request pays once, though one replica refuses every attempt."""
    nginx = cluster.static(
        [cluster.replica("r1", reject_all=True), cluster.replica("r2")],
        hash="load_factor=0", pool=SLOW_BUCKET + " llmgw_breaker off;")
    got = [client(nginx).stream(prompt(i, 5), 1) for i in range(22)]
    assert reasons(got) == {
        ("OK", ""): 20, ("RESOURCE_EXHAUSTED", "admission_token_bucket"): 2}
    assert cluster.replicas["r1"].stats().failed > 0


def test_request_that_reached_no_replica_pays_nothing(cluster, client):
    replica = cluster.replica("r1", token_delay="1ms")
    nginx = cluster.nginx(f"llmgw_hash; server {replica.target} max_conns=1;"
                          f" llmgw_queue off; {SLOW_BUCKET}")
    cluster.hold(1)
    c = client(nginx)
    held = c.start(prompt(1, 10), 2)
    next(held)
    got = [c.stream(prompt(2, 90), 1) for _ in range(3)]
    assert reasons(got) == {("RESOURCE_EXHAUSTED", words.QUEUE_FULL): 3}
    held.cancel()
    wait_for(lambda: not nginx.counts(), "a free replica")
    assert c.stream(prompt(3, 90), 1).code == "OK"


def test_reload_keeps_the_bucket(cluster, client):
    """Unless its settings are others: then it begins full."""
    replica = cluster.replica("r1", token_delay="1ms")
    nginx = cluster.static([replica], pool=SLOW_BUCKET)
    assert client(nginx).stream(prompt(1, 100), 1).code == "OK"
    nginx.reload()
    assert client(nginx).stream(prompt(2, 1), 1).code == "RESOURCE_EXHAUSTED"
    assert "begins full" not in nginx.log()
    nginx.configure(upstream=nginx.upstream.replace("=100 ", "=50 "))
    nginx.reload()
    assert reasons(client(nginx).stream(prompt(i, 50), 1)
                   for i in range(2)) == {
        ("OK", ""): 1, ("RESOURCE_EXHAUSTED", "admission_token_bucket"): 1}
    assert nginx.log().count("begins full") == 1


# --- what is refused, in each protocol

def test_reject_all(cluster, client):
    nginx = cluster.static([cluster.replica("r1")], openai=True,
                           pool="llmgw_admission reject_all;",
                           **grpc("llmgw_key $http_x_session;"))
    got = client(nginx).stream("p", 1)
    assert reasons([got]) == {("RESOURCE_EXHAUSTED",
                               "admission_reject_all"): 1}
    assert got.trailers["grpc-retry-pushback-ms"] == "1000"
    assert got.details == "no request is admitted"
    got = client(nginx).generate("p", 1)
    assert reasons([got]) == {("RESOURCE_EXHAUSTED",
                               "admission_reject_all"): 1}
    for stream in (True, False):
        got, error = post(nginx, sse.text("p", stream=stream))
        assert got.status == 429
        assert error["type"] == "rate_limit_error"
        assert error["code"] == got.headers[words.REASON] \
            == "admission_reject_all"
        assert got.headers["retry-after"] == "1"
    assert cluster.replicas["r1"].stats().started == 0


@pytest.mark.parametrize("key", [
    "", "error_page 429 = @spare;", *(pytest.param(
        key, marks=pytest.mark.soak) for key in (
            "llmgw_key $http_x_session queue=llm;", "llmgw_key body;",
            "proxy_request_buffering off; proxy_next_upstream off;"))])
def test_native_pass_is_refused_by_its_status(cluster, key):
    """Before nginx has connected to anybody; a page of the operator's own
    follows as for any other status."""
    with contextlib.closing(HttpEngine(cluster.ports.take(), "a",
                                       delay=0)) as engine:
        nginx = cluster.nginx(
            f"llmgw_hash; server {engine.target}; llmgw_admission reject_all;"
            " keepalive 4;",
            server=HTTP.format(lines=key) + """
        location @spare { return 299 "spare"; }""")
        for _ in range(3):
            status, body = get(nginx, "s", body=b"x" * 100000)
            assert status == (299 if "spare" in key else 429), body
        assert engine.started == 0
    assert "no live upstreams" not in nginx.log()


@pytest.mark.soak
def test_refused_subrequest_lets_nobody_in(cluster, client):
    """auth_request of a gRPC request goes by the status of the refusal."""
    nginx = cluster.fleet(1, nginx={
        "http": "upstream guard { llmgw_hash; server 127.0.0.1:1;"
                " llmgw_admission reject_all; }",
        "location": "auth_request /guard;",
        "server": "location = /guard { internal; proxy_pass http://guard; }"})
    assert client(nginx).stream("knocks", 2).code != "OK"
    assert "auth request unexpected status: 429" in nginx.log()
    assert cluster.replicas["r1"].stats().started == 0


def test_refused_native_pass_says_why_and_when(cluster):
    nginx = cluster.nginx("llmgw_hash; server 127.0.0.1:1;"
                          " llmgw_admission token_bucket capacity=100"
                          " rate=1;", server=HTTP.format(lines=""))
    full = {"x": "y" * 391}         # as JSON a hundred tokens
    assert post(nginx, full, "/http/x")[0].status == 502    # nobody listens
    got, _ = post(nginx, full, "/http/x")
    assert got.status == 429
    assert got.headers[words.REASON] == "admission_token_bucket"
    assert 1 <= int(got.headers["retry-after"]) <= 100


# --- budgets of tenants

def budget(cluster, workers=1, capacity=4, pool="", **options):
    """Streams are held after their first token."""
    cluster.allowed += ["exited on signal 9", "was locked by"]
    nginx = cluster.fleet(
        1, replica={"max_capacity": capacity},
        nginx={"workers": workers, "location": WHOSE, **options,
               "pool": "llmgw_tenant_budget acme=0.5;" + pool})
    cluster.hold(1)
    return nginx


def hold(c, n, tenant="acme", of="sheddable"):
    """n streams that run, once they have a token."""
    held = [c.start(f"held {i}", 2, slo_class=of, tenant_id=tenant)
            for i in range(n)]
    for call in held:
        next(call)
    return held


def ask(c, tenant="acme", of="sheddable"):
    return c.stream("asks", 1, slo_class=of, tenant_id=tenant)


def fits_again(nginx, c, n=3):
    """At most n sheddable requests of the tenant are admitted at once."""
    wait_for(lambda: not nginx.counts(), "counts of zero")
    held = hold(c, n)
    assert ask(c).trailers[words.REASON] == "admission_tenant_budget"
    for call in held:
        call.cancel()


def test_tenant_over_its_budget_loses_sheddable_requests(cluster, client):
    """Over half of four places is the third request in flight."""
    nginx = budget(cluster, capacity=4)
    c = client(nginx)
    held = hold(c, 2) + hold(c, 1, of="critical")
    got = ask(c)
    assert reasons([got]) == {("RESOURCE_EXHAUSTED",
                               "admission_tenant_budget"): 1}
    assert got.trailers["grpc-retry-pushback-ms"] == "1000"
    assert ask(c, of="batch").code == "RESOURCE_EXHAUSTED"
    assert ask(c, of="critical").code == "OK"
    assert ask(c, of="unheard-of").code == "OK"         # priority 3
    assert ask(c, tenant="another").code == "OK"        # has no budget
    assert ask(c, tenant="").code == "OK"
    held[0].cancel()
    wait_for(lambda: ask(c).code == "OK", "a place in the budget")
    for call in held:
        call.cancel()
    fits_again(nginx, c)


def test_request_counts_until_it_ends_however(cluster, client):
    """Those that wait, time out, are refused, fail, or have a deadline."""
    nginx = budget(cluster, capacity=1,
                   pool="llmgw_queue 2 timeout=200ms; llmgw_breaker off;")
    c = client(nginx)
    held = hold(c, 1)                       # half of one place: one is over
    waits = c.start("waits", 1, slo_class="critical", tenant_id="acme")
    late = c.stream("late", 1, slo_class="critical", tenant_id="acme",
                    timeout=0.1)
    assert late.code == "DEADLINE_EXCEEDED"
    assert ask(c).trailers[words.REASON] == "admission_tenant_budget"
    wait_for(lambda: waits.done() and nginx.waiting() == 0, "the timeout")
    held[0].cancel()
    wait_for(lambda: not nginx.counts(), "counts of zero")
    cluster.replicas["r1"].faults(reject_all=True)
    assert ask(c).code == "UNAVAILABLE"
    cluster.replicas["r1"].faults(reject_all=False)
    wait_for(lambda: ask(c).code == "OK", "no request of it in flight")


def test_budget_of_a_killed_worker_is_given_back(cluster, client):
    nginx = budget(cluster, workers=2)
    held = hold(client(nginx), 3)
    for pid in nginx.workers():
        os.kill(pid, signal.SIGKILL)
    for call in held:
        wait_for(call.done, "the stream's end")
    wait_for(lambda: len(nginx.workers()) == 2, "new workers")
    c = client(nginx)
    wait_for(lambda: ask(c).code == "OK", "the budget")
    fits_again(nginx, c)


def test_budget_counts_across_a_reload(cluster, client):
    """Streams of old workers still count, and once."""
    nginx = budget(cluster)
    old = client(nginx)
    held = hold(old, 3)
    nginx.reload()
    c = client(nginx)
    assert ask(c).trailers[words.REASON] == "admission_tenant_budget"
    for call in held:
        call.cancel()
    wait_for(lambda: ask(c).code == "OK", "the old streams' end")
    fits_again(nginx, c)


@pytest.mark.soak
def test_budget_of_a_fleet_without_limit_has_no_effect(cluster, client):
    nginx = budget(cluster, capacity=0)
    c = client(nginx)
    held = hold(c, 8)
    assert [ask(c).code for _ in range(3)] == ["OK"] * 3
    assert nginx.log().count("llmgw_tenant_budget has no effect") == 1
    for call in held:
        call.cancel()


@pytest.mark.soak
def test_native_pass_counts_in_a_budget(cluster, client):
    """Over two places: the third is refused until one of them ends."""
    nginx = budget(cluster, server=grpc(WHOSE)["server"])
    c = client(nginx)
    of = [("x-gateway-inference-objective", "sheddable"),
          ("x-gateway-inference-fairness-id", "acme")]
    held = [c.start(f"held {i}", 2, method=GENERATE, metadata=of)
            for i in range(3)]
    for call in held:
        next(call)
    got = c.generate("p", 1, metadata=of)
    assert reasons([got]) == {("RESOURCE_EXHAUSTED",
                               "admission_tenant_budget"): 1}
    assert ask(c).code == "RESOURCE_EXHAUSTED"      # one count for both
    for call in held:
        call.cancel()
    wait_for(lambda: c.generate("p", 1, metadata=of).code == "OK",
             "a place in the budget")
    fits_again(nginx, c)
