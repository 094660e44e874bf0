"""OpenAI's API over engines that play a script: the request to the next
replica, and the client's answer."""

import contextlib
import json
import threading

import grpc
import pytest

from llmgw.engine.scripted import Script
from llmgw.fleet import words
from llmgw.speak import rpc, sse

N = 5
TEXT = [f" t{i}" for i in range(N)]
IDS = [1000 + i for i in range(N)]
LOST = grpc.StatusCode.UNAVAILABLE
SEEN = threading.Event()        # the client has an event
FINISH = [rpc.pb.Finish(index=0, reason="stop")]
USAGE = rpc.pb.Usage(prompt_tokens=3, completion_tokens=N)


def message(**fields):
    return rpc.pb.GenerateResponse(**fields)


def chunk(delta, **choice):
    """A chunk as adapters write it."""
    def made(request):
        o = request.openai
        return json.dumps({
            "id": o.id, "object": "chat.completion.chunk",
            "created": o.created, "model": o.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": None,
                         **choice}]}).encode()
    return made


def data(i, **fields):
    """Token i of a stream, in a chunk."""
    delta = {"content": TEXT[i], **({"role": "assistant"} if i == 0 else {})}
    return lambda request: message(data=chunk(delta)(request),
                                   token_ids=[IDS[i]], **fields)


def text(i):
    """The same where the front writes the chunk."""
    return message(token=TEXT[i], token_ids=[IDS[i]])


END = [message(finish=FINISH), message(usage=USAGE), message(is_final=True)]


@pytest.fixture
def play(cluster):
    """play(entry, ..., openai=lines) -> script, call(**body) -> Result

    call(seen=Event, ...) sets it once an event has come."""
    with contextlib.ExitStack() as stack:
        def make(*entries, openai=True):
            script = Script(entries)
            targets = stack.enter_context(script.serve(cluster.ports))
            nginx = cluster.static(targets, openai=openai)

            def call(seen=None, path=sse.CHAT, **body):
                with sse.Connection(nginx.api) as c:
                    r = c.request(path, sse.chat("hi", **body))
                    if seen:
                        r.wait_events(1)
                        seen.set()
                    return sse.result_of(r)
            return script, call
        yield make


def is_whole(got, stream):
    assert (got.text, got.finish_reason) == (["".join(TEXT)], ["stop"])
    assert (got.error, got.done, len(got.ids)) == (None, int(stream), 1)
    assert got.roles == 1
    return True


@pytest.mark.parametrize("at", [0, 3, N, pytest.param(
    1, marks=pytest.mark.soak)])
def test_stream_goes_on_by_ids(play, at):
    script, call = play([data(i) for i in range(at)] + [LOST],
                        [text(i) for i in range(at, N)] + END)
    assert is_whole(call(stream=True, stream_options={"include_usage": True}),
                    True)
    first, second = script.requests
    assert first.want == second.want == rpc.pb.WANT_IDS | rpc.pb.WANT_CHUNKS
    assert first.openai == second.openai
    assert second.tokens_already_generated == at
    assert second.HasField("delivered") == (at > 0)
    assert list(second.delivered.token_ids) == IDS[:at]


def test_stream_that_has_its_finish_is_complete(play):
    script, call = play([data(i) for i in range(N - 1)]
                        + [data(N - 1, finish=FINISH), LOST])
    got = call(stream=True)
    assert (got.text, got.done, got.error) == (["".join(TEXT)], 1, None)
    assert len(script.requests) == 1


@pytest.mark.parametrize("stream", [True, False])
def test_usage_is_counted_by_ids_or_left_out(play, stream):
    """The engine is lost between the last token and its usage."""
    make = data if stream else lambda i, **fields: message(
        token=TEXT[i], token_ids=[IDS[i]], **fields)
    prompt = rpc.pb.Prompt(tokens=3, hash=7)

    def without_ids(i, **fields):
        """As with stop strings: one message may have several tokens."""
        def made(request):
            m = message(token=TEXT[i], resume_by=rpc.pb.RESUME_TEXT, **fields)
            if stream:
                m.data = data(i)(request).data
            return m
        return made

    known = [make(0, prompt=prompt), *(make(i) for i in range(1, N - 1)),
             make(N - 1, finish=FINISH), LOST]
    unknown = [*(without_ids(i) for i in range(N - 1)),
               without_ids(N - 1, finish=FINISH), LOST]
    script, call = play(known, unknown)
    options = {"stream_options": {"include_usage": True}} if stream else {}

    got = call(stream=stream, **options)
    assert (got.text, got.error) == (["".join(TEXT)], None)
    assert (got.usage["prompt_tokens"], got.usage["completion_tokens"]) \
        == (3, N)

    got = call(stream=stream, **options)
    assert (got.text, got.error) == (["".join(TEXT)], None)
    assert got.usage is None and got.done == int(stream)
    assert len(script.requests) == 2


@pytest.mark.parametrize("entries, openai", [
    ([[data(0), lambda r: message(data=chunk({"tool_calls": []})(r),
                                  resume_by=rpc.pb.RESUME_NEVER), SEEN, LOST]],
     True),
    ([[data(0), data(1), SEEN, LOST]], "llmgw_resume off;"),
    ([[data(0), data(1), SEEN, LOST], [grpc.StatusCode.FAILED_PRECONDITION]],
     True),
])
def test_stream_that_cannot_go_on_ends_with_an_error(play, entries, openai):
    """Its first tokens have left by then: otherwise it would begin anew."""
    SEEN.clear()
    script, call = play(*entries, openai=openai)
    got = call(SEEN, stream=True)
    assert got.error["code"] == words.NOT_RESUMABLE
    assert (got.done, got.finish_reason) == (0, [None])
    assert "".join(TEXT).startswith(got.text[0]) and got.text[0]
    assert len(script.requests) == len(entries)


@pytest.mark.parametrize("stream", [True, False])
def test_refusal_of_the_engine_is_the_answer(play, stream):
    error = {"error": {"message": "too long", "code": "context_length"}}
    failure = rpc.pb.Failure(status=413,
                             body=json.dumps(error, indent=1).encode())
    script, call = play([message(failure=failure),
                         grpc.StatusCode.INVALID_ARGUMENT])
    got = call(stream=stream)
    assert (got.status, got.error["message"]) == (413, "too long")
    assert len(script.requests) == 1


@pytest.mark.parametrize("said, error", [
    ({"error": {"message": "too \"long\"", "code": "context_length"}},
     {"type": "request_too_large", "message": "too \"long\""}),
    ({"message": "too long", "object": "error"},
     {"type": "request_too_large", "message": "too long"}),
    ({"type": "error", "error": {"type": "its own", "message": "m", "x": 1}},
     {"type": "its own", "message": "m", "x": 1}),
    ("too long", {"type": "request_too_large", "message": '"too long"'})])
def test_refusal_of_messages_is_anthropics(play, said, error):
    failure = rpc.pb.Failure(status=413, body=json.dumps(said).encode())
    _, call = play([message(failure=failure),
                    grpc.StatusCode.INVALID_ARGUMENT])
    got = call(path="/v1/messages")
    assert (got.status, got.error) == (413, error)


def test_whole_answer_goes_on_by_ids(play):
    script, call = play([text(0), text(1), LOST],
                        [text(i) for i in range(2, N)] + END)
    got = call()
    assert (got.text, got.finish_reason) == (["".join(TEXT)], ["stop"])
    assert got.usage["completion_tokens"] == N
    assert script.requests[0].want == rpc.pb.WANT_IDS
    assert list(script.delivered(1).token_ids) == IDS[:2]


def raw(begin, end, **fields):
    body = json.dumps({
        "id": "of the engine", "object": "chat.completion", "created": 1,
        "model": "mock-model", "choices": [
            {"index": 0, "finish_reason": "stop",
             "message": {"role": "assistant", "content": "".join(TEXT)}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": N,
                  "total_tokens": 3 + N}}).encode()
    return message(raw=rpc.pb.Raw(data=body[begin:end], **fields))


@pytest.mark.parametrize("lost", [
    [raw(0, 40, status=200, content_type="application/json"), LOST],
    [message(token=TEXT[0], resume_by=rpc.pb.RESUME_NEVER), LOST]])
def test_whole_answer_that_cannot_go_on_begins_anew(play, lost):
    whole = [raw(0, 50, status=200, content_type="application/json"),
             raw(50, None), message(is_final=True)]
    script, call = play(lost, lost, whole)
    got = call()
    assert (got.text, got.finish_reason) == (["".join(TEXT)], ["stop"])
    for n in (0, 1, 2):
        assert script.delivered(n) is None
        assert script.requests[n].tokens_already_generated == 0


def test_answer_that_kills_every_engine_is_given_up(play):
    """8 failovers at most, though each attempt brought tokens."""
    script, call = play([message(token=TEXT[0]),
                         message(token=TEXT[1],
                                 resume_by=rpc.pb.RESUME_NEVER), LOST])
    got = call()
    assert (got.status, got.error["code"]) == (502, words.TRIES_EXHAUSTED)
    assert len(script.requests) == 9


@pytest.mark.soak
def test_text_of_the_prompt_goes_to_those_that_read_no_more(play):
    """Until a connection has shown that it reads an OpenAI request."""
    script, call = play([data(i) for i in range(N)] + END)
    for _ in range(5):
        call(stream=True)
    prompts = [request.prompt for request in script.requests]
    assert prompts[0] and prompts[-1] == ""
    assert all(request.openai.body for request in script.requests)
