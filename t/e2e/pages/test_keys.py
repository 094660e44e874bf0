"""What answers say of the limits of keys."""

import calendar
import re
import time

import pytest

from llmgw import rawh2, rpc, sse


def bearer(key):
    return {"authorization": f"Bearer {key}"}


def ask(nginx, key, prompt="hi len=4;", path=sse.CHAT, **more):
    with sse.Connection(nginx.api) as c:
        r = c.request(path, sse.chat(prompt, **more), headers=bearer(key),
                      strict=False)
        r.read()
        return r


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
