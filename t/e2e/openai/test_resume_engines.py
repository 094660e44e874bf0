"""Engines that die under their streams: clients do not notice.

The mock engines' next token depends on all ids before it, so a text that is
the undisturbed one has no token lost, doubled, or made of other ids.
"""

import os
import signal
import threading

import pytest

from llmgw import sse
from llmgw.place import SLOW
from llmgw.wait import wait_for

TOKENS = 24
TIMERS = "llmgw_first_token_timeout 4s; llmgw_token_timeout 1500ms;"
KINDS = {"vllm": {}, "sglang": {"sampling_defaults": "openai"},
         "llamacpp": {}}
ALL = os.environ.get("LLMGW_KILLS") == "all"
# What of many streams' service is lost, how, and at which of their tokens.
# make test: each value of each column; make test-resume: all of them.
LOSSES = [(kind, what, sig, at) for kind in KINDS
          for what in ("engine", "adapter", "both")
          for sig in ("SIGKILL", "SIGSTOP")
          for at in (0, 1, 7, 100, "last", "finish")] if ALL else [
    ("vllm", "adapter", "SIGKILL", 0), ("sglang", "engine", "SIGKILL", 1),
    ("sglang", "both", "SIGKILL", 100), ("vllm", "engine", "SIGKILL", "finish"),
    ("sglang", "adapter", "SIGSTOP", 7), ("vllm", "both", "SIGSTOP", 7),
    ("llamacpp", "engine", "SIGSTOP", "last")]
USAGE = {"stream_options": {"include_usage": True}}


def fleet(cluster, kind, n=2, location="", **engine):
    return cluster.engines_fleet(n, kind, nginx={
        "pool": "llmgw_breaker off;", "openai": location}, **KINDS[kind],
        **engine)


def chat(of, stream=True, tokens=TOKENS, **more):
    return sse.chat(f"{of} len={tokens};", stream=stream,
                    **(USAGE if stream else {}), **more)


def direct(engine, body, path=sse.CHAT):
    """What it says itself; llama.cpp changes `created` on the way."""
    return sse.call(engine.target, path, body, strict=False)


def serving(cluster, ask):
    """The answer, and the engine that gave it."""
    before = {id: e.state()["tokens"] for id, e in cluster.engines.items()}
    got = ask()
    (engine,) = [e for id, e in cluster.engines.items()
                 if e.state()["tokens"] > before[id]]
    return got, engine


def will_die(engine, token_delay=0.003, **fault):
    engine.faults(token_delay=token_delay, **fault)
    engine.proc.told_to_end = True


def again(cluster, nginx, engine):
    """A dead engine comes back."""
    engine.proc.wait(10)
    engine.start()
    ids = sorted(cluster.replicas)
    wait_for(lambda: nginx.routable() == ids, 15, f"{ids} to be routable")


def same(got, right):
    assert got.error is None
    assert got.text == right.text
    assert got.finish_reason == right.finish_reason == ["stop"]
    assert (got.roles, got.done, len(got.ids)) == (1, 1, 1)
    for key in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert got.usage[key] == right.usage[key]


@pytest.mark.first
@pytest.mark.parametrize("kind", KINDS)
def test_killed_engine_is_not_noticed(cluster, kind):
    nginx = fleet(cluster, kind)

    def ask():
        return sse.call(nginx.api, sse.CHAT, chat("é 漢"))
    right, engine = serving(cluster, ask)
    same(right, direct(engine, chat("é 漢")))
    for fault in ({"die_at": 0}, {"die_at": 1}, {"die_at": 7},
                  {"die_at": right.usage["completion_tokens"] - 1},
                  {"die_at_finish": True}):
        will_die(engine, **fault)
        same(ask(), right)
        again(cluster, nginx, engine)


# --- many streams, and whatever dies

class Stream(threading.Thread):
    """A call in a thread; how far it is can be seen meanwhile."""

    def __init__(self, target, body):
        super().__init__(daemon=True)
        self.connection = sse.Connection(target, timeout=60)
        self.response = self.connection.request(sse.CHAT, body)
        self.result = None
        self.start()

    def run(self):
        with self.connection:
            self.result = sse.result_of(self.response, 60)

    def text(self):
        """An event may have several tokens: this tells how far it is."""
        return "".join(c["delta"].get("content") or "" for e in
                       self.response.events[:] if e.data != "[DONE]"
                       for c in e.json["choices"])


def rights(engine, n, tokens):
    """Bodies, and what an engine says to them while nothing happens."""
    bodies = [chat(f"{i}", tokens=tokens) for i in range(min(n, 20))]
    return [(b, direct(engine, b)) for b in bodies]


def running(engine):
    return engine.state()["running"]


def lose(cluster, what, signal):
    parts = [{"engine": cluster.engines["e1"],
              "adapter": cluster.replicas["a1"]}[p]
             for p in (("engine", "adapter") if what == "both" else (what,))]
    for part in parts:
        part.proc.send(signal)


def play(cluster, kind, what, sig, at, n, tokens):
    """n streams over two engines; one is lost when a stream has `at` tokens."""
    nginx = fleet(cluster, kind, location=TIMERS)
    known = rights(cluster.engines["e2"], n, tokens)
    for engine in cluster.engines.values():     # nothing comes before all run
        engine.faults(token_delay=0.01, hang=True)
    streams = [Stream(nginx.api, known[i % len(known)][0]) for i in range(n)]
    wait_for(lambda: running(cluster.engines["e1"]) > 0
             and sum(map(running, cluster.engines.values())) == n, 20,
             f"{n} streams to run")
    if at == 0:
        lose(cluster, what, sig)
    for engine in list(cluster.engines.values())[at == 0:]:
        engine.faults(hang=None)
    if at == "finish":
        wait_for(lambda: any(s.result for s in streams), 60, "an end",
                 interval=0.001)
    elif at:
        # Tokens are of one length, as a rule.
        share = (tokens - 1 if at == "last" else at) / tokens
        whole = len(known[0][1].text[0])
        wait_for(lambda: len(streams[0].text()) >= share * whole, 60,
                 f"token {at}", interval=0.001)
    if at != 0:
        lose(cluster, what, sig)
    for i, stream in enumerate(streams):
        stream.join(60 * SLOW)
        assert stream.result, f"stream {i} did not end"
        same(stream.result, known[i % len(known)][1])
    if sig == signal.SIGSTOP:
        lose(cluster, what, signal.SIGCONT)


@pytest.mark.first
@pytest.mark.parametrize("kind, what, sig, at", LOSSES)
def test_many_streams_survive(cluster, kind, what, sig, at):
    play(cluster, kind, what, getattr(signal, sig), at, 200 if ALL else 16,
         120 if ALL or at == 100 else 30)


# --- what cannot be continued, and what need not be a stream

@pytest.fixture(scope="module")
def vllm(shared):
    return shared, fleet(shared, "vllm", reasoning=True)


def lost_at(shared, nginx, ask, **fault):
    """What a client gets whose engine dies; all is well again behind it."""
    _, engine = serving(shared, ask)
    will_die(engine, **fault)
    got = ask()
    again(shared, nginx, engine)
    return got


@pytest.mark.parametrize("path, more", [
    (sse.CHAT, {}), (sse.TEXT, {}), (sse.CHAT, {"logprobs": True})],
    ids=["chat", "text", "raw"])
def test_whole_answer_survives(vllm, path, more):
    """Assembled ones go on, raw ones begin anew."""
    shared, nginx = vllm
    body = (chat("whole", stream=False, **more) if path == sse.CHAT
            else sse.text("whole len=24;", max_tokens=60))
    right = direct(shared.engines["e1"], body, path)
    got = lost_at(shared, nginx, lambda: sse.call(nginx.api, path, body),
                  die_at=7)
    assert got.error is None and got.text == right.text
    assert got.finish_reason == right.finish_reason
    assert got.usage["total_tokens"] == right.usage["total_tokens"]


def test_infer_survives(vllm, client):
    """gRPC clients of a real engine: by ids as well."""
    shared, nginx = vllm
    c = client(nginx)

    def ask():
        return c.stream("infer len=24;", 60)
    right = ask()
    got = lost_at(shared, nginx, ask, die_at=7)
    assert got.code == right.code == "OK"
    assert got.text == right.text and len(got.replicas) == 2


TOOL = {"type": "function", "function": {"name": "go", "parameters": {}}}


def has_begun(events, more):
    """Some of the answer is here; of a tool call, a part of that."""
    deltas = [choice["delta"] for e in events if e.data != "[DONE]"
              for choice in e.json["choices"]]
    return any(d.get("tool_calls") if "tools" in more else
               d.get("content") or d.get("reasoning") for d in deltas)


@pytest.mark.parametrize("of, more", [
    ("n", {"n": 2}),
    ("json", {"response_format": {"type": "json_object"}}),
    ("logprobs", {"logprobs": True}),
    ("penalty", {"frequency_penalty": 0.5}),
    ("tool call=go;", {"tools": [TOOL]}),
    ("thought think=5;", {}),
])
def test_what_cannot_go_on_ends_with_an_error(vllm, of, more):
    """What is lost before anything has left begins anew: so the client has
    some, and the engine dies then."""
    shared, nginx = vllm
    body = chat(of, tokens=200, **more)
    whole, engine = serving(shared, lambda: sse.call(nginx.api, sse.CHAT,
                                                     body))
    assert whole.error is None
    will_die(engine, token_delay=0.05)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, body)
        wait_for(lambda: has_begun(r.wait_events(len(r.events) + 1), more),
                 30, "something that cannot be said again", interval=0)
        engine.kill()
        got = sse.result_of(r)
    again(shared, nginx, engine)
    assert got.error["type"] and got.error["message"]
    assert not got.done and None in got.finish_reason
