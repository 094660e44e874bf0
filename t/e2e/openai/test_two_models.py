"""Two base models in one segment: an upstream for each, and each its queue."""

import itertools
import json
import threading
import urllib.request

import pytest

from llmgw.fleet import words
from llmgw.proc.wait import wait_for
from llmgw.speak import sse

UPSTREAM = "llmgw_members {members} model={model};\n llmgw_hash prefix=64;" \
           " llmgw_queue hold=0;"
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


# --- the model of a fleet is exchanged, by new members and under load

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

    def run(self):
        while not self.over.is_set():
            self.answers.append(ask(self.nginx, self.model,
                                    len(self.answers)))

    def go_on(self, n=5):
        """Until it has that many more answers; the last one."""
        upto = len(self.answers) + n
        wait_for(lambda: len(self.answers) >= upto or not self.is_alive(),
                 f"{n} more answers")
        assert self.is_alive()
        return self.answers[-1]

    def told(self):
        """Its answers, those alike in a row as one."""
        return [one for one, _ in itertools.groupby(self.answers)]

    def stop(self):
        self.over.set()
        self.join(10)
        return self.told()


class Crowd(list):
    """Three clients of a model."""

    def __init__(self, nginx, model):
        super().__init__(Asker(nginx, model) for _ in range(3))

    def go_on(self):
        return {one.go_on() for one in self}

    def told(self):
        return [one.told() for one in self]

    def stop(self):
        for one in self:
            one.over.set()
        return [one.stop() for one in self]


class Fleet:
    """Replicas of two models, an engine for each, and the gateway's agent."""

    def __init__(self, cluster):
        self.cluster = cluster
        cluster.agent("gw", "gateway")
        for model in "alpha", "beta":
            cluster.engine(model, model=model)

    def join(self, model, *names):
        for name in names:
            self.cluster.adapter(self.cluster.engines[model], name)
        self.cluster.wait_ready([self.cluster.gateway], names)

    def leave(self, name):
        replica = self.cluster.replicas[name]
        assert replica.stop() == 0 and replica.agent.stop() == 0
        wait_for(lambda: self.cluster.gateway.table()[name]["state"] == "LEFT",
                 f"{name} to have left")

    def restart_agent(self, *names):
        """The gateway's, over its old segment, and until it knows these."""
        gateway = self.cluster.gateway
        gateway.kill()
        gateway.start()
        wait_for(lambda: set(names) <= set(gateway.table()),
                 f"the gateway's agent to know {names}")

    def check(self):
        """Each engine was asked for its own model alone."""
        for model in "alpha", "beta":
            asked = self.cluster.engines[model].events("request", sse.CHAT)
            assert {json.loads(a["body"])["model"] for a in asked} == {model}


def test_fleet_exchanges_its_model_under_load(cluster):
    """With an upstream for each: whatever is asked for is served as long as
    one replica has it, whatever happens to the gateway's agent."""
    fleet = Fleet(cluster)
    fleet.join("alpha", "a1", "a2")
    members = cluster.gateway.members
    nginx = cluster.nginx(
        UPSTREAM.format(members=members, model="alpha"), openai=MODELS,
        http=SECOND.format(lines=UPSTREAM.format(members=members,
                                                 model="beta")))
    wait_for(lambda: nginx.routable() == ["a1", "a2"], "the old model")
    alpha = Crowd(nginx, "alpha")
    assert ask(nginx, "beta") == ABSENT
    fleet.restart_agent("a1", "a2")

    fleet.join("beta", "b1", "b2")
    wait_for(lambda: nginx.routable("llm2") == ["b1", "b2"], "the new one")
    beta = Crowd(nginx, "beta")
    fleet.leave("a1")
    wait_for(lambda: nginx.routable() == ["a2"], "a1 to be gone")
    assert alpha.go_on() == beta.go_on() == {SERVED}
    fleet.restart_agent("a2", "b1", "b2")
    assert alpha.go_on() == beta.go_on() == {SERVED}
    assert alpha.told() == [[SERVED]] * 3

    fleet.leave("a2")
    wait_for(lambda: not nginx.routable(), "a2 to be gone")
    assert (alpha.go_on(), beta.go_on()) == ({ABSENT}, {SERVED})
    fleet.restart_agent("b1", "b2")
    assert (alpha.go_on(), beta.go_on()) == ({ABSENT}, {SERVED})
    assert alpha.stop() == [[SERVED, ABSENT]] * 3
    assert beta.stop() == [[SERVED]] * 3
    fleet.check()


def test_fleet_of_one_pool_exchanges_its_model(cluster):
    """The new one is served when no replica of the old one is left, and then
    nothing else: those that have left count until then."""
    fleet = Fleet(cluster)
    fleet.join("alpha", "a1", "a2", "a3")
    nginx = cluster.nginx(f"llmgw_members {cluster.gateway.members} models=1;"
                          "\n llmgw_hash prefix=64;", openai=True)
    wait_for(lambda: nginx.routable() == ["a1", "a2", "a3"], "the old model")
    alpha, beta = Crowd(nginx, "alpha"), Crowd(nginx, "beta")
    fleet.join("beta", "b1", "b2")
    for name in "a1", "a2":
        fleet.leave(name)
    wait_for(lambda: nginx.routable() == ["a3"], "two to be gone")
    assert (alpha.go_on(), beta.go_on()) == ({SERVED}, {UNKNOWN})
    fleet.restart_agent("a3", "b1", "b2")
    assert (alpha.go_on(), beta.go_on()) == ({SERVED}, {UNKNOWN})
    assert alpha.told() == [[SERVED]] * 3
    assert beta.told() == [[UNKNOWN]] * 3

    fleet.leave("a3")
    wait_for(lambda: nginx.routable() == ["b1", "b2"], "the new model")
    assert (alpha.go_on(), beta.go_on()) == ({UNKNOWN}, {SERVED})
    fleet.restart_agent("b1", "b2")
    assert (alpha.go_on(), beta.go_on()) == ({UNKNOWN}, {SERVED})
    assert beta.stop() == [[UNKNOWN, SERVED]] * 3
    for told in alpha.stop():
        # while the last one drains there is no replica, and no other model yet
        assert [one for one in told if one != ABSENT] == [SERVED, UNKNOWN]
    assert nginx.log().count("none of them is up") == 1
    fleet.check()


def test_fleet_of_one_upstream_serves_both_models_meanwhile(cluster):
    """No line names the new one, and nothing is reloaded."""
    fleet = Fleet(cluster)
    fleet.join("alpha", "a1", "a2")
    nginx = cluster.nginx(pool="llmgw_queue hold=0;", openai=True)
    wait_for(lambda: nginx.routable() == ["a1", "a2"], "the old model")
    alpha = Crowd(nginx, "alpha")
    assert ask(nginx, "beta") == UNKNOWN
    fleet.join("beta", "b1")
    wait_for(lambda: nginx.models() == {"alpha": ["a1", "a2"],
                                        "beta": ["b1"]}, "the new one")
    beta = Crowd(nginx, "beta")
    assert (alpha.go_on(), beta.go_on()) == ({SERVED}, {SERVED})
    fleet.leave("a1")
    fleet.restart_agent("a2", "b1")
    assert (alpha.go_on(), beta.go_on()) == ({SERVED}, {SERVED})
    assert alpha.told() == [[SERVED]] * 3
    fleet.leave("a2")
    wait_for(lambda: nginx.models()["alpha"] == [], "the old one to be gone")
    assert (alpha.go_on(), beta.go_on()) == ({ABSENT}, {SERVED})
    assert alpha.stop() == [[SERVED, ABSENT]] * 3
    assert beta.stop() == [[SERVED]] * 3
    fleet.check()
