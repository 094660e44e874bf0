"""What a class is within an engine that schedules by priority."""

import json

import pytest

from llmgw.speak import sse
from llmgw.speak.sse import CHAT, TEXT

RESPONSES = "/v1/responses"
CLASS = "x-llm-d-inference-objective"
SLO = "llmgw_slo gold engine_priority=5; llmgw_slo nightly" \
      " engine_priority=-7; llmgw_slo plain engine_priority=0;"


def fleet(cluster, kind, pool=SLO, openai="llmgw_class request;", **engine):
    return cluster.engines_fleet(1, kind, nginx={
        "pool": pool, "openai": openai, "location": "llmgw_class request;"},
        **engine)


def told(cluster, nginx, body, path=CHAT, **headers):
    """The priority that the engine gets; None: the body says none."""
    with sse.Connection(nginx.api) as c:
        r = c.request(path, body, headers=headers, strict=False)
        r.read()
        assert r.status == 200, r.body
    sent = cluster.engines["e1"].events("request", path)[-1]
    return json.loads(sent["body"]).get("priority")


def chat(**more):
    return sse.chat("hello", max_tokens=2, **more)


@pytest.mark.parametrize("kind, engine, sign", [
    ("vllm", {}, -1), ("sglang", {"priorities": "high"}, 1),
    ("sglang", {"priorities": "low"}, -1), ("sglang", {}, None),
    ("openai", {}, None)])
def test_class_has_a_priority_at_the_engine(cluster, kind, engine, sign):
    """None is told to an engine that does not schedule by it, and the
    client's own never."""
    nginx = fleet(cluster, kind, **engine)
    for name, value in (("gold", 5), ("nightly", -7), ("plain", 0),
                        ("critical", None), ("unknown", None)):
        expected = None if value is None or sign is None else sign * value
        for more in ({}, {"stream": True}, {"priority": 99}):
            got = told(cluster, nginx, chat(**more), **{CLASS: name})
            assert got == expected, (name, more)


def test_each_api_of_generation_has_it(cluster, client):
    """A chat that is asked as a completion, and Infer, too."""
    nginx = fleet(cluster, "sglang", priorities="high",
                  sampling_defaults="openai", openai="llmgw_class gold;")
    assert told(cluster, nginx, sse.text("p", max_tokens=2), TEXT) == 5
    assert told(cluster, nginx, {"model": "mock-model", "input": "p"},
                RESPONSES) == 5
    with sse.Connection(nginx.api) as c:
        r = c.request(CHAT, chat(stream=True, priority=3))
        r.read()
        assert r.status == 200
    engine = cluster.engines["e1"]
    rendered = json.loads(engine.events("request", TEXT)[-1]["body"])
    assert rendered["priority"] == 5 and "hello" not in str(rendered)
    got = client(nginx).stream("p", 2, slo_class="gold")
    assert got.code == "OK", got


@pytest.mark.parametrize("pool, openai", [
    (SLO, ""), ("llmgw_slo gold priority=5;", "llmgw_class request;")])
def test_priority_of_a_client_goes_on(cluster, pool, openai):
    """Where requests have no class, and where no class has one."""
    nginx = fleet(cluster, "vllm", pool, openai)
    assert told(cluster, nginx, chat(priority=99), **{CLASS: "gold"}) == 99
    assert told(cluster, nginx, chat(), **{CLASS: "gold"}) is None
