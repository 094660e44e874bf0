"""Real clients: their answers from an engine and through the gateway."""

import json

import pytest

from llmgw.fleet import words
from llmgw.proc import place
from llmgw.speak import clients, sse

TOOLS = [{"type": "function", "function": {
    "name": "weather", "description": "tells the weather",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string"}, "days": {"type": "integer"}}}}}]

# name: (api, body, clients that can ask for it)
ASKS = {
    "chat": ("chat", sse.chat("hi len=30;"), clients.JS),
    "chat cut": ("chat", sse.chat("hi len=30;", max_tokens=9), clients.JS),
    "text": ("text", sse.text("tell", max_tokens=12), clients.JS),
    "tool": ("chat", sse.chat("ask call=weather;", tools=TOOLS), clients.JS),
    "reasoning": ("chat", sse.chat("ask think=6;len=5;"),
                  ("openai", "ai", "fetch")),
    "two": ("chat", sse.chat("hi len=8;", n=2), ("openai", "fetch")),
    "logprobs": ("chat", sse.chat("hi len=8;", logprobs=True),
                 ("openai", "langchain", "fetch")),
    "text logprobs": ("text", sse.text("tell", max_tokens=5, logprobs=1),
                      ("openai", "fetch")),
}
if place.IS_REAL:           # what any model can do, whatever it says
    ASKS = {k: ASKS[k] for k in ("chat", "chat cut", "text", "two",
                                 "logprobs")}
    # LangChain adds up chunks, and loses some of their log probabilities.
    ASKS["logprobs"] = (*ASKS["logprobs"][:2], ("openai", "fetch"))
EMBED = {"model": place.ENGINE_MODEL, "input": ["one", "two"]}
PATHS = {"chat": sse.CHAT, "text": sse.TEXT}


@pytest.fixture(scope="module")
def nginx(shared):
    return shared.engines_fleet(2, nginx={"pool": "llmgw_breaker off;"},
                                reasoning=True)


@pytest.fixture(scope="module")
def engine(shared, nginx):
    return shared.engines["e1"]


def ask_all(base):
    """Each ask by each client, streaming and not: {(name, client, stream)}."""
    jobs = [(f"{name}/{client}/{stream}", client, base, api, stream, body)
            for name, (api, body, names) in ASKS.items()
            for client in names for stream in (True, False)]
    return {tuple(key.split("/")): got
            for key, got in clients.run_js(jobs).items()}


@pytest.fixture(scope="module")
def at_engine(engine):
    return ask_all(f"{engine.url}/v1")


@pytest.fixture(scope="module")
def through(nginx):
    return ask_all(f"http://{nginx.api}/v1")


def right_answer(engine, name, stream):
    """What a strict client has of it."""
    api, body, _ = ASKS[name]
    usage = {"stream_options": {"include_usage": True}} if stream else {}
    return sse.call(engine.target, PATHS[api], {**body, "stream": stream,
                                                **usage}, strict=False)


def right_answers(engine):
    return {(name, stream): right_answer(engine, name, stream)
            for name in ASKS for stream in (True, False)}


def calls(got):
    return [(c["name"], json.loads(c["arguments"])) for c in got]


def whole(texts):
    """Without the begin of a character: a whole answer of llama-server's has
    it, a stream has not."""
    return [text.rstrip("\ufffd") for text in texts]


def check(answers, right):
    """All clients got the right answer."""
    for (name, client, stream), got in answers.items():
        where = name, client, stream
        assert got["error"] is None, (where, got)
        want = right[name, stream == "True"]
        if not (client == "ai" and name == "text"):     # it adds to prompts
            assert whole(got["text"]) == whole(want.text), where
            assert got["finish_reason"] == want.finish_reason, where
            assert got["reasoning"] == want.reasoning, where
            check_usage(got, want, where)
        assert calls(got["tool_calls"]) == calls(want.tool_calls), where
        assert got["logprobs"] == want.logprobs, where
        assert len(got["ids"]) == (not client == "langchain" or
                                   not name == "text"), where
        if client in ("openai", "fetch"):
            chat = ASKS[name][0] == "chat"
            assert got["roles"] == (len(want.text) if chat else 0), where


def check_usage(got, want, where):
    if where[:2] == ("text", "langchain"):
        return              # its completions do not tell
    if where[0] == "two" and place.IS_REAL:
        return              # llama-server counts each choice by itself
    for key in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert got["usage"][key] == want.usage[key], where


@pytest.mark.soak
def test_clients_agree_at_an_engine(engine, at_engine):
    right = right_answers(engine)
    for stream in (True, False):
        assert len(right["two", stream].text) == 2
        assert right["logprobs", stream].logprobs >= 9
        if not place.IS_REAL:
            assert right["tool", stream].tool_calls
            assert right["reasoning", stream].reasoning
    check(at_engine, right)


def test_clients_are_told_the_same_through_the_gateway(engine, through):
    check(through, right_answers(engine))


@pytest.mark.soak
def test_embeddings_are_the_same_for_all(engine, nginx):
    path = "/v1/embeddings"
    status, _, got, _ = clients.curl(engine.url + path, EMBED)
    if place.IS_REAL and status != 200:
        pytest.skip(f"the engine answers {status} to {path}")
    right = [row["embedding"] for row in json.loads(got)["data"]]
    for base in (engine.url, f"http://{nginx.api}"):
        told = clients.run_js([(client, client, f"{base}/v1", "embeddings",
                                False, EMBED) for client in clients.JS])
        for client, got in told.items():
            assert got["vectors"] == right, (base, client, got)


@pytest.mark.parametrize("name", ASKS)
def test_stream_has_one_id_one_role_and_one_done(engine, nginx, name):
    """For a client that repairs nothing."""
    api, body, _ = ASKS[name]
    body = {**body, "stream": True, "stream_options": {"include_usage": True}}
    right = right_answer(engine, name, True)
    got = sse.call(nginx.api, PATHS[api], body)
    assert (got.error, got.done, len(got.ids)) == (None, 1, 1)
    assert got.roles == (len(right.text) if api == "chat" else 0)
    for field in ("text", "finish_reason", "reasoning", "tool_calls",
                  "logprobs"):
        assert getattr(got, field) == getattr(right, field), field
    check_usage({"usage": got.usage}, right, (name,))


@pytest.mark.parametrize("name", ("chat", "text"))
def test_curl_is_told_the_same_over_both_versions_of_http(engine, nginx, name):
    api, body, _ = ASKS[name]
    right = sse.call(engine.target, PATHS[api], body)
    for target, version in ((engine.target, "--http1.1"),
                            (nginx.api, "--http1.1"),
                            (nginx.target, "--http2-prior-knowledge")):
        url = f"http://{target}{PATHS[api]}"
        status, _, raw, code = clients.curl(url, body, version)
        assert (status, code) == (200, 0)
        got = sse.take_whole(sse.Result(), json.loads(raw))
        assert whole(got.text) == whole(right.text)
        assert got.finish_reason == right.finish_reason
        status, _, raw, code = clients.curl(url, {**body, "stream": True},
                                            version)
        assert (status, code) == (200, 0)
        assert raw.count(b"data: [DONE]\n\n") == 1
        assert raw.endswith(b"data: [DONE]\n\n")


def told_nothing(base, body, able=clients.JS):
    """The clients that take a broken stream for a complete one."""
    got = clients.run_js([(client, client, base, "chat", True, body)
                          for client in able])
    return {client for client, result in got.items()
            if result["error"] is None}


# Where nobody can go on: after how many tokens the stream breaks, and who can
# ask for it.
REFUSED = {
    "two choices": (9, sse.chat("refused len=30;", n=2), ("openai", "fetch")),
    "a JSON schema": (9, sse.chat("refused", response_format={
        "type": "json_schema", "json_schema": {"name": "x", "schema": {}}}),
        ("openai", "langchain", "fetch")),
    "a tool call that began": (50, sse.chat("refused call=weather;",
                                            tools=TOOLS), clients.JS),
    "log probabilities": (9, sse.chat("refused len=30;", logprobs=True),
                          ("openai", "langchain", "fetch")),
}


def faults(cluster, **values):
    for e in cluster.engines.values():
        e.faults(**values)


def broken_at(cluster, nginx, after, body):
    """What has come of a stream that breaks there, to a strict client.  Its
    first tokens have left by then: otherwise it would begin anew."""
    cluster.hold(after)
    with sse.Connection(nginx.api) as c:
        response = c.request(sse.CHAT, {**body, "stream": True})
        while not has_begun(response.wait_events(len(response.events) + 1)):
            assert not response.complete
        faults(cluster, close_at=after, gate=None)
        return sse.result_of(response)


def has_begun(events):
    """Something that is said, besides a role."""
    deltas = [choice["delta"] for e in events for choice in e.json["choices"]]
    return any(d.get("content") or d.get("tool_calls") for d in deltas)


@pytest.mark.parametrize("what", [
    "two choices", *(pytest.param(what, marks=pytest.mark.soak)
                     for what in REFUSED if what != "two choices")])
def test_refused_resume_is_an_error_to_every_client(shared, nginx, what):
    after, body, able = REFUSED[what]
    try:
        raw = broken_at(shared, nginx, after, body)
        faults(shared, token_delay=.01)     # most often tokens leave before
        missed = told_nothing(f"http://{nginx.api}/v1", body, able)
    finally:
        faults(shared, close_at=None, token_delay=None, gate=None)
    assert raw.status == 200 and raw.ids and not raw.done
    assert raw.error["message"] and raw.error["type"]
    assert raw.error["code"] == words.NOT_RESUMABLE
    assert not any(raw.finish_reason)
    assert missed == set()


@pytest.mark.soak
def test_clients_miss_a_clean_end_but_no_error_chunk(shared):
    """Why our front never ends a stream cleanly before its finish_reason."""
    faults = ("error_at", "close_at", "end_at")
    bases = {fault: shared.engine(fault, faults=json.dumps({fault: 5})).url
             for fault in faults}
    got = clients.run_js([
        (f"{fault} {client}", client, f"{base}/v1", "chat", True,
         sse.chat("broken len=30;"))
        for fault, base in bases.items() for client in clients.JS])
    missed = {tuple(key.split()) for key, result in got.items()
              if result["error"] is None}
    assert {fault for fault, _ in missed} == {"end_at"}
    assert {("end_at", "openai"), ("end_at", "langchain")} <= missed
