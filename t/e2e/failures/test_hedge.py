"""Hedging: two replicas get a request, the first token wins."""

import time

import pytest

from llmgw.fleet import words
from llmgw.proc.place import SLOW
from llmgw.proc.wait import never, wait_for
from llmgw.speak import rpc


def started(cluster):
    return {i: r.stats().started for i, r in cluster.replicas.items()}


def fast_and_slow(cluster, **nginx):
    """r1 is fast, and r2 has no first token, whatever the prompt."""
    made = cluster.fleet(2, nginx=nginx)
    cluster.replicas["r2"].faults(gate=0)
    return made


def at_home(c, n, home):
    """n prompts whose home on the ring is that replica."""
    found, i = [], 0
    while len(found) < n:
        prompt = f"at home {i}"
        if c.stream(prompt, 1).replicas == [home]:
            found.append(prompt)
        i += 1
    return found


ROUTE = ("log_format route '$llmgw_route';"
         " access_log @dir@/route.log route;")


def routes(nginx):
    """The log lines of ROUTE, without requests for the status."""
    return [x for x in (nginx.dir / "route.log").read_text().split()
            if x != "-"]


# hedge: true

def test_fast_one_serves_hedged_requests(cluster, client, expect):
    nginx = fast_and_slow(cluster)
    c, fast, slow = client(nginx), *cluster.replicas.values()
    for i in range(5):
        prompt, start, result = f"prompt {i}", time.monotonic(), rpc.Result()
        fast.faults(gate=0)
        call = c.start(prompt, 10, hedge=True)
        wait_for(lambda: slow.stats().active_requests == 1, "both attempts")
        fast.faults(gate=1)
        result.add(next(call), start)
        wait_for(lambda: slow.stats().active_requests == 0,
                 "the slow one to be let go")
        fast.faults(gate=-1)
        rpc.drain(call, start, result)
        result.check(expect(prompt, 10))
        assert result.replicas == ["r1"]
    assert started(cluster) == {"r1": 5, "r2": 5}
    assert slow.stats().cancelled == 5
    assert slow.stats().finished == 0
    for r in nginx.replicas().values():
        assert r["breaker"]["state"] == "closed", r
        assert r["breaker"]["failures"] == 0, r
        assert r["in_flight"] == 0


@pytest.mark.soak
def test_slot_of_the_loser_is_free_at_once(cluster, client):
    nginx = fast_and_slow(cluster)
    cluster.replicas["r1"].faults(gate=1)
    call = client(nginx).start("prompt", 1000, hedge=True)
    next(call)
    wait_for(lambda: nginx.replicas()["r2"]["in_flight"] == 0,
             what="the loser's slot to be free")
    assert nginx.replicas()["r1"]["in_flight"] == 1
    call.cancel()


@pytest.mark.soak
def test_requests_without_the_flag_are_not_hedged(cluster, client):
    c = client(cluster.fleet(2))
    for i in range(4):
        assert c.stream(f"prompt {i}", 1).code == "OK"
    assert sum(started(cluster).values()) == 4


@pytest.mark.soak
def test_hedge_off(cluster, client, expect):
    nginx = cluster.fleet(2, nginx={"pool": "llmgw_hedge off;"})
    c = client(nginx)
    for i in range(6):
        c.stream(f"prompt {i}", 2, hedge=True).check(expect(f"prompt {i}", 2))
    assert sum(started(cluster).values()) == 6


@pytest.mark.soak
def test_hedge_with_nobody_to_hedge_with(cluster, client, expect):
    nginx = cluster.fleet(1)
    client(nginx).stream("one", 3, hedge=True).check(expect("one", 3))
    assert started(cluster) == {"r1": 1}


@pytest.mark.ring("a prompt has a home")
def test_route_of_a_hedge_that_won(cluster, client):
    nginx = cluster.fleet(2, nginx={"http": ROUTE})
    c = client(nginx)
    prompt = at_home(c, 1, "r2")[0]
    cluster.replicas["r2"].faults(gate=0)
    assert c.stream(prompt, 2, hedge=True).replicas == ["r1"]
    wait_for(lambda: routes(nginx)[-1] == "hedge", "the access log")


# one of the two fails

@pytest.mark.parametrize("victim, winner", [
    ("r1", "r2"), pytest.param("r2", "r1", marks=pytest.mark.soak)])
def test_killed_mid_race(cluster, client, expect, victim, winner):
    nginx = cluster.fleet(2)
    cluster.hold()
    call = client(nginx).start("race", 8, hedge=True)
    wait_for(lambda: all(r.stats().active_requests for r
                         in cluster.replicas.values()), "two attempts")
    cluster.replicas[victim].kill()
    cluster.let_go()
    got = rpc.drain(call).check(expect("race", 8))
    assert got.replicas == [winner]


@pytest.mark.soak
@pytest.mark.policies
def test_both_killed_mid_race(cluster, client, expect):
    """A third replica finishes the stream."""
    nginx = cluster.fleet(3)
    cluster.hold()
    call = client(nginx).start("race", 8, hedge=True)
    wait_for(lambda: sum(started(cluster).values()) == 2, "two attempts")
    for id, n in started(cluster).items():
        if n:
            cluster.replicas[id].kill()
    cluster.let_go()
    rpc.drain(call).check(expect("race", 8))


def test_winner_killed_mid_stream(cluster, client, expect):
    nginx = fast_and_slow(cluster)
    start, result = time.monotonic(), rpc.Result()
    cluster.replicas["r1"].faults(gate=5)
    call = client(nginx).start("after the race", 20, hedge=True)
    for _ in range(5):
        result.add(next(call), start)
    cluster.replicas["r1"].kill()
    cluster.let_go()
    rpc.drain(call, start, result)
    result.check(expect("after the race", 20))
    assert result.replicas == ["r1", "r2"]


@pytest.mark.soak
def test_one_rejects_in_the_race(cluster, client, expect):
    nginx = cluster.fleet(2)
    cluster.replicas["r1"].faults(reject_all=True)
    c = client(nginx)
    for i in range(10):
        got = c.stream(f"prompt {i}", 5, hedge=True)
        got.check(expect(f"prompt {i}", 5))
        assert got.replicas == ["r2"]


@pytest.mark.soak
def test_both_reject_in_the_race(cluster, client):
    nginx = cluster.fleet(2)
    for r in cluster.replicas.values():
        r.faults(reject_all=True)
    got = client(nginx).stream("prompt", 5, hedge=True)
    assert got.code == "UNAVAILABLE"
    assert got.trailers[words.REASON] in (words.TRIES_EXHAUSTED,
                                          words.CIRCUITS_OPEN)


def test_client_that_goes_mid_race(cluster, client):
    nginx = cluster.fleet(2)
    cluster.hold()
    call = client(nginx).start("race", 5, hedge=True)
    wait_for(lambda: sum(started(cluster).values()) == 2, "two attempts")
    call.cancel()
    wait_for(lambda: [r.stats().active_requests for r
                      in cluster.replicas.values()] == [0, 0], "cancels")
    wait_for(lambda: not nginx.counts(), "counts of zero")


@pytest.mark.soak
def test_hedged_streams_outlive_a_replica(cluster, load, expect):
    nginx = cluster.fleet(3)
    cluster.hold(5)
    jobs = [[f"prompt {i}", 20] for i in range(60)]
    work = load(nginx, jobs, connections=2, fields={"hedge": True})
    work.running()
    cluster.replicas["r2"].kill()
    cluster.let_go()
    for (prompt, n), got in zip(jobs, work.results()):
        got.check(expect(prompt, n))


# full replicas

@pytest.mark.soak
def test_no_hedge_while_others_wait(cluster, client, load, expect):
    """Free slots go to requests that have none, not to hedges."""
    nginx = cluster.fleet(2, replica={"max_capacity": 2})
    cluster.hold(1)
    held = [client(nginx).start(f"held {i}", 10000) for i in range(4)]
    for call in held:
        next(call)
    jobs = [[f"prompt {i}", 5] for i in range(20)]
    work = load(nginx, jobs, fields={"hedge": True})
    wait_for(lambda: nginx.waiting() == 20, what="all to wait")
    for call in held:
        call.cancel()
    cluster.let_go()
    results = work.results()
    for (prompt, n), got in zip(jobs, results):
        got.check(expect(prompt, n))
    # the last in the queue may be hedged, once there is capacity again
    assert sum(started(cluster).values()) <= 4 + 20 + 6


@pytest.mark.soak
def test_hedge_does_without_a_full_replica(cluster, client, expect):
    nginx = cluster.fleet(2, replica={"max_capacity": 1})
    c = client(nginx)
    cluster.hold(1)
    held = c.start("held", 2)
    first = next(held)
    busy, free = sorted(cluster.replicas.values(),
                        key=lambda r: r.id != first.replica_id)
    free.faults(gate=-1)
    c.stream("hedged", 3, hedge=True).check(expect("hedged", 3))
    assert sum(started(cluster).values()) == 2
    busy.faults(gate=-1)
    assert [m.is_final for m in held] == [True]


# delay=

@pytest.mark.ring("a prompt has a home")
def test_hedge_goes_to_nobody_who_has_failed_the_stream(cluster, client,
                                                        expect):
    nginx = cluster.fleet(3)
    prompt, = at_home(client(nginx), 1, "r1")
    nginx.configure(upstream=f"{nginx.upstream}"
                             " llmgw_hedge delay=100ms budget=100%;")
    nginx.reload()
    c = client(nginx)
    for r in cluster.replicas.values():
        r.faults(gate=0, reject_all=r.id == "r1")
    before = started(cluster)
    both = {"r1": before["r1"], "r2": before["r2"] + 1,
            "r3": before["r3"] + 1}
    call = c.start(prompt, 3)
    wait_for(lambda: started(cluster) == both, what="a hedge")
    cluster.let_go()
    rpc.drain(call).check(expect(prompt, 3))
    assert cluster.replicas["r1"].stats().failed == 1
    assert started(cluster) == both


@pytest.mark.timed
@pytest.mark.ring("a prompt has a home")
@pytest.mark.alone
def test_slow_starts_are_hedged_after_the_delay(cluster, client, load,
                                                expect):
    """The home of 3 % of the prompts needs three seconds for a first token.

    Of a hundred requests one may be later: where the processors stand still
    for a moment, the budget is spent on requests that needed no hedge.
    """
    nginx = cluster.fleet(3, nginx={"pool": "llmgw_hedge delay=50ms;"})
    c, n = client(nginx), 1000
    slow, fast = at_home(c, 30, "r3"), iter(at_home(c, 60, "r1") * 17)
    jobs = [[slow[i // 33 - 1] if i and i % 33 == 0 and i // 33 <= 30
             else next(fast), 2] for i in range(n)]
    cluster.replicas["r3"].faults(first_token_delay_ms=3000)
    before = sum(started(cluster).values())

    results = load(nginx, jobs, connections=2,
                   starts_per_second=150 / SLOW).results()
    for (prompt, k), got in zip(jobs, results):
        got.check(expect(prompt, k))
    first = sorted(got.times[0] for got in results)
    normal = first[n // 2]
    assert first[int(n * 0.99) - 1] < normal + 1.5, first[-30:]
    extra = sum(started(cluster).values()) - before - n
    assert 25 <= extra <= n * 0.05


@pytest.mark.soak
def test_hedges_keep_to_their_budget(cluster, load):
    """Every start is slow: only 5 % of the requests are sent twice."""
    nginx = cluster.fleet(3, nginx={
        "pool": "llmgw_hedge delay=10ms budget=5%;"},
        replica={"first_token_delay": "60ms"})
    results = load(nginx, [[f"prompt {i}", 1] for i in range(400)],
                   connections=2, starts_per_second=200 / SLOW).results()
    assert {got.code for got in results} == {"OK"}
    extra = sum(started(cluster).values()) - 400
    assert 1 <= extra <= 400 * 0.05


@pytest.mark.soak
def test_no_hedge_after_a_token(cluster, client, expect):
    """The delay counts only for the first token."""
    nginx = cluster.fleet(2, nginx={
        "pool": "llmgw_hedge delay=500ms budget=100%;"})
    cluster.hold(1)
    call = client(nginx).start("slow tokens", 6)
    first = next(call)
    never(lambda: sum(started(cluster).values()) > 1, 0.8, "a hedge")
    cluster.let_go()
    assert [first.token] + [m.token for m in call] == expect("slow tokens", 6)
