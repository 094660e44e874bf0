"""The mock engine itself: other tests believe it."""

import json

import pytest

from llmgw.engine import model
from llmgw.proc.wait import wait_for
from llmgw.speak import sse

KINDS = ("vllm", "sglang", "llamacpp", "openai")
SHAPES = ("bytes", "crlf", "cr", "comments", "fields", "multiline", "nospace",
          "big", "trailer", "1xx")
TOOLS = [{"type": "function", "function": {"name": "weather"}}]
USAGE = {"stream": True, "stream_options": {"include_usage": True}}


@pytest.fixture(scope="module")
def engines(shared):
    return {kind: shared.engine(kind, kind, strict=True, reasoning=True)
            for kind in KINDS}


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_stream_and_whole_answer_say_the_same(engines, kind):
    e = engines[kind]
    for path, body in ((sse.CHAT, sse.chat("hi len=20;")),
                       (sse.TEXT, sse.text("hi len=20;", max_tokens=50)),
                       (sse.CHAT, sse.chat("hi think=3;call=weather;",
                                           tools=TOOLS)),
                       (sse.CHAT, sse.chat("hi len=9;", n=2)),
                       (sse.CHAT, sse.chat("hi", max_tokens=7))):
        whole = sse.call(e.target, path, body)
        stream = sse.call(e.target, path, {**body, **USAGE}, strict=False)
        assert whole.error is None and stream.error is None
        assert stream.done == 1 and len(stream.ids) == 1
        assert stream.roles == (body.get("n", 1) if path == sse.CHAT else 0)
        for name in ("text", "finish_reason", "tool_calls", "reasoning"):
            assert getattr(whole, name) == getattr(stream, name), name
        cached = {k: u.pop("prompt_tokens_details") for k, u in
                  (("w", whole.usage), ("s", stream.usage))}
        assert cached
        if kind != "llamacpp" or "n" not in body:   # it counts each by itself
            assert whole.usage == stream.usage


def continued(e, prompt, ids, n):
    """What the engine says behind ids, in its own way."""
    if e.kind == "llamacpp":
        with sse.Connection(e.target) as c:
            r = c.request("/completion", {"prompt": ["", *prompt, *ids],
                                          "n_predict": n})
            r.read()
            return r.json["content"]
    return sse.call(e.target, sse.TEXT, sse.text(
        [*prompt, *ids], max_tokens=n)).text[0]


@pytest.mark.parametrize("kind", KINDS[:3])
def test_engine_goes_on_exactly_behind_the_right_ids_only(engines, kind):
    e = engines[kind]
    prompt = model.render([{"role": "user", "content": "tell len=24;"}])
    ids = model.said(prompt)[:-1]
    for cut in range(len(ids)):
        if not model.decode(ids[:cut]).endswith("\ufffd"):
            assert continued(e, prompt, ids[:cut], 99) \
                == model.decode(ids[cut:])
    assert continued(e, prompt, ids[:8] + ids[9:12], 6) \
        != model.decode(ids[12:18])
    assert continued(e, prompt, ids[:12] + ids[11:12], 6) \
        != model.decode(ids[12:18])


@pytest.mark.soak
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_of_a_stream_mean_the_same(engines, shape):
    e = engines["openai"]
    body = sse.chat("shape len=6;", stream=True)
    plain = sse.call(e.target, sse.CHAT, body, strict=False)
    e.faults(shape=shape)
    try:
        shaped = sse.call(e.target, sse.CHAT, body, strict=False)
    finally:
        e.faults(shape=None)
    assert shaped.text == plain.text and not shaped.error and shaped.done


@pytest.mark.soak
def test_strict_engine_refuses_what_it_does_not_know(engines):
    for kind in KINDS:
        got = sse.call(engines[kind].target, sse.CHAT,
                       sse.chat("x", no_such_key=1))
        assert got.status == 400 and "no_such_key" in got.error["message"]
    got = sse.call(engines["vllm"].target, sse.CHAT, sse.chat("x", model="y"))
    assert got.status == 404
    got = sse.call(engines["llamacpp"].target, sse.CHAT, b"{")
    assert got.status == 500


def test_faults_end_a_stream_as_they_say(engines):
    e = engines["vllm"]
    body = sse.chat("fault len=9;", stream=True)
    for fault, error in (("error_at", "as the test wanted"),
                         ("close_at", "within"), ("reset_at", "within"),
                         ("end_at", "without [DONE]")):
        e.faults(**{fault: 4})
        got = sse.call(e.target, sse.CHAT, body, strict=False)
        e.faults(**{fault: None})
        assert error in json.dumps(got.error), fault
        assert got.finish_reason == [None]
    e.faults(status=429, times=1)
    assert sse.call(e.target, sse.CHAT, body).status == 429
    assert sse.call(e.target, sse.CHAT, body, strict=False).done == 1


@pytest.mark.soak
def test_log_tells_when_a_client_went_away(engines):
    e = engines["vllm"]
    e.faults(gate=5)
    with sse.Connection(e.target) as c:
        c.request(sse.CHAT, sse.chat("gone len=9;", stream=True),
                  strict=False).wait_events(3)
        number = e.events("request", sse.CHAT)[-1]["id"]
    ends = wait_for(lambda: [x for x in e.events("end")
                             if x["id"] == number], "the end in the log")
    assert ends[0]["how"] == "aborted"
    assert [x for x in e.events("disconnect") if x["id"] == number]
    e.faults(gate=None)


@pytest.mark.soak
def test_engine_dies_at_the_token_it_should(cluster):
    e = cluster.engine(faults='{"die_at": 3}')
    got = sse.call(e.target, sse.CHAT, sse.chat("x len=9;", stream=True,
                                                return_token_ids=True),
                   strict=False)
    assert got.error and len(got.token_ids) == 3
    e.proc.told_to_end = True
