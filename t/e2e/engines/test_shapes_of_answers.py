"""What engines may send, and what a client gets of it (docs/engines.md)."""

import itertools

import pytest

from llmgw.speak import sse

LAWFUL = ("bytes", "crlf", "cr", "comments", "fields", "multiline", "nospace",
          "big", "trailer", "1xx")
TOKENS = 12


@pytest.fixture(scope="module")
def nginx(shared):
    return shared.engines_fleet(
        2, nginx={"pool": "llmgw_breaker off;", "server": """
        location /quick/ {
            llmgw_first_token_timeout 500ms;
            llmgw_openai llm;
        }"""})


@pytest.fixture(scope="module")
def prompt(shared, nginx):
    """One that e1 serves while it is well."""
    e1 = shared.engines["e1"]
    for n in itertools.count():
        text, before = f"{n} shape len={TOKENS};", e1.state()["finished"]
        assert sse.call(nginx.api, sse.CHAT, sse.chat(text)).error is None
        if e1.state()["finished"] > before:
            return text


@pytest.fixture(scope="module")
def right(shared, prompt):
    return sse.call(shared.engines["e2"].target, sse.CHAT, sse.chat(prompt))


@pytest.fixture
def engine(shared, prompt):
    e = shared.engines["e1"]
    yield e
    e.faults(**{name: None for name in e.state()["faults"]})


def check(got, right, stream):
    assert (got.error, got.text) == (None, right.text)
    assert got.finish_reason == ["stop"]
    if stream:
        assert (got.done, got.roles, len(got.ids)) == (1, 1, 1)


def few(names, gate):
    """In the gate only these of the names, or of pairs with a name."""
    return [name if name in gate else pytest.param(
        *(name if isinstance(name, tuple) else (name,)),
        marks=pytest.mark.soak) for name in names]


@pytest.mark.parametrize("shape", few(LAWFUL, {"bytes", "comments", "big"}))
def test_lawful_shapes_come_out_as_ours(nginx, engine, prompt, right, shape):
    engine.faults(shape=shape)
    before = engine.state()["finished"]
    for stream in (True, False):
        check(sse.call(nginx.api, sse.CHAT, sse.chat(prompt, stream=stream)),
              right, stream)
    assert engine.state()["finished"] == before + 2


# Each is a failure of e1; the stream goes on, or begins again, at e2.
UNLAWFUL = {
    "gzip that nobody asked for": {"shape": "gzip"},
    "no byte at all": {"shape": "silent"},
    "an end without an event": {"shape": "empty"},
    "an error before the first token": {"error_at": 0},
    "an error in the stream": {"error_at": 5},
    "a close before the first token": {"close_at": 0},
    "a close in the stream": {"close_at": 5},
    "a reset in the stream": {"reset_at": 5},
    "a clean end without finish_reason": {"end_at": 5},
    "a finish_reason that is none": {"finish": "abort"},
    "500": {"status": 500},
    "429": {"status": 429},
    "503": {"status": 503},
}


def path(fault):
    """Only an engine that must be too slow is given little time."""
    return ("/quick" if "silent" in UNLAWFUL[fault].values() else "") \
        + sse.CHAT


@pytest.mark.parametrize("fault, stream", few(
    itertools.product(UNLAWFUL, (True, False)),
    {("an error in the stream", True), ("a reset in the stream", False),
     ("a clean end without finish_reason", True), ("503", True)}))
def test_another_engine_takes_over_after(nginx, engine, prompt, right, fault,
                                         stream):
    engine.faults(**UNLAWFUL[fault])
    check(sse.call(nginx.api, path(fault), sse.chat(prompt, stream=stream)),
          right, stream)


def test_end_behind_finish_reason_is_complete(nginx, engine, prompt, right):
    engine.faults(no_done=True)
    check(sse.call(nginx.api, sse.CHAT, sse.chat(prompt, stream=True)),
          right, True)


@pytest.mark.parametrize("fault", few(
    [f for f in UNLAWFUL if f not in ("429", "503")],
    {"an end without an event", "a close in the stream",
     "a clean end without finish_reason"}))
def test_failure_is_told_where_nobody_takes_over(shared, nginx, engine, prompt,
                                                 fault):
    """By a status while none was sent, by an error chunk behind the first
    token, here since log probabilities cannot be resumed; never by a clean
    end."""
    engine.faults(**UNLAWFUL[fault])
    shared.engines["e2"].faults(status=500)
    got = sse.call(nginx.api, path(fault),
                   sse.chat(prompt, stream=True, logprobs=True))
    shared.engines["e2"].faults(status=None)
    assert got.error["message"] and got.error["type"] == "server_error"
    assert not got.done and not any(got.finish_reason)
    assert (got.status == 200) == bool(got.text) and got.status in (200, 502)
