"""A client of OpenAI's API over a raw socket, stricter than any SDK.

It takes HTTP/1.1 apart by itself, so that nothing is repaired on the way, and
notes when each event came.  `strict` is the framing that our front promises:
`data: ` with one line of JSON and a blank line, `: ping` with one newline in
between, nothing else.
"""

import dataclasses
import json
import re
import select
import socket
import ssl
import time

from ..proc.place import ENGINE_MODEL, IS_REAL
from ..proc.wait import PATIENCE, QUICK, Stopwatch

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"


class Broken(AssertionError):
    """What came is not what the protocol allows."""


class Connection:
    """takes: seconds between bytes, where the product's timers are longer
    than QUICK.  host: the client's own address.  tls: (a context, the server's
    name)."""

    def __init__(self, target, timeout=PATIENCE, takes=QUICK, host=None,
                 tls=None):
        name, _, port = target.rpartition(":")
        self.sock = socket.create_connection(
            (name, int(port)), timeout, (host, 0) if host else None)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.sock = tls[0].wrap_socket(self.sock, server_hostname=tls[1])
        self.buffer = b""
        self.ended = False
        self.takes = takes

    def send(self, raw):
        self.sock.sendall(raw)

    def request(self, path, body=None, method=None, headers=(), strict=True,
                type="application/json"):
        """body: an object or bytes.  Returns the Response to read."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        method = method or ("GET" if body is None else "POST")
        lines = [f"{method} {path} HTTP/1.1", "host: llm",
                 *(f"{k}: {v}" for k, v in dict(headers).items())]
        if body is not None:
            lines += [f"content-type: {type}",
                      f"content-length: {len(body)}"]
        self.send("\r\n".join([*lines, "", ""]).encode() + (body or b""))
        return Response(self, strict, method)

    def fill(self, deadline):
        """More bytes; False at the end of the connection."""
        left, watch = deadline - time.monotonic(), Stopwatch(self.takes)
        poll = select.poll()        # select() takes no descriptor over 1023
        poll.register(self.sock, select.POLLIN)
        if left <= 0 or not (self.has_read() or poll.poll(left * 1000)):
            raise TimeoutError(f"nothing came, so far: {self.buffer[-200:]!r}")
        watch.over("bytes")
        try:
            got = self.sock.recv(1 << 16)
        except ConnectionResetError:
            got = b""
        self.ended |= not got
        self.buffer += got
        return bool(got)

    def has_read(self):
        """Bytes that TLS has taken from the socket."""
        return isinstance(self.sock, ssl.SSLSocket) and self.sock.pending()

    def line(self, deadline):
        while b"\r\n" not in self.buffer:
            if not self.fill(deadline):
                raise Broken(f"end within a line: {self.buffer!r}")
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def close(self):
        self.sock.close()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                             b"\1\0\0\0\0\0\0\0")
        self.sock.close()

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@dataclasses.dataclass
class Event:
    data: str
    at: float
    name: str = None

    @property
    def json(self):
        return json.loads(self.data)


class Response:
    """Reads itself as it is asked to: head, events, the whole."""

    def __init__(self, connection, strict, method="GET"):
        self.connection, self.strict, self.method = connection, strict, method
        self.status = None
        self.headers = {}
        self.body = b""
        self.text = b""         # of the stream, what is no event yet
        self.events, self.comments = [], []
        self.complete = False   # the body has ended as HTTP says it ends
        self.broken = None      # or why not

    # HTTP

    def head(self, timeout=PATIENCE):
        if self.status is not None:
            return self
        deadline = time.monotonic() + timeout
        while True:
            line = self.connection.line(deadline)
            found = re.fullmatch(rb"HTTP/1\.1 (\d{3}) ?[^\r\n]*", line)
            if not found:
                raise Broken(f"no status line: {line!r}")
            headers = {}
            while line := self.connection.line(deadline):
                name, colon, value = line.partition(b":")
                if not colon or name != name.strip():
                    raise Broken(f"no header: {line!r}")
                headers[name.decode().lower()] = value.strip().decode()
            if int(found[1]) >= 200:
                break
        self.status, self.headers = int(found[1]), headers
        self.left = int(headers.get("content-length", -1))
        self.chunked = headers.get("transfer-encoding") == "chunked"
        if self.method == "HEAD" or self.status == 204 or self.left == 0:
            self.complete = True
        elif self.left < 0 and not self.chunked \
                and headers.get("connection") != "close":
            raise Broken(f"no end of the body is told: {headers}")
        return self

    def _more(self, deadline):
        """Some more of the body, as it comes; b"" at its end."""
        c = self.connection
        if self.complete:
            return b""
        if self.chunked and self.left <= 0:
            size = int(c.line(deadline), 16)
            if size == 0:
                while c.line(deadline):
                    pass        # trailers
                self.complete = True
                return b""
            self.left = size
        if not c.buffer and not c.fill(deadline):
            if self.left < 0 and not self.chunked:
                self.complete = True
                return b""
            raise Broken("the connection ended within the body")
        take = len(c.buffer) if self.left < 0 else self.left
        got, c.buffer = c.buffer[:take], c.buffer[take:]
        if self.left >= 0:
            self.left -= len(got)
            if self.left == 0 and self.chunked:
                if c.line(deadline):
                    raise Broken("no newline behind a chunk")
            elif self.left == 0:
                self.complete = True
        return got

    def read(self, timeout=PATIENCE):
        """The whole body."""
        self.head(timeout)
        deadline = time.monotonic() + timeout
        while got := self._more(deadline):
            self.body += got
        return self.body

    def wait_bytes(self, n, timeout=PATIENCE):
        """So many of the body, at least."""
        self.head(timeout)
        deadline = time.monotonic() + timeout
        while len(self.body) < n and (got := self._more(deadline)):
            self.body += got
        return self.body

    @property
    def json(self):
        return json.loads(self.body)

    # events

    def wait_events(self, n=1, timeout=PATIENCE):
        """Reads until there are n events (None: to the end)."""
        return self._wait(self.events, n, timeout)

    def wait_comments(self, n=1, timeout=PATIENCE):
        """The same of comments."""
        return self._wait(self.comments, n, timeout)

    def _wait(self, found, n, timeout):
        self.head(timeout)
        deadline = time.monotonic() + timeout
        while not self.complete and (n is None or len(found) < n):
            try:
                got = self._more(deadline)
            except Broken as e:
                self.broken, self.complete = str(e), True
                break
            self.body += got
            self.text += got
            self._take_events()
        if self.complete and self.text.strip():
            self.broken = self.broken or f"half an event: {self.text!r}"
        return found

    def _take_events(self):
        take = self._strict_event if self.strict else self._any_event
        while take():
            pass

    def _strict_event(self):
        if self.text.startswith(b":"):
            line, newline, rest = self.text.partition(b"\n")
            if not newline:
                return False
            if line != b": ping":
                raise Broken(f"a comment of another kind: {line!r}")
            self.comments.append(time.monotonic())
            self.text = rest
            return True
        found = re.match(rb"data: ([^\r\n]+)\n\n", self.text)
        if not found:
            if self.text and not b"data: ".startswith(self.text[:6]) \
                    or b"\n\n" in self.text or b"\r" in self.text:
                raise Broken(f"no event of ours: {self.text[:200]!r}")
            return False
        self.text = self.text[found.end():]
        self.events.append(Event(found[1].decode(), time.monotonic()))
        return True

    def _any_event(self):
        """As the standard has it."""
        found = re.match(rb"(.*?(?:\r\n|\n|\r(?!\n)))(?:\r\n|\n|\r)",
                         self.text, re.S)
        if not found or self.text.endswith(b"\r") \
                and found.end() == len(self.text) and not self.complete \
                and b"\n" in self.text:
            return False
        self.text = self.text[found.end():]
        data, name = [], None
        for line in re.split(r"\r\n|\n|\r", found[1].decode()):
            field, _, value = line.partition(":")
            if field == "data":
                data.append(value.removeprefix(" "))
            elif field == "event":
                name = value.removeprefix(" ")
        if data:
            self.events.append(Event("\n".join(data), time.monotonic(), name))
        return True


@dataclasses.dataclass
class Result:
    """What a client has in the end; the drivers in t/openai/ say the same."""
    text: list = dataclasses.field(default_factory=list)    # of each choice
    reasoning: str = ""
    finish_reason: list = dataclasses.field(default_factory=list)
    usage: dict = None
    tool_calls: list = dataclasses.field(default_factory=list)
    logprobs: int = 0           # tokens that have one
    error: object = None
    status: int = None
    ids: list = dataclasses.field(default_factory=list)     # distinct ones
    roles: int = 0
    done: int = 0
    token_ids: list = dataclasses.field(default_factory=list)
    created: int = None

    def choice(self, index):
        while len(self.text) <= index:
            self.text.append("")
            self.finish_reason.append(None)


def call(target, path, body, timeout=PATIENCE, strict=True, headers=(),
         takes=QUICK):
    """A whole call on a connection of its own."""
    with Connection(target, takes=takes) as connection:
        response = connection.request(path, body, headers=headers,
                                      strict=strict)
        return result_of(response, timeout)


def result_of(response, timeout=PATIENCE):
    response.head(timeout)
    result = Result(status=response.status)
    if response.headers.get("content-type", "").startswith(
            "text/event-stream"):
        events = response.wait_events(None, timeout)
        for event in events:
            take_event(result, event, response.strict)
        if response.broken:
            result.error = result.error or response.broken
        elif not result.done and not result.error:
            result.error = "a clean end without [DONE]"
        return result
    whole = json.loads(response.read(timeout) or b"null")
    if response.status != 200 or not isinstance(whole, dict):
        result.error = (whole or {}).get("error", whole)
        return result
    return take_whole(result, whole)


def take_event(result, event, strict):
    if result.done:
        raise Broken(f"an event behind [DONE]: {event.data}")
    if event.data == "[DONE]":
        result.done += 1
        return
    chunk = event.json
    if chunk is None and not strict:
        return                  # llama-server: another prompt has begun
    if "error" in chunk:
        result.error = chunk["error"]
        return
    if strict and result.error:
        raise Broken(f"an event behind an error: {event.data}")
    if chunk["id"] not in result.ids:
        result.ids.append(chunk["id"])
    result.created = result.created or chunk["created"]
    if strict and chunk["created"] != result.created:
        raise Broken(f"created in another second than before: {chunk}")
    if chunk.get("usage"):
        result.usage = chunk["usage"]
    for choice in chunk["choices"]:
        take_choice(result, choice)


def take_choice(result, choice):
    index = choice["index"]
    result.choice(index)
    delta = choice.get("delta") or {"content": choice.get("text")}
    said = delta.get("content") or ""
    if result.finish_reason[index] and (said or choice["finish_reason"]):
        raise Broken(f"more behind a finish_reason: {choice}")
    result.text[index] += said
    result.reasoning += (delta.get("reasoning_content")
                         or delta.get("reasoning") or "")
    result.roles += bool(delta.get("role"))
    result.token_ids += choice.get("token_ids") or []
    result.finish_reason[index] = choice["finish_reason"] \
        or result.finish_reason[index]
    result.logprobs += count_logprobs(choice.get("logprobs"))
    for part in delta.get("tool_calls") or ():
        if part["index"] == len(result.tool_calls):
            result.tool_calls.append({"name": "", "arguments": ""})
        f = part["function"]
        mine = result.tool_calls[part["index"]]
        mine["name"] += f.get("name") or ""
        mine["arguments"] += f.get("arguments") or ""


def take_whole(result, whole):
    result.usage = whole.get("usage")
    result.ids = [whole.get("id")]
    for choice in whole.get("choices", ()):
        result.choice(choice["index"])
        message = choice.get("message") or {"content": choice.get("text")}
        result.text[choice["index"]] = message.get("content") or ""
        result.reasoning += (message.get("reasoning_content")
                             or message.get("reasoning") or "")
        result.finish_reason[choice["index"]] = choice["finish_reason"]
        result.logprobs += count_logprobs(choice.get("logprobs"))
        result.roles += bool(message.get("role"))
        result.tool_calls += [
            {k: c["function"][k] for k in ("name", "arguments")}
            for c in message.get("tool_calls") or ()]
    return result


def count_logprobs(logprobs):
    if not logprobs:
        return 0
    return len(logprobs.get("content") or logprobs.get("tokens") or ())


# A real model says the same twice if it is greedy, and should not say much.
GREEDY = {"temperature": 0, "max_tokens": 40} if IS_REAL else {}


def chat(prompt, model=ENGINE_MODEL, **more):
    """The body of a chat request."""
    return {"model": model, "messages": [{"role": "user", "content": prompt}],
            **GREEDY, **more}


def text(prompt, model=ENGINE_MODEL, **more):
    return {"model": model, "prompt": prompt, **GREEDY, **more}
