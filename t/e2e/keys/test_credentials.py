"""Who comes in: each door, each way to show a key, and each that is wrong."""

import re
import time

import pytest

from llmgw.fleet.ways_in import DOORS
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc, sse
from llmgw.speak.keyfile import TAKEN, ask, basic, bearer, line

UNKNOWN = "sk-llmgw-" + "x" * 43
X = "x-api-key"


@pytest.fixture(scope="module")
def known(doors):
    """More keys, once the gateway has taken them."""
    made = {
        "alice": doors.key, "also alice": doors.keys.add("alice"),
        "bob": doors.keys.add("bob"),
        "expired": doors.keys.add("alice", "expires=2026-01-31T12:00Z"),
        "revoked": doors.keys.add("bob", "until=2026-01-31"),
    }
    wait_for(lambda: doors.openai(bearer(made["bob"])) == "served",
             "the file to be taken", TAKEN)
    return made


# how a key of alice's may be shown

def good(known):
    alice, other = known["alice"], known["also alice"]
    return {
        "Bearer": bearer(alice),
        "another key of the account": bearer(other),
        "bearer": [("authorization", f"bearer {alice}")],
        "x-api-key": [(X, alice)],
        "Basic": basic(alice),
        "Basic without a name": basic(alice, ""),
        "both ways": bearer(alice) + [(X, alice)],
        "two of one account": bearer(alice) + [(X, other)],
    }


# {what: (the headers, what the metric calls it)}

def bad(known):
    alice, bob = known["alice"], known["bob"]
    return {
        "none": ([], "missing"),
        "no key": ([("authorization", "Bearer")], "malformed"),
        "another scheme": ([("authorization", f"Token {alice}")], "malformed"),
        "no scheme": ([("authorization", alice)], "malformed"),
        "no base64": ([("authorization", "Basic !!!")], "malformed"),
        "Basic without a password":
            ([("authorization", "Basic YWxpY2U=")], "malformed"),
        "unknown": (bearer(UNKNOWN), "unknown"),
        "unknown x-api-key": ([(X, UNKNOWN)], "unknown"),
        "unknown, by Basic": (basic(UNKNOWN), "unknown"),
        "one character less": (bearer(alice[:-1]), "unknown"),
        "one character more": (bearer(alice + "A"), "unknown"),
        "its hash": (bearer(line(alice, "alice").split()[1]), "unknown"),
        "expired": (bearer(known["expired"]), "expired"),
        "revoked": ([(X, known["revoked"])], "expired"),
        "x-api-key twice": ([(X, alice)] * 2, "conflict"),
        "of two accounts": (bearer(alice) + [(X, bob)], "conflict"),
    }


def failures(doors):
    """{reason: how many}"""
    text = doors.nginx.get("/metrics")[1].decode()
    return {reason: int(n) for reason, n in re.findall(
        r'^llmgw_auth_failures_total\{[^}]*reason="(\w+)"[^}]*\} (\d+)$',
        text, re.M)}


@pytest.mark.parametrize("door", DOORS)
def test_each_door_opens_to_a_key(doors, known, door):
    for how, headers in good(known).items():
        assert getattr(doors, door)(headers) == "served", how


@pytest.mark.parametrize("door", DOORS)
def test_each_door_refuses_what_is_wrong(doors, known, door):
    for how, (headers, _) in bad(known).items():
        assert getattr(doors, door)(headers) == "invalid", how


def test_authorization_twice_is_no_request(doors, known):
    """nginx itself refuses it, before anything is known of the location."""
    two = bearer(known["alice"]) * 2
    got = ask(doors.nginx.api, sse.CHAT, sse.chat("hi"), two)
    assert got.status == 400 and got.error["type"] == "invalid_request_error"
    with rpc.Client(doors.nginx.target) as c:
        assert c.stream("hi", 2, metadata=two).code == "INVALID_ARGUMENT"


def test_each_refusal_is_counted_by_its_reason(doors, known):
    for how, (headers, reason) in bad(known).items():
        before = failures(doors)
        doors.openai(headers)
        after = failures(doors)
        assert {r: after[r] - before.get(r, 0) for r in after
                if after[r] != before.get(r, 0)} == {reason: 1}, how


def test_what_no_key_can_be_is_refused(doors, known):
    """Of any length and any byte, where HTTP lets it through."""
    for text in ("x" * 600, "x" * 3000, "\xff\xfe", known["alice"] + "\xa0",
                 "a" * 512, known["alice"] + "," + known["alice"], '"'):
        for headers in ([("authorization", f"Bearer {text}")], [(X, text)],
                        basic(text)):
            assert doors.openai(headers) == "invalid", headers


def test_all_reasons_are_there_from_the_start(doors):
    assert failures(doors).keys() == {"missing", "malformed", "unknown",
                                      "expired", "conflict"}


def test_no_byte_of_the_body_is_awaited(doors):
    for expect in ("", "expect: 100-continue\r\n"):
        with sse.Connection(doors.nginx.api) as c:
            c.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
                   b"content-type: application/json\r\n"
                   b"content-length: 1000000\r\n" + expect.encode() + b"\r\n")
            r = sse.Response(c, True, "POST")
            r.head()
        assert r.status == 401


def test_refused_request_costs_its_connection_nothing(doors, known):
    """A whole body after a wrong key: the next request is read correctly."""
    body = sse.chat("hi len=3;")
    with sse.Connection(doors.nginx.api) as c:
        for _ in range(3):
            r = c.request(sse.CHAT, body, headers=bearer(UNKNOWN))
            r.read()
            assert r.status == 401
            r = c.request(sse.CHAT, body, headers=bearer(known["alice"]))
            r.read()
            assert r.status == 200


# --- where no key is needed

def test_what_asks_no_engine_needs_no_key(cluster, keyfile):
    keyfile.add("alice")
    (cluster.dir / "page.txt").write_text("a page")
    nginx = cluster.engines_fleet(1, nginx={
        "http": keyfile.directive(), "server": """
        location /files/ { alias @dir@/../; }
        location = /word { return 200 "a word"; }
        location /open/ { llmgw_keys off; llmgw_openai llm; }
        location = /ready { llmgw_ready llm; }
        """})

    def status(path, body=None, method=None):
        return ask(nginx.api, path, body, method=method).status
    assert status("/files/page.txt") == 200
    assert status("/word") == 200
    assert status("/ready") == 200
    assert status("/status") == 200         # its own rule: this host
    assert status("/open/v1/chat/completions", sse.chat("hi len=2;")) == 200
    assert status(sse.CHAT, sse.chat("hi len=2;")) == 401
    assert status("/v1/models") == 401
    assert status("/v1/nothing") == 401
    assert status(sse.CHAT, method="OPTIONS") not in (401, 403)


def test_key_is_for_its_file(cluster, keyfile):
    """Two servers' locations with a file each."""
    other = type(keyfile)(cluster.dir, "others")
    alice, bob = keyfile.add("alice"), other.add("bob")
    nginx = cluster.engines_fleet(1, nginx={
        "http": keyfile.directive(), "server":
        f"location /b/ {{ {other.directive('others:1m')} llmgw_openai llm; }}"
    })

    def status(prefix, key):
        return ask(nginx.api, prefix + sse.CHAT, sse.chat("hi len=2;"),
                   bearer(key)).status
    assert [status("", alice), status("", bob)] == [200, 401]
    assert [status("/b", alice), status("/b", bob)] == [401, 200]


# --- what engines see

def test_engines_see_no_key(doors, known):
    """A native pass has all other headers, and these without a value."""
    alice = known["alice"]
    for headers in (bearer(alice), [(X, alice)], basic(alice)):
        more = [("x-kept", "yes")]
        doors.web.heard.clear()
        assert doors.http(headers + more) == "served"
        heard, = doors.web.heard
        assert heard["x-kept"] == "yes"
        assert not heard.get("authorization") and not heard.get(X)
        assert doors.generate(headers + more) == "served"
        told = [line for line in doors.py.proc.text().splitlines()
                if line.startswith("CALL ")][-1]
        assert '"yes"' in told and alice not in told
    engine = doors.shared.engines["e1"]
    assert doors.openai(bearer(alice)) == "served"
    assert alice not in engine.log.read_text()


# --- guesses

def lines(doors):
    """Of the error log, but for what nginx says of connections."""
    return sum("[info]" not in x for x in
               doors.nginx.error_log.read_text().splitlines())


def test_guesses_write_a_line_a_second(doors, known):
    """Each worker's line sums them up."""
    before, began = lines(doors), time.monotonic()
    with sse.Connection(doors.nginx.api) as c:
        for i in range(2000):
            r = c.request("/v1/models", headers=bearer(f"sk-guess-{i}"))
            r.read()
            assert r.status == 401
    seconds = time.monotonic() - began
    wait_for(lambda: lines(doors) > before, "a line")
    assert lines(doors) - before <= seconds + 2
    assert "sk-guess" not in doors.nginx.error_log.read_text()


@pytest.mark.soak
def test_50000_guesses_write_no_line_each(doors, known):
    before, began = lines(doors), time.monotonic()
    unknown = failures(doors)["unknown"]
    for k in range(50):
        with sse.Connection(doors.nginx.api) as c:
            for i in range(0, 1000, 50):        # pipelined
                c.send(b"".join(
                    b"GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization:"
                    b" Bearer sk-guess-%d-%d\r\n\r\n" % (k, i + j)
                    for j in range(50)))
                for _ in range(50):
                    r = sse.Response(c, True)
                    r.read()
                    assert r.status == 401
    assert failures(doors)["unknown"] - unknown == 50000
    assert lines(doors) - before <= time.monotonic() - began + 2
    assert doors.generate(bearer(known["alice"])) == "served"


def test_unknown_method_without_a_key(doors, known):
    """The answer does not list the methods."""
    with rpc.Client(doors.nginx.target) as c:
        got = c.raw([b""], "/llmgateway.InferenceGateway/Nothing")
        assert got.code == "UNAUTHENTICATED"
