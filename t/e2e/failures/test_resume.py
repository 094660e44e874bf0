"""How a stream resumes: what moves it, what does not, and what ends it.

test_failover.py has the simple cases.
"""

import itertools
import signal
import time

import pytest

from llmgw.fleet import words
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc

# Gossip that declares a member dead within a second or so.
QUICK = {"protocol_period": "100ms", "ping_timeout": "40ms",
         "suspect_timeout": "400ms"}

LOG = ("log_format llmgw '$llmgw_replica $llmgw_route $llmgw_tries"
       " $llmgw_failovers $llmgw_tokens $llmgw_first_token_time';"
       " access_log @dir@/vars.log llmgw;")


def begun(c, cluster, prompt, n, tokens, **kw):
    """Returns a call that is held after some tokens, its result, its replica.
    """
    start, result = time.monotonic(), rpc.Result()
    cluster.hold(tokens)
    call = c.start(prompt, n, **kw)
    for _ in range(tokens):
        result.add(next(call), start)
    return call, result, cluster.replicas[result.replicas[-1]]


def logged(nginx, n):
    """The last n lines of LOG, split into words; no status requests."""
    path = nginx.dir / "vars.log"

    def streams():
        lines = map(str.split, path.read_text().splitlines())
        return [words for words in lines if words[0] != "-"]
    return wait_for(lambda: len(got := streams()) >= n and got[-n:],
                    "the access log")


# what moves a stream

def test_frozen_machine_is_left_when_gossip_calls_it_dead(cluster, client,
                                                          expect):
    """Agent and replica freeze together; the token timeout is long."""
    nginx = cluster.fleet(3, agent=QUICK)
    call, result, replica = begun(client(nginx), cluster, "Once", 20, 10)
    replica.agent.proc.freeze()
    replica.proc.freeze()
    for other in cluster.replicas.values():
        if other is not replica:
            other.faults(gate=-1)
    result.add(next(call), 0)
    assert cluster.gateway.table()[replica.id]["state"] == "DEAD"
    rpc.drain(call, into=result)
    replica.proc.thaw()
    replica.agent.proc.thaw()
    result.check(expect("Once", 20))
    assert len(result.replicas) == 2


def test_stream_stays_when_only_the_agent_dies(cluster, client, expect):
    """Its stream runs on, a token with each look."""
    nginx = cluster.fleet(3, agent=QUICK)
    call, result, replica = begun(client(nginx), cluster, "stays", 500, 5)
    replica.agent.kill()
    gates = itertools.count(6)

    def is_out():
        replica.faults(gate=next(gates))
        return replica.id not in nginx.routable() \
            and cluster.gateway.table()[replica.id]["state"] == "DEAD"
    wait_for(is_out, "the member to be dead, and nginx to see it", takes=4)
    assert nginx.in_flight() == 1
    cluster.let_go()
    rpc.drain(call, into=result)
    result.check(expect("stays", 500))
    assert result.replicas == [replica.id]


def test_first_token_is_not_waited_for_at_a_stalled_replica(cluster, client,
                                                            expect):
    """Frozen before its first token: gossip's STALLED moves it, no timer."""
    nginx = cluster.fleet(2)
    cluster.hold()
    call = client(nginx).start("early", 5)
    wait_for(lambda: nginx.in_flight() == 1, "the stream")
    victim, = [i for i, r in nginx.replicas().items() if r["in_flight"]]
    wait_for(lambda: cluster.replicas[victim].stats().active_requests,
             "the attempt")
    cluster.replicas[victim].proc.freeze()
    for id, replica in cluster.replicas.items():
        if id != victim:
            replica.faults(gate=-1)
    got = rpc.drain(call, takes=4).check(expect("early", 5))
    cluster.replicas[victim].proc.thaw()
    assert victim not in got.replicas


@pytest.mark.parametrize("n", [
    60, pytest.param(500, marks=pytest.mark.soak)])
def test_many_streams_lose_a_replica(cluster, load, expect, n):
    nginx = cluster.fleet(3)
    cluster.hold(5)
    jobs = [[f"prompt {i}", 20] for i in range(n)]
    work = load(nginx, jobs, connections=5)
    work.running()
    cluster.replicas["r1"].kill()
    cluster.let_go()
    results = work.results()
    for (prompt, k), got in zip(jobs, results):
        got.check(expect(prompt, k))
    assert sum(len(got.replicas) == 2 for got in results) > n / 6


@pytest.mark.soak
def test_two_failures_in_a_pool_of_two(cluster, client, expect):
    """The first replica is back when the second one dies."""
    nginx = cluster.fleet(2)
    call, result, first = begun(client(nginx), cluster, "to and fro", 40, 5)
    second, = (r for r in cluster.replicas.values() if r is not first)
    first.kill()
    wait_for(lambda: first.id not in nginx.routable(), "it to be out")
    first.start()
    second.faults(gate=10)
    for _ in range(5):
        result.add(next(call), 0)
    wait_for(lambda: nginx.routable() == ["r1", "r2"], "it to be back")
    second.kill()
    rpc.drain(call, into=result)
    result.check(expect("to and fro", 40))
    assert result.replicas == [first.id, second.id, first.id]


@pytest.mark.soak
def test_two_timeouts_in_a_pool_of_two(cluster, client, expect):
    """No replica dies: progress alone makes the first usable again."""
    nginx = cluster.fleet(2, nginx={"location": "llmgw_token_timeout 1500ms;"})
    call, result, first = begun(client(nginx), cluster, "to and fro", 40, 5)
    second, = (r for r in cluster.replicas.values() if r is not first)
    second.faults(gate=10)          # and the first one stays at 5
    for _ in range(5):
        result.add(next(call), 0)
    assert result.replicas[-1] == second.id
    first.faults(gate=-1)
    rpc.drain(call, into=result)
    result.check(expect("to and fro", 40))
    assert result.replicas == [first.id, second.id, first.id]


# what ends it

def test_tries_used_up_after_five_tokens(cluster, client, expect):
    """Delivered tokens stay delivered; the stream ends with an error."""
    nginx = cluster.fleet(3)
    call, result, replica = begun(client(nginx), cluster, "five", 20, 5)
    for other in cluster.replicas.values():
        if other is not replica:
            other.faults(reject_all=True)
    replica.kill()
    rpc.drain(call, into=result)
    assert result.code == "UNAVAILABLE"
    assert result.trailers[words.REASON] == words.TRIES_EXHAUSTED
    assert result.tokens == expect("five", 20)[:5]
    assert result.finals == []


def test_prompt_that_crashes_engines_does_not_walk_the_fleet(cluster, client,
                                                             expect):
    """There is progress after each failure, but 8 failovers are the end."""
    nginx = cluster.fleet(3, nginx={"pool": "llmgw_breaker off;",
                                    "http": LOG})
    for replica in cluster.replicas.values():
        replica.faults(die_after_tokens=3)
    got = client(nginx).stream("poison", 100)
    assert got.code == "UNAVAILABLE"
    assert got.trailers[words.REASON] == words.TRIES_EXHAUSTED
    assert got.tokens == expect("poison", 100)[:27]
    assert sum(r.stats().started for r in cluster.replicas.values()) == 9
    assert logged(nginx, 1)[0][3] == "8"


@pytest.mark.soak
def test_eight_failovers_are_allowed(cluster, client, expect):
    nginx = cluster.fleet(3, nginx={"pool": "llmgw_breaker off;"})
    for replica in cluster.replicas.values():
        replica.faults(die_after_tokens=3)
    client(nginx).stream("poison", 27).check(expect("poison", 27))


# a drain is not a failure

def test_drain_within_a_stream_uses_up_no_try(cluster, client, expect):
    """UNAVAILABLE with the trailer llmgw-draining: 1."""
    nginx = cluster.fleet(2, replica={"drain_timeout": "200ms"},
                          nginx={"location": "llmgw_tries 1;"})
    call, result, replica = begun(client(nginx), cluster, "moving", 20, 5)
    assert replica.stop() == 0
    cluster.let_go()
    rpc.drain(call, into=result)
    result.check(expect("moving", 20))
    assert len(result.replicas) == 2
    left = nginx.replicas().get(replica.id)
    assert left is None or left["breaker"]["failures"] == 0


def test_member_that_left_keeps_its_streams(cluster, client, expect):
    """Its agent leaves and ends; the replica finishes its streams."""
    nginx = cluster.fleet(2)
    call, result, replica = begun(client(nginx), cluster, "stays", 20, 5)
    replica.agent.proc.send(signal.SIGTERM)
    wait_for(lambda: replica.id not in nginx.routable(), "it to be out")
    cluster.let_go()
    rpc.drain(call, into=result)
    result.check(expect("stays", 20))
    assert result.replicas == [replica.id]


# logs

@pytest.mark.ring("the route is affinity")
def test_undisturbed_stream_in_the_log(cluster, client):
    nginx = cluster.fleet(3, nginx={"http": LOG})
    got = client(nginx).stream("calm", 7)
    replica, route, tries, failovers, tokens, first = logged(nginx, 1)[0]
    assert (replica, route, tries, failovers, tokens) \
        == (got.replicas[0], "affinity", "1", "0", "7")
    assert float(first) >= 0


@pytest.mark.soak
@pytest.mark.ring("the route is affinity")
def test_retried_stream_in_the_log(cluster, client):
    """No token came from the first replica."""
    nginx = cluster.fleet(2, nginx={"http": LOG})
    cluster.replicas["r1"].faults(reject_all=True)
    c = client(nginx)
    for i in range(8):
        assert c.stream(f"prompt {i}", 3).replicas == ["r2"]
    lines = {tuple(words[:5]) for words in logged(nginx, 8)}
    assert lines == {("r2", "affinity", "1", "0", "3"),
                     ("r2", "retry", "2", "0", "3")}


def test_resumed_stream_in_the_log(cluster, client):
    nginx = cluster.fleet(3, nginx={"http": LOG})
    call, result, replica = begun(client(nginx), cluster, "moved", 20, 5)
    replica.kill()
    cluster.let_go()
    rpc.drain(call, into=result)
    words = logged(nginx, 1)[0]
    assert words[0] == result.replicas[-1] != replica.id
    assert words[2:5] == ["2", "1", "20"]
    lost = [x for x in nginx.log().splitlines()
            if f'lost replica "{replica.id}"' in x]
    assert len(lost) == 1 and "after" in lost[0] and "cause" in lost[0], lost
