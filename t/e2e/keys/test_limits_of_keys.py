"""Limits of accounts: rpm, tpm, streams, budget, and their error messages."""

import contextlib
import time

import pytest

from llmgw.fleet import words
from llmgw.fleet.books import wait_records
from llmgw.fleet.ways_in import MESSAGES, held, messages
from llmgw.proc.wait import readable, wait_for
from llmgw.speak import rpc, sse
from llmgw.speak.keyfile import Told, anthropic_rates, ask, bearer, rates

RATE, QUOTA = "rate_limit_exceeded", "insufficient_quota"


def chat(nginx, key, prompt="hi len=3;", **more):
    return ask(nginx.api, sse.CHAT, sse.chat(prompt, **more), bearer(key))


def open_stream(nginx, key, prompt="held len=9;", tokens=1):
    """A stream of which some events have come, and its connection."""
    c = sse.Connection(nginx.api)
    r = c.request(sse.CHAT, sse.chat(prompt, stream=True),
                  headers=bearer(key))
    r.wait_events(tokens)
    assert r.status == 200, r.body
    return c, r


# --- requests a minute

def test_rpm_refuses_the_next_and_says_when(gateway, keyfile):
    """A bucket of 30 that gets one each 2 s."""
    key = keyfile.add("alice", "rpm=30")
    nginx = gateway()
    began = time.monotonic()
    for i in range(30):
        got = chat(nginx, key)
        assert got.status == 200, (i, got)
        limit, left, reset = rates(got.headers, "requests")
        filled = (time.monotonic() - began) / 2
        assert limit == 30 and 29 - i <= left <= 29 - i + filled
        assert 0 < reset <= 60
        assert rates(got.headers, "tokens") is None
    served, asked = 30, time.monotonic()
    while (got := chat(nginx, key)).status == 200:
        served, asked = served + 1, time.monotonic()
    assert served <= 30 + (time.monotonic() - began) / 2
    got.is_refused(429, RATE)
    assert got.reason == RATE and "x-should-retry" not in got.headers
    assert rates(got.headers, "requests")[:2] == (30, 0)
    assert 0 < got.retry_ms <= 2000
    assert int(got.headers["retry-after"]) == -(-got.retry_ms // 1000)
    wait_for(lambda: chat(nginx, key).status == 200, "the next one", 3)
    assert time.monotonic() >= asked + got.retry_ms / 1000


def test_refused_request_takes_nothing(gateway, keyfile, cluster):
    """Of two limits one refuses: the other is as it was."""
    key = keyfile.add("alice", "rpm=100", "streams=1")
    nginx = gateway()
    with held(cluster, nginx, 4):
        c, _ = open_stream(nginx, key)
        left = None
        for _ in range(20):
            got = chat(nginx, key)
            got.is_refused(429, RATE)
            now = rates(got.headers, "requests")[1]
            assert left is None or now >= left
            left = now
        assert left >= 99
        c.close()


def test_refusals_in_each_form(gateway, keyfile):
    key = keyfile.add("alice", "rpm=1")
    nginx = gateway()
    assert chat(nginx, key).status == 200
    chat(nginx, key, stream=True).is_refused(429, RATE)
    got = ask(nginx.api, MESSAGES, messages("hi"), [("x-api-key", key)])
    got.is_anthropics(429, "rate_limit_error")
    assert got.retry_ms > 50000 and got.headers["retry-after"]
    limit, left, reset = anthropic_rates(got.headers, "requests")
    assert (limit, left) == (1, 0)
    assert anthropic_rates(got.headers, "tokens") is None
    with rpc.Client(nginx.target) as c:
        got = c.stream("hi len=3;", 3, metadata=bearer(key))
    assert got.code == "RESOURCE_EXHAUSTED"
    assert got.trailers[words.REASON] == RATE
    assert 50000 < int(got.trailers["grpc-retry-pushback-ms"]) <= 60000


def test_answers_of_all_forms_say_what_is_left(gateway, keyfile):
    key = keyfile.add("alice", "rpm=1000", "tpm=100000")
    free = keyfile.add("free")
    nginx = gateway()
    for got in (chat(nginx, key), chat(nginx, key, stream=True)):
        assert got.status == 200
        assert rates(got.headers, "requests")[0] == 1000
        limit, left, _ = rates(got.headers, "tokens")
        assert limit == 100000 and 0 < left < limit
    for more in ({}, {"stream": True}):
        got = ask(nginx.api, MESSAGES, messages("hi len=3;", **more),
                  bearer(key))
        assert got.status == 200
        limit, left, reset = anthropic_rates(got.headers, "requests")
        assert limit == 1000 and 995 <= left < limit
        limit, left, _ = anthropic_rates(got.headers, "tokens")
        assert limit == 100000 and 0 < left < limit
        assert abs(time.mktime(reset) - time.mktime(time.gmtime())) < 5
    got = chat(nginx, free)
    assert rates(got.headers, "requests") is None
    assert rates(got.headers, "tokens") is None


# --- tokens a minute

@pytest.mark.first
def test_tpm_is_settled_by_what_came(gateway, keyfile, usage):
    """Each asks for 20 times of what it gets, and one after the other is
    admitted until the bucket is used up by what came."""
    tpm = 1000
    key = keyfile.add("alice", f"tpm={tpm}")
    nginx = gateway()
    began = time.monotonic()
    for n in range(200):
        got = chat(nginx, key, f"{n} len=19;", max_tokens=400)
        if got.status != 200:
            break
    got.is_refused(429, RATE)
    assert rates(got.headers, "tokens")[0] == tpm
    used = sum(r["prompt_tokens"] + r["completion_tokens"]
               for r in wait_records(usage, n))
    refilled = tpm / 60 * (time.monotonic() - began)
    most = tpm / 4 + 50                 # that the last one may have asked for
    assert tpm - most <= used <= tpm + refilled + most
    assert got.retry_ms <= most / tpm * 60000


def test_request_larger_than_the_bucket_is_served_once_it_is_full(
        gateway, keyfile):
    key = keyfile.add("alice", "tpm=600")
    nginx = gateway()
    big = "x" * 4000
    assert chat(nginx, key, big + " len=5;", max_tokens=9).status == 200
    got = chat(nginx, key, "hi len=3;", max_tokens=3)
    got.is_refused(429, RATE)
    limit, left, reset = rates(got.headers, "tokens")
    assert (limit, left) == (600, 0)
    assert reset > 60                   # a debt is paid first
    assert got.retry_ms > 60000         # some 4,000 tokens at 10 a second


# --- streams

def test_streams_are_counted_over_workers_and_locations(gateway, keyfile,
                                                        cluster):
    key = keyfile.add("alice", "streams=3")
    nginx = gateway(nginx={"workers": 4, "server":
                           "location /too/ { llmgw_openai llm; }"})
    with held(cluster, nginx, 4):
        open_ones = [open_stream(nginx, key, f"held {i} len=9;")
                     for i in range(3)]
        for path in (sse.CHAT, "/too" + sse.CHAT):
            for _ in range(8):          # whichever worker takes it
                got = ask(nginx.api, path, sse.chat("one more"), bearer(key))
                got.is_refused(429, RATE)
                assert got.retry_ms >= 1
        open_ones[0][0].close()
        wait_for(lambda: nginx.in_flight() == 2, "its place to be free")
        c, _ = open_stream(nginx, key)
        chat(nginx, key).is_refused(429, RATE)
        for one, _ in (*open_ones[1:], (c, None)):
            one.close()


def test_stream_has_its_place_while_it_waits(gateway, keyfile, cluster):
    """In the queue, too."""
    key, other = keyfile.add("alice", "streams=1"), keyfile.add("bob")
    nginx = gateway(nginx={"pool": "llmgw_queue 10;"}, max_running=1,
                    adapter={"max_capacity": 1})
    with held(cluster, nginx, 4):
        busy, _ = open_stream(nginx, other)
        with sse.Connection(nginx.api) as c:
            c.request(sse.CHAT, sse.chat("waits len=3;"), headers=bearer(key))
            wait_for(lambda: nginx.waiting() == 1, "one in the queue")
            chat(nginx, key).is_refused(429, RATE)
        wait_for(lambda: nginx.waiting() == 0, "nobody in the queue")
        busy.close()
    assert chat(nginx, key).status == 200


def leave(nginx, key, cluster, tokens, **more):
    """A client goes away when the engine has made so many tokens."""
    engine = cluster.engines["e1"]
    cluster.hold(tokens)
    before = engine.state()["tokens"]
    with sse.Connection(nginx.api) as c:
        c.request(sse.CHAT, sse.chat("x len=9;", **more),
                  headers={"authorization": f"Bearer {key}"})
        wait_for(lambda: engine.state()["running"] == 1 and
                 engine.state()["tokens"] == before + tokens, "its tokens")
    wait_for(lambda: not nginx.counts(), "counts of zero")
    cluster.let_go()


def faulty(nginx, key, cluster, **faults):
    cluster.engines["e1"].faults(**faults)
    chat(nginx, key, stream=True)
    chat(nginx, key)
    cluster.engines["e1"].faults(**{name: None for name in faults})


# {how a request ends: (nginx, key, cluster) -> it has ended so}
WAYS = {
    "in prefill": lambda *of: leave(*of, 0, stream=True),
    "in a stream": lambda *of: leave(*of, 3, stream=True),
    "in a whole answer": lambda *of: leave(*of, 3),
    "an engine that refuses": lambda *of: faulty(*of, status=400),
    "an engine that fails": lambda *of: faulty(*of, status=500),
    "an engine that breaks off": lambda *of: faulty(*of, close_at=3),
    "an error in the stream": lambda *of: faulty(*of, error_at=3),
    "no JSON": lambda nginx, key, _: ask(nginx.api, sse.CHAT, b"{",
                                         bearer(key)),
    "another method": lambda nginx, key, _: ask(
        nginx.api, sse.CHAT, None, bearer(key), "DELETE"),
    "no such model": lambda nginx, key, _: chat(nginx, key, model="none"),
    "no such path": lambda nginx, key, _: ask(nginx.api, "/v1/none", b"{}",
                                              bearer(key)),
    "too large": lambda nginx, key, _: ask(
        nginx.api, "/small" + sse.CHAT, b" " * 70000, bearer(key)),
    "a deadline": lambda nginx, key, cluster: ask(
        nginx.api, sse.CHAT, sse.chat("x len=9;"),
        bearer(key) + [("x-timeout", "0.001")]),
}


@pytest.mark.first
def test_each_end_gives_its_place_back(gateway, keyfile, cluster):
    key = keyfile.add("alice", "streams=1")
    nginx = gateway(nginx={
        "pool": "llmgw_breaker off;",
        "openai": "llmgw_timeout_header X-Timeout;", "server":
        "location /small/ { client_max_body_size 64k; llmgw_openai llm; }"})
    for how, end in WAYS.items():
        end(nginx, key, cluster)
        assert chat(nginx, key).status == 200, how
        cluster.hold(4)
        c, _ = open_stream(nginx, key)
        chat(nginx, key).is_refused(429, RATE)
        c.close()
        wait_for(lambda: not nginx.counts(), "counts of zero")
        cluster.let_go()


# --- budgets

def test_budget_refuses_the_next_and_cuts_none(gateway, keyfile, usage,
                                               cluster):
    key = keyfile.add("alice", "budget=100/day")
    nginx = gateway()
    long = "long len=300;"
    with held(cluster, nginx, 4):
        c, r = open_stream(nginx, key, long)
        got = chat(nginx, key)          # what runs is reserved
        got.is_refused(429, QUOTA)
        assert got.headers["x-should-retry"] == "false"
        assert got.reason == QUOTA
    got = sse.result_of(r)
    assert got.finish_reason == ["stop"] and got.done == 1
    c.close()
    wait_records(usage, 1)
    got = chat(nginx, key)
    got.is_refused(429, QUOTA)
    with rpc.Client(nginx.target) as client:
        got = client.stream("hi len=3;", 3, metadata=bearer(key))
    assert got.code == "RESOURCE_EXHAUSTED"
    assert got.trailers[words.REASON] == QUOTA
    ask(nginx.api, MESSAGES, messages("hi"), bearer(key)) \
        .is_anthropics(429, "rate_limit_error")


def test_limits_change_with_the_file(gateway, keyfile):
    key = keyfile.add("alice", "budget=1/day")
    nginx = gateway()
    assert chat(nginx, key).status == 200
    chat(nginx, key).is_refused(429, QUOTA)
    keyfile.drop("alice")
    keyfile.add("alice", "budget=1000000/day", key=key)
    wait_for(lambda: chat(nginx, key).status == 200, "the new budget", 4)
    keyfile.drop("alice")
    keyfile.add("alice", "budget=1/day", key=key)
    wait_for(lambda: chat(nginx, key).status == 429, "the old budget", 4)


def test_name_that_goes_and_comes_back_finds_its_account(gateway, keyfile):
    key, other = keyfile.add("alice", "budget=5/day"), keyfile.add("bob")
    nginx = gateway()
    assert chat(nginx, key).status == 200
    chat(nginx, key).is_refused(429, QUOTA)
    keyfile.drop("alice")
    wait_for(lambda: chat(nginx, key).status == 401, "it to be gone", 4)
    assert chat(nginx, other).status == 200
    key = keyfile.add("alice", "budget=5/day")
    wait_for(lambda: chat(nginx, key).status != 401, "it to be there", 4)
    chat(nginx, key).is_refused(429, QUOTA)


def test_gateways_divide_limits(gateway, keyfile):
    key = keyfile.add("alice", "rpm=10")
    nginx = gateway(more=" gateways=3")
    got = [chat(nginx, key) for _ in range(5)]
    assert [x.status for x in got] == [200] * 4 + [429]     # rounded up
    assert rates(got[0].headers, "requests")[0] == 4


def test_no_request_goes_uncounted(gateway, keyfile, cluster):
    """More in flight than the zone has slots: 503 and not a free ride."""
    key = keyfile.add("alice")
    nginx = gateway(zone="keys:128k")
    with held(cluster, nginx, 0), contextlib.ExitStack() as stack:
        for n in range(1, 200):
            c = stack.enter_context(sse.Connection(nginx.api))
            r = c.request(sse.CHAT, sse.chat("x len=2;"), headers=bearer(key))
            wait_for(lambda: nginx.in_flight() == n or readable([c.sock]),
                     "an answer")
            if nginx.in_flight() < n:
                break
        r.read()
        told = Told(r.status, r.headers, r.body)
        told.is_refused(503, "accounts_full")
        assert told.reason == "accounts_full" and told.retry_ms >= 1
    assert n > 2 and chat(nginx, key).status == 200
