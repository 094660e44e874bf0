"""Keys on whatever engines serve: each path charges once, under the key's own
name, and refuses in the form that its clients read."""

import re

import pytest

from llmgw.engine.endpoints import (COUNT, FORM, FORMS, KINDS, body_of, cost,
    form_of)
from llmgw.fleet import words
from llmgw.fleet.books import records, wait_records
from llmgw.fleet.ways_in import MESSAGES, held, messages
from llmgw.speak import sse
from llmgw.speak.keyfile import Told

SERVER = """
    server {{
        listen 127.0.0.1:{port};
        keepalive_requests 10000;
        location / {{ llmgw_openai llm; llmgw_openai_path {added}; }}
    }}"""
ADDED = "/v1/added/path"        # the mock has none: 404 is its own answer
SAID = {
    sse.CHAT: sse.chat("hi len=3;"), sse.TEXT: sse.text("hi", max_tokens=3),
    "/v1/responses": {"model": "mock-model", "input": "hi len=3;"},
    MESSAGES: messages("hi len=3;"),
    "/v1/embeddings": {"model": "mock-model", "input": "hi"},
    ADDED: {"model": "mock-model", "any": 1}}
PATHS = {"vllm": [*SAID, *KINDS["vllm"], *FORMS], "openai": KINDS["openai"]}
ANTHROPIC = (MESSAGES, COUNT)
INVALID, RATE = "invalid_api_key", "rate_limit_exceeded"


class Ways:
    """A gateway whose engine serves these paths, and the requests that it
    gets."""

    def __init__(self, gateway, cluster, kind):
        port = cluster.ports.take()
        self.api = f"127.0.0.1:{port}"
        self.nginx = gateway(kind=kind, nginx={
            "pool": "llmgw_slo gold;",
            "http": SERVER.format(port=port, added=ADDED)})

    def ask(self, path, key=None):
        headers = {"authorization": f"Bearer {key}"} if key else {}
        body, type = (form_of(b"sound"), FORM) if path in FORMS else (
            SAID[path] if path in SAID else body_of(path), None)
        with sse.Connection(self.api) as c:
            r = c.request(path, body, headers=headers, strict=False,
                          **({"type": type} if type else {}))
            r.read()
        return Told(r.status, r.headers, r.body)

    def counted(self, name, **label):
        """The sum of the series with this label."""
        [(key, value)] = label.items()
        page = self.nginx.get("/metrics")[1].decode()
        return sum(int(n) for n in re.findall(
            rf'^{name}{{[^}}]*\b{key}="{value}"[^}}]*}} (\d+)$', page, re.M))


def is_refused(path, told, status, code, anthropics):
    if path in ANTHROPIC:
        told.is_anthropics(status, anthropics)
    else:
        told.is_refused(status, code)


def served(path, told):
    assert told.status == (404 if path == ADDED else 200), (path, told)
    if path == ADDED:
        assert b"model_not_found" not in told.body
    return told


@pytest.mark.parametrize("kind", PATHS)
def test_each_path_is_charged_once(gateway, keyfile, cluster, usage, kind):
    key = keyfile.add("alice", "class=gold", "tenant=lab")
    ways = Ways(gateway, cluster, kind)
    for n, path in enumerate(PATHS[kind], 1):
        told = served(path, ways.ask(path, key))
        record = wait_records(usage, n)[-1]
        assert (record["key"], record["class"], record["tenant"],
                record["model"], record["replicas"], record["outcome"]) == (
            "alice", "gold", "lab", "mock-model", ["a1"], "ok"), path
        if path not in SAID and "audio" not in path:
            assert (record["prompt_tokens"], record["completion_tokens"]) \
                == cost(path, told.body), path
        assert ways.counted("llmgw_key_requests_total", key="alice") == n, path
    all = wait_records(usage, len(PATHS[kind]))
    for name, member in (("prompt", "prompt_tokens"),
                         ("completion", "completion_tokens")):
        assert ways.counted(f"llmgw_key_{name}_tokens_total", key="alice") \
            == sum(r[member] for r in all)
    assert ways.counted("llmgw_key_streams", key="alice") == 0
    assert ways.counted("llmgw_class_requests_total",
                        **{"class": "gold"}) == len(all)


@pytest.mark.parametrize("kind", PATHS)
def test_each_path_asks_for_a_key_and_its_model(gateway, keyfile, cluster,
                                                usage, kind):
    keyfile.add("alice")
    other = keyfile.add("other", "models=other")
    ways = Ways(gateway, cluster, kind)
    for path in PATHS[kind]:
        is_refused(path, ways.ask(path), 401, INVALID,
                   "authentication_error")
        is_refused(path, ways.ask(path, "sk-wrong"), 401,
                   INVALID, "authentication_error")
        is_refused(path, ways.ask(path, other), 404, words.MODEL_NOT_FOUND,
                   "not_found_error")
    assert not [r for r in cluster.engines["e1"].events("request")
                if r["path"] in PATHS[kind]]
    assert records(usage) == []


@pytest.mark.parametrize("kind", PATHS)
def test_each_path_is_held_to_limits(gateway, keyfile, cluster, usage, kind):
    """Of requests a minute, and of streams at once."""
    keys = {path: keyfile.add(f"k{i}", "rpm=1")
            for i, path in enumerate(PATHS[kind])}
    one = keyfile.add("one", "streams=1")
    ways = Ways(gateway, cluster, kind)
    for i, path in enumerate(PATHS[kind]):
        served(path, ways.ask(path, keys[path]))
        is_refused(path, ways.ask(path, keys[path]), 429,
                   RATE, "rate_limit_error")
        assert ways.counted("llmgw_key_requests_total", key=f"k{i}") == 1
        assert ways.counted("llmgw_key_refused_total", key=f"k{i}") == 1
    with held(cluster, ways.nginx, 1), sse.Connection(ways.nginx.api) as c:
        c.request(sse.CHAT, sse.chat("held len=9;", stream=True), headers={
            "authorization": f"Bearer {one}"}).wait_events(1)
        for path in PATHS[kind]:
            is_refused(path, ways.ask(path, one), 429,
                       RATE, "rate_limit_error")
    wait_records(usage, len(PATHS[kind]) + 1)
