"""A shard that lies: a gRPC proxy before a true one, and a TCP relay before
that.  It is honest until `lie` is one of LIES, and lies in what it says of
positions from `after` on.

    bad = BadShard(ports)           # members are told of bad.target
    bad.behind = shard.target
    bad.lie, bad.after = "nan", 20
"""

import concurrent.futures
import struct
import time

import grpc

from ..fleet.relay import Relay
from ..speak import rpc


def _floats(result, change):
    """The result with other numbers: change(list) changes them in place."""
    numbers = list(struct.unpack(f"<{len(result.data) // 4}f", result.data))
    change(numbers)
    result.data = struct.pack(f"<{len(numbers)}f", *numbers)


def _set(value):
    return lambda numbers: numbers.__setitem__(len(numbers) // 2, value)


def _scale(numbers):
    numbers[:] = [10_000 * x for x in numbers]


def _flip(result):
    """The lowest bit of one number's mantissa."""
    data = bytearray(result.data)
    data[len(data) // 8 * 4] ^= 1
    result.data = bytes(data)


def _shape(result):
    result.rows += 1


def _short(result):
    result.data = result.data[:-4]


def _position(result):
    result.position += 1


def _session(result):
    result.session += 1


def _chunks(result):
    result.chunks += 1


def _large(result):
    """One message, larger than the stream's whole window of 16 MiB."""
    result.data = bytes(17 << 20)


LATE_S = 2                  # twice what a fast shard has, replica/shard/flow

LIES = {
    "nan": lambda r: _floats(r, _set(float("nan"))),
    "inf": lambda r: _floats(r, _set(float("inf"))),
    "scaled": lambda r: _floats(r, _scale),
    "flipped": _flip,
    "rows": _shape,
    "short": _short,
    "position": _position,
    "session": _session,
    "chunks": _chunks,
    "window": _large,
    "twice": None,          # the result comes a second time
    "unknown": None,        # a message that nobody knows
    "silence": None,        # nothing more, not even Started
    "started": None,        # Started, and nothing more
    "trickle": None,        # one byte a second
    "late": None,           # no lie: the first result, LATE_S after Started
}


class BadShard:
    def __init__(self, ports):
        self.behind, self.lie, self.after = None, None, 0
        self.told = 0                       # lies
        self._server = grpc.server(
            concurrent.futures.ThreadPoolExecutor(64),
            options=[("grpc.so_reuseport", 0), *rpc.OPTIONS])
        self._server.add_generic_rpc_handlers([
            grpc.method_handlers_generic_handler("llmgateway.shard.Shard", {
                "Forward": grpc.stream_stream_rpc_method_handler(
                    self._forward)})])
        port = self._server.add_insecure_port(f"127.0.0.1:{ports.take()}")
        self._relay = Relay(ports, f"127.0.0.1:{port}")
        self.target = self._relay.target
        self._server.start()

    def close(self):
        self._relay.close()
        self._server.stop(0).wait()

    def _forward(self, requests, context):
        """Bytes in, bytes out: what nobody changes stays as it is."""
        behind = grpc.insecure_channel(self.behind, rpc.OPTIONS)
        try:
            call = behind.stream_stream(rpc.FORWARD)(requests)
            context.add_callback(call.cancel)
            for message in call:
                yield from self._say(message, context)
        except grpc.RpcError as e:
            if e.code() != grpc.StatusCode.CANCELLED:
                context.set_trailing_metadata(e.trailing_metadata() or ())
                context.abort(e.code(), e.details())
        finally:
            behind.close()

    def _say(self, message, context):
        reply = rpc.shard.Reply.FromString(message)
        kind = reply.WhichOneof("kind")
        said = getattr(reply, kind)
        if self.lie is None or kind not in ("started", "result") \
                or said.position < self.after:
            yield message
        elif kind == "started":
            yield from self._say_started(message)
        else:
            yield from self._say_result(message, reply, context)

    def _say_started(self, message):
        if self.lie == "silence":
            self.told += 1
        else:
            yield message

    def _say_result(self, message, reply, context):
        self.told += self.lie != "silence"
        if self.lie in ("silence", "started"):
            return
        if self.lie == "late" and self.told == 1:
            time.sleep(LATE_S)
        if self.lie == "trickle":
            time.sleep(0.1)                 # so that Started is through
            self._relay.slow()
        if self.lie == "unknown":
            yield b"\x7a\x00"               # field 15, which there is not
        elif LIES[self.lie]:
            LIES[self.lie](reply.result)
            yield reply.SerializeToString()
        else:
            yield from [message] * (2 if self.lie == "twice" else 1)
