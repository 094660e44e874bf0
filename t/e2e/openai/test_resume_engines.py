"""Engines that die under their streams: clients do not notice.

The mock engines' next token depends on all ids before it, so a text that is
the undisturbed one has no token lost, doubled, or made of other ids.
"""

import pytest

from llmgw import sse
from llmgw.wait import wait_for

TOKENS = 24
KINDS = {"vllm": {}, "sglang": {"sampling_defaults": "openai"},
         "llamacpp": {}}
USAGE = {"stream_options": {"include_usage": True}}


def fleet(cluster, kind, n=2, **options):
    return cluster.engines_fleet(n, kind, nginx={"pool": "llmgw_breaker off;"},
                                 **{**KINDS[kind], **options})


def prompt(of, n=TOKENS):
    return f"{of} len={n};"


def chat(of, stream=True, **more):
    return sse.chat(prompt(of), stream=stream, **(USAGE if stream else {}),
                    **more)


def serving(cluster, ask):
    """The answer, and the engine that gave it."""
    before = {id: e.state()["tokens"] for id, e in cluster.engines.items()}
    got = ask()
    (engine,) = [e for id, e in cluster.engines.items()
                 if e.state()["tokens"] > before[id]]
    return got, engine


def will_die(engine, **fault):
    engine.faults(**fault)
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
    same(right, sse.call(engine.target, sse.CHAT, chat("é 漢")))
    for fault in ({"die_at": 0}, {"die_at": 1}, {"die_at": 7},
                  {"die_at": right.usage["completion_tokens"] - 1},
                  {"die_at_finish": True}):
        will_die(engine, **fault)
        same(ask(), right)
        again(cluster, nginx, engine)
