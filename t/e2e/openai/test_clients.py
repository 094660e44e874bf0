"""Real clients: what they are told, at an engine itself."""

import json

import pytest

from llmgw import clients, sse

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
EMBED = {"model": "mock-model", "input": ["one", "two"]}
PATHS = {"chat": sse.CHAT, "text": sse.TEXT}


@pytest.fixture(scope="module")
def engine(shared):
    return shared.engine(kind="vllm")


def ask_all(base):
    """Each ask by each client, streaming and not: {(name, client, stream)}."""
    jobs = [(f"{name}/{client}/{stream}", client, base, api, stream, body)
            for name, (api, body, names) in ASKS.items()
            for client in names for stream in (True, False)]
    jobs += [(f"embeddings/{client}/False", client, base, "embeddings",
              False, EMBED) for client in clients.JS]
    return {tuple(key.split("/")): got
            for key, got in clients.run_js(jobs).items()}


@pytest.fixture(scope="module")
def at_engine(engine):
    return ask_all(f"{engine.url}/v1")


def right_answers(engine):
    """What a strict client has of each ask."""
    return {name: sse.call(engine.target, PATHS[api], body)
            for name, (api, body, _) in ASKS.items()}


def calls(got):
    return [(c["name"], json.loads(c["arguments"])) for c in got]


def check(answers, right):
    """All clients were told what is right."""
    for (name, client, stream), got in answers.items():
        where = name, client, stream
        assert got["error"] is None, (where, got)
        if name == "embeddings":
            continue
        want = right[name]
        if not (client == "ai" and name == "text"):     # it adds to prompts
            assert got["text"] == want.text, where
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
    for key in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert got["usage"][key] == want.usage[key], where


def test_clients_agree_at_an_engine(engine, at_engine):
    right = right_answers(engine)
    assert right["tool"].tool_calls and right["reasoning"].reasoning
    assert len(right["two"].text) == 2 and right["logprobs"].logprobs == 9
    check(at_engine, right)


def test_embeddings_are_the_same_for_all(at_engine):
    vectors = [got["vectors"] for (name, _, _), got in at_engine.items()
               if name == "embeddings"]
    assert len(vectors) == len(clients.JS) and len(vectors[0]) == 2
    assert all(v == vectors[0] for v in vectors)


def told_nothing(base, body):
    """The clients that take a broken stream for a complete one."""
    got = clients.run_js([(client, client, base, "chat", True, body)
                          for client in clients.JS])
    return {client for client, result in got.items()
            if result["error"] is None}


def test_clients_miss_a_clean_end_but_no_error_chunk(engine):
    """Why our front never ends a stream cleanly before its finish_reason."""
    missed = {}
    for fault in ("error_at", "close_at", "end_at"):
        engine.faults(**{fault: 5})
        missed[fault] = told_nothing(f"{engine.url}/v1",
                                     sse.chat("broken len=30;"))
        engine.faults(**{fault: None})
    assert not missed["error_at"] and not missed["close_at"]
    assert {"openai", "langchain"} <= missed["end_at"]
