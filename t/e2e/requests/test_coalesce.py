"""A busy worker reads its replicas at intervals; a calm worker, a prompt that
is still being sent, and the end of a connection do not wait for an interval.

Twenty streams with a token each 8 ms are 62 tokens in an interval of 25 ms:
twice what makes a worker busy, four times what keeps it busy.
"""

import os
import pathlib
import re
import signal
import socket
import struct
import threading
import time

import pytest

from llmgw.engine.scripted import scripted
from llmgw.fleet.nginx import listen
from llmgw.proc.place import SLOW
from llmgw.proc.process import pids_of_group
from llmgw.proc.wait import still, wait_for
from llmgw.speak import rawh2, rpc
from llmgw.speak.callers import finish, on_each_worker, read

STREAMS = 20
INTERVAL = 0.025
DELAY = {"token_delay": "8ms"}
COALESCE = "llmgw_coalesce 25ms;"


class Reads:
    """Counts a pool's reads and tokens since this object was made."""

    def __init__(self, nginx, pool="llm"):
        self.nginx, self.pool = nginx, pool
        self.before = self._now()

    def _now(self):
        totals = self.nginx.pool(self.pool)["totals"]
        return {**totals["reads"], "tokens": totals["tokens"]}

    def now(self):
        return {k: v - self.before[k] for k, v in self._now().items()}

    def wait(self, by, n):
        """Waits until there were that many; returns all counts."""
        wait_for(lambda: self.now()[by] >= n, f"{n} readings by {by}")
        return self.now()


def jobs(n, streams=STREAMS):
    return [[f"prompt {i}", n] for i in range(streams)]


def a_while(nginx, intervals, is_right, what):
    """Waits for so many intervals in a row of which the counts are right: a
    busy machine interrupts the stream of tokens now and then."""
    wait_for(lambda: is_right(Reads(nginx).wait("interval", intervals)), what)


def at_intervals(nginx, intervals=4):
    """Waits until the worker reads only at intervals, not by events."""
    a_while(nginx, intervals, lambda got: got["event"] == 0,
            "readings by interval alone")


def check(work, made, expect):
    results = work.results()
    for (prompt, n), got in zip(made, results):
        got.check(expect(prompt, n))
    return results


@pytest.fixture
def gateway(cluster):
    """n replicas behind a gateway that coalesces."""
    def make(n=1, replica=DELAY, coalesce=COALESCE, **options):
        replicas = [cluster.replica(f"r{i + 1}", **replica) for i in range(n)]
        return cluster.static(replicas, http=coalesce, **options)
    return make


@pytest.fixture
def busy(gateway, load):
    """busy(tokens): a gateway at intervals, its running load, the jobs."""
    def make(tokens, n=1, connections=2, **options):
        nginx = gateway(n, **options)
        made = jobs(2 * tokens)         # enough for a busy machine
        work = load(nginx, made, connections=connections)
        work.running()
        at_intervals(nginx)
        return nginx, work, made
    return make


@pytest.fixture
def hurry(cluster, expect):
    """hurry(work, made): its streams run to their ends, and are whole."""
    def run(work, made):
        for replica in cluster.replicas.values():
            if not replica.proc.told_to_end:
                replica.faults(token_delay_ms=0)
        return check(work, made, expect)
    return run


def busiest(cluster):
    return max((r for r in cluster.replicas.values() if r.proc.alive()),
               key=lambda r: r.stats().active_requests)


def idle(cluster, what="every stream to have ended"):
    wait_for(lambda: not any(r.stats().active_requests
                             for r in cluster.replicas.values()), what)


def test_busy_worker_reads_at_intervals(busy, hurry):
    nginx, work, made = busy(240)
    a_while(nginx, 10, lambda got: got["event"] <= got["interval"] / 5
            and got["tokens"] > 32 * got["interval"] / 2, "a busy worker")
    hurry(work, made)


@pytest.mark.soak
def test_streams_with_many_tokens_an_interval_are_busy(gateway, load, expect):
    """Six streams of 2 ms are 75 tokens in 25 ms: tokens count, not
    streams."""
    nginx = gateway(replica={"token_delay": "2ms"})
    made = jobs(1200, 6)
    work = load(nginx, made)
    work.running()
    at_intervals(nginx, 20)                     # two windows and more
    check(work, made, expect)


@pytest.mark.soak
def test_off_reads_by_events_alone(gateway, load, expect):
    nginx = gateway(coalesce="llmgw_coalesce off;")
    seen, made = Reads(nginx), jobs(150)
    check(load(nginx, made), made, expect)
    got = seen.now()
    assert got["interval"] == 0
    assert got["event"] > 25 / SLOW


@pytest.mark.soak
def test_calm_worker_reads_by_events_alone(gateway, client, expect):
    nginx = gateway()
    seen = Reads(nginx)
    client(nginx).stream("calm", 50).check(expect("calm", 50))
    assert seen.now()["interval"] == 0


def switches(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status,
                         re.M).group(1))


@pytest.mark.soak
def test_calm_comes_back_when_the_load_ends(busy, client, expect):
    """A single stream waits for no interval; without streams no timer runs."""
    nginx, work, made = busy(120)
    check(work, made, expect)
    c, worker = client(nginx), nginx.workers()[0]

    def alone():
        seen = Reads(nginx)
        c.stream("alone", 100).check(expect("alone", 100))
        got = seen.now()
        return got["interval"] == 0 and got
    got = wait_for(alone, "a stream without a reading by interval")
    assert got["event"] >= 15 / SLOW, got

    def at_rest():
        before = switches(worker)
        time.sleep(12 * INTERVAL)
        return switches(worker) - before < 6
    wait_for(at_rest, "rest")


@pytest.mark.soak
def test_killed_replica_is_noticed_by_an_event(busy, cluster, load, expect):
    nginx, work, made = busy(320, n=3, coalesce="llmgw_coalesce 100ms;")
    noticed = []
    for _ in range(2):      # one may die just while it is read at its interval
        at_intervals(nginx, 2)
        victim, seen = busiest(cluster), Reads(nginx)
        failures = nginx.pool()["totals"]["failures"]
        victim.kill()
        wait_for(lambda: nginx.pool()["totals"]["failures"] > failures,
                 "failures")
        noticed.append(seen.now()["event"])
    assert any(noticed), "found out by reading"
    results = check(work, made, expect)
    assert any(len(r.replicas) == 2 for r in results)


@pytest.mark.soak
def test_held_tokens_are_no_silence(busy, expect):
    """The token timeout is shorter than the interval, but a replica that sends
    is not silent.  If it were, three tries would end in half a second."""
    nginx, work, made = busy(240, coalesce="llmgw_coalesce 100ms;",
                             location="llmgw_token_timeout 95ms;")
    check(work, made, expect)


@pytest.mark.timed
def test_prompt_is_sent_as_its_windows_come(busy, client, expect):
    """Six megabytes are 92 windows; with one per interval they take 9 s."""
    nginx, work, made = busy(320, coalesce="llmgw_coalesce 100ms;")
    got = client(nginx).stream("long " * 1_200_000, 1)
    assert got.code == "OK", (got.code, got.details)
    assert got.seconds < 5 * SLOW
    at_intervals(nginx)
    check(work, made, expect)


@pytest.mark.soak
def test_coarse_clock_reads_by_events_alone(gateway, load, expect):
    """nginx updates its time, and so its timers, each 100 ms: too rarely."""
    nginx = gateway(main="timer_resolution 100ms;")
    seen, made = Reads(nginx), jobs(80)
    check(load(nginx, made), made, expect)
    assert seen.now()["interval"] == 0


@pytest.mark.soak
def test_stopped_replica_is_not_asked_at_intervals(busy, cluster, expect):
    nginx, work, made = busy(120)
    replica = cluster.replicas["r1"]
    replica.proc.freeze()
    seen = Reads(nginx)
    still(lambda: seen.now()["interval"], 3 * INTERVAL, 5)
    replica.proc.thaw()
    check(work, made, expect)


def test_drained_replica_hands_its_streams_on(cluster, busy, hurry):
    """What it sent last is read before its end."""
    nginx, work, made = busy(150, n=2, replica={**DELAY,
                                                "drain_timeout": "200ms"})
    drained = busiest(cluster)
    drained.proc.send(signal.SIGTERM)
    assert drained.proc.wait() == 0
    results = hurry(work, made)
    assert any(len(r.replicas) == 2 for r in results)
    assert nginx.pool()["totals"]["failures"] == 0


@pytest.mark.soak
def test_streams_end_behind_a_goaway(cluster, load):
    """An engine stops gracefully: streams that run there end there."""
    engine = cluster.pyreplica("p1", token_delay_ms=20)
    nginx = cluster.static([engine], http="llmgw_coalesce 50ms;")
    work = load(nginx, jobs(150))
    work.running()
    at_intervals(nginx)
    engine.proc.send(signal.SIGTERM)
    for got in work.results():
        assert (got.code, len(got.tokens)) == ("OK", 150)


class Wire:
    """A relay to a replica: passes whole frames; once broken, garbage too."""

    def __init__(self, cluster, replica):
        self.replica, self.broken = replica, threading.Event()
        self.port = cluster.ports.take()
        self.target = f"127.0.0.1:{self.port}"
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.replica.port))
            for job in (self._there, self._back):
                threading.Thread(target=job, args=(near, far),
                                 daemon=True).start()

    @staticmethod
    def _there(near, far):
        try:
            while data := near.recv(65536):
                far.sendall(data)
        except OSError:
            pass
        far.close()

    def _back(self, near, far):
        held = b""
        try:
            while data := far.recv(65536):
                held += data
                at = self._whole(held)
                near.sendall(held[:at])
                held = held[at:]
                if self.broken.is_set():
                    near.sendall(b"\xff" * 64)
        except OSError:
            pass

    @staticmethod
    def _whole(data):
        """The length of the whole frames at the beginning of the data."""
        at = 0
        while at + 9 <= len(data):
            size = int.from_bytes(data[at:at + 3], "big")
            if at + 9 + size > len(data):
                break
            at += 9 + size
        return at


@pytest.fixture
def wire(cluster):
    made = []

    def make(replica):
        made.append(Wire(cluster, replica))
        return made[-1]
    yield make
    for one in made:
        one.listener.close()


@pytest.mark.soak
def test_session_that_breaks_http2(cluster, wire, load, expect):
    a, b = (cluster.replica(id, **DELAY) for id in ("r1", "r2"))
    bad = wire(a)
    nginx = cluster.static([bad, b], http=COALESCE)
    made = jobs(300)
    work = load(nginx, made, connections=2)
    work.running()
    at_intervals(nginx)
    assert nginx.replicas()[bad.target]["in_flight"]
    bad.broken.set()
    results = check(work, made, expect)
    assert any(r.replicas == [bad.target, b.target] for r in results)


def running(nginx, h, n):
    """Starts streams of n tokens; returns once they are read at intervals."""
    sids = [rpc.ask(h, f"prompt {i}", n) for i in range(STREAMS)]
    over = threading.Event()

    def pump():
        while not over.is_set() and not h.closed:
            h.pump(0.02)
    thread = threading.Thread(target=pump, daemon=True)
    thread.start()
    try:
        at_intervals(nginx)
    finally:
        over.set()
        thread.join()
    return sids


@pytest.mark.parametrize("how", [
    "cancel", pytest.param("close", marks=pytest.mark.soak),
    pytest.param("reset", marks=pytest.mark.soak)])
def test_clients_go_away(cluster, gateway, client, expect, how):
    nginx = gateway()
    with rawh2.RawH2(nginx.target) as h:
        sids = running(nginx, h, 10_000)
        if how == "cancel":
            for sid in sids:
                h.cancel(sid)
        elif how == "reset":
            h.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                              struct.pack("ii", 1, 0))
        if how != "cancel":
            h.close()
        idle(cluster)
    assert nginx.counts() == {}
    client(nginx).stream("next", 5).check(expect("next", 5))


@pytest.mark.soak
def test_slow_client_beside_busy_ones(busy, expect):
    """Its streams run out of window, but get everything in the end."""
    nginx, work, made = busy(240)
    with rawh2.RawH2(nginx.target, window=500) as h:
        h.reading = False
        sids = [rpc.ask(h, f"slow {i}", 100) for i in range(3)]
        while any(len(h.answers[sid].data) < 450 for sid in sids):
            assert h.pump(10)
        at_intervals(nginx)
        h.resume()
        for i, sid in enumerate(sids):
            assert rpc.tokens(h.wait(sid, 60)) == expect(f"slow {i}", 100)
    check(work, made, expect)


def test_reload_lets_streams_end(busy, client, expect, hurry):
    nginx, work, made = busy(240)
    old = nginx.workers()
    nginx.reload()
    client(nginx).stream("new", 5).check(expect("new", 5))
    hurry(work, made)
    wait_for(lambda: not set(old) & set(nginx.workers()),
             "the old worker to go")


@pytest.mark.soak
def test_quit_lets_streams_end(busy, expect):
    nginx, work, made = busy(120)
    nginx.quit()
    check(work, made, expect)
    assert nginx.proc.wait(5) == 0
    assert pids_of_group(nginx.proc.pid) == []


@pytest.mark.soak
def test_fast_stop(busy):
    nginx, work, _ = busy(1000)
    nginx.proc.send(signal.SIGTERM)
    assert nginx.proc.wait(5) == 0
    assert all(r.code == "UNAVAILABLE" for r in work.results())


@pytest.mark.soak
def test_killed_worker(busy, cluster, client, expect):
    nginx, work, _ = busy(1000)
    cluster.allowed.append("exited on signal 9")
    worker = nginx.workers()[0]
    os.kill(worker, signal.SIGKILL)
    assert all(r.code != "OK" for r in work.results())
    wait_for(lambda: nginx.workers() not in ([], [worker]), "a new worker")
    seen = Reads(nginx)
    client(nginx).stream("next", 20).check(expect("next", 20))
    assert seen.now()["interval"] == 0
    idle(cluster)


SECOND = """{coalesce}

    upstream second {{
        llmgw_hash;
        server {target};
    }}

    server {{
        {listen}
        location / {{
            llmgw_pass second;
        }}
    }}"""


@pytest.fixture
def two_pools(cluster, load):
    """two_pools(target, interval): the first pool is read at intervals, the
    second pool's replica is at target; returns nginx, the target of the
    second pool's location, and the first pool's load and jobs."""
    def make(target, interval, tokens):
        port = cluster.ports.take()
        nginx = cluster.static(
            [cluster.replica("fast", **DELAY)],
            http=SECOND.format(coalesce=f"llmgw_coalesce {interval};",
                               target=target, listen=listen(port)))
        made = jobs(tokens)
        work = load(nginx, made, connections=2)
        work.running()
        at_intervals(nginx)
        return nginx, f"127.0.0.1:{port}", work, made
    return make


@pytest.mark.soak
def test_slow_replica_stays_with_events(cluster, two_pools, client, expect):
    """One token in three intervals: each is read when it comes."""
    slow = cluster.replica("slow", token_delay="75ms")
    nginx, target, work, made = two_pools(slow.target, "25ms", 480)
    start, result = time.monotonic(), rpc.Result()
    call = client(target).start("slow", 34)
    for _ in range(8):      # its first answers are close to each other
        result.add(next(call), start)
    seen = Reads(nginx, "second")
    rpc.drain(call, start, result).check(expect("slow", 34))
    got = seen.now()
    assert got["event"] >= 16 > got["interval"], got
    check(work, made, expect)


@pytest.mark.soak
def test_flood_is_not_held_back(cluster, two_pools, client):
    """Enough bytes to fill a read are an event: intervals limit no rate."""
    tokens, size = 800, 16 * 1024

    def generate(request, context):
        for i in range(tokens):
            yield rpc.pb.GenerateResponse(token=f"{i:8}" + "x" * size,
                                          is_final=i == tokens - 1)

    port = cluster.ports.take()
    with scripted(port, generate):
        nginx, target, work, _ = two_pools(f"127.0.0.1:{port}", "25ms", 800)
        seen = Reads(nginx, "second")
        got = client(target).stream("flood", tokens)
        assert [int(t[:8]) for t in got.tokens] == list(range(tokens))
        reads = seen.now()
        assert reads["interval"], "it was never held"
        assert reads["event"] > reads["interval"], reads
        # the most that an interval could bring is the stream's window
        assert tokens * size > 2 * 65536 * reads["interval"], reads
        work.proc.kill()


@pytest.mark.soak
def test_workers_are_busy_each_by_itself(gateway, caller, expect):
    """One worker reads at intervals; the other's stream waits for none."""
    nginx = gateway(workers=2)
    one, two = on_each_worker(nginx, STREAMS, caller)
    for i, c in enumerate(one):
        c.ask(f"prompt {i}", 400)

    def steady():
        seen = Reads(nginx)
        deadline = time.monotonic() + 5
        while seen.now()["interval"] < 4 and time.monotonic() < deadline:
            read(one, 0.02)
        return seen.now()["event"] == 0
    wait_for(steady, "readings by interval")
    seen = Reads(nginx)
    alone = two[0].ask("alone", 150)
    while alone.ended is None:
        read([*one, alone], 0.02)
    got = seen.now()
    assert alone.tokens == expect("alone", 150)
    assert got["event"] >= 150 / SLOW / 4, got
    assert got["interval"] >= 5, got
    finish(one, takes=5)
    for i, c in enumerate(one):
        assert c.tokens == expect(f"prompt {i}", 400)
