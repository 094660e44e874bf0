"""What answers cost that are passed on: the bytes are the engine's, and the
gateway knows their tokens."""

import json
import re

import pytest

from llmgw.proc.wait import wait_for
from llmgw.speak import sse

EMBEDDINGS, RESPONSES, MESSAGES = (
    "/v1/embeddings", "/v1/responses", "/v1/messages")
PROMPT = "more of it than the sixteen tokens of a block of the cache " * 3
BODIES = {
    EMBEDDINGS: {"input": [PROMPT, "two"]},
    RESPONSES: {"input": PROMPT, "max_output_tokens": 9},
    MESSAGES: {"messages": [{"role": "user", "content": PROMPT}],
               "max_tokens": 9}}
LOG = {"openai": "access_log @dir@/openai.log usage;",
       "http": "log_format usage '$llmgw_request_id|$llmgw_first_token_time|"
               "$llmgw_prompt_tokens|$llmgw_completion_tokens|"
               "$llmgw_cached_tokens|$llmgw_reasoning_tokens|$llmgw_tokens';",
       "server": "location = /metrics { llmgw_metrics; }"}


def body_of(path, **more):
    return {"model": "mock-model", **BODIES[path], **more}


def passed(target, path, body, id="direct"):
    with sse.Connection(target) as c:
        r = c.request(path, body, headers={"x-request-id": id}, strict=False)
        r.read()
        assert r.status == 200, r.body
        return re.sub(rb"(resp|msg)_[0-9a-f]{32}", b"id", r.body)


def logged(nginx, id):
    """The time to the first token, or None; tokens of the prompt, of the
    completion, cached, of thoughts; tokens sent."""
    log = nginx.dir / "openai.log"
    [line] = wait_for(lambda: [x for x in log.read_text().splitlines()
                               if x.startswith(id + "|")], "a line")
    _, first, *tokens = line.split("|")
    return None if first == "-" else float(first), *map(int, tokens)


def cost(kind, path, usage):
    """Tokens of prompt and completion, and cached ones, as the engine means
    its usage."""
    if path == EMBEDDINGS:
        return usage["prompt_tokens"], 0, 0
    if path == RESPONSES:
        return (usage["input_tokens"], usage["output_tokens"],
                usage["input_tokens_details"]["cached_tokens"])
    assert ("cache_read_input_tokens" in usage) == (kind != "vllm")
    cached = usage.get("cache_read_input_tokens", 0)
    return usage["input_tokens"] + cached, usage["output_tokens"], cached


def is_delta(event):
    return event.json["type"].endswith(("text.delta", "block_delta"))


def deltas(body):
    return len(re.findall(rb"event: \S*(?:text\.delta|block_delta)\n", body))


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llamacpp"])
def test_bytes_are_the_engines_and_tokens_are_known(cluster, kind):
    nginx = cluster.engines_fleet(1, kind, nginx=LOG)
    engine = cluster.engines["e1"].target
    sent = 0
    for path in BODIES:
        passed(engine, path, body_of(path))     # from now on it is cached
        whole = passed(engine, path, body_of(path))
        want = cost(kind, path, json.loads(whole)["usage"])
        assert passed(nginx.api, path, body_of(path), "whole" + path) == whole
        first, *tokens = logged(nginx, "whole" + path)
        assert tokens == [*want, 0, 0] and first is not None
        if path == EMBEDDINGS:
            continue
        body = body_of(path, stream=True)
        stream = passed(engine, path, body)
        assert deltas(stream) > 3
        assert passed(nginx.api, path, body, "stream" + path) == stream
        first, *tokens = logged(nginx, "stream" + path)
        assert tokens == [*want, 0, deltas(stream)] and first is not None
        sent += deltas(stream)
    assert nginx.counted("llmgw_tokens_total")["a1"] == sent


@pytest.mark.parametrize("path", [RESPONSES, MESSAGES])
def test_answer_that_breaks_off_costs_what_came(cluster, path):
    nginx = cluster.engines_fleet(1, "vllm", nginx=LOG)
    whole = passed(cluster.engines["e1"].target, path, body_of(path))
    prompt = cost("vllm", path, json.loads(whole)["usage"])[0]
    body = body_of(path, stream=True)
    for id in ("left", "broken"):
        cluster.hold(5)
        with sse.Connection(nginx.api) as c:
            r = c.request(path, body, headers={"x-request-id": id},
                          strict=False)
            wait_for(lambda: sum(map(is_delta, r.wait_events(
                len(r.events) + 1))) == 5, "what came of five tokens")
            if id == "broken":
                cluster.engines["e1"].faults(close_at=5, gate=None)
                r.wait_events(None)
        first, *tokens = logged(nginx, id)
        assert tokens == [prompt if path == MESSAGES else 0, 5, 0, 0, 5]
        assert first is not None
        cluster.engines["e1"].faults(close_at=None, gate=None)


def test_response_that_is_announced_has_no_token_yet(cluster):
    """vLLM announces it before it has read the prompt."""
    nginx = cluster.engines_fleet(1, "vllm", nginx=LOG)
    cluster.hold(0)
    with sse.Connection(nginx.api) as c:
        r = c.request(RESPONSES, body_of(RESPONSES, stream=True),
                      headers={"x-request-id": "none"}, strict=False)
        assert r.wait_events()[0].name == "response.created"
    assert logged(nginx, "none") == (None, 0, 0, 0, 0, 0)
