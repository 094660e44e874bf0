"""Requests while something happens to replicas: many short ones, a long one,
and a watch on which replica starts how many."""

import itertools
import threading
import time

import grpc

from . import rpc
from ..proc.place import SLOW
from ..proc.wait import wait_for

REQUESTS_PER_SECOND = 100
CLIENTS = 4


class Traffic:
    """Requests of 5 to 50 tokens at an even rate, until stopped."""

    def __init__(self, load, nginxes):
        self.jobs = [(f"prompt {i}", 5 + i * 7 % 46) for i in range(97)]
        rate = REQUESTS_PER_SECOND / len(nginxes) / SLOW
        self.parts = [load(nginx, self.jobs, connections=CLIENTS,
                           starts_per_second=rate, until_told=True)
                      for nginx in nginxes]

    def check(self, expect):
        """Checks that none failed and each is exact; returns their number."""
        n = 0
        for part in self.parts:
            part.stop()
        for part in self.parts:
            for result, job in zip(part.results(),
                                   itertools.cycle(self.jobs)):
                result.check(expect(*job))
                n += 1
        return n


class Watch:
    """How many streams each replica had started, each time it said that it
    is draining.  A drain may be over between two looks."""

    def __init__(self, fleet):
        self.going = True
        self.seen = {id: {} for id in fleet.members}
        self.threads = [
            threading.Thread(target=self._watch, daemon=True,
                             args=(self.seen[id], member.replica.client))
            for id, member in fleet.members.items()]
        for thread in self.threads:
            thread.start()

    def _watch(self, seen, client):
        while self.going:
            try:
                stats = client.unary(rpc.GET_STATS, rpc.pb.StatsRequest(),
                                     rpc.pb.Stats, timeout=2)
            except grpc.RpcError:
                continue                # it is being restarted
            if stats.draining:
                seen.setdefault(stats.model_version, []) \
                    .append(stats.started)
            time.sleep(0.005)

    def check(self):
        """Checks that none started anything while it was seen draining.  A
        drain takes a moment, and one or the other goes by unseen."""
        self.going = False
        for thread in self.threads:
            thread.join()
        assert any(self.seen.values()), "none was ever seen draining"
        for id, versions in self.seen.items():
            for version, started in versions.items():
                assert len(set(started)) == 1, (id, version, started)


class Stream:
    """A long request through a gateway, on a chosen replica, read in a
    thread.

    Those that come to other replicas run until one came to the right one: so
    it is found by the load as well as by the prompt.
    """

    def __init__(self, client, nginx, replica, tokens, timeout=600):
        elsewhere = []
        for i in itertools.count():
            self.prompt = f"long {i}"
            self.call = client(nginx).start(self.prompt, tokens,
                                            timeout=timeout)
            self.result, self.begun = rpc.Result(), time.monotonic()
            self.result.add(next(self.call), self.begun)
            if self.result.replicas == [replica]:
                break
            elsewhere.append(self.call)
        for call in elsewhere:
            call.cancel()
        self.thread = threading.Thread(
            target=rpc.drain, daemon=True,
            args=(self.call, self.begun, self.result, timeout))
        self.thread.start()

    def wait_tokens(self, n, timeout=30):
        """Waits for that many tokens more than there are."""
        upto = len(self.result.tokens) + n
        wait_for(lambda: len(self.result.tokens) >= upto
                 or not self.thread.is_alive(), f"{n} more tokens",
                 takes=timeout)
        assert not self.result.code, self.result

    def cancel(self):
        self.call.cancel()
        self.thread.join(10)

    def check(self, expect):
        """Checks that every token came, and each only once."""
        n = len(self.result.tokens)
        assert self.result.tokens == expect(self.prompt, n)

    def end(self, timeout=60):
        self.thread.join(timeout * SLOW)
        return self.result
