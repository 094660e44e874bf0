"""Identities that something else has checked: llmgw_identity, and auth_request
with a service that takes tokens of OIDC."""

import contextlib
import http.server
import json
import re
import threading

import pytest

from llmgw.fleet import words
from llmgw.fleet.books import wait_records
from llmgw.fleet.ways_in import MESSAGES, messages
from llmgw.proc import place
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc, sse
from llmgw.speak.keyfile import ask, bearer, rates

RATE = "rate_limit_exceeded"


# --- by variables alone

SAID = "llmgw_identity name=$http_x_name models=$http_x_models" \
       " class=$http_x_class tenant=$http_x_tenant;"


@pytest.fixture
def nginx(gateway, keyfile):
    keyfile.identity("bob", "rpm=2")
    keyfile.identity("*", "rpm=100", "streams=5")
    keyfile.add("carol")
    return gateway(nginx={
        "server": SAID, "pool": "llmgw_queue 10 order=priority;"
                                " llmgw_slo gold priority=5;"})


def chat(nginx, **headers):
    pairs = [(k.replace("_", "-"), v) for k, v in headers.items()]
    return ask(nginx.api, sse.CHAT, sse.chat("hi len=2;"), pairs)


def test_limits_are_those_of_the_name_or_of_all(nginx, usage):
    assert rates(chat(nginx, x_name="bob").headers, "requests")[0] == 2
    assert chat(nginx, x_name="bob").status == 200
    chat(nginx, x_name="bob").is_refused(429, RATE)
    for name in ("dave", "erin@example.com"):       # an account each
        limit, left, _ = rates(chat(nginx, x_name=name).headers, "requests")
        assert (limit, left) == (100, 99), name
    assert [r["key"] for r in wait_records(usage, 4)] == [
        "bob", "bob", "dave", "erin@example.com"]


def test_nobody_is_not_served(nginx):
    """An empty name, and one that no account can have."""
    for name in ("", "x" * 97, "a\xe9", "\xff"):
        chat(nginx, x_name=name).is_refused(401, "invalid_api_key")
    assert chat(nginx).status == 401


def test_models_class_and_tenant_are_those_of_the_identity(nginx, usage):
    got = chat(nginx, x_name="dave", x_models="mock*", x_class="gold",
               x_tenant="lab")
    assert got.status == 200
    record, = wait_records(usage, 1)
    assert (record["class"], record["tenant"]) == ("gold", "lab")
    chat(nginx, x_name="dave", x_models="other") \
        .is_refused(404, words.MODEL_NOT_FOUND)
    with rpc.Client(nginx.target) as c:
        got = c.stream("hi len=2;", 2, metadata=[("x-name", "dave"),
                                                 ("x-models", "other")])
        assert got.code == "NOT_FOUND"
        got = c.stream("hi len=2;", 2, metadata=[("x-name", "dave")])
        assert got.code == "OK"


def test_without_a_line_for_all_only_names_with_one(gateway, keyfile):
    keyfile.identity("bob")
    nginx = gateway(nginx={"server": SAID})
    assert chat(nginx, x_name="bob").status == 200
    chat(nginx, x_name="dave").is_refused(401, "invalid_api_key")


# --- docs/keys.md: auth_request with a cache

class Oidc:
    """A service that knows some tokens, and counts how often it is asked."""

    def __init__(self, port):
        self.users = {"token-ann": {"sub": "ann@example.com",
                                    "models": "mock*"},
                      "token-ben": {"sub": "ben@example.com",
                                    "models": "other"}}
        self.asked = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.answer(self)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port),
                                                      Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True,
                         kwargs={"poll_interval": .02}).start()

    def answer(self, request):
        token = (request.headers["authorization"] or "").removeprefix(
            "Bearer ")
        self.asked.append(token)
        user = self.users.get(token)
        request.send_response(200 if user else 401)
        if user:
            request.send_header("x-auth-name", user["sub"])
            request.send_header("x-auth-models", user["models"])
        request.send_header("content-length", "0")
        request.end_headers()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def oidc(cluster):
    port = cluster.ports.take()
    with contextlib.closing(Oidc(port)) as made:
        made.target = f"127.0.0.1:{port}"
        yield made


def recipe(oidc, cluster, keyfile):
    """(http, server) as docs/keys.md has them, but for paths and ports."""
    page = (place.ROOT / "docs" / "keys.md").read_text()
    conf, = (b for b in re.findall(r"^```nginx\n(.*?)^```$", page,
                                   re.M | re.S) if "auth_request" in b)
    for shown, real in (("/etc/llmgw/keys", str(keyfile.path)),
                        ("/var/cache/nginx/auth", str(cluster.dir / "auth")),
                        ("127.0.0.1:9000", oidc.target)):
        assert shown in conf, shown
        conf = conf.replace(shown, real)
    http_, server = re.fullmatch(r"(.*)^server \{\n(.*)^\}\n", conf,
                                 re.M | re.S).groups()
    listen = re.compile(r"^ *listen [^;]*;\n", re.M)
    return http_, listen.sub("", server)


@pytest.fixture
def guarded(cluster, keyfile, oidc):
    keyfile.identity("*", "rpm=50")
    http_, server = recipe(oidc, cluster, keyfile)
    return cluster.engines_fleet(1, nginx={"openai": False, "http": http_,
                                           "server": server})


def post(nginx, token, path=sse.CHAT, body=None):
    return ask(nginx.api, path, body or sse.chat("hi len=2;"), bearer(token))


def test_recipe_asks_once_a_token(guarded, oidc):
    for _ in range(5):
        got = post(guarded, "token-ann")
        assert got.status == 200
    limit, left, _ = rates(got.headers, "requests")
    assert limit == 50 and left <= 46
    assert oidc.asked == ["token-ann"]
    post(guarded, "token-ben").is_refused(404, words.MODEL_NOT_FOUND)
    assert oidc.asked == ["token-ann", "token-ben"]


def test_recipe_refuses_strangers_in_the_protocols_form(guarded, oidc):
    for _ in range(3):
        post(guarded, "token-eve").is_refused(401, "invalid_api_key")
    post(guarded, "token-eve", MESSAGES, messages("hi len=2;")) \
        .is_anthropics(401, "authentication_error")
    ask(guarded.api, sse.CHAT, sse.chat("hi")).is_refused(
        401, "invalid_api_key")
    assert post(guarded, "token-ann").status == 200


def test_recipe_while_the_service_is_away(guarded, oidc):
    """Cached tokens stay valid for the cache's time; others are not
    accepted."""
    assert post(guarded, "token-ann").status == 200
    oidc.server.shutdown()
    oidc.server.server_close()
    try:
        assert post(guarded, "token-ann").status == 200
        got = post(guarded, "token-ben")
        assert got.status >= 500 and json.loads(got.body)["error"]
    finally:
        oidc.server.shutdown = oidc.server.server_close = lambda: None


def test_token_reaches_no_engine(guarded, oidc, cluster):
    assert post(guarded, "token-ann").status == 200
    wait_for(lambda: cluster.engines["e1"].events("request", sse.CHAT),
             "the request")
    assert "token-ann" not in cluster.engines["e1"].log.read_text()
