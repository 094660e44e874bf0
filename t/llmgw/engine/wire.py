"""uvicorn, the log, and events as bytes.

Each line of the log is a JSON object with `t`, seconds of the machine's
monotonic clock, and `event`:

    connect, close         a connection, `conn`
    request                its `id`, method, path, headers and body
    place                  a generation got its place, others wait
    disconnect             the client went away before the answer was complete
    end                    of a generation: `how`, `tokens`
"""

import asyncio
import json
import logging
import signal
import time
import zlib

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

SHAPES = ("bytes", "crlf", "cr", "comments", "fields", "multiline", "nospace",
          "big", "trailer", "1xx", "gzip", "silent", "empty")
BIG = 300_000


class Log:
    def __init__(self, path):
        self.file = open(path, "a", buffering=1)

    def __call__(self, event, **facts):
        self.file.write(json.dumps({"t": time.monotonic(), "event": event,
                                    **facts}) + "\n")


def protocol(engine):
    """uvicorn's, with the moments that ASGI does not show."""
    class Protocol(H11Protocol):
        def connection_made(self, transport):
            engine.connections += 1
            self.number, self.requests = engine.connections, 0
            super().connection_made(transport)
            engine.log("connect", conn=self.number)

        def connection_lost(self, exc):
            if self.cycle and not self.cycle.response_complete:
                engine.log("disconnect", conn=self.number,
                           id=getattr(self.cycle, "number", None))
            engine.log("close", conn=self.number)
            super().connection_lost(exc)
    return Protocol


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Refused(Exception):
    def __init__(self, status, body, headers=()):
        super().__init__(status)
        self.status, self.body, self.headers = status, body, headers


class Call:
    """One HTTP request and its answer."""

    def __init__(self, engine, scope, receive, send):
        self.engine, self.scope = engine, scope
        self.receive, self.send = receive, send
        self.cycle = send.__self__
        self.transport = self.cycle.transport
        self.method, self.path = scope["method"], scope["path"]
        self.headers = {k.decode(): v.decode("latin-1")
                        for k, v in scope["headers"]}
        self.body = b""

    async def read(self):
        engine, protocol = self.engine, self.transport.get_protocol()
        parts = []
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise asyncio.CancelledError
            parts.append(message["body"])
            if not message["more_body"]:
                break
        self.body = b"".join(parts)
        protocol.requests += 1
        if protocol.requests >= engine.dialect.requests_per_connection:
            self.cycle.keep_alive = False
        engine.requests += 1
        self.number = self.cycle.number = engine.requests
        engine.log("request", id=self.number, conn=protocol.number,
                   method=self.method, path=self.path,
                   headers=[[k.decode(), v.decode("latin-1")]
                            for k, v in self.scope["headers"]],
                   body=self.body.decode(errors="replace"))

    async def start(self, status, headers):
        await self.send({"type": "http.response.start", "status": status,
                         "headers": [(k.encode(), v.encode())
                                     for k, v in headers]})

    async def write(self, data, more=True):
        await self.send({"type": "http.response.body", "body": data,
                         "more_body": more})

    async def answer(self, status, body, kind="application/json", headers=()):
        if not isinstance(body, (bytes, str)):
            body = compact(body)
        if isinstance(body, str):
            body = body.encode(errors="replace")
        more = [] if self.cycle.keep_alive else [("connection", "close")]
        await self.start(status, [("content-type", kind),
                                  ("content-length", str(len(body))),
                                  *headers, *more])
        await self.write(body, more=False)

    async def until_gone(self):
        while (await self.receive())["type"] != "http.disconnect":
            pass


class Events:
    """A stream of events in the shape that the faults ask for."""

    def __init__(self, call, kind):
        self.call, self.kind = call, kind
        self.shape = call.engine.faults.shape
        self.sent = 0
        self.zip = zlib.compressobj(wbits=31) if self.shape == "gzip" else None

    async def begin(self):
        headers = [("content-type", self.kind)]
        if self.zip:
            headers.append(("content-encoding", "gzip"))
        if self.shape == "trailer":
            headers.append(("trailer", "x-checksum"))
        if self.shape == "1xx":
            self.call.transport.write(
                b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n"
                b"HTTP/1.1 102 Processing\r\n\r\n")
        await self.call.start(200, headers)

    async def send(self, data, name=None):
        """data: an object, or a string that goes out as it is."""
        if not isinstance(data, str):
            if self.shape == "big" and self.sent == 2:
                data = {**data, "padding": "x" * BIG}
            data = compact(data) if self.shape != "multiline" \
                else json.dumps(data, ensure_ascii=False, indent=1)
        self.sent += 1
        raw = self._encode(data, name)
        if self.zip:
            raw = self.zip.compress(raw) + self.zip.flush(zlib.Z_SYNC_FLUSH)
        if self.shape == "bytes":
            for n in range(len(raw)):
                await self.call.write(raw[n:n + 1])
        else:
            await self.call.write(raw)

    def _encode(self, data, name):
        colon = "data:" if self.shape == "nospace" else "data: "
        lines = [f"event: {name}"] if name else []
        if self.shape == "fields":
            lines += [f"id: {self.sent}", "retry: 10", "unknown: x"]
        lines += [colon + line for line in data.split("\n")]
        text = "\n".join(lines) + "\n\n"
        if self.shape == "comments":
            text = ": ping\n\n:\n" + text
        if self.shape in ("crlf", "cr"):
            text = text.replace("\n", "\r\n" if self.shape == "crlf" else "\r")
        return text.encode(errors="replace")

    async def end(self):
        if self.zip:
            await self.call.write(self.zip.flush())
        if self.shape == "trailer":
            self._end_with_trailer()
        else:
            await self.call.write(b"", more=False)

    def _end_with_trailer(self):
        cycle = self.call.cycle
        cycle.transport.write(cycle.conn.send(
            h11.EndOfMessage(headers=[("x-checksum", "none")])))
        cycle.response_complete = True
        cycle.message_event.set()
        cycle.on_response()


def serve(app, engine, host, port, tls, uds=None):
    logging.getLogger("uvicorn.error").addFilter(
        lambda record: not record.msg.startswith("ASGI callable returned"))
    config = uvicorn.Config(
        app, host=host, port=port, uds=uds, http=protocol(engine), ws="none",
        lifespan="off", log_level="warning", access_log=False, ssl_certfile=tls,
        timeout_keep_alive=engine.keep_alive)
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None   # SIGTERM ends it at once
    engine.server = server
    signal.signal(signal.SIGUSR1, lambda *_: engine.let_go())
    server.run()
