"""A full pool: which requests wait, in what order, how long; refusals.

Replicas are held (Cluster.hold()) while requests are put into the queue: what
fills the pool does not end meanwhile, however slow the machine is.
"""

import statistics
import threading
import time

import pytest

from llmgw.fleet import words
from llmgw.fleet.waiters import (TWO_WORKERS, busy, check, fill, fleet, held,
    line_up)
from llmgw.proc.place import SLOW
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc
from llmgw.speak.callers import finish, on_each_worker, read

DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNAVAILABLE = 4, 8, 14


class Sampler:
    """Calls functions all the time in a thread, and keeps their answers."""

    def __init__(self, *questions, pause=0.002):
        self.questions, self.pause = questions, pause
        self.samples = []       # [time, answer, answer, ...]
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.over.is_set():
            self.samples.append([time.monotonic(),
                                 *(q() for q in self.questions)])
            time.sleep(self.pause)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


# waves, order, refusals

@pytest.mark.soak
def test_8_requests_in_two_waves(cluster, caller, expect):
    nginx = fleet(cluster, 2, 2, pool="llmgw_queue 10;")
    first = held(cluster, caller, nginx, 4, 10)
    second = line_up(nginx, [caller(nginx) for _ in range(4)], 10)
    wait_for(lambda: {r.stats().active_requests
                      for r in cluster.replicas.values()} == {2},
             "two streams at each")
    cluster.let_go()
    finish(first + second)
    check(first, expect, [f"busy {i}" for i in range(4)], 10)
    check(second, expect, [f"waiter {i}" for i in range(4)], 10)
    # Each of the second has the place of one that had ended.
    stats = [r.stats() for r in cluster.replicas.values()]
    assert (sum(s.started for s in stats), sum(s.failed for s in stats)) \
        == (8, 0)


@pytest.mark.parametrize("workers", [
    pytest.param(1, marks=pytest.mark.soak), 2])
def test_20_at_once_are_served_queued_and_refused(cluster, load, expect,
                                                  workers):
    """No replica gives a token before the last one is refused."""
    nginx = fleet(cluster, 2, 2, pool="llmgw_queue size=10;", workers=workers)
    cluster.hold()
    jobs = [[f"prompt {i}", 5] for i in range(20)]
    work = load(nginx, jobs, connections=4)
    wait_for(lambda: refused(nginx) == 6, what="6 refusals")
    assert (nginx.in_flight(), nginx.waiting()) == (4, 10)
    cluster.let_go()
    results = work.results()
    bad = [got for got in results if got.code != "OK"]
    for (prompt, n), got in zip(jobs, results):
        if got.code == "OK":
            got.check(expect(prompt, n))
    assert [(got.code, got.trailers[words.REASON]) for got in bad] \
        == [("RESOURCE_EXHAUSTED", words.QUEUE_FULL)] * 6
    # Once a second for each worker, and they may take more than one.
    assert 1 <= nginx.log().count("replicas and queue are full") < 6


def refused(nginx):
    return sum(r["count"] for r in nginx.pool()["totals"]["requests"]
               if r["reason"] == words.QUEUE_FULL)


@pytest.mark.timed
@pytest.mark.alone
def test_refusal_is_quick_and_says_when_to_come_back(cluster, caller):
    nginx = fleet(cluster, 1, 1, pool="llmgw_queue 2;")
    held(cluster, caller, nginx, 1)
    waiters = line_up(nginx, [caller(nginx) for _ in range(2)], 1)
    took = []
    one_more = caller(nginx)
    for _ in range(20):
        one_more.ask("one too many", 2).wait()
        took.append(one_more.seconds)
        assert one_more.status == RESOURCE_EXHAUSTED
        assert one_more.reason == words.QUEUE_FULL
        assert int(one_more.answer.get("grpc-retry-pushback-ms")) >= 0
        assert not one_more.answer.data
    assert statistics.median(took) < 0.005 * SLOW, sorted(took)
    cluster.let_go()
    assert [w.status for w in finish(waiters)] == [0, 0]


@pytest.mark.soak
def test_first_come_first_served(cluster, caller, expect):
    nginx = fleet(cluster, 1, 1)
    held(cluster, caller, nginx, 1)
    waiters = line_up(nginx, [caller(nginx) for _ in range(8)], 3)
    cluster.let_go()
    assert finish(waiters) == waiters
    check(waiters, expect, [f"waiter {i}" for i in range(8)], 3)


@pytest.mark.soak
@pytest.mark.policies
def test_first_come_first_served_over_two_workers(cluster, caller, expect):
    nginx = fleet(cluster, 1, 1, "20ms", **TWO_WORKERS)
    a, b = on_each_worker(nginx, 5, caller)
    fill(cluster, nginx, [a[0]], 30)
    waiters = [a[1], b[0], b[1], a[2], b[2], a[3], a[4], b[3], b[4]]
    line_up(nginx, waiters, 3)
    cluster.let_go()
    assert finish(waiters) == waiters
    check(waiters, expect, [f"waiter {i}" for i in range(9)], 3)


@pytest.mark.soak
def test_nobody_overtakes_while_some_wait(cluster, caller):
    """A freed slot goes to the first in the queue, not to a newcomer, while
    newcomers come all the time."""
    nginx = fleet(cluster, 1, 1, "5ms", "llmgw_queue 40;", **TWO_WORKERS)
    a, b = on_each_worker(nginx, 12, caller)
    fill(cluster, nginx, [a[0]], 60)
    waiters = line_up(nginx, [c for both in zip(a[1:6], b[:5])
                              for c in both], 6)
    cluster.let_go()
    late = a[6:12] + b[5:12]
    for i, one in enumerate(late):
        one.ask(f"late {i}", 6)
        read(waiters + late, 0.007)
    order = finish(waiters + late)
    assert order[:10] == waiters
    assert {c.status for c in order} == {0}


@pytest.mark.timed
def test_queue_time_is_logged(cluster, caller):
    nginx = fleet(cluster, 1, 1, http="log_format q '$llmgw_queue_time';"
                  " access_log @dir@/queue.log q;")
    first, = held(cluster, caller, nginx, 1)
    waiter, = line_up(nginx, [caller(nginx)], 1)
    time.sleep(0.5)
    cluster.let_go()
    finish([first, waiter])
    log = nginx.dir / "queue.log"
    times = wait_for(lambda: len(got := sorted(
        float(x) for x in log.read_text().split() if x != "-")) == 2 and got,
        "two lines")
    assert times[0] <= first.first - first.began
    assert 0.4 < times[1] < waiter.first - waiter.began + 0.1


# leaving the queue

def test_deadline_ends_the_waiting(cluster, caller, expect):
    nginx = fleet(cluster, 1, 1)
    first = held(cluster, caller, nginx, 1)
    hasty, patient = line_up(nginx, [caller(nginx)], 2, timeout="500m") \
        + line_up(nginx, [caller(nginx)], 2)
    hasty.wait()
    assert hasty.status == DEADLINE_EXCEEDED
    assert nginx.waiting() == 1
    cluster.let_go()
    assert finish(first + [patient]) == first + [patient]
    assert patient.tokens == expect("waiter 0", 2)
    assert sum(r.stats().started for r in cluster.replicas.values()) == 2


@pytest.mark.soak
def test_deadline_that_passes_in_another_worker(cluster, caller):
    nginx = fleet(cluster, 1, 1, **TWO_WORKERS)
    (a,), (b,) = on_each_worker(nginx, 1, caller)
    fill(cluster, nginx, [a], 20)
    line_up(nginx, [b], 2, timeout="1S")
    assert b.wait().status == DEADLINE_EXCEEDED
    assert nginx.waiting() == 0
    cluster.let_go()
    assert a.wait().status == 0


@pytest.mark.parametrize("go", [
    "cancel", pytest.param("close", marks=pytest.mark.soak)])
def test_client_that_goes_leaves_the_queue(cluster, caller, expect, go):
    nginx = fleet(cluster, 1, 1)
    first = held(cluster, caller, nginx, 1)
    waiters = line_up(nginx, [caller(nginx) for _ in range(3)], 2)
    for one, left in (waiters[0], 2), (waiters[2], 1):
        getattr(one, go)()
        wait_for(lambda: nginx.waiting() == left, what=f"{left} in the queue")
    cluster.let_go()
    finish(first + [waiters[1]])
    assert waiters[1].tokens == expect("waiter 1", 2)
    assert sum(r.stats().started for r in cluster.replicas.values()) == 2


@pytest.mark.soak
def test_place_of_one_who_left_is_free(cluster, caller):
    nginx = fleet(cluster, 1, 1, pool="llmgw_queue 1;")
    held(cluster, caller, nginx, 1)
    waiter, = line_up(nginx, [caller(nginx)], 1)
    other = caller(nginx)
    assert other.ask("no", 1).wait().reason == words.QUEUE_FULL
    waiter.cancel()
    wait_for(lambda: nginx.waiting() == 0, what="an empty queue")
    line_up(nginx, [other], 1)
    cluster.let_go()
    assert other.wait().status == 0


def test_waiting_has_an_end(cluster, caller, expect):
    nginx = fleet(cluster, 1, 1, pool="llmgw_queue 10 timeout=500ms;")
    first = held(cluster, caller, nginx, 1)
    waiters = line_up(nginx, [caller(nginx) for _ in range(3)], 1)
    finish(waiters)
    for waiter in waiters:
        assert waiter.status == RESOURCE_EXHAUSTED
        assert waiter.reason == words.QUEUE_TIMEOUT
        assert int(waiter.answer.get("grpc-retry-pushback-ms")) >= 0
    assert nginx.waiting() == 0
    cluster.let_go()
    check(finish(first), expect, ["busy 0"], 20)


# slots become free

@pytest.mark.parametrize("how", [
    pytest.param("cancel", marks=pytest.mark.soak),
    pytest.param("kill", marks=pytest.mark.soak), "new"])
def test_waiter_is_served_when_room_is_made(cluster, caller, how):
    """After a cancel, the end of a client, the join of a replica."""
    nginx = fleet(cluster, 1, 1, **TWO_WORKERS)
    a, b = on_each_worker(nginx, 2, caller)
    cluster.hold(1)
    a[0].ask("busy", 400).wait_first()
    waiters = line_up(nginx, [b[0], a[1]], 2)
    if how == "new":
        cluster.pair("r2", token_delay="1ms", max_capacity=1)
    else:
        a[0].cancel() if how == "cancel" else a[0].close()
        cluster.let_go()
    assert finish(waiters) == waiters
    assert [w.status for w in waiters] == [0, 0]
    if how == "new":
        assert {m.replica_id for w in waiters for m in w.messages} == {"r2"}
        a[0].close()


@pytest.mark.soak
def test_waiters_of_a_pool_whose_only_replica_died(cluster, caller, expect):
    """They are refused, or served by one that comes back; none hangs."""
    nginx = fleet(cluster, 1, 1, pool="llmgw_queue timeout=10s;")
    first = held(cluster, caller, nginx, 1)
    waiters = line_up(nginx, [caller(nginx) for _ in range(3)], 2)
    cluster.replicas["r1"].kill()
    cluster.replicas["r1"].start()
    finish(first + waiters)
    for one in first + waiters:
        assert one.status in (0, 14), (one.status, one.reason)


@pytest.mark.soak
def test_capacity_is_never_oversold(cluster, load, expect):
    """The replicas have no limit of their own, and nginx two workers."""
    replicas = [cluster.replica(x, token_delay="5ms") for x in "ab"]
    nginx = cluster.nginx(
        "llmgw_hash;" + "".join(f" server {r.target} max_conns=2;"
                                for r in replicas), workers=2)
    jobs = [[f"prompt {i}", 6] for i in range(150)]
    with Sampler(lambda: [r.stats().active_requests
                          for r in replicas]) as sampler:
        results = load(nginx, jobs, connections=8).results()
    for (prompt, n), got in zip(jobs, results):
        got.check(expect(prompt, n))
    peaks = [max(s[1][k] for s in sampler.samples) for k in (0, 1)]
    assert peaks == [2, 2], peaks


def test_replica_that_is_fuller_than_it_seems(cluster, load, expect):
    """Another client uses its slots: it refuses, and the gateway waits."""
    replica = cluster.replica("a", token_delay="1ms", max_capacity=2)
    nginx = cluster.static([replica])
    cluster.hold(1)
    others = [replica.client.start(f"other {i}", 30, method=rpc.GENERATE)
              for i in range(2)]
    for call in others:
        next(call)
    jobs = [[f"prompt {i}", 3] for i in range(12)]
    work = load(nginx, jobs)
    wait_for(lambda: nginx.waiting() == len(jobs), "all to wait")
    cluster.let_go()
    results = work.results()
    for (prompt, n), got in zip(jobs, results):
        got.check(expect(prompt, n))
    assert all(len(list(call)) == 29 for call in others)


def longest(samples, is_bad):
    """The longest uninterrupted time for which is_bad(*answers) holds."""
    worst, since = 0, None
    for at, *answers in samples:
        if not is_bad(*answers):
            since = None
        elif since is None:
            since = at
        else:
            worst = max(worst, at - since)
    return worst


@pytest.mark.timed
@pytest.mark.alone
def test_two_gateways_share_a_replica(cluster, load, expect):
    """Neither knows the other's load; no request waits beside a free slot."""
    one = fleet(cluster, 1, 2, token_delay="20ms")
    agent = cluster.agent("gw2", "gateway")
    two = cluster.nginx(gateway=agent)
    wait_for(lambda: two.routable() == ["r1"], "r1 at the second gateway")
    replica = cluster.replicas["r1"]
    jobs = [[f"prompt {i}", 4] for i in range(30)]
    with Sampler(lambda: replica.stats().active_requests,
                 lambda: one.waiting() + two.waiting()) as sampler:
        works = [load(x, jobs, connections=2) for x in (one, two)]
        answers = [work.results() for work in works]
    for results in answers:
        for (prompt, n), got in zip(jobs, results):
            got.check(expect(prompt, n))
    idle = longest(sampler.samples, lambda active, waiting:
                   active < 2 and waiting > 0)
    assert idle < 1 * SLOW          # a lost wake-up costs 30 s
    assert max(s[1] for s in sampler.samples) == 2
    assert max(s[2] for s in sampler.samples) > 20


# the place of streams that were served before

def test_stream_that_lost_its_replica_goes_first(cluster, caller, expect):
    nginx = fleet(cluster, 2, 1)
    cluster.hold(5)
    streams = busy(caller, nginx, 2, 20)
    waiters = line_up(nginx, [caller(nginx) for _ in range(4)], 3)
    at = streams[0].messages[0].replica_id
    cluster.replicas[at].kill()
    wait_for(lambda: nginx.waiting() == 5, "the stream in the queue")
    streams[1].cancel()     # frees a slot at the other replica
    cluster.let_go()
    order = finish([streams[0]] + waiters)
    assert order[1:] == waiters         # by first token
    assert streams[0].tokens == expect("busy 0", 20)
    assert waiters[0].first >= streams[0].ended
    check(waiters, expect, [f"waiter {i}" for i in range(4)], 3)


@pytest.mark.soak
def test_stream_that_lost_its_replica_finds_a_full_queue(cluster, caller,
                                                         expect):
    """`size` limits only new requests."""
    nginx = fleet(cluster, 2, 1, pool="llmgw_queue 2;")
    cluster.hold(5)
    streams = busy(caller, nginx, 2, 20)
    waiters = line_up(nginx, [caller(nginx) for _ in range(2)], 2)
    cluster.replicas[streams[0].messages[0].replica_id].kill()
    wait_for(lambda: nginx.waiting() == 3, what="the stream in the queue")
    cluster.let_go()
    finish(streams + waiters)
    check(streams, expect, ["busy 0", "busy 1"], 20)
    check(waiters, expect, ["waiter 0", "waiter 1"], 2)


# a replica with free slots that fails requests

PATIENT = "llmgw_breaker min_requests=50;"      # its circuit stays closed


def one_full_one_failing(cluster, caller, pool="", **nginx):
    """One replica is full, the other is not but refuses everything."""
    nginx = fleet(cluster, 2, 1, pool=PATIENT + pool, **nginx)
    cluster.hold(1)
    first, = busy(caller, nginx, 1, 20)
    bad, = [r for r in cluster.replicas.values()
            if r.id != first.messages[0].replica_id]
    bad.faults(reject_all=True, gate=-1)
    return nginx, first, bad


def failed_twice(replica, nginx, one):
    """It waits with its last try, but not for that replica."""
    wait_for(lambda: replica.stats().failed == 2 and nginx.waiting() == 1,
             "two tries to be used up")
    read([one], 0.3)            # time for six more looks
    assert replica.stats().failed == 2
    assert one.ended is None, one.reason
    return one


def test_last_try_waits_for_the_replica_that_is_merely_full(cluster, caller,
                                                            expect):
    nginx, first, bad = one_full_one_failing(cluster, caller)
    one = failed_twice(bad, nginx, caller(nginx).ask("patient", 3))
    first.cancel()
    cluster.let_go()
    assert one.wait().tokens == expect("patient", 3)
    assert one.messages[0].replica_id != bad.id


@pytest.mark.soak
@pytest.mark.parametrize("workers", [1, 2])
def test_who_waits_with_its_last_try_holds_nobody_up(cluster, caller, expect,
                                                     workers):
    """Others use the replica that failed it, and it keeps its place in the
    queue for the other one."""
    nginx, first, bad = one_full_one_failing(cluster, caller, workers=workers)
    each = on_each_worker(nginx, 4 // workers, caller)
    one, second, third, fourth = [c for w in zip(*each) for c in w]
    failed_twice(bad, nginx, one.ask("patient", 3))
    bad.faults(reject_all=False, gate=1)
    second.ask("second", 30).wait_first()
    third.ask("third", 400)
    wait_for(lambda: nginx.waiting() == 2, "the third in the queue")
    bad.faults(gate=30)
    assert second.wait().tokens == expect("second", 30)
    third.wait_first()
    fourth.ask("fourth", 3)
    wait_for(lambda: nginx.waiting() == 2, "the fourth in the queue")
    read([one], 0.05)
    assert one.ended is None, one.reason
    first.cancel()
    cluster.replicas[first.messages[0].replica_id].faults(gate=-1)
    assert finish([one, fourth]) == [one, fourth]
    check([one, fourth], expect, ["patient", "fourth"], 3)
    assert not {m.replica_id for m in one.messages} & {bad.id}
    third.cancel()


@pytest.mark.soak
def test_newcomer_does_not_overtake_a_skipped_claim(cluster, caller,
                                                    expect):
    nginx, first, bad = one_full_one_failing(cluster, caller)
    one = failed_twice(bad, nginx, caller(nginx).ask("patient", 50))
    bad.faults(reject_all=False)
    newcomer = caller(nginx)
    first.cancel()
    newcomer.ask("busy 0", 50)      # its home has a free slot now
    cluster.let_go()
    finish([one, newcomer])
    check([one], expect, ["patient"], 50)
    check([newcomer], expect, ["busy 0"], 50)
    assert one.messages[0].replica_id == first.messages[0].replica_id
    assert newcomer.messages[0].replica_id == bad.id


@pytest.mark.soak
def test_last_try_may_go_to_another_process_of_the_same_replica(
        cluster, caller, expect):
    nginx, first, bad = one_full_one_failing(cluster, caller)
    one = failed_twice(bad, nginx, caller(nginx).ask("patient", 3))
    bad.kill()
    bad.start()
    assert one.wait().tokens == expect("patient", 3)
    assert one.messages[0].replica_id == bad.id
    first.cancel()


@pytest.mark.soak
def test_last_try_is_spent_when_there_is_nobody_to_wait_for(cluster, caller):
    nginx, first, bad = one_full_one_failing(cluster, caller)
    one = failed_twice(bad, nginx, caller(nginx).ask("patient", 3))
    cluster.replicas[first.messages[0].replica_id].kill()
    finish([first, one])
    assert first.reason == one.reason == words.TRIES_EXHAUSTED


@pytest.mark.soak
def test_last_try_waits_for_a_replica_that_says_it_is_full(cluster, caller,
                                                           expect):
    """Another client uses its slot; the gateway learns it from a refusal."""
    a = cluster.replica("a", token_delay="1ms", max_capacity=1)
    b = cluster.replica("b")
    nginx = cluster.static([a, b], pool=PATIENT)
    b.faults(reject_all=True)
    a.faults(gate=1)
    other = a.client.start("other", 20, method=rpc.GENERATE)
    next(other)
    one = failed_twice(b, nginx, caller(nginx).ask("patient", 3))
    other.cancel()
    a.faults(gate=-1)
    assert one.wait().tokens == expect("patient", 3)


@pytest.mark.soak
def test_who_cannot_wait_spends_its_tries_where_there_is_room(cluster, caller,
                                                              expect):
    nginx, first, bad = one_full_one_failing(cluster, caller,
                                             " llmgw_queue off;")
    one = caller(nginx).ask("refused", 3).wait()
    assert (one.status, one.reason) == (UNAVAILABLE, words.TRIES_EXHAUSTED)
    assert bad.stats().failed == 3
    bad.faults(reject_all=False, die_after_tokens=2)
    check(finish([one.ask("in parts", 6)]), expect, ["in parts"], 6)
    first.cancel()
