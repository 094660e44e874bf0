"""Engines whose reports are wrong or outdated: an engine denies the model that
it reports, or has another one by now (docs/failures.md)."""

import collections
import threading
import time

import pytest

from llmgw.engine.liars import Engine
from llmgw.fleet import words
from llmgw.proc.seed import rng
from llmgw.proc.wait import wait_for
from llmgw.speak import sse

SERVED, UNKNOWN = (200, None), (404, words.MODEL_NOT_FOUND)
ABSENT = (503, words.NO_REPLICAS)
METRICS = "location = /metrics { llmgw_metrics; }"
LATE = "llmgw_breaker cooldown=60s;"
DENIES = "does not know a model that it reports"


def ask(nginx, model, prompt="x", path=sse.CHAT, body=sse.chat):
    got = sse.call(nginx.api, path, body(prompt, model, max_tokens=2))
    return got.status, got.error and got.error["code"]


def counts(nginx, name):
    """{replica: count} of a family, over all models."""
    found = collections.Counter()
    for line in nginx.get("/metrics")[1].decode().splitlines():
        if line.startswith(f"{name}{{"):
            labels, value = line[len(name) + 1:].rsplit("} ", 1)
            found[labels.rsplit('replica="', 1)[1][:-1]] += float(value)
    return +found


def replica(nginx, id):
    return next(r for pool in nginx.status()["pools"]
                for r in pool["replicas"] if r["id"] == id)


# --- adapters and their engines

@pytest.fixture
def adapters(cluster):
    """adapters({id: model}): an engine and its adapter for each; nginx."""
    def make(models):
        cluster.agent("gw", "gateway")
        for id, model in models.items():
            cluster.adapter(cluster.engine(f"e{id}", model=model), id)
        nginx = cluster.nginx(openai=True, server=METRICS,
                              pool=f"{LATE} llmgw_queue hold=0;")
        wait_for(lambda: sorted(i for ids in nginx.models().values()
                                for i in ids) == sorted(models), "all")
        return nginx
    return make


PASSES = [(sse.CHAT, sse.chat), ("/v1/embeddings", lambda prompt, model, **_: {
    "model": model, "input": prompt})]


@pytest.mark.parametrize("path, body", PASSES)
def test_engine_that_denies_its_model_costs_no_request(cluster, adapters, path,
                                                       body):
    """Its adapter believes the engine's list; its circuit opens."""
    nginx = adapters({"a": "m", "b": "m"})
    cluster.engines["eb"].faults(loads="other", lists="m")
    n = 0
    while replica(nginx, "b")["breaker"]["state"] != "open":
        n += 1
        assert ask(nginx, "m", f"{n} prompt", path, body) == SERVED
        assert n < 200
    assert replica(nginx, "a")["failures"] == 0
    denials = counts(nginx, "llmgw_model_denials_total")
    assert denials.keys() == {"b"} and denials["b"] >= 5
    assert f'replica "b" {DENIES}' in nginx.log()


def test_model_that_all_its_engines_deny_is_the_clients_404(cluster, adapters):
    """Without another replica the fault is unclear: no circuit opens, and the
    metrics name the replicas."""
    nginx = adapters({"a": "m", "b": "m"})
    for engine in cluster.engines.values():
        engine.faults(loads="other", lists="m")
    for i in range(12):
        assert ask(nginx, "m", f"{i} prompt") == UNKNOWN
    assert counts(nginx, "llmgw_model_denials_total") == {"a": 12, "b": 12}
    assert {replica(nginx, id)["breaker"]["state"] for id in "ab"} \
        == {"closed"}


def test_engine_that_got_another_model_is_found_by_its_first_request(
        cluster, adapters):
    """Long before its adapter would ask for its list again."""
    nginx = adapters({"a": "m", "b": "m"})
    cluster.engines["eb"].faults(loads="other")
    n = 0
    while nginx.models() != {"m": ["a"], "other": ["b"]}:
        n += 1
        assert ask(nginx, "m", f"{n} prompt") == SERVED
        assert n < 500
    assert ask(nginx, "other") == SERVED


def test_path_that_an_engine_does_not_have_is_no_denial(cluster, adapters):
    """Its 404 has no word of a model: the client's answer, as it was."""
    nginx = adapters({"a": "m", "b": "m"})
    got = sse.call(nginx.api, "/v1/images/generations",
                   {"model": "m", "prompt": "x"})
    assert got.status == 404
    assert not counts(nginx, "llmgw_model_denials_total")


# --- many of them

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
                                    f"{len(self.answers)} of {self.model}"))

    def stop(self):
        self.over.set()
        self.join()
        return collections.Counter(self.answers)


class Fleet:
    """Engines of several models.  The first of each model stays as it is; the
    others appear, go, load other models, and claim what they do not have."""

    def __init__(self, cluster, n, models, draw, kept):
        self.cluster, self.models, self.draw = cluster, models, draw
        cluster.agent("gw", "gateway")
        self.engines = {}
        self.is_down = set()
        for i in range(n):
            model = models[i % len(models)]
            self.engines[f"r{i:02}"] = Engine(cluster, f"r{i:02}", model)
        self.fixed = {f"r{i:02}" for i in range(kept)}
        self.nginx = cluster.nginx(
            openai=True, server=METRICS, workers=2,
            pool="llmgw_queue hold=0; llmgw_breaker cooldown=200ms;")
        self.wait_view()

    def truth(self):
        return {m: sorted(id for id, e in self.engines.items()
                          if e.model == m and id not in self.is_down)
                for m in self.models}

    def wait_view(self):
        def seen():
            got = self.nginx.models()
            return {m: got.get(m, []) for m in self.models}
        wait_for(lambda: seen() == self.truth(), "the view", takes=10)

    def step(self):
        id = self.draw.choice(sorted(set(self.engines) - self.fixed))
        engine, model = self.engines[id], self.draw.choice(self.models)
        what = self.draw.choice(["load", "claim", "down"])
        if id in self.is_down:
            engine.up()
            self.is_down.discard(id)
        elif what == "load":
            engine.load(model)
        elif what == "claim":
            engine.claim(model)
        else:
            engine.down()
            self.is_down.add(id)
        return what

    def settle(self):
        """All tell the truth again, and circuits are closed."""
        for id in sorted(self.is_down):
            self.engines[id].up()
        self.is_down.clear()
        for engine in self.engines.values():
            engine.told.say(models=[engine.model])
        self.wait_view()

    def where(self, prompt, model):
        """Which engine got it."""
        before = {id: len(e.asked) for id, e in self.engines.items()}
        assert ask(self.nginx, model, prompt) == SERVED
        found = [id for id, e in self.engines.items()
                 if len(e.asked) > before[id]]
        assert len(found) == 1
        return found[0]

    def check(self):
        """Each engine was asked for what it had; none of it was another's."""
        for engine in self.engines.values():
            assert set(engine.asked) <= set(self.models)


def play(fleet, seconds, pause):
    """Traffic on all models while engines do as they like; the answers."""
    askers = [Asker(fleet.nginx, m) for m in fleet.models]
    askers.append(Asker(fleet.nginx, "nobody's"))
    done, over = collections.Counter(), time.monotonic() + seconds
    while time.monotonic() < over:
        done[fleet.step()] += 1
        time.sleep(fleet.draw.uniform(0, pause))
    return done, {one.model: one.stop() for one in askers}


def check_answers(fleet, answers, kept):
    """A model with an engine that stays is always served; of the others what
    nobody has is told so; a name that no replica ever had is unknown."""
    assert set(answers.pop("nobody's")) == {UNKNOWN}
    for model, got in answers.items():
        allowed = {SERVED} if model in kept else {SERVED, UNKNOWN, ABSENT}
        assert set(got) <= allowed, (model, got)
        assert got[SERVED] > 5, (model, got)
    fleet.check()
    wait_for(lambda: not fleet.nginx.counts(), "counts of zero")


def circuits(nginx):
    """Of routable replicas: those that are not closed."""
    return [r["id"] for pool in nginx.status()["pools"]
            for r in pool["replicas"]
            if r["routable"] and r["breaker"]["state"] != "closed"]


def affinity(fleet, models, n):
    """Which share of n prompts of each keeps its replica while engines of
    other models load other ones."""
    fleet.settle()
    wait_for(lambda: [ask(fleet.nginx, m, f"{time.monotonic()}")
                      for m in fleet.models] and not circuits(fleet.nginx),
             "circuits to close", takes=20)
    prompts = [(f"{m} prompt {i} " * 9, m) for m in models for i in range(n)]
    first = [fleet.where(*p) for p in prompts]
    assert len(set(first)) > len(models)
    for engine in fleet.engines.values():
        if engine.model not in models and engine.id not in fleet.fixed:
            engine.load(fleet.models[-1])
    fleet.wait_view()
    again = [fleet.where(*p) for p in prompts]
    return sum(a == b for a, b in zip(first, again)) / len(first)


def test_engines_that_lie_in_mid_traffic_cost_no_request(cluster):
    """Engines of three models, one thing after another."""
    models = ["m0", "m1", "m2"]
    fleet = Fleet(cluster, 6, models, None, 3)
    askers = [Asker(fleet.nginx, m) for m in (*models, "nobody's")]
    one, two, three = (fleet.engines[f"r0{i}"] for i in (3, 4, 5))

    def denies(engine):
        before = engine.denied
        wait_for(lambda: engine.denied > before, f"{engine.id} to deny one")

    one.claim("m1")
    denies(one)
    two.load("m2")
    two.claim("m0")
    denies(two)
    three.down()
    fleet.is_down = {three.id}
    one.load("m1")
    two.claim("m2")
    fleet.wait_view()
    three.up()
    three.claim("m0")
    denies(three)
    three.claim("m2")
    fleet.is_down = set()
    fleet.wait_view()
    check_answers(fleet, {one.model: one.stop() for one in askers}, models)


@pytest.mark.soak
def test_forty_engines_of_six_models(cluster):
    """They appear, go, change their models and lie, for twenty seconds."""
    models = [f"m{i}" for i in range(6)]
    fleet = Fleet(cluster, 40, models, rng("forty liars"), 4)
    done, answers = play(fleet, 20, .1)
    print(done, {m: dict(a) for m, a in answers.items()})
    check_answers(fleet, answers, models[:4])
    assert min(done[what] for what in ("load", "claim", "down")) > 5
    assert affinity(fleet, models[:2], 25) >= .9
