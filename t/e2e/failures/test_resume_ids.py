"""Streams of real engines, which go on by what the client has: ids or text.

Both replicas play one script: the first call of a stream is its first entry,
the call that takes over the next one.  A script may send any message.
"""

import contextlib
import re
import threading

import grpc
import pytest

from llmgw.engine.scripted import Script
from llmgw.fleet import words
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc

N = 10
TEXT = [f" t{i}" for i in range(N)]
IDS = [1000 + i for i in range(N)]
HASH = 0xfedcba9876543210
LOG = ("log_format llmgw '$llmgw_resume $llmgw_failovers $llmgw_tokens"
       " $llmgw_reason'; access_log @dir@/vars.log llmgw;")


def message(**fields):
    return rpc.pb.GenerateResponse(**fields)


def token(i, **fields):
    """Token i; the first one has the facts of the prompt."""
    if i == 0:
        fields.setdefault("prompt", rpc.pb.Prompt(tokens=5, hash=HASH))
    return message(token=TEXT[i % N], token_ids=[IDS[i % N] + i // N],
                   **fields)


def tokens(begin=0, end=N):
    return [token(i) for i in range(begin, end)]


def plain(begin=0, end=N):
    return [message(token=TEXT[i], is_final=i == N - 1)
            for i in range(begin, end)]


END = [message(is_final=True)]


LOST = grpc.StatusCode.UNAVAILABLE


@pytest.fixture
def play(cluster, client):
    """play(script, ..., location=, http=) -> engine, nginx, call(n)."""
    with contextlib.ExitStack() as stack:
        def make(*scripts, http="", **options):
            engine = Script(scripts)
            targets = stack.enter_context(engine.serve(cluster.ports))
            nginx = cluster.static(
                targets, http=f"{LOG}\n    {http}",
                server="location = /metrics { llmgw_metrics; }", **options)
            return engine, nginx, client(nginx)
        yield make


def logged(nginx, n=1):
    """The last n streams' variables."""
    path = nginx.dir / "vars.log"

    def streams():
        lines = map(str.split, path.read_text().splitlines())
        return [words for words in lines if words[2] != "-"]
    return wait_for(lambda: len(got := streams()) >= n and got[-n:],
                    "the access log")


def metric(nginx, name, labels=""):
    """The sum of all rows with these labels."""
    rows = re.findall(rf"^{name}{{(.*)}} (.*)$",
                      nginx.get("/metrics")[1].decode(), re.M)
    assert rows, name
    return sum(float(value) for have, value in rows if labels in have)


def resumes(nginx):
    return {kind: metric(nginx, "llmgw_resumes_total", f'kind="{kind}"')
            for kind in ("position", "ids", "text")}


@pytest.mark.parametrize("at", [
    0, pytest.param(1, marks=pytest.mark.soak), 7,
    pytest.param(N - 1, marks=pytest.mark.soak)])
def test_next_replica_is_told_the_ids(play, at):
    engine, nginx, c = play(tokens(0, at) + [LOST], tokens(at) + END)
    got = c.stream("x", 50)
    assert (got.code, got.tokens) == ("OK", TEXT + [""])
    assert got.finals == [N]

    first, second = engine.requests
    assert first.want == second.want == rpc.pb.WANT_IDS
    assert not first.HasField("delivered")
    assert second.tokens_already_generated == at
    assert second.HasField("delivered") == (at > 0)
    assert list(second.delivered.token_ids) == IDS[:at]
    assert second.delivered.text == b""
    if at:
        assert (second.delivered.prompt_tokens,
                second.delivered.prompt_hash) == (5, HASH)
    kind = "ids" if at else "-"
    assert logged(nginx)[0] == [kind, str(int(at > 0)), str(N), "-"]


def test_stream_that_is_lost_again_and_again(play):
    engine, _, c = play(tokens(0, 3) + [LOST], [LOST], tokens(3, 6) + [LOST],
                        tokens(6) + END)
    assert c.stream("x", 50).tokens == TEXT + [""]
    told = [list(engine.delivered(n).token_ids) for n in (1, 2, 3)]
    assert told == [IDS[:3], IDS[:3], IDS[:6]]


@pytest.mark.soak
def test_message_of_several_tokens_and_of_one_without_text(play):
    engine, nginx, c = play(
        [message(token=" t0 t1", token_ids=IDS[:2]),
         message(token_ids=[IDS[2]]), LOST], END)
    got = c.stream("x", 50)
    assert (got.code, got.tokens) == ("OK", [" t0 t1", ""])
    assert list(engine.delivered(1).token_ids) == IDS[:3]
    assert logged(nginx)[0] == ["ids", "1", "3", "-"]


def test_lost_after_its_finish_it_is_complete(play):
    """5 of at most 50 tokens: the engine had said that it stopped."""
    finish = [rpc.pb.Finish(index=0, reason="stop")]
    engine, nginx, c = play(tokens(0, 4) + [token(4, finish=finish), LOST])
    got = c.stream("x", 50)
    assert (got.code, got.tokens, got.finals) == ("OK", TEXT[:5] + [""], [5])
    assert len(engine.requests) == 1
    assert logged(nginx)[0] == ["-", "0", "5", "-"]


def test_no_more_tokens_than_were_asked_for(play):
    """A message with two tokens where one is left."""
    engine, _, c = play(tokens(0, 3) + [message(token="ab",
                                                token_ids=IDS[3:5])],
                        [token(3), *END])
    got = c.stream("x", 4)
    assert (got.code, got.tokens) == ("OK", TEXT[:4] + [""])
    assert list(engine.delivered(1).token_ids) == IDS[:3]


NEVER = message(token=TEXT[2], token_ids=[IDS[2]],
                resume_by=rpc.pb.RESUME_NEVER)


@pytest.mark.parametrize("script, why", [
    ([*tokens(0, 2), NEVER, LOST], "what cannot be continued"),
    pytest.param([token(0), message(token=TEXT[1]), token(2), LOST],
                 "ids are not known", marks=pytest.mark.soak),
    pytest.param([token(0), token(1),
                  message(token=TEXT[2], token_ids=[IDS[2]],
                          resume_by=rpc.pb.RESUME_TEXT), LOST],
                 "ids are not known", marks=pytest.mark.soak),
])
def test_stream_that_cannot_go_on_breaks_off(play, script, why):
    engine, nginx, c = play(script)
    got = c.stream("x", 50)
    assert (got.code, got.tokens) == ("UNAVAILABLE", TEXT[:3])
    assert got.trailers[words.REASON] == words.NOT_RESUMABLE
    assert len(engine.requests) == 1
    assert logged(nginx)[0] == ["off", "0", "3", words.NOT_RESUMABLE]
    assert re.search(f"not resumable: .*{why}", nginx.log())
    assert not any(resumes(nginx).values())
    assert metric(nginx, "llmgw_requests_total",
                  'code="UNAVAILABLE",reason="not_resumable"') == 1


def test_off_resumes_plain_tokens_alone(play):
    engine, nginx, c = play(tokens(0, 3) + [LOST],
                            location="llmgw_resume off;")
    assert c.stream("x", 50).trailers[words.REASON] == words.NOT_RESUMABLE
    engine.entries = [plain(0, 3) + [LOST], plain(3)]
    engine.requests.clear()
    c.stream("x", N).check(TEXT)
    assert engine.requests[1].tokens_already_generated == 3
    assert engine.delivered(1) is None
    assert logged(nginx, 2)[1] == ["position", "1", str(N), "-"]
    assert resumes(nginx) == {"position": 1, "ids": 0, "text": 0}


def test_text_is_told_where_ids_are_not_enough(play):
    by_text = {"resume_by": rpc.pb.RESUME_TEXT}
    engine, nginx, c = play(
        [token(0), token(1, **by_text), token(2), LOST],
        [message(token=TEXT[3]), LOST], [message(token=TEXT[4]), *END],
        location="llmgw_resume text;")
    got = c.stream("x", 50)
    assert (got.code, got.tokens) == ("OK", TEXT[:5] + [""])
    assert engine.requests[0].want == rpc.pb.WANT_IDS | rpc.pb.WANT_TEXT
    for n, end in ((1, 3), (2, 4)):
        told = engine.delivered(n)
        assert told.text.decode() == "".join(TEXT[:end])
        assert not told.token_ids
    assert logged(nginx)[0][0] == "text"


def test_replica_that_cannot_go_on_ends_the_stream(play):
    """It is asked no further, and its circuit does not mind."""
    engine, nginx, c = play(tokens(0, 3) + [LOST],
                            [grpc.StatusCode.FAILED_PRECONDITION])
    got = c.stream("x", 50)
    assert (got.code, got.tokens) == ("UNAVAILABLE", TEXT[:3])
    assert got.trailers[words.REASON] == words.NOT_RESUMABLE
    assert len(engine.requests) == 2
    assert metric(nginx, "llmgw_attempts_failed_total") == 1


def test_same_refusal_of_a_fresh_request_is_passed_on(play):
    engine, _, c = play([grpc.StatusCode.FAILED_PRECONDITION])
    got = c.stream("x", 50)
    assert (got.code, got.details) == ("FAILED_PRECONDITION",
                                       "the engine's own words")
    assert len(engine.requests) == 1


@pytest.mark.parametrize("before", [
    [], pytest.param([message(progress=True)], marks=pytest.mark.soak)])
def test_failure_comes_with_the_status_that_is_passed_on(play, before):
    failure = message(failure=rpc.pb.Failure(status=422, body=b'{"a":\n1}'))
    engine, _, c = play(before + [failure,
                                  grpc.StatusCode.INVALID_ARGUMENT])
    got = c.stream("x", 50)
    assert (got.code, got.details) == ("INVALID_ARGUMENT",
                                       "the engine's own words")
    assert len(engine.requests) == 1


@pytest.mark.parametrize("bad", [
    message(failure=rpc.pb.Failure(status=422)),       # behind a token
    *(pytest.param(bad, marks=pytest.mark.soak) for bad in (
        message(raw=rpc.pb.Raw(status=200, data=b"{}")),    # not text
        b"\x0a\x02\xc3\x28\x22\x01\x05",                    # not UTF-8
        b"\x2a\x05cut"))
])
def test_message_that_breaks_a_rule_is_a_failure(play, bad):
    engine, nginx, c = play([token(0), bad, 1.0], tokens(1) + END)
    assert c.stream("x", 50).tokens == TEXT + [""]
    assert metric(nginx, "llmgw_attempts_failed_total",
                  'cause="malformed"') == 1


@pytest.mark.soak
def test_progress_is_no_silence(play):
    """Both timeouts are a second; the engine takes longer than that twice."""
    works = [.2, message(progress=True)] * 6
    engine, nginx, c = play(
        works + [token(0)] + works + tokens(1) + END,
        location="llmgw_first_token_timeout 1s;"
                 " llmgw_token_timeout 1s;")
    got = c.stream("x", 50, timeout=20)
    assert (got.code, got.tokens) == ("OK", TEXT + [""])
    assert len(engine.requests) == 1


@pytest.mark.soak
def test_facts_alone_win_no_hedge(play):
    usage = rpc.pb.Usage(prompt_tokens=5)
    over = threading.Event()
    engine, nginx, c = play(
        [message(usage=usage), message(progress=True), over],
        [.3, *tokens(), *END], pool="llmgw_hedge on;")
    got = c.stream("x", 50, hedge=True)
    over.set()
    assert (got.code, got.tokens) == ("OK", TEXT + [""])
    assert len(engine.requests) == 2
    assert metric(nginx, "llmgw_hedges_total") == 1


def test_memory_bounds_what_is_kept_and_comes_back(play):
    """200 ids do not fit into a quarter of it, 100 do, however often."""
    engine, nginx, c = play(tokens(0, 200) + [LOST],
                            http="llmgw_body_memory 4k;")
    got = c.stream("x", 500)
    assert (got.code, len(got.tokens)) == ("UNAVAILABLE", 200)
    assert got.trailers[words.REASON] == words.NOT_RESUMABLE
    assert nginx.log().count("cannot be resumed any more") == 1
    assert "not resumable: llmgw_body_memory was used up" in nginx.log()
    assert metric(nginx, "llmgw_body_refusals_total", 'what="delivered"') == 1

    for _ in range(5):
        engine.entries = [tokens(0, 100) + [LOST], END]
        engine.requests.clear()
        assert c.stream("x", 500).code == "OK"
        assert len(engine.delivered(1).token_ids) == 100

    over = threading.Event()
    engine.entries = [tokens(0, 100) + [over]]
    for _ in range(5):
        call = c.start("x", 500)
        for _ in range(100):
            next(call)
        call.cancel()

    wait_for(lambda: metric(nginx, "llmgw_streams") == 0,
             "the clients' streams to end")
    over.set()
    engine.entries = [tokens(0, 100) + [LOST], END]
    engine.requests.clear()
    assert c.stream("x", 500).code == "OK"
