"""Clients that ask all the time, and count what they get."""

import collections
import socket
import ssl
import threading
import time

import grpc

from . import rpc, sse
from ..engine import model
from .keyfile import bearer

USAGE = {"stream_options": {"include_usage": True}}
PATIENT = 60            # seconds that a held stream is silent
PAUSE = .05             # behind an error
LENGTHS = 40            # prompts of one client, of as many lengths


class Asking(threading.Thread):
    """One request after the other, until stop().

    whose: (name, key).  tls: (the CA's file, the gateway's name) of a gateway
    that speaks it.

    got: all tokens.  errors: how requests ended that got no whole answer.
    wrong: (what was asked, what came) of answers that came whole and say
    something else than an undisturbed engine.
    """

    def __init__(self, nginx, whose, first=0, tls=None):
        super().__init__(daemon=True)
        self.nginx, (self.name_, self.key) = nginx, whose
        self.n, self.tls = first, tls
        self.got, self.whole = 0, collections.Counter()
        self.errors, self.wrong = collections.Counter(), []
        self.going = True
        self.may_ask, self.turn = threading.Event(), threading.Lock()
        self.may_ask.set()

    def stop(self):
        """No further request."""
        self.going = False
        self.may_ask.set()

    def rest(self):
        """No further request until go_on()."""
        self.may_ask.clear()

    def has_ended(self, seconds):
        """Of one that rests: what it had asked, within that time."""
        ended = self.turn.acquire(timeout=seconds)
        if ended:
            self.turn.release()
        return ended

    def go_on(self):
        self.may_ask.set()

    def run(self):
        while self.going:
            self.may_ask.wait()
            with self.turn:
                if self.going and self.may_ask.is_set():
                    self.n += 1
                    self.once()

    def failed(self, how):
        self.errors[how] += 1
        time.sleep(PAUSE)


class Asker(Asking):
    """Over OpenAI's API, each request on a connection of its own.  asks:
    [(path, more of the body)], of which it takes one after the other; one with
    max_tokens=None ends by itself.

    whole: (prompt, completion) of each answer that came whole, as its usage
    says.
    """

    strict = True

    def __init__(self, nginx, whose, asks, first=0, length=25, tls=None):
        super().__init__(nginx, whose, first, tls)
        self.asks, self.length = asks, length
        self.connection = None
        self.tls = tls and (ssl.create_default_context(cafile=tls[0]), tls[1])
        self.start()

    def abort(self):
        """Goes away from what it has asked, if it has."""
        c = self.connection
        if c:
            try:        # beneath TLS, which another thread reads
                socket.socket.shutdown(c.sock, socket.SHUT_RDWR)
            except OSError:
                pass

    def once(self):
        path, more = self.asks[self.n % len(self.asks)]
        try:
            self.ask(path, self.body(path, more))
        except (OSError, sse.Broken) as e:
            self.failed(type(e).__name__)

    def body(self, path, more):
        length = self.length + self.n % LENGTHS
        prompt = f"by={self.name_};plain=1;len={length};"
        make = sse.text if path.endswith(sse.TEXT) else sse.chat
        more = {**self.of_stream(more), **more}
        return make(prompt, **{"max_tokens": 1000, **more})

    def of_stream(self, more):
        return USAGE if more.get("stream") else {}

    def ask(self, path, body):
        with sse.Connection(self.nginx.api, PATIENT, takes=PATIENT,
                            tls=self.tls) as c:
            self.connection = c
            r = c.request(path, body, strict=self.strict, headers={
                "authorization": f"Bearer {self.key}",
                "x-request-id": "the-same"})
            try:
                self.take(body, r)
            finally:
                self.connection = None

    def take(self, body, r):
        try:
            got = sse.result_of(r, PATIENT)
        finally:
            if r.events:
                self.got += sum(map(tokens_of, r.events))
        if got.error or not any(got.finish_reason):
            return self.failed(code_of(got.error))
        used = got.usage
        if not r.events:
            self.got += used["completion_tokens"]
        self.whole[used["prompt_tokens"], used["completion_tokens"]] += 1
        self.compare(body, got.text)

    def compare(self, body, texts):
        if texts != [said(body, i) for i in range(body.get("n", 1))]:
            self.wrong.append((body, texts))


class MessagesAsker(Asker):
    """Over Anthropic's."""

    strict = False

    def of_stream(self, more):
        return {}

    def take(self, body, r):
        if not body.get("stream"):
            r.read(PATIENT)
            if r.status != 200:
                return self.failed(str(r.json["error"]["type"]))
            used, text = r.json["usage"], r.json["content"][0]["text"]
        else:
            events = r.wait_events(None, PATIENT)
            names = {e.name: e.json for e in events}
            if r.broken or "message_stop" not in names:
                return self.failed("broken")
            used = names["message_delta"]["usage"]
            text = "".join(e.json["delta"]["text"] for e in events
                           if e.name == "content_block_delta")
        self.got += used["output_tokens"]
        self.whole[None, used["output_tokens"]] += 1
        self.compare(body, [text])


class InferAsker(Asking):
    """Over gRPC.  expect(prompt, n): what is right, if that is known."""

    def __init__(self, nginx, whose, first=0, tls=None, expect=None):
        super().__init__(nginx, whose, first, tls)
        ca, name = tls or (None, None)
        self.client = rpc.Client(nginx.target, ca and ca.read_bytes(),
                                 name=name)
        self.expect, self.call = expect, None
        self.start()

    def abort(self):
        call = self.call
        if call:
            call.cancel()

    def run(self):
        super().run()
        self.client.close()

    @staticmethod
    def asks(name):
        """All (prompt, length) that one of this name asks."""
        return [(f"{n} of {name}", 10 + n) for n in range(LENGTHS)]

    def once(self):
        prompt, length = self.asks(self.name_)[self.n % LENGTHS]
        self.call = self.client.start(
            prompt, length, timeout=PATIENT,
            metadata=[*bearer(self.key), ("x-request-id", "the-same")])
        tokens = []
        try:
            for message in self.call:
                self.got += 1
                tokens.append(message.token)
            self.whole[length] += 1
            if self.expect and tokens != self.expect(prompt, length):
                self.wrong.append((prompt, tokens))
        except grpc.RpcError as e:
            self.failed(e.code().name)
        self.call = None


def said(body, choice):
    """What an undisturbed double says."""
    ids = (model.render(body["messages"]) if "messages" in body
           else [model.BOS, *model.encode(body["prompt"])])
    return model.decode(model.said(ids, choice=choice))


def code_of(error):
    return str(error.get("code")) if isinstance(error, dict) else "broken"


def tokens_of(event):
    """How many tokens an event certainly has."""
    if event.data == "[DONE]":
        return 0
    n = 0
    for choice in event.json.get("choices", ()):
        ids = choice.get("token_ids")
        said = choice.get("text") or (choice.get("delta") or {}).get("content")
        n += len(ids) if ids else bool(said)
    return n


def stop_all(askers):
    """Each ends what it has asked, and asks no more."""
    for one in askers:
        one.stop()
    for one in askers:
        one.join(PATIENT)
        assert not one.is_alive(), "a client that waits for ever"
