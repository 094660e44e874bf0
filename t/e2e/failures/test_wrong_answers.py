"""Replicas whose answers are too long, too short, not valid text, or do not
answer the request."""

import contextlib
import itertools

import grpc
import pytest

from llmgw.engine.scripted import Target, scripted
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc

LATE = "llmgw_breaker cooldown=60s;"

# What a wrongly deployed replica answers.
CODES = ["UNIMPLEMENTED",
         pytest.param("UNAUTHENTICATED", marks=pytest.mark.soak)]


@pytest.fixture
def engine(cluster):
    """engine(generate): a replica whose answers a test writes."""
    with contextlib.ExitStack() as stack:
        def make(generate):
            port = cluster.ports.take()
            stack.enter_context(scripted(port, generate))
            return Target(port)
        yield make


def token(text, is_final=False):
    return rpc.pb.GenerateResponse(token=text, is_final=is_final)


def rest(request, context):
    """The tokens of a good replica: t0 t1 t2 ..."""
    for i in range(request.tokens_already_generated, request.max_tokens):
        yield token(f"t{i} ", i + 1 == request.max_tokens)


def refuse(code):
    def generate(request, context):
        context.abort(grpc.StatusCode[code], "not here")
        yield
    return generate


def failures(nginx, replica):
    return nginx.replicas()[replica.target]["breaker"]["failures"]


def quiet(nginx):
    return all(r["breaker"]["state"] == "closed"
               and r["breaker"]["failures"] == 0
               for r in nginx.replicas().values())


# all tokens, but no final message

@pytest.mark.parametrize("end", [
    "OK", pytest.param("UNAVAILABLE", marks=pytest.mark.soak)])
def test_all_tokens_without_a_final_one_are_complete(engine, cluster, client,
                                                     end):
    """The client's stream still ends with a final message."""
    asked = []

    def generate(request, context):
        asked.append(request.tokens_already_generated)
        for i in range(3):
            yield token(f"t{i} ")
        if end != "OK":
            context.abort(grpc.StatusCode[end], "gone")

    nginx = cluster.static([engine(generate), engine(generate)])
    got = client(nginx).stream("x", 3)
    got.check(["t0 ", "t1 ", "t2 ", ""])
    assert asked == [0]
    assert quiet(nginx) == (end == "OK")


def test_final_message_of_its_own_is_passed_on(engine, cluster, client):
    def generate(request, context):
        yield from (token("a"), token("b"), token("", True))

    nginx = cluster.static([engine(generate)])
    client(nginx).stream("x", 2).check(["a", "b", ""])
    assert quiet(nginx)


@pytest.mark.parametrize("text", [
    "more ", pytest.param("", marks=pytest.mark.soak)])
def test_more_tokens_than_asked_for_are_cut_off(engine, cluster, client,
                                                text):
    sent = []

    def generate(request, context):
        for i in range(100000):
            sent.append(i)
            yield token(text)

    bad = engine(generate)
    nginx = cluster.static([bad])
    client(nginx).stream("x", 3).check([text] * 3 + [""])
    assert "cause malformed" in nginx.log()
    assert failures(nginx, bad) == 1
    assert nginx.in_flight() == 0
    assert len(sent) < 100000


# bytes that are not text

@pytest.mark.parametrize("text", [
    b"\xff", *(pytest.param(bad, marks=pytest.mark.soak)
              for bad in (b"\xc3(", b"ok \xed\xa0\x80", b"cut \xe2\x82"))])
def test_token_that_is_no_text_is_its_replicas_fault(engine, cluster, client,
                                                     text):
    """A client's decoder would fail with INTERNAL."""
    def generate(request, context):
        yield token("t0 ")
        yield b"\x0a" + bytes([len(text)]) + text

    nginx = cluster.static([engine(generate), engine(rest)])
    c, ids = client(nginx), itertools.count()

    def ask():
        got = c.stream(f"prompt {next(ids)}", 3)
        got.check(["t0 ", "t1 ", "t2 "])
        return "cause malformed" in nginx.log()

    wait_for(ask, "the replica to be asked")


@pytest.mark.soak
def test_text_of_all_planes_passes(engine, cluster, client):
    words = ["plain", "\u00e9\u00df", "\u20ac \u0000", "\U0001f600", "\ud7ff",
             "eight by" + "\u00e9" * 9]

    def generate(request, context):
        for i, word in enumerate(words):
            yield token(word, i + 1 == len(words))

    nginx = cluster.static([engine(generate)])
    client(nginx).stream("x", len(words)).check(words)


# a wrongly deployed replica

@pytest.mark.parametrize("code", CODES)
def test_misdeployed_replica_among_three_costs_no_request(engine, cluster,
                                                          client, code):
    bad, *good = engine(refuse(code)), engine(rest), engine(rest)
    nginx = cluster.static([bad, *good], pool=LATE)

    c, count = client(nginx), itertools.count()

    def ask():
        c.stream(f"{next(count)} prompt", 2).check(["t0 ", "t1 "])
        return nginx.replicas()[bad.target]["breaker"]["state"] == "open"

    wait_for(ask, "its circuit to open")
    for one in good:
        assert failures(nginx, one) == 0
    assert (f"answered {code} to a request that another one serves"
            in nginx.log())


@pytest.mark.soak
def test_misdeployed_replica_costs_no_stream_that_it_takes_over(
        engine, cluster, client):
    def breaks(request, context):
        if request.tokens_already_generated:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "not here")
        yield token("t0 ")
        context.abort(grpc.StatusCode.INTERNAL, "broken")

    nginx = cluster.static([engine(breaks), engine(breaks), engine(rest)],
                           pool="llmgw_breaker off;")
    c = client(nginx)
    for i in range(10):
        c.stream(f"{i}", 3).check(["t0 ", "t1 ", "t2 "])


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("n", [
    pytest.param(1, marks=pytest.mark.soak), 3])
def test_request_that_all_refuse_gets_their_answer(engine, cluster, client,
                                                   code, n):
    """Both replicas refuse, and neither failure is counted."""
    asked = []

    def refuses(request, context):
        asked.append(1)
        yield from refuse(code)(request, context)

    nginx = cluster.static([engine(refuses) for _ in range(n)])
    c = client(nginx)
    for i in range(20):
        got = c.stream(f"{i} prompt", 2)
        assert (got.code, got.details) == (code, "not here")
    assert len(asked) == 20 * min(n, 2)
    assert quiet(nginx)
    assert nginx.in_flight() == 0


@pytest.mark.soak
def test_requests_that_are_refused_beside_others_open_nothing(
        engine, cluster, client):
    """All replicas serve some requests, and refuse the same others."""
    def generate(request, context):
        yield from (refuse("UNIMPLEMENTED") if "bad" in request.prompt
                    else rest)(request, context)

    nginx = cluster.static([engine(generate) for _ in range(3)])
    c = client(nginx)
    for i in range(20):
        assert c.stream(f"{i} bad", 1).code == "UNIMPLEMENTED"
        c.stream(f"{i} good", 1).check(["t0 "])
    assert quiet(nginx)


def test_refused_request_waits_for_those_that_are_full(engine, cluster,
                                                       client):
    """The other replica is busy, so the request waits in the queue."""
    good = cluster.replica("good", token_delay="1ms")
    bad = engine(refuse("UNIMPLEMENTED"))
    nginx = cluster.nginx(f"llmgw_hash; server {bad.target};"
                          f" server {good.target} max_conns=1;")
    c = client(nginx)
    cluster.hold(1)
    first = c.start("holds it", 8)
    next(first)
    calls = [c.start(f"{i}", 1) for i in range(4)]
    wait_for(lambda: nginx.waiting() == 4, "all to wait")
    cluster.let_go()
    for call in calls:
        got = rpc.drain(call)
        assert got.code == "OK", (got.code, got.details)
    rpc.drain(first)
    assert nginx.in_flight() == 0
