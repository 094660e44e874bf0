"""Clients that ask all the time, and count what they get."""

import collections
import socket
import threading
import time

import grpc

from . import rpc, sse
from .keyfile import bearer

USAGE = {"stream_options": {"include_usage": True}}
PATIENT = 60            # seconds that a held stream is silent
PAUSE = .05             # behind an error


class Asker(threading.Thread):
    """One request after the other, each on a connection of its own, until
    stop().  whose: (name, key).  asks: [(path, more of the body)], of which it
    takes one after the other; one with max_tokens=None ends by itself.

    got: all tokens.  whole: (prompt, completion) of each answer that came
    whole, as its usage says.
    """

    def __init__(self, nginx, whose, asks, first=0, length=25):
        super().__init__(daemon=True)
        self.nginx, (self.name_, self.key) = nginx, whose
        self.asks, self.n, self.length = asks, first, length
        self.got, self.whole = 0, collections.Counter()
        self.errors = collections.Counter()
        self.going, self.connection = True, None
        self.start()

    def stop(self):
        """No further request."""
        self.going = False

    def abort(self):
        """Goes away from what it has asked, if it has."""
        c = self.connection
        if c:
            try:
                c.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def run(self):
        while self.going:
            self.n += 1
            path, more = self.asks[self.n % len(self.asks)]
            try:
                self.ask(path, self.body(path, more))
            except (OSError, sse.Broken) as e:
                self.errors[type(e).__name__] += 1
                time.sleep(PAUSE)

    def body(self, path, more):
        prompt = f"by={self.name_};plain=1;len={self.length + self.n % 40};"
        make = sse.chat if path.endswith(sse.CHAT) else sse.text
        more = {**more, **(USAGE if more.get("stream") else {})}
        return make(prompt, **{"max_tokens": 1000, **more})

    def ask(self, path, body):
        with sse.Connection(self.nginx.api, PATIENT, takes=PATIENT) as c:
            self.connection = c
            r = c.request(path, body, headers={
                "authorization": f"Bearer {self.key}",
                "x-request-id": "the-same"})
            try:
                got = sse.result_of(r, PATIENT)
            finally:
                self.connection = None
                if r.events:
                    self.got += sum(map(tokens_of, r.events))
        if got.error or not any(got.finish_reason):
            self.errors[str((got.error or {}).get("code"))
                        if isinstance(got.error, dict) else "broken"] += 1
            time.sleep(PAUSE)
            return
        used = got.usage
        if not r.events:
            self.got += used["completion_tokens"]
        self.whole[used["prompt_tokens"], used["completion_tokens"]] += 1


class InferAsker(threading.Thread):
    """The same over gRPC."""

    def __init__(self, nginx, whose, first=0):
        super().__init__(daemon=True)
        self.client = rpc.Client(nginx.target)
        self.name_, self.key = whose
        self.n, self.got, self.whole = first, 0, collections.Counter()
        self.errors = collections.Counter()
        self.going, self.call = True, None
        self.start()

    def stop(self):
        self.going = False

    def abort(self):
        call = self.call
        if call:
            call.cancel()

    def run(self):
        while self.going:
            self.n += 1
            length = 10 + self.n % 40
            self.call = self.client.start(
                f"{self.n} of {self.name_}", length, timeout=PATIENT,
                metadata=[*bearer(self.key), ("x-request-id", "the-same")])
            try:
                for _ in self.call:
                    self.got += 1
                self.whole[length] += 1
            except grpc.RpcError as e:
                self.errors[e.code().name] += 1
                time.sleep(PAUSE)
            self.call = None
        self.client.close()


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
