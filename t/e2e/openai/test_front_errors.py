"""OpenAI's API: what is refused, in which words, and what is answered without
a replica."""

import json
import socket

import pytest

from llmgw.fleet import words
from llmgw.speak import sse

JSON = "content-type: application/json"


SERVER = """
        location /any/place/ { llmgw_openai llm; }
        location = /only/v1/completions { llmgw_openai llm; }
        location ~ ^/re/(.*)$ { llmgw_openai llm; }
        location /bare { llmgw_openai llm; }
        location /closed/ { deny all; llmgw_openai llm; }
        location /keys/ { auth_basic keys; auth_basic_user_file none;
                          llmgw_openai llm; }
        location /slow/ { client_body_timeout 500ms; llmgw_openai llm; }
        location /small/ { client_max_body_size 64k; llmgw_openai llm; }
        location /stock { return 404; }
        location /named/ {
            llmgw_openai llm;
            llmgw_model small as org/small-8b;
            llmgw_model other pool=second;
        }
        location /none/ { llmgw_openai nobody; llmgw_model absent; }
        large_client_header_buffers 2 2k;
"""


@pytest.fixture(scope="module")
def plain(shared):
    second = shared.replica("second")
    return shared.fleet(1, nginx={
        "openai": True, "server": SERVER,
        "http": f"upstream second {{ llmgw_hash; server {second.target}; }}"
        f" upstream nobody {{ llmgw_hash; llmgw_queue hold=0;"
                f" server {second.target} down; }}"})


def ask(target, path, body=None, method=None, **headers):
    with sse.Connection(target) as c:
        r = c.request(path, body, method,
                      {k.replace("_", "-"): v for k, v in headers.items()})
        r.read()
        return r


def raw(target, data):
    """Sends bytes; the answer's head and body, to the connection's end."""
    host, _, port = target.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        got = b""
        while more := s.recv(1 << 16):
            got += more
    head, _, body = got.partition(b"\r\n\r\n")
    return head.decode(), body


def refused(r, status, code, kind="invalid_request_error", param=None):
    assert r.status == status, r.body
    assert r.headers["content-type"] == "application/json"
    assert int(r.headers["content-length"]) == len(r.body)
    assert r.headers["x-request-id"]
    error = r.json["error"]
    assert sorted(error) == ["code", "message", "param", "type"]
    assert (error["code"], error["type"], error["param"]) \
        == (code, kind, param)
    assert error["message"]
    return error["message"]


BODY = sse.text("x", max_tokens=1)


@pytest.mark.parametrize("path", [
    "/v1/completions", "/any/place/completions", "/any/place/v1/completions",
    "/only/v1/completions", "/re/x/y/v1/completions", "/bare/v1/completions",
    "/bare/completions"])
def test_paths(plain, path):
    assert ask(plain.api, path, BODY).json["choices"][0]["text"]


@pytest.mark.parametrize("path", [
    "/v1/complete", "/v1/", "/v1/models/",
    "/v1/chat/completions/x", "/any/place/v2/completions",
    "/any/place/more/completions", "/barefoot/completions"])
def test_unknown_paths(plain, path):
    message = refused(ask(plain.api, path, BODY), 404, "unknown_url")
    assert path in message


@pytest.mark.parametrize("method, path, allow", [
    ("GET", "/v1/chat/completions", "POST, OPTIONS"),
    ("PUT", "/v1/completions", "POST, OPTIONS"),
    ("DELETE", "/v1/models/m", "GET, HEAD, OPTIONS"),
    ("POST", "/v1/models", "GET, HEAD, OPTIONS")])
def test_wrong_method(plain, method, path, allow):
    r = ask(plain.api, path, method=method)
    message = refused(r, 405, "method_not_supported")
    assert method in message and r.headers["allow"] == allow


def test_head(plain):
    r = ask(plain.api, "/v1/models", method="HEAD")
    assert (r.status, r.body) == (200, b"")
    assert int(r.headers["content-length"]) > 10
    r = ask(plain.api, "/v1/completions", method="HEAD")
    assert (r.status, r.body) == (405, b"")


def test_options(plain):
    r = ask(plain.api, "/v1/completions", method="OPTIONS",
            origin="https://example.org",
            access_control_request_method="POST")
    assert (r.status, r.headers["allow"]) == (204, "POST, OPTIONS")
    assert "access-control-allow-origin" not in r.headers


@pytest.mark.parametrize("headers, word", [
    ({"content-type": "multipart/form-data; boundary=x"}, "multipart"),
    ({"content-type": "application/x-www-form-urlencoded"}, "application/json"),
    ({"content-type": "application/jsonx"}, "application/json"),
    ({"content-type": "application/json", "content-encoding": "gzip"},
     "compressed")])
def test_wrong_media(plain, headers, word):
    body = b"{}"
    lines = [f"{k}: {v}" for k, v in headers.items()]
    with sse.Connection(plain.api) as c:
        c.send("\r\n".join(["POST /v1/completions HTTP/1.1", "host: x",
                            *lines, "content-length: 2", "", ""]).encode()
               + body)
        r = sse.Response(c, True, "POST")
        r.read()
        assert word in refused(r, 415, "unsupported_media_type")
        # the connection is as good as before
        assert c.request(sse.TEXT, BODY).head().status == 200


def test_json_with_parameters_or_without_a_type(plain):
    body = json.dumps(BODY).encode()
    with sse.Connection(plain.api) as c:
        for line in ("content-type: Application/JSON; charset=utf-8\r\n", ""):
            c.send(("POST /v1/completions HTTP/1.1\r\nhost: x\r\n"
                    f"{line}content-length: {len(body)}\r\n\r\n").encode()
                   + body)
            r = sse.Response(c, True, "POST")
            r.read()
            assert r.json["choices"][0]["finish_reason"] == "length"


@pytest.mark.soak
@pytest.mark.parametrize("body, code, param", [
    (b"{", None, None), (b"", None, None), (b"[]", None, None),
    ({"prompt": "x"}, None, "model"), ({"model": 5}, None, "model"),
    ({"model": "m", "prompt": "x", "stream": "true"}, None, "stream")])
def test_bad_bodies(plain, body, code, param):
    r = ask(plain.api, sse.TEXT, body)
    assert r.status == 400 and r.json["error"]["param"] == param, r.body
    assert r.json["error"]["type"] == "invalid_request_error"
    assert r.headers["x-request-id"]


# --- what nginx itself refuses

@pytest.mark.soak
def test_body_too_large(plain):
    r = ask(plain.api, "/small/completions", sse.text("x" * 70000))
    refused(r, 413, "request_too_large")


@pytest.mark.soak
def test_chunked_body_too_large(plain):
    with sse.Connection(plain.api) as c:
        c.send(b"POST /small/completions HTTP/1.1\r\nhost: x\r\n"
               + JSON.encode()
               + b"\r\ntransfer-encoding: chunked\r\n\r\n"
               + b"11000\r\n" + b"x" * 0x11000 + b"\r\n0\r\n\r\n")
        r = sse.Response(c, True, "POST")
        r.read()
        refused(r, 413, "request_too_large")


def test_denied(plain):
    refused(ask(plain.api, "/closed/completions", BODY), 403,
            "permission_denied")
    r = ask(plain.api, "/keys/completions", BODY)
    refused(r, 401, "invalid_api_key")
    assert r.headers["www-authenticate"] == 'Basic realm="keys"'


@pytest.mark.parametrize("path, body, status, kind", [
    ("/v1/messages", b"{", 400, "invalid_request_error"),
    ("/keys/messages", BODY, 401, "authentication_error"),
    ("/closed/messages", BODY, 403, "permission_error"),
    ("/named/messages", {"model": "nope", "messages": [{"role": "user"}]}, 404,
     "not_found_error"),
    ("/v1/messages", None, 405, "api_error"),
    ("/small/messages", sse.text("x" * 70000), 413, "request_too_large"),
    ("/none/messages", {"model": "absent", "messages": [{"role": "user"}]},
     503, "overloaded_error")])
def test_errors_of_messages_are_anthropics(plain, path, body, status, kind):
    r = ask(plain.api, path, body, x_request_id="mine-3")
    said = r.json
    assert r.status == status and said["error"].pop("message"), r.body
    assert said == {"type": "error", "error": {"type": kind},
                    "request_id": "mine-3"}
    assert int(r.headers["content-length"]) == len(r.body)
    assert r.headers["x-request-id"] == "mine-3"


@pytest.mark.soak
def test_slow_body(plain):
    with sse.Connection(plain.api) as c:
        c.send(b"POST /slow/completions HTTP/1.1\r\nhost: x\r\n"
               + JSON.encode() + b"\r\ncontent-length: 100\r\n\r\n{")
        r = sse.Response(c, True, "POST")
        r.read()
        refused(r, 408, "request_timeout")


def test_what_is_refused_before_a_location_is_known(plain):
    """A server with our location answers in JSON; other servers are not
    asked, so one of ours has to be the default."""
    long = b"x" * 5000
    for request in (b"POST / HTTP/1.1\r\nhost: x\r\n y\r\n\r\n",
                    b"GET / HTTP/1.1\r\nhost: a b\r\n\r\n",
                    b"GET / HTTP/1.1\r\nhost: x\r\nlong: " + long
                    + b"\r\n\r\n"):
        head, body = raw(plain.api, request)
        assert head.startswith("HTTP/1.1 4"), head
        assert "application/json" in head
        assert json.loads(body)["error"]["type"] == "invalid_request_error"


@pytest.mark.soak
def test_stock_locations_keep_their_pages(plain):
    r = ask(plain.api, "/stock")
    assert (r.status, r.headers["content-type"]) == (404, "text/html")


# --- ids

def test_request_ids(plain):
    r = ask(plain.api, sse.TEXT, BODY, x_request_id="mine-1")
    assert r.headers["x-request-id"] == "mine-1"
    made = {ask(plain.api, path, BODY).headers["x-request-id"]
            for path in (sse.TEXT, sse.TEXT, "/v1/nothing")}
    assert len(made) == 3 and all(len(i) == 32 for i in made)
    r = ask(plain.api, sse.TEXT, BODY, x_request_id="a" * 200)
    assert len(r.headers["x-request-id"]) == 32
    r = ask(plain.api, "/v1/nothing", x_request_id="mine-2")
    assert r.headers["x-request-id"] == "mine-2"


# --- models

def test_models(plain):
    r = ask(plain.api, "/named/models")
    assert r.json == {"object": "list", "data": [
        {"id": i, "object": "model", "created": 0, "owned_by": "llmgw"}
        for i in ("small", "other")]}
    assert ask(plain.api, "/named/v1/models/other").json == {
        "id": "other", "object": "model", "created": 0, "owned_by": "llmgw"}
    message = refused(ask(plain.api, "/named/models/org/big"), 404,
                      words.MODEL_NOT_FOUND, param="model")
    assert message == ("The model `org/big` does not exist or you do not have "
                       "access to it.")
    for path in ("/v1/models", "/none/models"):
        assert ask(plain.api, path).json == {"object": "list", "data": []}


def test_model_chooses_the_pool(plain, shared):
    before = shared.replicas["second"].stats().started
    got = sse.call(plain.api, "/named/completions",
                   sse.text("x", "other", max_tokens=1))
    assert got.status == 200
    assert shared.replicas["second"].stats().started == before + 1
    refused(ask(plain.api, "/named/completions", sse.text("x", "nope")),
            404, words.MODEL_NOT_FOUND, param="model")


@pytest.mark.soak
def test_known_model_without_a_replica(plain):
    r = ask(plain.api, "/none/completions", sse.text("x", "absent"))
    refused(r, 503, words.NO_REPLICAS, "server_error")
