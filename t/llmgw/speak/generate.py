"""Generate with a request of OpenAI's API, as a gateway asks a replica."""

import dataclasses
import json
import time

import grpc

from . import rpc
from .rpc import pb

APIS = {"chat": pb.API_CHAT, "text": pb.API_COMPLETIONS}


def members(body):
    """The body's bytes, and where its members stand in them."""
    raw, found = "{", []
    for key, value in body.items():
        begin = len(raw)
        raw += json.dumps(key) + ": "
        found.append(pb.Member(key=key, begin=begin, value=len(raw),
                               end=len(raw) + len(json.dumps(value))))
        raw += json.dumps(value) + ", "
    return (raw[:-2] + "}").encode(), found     # ASCII: bytes are characters


def request(body, api="chat", id="chatcmpl-1", delivered=None, already=0,
            want=None, **openai):
    """body: an object.  openai: further fields, `features` above all."""
    raw, found = members(body)
    stream = body.get("stream", False)
    if want is None:
        want = pb.WANT_IDS | pb.WANT_TEXT | (pb.WANT_CHUNKS if stream else 0)
    usage = body.get("stream_options", {}).get("include_usage", False)
    return pb.GenerateRequest(
        request_id="ask", want=want, tokens_already_generated=already,
        delivered=delivered, openai=pb.OpenaiRequest(
            api=APIS[api], body=raw, members=found, stream=stream,
            include_usage=usage, id=id, created=1, model=body["model"],
            max_tokens=body.get("max_tokens", 0), **openai))


@dataclasses.dataclass
class Answer:
    """What came of one call."""
    code: str = ""
    details: str = ""
    messages: list = dataclasses.field(default_factory=list)
    times: list = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    ended: float = 0.0          # of the clock of `times`
    trailers: dict = dataclasses.field(default_factory=dict)

    @property
    def text(self):
        return b"".join(m.token if isinstance(m.token, bytes)
                        else m.token.encode() for m in self.messages).decode()

    @property
    def ids(self):
        return [i for m in self.messages for i in m.token_ids]

    @property
    def finish(self):
        return {f.index: f.reason for m in self.messages for f in m.finish}

    @property
    def usage(self):
        got = [m.usage for m in self.messages if m.HasField("usage")]
        return (got[-1].prompt_tokens, got[-1].completion_tokens) \
            if got else None

    @property
    def whole(self):
        """It ended well, with the one message that says so."""
        return self.code == "OK" and [m.is_final for m in self.messages] == [
            False] * (len(self.messages) - 1) + [True]


def start(client, body, timeout=30, **options):
    """Starts a call and returns it."""
    call = client.channel.unary_stream(
        rpc.GENERATE, pb.GenerateRequest.SerializeToString,
        pb.GenerateResponse.FromString)
    return call(request(body, **options), timeout=timeout)


def drain(call, answer=None):
    """Reads a call to its end."""
    answer, begin = answer or Answer(), time.monotonic()
    try:
        for message in call:
            answer.messages.append(message)
            answer.times.append(time.monotonic())
    except grpc.RpcError:
        pass
    answer.code, answer.details = call.code().name, call.details()
    answer.trailers = dict(call.trailing_metadata() or ())
    answer.ended = time.monotonic()
    answer.seconds = answer.ended - begin
    return answer


def ask(client, body, **options):
    return drain(start(client, body, **options))
