"""The endpoints of an engine that generate no chat: their bytes are the
engine's, and the gateway knows their key, their tokens and their place."""

import hashlib
import pathlib
import re

import pytest

from llmgw.engine.endpoints import (CHAT, COUNT, FORM, FORMS, KINDS, body_of,
    cost, form_of)
from llmgw.proc.place import FLAVOUR
from llmgw.proc.wait import wait_for
from llmgw.speak import sse

LOG = "log_format cost '$llmgw_request_id|$llmgw_prompt_tokens|" \
      "$llmgw_completion_tokens|$llmgw_replica';"
SERVER = """
    server {{
        listen 127.0.0.1:{port};
        client_max_body_size 63m;
        access_log @dir@/openai.log cost;
        keepalive_requests 10000;
        location / {{ llmgw_openai llm; {more} }}
    }}"""


def fleet(cluster, n=1, kind="vllm", more="", **options):
    """All of / is the front's, at `api`."""
    port = cluster.ports.take()
    nginx = cluster.engines_fleet(n, kind, nginx={
        "http": LOG + SERVER.format(port=port, more=more),
        "server": "location = /metrics { llmgw_metrics; }"}, **options)
    nginx.api = f"127.0.0.1:{port}"
    return nginx


def asked(target, path, body=None, id="direct", **more):
    with sse.Connection(target) as c:
        r = c.request(path, body, headers={"x-request-id": id}, strict=False,
                      **more)
        r.read()
        return r


def last_path(engine):
    """Of the requests that are no looks at the engine."""
    return [r["path"] for r in engine.events("request")
            if r["method"] == "POST"][-1]


def logged(nginx, id):
    """Tokens of the prompt and of the answer; the replica."""
    log = nginx.dir / "openai.log"
    [line] = wait_for(lambda: [x for x in log.read_text().splitlines()
                               if x.startswith(id + "|")], "a line")
    _, prompt, completion, replica = line.split("|")
    return int(prompt), int(completion), replica


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_are_the_engines(cluster, kind):
    nginx = fleet(cluster, kind=kind)
    engine = cluster.engines["e1"].target
    for path in KINDS[kind]:
        there, got = [asked(t, path, body_of(path), "id" + path)
                      for t in (engine, nginx.api)]
        assert (got.status, got.body) == (there.status, there.body), path
        assert got.status == 200
        assert got.headers["content-type"] == there.headers["content-type"]
        assert ("content-length" in got.headers) == (
            "content-length" in there.headers)
        assert logged(nginx, "id" + path) == (*cost(path, there.body), "a1")
    assert sum(nginx.counted("llmgw_requests_total").values()) \
        == len(KINDS[kind])


def test_version_that_a_path_lacks_is_its_own(cluster):
    """Clients whose base ends in /v1 ask for /v1/tokenize; and an engine is
    asked under /v2 only by clients that say so."""
    nginx = fleet(cluster)
    engine = cluster.engines["e1"]
    for path, there in (("/v1/tokenize", "/tokenize"),
                        ("/v1/classify", "/classify"),
                        ("/messages/count_tokens", COUNT),
                        ("/v2/rerank", "/v2/rerank")):
        assert asked(nginx.api, path, body_of(there)).status == 200
        assert last_path(engine) == there
    for path in ("/v2/tokenize", "/v3/rerank", "/any/rerank"):
        r = asked(nginx.api, path, body_of("/rerank"))
        assert (r.status, r.json["error"]["code"]) == (404, "unknown_url")
    r = asked(nginx.api, "/rerank", method="GET")
    assert r.status == 405 and r.headers["allow"] == "POST, OPTIONS"


def test_path_that_the_operator_adds(cluster):
    """The engine's own words, also that it has none; nothing else is added."""
    nginx = fleet(cluster, more="llmgw_openai_path /v1/unknown/path;"
                                "llmgw_openai_path /abort_requests;")
    engine = cluster.engines["e1"]
    for path, there in (("/v1/unknown/path", "/v1/unknown/path"),
                        ("/unknown/path", "/v1/unknown/path"),
                        ("/abort_requests", "/abort_requests")):
        r = asked(nginx.api, path, {"model": "mock-model", "any": 1})
        assert r.status == 404 and last_path(engine) == there
        assert r.body == asked(engine.target, there, {}).body
    r = asked(nginx.api, "/v1/unknown", {"model": "mock-model"})
    assert r.json["error"]["code"] == "unknown_url"
    r = asked(nginx.api, "/abort_requests", {"any": 1})
    assert (r.status, r.json["error"]["param"]) == (400, "model")


def test_engine_that_has_no_such_path_is_well(cluster):
    """A thousand such answers are the clients' own."""
    nginx = fleet(cluster, kind="sglang")
    body = body_of(COUNT)
    with sse.Connection(nginx.api) as c:
        for _ in range(1000):
            r = c.request(COUNT, body, strict=False)
            r.read()
            assert r.status == 404
    breaker = nginx.replicas()["a1"]["breaker"]
    assert (breaker["state"], breaker["failures"]) == ("closed", 0)
    assert asked(nginx.api, "/classify", body_of("/classify")).status == 200


def test_requests_of_one_conversation_go_to_one_replica(cluster):
    nginx = fleet(cluster, 3)
    places = set()
    for n in range(4):
        more = [*CHAT, *[{"role": "assistant", "content": str(n)},
                         {"role": "user", "content": "on"}] * n]
        asked(nginx.api, COUNT, {"model": "mock-model", "messages": more},
              f"n{n}")
        places.add(logged(nginx, f"n{n}")[2])
    assert len(places) == 1
    places = set()
    for n in range(20):
        asked(nginx.api, "/rerank", body_of("/rerank", query=f"q{n}"), f"q{n}")
        places.add(logged(nginx, f"q{n}")[2])
    assert len(places) > 1


def test_answer_without_a_length_leaves_as_it_comes(cluster):
    nginx = fleet(cluster, kind="openai")
    cluster.hold(2)
    with sse.Connection(nginx.api) as c:
        r = c.request("/v1/audio/speech", body_of("/v1/audio/speech"),
                      strict=False)
        r.wait_bytes(8192)
        cluster.let_go()
        r.read()
    assert len(r.body) == 16384 and r.headers["content-type"] == "audio/mpeg"
    assert "content-length" not in r.headers


def sent(target, path, body, id="direct", type=FORM):
    with sse.Connection(target) as c:
        r = c.request(path, body, strict=False, type=type,
                      headers={"x-request-id": id})
        r.read()
        return r


@pytest.mark.parametrize("path", FORMS)
def test_form_goes_on_as_it_is(cluster, path):
    nginx = fleet(cluster, more="llmgw_model whisper as mock-model;")
    engine = cluster.engines["e1"]
    file = bytes(range(256)) * 300
    for model in ("mock-model", "whisper"):
        got = sent(nginx.api, path, form_of(file, model, language="en"), model)
        there = sent(engine.target, path, form_of(file, language="en"))
        assert (got.status, got.body) == (200, there.body)
        assert got.json["text"] == hashlib.sha1(file).hexdigest()
        assert logged(nginx, model) == (0, 0, "a1")
        ours, direct = engine.events("request", path)[-2:]
        assert ours["body"] == direct["body"]
        assert dict(ours["headers"])["content-type"] == FORM


def test_form_that_is_none_is_refused(cluster):
    nginx = fleet(cluster)
    path = "/v1/audio/transcriptions"
    for body, type, status, code in (
            (form_of(b"a"), "application/json", 415, "unsupported_media_type"),
            (form_of(b"a"), "multipart/mixed; boundary=a", 415,
             "unsupported_media_type"),
            (b"{}", FORM, 400, "invalid_form"),
            (form_of(b"a") + form_of(b"b"), "multipart/form-data", 400,
             "invalid_form"),
            (form_of(b"a", "other"), FORM, 404, "model_not_found")):
        r = sent(nginx.api, path, body, type=type)
        assert (r.status, r.json["error"]["code"]) == (status, code)
    assert not cluster.engines["e1"].events("request", path)
    r = sent(nginx.api, "/v1/rerank", form_of(b"a"))
    assert r.status == 415


SMALL = 512 << 10               # blocks that any request takes, on its way
CLEAR_PEAK = "5"                # proc(5): VmHWM counts from now on


def rss(proc, what="VmHWM"):
    """Bytes; of the process that has most of it."""
    text = pathlib.Path(f"/proc/{proc}/status").read_text()
    return int(re.search(what + r":\s+(\d+) kB", text)[1]) * 1024


@pytest.mark.skipif(FLAVOUR == "asan", reason="its free() keeps what it gets")
def test_upload_of_25_mb_is_held_once(cluster):
    """At most twice its length at the worker and at the adapter, beside what
    smaller requests have left them, and nothing of it when it has gone on;
    the second time, too."""
    nginx = fleet(cluster)
    path = "/v1/audio/transcriptions"
    pids = {"worker": nginx.workers()[0],
            "adapter": cluster.replicas["a1"].proc.pid}
    for size in (0, 1 << 20, 10 << 20):         # what is made once
        sent(nginx.api, path, form_of(b"a" * size))
    body = form_of(b"0123456789abcdef" * (25 << 16))
    for _ in range(2):
        before = {name: rss(pid, "VmRSS") for name, pid in pids.items()}
        for pid in pids.values():
            pathlib.Path(f"/proc/{pid}/clear_refs").write_text(CLEAR_PEAK)
        assert sent(nginx.api, path, body).status == 200
        for name, pid in pids.items():
            peak = rss(pid) - before[name]
            assert peak <= 2 * len(body) + SMALL, (name, peak)
            wait_for(lambda: rss(pid, "VmRSS") - before[name] < SMALL,
                     f"memory of the {name} to be given back")
    wait_for(lambda: nginx.counted("llmgw_body_bytes") == {}
             or not any(nginx.counted("llmgw_body_bytes").values()),
             "no body to be held")


def test_bodies_are_not_held_to_nginxs_default(cluster):
    """Which no conversation with an image fits in; another value is."""
    port = cluster.ports.take()
    nginx = cluster.engines_fleet(1, "vllm", nginx={"http": f"""
    server {{
        listen 127.0.0.1:{port};
        location / {{ llmgw_openai llm; }}
        location /small/ {{ llmgw_openai llm; client_max_body_size 2m; }}
    }}"""})
    nginx.api = f"127.0.0.1:{port}"
    body = body_of("/tokenize", padding="x" * (3 << 20))
    assert asked(nginx.api, "/tokenize", body).status == 200
    assert asked(nginx.api, "/small/v1/tokenize", body).status == 413
    assert 'location "/" with "llmgw_openai" takes bodies of 63m' in nginx.log()
    assert '"/small/" with' not in nginx.log()


FEW = r"llmgw: {} is (\d+) for \"llmgw_openai\" in the server at" \
      r" (\S+):(\d+), set"


def test_small_limits_of_connections_are_said_once(cluster):
    """Each by the server's line, at the start and by no worker; streams only
    where a server speaks HTTP/2."""
    ports = [cluster.ports.take() for _ in range(4)]
    few = "http2_max_concurrent_streams 100; keepalive_requests 500;"
    enough = "http2_max_concurrent_streams 1000; keepalive_requests 10000;"
    location = "location / { llmgw_openai llm; }"
    nginx = cluster.engines_fleet(1, "vllm", nginx={"workers": 2, "http": f"""
    server {{ listen 127.0.0.1:{ports[0]} http2; {enough} {location} }}
    server {{ listen 127.0.0.1:{ports[1]} http2; {few} }}
    server {{ listen 127.0.0.1:{ports[2]}; {few}
              {location} location /b/ {{ llmgw_openai llm; }} }}
    server {{ listen 127.0.0.1:{ports[3]} http2; {few} {location} }}"""})
    lines = nginx.conf.read_text().splitlines()
    log = (nginx.dir / "error.log").read_text()
    for name, value, port in (("keepalive_requests", "500", ports[2]),
                              ("http2_max_concurrent_streams", "100",
                               ports[3])):
        [(said, file, line)] = re.findall(FEW.format(name), log)
        assert said == value and pathlib.Path(file) == nginx.conf
        assert f":{port}" in lines[int(line) - 1]
