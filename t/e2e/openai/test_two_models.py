"""Two base models in one segment: an upstream for each, and each its queue."""

import json
import threading
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


def test_name_of_several_upstreams_is_listed_once(cluster):
    cluster.agent("gw", "gateway")
    cluster.adapter(cluster.engine("e1", model="alpha"), "a1")
    lines = f"llmgw_members {cluster.gateway.members};\n llmgw_hash;"
    nginx = cluster.nginx(lines, http=SECOND.format(lines=lines),
                          openai="llmgw_model x as alpha pool=llm2;"
                                 " llmgw_model y as alpha;"
                                 " llmgw_model z as alpha pool=llm2;")
    wait_for(lambda: nginx.routable() == nginx.routable("llm2") == ["a1"],
             "a1 in both")
    with sse.Connection(nginx.api) as c:
        r = c.request("/v1/models")
        r.read()
        assert [m["id"] for m in r.json["data"]] == ["x", "y", "z", "alpha"]
        for name, status in ("x", 200), ("alpha", 200), ("alph", 404):
            r = c.request(f"/v1/models/{name}")
            assert r.read() and r.status == status


@pytest.mark.soak
def test_alias_is_what_the_client_is_told_and_the_engine_never_sees(cluster):
    nginx = start(cluster)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat("x len=2;", "b", stream=True))
        chunks = [e.json for e in r.wait_events(None) if e.data != "[DONE]"]
    assert {chunk["model"] for chunk in chunks} == {"b"}
    asked = cluster.engines["e2"].events("request", sse.CHAT)
    assert [json.loads(a["body"])["model"] for a in asked] == ["beta"]


# --- the model of a fleet is exchanged, by new members

SERVED, UNKNOWN = (200, None), (404, words.MODEL_NOT_FOUND)
ABSENT = (503, words.NO_REPLICAS)


def ask(nginx, model, n=0):
    got = sse.call(nginx.api, sse.CHAT,
                   sse.chat(f"{n} len=3;", model, stream=True))
    assert got.error or got.done == 1
    return got.status, got.error and got.error["code"]


class Asker(threading.Thread):
    """A client of one model: one request after another, until stop()."""

    def __init__(self, nginx, model):
        super().__init__(daemon=True)
        self.nginx, self.model = nginx, model
        self.answers, self.over = [], threading.Event()
        self.start()
        self.go_on()

    def run(self):
        while not self.over.is_set():
            self.answers.append(ask(self.nginx, self.model,
                                    len(self.answers)))

    def go_on(self, n=5):
        upto = len(self.answers) + n
        wait_for(lambda: len(self.answers) >= upto or not self.is_alive(),
                 f"{n} more answers")
        assert set(self.answers) == {SERVED}

    def stop(self):
        self.over.set()
        self.join(10)
        assert set(self.answers) == {SERVED}


def join(cluster, model, *names):
    for name in names:
        engine = cluster.engine(f"e-{name}", model=model)
        cluster.adapter(engine, name)


def leave(cluster, name):
    assert cluster.replicas[name].stop() == 0
    assert cluster.replicas[name].agent.stop() == 0


def restart_agent(cluster, *names):
    """Over its old segment, and until it knows these again."""
    cluster.gateway.kill()
    cluster.gateway.start()
    wait_for(lambda: set(names) <= set(cluster.gateway.table()),
             f"the gateway's agent to know {names}")


def check_engines(cluster, **models):
    """Each was asked for its own model alone."""
    for name, model in models.items():
        asked = cluster.engines[f"e-{name}"].events("request", sse.CHAT)
        assert {json.loads(a["body"])["model"] for a in asked} == {model}


def test_fleet_exchanges_its_model_under_load(cluster):
    """With an upstream for each: whatever is asked for is served as long as
    one replica has it."""
    cluster.agent("gw", "gateway")
    join(cluster, "alpha", "a1", "a2")
    members = cluster.gateway.members
    nginx = cluster.nginx(
        UPSTREAM.format(members=members, model="alpha"), openai=MODELS,
        http=SECOND.format(lines=UPSTREAM.format(members=members,
                                                 model="beta")))
    wait_for(lambda: nginx.routable() == ["a1", "a2"], "the old model")
    alpha = Asker(nginx, "alpha")
    assert ask(nginx, "beta") == ABSENT

    join(cluster, "beta", "b1", "b2")
    wait_for(lambda: nginx.routable("llm2") == ["b1", "b2"], "the new one")
    askers = [alpha, Asker(nginx, "beta")]
    leave(cluster, "a1")
    wait_for(lambda: nginx.routable() == ["a2"], "a1 to be gone")
    for asker in askers:
        asker.go_on()
    restart_agent(cluster, "a2", "b1", "b2")
    for asker in askers:
        asker.go_on()

    alpha.stop()
    leave(cluster, "a2")
    wait_for(lambda: not nginx.routable(), "a2 to be gone")
    askers[1].go_on()
    askers[1].stop()
    assert ask(nginx, "alpha") == ABSENT
    check_engines(cluster, a1="alpha", a2="alpha", b1="beta", b2="beta")


def test_fleet_of_one_upstream_exchanges_its_model(cluster):
    """The new one is served when no replica of the old one is left."""
    cluster.agent("gw", "gateway")
    join(cluster, "alpha", "a1", "a2")
    nginx = cluster.nginx(openai=True)
    wait_for(lambda: nginx.routable() == ["a1", "a2"], "the old model")
    alpha = Asker(nginx, "alpha")
    join(cluster, "beta", "b1")
    cluster.wait_ready([cluster.gateway], ["b1"])
    leave(cluster, "a1")
    wait_for(lambda: nginx.routable() == ["a2"], "a1 to be gone")
    restart_agent(cluster, "a1", "a2", "b1")
    join(cluster, "beta", "b2")
    cluster.wait_ready([cluster.gateway], ["b2"])
    alpha.go_on()
    assert ask(nginx, "beta") == UNKNOWN
    alpha.stop()

    leave(cluster, "a2")
    wait_for(lambda: nginx.routable() == ["b1", "b2"], "the new model")
    assert (ask(nginx, "alpha"), ask(nginx, "beta")) == (UNKNOWN, SERVED)
    restart_agent(cluster, "b1", "b2")
    assert (ask(nginx, "alpha"), ask(nginx, "beta")) == (UNKNOWN, SERVED)
    check_engines(cluster, a1="alpha", a2="alpha")
