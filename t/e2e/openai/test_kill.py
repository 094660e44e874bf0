"""Engines and adapters that die or freeze under many streams: no token is lost
or doubled, the text is that of an undisturbed engine, usage is right."""

import os
import threading
import time

import pytest

from llmgw import sse
from llmgw.engine import model
from llmgw.wait import wait_for

TOKENS = 120            # of each stream, the end not counted
ALL = os.environ.get("LLMGW_KILLS") == "all"
STREAMS = 200 if ALL else 40
DELAY = 0.02 if ALL else 0.01

KINDS = ("vllm", "sglang")
VICTIMS = ("engine", "adapter", "both")
MOMENTS = (0, 1, 7, 100, TOKENS - 1, "finish")
# make test: each value of each column; LLMGW_KILLS=all: all of them.
CASES = [(k, v, a, m) for k in KINDS for v in VICTIMS
         for a in ("kill", "freeze") for m in MOMENTS] if ALL else [
    ("vllm", "engine", "kill", 1),
    ("vllm", "adapter", "kill", 0), ("sglang", "both", "kill", 100),
    ("vllm", "engine", "kill", "finish"), ("sglang", "adapter", "freeze", 7),
    ("vllm", "both", "freeze", TOKENS - 1)]


class Fleet:
    def __init__(self, cluster, kind):
        self.cluster = cluster
        # SGLang tells ids of a completion alone; a chat is one only with this.
        self.nginx = cluster.engines_fleet(
            3, kind, sampling_defaults="openai",
            nginx={"http": "llmgw_token_timeout 3s;"
                           "llmgw_first_token_timeout 3s;"})
        for e in cluster.engines.values():
            e.faults(token_delay=DELAY)

    def parts(self, victim):
        """The processes of engine 1, its adapter, or both."""
        return {"engine": [self.cluster.engines["e1"]],
                "adapter": [self.cluster.replicas["a1"]],
                "both": [self.cluster.engines["e1"],
                         self.cluster.replicas["a1"]]}[victim]

    def hit(self, victim, act):
        for part in self.parts(victim):
            getattr(part.proc, act)()


class Streams:
    """Many streams, each read by its own thread."""

    def __init__(self, nginx, n):
        self.asks = [sse.chat(f"{i} kill len={TOKENS};", stream=True,
                              stream_options={"include_usage": True})
                     for i in range(n)]
        self.results = [None] * n
        self.threads = [threading.Thread(target=self._run, args=(nginx, i),
                                         daemon=True) for i in range(n)]
        for thread in self.threads:
            thread.start()

    def _run(self, nginx, i):
        try:
            self.results[i] = sse.call(nginx.api, sse.CHAT, self.asks[i], 60)
        except (AssertionError, OSError) as e:
            self.results[i] = e

    def check(self):
        for thread in self.threads:
            thread.join(90)
        for ask, got in zip(self.asks, self.results):
            assert isinstance(got, sse.Result), got
            prompt = model.render(ask["messages"])
            ids = model.said(prompt)
            assert (got.error, got.text) == (None, [model.decode(ids)])
            assert (got.done, got.roles, len(got.ids)) == (1, 1, 1)
            assert got.finish_reason == ["stop"]
            assert got.usage["prompt_tokens"] == len(prompt)
            assert got.usage["completion_tokens"] == len(ids)


@pytest.mark.first
@pytest.mark.parametrize("kind, victim, act, moment", CASES)
def test_nothing_is_lost_when(cluster, kind, victim, act, moment):
    fleet = Fleet(cluster, kind)
    engine = cluster.engines["e1"]
    if moment == 0:
        engine.faults(first_delay=1)
    by_itself = victim == "engine" and act == "kill" and moment != 0
    engine.proc.told_to_end = by_itself
    if by_itself:
        engine.faults(**({"die_at_finish": True} if moment == "finish"
                         else {"die_at": moment}))
    streams = Streams(fleet.nginx, STREAMS)
    wait_for(lambda: len(engine.events("place")) >= STREAMS // 10
             or not engine.proc.alive(), 10, "streams at the engine")
    if by_itself:
        wait_for(lambda: not engine.proc.alive(), 20, "its death")
    else:
        after = TOKENS + 1 if moment == "finish" else moment
        begun = engine.events("place")[0]["t"]
        time.sleep(max(0, begun + after * DELAY - time.monotonic()))
        fleet.hit(victim, act)
    try:
        streams.check()
    finally:
        for part in fleet.parts(victim):
            part.proc.thaw()
    assert engine.events("place")
