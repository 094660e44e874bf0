"""OpenAI's API over engines: what is theirs goes out as it is, and what the
front adds where they fail."""

import json

import pytest

from llmgw.fleet import words
from llmgw.proc.wait import wait_for
from llmgw.speak import sse


@pytest.fixture(scope="module")
def vllm(shared):
    return shared.engines_fleet(2, "vllm", nginx={
        "openai": "access_log @dir@/openai.log openai;",
        "http": "log_format openai '$llmgw_model|$llmgw_prompt_tokens|"
                "$llmgw_completion_tokens|$llmgw_finish_reason|$status|"
                "$llmgw_request_id';"})


def faults(cluster, **values):
    for engine in cluster.engines.values():
        engine.faults(**values)


def raw(target, path, body, **options):
    with sse.Connection(target) as c:
        r = c.request(path, body, **options)
        r.read()
        return r


def test_embeddings_are_the_engines(vllm, shared):
    body = {"model": "mock-model", "input": ["one", "two"]}
    got = raw(vllm.api, "/v1/embeddings", body)
    there = raw(shared.engines["e1"].target, "/v1/embeddings", body)
    assert got.status == 200 and got.body == there.body
    assert got.headers["content-type"] == there.headers["content-type"]


def test_messages_stream_as_the_engine_wrote_it(vllm, shared):
    body = {"model": "mock-model", "max_tokens": 9, "stream": True,
            "messages": [{"role": "user", "content": "hello"}]}
    got, there = [raw(t, "/v1/messages", body, strict=False)
                  for t in (vllm.api, shared.engines["e1"].target)]

    def shape(r):       # ids and models differ from call to call
        return [(e.name, json.loads(e.data)["type"])
                for e in sse_events(r)]
    assert got.headers["content-type"].startswith("text/event-stream")
    assert got.headers["cache-control"] == "no-cache"
    assert shape(got) == shape(there) and len(shape(got)) > 5


def sse_events(response):
    response.text = response.body
    response._take_events()
    return response.events


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_refusals_have_one_form(cluster, kind):
    """SGLang's lack the level `error`."""
    nginx = cluster.engines_fleet(1, kind)
    r = raw(nginx.api, sse.CHAT, sse.chat("hi " * 100000))
    error = r.json["error"]
    assert r.status == 400 and error["message"] and error["type"]
    assert r.headers["content-type"] == "application/json"
    assert r.headers["x-request-id"]


def test_pass_that_breaks_says_so(vllm, shared):
    """The error follows a cut event, and has the name that clients know."""
    body = {"model": "mock-model", "max_tokens": 50, "stream": True,
            "messages": [{"role": "user", "content": "hello"}]}
    shared.hold(5)
    try:
        with sse.Connection(vllm.api) as c:
            r = c.request("/v1/messages", body, strict=False)
            r.wait_events(3)
            faults(shared, close_at=5, gate=None)
            events = r.wait_events(None)
    finally:
        faults(shared, close_at=None, gate=None)
    assert r.complete and not r.broken
    last = events[-1]
    assert last.name == "error"
    assert last.json["type"] == "error"
    assert last.json["error"]["type"] == "api_error"
    assert "message_stop" not in [e.name for e in events]


@pytest.mark.soak
def test_answer_without_a_finish_reason_is_an_error(vllm, shared):
    faults(shared, end_at=4)
    try:
        got = sse.call(vllm.api, sse.CHAT,
                       sse.chat("hi len=30;", stream=True, n=2))
        assert got.error["code"] in (words.NOT_RESUMABLE, words.TRIES_EXHAUSTED)
        assert not got.done
    finally:
        faults(shared, end_at=None)
    got = sse.call(vllm.api, sse.CHAT, sse.chat("hi len=3;"))
    assert got.finish_reason == ["stop"]


def test_usage_is_counted_without_being_asked_for(vllm):
    got = sse.call(vllm.api, sse.CHAT, sse.chat("hi len=9;", stream=True),
                   headers={"x-request-id": "counted"})
    assert got.usage is None and got.done
    log = vllm.dir / "openai.log"
    [line] = wait_for(lambda: [x for x in log.read_text().splitlines()
                               if x.endswith("|counted")], "a line")
    model, prompt, sent, finish, status, _ = line.split("|")
    assert (model, finish, status) == ("mock-model", "stop", "200")
    assert int(prompt) > 3 and int(sent) >= 9


@pytest.mark.parametrize("kind", ["sglang", "llamacpp"])
def test_tokens_of_reasoning_are_counted(cluster, kind):
    nginx = cluster.engines_fleet(1, kind, reasoning=True, nginx={
        "openai": "access_log @dir@/openai.log thoughts;",
        "http": "log_format thoughts '$llmgw_reasoning_tokens';"})
    for stream in (False, True):
        got = sse.call(nginx.api, sse.CHAT,
                       sse.chat("hi think=3;len=5;", stream=stream))
        assert got.reasoning and got.error is None
    log = nginx.dir / "openai.log"
    wait_for(lambda: log.read_text() == "3\n3\n", "two lines")


def test_answer_that_needs_too_much_memory(cluster):
    nginx = cluster.engines_fleet(1, "vllm", nginx={
        "http": "llmgw_body_memory 256k;",
        "server": "location = /metrics { llmgw_metrics; }"})

    def bytes_held():
        return nginx.counted("llmgw_body_bytes")
    body = {"model": "mock-model", "input": ["x"] * 2000}
    r = raw(nginx.api, "/v1/embeddings", body)
    assert r.status == 502, r.body[:200]
    assert "llmgw_body_memory" in r.json["error"]["message"]
    assert r.headers["x-should-retry"] == "false"
    wait_for(lambda: not any(bytes_held().values()), "nothing that is held")
    assert nginx.counted("llmgw_body_refusals_total")["answer"] == 1
    cluster.hold(3)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat("hi " * 1000 + "len=9;"))
        wait_for(lambda: bytes_held()["request"] >= 3000, "what is held")
        cluster.let_go()
        assert sse.result_of(r).status == 200
    wait_for(lambda: not any(bytes_held().values()), "it to be given back")


def test_model_by_another_name(cluster):
    nginx = cluster.engines_fleet(1, "vllm", nginx={
        "openai": "llmgw_model gpt-x as mock-model;"})
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat("hi len=3;", "gpt-x", stream=True))
        chunks = [e.json for e in r.wait_events(None)[:-1]]
        assert {c["model"] for c in chunks} == {"gpt-x"}
        whole = c.request(sse.CHAT, sse.chat("hi len=3;", "gpt-x"))
        whole.read()
        assert whole.json["model"] == "gpt-x"
        models = c.request("/v1/models")
        models.read()
        assert [m["id"] for m in models.json["data"]] == ["gpt-x",
                                                          "mock-model"]
