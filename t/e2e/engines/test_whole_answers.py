"""Whole answers that the gateway writes from an engine's stream: what the
engine says beside text is in them, too."""

import json

import pytest

from llmgw.proc.wait import wait_for
from llmgw.speak import sse

ADDS = json.dumps({"answer": {"service_tier": "priority", "metadata": {
    "weight_version": "v7"}, "unheard_of": [1.50, "\u00e9"]},
    "usage": {"reasoning_tokens": 0, "waited_ms": 3.25}})


def asked(target, body, path=sse.CHAT):
    with sse.Connection(target) as c:
        r = c.request(path, body, strict=False)
        r.read()
        assert r.status == 200, r.body
        return r.json


def says(answer, said):
    """Whether all of it that says something stands in the answer."""
    if isinstance(said, dict):
        return all(key in answer and says(answer[key], value)
                   for key, value in said.items()
                   if value is not None and value != [])
    if isinstance(said, list) and len(said) == 1:
        return len(answer) == 1 and says(answer[0], said[0])
    return answer == said


def body_of(path, **more):
    make = sse.chat if path == sse.CHAT else sse.text
    return make("whole len=24;", max_tokens=60, **more)


def text_of(answer):
    [choice] = answer["choices"]
    return choice["text"] if "text" in choice else choice["message"]["content"]


@pytest.mark.parametrize("path", [sse.CHAT, sse.TEXT])
@pytest.mark.parametrize("kind", ["vllm", "sglang", "llamacpp"])
def test_engines_own_members_are_in_the_answer(cluster, kind, path):
    # llama-server is asked in its own way, whose answers are of another form
    adds = {} if kind == "llamacpp" else {"adds": ADDS}
    nginx = cluster.engines_fleet(1, kind, **adds)
    engine = cluster.engines["e1"]
    stop = text_of(asked(engine.target, body_of(path), path))[7:10]
    for more in ({}, {"stop": [stop]}):
        asked(nginx.api, body_of(path, **more), path)   # fills the cache
        there = asked(engine.target, body_of(path, **more), path)
        got = asked(nginx.api, body_of(path, **more), path)
        for answer in (there, got):
            for key in ("id", "created", "timings"):
                answer.pop(key, None)
            if not adds:
                answer["usage"].pop("completion_tokens_details", None)
        assert says(got, there), (got, there)
        assert got["usage"] == there["usage"]
    assert not adds or got["metadata"] == {"weight_version": "v7"}
    matched = {"vllm": "stop_reason", "sglang": "matched_stop"}.get(kind)
    assert matched is None or got["choices"][0][matched] == stop


def test_they_are_there_after_a_loss(cluster):
    """Of the engine that finished it; what it counts is of all."""
    nginx = cluster.engines_fleet(2, "vllm", adds=ADDS)
    engines = cluster.engines
    right = asked(engines["e1"].target, body_of(sse.CHAT))
    cluster.hold(7)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, body_of(sse.CHAT))
        [lost] = wait_for(lambda: [e for e in engines.values() if
                                   e.state()["running"]], "an engine's call")
        before = 0 if lost is not engines["e1"] else right["usage"][
            "completion_tokens"]
        wait_for(lambda: lost.state()["tokens"] - before == 7, "7 tokens")
        lost.kill()
        cluster.let_go()
        r.read()
    got = r.json
    assert text_of(got) == text_of(right)
    for answer in (right, got):
        answer.pop("id"), answer.pop("created")
        answer["usage"].pop("prompt_tokens_details")
    assert says(got, right)
