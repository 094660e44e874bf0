"""Workers that are killed, over and over, at any instruction: what they held is
freed, no request hangs because of them, and the pool has its capacity.

LLMGW_KILL_SECONDS says for how long they are killed (60 for the long one).
"""

import os
import signal
import time

import pytest

from llmgw.proc.place import SLOW
from llmgw.proc.seed import rng
from llmgw.proc.shm import Memory
from llmgw.proc.wait import never, wait_for

SECONDS = float(os.environ.get("LLMGW_KILL_SECONDS", 4))
REPLICAS, CAPACITY = 3, 2
JOBS = [[f"prompt {i}", 10 + i % 5] for i in range(40)]


def fleet(cluster, workers):
    cluster.allowed += ["exited on signal 9", "was locked by"]
    return cluster.fleet(
        REPLICAS, replica={"token_delay": "5ms", "max_capacity": CAPACITY},
        nginx={"workers": workers, "pool": "llmgw_queue 100 timeout=2s;"})


class Reaper:
    """Kills a worker every 100 ms; stops some for a while before."""

    def __init__(self, nginx, rng, stops):
        self.nginx, self.rng, self.stops = nginx, rng, stops
        self.stopped = {}           # pid -> when it goes on
        self.killed = 0

    def send(self, pid, number):
        """To a worker of this nginx alone."""
        if pid not in self.nginx.workers():
            return
        try:
            os.kill(pid, number)
            self.killed += number == signal.SIGKILL
        except ProcessLookupError:
            pass

    def thaw(self, everybody=False):
        now = time.monotonic()
        for pid, when in list(self.stopped.items()):
            if everybody or when <= now:
                del self.stopped[pid]
                self.send(pid, signal.SIGCONT)

    def strike(self):
        self.thaw()
        pid = self.rng.choice(self.nginx.workers() or [0])
        if self.stops and self.rng.random() < 0.4:
            self.stopped[pid] = time.monotonic() + self.rng.uniform(0.02, 0.4)
            self.send(pid, signal.SIGSTOP)
        else:
            self.send(pid, signal.SIGKILL)

    def run(self, seconds, killed):
        """So long at least, and until so many are killed."""
        over = time.monotonic() + seconds
        late = over + 60 * SLOW
        try:
            while time.monotonic() < (over if self.killed >= killed else late):
                self.strike()
                time.sleep(0.1)
        finally:
            self.thaw(everybody=True)


def check_capacity(nginx, cluster, caller, expect):
    """As many as there are places for, at once, and one waits."""
    n = REPLICAS * CAPACITY
    cluster.hold()
    callers = [caller(nginx).ask(f"after {i}", 20) for i in range(n)]
    wait_for(lambda: {r.stats().active_requests
                      for r in cluster.replicas.values()} == {CAPACITY},
             what="every place to be taken")
    assert nginx.in_flight() == n
    late = caller(nginx).ask("late", 3)
    wait_for(lambda: nginx.waiting() == 1, "one in the queue")
    cluster.let_go()
    for i, one in enumerate(callers):
        assert one.wait().tokens == expect(f"after {i}", 20)
    assert late.wait().tokens == expect("late", 3)


@pytest.mark.soak
@pytest.mark.parametrize("workers, stops", [(2, False), (4, True)])
def test_workers_killed_every_100_ms(cluster, load, caller, expect, workers,
                                     stops):
    nginx = fleet(cluster, workers)
    work = load(nginx, JOBS, connections=4, seconds=5,
                starts_per_second=100 / SLOW, until_told=True)
    reaper = Reaper(nginx, rng("killed workers"), stops)
    reaper.run(SECONDS * SLOW, killed=2 * SECONDS)
    work.stop()

    results = work.results()
    good = 0
    for got, (prompt, n) in zip(results, JOBS * (len(results) // 40 + 1)):
        assert got.tokens == expect(prompt, n)[:len(got.tokens)]
        if got.code == "OK":
            got.check(expect(prompt, n))
            good += 1
    print(f"{reaper.killed} killed, {good} of {len(results)} served")
    assert reaper.killed >= 2 * SECONDS
    assert good > 0.1 * len(results)

    wait_for(lambda: len(nginx.workers()) == workers, "every worker")
    wait_for(lambda: not nginx.counts(), "counts of zero", takes=4)
    check_capacity(nginx, cluster, caller, expect)
    wait_for(lambda: not nginx.counts(), "counts of zero")


# what a worker leaves that died with the lock

MAGIC = b"lmgwzone"


def test_who_locks_next_mends_what_a_dead_worker_left(cluster, caller,
                                                      expect):
    """A total that no share is behind of, and the word that says so."""
    nginx = fleet(cluster, 1)
    memory = Memory(nginx, MAGIC)
    admission = memory.word(memory.address + 16)
    slot = memory.word(admission + 32)
    memory.write(slot, "I", 99)
    assert nginx.in_flight() >= 99
    memory.write(admission, "I", 1)
    wait_for(lambda: not nginx.counts(), "counts of zero")
    assert nginx.log().count("totals and queue were rebuilt") == 1
    check_capacity(nginx, cluster, caller, expect)


def test_zone_of_another_layout_begins_at_zero(cluster, client, expect):
    nginx = fleet(cluster, 1)
    client(nginx).stream("before", 3).check(expect("before", 3))
    assert sum(r["attempts"] for r in nginx.replicas().values()) == 1
    nginx.reload()
    assert sum(r["attempts"] for r in nginx.replicas().values()) == 1
    assert "count from zero" not in nginx.log()

    memory = Memory(nginx, MAGIC)
    layout = memory.word(memory.address + 8)
    memory.write(memory.address + 8, "Q", layout + (1 << 48))
    nginx.reload()
    assert nginx.log().count("another layout, new workers count from zero") \
        == 1
    assert sum(r["attempts"] for r in nginx.replicas().values()) == 0
    client(nginx).stream("after", 3).check(expect("after", 3))
    nginx.reload()
    assert sum(r["attempts"] for r in nginx.replicas().values()) == 1


@pytest.mark.soak
def test_reload_that_failed_gives_no_zone_back(cluster, client, expect):
    """It would have made the zone anew; the one after it keeps the zone."""
    nginx = fleet(cluster, 1)
    cluster.allowed.append(r"\[emerg\].*/nowhere/")
    memory = Memory(nginx, MAGIC)
    layout = memory.word(memory.address + 8)
    memory.write(memory.address + 8, "Q", layout + (1 << 48))
    nginx.configure(server="access_log /nowhere/access.log;")
    nginx.proc.send(signal.SIGHUP)
    wait_for(lambda: "/nowhere/" in nginx.log(), "the refusal")
    memory.write(memory.address + 8, "Q", layout)
    nginx.configure(server="")
    nginx.reload()
    client(nginx).stream("after", 3).check(expect("after", 3))


def test_zone_of_another_size_begins_at_zero(cluster, client, expect):
    nginx = fleet(cluster, 1)
    client(nginx).stream("before", 3).check(expect("before", 3))
    nginx.configure(upstream=nginx.upstream + " llmgw_zone llmgw_llm:3m;")
    nginx.reload()
    assert nginx.log().count("another size, new workers count from zero") == 1
    assert sum(r["attempts"] for r in nginx.replicas().values()) == 0


# what is not known proves no death

def test_worker_whose_start_is_unknown_keeps_its_row(cluster, caller, expect):
    """As of one that had no descriptor left to read it when it began."""
    nginx = fleet(cluster, 1)
    cluster.hold(1)
    one = caller(nginx).ask("runs", 5).wait_first()
    assert nginx.pool()["streams"] == 1
    memory = Memory(nginx, MAGIC)
    rows = memory.word(memory.address + 24)
    pid, started = (memory.word(rows + i) for i in (0, 8))
    assert pid & 0xffffffff == nginx.workers()[0] and started
    memory.write(rows + 8, "Q", 0)
    never(lambda: nginx.pool()["streams"] != 1, 2.2, "the row given up")
    cluster.let_go()
    assert one.wait().tokens == expect("runs", 5)


def test_tokens_count_for_no_other_replica_in_the_same_slot(cluster, caller,
                                                            expect):
    """A worker that stood still for long goes on with a slot that is another
    one's: what it sends counts in the sum alone."""
    nginx = fleet(cluster, 1)
    cluster.hold(2)
    one = caller(nginx).ask("runs", 9).wait_first()

    def tokens():
        return (sum(r["tokens"] for r in nginx.replicas().values()),
                nginx.pool()["totals"]["tokens"])
    wait_for(lambda: tokens() == (2, 2), "two tokens")
    memory = Memory(nginx, MAGIC)
    admission = memory.word(memory.address + 16)
    slot, bytes_each = memory.word(admission + 32), memory.word(admission + 12)
    slot += next(i for i in range(REPLICAS)
                 if memory.word(slot + i * (bytes_each & 0xffffffff))
                 & 0xffffffff == 1) * (bytes_each & 0xffffffff)
    generation = memory.word(slot) >> 32
    memory.write(slot + 4, "I", generation + 1)
    cluster.hold(5)
    wait_for(lambda: tokens()[1] == 5, "three more")
    assert tokens() == (2, 5)
    memory.write(slot + 4, "I", generation)
    cluster.let_go()
    assert one.wait().tokens == expect("runs", 9)
