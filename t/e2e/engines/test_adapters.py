"""Adapters: a request for one goes to replicas whose engine has it."""

import json

import pytest

from llmgw.fleet import words
from llmgw.proc.wait import wait_for
from llmgw.speak import sse


@pytest.fixture
def fleet(cluster):
    """fleet({id: adapter or None}): vLLMs of one base model, behind nginx."""
    def make(engines, pool="", **adapter):
        cluster.agent("gw", "gateway")
        for id, name in engines.items():
            options = {"adapter": name} if name else {}
            engine = cluster.engine(f"e-{id}", "vllm", **options)
            cluster.adapter(engine, id, **adapter)
        nginx = cluster.nginx(openai=True, pool=pool)
        wait_for(lambda: nginx.routable() == sorted(engines), "all")
        return nginx
    return make


def models(nginx):
    with sse.Connection(nginx.api) as c:
        r = c.request("/v1/models")
        r.read()
        return sorted(m["id"] for m in r.json["data"])


def wait_known(nginx, **by_replica):
    """Waits until the gateway knows the models of each replica."""
    wait_for(lambda: {id: r["models"] for id, r in nginx.replicas().items()}
             == by_replica, "all models")


def asked(cluster, id):
    """The models that its engine was asked for."""
    return [json.loads(e["body"])["model"] for e in
            cluster.engines[f"e-{id}"].events("request", sse.CHAT)]


def test_adapter_goes_where_it_is(cluster, fleet):
    nginx = fleet({"r1": None, "r2": "sql", "r3": "law"})
    wait_known(nginx, r1=["mock-model"], r2=["mock-model", "sql"],
               r3=["mock-model", "law"])
    assert models(nginx) == ["law", "mock-model", "sql"]
    for i in range(12):
        for model in ("sql", "law", "mock-model"):
            got = sse.call(nginx.api, sse.CHAT,
                           sse.chat(f"{i} len=3;", model=model))
            assert got.status == 200 and not got.error, got
    assert set(asked(cluster, "r1")) == {"mock-model"}
    assert set(asked(cluster, "r2")) == {"mock-model", "sql"}
    assert set(asked(cluster, "r3")) == {"mock-model", "law"}
    assert asked(cluster, "r2").count("sql") == 12

    got = sse.call(nginx.api, sse.CHAT, sse.chat("hi", model="tax"))
    assert got.status == 404 and got.error["code"] == words.MODEL_NOT_FOUND

    # A model whose replicas are gone is known, and has no replica.
    cluster.replicas["r2"].kill()
    wait_for(lambda: nginx.routable() == ["r1", "r3"], "r2 to be out")
    assert models(nginx) == ["law", "mock-model"]
    got = sse.call(nginx.api, sse.CHAT, sse.chat("hi", model="sql"))
    assert got.status == 503 and got.error["code"] == words.NO_REPLICAS


def test_full_adapter_holds_nobody_up(cluster, fleet):
    """Its next request waits in the queue; others pass it."""
    nginx = fleet({"r1": None, "r2": "sql"}, pool="llmgw_queue 4;",
                  max_capacity=1)
    wait_known(nginx, r1=["mock-model"], r2=["mock-model", "sql"])
    cluster.hold()
    held = sse.chat("one len=3;", model="sql", stream=True)
    with sse.Connection(nginx.api) as a, sse.Connection(nginx.api) as b:
        first, second = a.request(sse.CHAT, held), b.request(sse.CHAT, held)
        wait_for(lambda: nginx.waiting() == 1, "one in the queue")
        cluster.engines["e-r1"].faults(gate=None)
        for i in range(3):
            got = sse.call(nginx.api, sse.CHAT, sse.chat(f"{i} len=3;"))
            assert got.status == 200 and not got.error, got
        assert nginx.waiting() == 1
        cluster.let_go()
        for one in (first, second):
            got = sse.result_of(one)
            assert got.done and not got.error, got
    assert asked(cluster, "r2") == ["sql", "sql"]
    assert len(asked(cluster, "r1")) == 3


def test_more_adapters_than_gossip_carries(cluster):
    """The gateway asks the engine for names that it does not know."""
    cluster.agent("gw", "gateway")
    engine = cluster.engine("e-r1", "vllm", start=False)
    for i in range(40):
        engine.argv += ["--adapter", f"adapter-{i:02}"]
    cluster.adapter(engine.start(), "r1")
    cluster.adapter(cluster.engine("e-r2", "vllm"), "r2")
    nginx = cluster.nginx(openai=True)
    wait_for(lambda: nginx.routable() == ["r1", "r2"], "both")
    wait_for(lambda: (r := nginx.replicas())["r1"]["models_cut"] > 0
             and r["r2"]["models"] == ["mock-model"], "models")
    assert "adapter-39" not in models(nginx)
    for i in range(3):
        got = sse.call(nginx.api, sse.CHAT,
                       sse.chat(f"{i} len=3;", model="adapter-39"))
        assert got.status == 200 and not got.error, got
    got = sse.call(nginx.api, sse.CHAT, sse.chat("hi", model="adapter-40"))
    assert got.status == 404, got
    assert asked(cluster, "r1") == ["adapter-39"] * 3 + ["adapter-40"]
    assert asked(cluster, "r2") == []
