"""At the grant the dead engine's memory is back: what gone means.

A killed engine gives several signs of its death, and only the last one says
that its memory is free: the end of its connections comes before, and so does
the end of its process, where a worker holds the memory.  Each attempt kills a
holder and looks at Shmem of /proc/meminfo at each sign.  That figure is the
whole machine's, so no other test may take or free shared memory meanwhile.  The
early signs are close together, so there are several attempts, of which one has
to show everything.

LLMGW_GONE_MB=2048 takes as much as an accelerator's share; 256 is the default.
"""

import json
import os
import select
import socket

import pytest

from llmgw.standby.group import Group
from llmgw.standby.lock import LockService

pytestmark = [pytest.mark.alone, pytest.mark.soak]

MB = int(os.environ.get("LLMGW_GONE_MB", 256))
ATTEMPTS = 6


def shmem_mb():
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) for line in lines
                    if line.startswith("Shmem:")) / 1024


class Signs:
    """Kills an engine and notes Shmem at each sign, as a fraction of what the
    engine had."""

    def __init__(self, group, engine):
        self.engine = engine
        self.at = {}
        self.poll = select.poll()
        self.peer = socket.create_connection(engine.target.split(":"))
        self.pidfd = os.pidfd_open(engine.proc.pid)
        self.next = socket.socket(socket.AF_UNIX)
        self.next.connect(group.service.socket)
        self.lines = self.next.makefile("rw")
        for fd in (self.peer, self.pidfd, self.next):
            self.poll.register(fd, select.POLLIN)
        self.say(cmd="acquire", group=group.name, engine="next", epoch=0,
                 nonce="0123456789abcdef", last_epoch=0,
                 waking_timeout_ms=60000)
        self.hear("queued")

    def say(self, **message):
        self.lines.write(json.dumps(message) + "\n")
        self.lines.flush()

    def hear(self, *types):
        message = json.loads(self.lines.readline())
        while message["type"] not in types:
            message = json.loads(self.lines.readline())
        return message

    def kill(self):
        self.had = shmem_mb()
        os.kill(self.engine.proc.pid, 9)
        while len(self.at) < 3:
            for fd, _ in self.poll.poll(10_000):
                self.note(fd)
        self.engine.proc.kill()         # collects it
        return self.at

    def note(self, fd):
        now = (shmem_mb() - (self.had - MB)) / MB
        if fd == self.pidfd:
            self.at["process"] = now
        elif fd == self.peer.fileno():
            self.at["connection"] = now
        else:
            self.heard(self.hear("offer", "granted", "ping"), now)
            return
        self.poll.unregister(fd)

    def heard(self, message, now):
        if message["type"] == "offer":
            self.say(cmd="take", epoch=message["epoch"])
        elif message["type"] == "granted":
            self.at["grant"] = now

    def close(self):
        self.say(cmd="release")
        self.lines.close()
        self.next.close()
        self.peer.close()
        os.close(self.pidfd)


@pytest.fixture
def attempts(cluster):
    """attempts(workers): of a killed engine, at each sign of its death, how
    much of its memory was still there."""
    service = LockService(cluster, fence="wait").start()    # pytest holds next

    def kill(i, workers):
        group = Group(cluster, f"g{i}", ids=[f"a{i}"], agents=False,
                      lock=service, engine="model", workers=workers,
                      model_memory=MB, model_memory_kind="shared").start()
        signs = Signs(group, group[f"a{i}"])
        try:
            return signs.kill()
        finally:
            signs.close()

    return lambda workers: (kill(i, workers) for i in range(ATTEMPTS))


def show(at):
    print(", ".join(f"{sign} {share:.2f}" for sign, share in at.items()))
    return at


def test_memory_of_a_worker_is_back_at_the_grant(attempts):
    """Neither the end of the connection nor that of the engine's own process
    says so."""
    for at in map(show, attempts(workers=1)):
        if (at["grant"] < 0.1 and at["process"] > 0.5
                and at["connection"] > 0.5):
            return
    raise AssertionError("no attempt showed it")


def test_memory_of_the_engine_itself_is_back_at_the_grant(attempts):
    """The end of its connection does not say so."""
    for at in map(show, attempts(workers=0)):
        if at["grant"] < 0.1 and at["connection"] > 0.1:
            return
    raise AssertionError("no attempt showed it")
