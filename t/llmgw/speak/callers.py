"""Single callers.  Each has its own connection, so that its worker is known;
all are read together, so that their order is known."""

import json
import time

from . import rawh2, rpc
from ..fleet import words
from ..proc.wait import QUICK, readable, wait_for


class Caller:
    """One request at a time on one connection."""

    def __init__(self, nginx):
        self.h = rawh2.RawH2(nginx.target)
        self.sid = None
        self.began = self.first = self.ended = None

    def close(self):
        self.h.close()

    def worker(self):
        """The pid of the worker that took this connection."""
        sid = self.h.request("/status", method="GET", content_type=None)
        return json.loads(bytes(self.h.wait(sid).data))["worker_pid"]

    def ask(self, prompt, max_tokens, timeout=None, **fields):
        message = rpc.pb.InferRequest(prompt=prompt, max_tokens=max_tokens,
                                      **fields)
        self.began = time.monotonic()
        self.first = self.ended = None
        self.sid = self.h.request(
            rpc.INFER, rawh2.frame(message.SerializeToString()),
            headers=[("grpc-timeout", timeout)] if timeout else ())
        return self

    def cancel(self):
        self.h.cancel(self.sid)

    @property
    def answer(self):
        return self.h.answers[self.sid]

    @property
    def status(self):
        return self.answer.grpc_status

    @property
    def reason(self):
        return self.answer.get(words.REASON)

    @property
    def messages(self):
        return [rpc.pb.InferResponse.FromString(m)
                for m in rawh2.unframe(self.answer.data)[0]]

    @property
    def tokens(self):
        return [m.token for m in self.messages]

    @property
    def seconds(self):
        return self.ended - self.began

    def take_in(self):
        """Reads what has come; the recorded times are those of reading."""
        self.h.pump(0.001)
        self._note(time.monotonic())

    def _note(self, now):
        if self.first is None and self.answer.data:
            self.first = now
        if self.ended is None and self.answer.ended:
            self.ended = now

    def wait(self, takes=QUICK):
        return finish([self], takes)[0]

    def wait_first(self, takes=QUICK):
        """Reads until its first token has come."""
        def has_token():
            self.take_in()
            assert self.first is not None or self.ended is None, \
                vars(self.answer)
            return self.first is not None
        wait_for(has_token, "a token", interval=0, takes=takes)
        return self


def read(callers, seconds):
    """Reads what comes to any of them within that many seconds."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        _look([c for c in callers if c.sid and c.ended is None], left)


def _look(callers, seconds):
    """Gives one time to all that one look finds.  When a caller has got its
    first token, all callers are read once more, since a token or an end that
    was sent earlier may have reached a caller after its turn.  So of two
    different times the later one was later, however slow this process is."""
    socks = {c.h.sock: c for c in callers}
    begun = None
    while begun != (begun := sum(bool(c.answer.data) for c in callers)):
        for sock in readable(socks, seconds):
            socks[sock].h.pump(0.001)
        seconds = 0
    now = time.monotonic()
    for one in callers:
        one._note(now)


def finish(callers, takes=QUICK):
    """Reads all of them to their end; returns them in the order of their
    first tokens, those without a token last.  Those that came in one look
    stay in their order here."""
    def all_ended():
        read(callers, 0.01)
        return all(c.ended is not None for c in callers)
    wait_for(all_ended, "the end of all callers", interval=0, takes=takes)
    return sorted(callers, key=lambda c: (c.first is None, c.first or 0))


def on_each_worker(nginx, n, caller=Caller):
    """[[n callers of one worker], [n of the next], ...]."""
    by_pid = {pid: [] for pid in nginx.workers()}
    spare = []

    def enough():
        one = caller(nginx)
        mine = by_pid[one.worker()]
        (mine if len(mine) < n else spare).append(one)
        return all(len(callers) == n for callers in by_pid.values())
    wait_for(enough, f"{n} connections of each worker", interval=0, takes=30)
    for one in spare:
        one.close()
    return list(by_pid.values())
