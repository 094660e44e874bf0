"""What pages and answers say of keys and their accounts."""

import calendar
import re
import time

import jsonschema
import pytest

from llmgw.pages.scene import SCHEMA
from llmgw.proc.wait import wait_for
from llmgw.speak import rawh2, rpc, sse

LINE = re.compile(r'^llmgw_(\w+){zone="keys"(?:,(?:key|reason)="([^"]*)")?}'
                  r" ([0-9]+)$", re.M)
METRICS = "location = /metrics { llmgw_metrics; }"


def metrics(nginx):
    """{(name, key or reason): value}"""
    text = nginx.get("/metrics")[1].decode()
    found = [((name, label), int(n)) for name, label, n in LINE.findall(text)]
    assert len(dict(found)) == len(found) == text.count('zone="keys"')
    return dict(found)


def accounts(nginx):
    """{name: its object on the status}, which follows the schema."""
    said = nginx.status()
    jsonschema.Draft202012Validator(SCHEMA).validate(said)
    zone, = said["keys"]
    return {a["name"]: a for a in zone["accounts"]}


def bearer(key):
    return {"authorization": f"Bearer {key}"}


def ask(nginx, key, prompt="hi len=4;", path=sse.CHAT, **more):
    with sse.Connection(nginx.api) as c:
        r = c.request(path, sse.chat(prompt, **more), headers=bearer(key),
                      strict=False)
        r.read()
        return r


def test_what_keys_use_is_on_both_pages(cluster, key_file):
    path, alice, other = key_file(alice="streams=5 budget=100000/day",
                                  other="rpm=600 tpm=60000")
    nginx = cluster.engines_fleet(1, "vllm", nginx={
        "openai": f"llmgw_keys {path} zone=keys:1m;", "server": METRICS})
    assert set(accounts(nginx)) == {"other"}

    used = [ask(nginx, key).json["usage"] for key in (alice, alice, other)]
    assert ask(nginx, "sk-llmgw-nobody").status == 401
    prompt = sum(u["prompt_tokens"] for u in used[:2])
    completion = sum(u["completion_tokens"] for u in used[:2])
    assert prompt and completion

    # A key that is called "other" has no row beside that of all others.
    wait_for(lambda: accounts(nginx)["other"]["requests"] == 1, "the last one")
    said = accounts(nginx)
    assert set(said) == {"alice", "other"}
    assert said["alice"] == {
        "name": "alice", "requests": 2, "refused": 0, "prompt_tokens": prompt,
        "completion_tokens": completion,
        "cached_tokens": said["alice"]["cached_tokens"],
        "reasoning_tokens": 0, "wasted_tokens": 0, "streams": 0,
        "max_streams": 5, "rpm": None, "tpm": None,
        "budget": {"period": "day", "tokens": 100000,
                   "used": prompt + completion, "reserved": 0}}
    assert said["other"]["completion_tokens"] == used[2]["completion_tokens"]

    shown = metrics(nginx)
    for name in ("requests", "prompt_tokens", "completion_tokens",
                 "cached_tokens", "reasoning_tokens", "wasted_tokens"):
        for key in said:
            assert shown[f"key_{name}_total", key] == said[key][name], name
    assert shown["key_budget_tokens", "alice"] == 100000
    assert shown["key_budget_used_tokens", "alice"] == prompt + completion
    assert ("key_budget_tokens", "other") not in shown
    assert shown["auth_failures_total", "unknown"] == 1
    assert shown["auth_failures_total", "missing"] == 0
    assert shown["usage_lost_total", ""] == shown["usage_waiting", ""] == 0


def test_streams_in_flight_and_refusals(cluster, key_file):
    path, alice = key_file(alice="streams=1")
    nginx = cluster.fleet(1, nginx={
        "openai": f"llmgw_keys {path} zone=keys:1m;", "server": METRICS})
    cluster.hold(1)
    with sse.Connection(nginx.api) as c:
        c.request(sse.TEXT, sse.text("hi", max_tokens=3, stream=True),
                  headers=bearer(alice)).wait_events(1)
        assert metrics(nginx)["key_streams", "alice"] == 1
        assert ask(nginx, alice, path=sse.CHAT).status == 429
        assert accounts(nginx)["alice"]["refused"] == 1
        assert metrics(nginx)["key_refused_total", "alice"] == 1
    wait_for(lambda: metrics(nginx)["key_streams", "alice"] == 0,
             "the client's slot to be free")
    assert metrics(nginx)["key_requests_total", "alice"] == 1


LIMITS = "x-ratelimit-{}-requests", "x-ratelimit-{}-tokens"
ANTHROPIC = ("anthropic-ratelimit-requests-{}",
             "anthropic-ratelimit-tokens-{}")


def limits(headers, names):
    """[(limit, remaining, reset), ...], of requests and of tokens."""
    assert sum("ratelimit" in name for name in headers) \
        == 3 * sum(name.format("limit") in headers for name in names)
    return [(int(headers[name.format("limit")]),
             int(headers[name.format("remaining")]),
             headers[name.format("reset")])
            for name in names if name.format("limit") in headers]


@pytest.mark.parametrize("stream", [False, True])
def test_answers_say_what_is_left(cluster, key_file, stream):
    path, both, one, none = key_file(both="rpm=60 tpm=6000", one="rpm=2",
                                     none="streams=3")
    nginx = cluster.engines_fleet(1, "vllm", nginx={
        "openai": f"llmgw_keys {path} zone=keys:1m;"})

    requests, tokens = limits(ask(nginx, both, stream=stream).headers, LIMITS)
    assert requests == (60, 59, "1s")
    assert tokens[0] == 6000 and 0 < tokens[1] < 6000
    assert re.fullmatch(r"\d+ms|\d+s", tokens[2])
    assert limits(ask(nginx, none, stream=stream).headers, LIMITS) == []

    # Refusals say it, too; a whole minute has no rest of seconds.
    for _ in range(2):
        ask(nginx, one)
    refused = ask(nginx, one)
    assert refused.status == 429
    (limit, left, reset), = limits(refused.headers, LIMITS)
    assert (limit, left) == (2, 0) and reset in ("1m0s", "59s", "58s")
    assert "ratelimit" not in str(ask(nginx, "nobody").headers)


def test_answers_of_messages_have_anthropics_words(cluster, key_file):
    path, alice = key_file(alice="rpm=60 tpm=6000")
    nginx = cluster.engines_fleet(1, "vllm", nginx={
        "openai": f"llmgw_keys {path} zone=keys:1m;"})
    before = int(time.time())
    got = ask(nginx, alice, path="/v1/messages", max_tokens=4)
    assert got.status == 200
    for (limit, left, reset), most in zip(limits(got.headers, ANTHROPIC),
                                          (60, 6000)):
        assert limit == most and 0 < left < most
        at = time.strptime(reset, "%Y-%m-%dT%H:%M:%SZ")
        assert before <= calendar.timegm(at) <= before + 70
    refused = ask(nginx, "nobody", path="/v1/messages")
    assert refused.status == 401
    assert refused.json["error"]["type"] == "authentication_error"


def test_answers_of_grpc_say_it_too(cluster, key_file):
    path, alice = key_file(alice="rpm=60")
    nginx = cluster.fleet(1, nginx={
        "location": f"llmgw_keys {path} zone=keys:1m;"})
    body = rawh2.frame(rpc.pb.InferRequest(
        prompt="p", max_tokens=1).SerializeToString())
    with rawh2.RawH2(nginx.target) as h:
        got = h.wait(h.request(rpc.INFER, body,
                               headers=list(bearer(alice).items())))
    assert limits(got.headers, LIMITS) == [(60, 59, "1s")]


def test_accounts_beyond_a_thousand_are_one(cluster, key_file):
    """By names that something else has checked."""
    path, _ = key_file(alice="")
    with path.open("a") as f:
        f.write("* - streams=3\n")
    nginx = cluster.fleet(1, replica={"token_delay": "0ms"}, nginx={
        "openai": f"llmgw_keys {path} zone=keys:4m;"
                  " llmgw_identity name=$http_x_user;", "server": METRICS})
    with sse.Connection(nginx.api) as c:
        for i in range(1003):
            c.request(sse.TEXT, sse.text("p", max_tokens=1),
                      headers={"x-user": f"u{i}"}).read()
    wait_for(lambda: accounts(nginx)["other"]["requests"] == 3, "three others")
    said = accounts(nginx)
    assert set(said) == {"other", *(f"u{i}" for i in range(1000))}
    assert sum(n for (name, _), n in metrics(nginx).items()
               if name == "key_requests_total") == 1003
