"""Engines that die under their streams: clients do not notice.

The mock engines' next token depends on all ids before it, so a text that is
the undisturbed one has no token lost, doubled, or made of other ids.
"""

import concurrent.futures
import os
import signal
import threading

import pytest

from llmgw.engine import model
from llmgw.proc.place import SLOW
from llmgw.proc.wait import QUICK, wait_for
from llmgw.speak import sse

TOKENS = 24
TIMERS = "llmgw_first_token_timeout 4s; llmgw_token_timeout 1500ms;"
KINDS = {"vllm": {}, "sglang": {"sampling_defaults": "openai"},
         "llamacpp": {}}
ALL = os.environ.get("LLMGW_KILLS") == "all"
# What of many streams' service is lost, how, and at which of their tokens.
# make test: the first three; make soak: each value of each column;
# make test-resume: all of them.
GATE = [("vllm", "adapter", "SIGKILL", 0), ("sglang", "engine", "SIGKILL", 7),
        ("vllm", "both", "SIGSTOP", 7)]
SOAK = [("sglang", "engine", "SIGKILL", 1), ("sglang", "both", "SIGKILL", 100),
        ("vllm", "engine", "SIGKILL", "finish"),
        ("sglang", "adapter", "SIGSTOP", 7),
        ("llamacpp", "engine", "SIGSTOP", "last")]
LOSSES = [(kind, what, sig, at) for kind in KINDS
          for what in ("engine", "adapter", "both")
          for sig in ("SIGKILL", "SIGSTOP")
          for at in (0, 1, 7, 100, "last", "finish")] if ALL else [
    *GATE, *(pytest.param(*loss, marks=pytest.mark.soak) for loss in SOAK)]
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


def again(cluster, nginx, engine):
    """A dead engine comes back."""
    engine.proc.wait(10)
    engine.start()
    ids = sorted(cluster.replicas)
    wait_for(lambda: nginx.routable() == ids, f"{ids} to be routable")


def same(got, right):
    assert got.error is None
    assert got.text == right.text
    assert got.finish_reason == right.finish_reason == ["stop"]
    assert (got.roles, got.done, len(got.ids)) == (1, 1, 1)
    for key in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert got.usage[key] == right.usage[key]


def lost_at(cluster, nginx, engine, tokens, ask):
    """What a client gets whose engine dies behind that many tokens; all is
    well again behind it."""
    cluster.hold(tokens)
    before = engine.state()["tokens"]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        got = pool.submit(ask)
        wait_for(lambda: running(engine) == 1
                 and engine.state()["tokens"] - before == tokens,
                 f"{tokens} tokens")
        engine.kill()
        cluster.let_go()
        got = got.result()
    again(cluster, nginx, engine)
    return got


@pytest.mark.parametrize("kind, deaths", [
    *(pytest.param(kind, (7,), marks=() if kind == "llamacpp"
                   else pytest.mark.soak) for kind in KINDS),
    *(pytest.param(kind, (0, 1, "last"), marks=pytest.mark.soak)
      for kind in KINDS)])
def test_killed_engine_is_not_noticed(cluster, kind, deaths):
    nginx = fleet(cluster, kind)

    def ask():
        return sse.call(nginx.api, sse.CHAT, chat("é 漢"))
    right, engine = serving(cluster, ask)
    same(right, direct(engine, chat("é 漢")))
    for at in deaths:
        tokens = right.usage["completion_tokens"] - 1 if at == "last" else at
        same(lost_at(cluster, nginx, engine, tokens, ask), right)
    if 0 in deaths:
        engine.faults(die_at_finish=True)
        engine.proc.told_to_end = True
        same(ask(), right)
        again(cluster, nginx, engine)


# --- many streams, and whatever dies

class Stream(threading.Thread):
    """A call in a thread; how far it is can be seen meanwhile."""

    def __init__(self, target, body, takes):
        super().__init__(daemon=True)
        self.connection = sse.Connection(target, timeout=60, takes=takes)
        self.response = self.connection.request(sse.CHAT, body)
        self.result = None
        self.start()

    def run(self):
        with self.connection:
            self.result = sse.result_of(self.response, 60)

    def text(self):
        return "".join(c["delta"].get("content") or "" for e in
                       self.response.events[:] if e.data != "[DONE]"
                       for c in e.json["choices"])


def first(body, tokens):
    """What the first tokens of its answer say, in whole characters."""
    ids = model.said(model.render(body["messages"]))
    return model.decode(ids[:tokens]).rstrip("\ufffd")


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
    """n streams over two engines; one is lost when each stream has its first
    tokens (finish: when a stream has ended)."""
    is_stop = sig == signal.SIGSTOP     # only timers tell of it
    nginx = fleet(cluster, kind, location=TIMERS if is_stop else "")
    known = rights(cluster.engines["e2"], n, tokens)
    had = {"last": tokens, "finish": 0}.get(at, at)
    cluster.hold(had)
    streams = [Stream(nginx.api, known[i % len(known)][0],
                      takes=6 if is_stop else QUICK) for i in range(n)]
    wait_for(lambda: running(cluster.engines["e1"]) > 0
             and sum(map(running, cluster.engines.values())) == n,
             f"{n} streams to run", takes=20 if ALL else QUICK)
    wait_for(lambda: all(s.text() == first(known[i % len(known)][0], had)
                         for i, s in enumerate(streams)), f"{had} tokens",
             takes=20 if ALL else QUICK)
    if at == "finish":
        cluster.let_go()
        wait_for(lambda: any(s.result for s in streams), "an end",
                 interval=0.001)
    lose(cluster, what, sig)
    for engine in list(cluster.engines.values())[1:]:
        engine.faults(gate=None)
    for i, stream in enumerate(streams):
        stream.join(60 * SLOW)
        assert stream.result, f"stream {i} did not end"
        same(stream.result, known[i % len(known)][1])
    if is_stop:
        lose(cluster, what, signal.SIGCONT)


@pytest.mark.parametrize("kind, what, sig, at", LOSSES)
def test_many_streams_survive(cluster, kind, what, sig, at):
    play(cluster, kind, what, getattr(signal, sig), at, 200 if ALL else 12,
         120 if ALL or at == 100 else 20)


# --- what cannot be continued, and what need not be a stream

@pytest.fixture(scope="module")
def vllm(shared):
    return shared, fleet(shared, "vllm", reasoning=True)


@pytest.mark.parametrize("path, more", [
    pytest.param(sse.CHAT, {}, id="chat"),
    pytest.param(sse.TEXT, {}, id="text", marks=pytest.mark.soak),
    pytest.param(sse.CHAT, {"logprobs": True}, id="raw")])
def test_whole_answer_survives(vllm, path, more):
    """Assembled ones go on, raw ones begin anew."""
    shared, nginx = vllm
    body = (chat("whole", stream=False, **more) if path == sse.CHAT
            else sse.text("whole len=24;", max_tokens=60))
    right = direct(shared.engines["e1"], body, path)

    def ask():
        return sse.call(nginx.api, path, body)
    _, engine = serving(shared, ask)
    got = lost_at(shared, nginx, engine, 7, ask)
    assert got.error is None and got.text == right.text
    assert got.finish_reason == right.finish_reason
    assert got.usage["total_tokens"] == right.usage["total_tokens"]


@pytest.mark.soak
def test_infer_survives(vllm, client):
    """gRPC clients of a real engine: by ids as well."""
    shared, nginx = vllm
    c = client(nginx)

    def ask():
        return c.stream("infer len=24;", 60)
    right, engine = serving(shared, ask)
    got = lost_at(shared, nginx, engine, 7, ask)
    assert got.code == right.code == "OK"
    assert got.text == right.text and len(got.replicas) == 2


TOOL = {"type": "function", "function": {"name": "go", "parameters": {}}}


def has_begun(events, more):
    """Some of the answer is here; of a tool call, a part of that."""
    deltas = [choice["delta"] for e in events if e.data != "[DONE]"
              for choice in e.json["choices"]]
    return any(d.get("tool_calls") if "tools" in more else
               d.get("content") or d.get("reasoning") for d in deltas)


@pytest.mark.parametrize("of, more, tokens", [
    ("n", {"n": 2}, 9),
    ("tool call=go;", {"tools": [TOOL]}, 40),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        ("json", {"response_format": {"type": "json_object"}}, 9),
        ("logprobs", {"logprobs": True}, 9),
        ("penalty", {"frequency_penalty": 0.5}, 9),
        ("thought think=5;", {}, 4)))
])
def test_what_cannot_go_on_ends_with_an_error(vllm, of, more, tokens):
    """What is lost before anything has left begins anew: so the client has
    some, and the engine dies then."""
    shared, nginx = vllm
    body = chat(of, tokens=60, **more)
    whole, engine = serving(shared, lambda: sse.call(nginx.api, sse.CHAT,
                                                     body))
    assert whole.error is None
    shared.hold(tokens)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, body)
        while not has_begun(r.wait_events(len(r.events) + 1), more):
            assert not r.complete
        engine.kill()
        shared.let_go()
        got = sse.result_of(r)
    again(shared, nginx, engine)
    assert got.error["type"] and got.error["message"]
    assert not got.done and None in got.finish_reason
