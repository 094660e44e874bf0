"""Two base models in one segment: an upstream for each, and each its queue."""

import json
import urllib.request

import pytest

from llmgw import sse, words
from llmgw.wait import wait_for

UPSTREAM = "llmgw_members {members} model={model};\n llmgw_hash prefix=64;"
SECOND = "upstream llm2 {{ {lines} }}"
MODELS = "llmgw_model alpha; llmgw_model beta pool=llm2;" \
         " llmgw_model b as beta pool=llm2;"


def start(cluster, **alpha):
    """An engine of alpha, one of beta, and nginx with both."""
    cluster.agent("gw", "gateway")
    cluster.adapter(cluster.engine("e1", model="alpha", **alpha), "a1",
                    max_capacity=1)
    cluster.adapter(cluster.engine("e2", model="beta"), "a2")
    members = cluster.gateway.members
    nginx = cluster.nginx(
        UPSTREAM.format(members=members, model="alpha"), openai=MODELS,
        http=SECOND.format(lines=UPSTREAM.format(members=members,
                                                 model="beta")))
    wait_for(lambda: nginx.routable() == ["a1"]
             and nginx.routable("llm2") == ["a2"], "both models")
    return nginx


def test_full_model_does_not_hold_up_the_other(cluster):
    nginx = start(cluster)
    cluster.engines["e1"].faults(gate=6)
    with sse.Connection(nginx.api) as busy, sse.Connection(nginx.api) as waits:
        r = busy.request(sse.CHAT, sse.chat("x len=9;", "alpha", stream=True))
        r.wait_events(2)
        waits.request(sse.CHAT, sse.chat("y len=2;", "alpha", stream=True))
        wait_for(lambda: nginx.waiting() == 1, "a queue for alpha")
        for model in ("beta", "b"):
            got = sse.call(nginx.api, sse.CHAT,
                           sse.chat("z len=3;", model, stream=True))
            assert (got.error, got.done) == (None, 1)
        assert nginx.waiting() == 1


def test_models_of_both_are_listed_and_no_other_is_served(cluster):
    nginx = start(cluster)
    with urllib.request.urlopen(f"http://{nginx.api}/v1/models") as answer:
        names = [m["id"] for m in json.loads(answer.read())["data"]]
    assert sorted(names) == ["alpha", "b", "beta"]
    got = sse.call(nginx.api, sse.CHAT, sse.chat("x", "gamma"))
    assert got.status == 404 and got.error["code"] == words.MODEL_NOT_FOUND


@pytest.mark.soak
def test_alias_is_what_the_client_is_told_and_the_engine_never_sees(cluster):
    nginx = start(cluster)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat("x len=2;", "b", stream=True))
        chunks = [e.json for e in r.wait_events(None) if e.data != "[DONE]"]
    assert {chunk["model"] for chunk in chunks} == {"b"}
    asked = cluster.engines["e2"].events("request", sse.CHAT)
    assert [json.loads(a["body"])["model"] for a in asked] == ["beta"]
