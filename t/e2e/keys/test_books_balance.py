"""The books balance: what accounts are charged and what is thrown away is what
engines generated, to the token, whatever is killed.

Nobody knows what was in a socket when a process died, and some whole answers,
as of several choices, come from the engine in one piece.  So there are none of
these, and streams are held and all comes to rest before something is struck
(wait_rest()): then each token that was generated is in the gateway.  Strikes
beside running streams have bounds in place of the equation.
"""

import collections
import os
import signal
import time

import pytest

from llmgw.fleet.books import (by_key, check_balance, made, records,
    wait_records, wait_rest)
from llmgw.model import gguf, llama
from llmgw.proc.place import SLOW
from llmgw.proc.seed import rng
from llmgw.proc.wait import still, wait_for
from llmgw.speak import rpc, sse
from llmgw.speak.askers import Asker, InferAsker, stop_all
from llmgw.speak.keyfile import ask, bearer

SECONDS = float(os.environ.get("LLMGW_BOOKS_SECONDS", 20)) * SLOW
WORKERS, ASKERS = 4, 12
IDS = {"return_token_ids": True}
ASKS = [(sse.CHAT, {"stream": True}), (sse.CHAT, {}),
        (sse.TEXT, {"stream": True, **IDS}), (sse.TEXT, {}),
        (sse.CHAT, {"n": 2, "stream": True})]
# SGLang tells no ids of chats: they go on by text.
SGLANG = [(sse.TEXT, {"stream": True, **IDS}), (sse.TEXT, {})]
CHATS = [(sse.CHAT, {"stream": True}), (sse.CHAT, {})]


class Strikes:
    """What may happen to a gateway, its engines, and its clients.  In all of
    them one engine with its adapter is left."""

    def __init__(self, cluster, nginx, keyfile, askers, rng):
        self.cluster, self.nginx, self.keyfile = cluster, nginx, keyfile
        self.askers, self.rng = askers, rng
        self.counts = collections.Counter()
        cluster.allowed += ["exited on signal 9", "was locked by"]

    def all(self):
        return ("abort", "worker", "engine", "adapter", "agent", "reload",
                "keys")

    def __call__(self, what):
        self.counts[what] += 1
        getattr(self, what)()

    def abort(self):
        for one in self.rng.sample(self.askers, 3):
            one.abort()

    def worker(self):
        pid = self.rng.choice(self.nginx.workers() or [None])
        if pid:
            os.kill(pid, signal.SIGKILL)

    def engine(self):
        self.dead = self.rng.choice([*self.cluster.engines.values()])
        self.dead.kill()

    def adapter(self):
        self.dead = self.rng.choice([*self.cluster.replicas.values()])
        self.dead.kill()

    def agent(self):
        """The gateway's, or that beside an adapter."""
        self.dead = self.rng.choice([
            self.cluster.gateway,
            *(r.agent for r in self.cluster.replicas.values())])
        self.dead.kill()

    def reload(self):
        self.nginx.proc.send(signal.SIGHUP)

    def keys(self):
        self.keyfile.lines.append(f"# {self.counts['keys']}")
        self.keyfile.write()

    def mend(self):
        """All is there again."""
        if getattr(self, "dead", None):
            self.dead.start()
            self.dead = None
        ids = sorted(self.cluster.replicas)
        wait_for(lambda: self.nginx.routable() == ids, f"{ids}", 10)
        wait_for(lambda: len(self.nginx.workers()) >= WORKERS, "workers", 5)


class Scene:
    def __init__(self, cluster, gateway, keyfile, usage, kind="vllm",
                 asks=ASKS, resume="ids", **options):
        self.names = [f"k{i}" for i in range(4)]
        keys = [keyfile.add(name) for name in self.names]
        self.ledger = cluster.dir / "ledger"
        self.cluster, self.usage = cluster, usage
        self.nginx = gateway(
            2, more=f" state={cluster.dir}/usage.state", kind=kind,
            ledger=self.ledger, nginx={
                "workers": WORKERS, "pool": "llmgw_breaker off;",
                "openai": f"llmgw_resume {resume};"}, **options)
        self.askers = [
            Asker(self.nginx, (self.names[i % 4], keys[i % 4]), asks, i)
            for i in range(ASKERS)]
        self.strikes = Strikes(cluster, self.nginx, keyfile, self.askers,
                               rng("books"))

    def end(self):
        self.cluster.let_go()
        stop_all(self.askers)
        wait_for(lambda: not self.nginx.counts(), "counts of zero")
        still(lambda: os.stat(self.usage).st_size, 2.5)

    def clients(self):
        """({key: tokens}, {key: (prompt, completion) of whole answers})"""
        got, whole = collections.Counter(), collections.defaultdict(
            collections.Counter)
        for one in self.askers:
            got[one.name_] += one.got
            whole[one.name_] += one.whole
        return got, whole

    def check_clients(self):
        """No client got more than was charged; a complete answer was charged
        exactly."""
        found = records(self.usage)
        charged = by_key(found, "completion_tokens")
        got, whole = self.clients()
        for name in self.names:
            assert got[name] <= charged[name], name
            ended = collections.Counter(
                (r["prompt_tokens"], r["completion_tokens"]) for r in found
                if r["key"] == name and r["outcome"] == "ok")
            assert not whole[name] - ended, (name, whole[name] - ended)
            assert whole[name].total() > 5, self.errors()
        assert len({r["request_id"] for r in found}) == 1

    def errors(self):
        return sum((one.errors for one in self.askers), collections.Counter())


def strike_at_rest(scene, what, random):
    """Holds all streams, strikes when all is at rest, and lets them go when
    what follows from that is over."""
    scene.cluster.hold(random.randrange(1, 20))
    wait_rest(scene.cluster, scene.nginx)
    scene.strikes(what)
    wait_rest(scene.cluster, scene.nginx)
    scene.cluster.let_go()
    scene.strikes.mend()
    time.sleep(random.uniform(0, .2))


@pytest.mark.first
def test_each_strike_at_rest_costs_no_token(cluster, gateway, keyfile, usage):
    scene, random = Scene(cluster, gateway, keyfile, usage), rng("at rest")
    for what in scene.strikes.all():
        strike_at_rest(scene, what, random)
    scene.end()
    check_balance(usage, [scene.ledger])
    scene.check_clients()


@pytest.mark.soak
@pytest.mark.parametrize("kind, asks, resume", [
    ("vllm", ASKS, "ids"), ("sglang", SGLANG, "ids"),
    ("sglang", CHATS, "text")])
def test_books_balance_for_long(cluster, gateway, keyfile, usage, kind, asks,
                                resume):
    """LLMGW_BOOKS_SECONDS=600 for ten minutes."""
    scene = Scene(cluster, gateway, keyfile, usage, kind, asks, resume)
    random, over = rng(f"books {kind} {resume}"), time.monotonic() + SECONDS
    while time.monotonic() < over:
        strike_at_rest(scene, random.choice(scene.strikes.all()), random)
    scene.end()
    check_balance(usage, [scene.ledger])
    scene.check_clients()
    print(len(records(usage)), "records", scene.strikes.counts,
          scene.errors())


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_strikes_in_mid_flight_charge_for_nothing_that_was_not_made(
        cluster, gateway, keyfile, usage, kind):
    """Only tokens in transit when a process was killed are unaccounted for."""
    scene = Scene(cluster, gateway, keyfile, usage, kind, ASKS,
                  faults='{"token_delay": 0.005}')
    random, over = rng(f"in flight {kind}"), time.monotonic() + SECONDS
    while time.monotonic() < over:
        time.sleep(random.uniform(.05, .3))
        what = random.choice(scene.strikes.all())
        scene.strikes(what)
        if what in ("engine", "adapter", "agent", "worker"):
            scene.strikes.mend()
    scene.end()
    scene.check_clients()
    mine = by_key(records(usage), "completion_tokens", "wasted_tokens")
    theirs = made([scene.ledger])
    for name in scene.names:
        assert mine[name] <= theirs[name], name
    lost = theirs.total() - mine.total()
    print(theirs.total(), "made,", lost, "unseen", scene.strikes.counts)
    assert lost <= theirs.total() / 10


# --- the simulated engine

def stats_tokens(cluster):
    return sum(r.stats().tokens for r in cluster.replicas.values())


def test_books_of_simulated_engines_balance(cluster, keyfile, usage, client,
                                            load):
    """Infer, aborted and lost at rest."""
    key = keyfile.add("alice")
    nginx = cluster.fleet(2, nginx={
        "http": f"{keyfile.directive()} llmgw_usage_log {usage};",
        "pool": "llmgw_breaker off;", "workers": 2})
    cluster.hold(4)
    c = client(nginx)
    calls = [c.start(f"prompt {i}", 10, metadata=bearer(key))
             for i in range(8)]
    for call in calls:
        for _ in range(4):
            next(call)
    for call in calls[:3]:
        call.cancel()
    wait_for(lambda: nginx.in_flight() == 5, "five to be left")
    lost, kept = cluster.replicas["r1"], cluster.replicas["r2"]
    before = lost.stats().tokens
    lost.kill()
    kept.faults(gate=-1)
    assert all(len(list(call)) == 6 for call in calls[3:])
    found = wait_records(usage, 8)
    total = sum(r["completion_tokens"] + r["wasted_tokens"] for r in found)
    assert total == 3 * 4 + 5 * 10 == before + kept.stats().tokens


class SimStrikes(Strikes):
    """Of a fleet of simulated engines, which are one with their replica.  Their
    counts end with their process, so they are read before."""

    made = 0

    def all(self):
        return ("abort", "worker", "adapter", "agent", "reload", "keys")

    def adapter(self):
        self.dead = self.rng.choice([*self.cluster.replicas.values()])
        self.made += self.dead.stats().tokens
        self.dead.kill()


class SimScene(Scene):
    """The same with Infer over simulated engines."""

    def __init__(self, cluster, keyfile, usage):
        self.names = [f"k{i}" for i in range(4)]
        keys = [keyfile.add(name) for name in self.names]
        self.cluster, self.usage = cluster, usage
        self.nginx = cluster.fleet(2, nginx={
            "http": f"{keyfile.directive(more=f' state={cluster.dir}/used')} "
                    f"llmgw_usage_log {usage};",
            "pool": "llmgw_breaker off;", "workers": WORKERS})
        self.askers = [InferAsker(self.nginx, (self.names[i % 4], keys[i % 4]),
                                  i) for i in range(ASKERS)]
        self.strikes = SimStrikes(cluster, self.nginx, keyfile, self.askers,
                                  rng("simulated books"))

    def check(self):
        """As check_balance(), but for all keys together: a simulated engine
        does not know for whom it generates."""
        made = self.strikes.made + stats_tokens(self.cluster)
        mine = by_key(records(self.usage), "completion_tokens",
                      "wasted_tokens").total()
        assert mine == made, (mine, made, self.strikes.counts)
        charged = by_key(records(self.usage), "completion_tokens")
        got, whole = self.clients()
        for name in self.names:
            assert got[name] <= charged[name], name
        assert sum(one.total() for one in whole.values()) > 5, self.errors()


@pytest.mark.soak
def test_books_of_simulated_engines_balance_for_long(cluster, keyfile, usage):
    """LLMGW_BOOKS_SECONDS=600 for ten minutes."""
    scene, random = SimScene(cluster, keyfile, usage), rng("simulated")
    over = time.monotonic() + SECONDS
    while time.monotonic() < over:
        strike_at_rest(scene, random.choice(scene.strikes.all()), random)
    scene.end()
    scene.check()
    print(len(records(usage)), "records", scene.strikes.counts,
          scene.errors())


def test_loser_of_a_hedge_is_wasted(cluster, keyfile, usage, client):
    """At most what it has made; nothing of it is charged."""
    key = keyfile.add("alice")
    nginx = cluster.fleet(2, nginx={
        "http": f"{keyfile.directive()} llmgw_usage_log {usage};",
        "pool": "llmgw_hedge budget=100% delay=1ms;"})
    c = client(nginx)
    for n in range(1, 6):
        cluster.hold()
        call = c.start(f"prompt {n}", 8, hedge=True, metadata=bearer(key))
        wait_for(lambda: all(r.stats().active_requests == 1
                             for r in cluster.replicas.values()), "both")
        cluster.let_go()
        got = rpc.drain(call)
        assert got.code == "OK" and len(got.tokens) == 8
        record = wait_records(usage, n)[-1]
        assert record["completion_tokens"] == 8
        assert sorted(record["replicas"]) == ["r1", "r2"]
    wasted = sum(r["wasted_tokens"] for r in records(usage))
    wait_for(lambda: not nginx.counts(), "counts of zero")
    assert 0 <= wasted <= stats_tokens(cluster) - 5 * 8


# --- the engine llama

@pytest.mark.soak
@pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)
def test_books_of_llama(cluster, keyfile, usage, tmp_path):
    """Whole answers to the token; of aborted ones at least what the client had,
    and at most what was asked for."""
    key = keyfile.add("alice")
    gguf.write(tmp_path / "tiny.gguf")
    nginx = cluster.fleet(1, replica={
        "engine": "llama", "model": str(tmp_path / "tiny.gguf"), "threads": 1,
        "token_delay": None}, nginx={"openai": True, "http":
            f"{keyfile.directive()} llmgw_usage_log {usage};"})
    headers = {"authorization": f"Bearer {key}"}
    wait_for(lambda: ask(nginx.api, "/v1/models", headers=bearer(key))
             .json["data"], "its model", 20)
    name = ask(nginx.api, "/v1/models", headers=bearer(key)) \
        .json["data"][0]["id"]

    def body(i, n):
        return sse.chat(f"request {i}", name, max_tokens=n, stream=True,
                        temperature=0, ignore_eos=True,
                        stream_options={"include_usage": True})
    for i in range(1, 6):
        got = sse.call(nginx.api, sse.CHAT, body(i, 10 * i), headers=headers)
        record = wait_records(usage, i)[-1]
        assert record["completion_tokens"] == 10 * i
        assert got.usage["completion_tokens"] == 10 * i
        assert record["prompt_tokens"] == got.usage["prompt_tokens"]
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, body(9, 1500), headers=headers)
        seen = len(r.wait_events(20)) - 1       # the first is a role
    record = wait_records(usage, 6)[-1]
    assert seen <= record["completion_tokens"] < 1500
    assert record["settled_by"] == "count"


@pytest.mark.soak
@pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)
def test_books_of_llama_under_strikes(cluster, gateway, keyfile, usage,
                                      tmp_path):
    """LLMGW_BOOKS_SECONDS=600 for ten minutes.  This engine keeps no ledger, so
    the books have bounds: what clients got is charged, whole answers to the
    token, and nothing beyond what was asked for."""
    path = str(tmp_path / "tiny.gguf")
    gguf.write(path)
    names = [f"k{i}" for i in range(4)]
    keys = [keyfile.add(name) for name in names]
    nginx = cluster.fleet(2, replica={
        "engine": "llama", "model": path, "threads": 1, "token_delay": None},
        nginx={"openai": "llmgw_resume ids;", "workers": WORKERS,
               "pool": "llmgw_breaker off;", "http":
               f"{keyfile.directive()} llmgw_usage_log {usage};"})
    wait_for(lambda: nginx.routable() == ["r1", "r2"], "both", 20)
    asks = [(sse.CHAT, {"model": "tiny", "temperature": 0, "ignore_eos": True,
                        "max_tokens": n, "stream": stream})
            for n in (20, 45) for stream in (True, False)]
    askers = [Asker(nginx, (names[i % 4], keys[i % 4]), asks, i)
              for i in range(8)]
    strikes = LlamaStrikes(cluster, nginx, keyfile, askers, rng("llama"))
    random, over = rng("books of llama"), time.monotonic() + SECONDS
    while time.monotonic() < over:
        time.sleep(random.uniform(.2, 1))
        strikes(random.choice(strikes.all()))
        strikes.mend()
    stop_all(askers)
    wait_for(lambda: not nginx.counts(), "counts of zero")
    still(lambda: os.stat(usage).st_size, 2.5)
    found = records(usage)
    charged = by_key(found, "completion_tokens")
    for name in names:
        mine = [one for one in askers if one.name_ == name]
        assert sum(one.got for one in mine) <= charged[name]
        ended = collections.Counter(
            (r["prompt_tokens"], r["completion_tokens"]) for r in found
            if r["key"] == name and r["outcome"] == "ok")
        whole = sum((one.whole for one in mine), collections.Counter())
        assert not whole - ended, (name, whole - ended)
        assert whole.total() > 2, [one.errors for one in mine]
    assert all(r["completion_tokens"] <= 45 for r in found)
    print(len(found), "records", strikes.counts)


class LlamaStrikes(SimStrikes):
    """It takes a moment to load its model again, and keeps no count."""

    def adapter(self):
        self.dead = self.rng.choice([*self.cluster.replicas.values()])
        self.dead.kill()

    def mend(self):
        if getattr(self, "dead", None):
            self.dead.start()
            self.dead = None
        wait_for(lambda: self.nginx.routable() == ["r1", "r2"], "both", 20)
        wait_for(lambda: len(self.nginx.workers()) >= WORKERS, "workers", 5)
