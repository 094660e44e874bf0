"""Talks to a replica of the engine `llama` as the gateway does."""

import dataclasses
import json
import threading

import grpc

from ..fleet import words
from ..proc import place
from ..speak import rpc

CHAT, COMPLETIONS = 0, 1
LOGPROBS = {"logprobs": True, "top_logprobs": 5}    # of a chat: long messages
IDS, TEXT, CHUNKS = 1, 2, 4         # Want
PLUGIN = place.BUILD / "llmgw-engine-llama.so"
MISSING = "needs the engine llama: run make llama"


def is_built():
    return PLUGIN.exists()


def chat(prompt, **more):
    """A body, with a temperature that makes each text another one."""
    return {"messages": [{"role": "user", "content": prompt}],
            "max_tokens": 40, **more}


def request(body, want=IDS | CHUNKS, stream=True, delivered=None, id="c-1"):
    """delivered: an Answer of whose ids a part is given, and their number."""
    made = rpc.pb.GenerateRequest(request_id=id, want=want)
    o = made.openai
    o.body, o.stream = json.dumps(body).encode(), stream
    o.api = CHAT if "messages" in body else COMPLETIONS
    o.id, o.created, o.model = id, 1700000000, "shown"
    o.max_tokens = body.get("max_tokens", 0)
    if delivered:
        before, n = delivered
        made.delivered.token_ids.extend(before.ids[:n])
        made.delivered.prompt_tokens = before.prompt.tokens
        made.delivered.prompt_hash = before.prompt.hash
        made.tokens_already_generated = n
    return made


def infer(prompt, n, already=0, want=0):
    return rpc.pb.GenerateRequest(request_id="i-1", prompt=prompt,
                                  max_tokens=n, want=want,
                                  tokens_already_generated=already)


@dataclasses.dataclass
class Answer:
    text: str = ""
    ids: list = dataclasses.field(default_factory=list)
    messages: list = dataclasses.field(default_factory=list)
    chunks: list = dataclasses.field(default_factory=list)
    raw: bytes = b""
    prompt: object = None
    finish: str = None
    usage: tuple = None
    failure: tuple = None
    code: str = ""
    details: str = ""
    reason: str = None      # llmgw-reason

    def take(self, m):
        assert not (self.messages and self.messages[-1].is_final), "a message"
        self.messages.append(m)
        self.text += m.token
        self.ids += m.token_ids
        self.raw += m.raw.data
        if m.data:
            self.chunks.append(json.loads(m.data))
        if m.HasField("prompt"):
            assert self.prompt is None
            self.prompt = m.prompt
        for finish in m.finish:
            assert self.finish is None and not m.is_final
            self.finish = finish.reason
        if m.HasField("usage"):
            self.usage = m.usage.prompt_tokens, m.usage.completion_tokens
        if m.HasField("failure"):
            self.failure = m.failure.status, json.loads(m.failure.body)

    def whole(self):
        assert self.code == "OK", (self.code, self.details, self.failure)
        assert self.messages[-1].is_final
        if self.ids:
            assert self.usage == (self.prompt.tokens, len(self.ids))
        return self

    def whole_rest(self, n):
        """The same of a stream that went on after n tokens."""
        assert self.code == "OK", (self.code, self.details, self.failure)
        assert self.messages[-1].is_final
        assert self.usage == (self.prompt.tokens, n + len(self.ids))
        return self

    def until(self, wish):
        """(ids, text) of the first messages: as many ids as wished for, or
        less, since a stream goes on between two messages."""
        n, text = 0, ""
        for m in self.messages:
            if n + len(m.token_ids) > wish:
                break
            n, text = n + len(m.token_ids), text + m.token
        return n, text

    def says(self):
        """What has to be equal where nothing may differ."""
        return self.text, self.ids, self.finish, self.usage


# Of a channel: a stream that nobody reads fills this window and what the
# replica may queue for it (replica/engine/run.h), and pauses.
HELD = {"grpc.http2.lookahead_bytes": 1024, "grpc.http2.bdp_probe": 0}


class Call:
    """One call to a replica, read by a thread of its own.

    hold: so many ids are read, and nothing more before go_on(), cancel() or
    end().  So a stream that asks for LOGPROBS stands still about a hundred
    tokens later, however long the test takes for what it does meanwhile.
    """

    def __init__(self, replica, message, hold=None):
        self.own = hold and rpc.Client(replica.target, **HELD)
        self.hold, self.free = hold, threading.Event()
        generate = (self.own or replica.client).channel.unary_stream(
            rpc.GENERATE, rpc.pb.GenerateRequest.SerializeToString,
            rpc.pb.GenerateResponse.FromString)
        self.call = generate(message, timeout=120, wait_for_ready=True)
        self.answer = Answer()
        self.began = threading.Event()      # or it has ended
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        try:
            for message in self.call:
                self.answer.take(message)
                self.began.set()
                if self.hold and len(self.answer.ids) >= self.hold:
                    self.free.wait()
                    self.free.clear()
        except grpc.RpcError:
            pass
        self.answer.code = self.call.code().name
        self.answer.details = self.call.details()
        self.answer.reason = dict(self.call.trailing_metadata() or ()).get(
            words.REASON)
        self.began.set()
        if self.own:
            self.own.close()

    def go_on(self, hold=None):
        """Reads on, up to so many ids; None: to the end."""
        self.hold = hold
        self.free.set()

    def cancel(self):
        self.call.cancel()
        self.end()

    def end(self):
        self.go_on()
        self.thread.join()
        return self.answer


def ask(replica, message):
    return Call(replica, message).end()
