"""A session of Shard.Forward, as an orchestrator has it, message by message.

    f = facts(shard)                # of a Replica with --shard, once loaded
    s = Session(shard, f).open()
    s.step(0, rows=3)
    s.result()                      # its bytes
    s.end()                         # ("OK", None): status and llmgw-reason

As a program it opens sessions, has steps computed, and stays until it is
killed: TARGET FACTS N.
"""

import dataclasses
import json
import pathlib
import queue
import re
import struct
import sys
import time

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from llmgw.proc.wait import wait_for  # noqa: E402
from llmgw.speak import rpc  # noqa: E402

pb = rpc.shard
CHUNK, HEADER, TENSOR = 1 << 20, 4096, 64 << 20
MESSAGE = CHUNK + HEADER
ROWS, STEPS, SESSIONS, WINDOW = 32, 4, 64, 16 << 20
LOADED = re.compile(
    r'layers (\d+)-(\d+) of (\d+) of "([^"]+)" are loaded after \d+ ms: '
    r'(\d+) bytes with (\d+) sessions of (\d+) tokens, weights id (\w{64}), '
    r'numerics id "([^"]+)"')


@dataclasses.dataclass
class Facts:
    """As the shard logs them, and the width, which the test knows."""
    first: int
    last: int
    layers: int
    model: str
    bytes: int
    sessions: int
    context: int
    weights: str
    numerics: str
    width: int = 128

    @property
    def has_logits(self):
        return self.last + 1 == self.layers

    def request(self, session=7, **fields):
        return pb.Request(open=pb.Open(**{
            "session": session, "model": self.model,
            "weights_id": bytes.fromhex(self.weights),
            "first_layer": self.first, "last_layer": self.last,
            "numerics_id": self.numerics, "caller": "orch", **fields}))

    def step(self, session, position, rows=1, logits_rows=0, **fields):
        """Rows that differ, of the size that activations have."""
        at = position * self.width
        data = struct.pack(f"<{rows * self.width}f",
                           *((i * 7 % 61 - 30) / 30
                             for i in range(at, at + rows * self.width)))
        return pb.Request(step=pb.Step(**{
            "session": session, "position": position, "rows": rows,
            "logits_rows": logits_rows, "chunks": 1, "data": data, **fields}))


def facts(shard, width=128):
    """Once it is loaded for the first time."""
    got = wait_for(lambda: LOADED.search(shard.proc.text())
                   or not shard.proc.alive(), "the slice to load", takes=10)
    assert got is not True, shard.proc.text()
    numbers = [int(got[i]) for i in (1, 2, 3)]
    return Facts(*numbers, got[4], *(int(got[i]) for i in (5, 6, 7)),
                 got[8], got[9], width)


class Session:
    """channel: a Replica, or an rpc.Client."""

    def __init__(self, channel, facts, number=7):
        self.facts, self.number = facts, number
        self.requests = queue.SimpleQueue()
        client = getattr(channel, "client", channel)
        self.call = client.forward(iter(self.requests.get, None))

    def send(self, request):
        self.requests.put(request)
        return self

    def half_close(self):
        self.requests.put(None)
        return self

    def ask(self, **fields):
        """Sends an Open."""
        return self.send(self.facts.request(self.number, **fields))

    def open(self, **fields):
        self.ask(**fields)
        self.opened = self.reply("opened")
        return self

    def step(self, position, rows=1, logits_rows=0, **fields):
        return self.send(self.facts.step(self.number, position, rows,
                                         logits_rows, **fields))

    def reply(self, kind):
        """The next message, which has to be of this kind."""
        got = next(self.call)
        assert got.WhichOneof("kind") == kind, got
        return getattr(got, kind)

    def result(self):
        """(position, rows, data) of the next step."""
        started = self.reply("started")
        first = self.reply("result")
        assert first.position == started.position
        data = first.data
        for chunk in range(1, first.chunks):
            more = self.reply("result")
            assert (more.position, more.chunk) == (first.position, chunk)
            data += more.data
        return first.position, first.rows, data

    def close(self):
        return self.send(pb.Request(close=pb.Close(session=self.number)))

    def end(self):
        """(status, reason) once the stream has ended; the last message of
        one with a reason says it, too."""
        last = None
        try:
            for last in self.call:
                pass
        except grpc.RpcError:
            pass
        self.requests.put(None)
        reason = dict(self.call.trailing_metadata()).get("llmgw-reason")
        if reason:
            assert last.refused.reason == reason and last.refused.text, last
        return self.call.code().name, reason

    def cancel(self):
        self.call.cancel()
        self.requests.put(None)


def hold(target, facts, n):
    """Sessions with steps under way, until this process is killed."""
    client = rpc.Client(target)
    sessions = [Session(client, facts, i + 1).open() for i in range(n)]
    for s in sessions:
        for n in range(STEPS):
            s.step(n * ROWS, rows=ROWS, logits_rows=ROWS)
    for s in sessions:
        s.reply("started")
    print("open", flush=True)
    time.sleep(600)


if __name__ == "__main__":
    hold(sys.argv[1], Facts(**json.loads(sys.argv[2])), int(sys.argv[3]))
