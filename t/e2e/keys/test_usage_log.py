"""Usage records: what each request cost, by all that can happen to it."""

import csv
import gzip
import io
import json
import re
import subprocess

import pytest

from llmgw.fleet import words
from llmgw.fleet.books import (check_balance, records, sums, wait_records,
    wait_rest)
from llmgw.fleet.ways_in import MESSAGES, messages
from llmgw.proc import place
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc, sse
from llmgw.speak.keyfile import ask, bearer

MEMBERS = """
    time gateway birth n request_id key tenant class model served_model
    replicas prompt_tokens completion_tokens cached_tokens reasoning_tokens
    wasted_tokens outcome seconds settled_by""".split()
COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens",
          "reasoning_tokens", "wasted_tokens")
USAGE = {"stream_options": {"include_usage": True}}


@pytest.fixture
def key(keyfile):
    return keyfile.add("alice", "class=interactive", "tenant=lab1")


def call(nginx, key, body, path=sse.CHAT, **more):
    return sse.call(nginx.api, path, body,
                    headers={"authorization": f"Bearer {key}"}, **more)


def counts(record):
    return {m: record[m] for m in COUNTS if record[m]}


# --- requests that end well

def test_record_says_who_what_and_how_much(gateway, key, usage):
    nginx = gateway(nginx={"openai": "llmgw_model gpt as mock-model;",
                           "pool": "llmgw_slo interactive priority=1;"})
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat("hi len=9;", "gpt", stream=True,
                                         **USAGE), headers={
            "authorization": f"Bearer {key}", "x-request-id": "my-own"})
        used = sse.result_of(r).usage
    record, = wait_records(usage, 1)
    assert list(record) == MEMBERS
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
                        record["time"])
    assert re.fullmatch("[0-9a-f]{32}", record["birth"])
    assert 0 < record["seconds"] < 10
    del record["time"], record["birth"], record["seconds"]
    assert record == {
        "gateway": "gw1", "n": 1, "request_id": "my-own", "key": "alice",
        "tenant": "lab1", "class": "interactive", "model": "gpt",
        "served_model": "mock-model", "replicas": ["a1"],
        "prompt_tokens": used["prompt_tokens"],
        "completion_tokens": used["completion_tokens"], "cached_tokens": 0,
        "reasoning_tokens": 0, "wasted_tokens": 0, "outcome": "ok",
        "settled_by": "engine"}
    assert used["completion_tokens"] == 10      # the last one is the end


# what each kind of request costs: {name: (path, body)}
ASKS = {
    "stream": (sse.CHAT, sse.chat("hi len=9;", stream=True)),
    "whole": (sse.CHAT, sse.chat("hi len=9;")),
    "cut": (sse.CHAT, sse.chat("hi len=90;", max_tokens=7)),
    "text": (sse.TEXT, sse.text("tell len=8;", stream=True, max_tokens=20)),
    "two choices": (sse.CHAT, sse.chat("hi len=9;", n=2)),
    "responses": ("/v1/responses", {"model": "mock-model",
                                    "input": "hi len=9;"}),
    "responses, stream": ("/v1/responses", {
        "model": "mock-model", "input": "hi len=9;", "stream": True}),
    "messages": (MESSAGES, messages("hi len=9;")),
    "messages, stream": (MESSAGES, messages("hi len=9;", stream=True)),
    "embeddings": ("/v1/embeddings", {"model": "mock-model",
                                      "input": ["one", "two"]}),
}


@pytest.mark.parametrize("kind", ["vllm", pytest.param(
    "sglang", marks=pytest.mark.soak)])
def test_engine_counts_for_each_kind_of_request(gateway, key, usage, cluster,
                                                kind):
    """An engine's own figures, whether or not the client asked for them."""
    ledger = cluster.dir / "ledger"
    nginx = gateway(kind=kind, ledger=ledger,
                    faults='{"plain_health": true}')
    prompts = generated = 0
    engine = cluster.engines["e1"]
    for n, (name, (path, body)) in enumerate(ASKS.items(), 1):
        assert ask(nginx.api, path, body, bearer(key)).status == 200, name
        record = wait_records(usage, n)[-1]
        made = len(ledger.read_text().split("\n")) - 1 \
            if ledger.exists() else 0
        assert record["completion_tokens"] == made - generated, name
        told = engine.state()["prompt_tokens"]
        assert record["prompt_tokens"] == (told - prompts or 6), name
        assert (record["settled_by"], record["outcome"]) == ("engine", "ok"), \
            name
        prompts, generated = told, made


def test_cached_and_reasoning_tokens(gateway, key, usage):
    nginx = gateway(reasoning=True)
    long = "a long prompt " * 20
    for _ in range(2):
        got = call(nginx, key, sse.chat(f"{long} think=6;len=5;",
                                        stream=True, **USAGE))
    first, second = wait_records(usage, 2)
    assert first["cached_tokens"] == 0
    assert second["cached_tokens"] \
        == got.usage["prompt_tokens_details"]["cached_tokens"] > 0
    assert second["reasoning_tokens"] <= second["completion_tokens"]


def test_infer_is_counted(gateway, key, usage):
    nginx = gateway()
    with rpc.Client(nginx.target) as c:
        got = c.stream("hi len=30;", 7, metadata=bearer(key))
    assert len(got.tokens) == 7
    record, = wait_records(usage, 1)
    assert record["completion_tokens"] == 7
    assert (record["key"], record["outcome"]) == ("alice", "ok")


CLASSES = {"pool": "llmgw_queue 10 order=priority; llmgw_slo gold priority=5;"
                   " llmgw_slo lead priority=-5;",
           "openai": "llmgw_class request; llmgw_tenant request;"}
THEIRS = [("x-gateway-inference-objective", "lead"),
          ("x-gateway-inference-fairness-id", "theirs")]


@pytest.mark.parametrize("words_, told", [
    (("class=gold", "tenant=lab"), ("gold", "lab")),
    ((), ("lead", "theirs"))])
def test_class_and_tenant_of_the_line_win(gateway, keyfile, usage, words_,
                                          told):
    key = keyfile.add("alice", *words_)
    nginx = gateway(nginx=CLASSES)
    ask(nginx.api, sse.CHAT, sse.chat("hi len=2;"), bearer(key) + THEIRS)
    record, = wait_records(usage, 1)
    assert (record["class"], record["tenant"]) == told


# --- requests that do not

def test_refused_requests_cost_nothing(gateway, keyfile, usage):
    key = keyfile.add("alice", "rpm=1")
    nginx = gateway()
    assert ask(nginx.api, sse.CHAT, sse.chat("hi len=2;")).status == 401
    for status in (200, 429, 429):
        got = ask(nginx.api, sse.CHAT, sse.chat("hi len=2;"), bearer(key))
        assert got.status == status
    assert ask(nginx.api, sse.CHAT, b"{", bearer(key)).status in (400, 429)
    wait_records(usage, 1)


@pytest.mark.parametrize("stream", [True, False])
def test_abort_costs_what_had_come(gateway, key, usage, cluster, stream):
    """Of a whole answer, too, of which the client has seen nothing."""
    nginx = gateway()
    cluster.hold(5)
    with sse.Connection(nginx.api) as c:
        c.request(sse.CHAT, sse.chat("hi plain=1;len=9;", stream=stream),
                  headers={"authorization": f"Bearer {key}"})
        wait_for(lambda: cluster.engines["e1"].state()["tokens"] == 5,
                 "five tokens")
        wait_rest(cluster, nginx)
    record, = wait_records(usage, 1)
    assert counts(record).keys() == {"prompt_tokens", "completion_tokens"}
    assert record["completion_tokens"] == 5
    assert record["settled_by"] == "count"
    assert record["outcome"] == words.CLIENT_GONE


@pytest.mark.parametrize("path, body", [
    (MESSAGES, messages("hi len=60;", stream=True)),
    ("/v1/responses", {"model": "mock-model", "input": "hi len=60;",
                       "stream": True})])
def test_aborted_pass_costs_the_events_that_came(gateway, key, usage, cluster,
                                                 path, body):
    """One for each text, of which some have several tokens."""
    nginx = gateway()
    cluster.hold(30)
    with sse.Connection(nginx.api) as c:
        r = c.request(path, body, strict=False,
                      headers={"authorization": f"Bearer {key}"})
        wait_for(lambda: cluster.engines["e1"].state()["tokens"] == 30,
                 "thirty tokens")
        wait_rest(cluster, nginx)
        deltas = [e for e in r.wait_events(10) if "delta" in e.name]
    record, = wait_records(usage, 1)
    assert len(deltas) <= record["completion_tokens"] <= 30
    assert record["completion_tokens"] >= 10
    assert record["settled_by"] == "count"


@pytest.mark.parametrize("path, body", [
    (MESSAGES, lambda text: messages(text, stream=True)),
    ("/v1/responses", lambda text: {"model": "mock-model", "input": text,
                                    "stream": True})])
def test_aborted_pass_costs_to_the_token_where_a_text_is_one(
        gateway, key, usage, cluster, path, body):
    """By the engine's own ledger, wherever the client goes away."""
    ledger = cluster.dir / "ledger"
    nginx = gateway(ledger=ledger)
    engine, before = cluster.engines["e1"], 0
    for i, n in enumerate((1, 2, 7, 16), 1):
        cluster.hold(n)
        with sse.Connection(nginx.api) as c:
            c.request(path, body(f"{i} by=alice;plain=1;len=60;"),
                      strict=False, headers={"authorization": f"Bearer {key}"})
            wait_for(lambda: engine.state()["tokens"] == before + n,
                     f"{n} tokens")
            wait_rest(cluster, nginx)
        record = wait_records(usage, i)[-1]
        assert record["completion_tokens"] == n
        assert record["outcome"] == words.CLIENT_GONE
        before = engine.state()["tokens"]
    check_balance(usage, [ledger])


def test_aborted_pass_without_a_token_costs_its_prompt_at_most(
        gateway, key, usage, cluster):
    """The engine is frozen; its answer would have had the prompt's tokens."""
    nginx = gateway()
    cluster.engines["e1"].proc.freeze()
    text = "word " * 100
    for i, (path, body) in enumerate((
            ("/v1/embeddings", {"model": "mock-model", "input": text}),
            (MESSAGES, messages(text)),
            ("/v1/responses", {"model": "mock-model", "input": text})), 1):
        with sse.Connection(nginx.api) as c:
            c.request(path, body, strict=False,
                      headers={"authorization": f"Bearer {key}"})
            wait_for(lambda: nginx.in_flight() == 1, "it to be asked")
        record = wait_records(usage, i)[-1]
        assert record["completion_tokens"] == record["wasted_tokens"] == 0
        assert record["prompt_tokens"] <= len(text)
        assert record["outcome"] == words.CLIENT_GONE
    cluster.engines["e1"].proc.thaw()


@pytest.mark.parametrize("what", ["engine", "adapter"])
def test_resumed_stream_costs_each_token_once(gateway, key, usage, cluster,
                                              what):
    nginx = gateway(2, nginx={"pool": "llmgw_breaker off;"})
    cluster.hold(4)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat("hi len=9;", stream=True, **USAGE),
                      headers={"authorization": f"Bearer {key}"})
        engine, = wait_for(
            lambda: [e for e in cluster.engines.values()
                     if e.state()["tokens"] == 4], "four tokens")
        wait_rest(cluster, nginx)
        lost = f"a{engine.id[1:]}"
        (engine if what == "engine" else cluster.replicas[lost]).kill()
        cluster.let_go()
        got = sse.result_of(r)
    assert got.finish_reason == ["stop"]
    record, = wait_records(usage, 1)
    assert record["completion_tokens"] == 10 == got.usage["completion_tokens"]
    assert record["prompt_tokens"] == got.usage["prompt_tokens"]
    assert record["wasted_tokens"] == 0
    assert record["replicas"] == [lost, "a2" if lost == "a1" else "a1"]


def test_answer_begun_anew_wastes_what_was_lost(gateway, key, usage, cluster):
    """Where nothing is resumed, an answer that is still held begins again."""
    nginx = gateway(2, nginx={"pool": "llmgw_breaker off;",
                              "openai": "llmgw_resume off;"})
    cluster.hold(4)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat("hi plain=1;len=9;"),
                      headers={"authorization": f"Bearer {key}"})
        engine, = wait_for(
            lambda: [e for e in cluster.engines.values()
                     if e.state()["tokens"] == 4], "four tokens")
        wait_rest(cluster, nginx)
        engine.kill()
        cluster.let_go()
        got = sse.result_of(r)
    assert got.error is None
    record, = wait_records(usage, 1)
    assert record["wasted_tokens"] == 4
    assert record["completion_tokens"] == got.usage["completion_tokens"] == 10


def test_request_that_an_engine_refuses_costs_nothing(gateway, key, usage,
                                                      cluster):
    nginx = gateway()
    for engine in cluster.engines.values():
        engine.faults(status=400)
    got = call(nginx, key, sse.chat("hi len=2;"))
    assert got.status == 400
    record, = wait_records(usage, 1)
    assert record["outcome"] == "refused" and record["replicas"] == ["a1"]
    assert counts(record) == {}


def test_request_that_no_engine_got_costs_nothing(gateway, key, usage,
                                                  cluster):
    nginx = gateway(nginx={"pool": "llmgw_queue 1 timeout=200ms;"},
                    adapter={"max_capacity": 1})
    cluster.hold(1)
    with sse.Connection(nginx.api) as c:
        c.request(sse.CHAT, sse.chat("hi len=2;"),
                  headers={"authorization": f"Bearer {key}"})
        wait_for(lambda: nginx.in_flight() == 1, "the first one")
        got = call(nginx, key, sse.chat("late len=2;"))
        assert got.error["code"] == words.QUEUE_TIMEOUT
        record, = wait_records(usage, 1)
        assert record["outcome"] == words.QUEUE_TIMEOUT
        assert counts(record) == {} and record["replicas"] == []
        cluster.let_go()


def test_what_clients_write_breaks_no_record(gateway, key, usage):
    """Quotes, newlines, bytes that are no text, and all of it too long."""
    nginx = gateway()
    for model in ("x" * 1000, 'a"b\\c', "é" * 200, "a\nb\u2028\x00c"):
        ask(nginx.api, sse.CHAT, sse.chat("hi", model=model),
            bearer(key) + [("x-request-id", "id" * 500)])
    ask(nginx.api, sse.CHAT, sse.chat("hi len=2;"),
        bearer(key) + [("x-request-id", 'a"},{"n":7,"\xff')])
    wait_for(lambda: [r for r in records(usage)
                      if r["outcome"] == "ok"], "the last one")
    for line in usage.read_bytes().split(b"\n")[:-1]:
        assert len(line) < 4096 and list(json.loads(line)) == MEMBERS
        line.decode()


# --- adding up

def llmgwctl(*words_):
    return subprocess.run([place.binary("llmgwctl"), *map(str, words_)],
                          capture_output=True, text=True, timeout=20)


def test_llmgwctl_adds_up_what_was_written(gateway, keyfile, usage, cluster):
    """Rotated and compressed files, and the same one twice."""
    keys = [keyfile.add(f"k{i}", f"tenant=t{i % 2}") for i in range(3)]
    nginx = gateway()
    for n, key in enumerate(keys * 2):
        call(nginx, key, sse.chat(f"{n} len={n + 2};"))
    found = wait_records(usage, 6)
    old = cluster.dir / "usage.log.1"
    usage.rename(old)
    nginx.reload()
    for key in keys:
        call(nginx, key, sse.chat("more len=2;"))
    found += wait_for(lambda: len(got := records(usage)) == 3 and got,
                      "three more")
    packed = cluster.dir / "usage.log.2.gz"
    packed.write_bytes(gzip.compress(old.read_bytes()))

    groups, total, doubles = sums([usage, old, packed], "--by", "key")
    assert doubles == 6 and total["requests"] == 9
    for group in groups:
        mine = [r for r in found if r["key"] == group["key"]]
        assert group["requests"] == len(mine) == 3
        for m in COUNTS:
            assert group[m] == sum(r[m] for r in mine), m
    groups, _, _ = sums([usage, old], "--by", "tenant,model")
    assert {(g["tenant"], g["model"], g["requests"]) for g in groups} == {
        ("t0", "mock-model", 6), ("t1", "mock-model", 3)}
    table = llmgwctl("usage", "--format", "csv", usage, old).stdout
    rows = list(csv.DictReader(io.StringIO(table)))
    assert sum(int(r["requests"]) for r in rows if r["key"] != "total") == 9


def test_metrics_say_what_records_say(gateway, keyfile, usage):
    keys = [keyfile.add(f"k{i}") for i in range(2)]
    nginx = gateway()
    for i, key in enumerate(keys):
        for n in range(i + 1):
            call(nginx, key, sse.chat(f"{n} len=5;"))
    found = wait_records(usage, 3)
    for name in ("k0", "k1"):
        mine = [r for r in found if r["key"] == name]
        assert counted(nginx, "requests", name) == len(mine)
        assert counted(nginx, "refused", name) == 0
        for m in COUNTS:
            assert counted(nginx, m, name) == sum(r[m] for r in mine), m


def counted(nginx, what, key):
    text = nginx.get("/metrics")[1].decode()
    value, = re.findall(
        rf'^llmgw_key_{what}_total{{[^}}]*key="{key}"[^}}]*}} (\d+)$', text,
        re.M)
    return int(value)
