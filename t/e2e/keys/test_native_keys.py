"""Keys under grpc_pass and proxy_pass: what holds there, and what cannot."""

import threading

import pytest

from llmgw.fleet import words
from llmgw.fleet.books import records
from llmgw.proc.wait import wait_for
from llmgw.speak import rawh2, rpc
from llmgw.speak.keyfile import TAKEN, ask, bearer, rates

RATE, FORBIDS = "rate_limit_exceeded", "key_forbids"


def http(doors, key, **headers):
    return ask(doors.nginx.api, "/http/x", b"{}",
               bearer(key) + list(headers.items()))


def generate(doors, key, prompt="hi", n=2):
    with rpc.Client(doors.nginx.target) as c:
        return c.generate(prompt, n, metadata=bearer(key))


@pytest.fixture(scope="module")
def known(doors):
    made = {word.split("=")[0]: doors.keys.add(f"of{i}", word) for i, word in
            enumerate(("models=*", "tpm=1000000", "budget=1000000/month",
                       "rpm=2", "streams=1", "class=gold", "tenant=lab",
                       "expires=2099-01-01", "admin"))}
    made["all"] = doors.keys.add("free")
    wait_for(lambda: doors.openai(bearer(made["all"])) == "served",
             "the file to be taken", TAKEN)
    return made


@pytest.mark.parametrize("word", ["models", "tpm", "budget"])
def test_what_a_native_pass_cannot_hold_to_is_forbidden(doors, known, word):
    """It knows neither models nor tokens."""
    doors.web.heard.clear()
    got = http(doors, known[word])
    got.is_refused(403, FORBIDS)
    assert got.reason == FORBIDS
    got = generate(doors, known[word])
    assert got.code == "PERMISSION_DENIED"
    assert got.trailers[words.REASON] == FORBIDS
    assert not doors.web.heard
    assert doors.openai(bearer(known[word])) == \
        "served"                        # elsewhere the key is as good as any


@pytest.mark.parametrize("word", ["class", "tenant", "expires", "admin"])
def test_what_changes_nothing_for_it_is_served(doors, known, word):
    assert http(doors, known[word]).status == 200
    assert generate(doors, known[word]).code == "OK"


def test_rpm_holds(doors, known):
    key = known["rpm"]
    got = [http(doors, key) for _ in range(2)]
    assert [x.status for x in got] == [200] * 2
    assert rates(got[0].headers, "requests")[:2] == (2, 1)
    got = http(doors, key)
    got.is_refused(429, RATE)
    assert got.reason == RATE and 0 < got.retry_ms <= 30000
    got = generate(doors, key)
    assert got.code == "RESOURCE_EXHAUSTED"
    assert got.trailers[words.REASON] == RATE
    assert 0 < int(got.trailers["grpc-retry-pushback-ms"]) <= 30000


def test_streams_hold(doors, known):
    key, got = known["streams"], []
    doors.web.open.clear()
    try:
        thread = threading.Thread(
            target=lambda: got.append(http(doors, key)))
        thread.start()
        wait_for(lambda: doors.web.active == 1, "the first one")
        http(doors, key).is_refused(429, RATE)
        assert generate(doors, key).code == "RESOURCE_EXHAUSTED"
    finally:
        doors.web.open.set()
    thread.join()
    assert got[0].status == 200
    assert http(doors, key).status == 200


def test_form_is_that_of_the_content(doors, known):
    """gRPC's by its content type, and not by the path."""
    path = "/http/llmgateway.LLMReplica/Generate"
    ask(doors.nginx.api, path, b"{}").is_refused(401, "invalid_api_key")
    with rpc.Client(doors.nginx.target) as c:
        assert c.raw([b""], path).code == "UNAUTHENTICATED"


def test_options_reach_no_engines_generation(doors, known):
    """A preflight has no key, so nothing may be had by that method."""
    doors.web.heard.clear()
    body = rawh2.frame(rpc.pb.GenerateRequest(
        prompt="free", max_tokens=3).SerializeToString())
    calls = doors.py.proc.text().count("CALL ")
    for headers in ([], bearer(known["all"]), bearer("sk-unknown")):
        with rawh2.RawH2(doors.nginx.target) as h:
            sid = h.request(rpc.GENERATE, body, "OPTIONS", headers)
            assert not h.wait(sid).data
        ask(doors.nginx.api, "/http/x", headers=headers, method="OPTIONS")
    assert doors.py.proc.text().count("CALL ") == calls
    assert not any(h.get("authorization") for h in doors.web.heard)


def test_record_of_a_native_pass(doors, known):
    n = len(records_of(doors, "free"))
    assert generate(doors, known["all"]).code == "OK"
    wait_for(lambda: len(records_of(doors, "free")) == n + 1, "a record")
    r = records_of(doors, "free")[-1]
    assert (r["prompt_tokens"], r["completion_tokens"]) == (0, 0)
    assert r["replicas"] == [doors.py.target]


def records_of(doors, name):
    return [r for r in records(doors.log) if r["key"] == name]
