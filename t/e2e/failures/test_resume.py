"""How a stream resumes: what moves it, what does not, and what ends it.

test_failover.py has the simple cases.
"""

import signal
import time

import pytest

from llmgw import rpc
from llmgw.place import SLOW
from llmgw.wait import wait_for

# Gossip that declares a member dead within a second or so.
QUICK = {"protocol_period": "100ms", "ping_timeout": "40ms",
         "suspect_timeout": "400ms"}

LOG = ("log_format llmgw '$llmgw_replica $llmgw_route $llmgw_tries"
       " $llmgw_failovers $llmgw_tokens $llmgw_first_token_time';"
       " access_log @dir@/vars.log llmgw;")


def begun(c, cluster, prompt, n, tokens, **kw):
    """Returns a call with some tokens read, its result, its replica."""
    start, result = time.monotonic(), rpc.Result()
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
    return wait_for(lambda: len(got := streams()) >= n and got[-n:], 5,
                    "the access log")


# what moves a stream

@pytest.mark.alone
def test_frozen_machine_is_left_when_gossip_calls_it_dead(cluster, client,
                                                          expect):
    """Agent and replica freeze together; the token timeout is long."""
    nginx = cluster.fleet(3, replica={"token_delay": "100ms"}, agent=QUICK,
                          nginx={"location": "llmgw_token_timeout 60s;"})
    start = time.monotonic()
    call, result, replica = begun(client(nginx), cluster, "Once", 20, 10)
    replica.agent.proc.freeze()
    replica.proc.freeze()
    frozen = time.monotonic()
    while len(result.replicas) == 1:
        result.add(next(call), start)
    moved = time.monotonic() - frozen
    assert cluster.gateway.table()[replica.id]["state"] == "DEAD"
    rpc.drain(call, start, result)
    replica.proc.thaw()
    replica.agent.proc.thaw()
    result.check(expect("Once", 20))
    assert len(result.replicas) == 2
    assert 0.4 < moved < 5 * SLOW


def test_stream_stays_when_only_the_agent_dies(cluster, client, expect):
    nginx = cluster.fleet(3, replica={"token_delay": "50ms"}, agent=QUICK)
    call, result, replica = begun(client(nginx), cluster, "stays", 100, 5)
    replica.agent.kill()
    wait_for(lambda: cluster.gateway.table()[replica.id]["state"] == "DEAD",
             10, "the member to be dead")
    wait_for(lambda: replica.id not in nginx.routable(), 5,
             "nginx to see it")
    rpc.drain(call, into=result)
    result.check(expect("stays", 100))
    assert result.replicas == [replica.id]


def test_first_token_is_not_waited_for_at_a_stalled_replica(cluster, client,
                                                            expect):
    """Frozen before its first token: gossip's STALLED moves it, no timer."""
    nginx = cluster.fleet(2, replica={"first_token_delay": "30s"})
    call = client(nginx).start("early", 5)
    wait_for(lambda: nginx.in_flight() == 1, 5, "the stream")
    victim, = [i for i, r in nginx.replicas().items() if r["in_flight"]]
    wait_for(lambda: cluster.replicas[victim].stats().active_requests, 2,
             "the attempt")
    cluster.replicas[victim].proc.freeze()
    for id, replica in cluster.replicas.items():
        if id != victim:
            replica.faults(first_token_delay_ms=0)
    got = rpc.drain(call).check(expect("early", 5))
    cluster.replicas[victim].proc.thaw()
    assert victim not in got.replicas
    assert got.seconds < 20             # the timeout is a minute


def test_500_streams_lose_a_replica(cluster, load, expect):
    nginx = cluster.fleet(3, replica={"token_delay": "100ms"})
    jobs = [[f"prompt {i}", 40] for i in range(500)]
    work = load(nginx, jobs, connections=5)
    work.running()
    cluster.replicas["r1"].kill()
    results = work.results()
    for (prompt, n), got in zip(jobs, results):
        got.check(expect(prompt, n))
    assert sum(len(got.tokens) for got in results) == 500 * 40
    assert sum(1 for got in results if len(got.replicas) == 2) > 80


def test_two_failures_in_a_pool_of_two(cluster, client, expect):
    """The first replica is back when the second one dies."""
    nginx = cluster.fleet(2, replica={"token_delay": "30ms"})
    call, result, first = begun(client(nginx), cluster, "to and fro", 150, 5)
    second, = (r for r in cluster.replicas.values() if r is not first)
    first.kill()
    wait_for(lambda: first.id not in nginx.routable(), 5, "it to be out")
    first.start()
    for _ in range(5):
        result.add(next(call), 0)
    wait_for(lambda: nginx.routable() == ["r1", "r2"], 10, "it to be back")
    second.kill()
    rpc.drain(call, into=result)
    result.check(expect("to and fro", 150))
    assert result.replicas == [first.id, second.id, first.id]


def test_two_timeouts_in_a_pool_of_two(cluster, client, expect):
    """No replica dies: progress alone makes the first usable again."""
    nginx = cluster.fleet(2, replica={"token_delay": "20ms"},
                          nginx={"location": "llmgw_token_timeout 1s;"})
    call, result, first = begun(client(nginx), cluster, "to and fro", 100, 5)
    second, = (r for r in cluster.replicas.values() if r is not first)
    first.faults(stall=True)
    while result.replicas[-1] != second.id:
        result.add(next(call), 0)
    first.faults(stall=False)
    second.faults(stall=True)
    rpc.drain(call, into=result)
    result.check(expect("to and fro", 100))
    assert result.replicas == [first.id, second.id, first.id]


# what ends it

def test_tries_used_up_after_five_tokens(cluster, client, expect):
    """Delivered tokens stay delivered; the stream ends with an error."""
    nginx = cluster.fleet(3, replica={"token_delay": "200ms"})
    call, result, replica = begun(client(nginx), cluster, "five", 20, 5)
    for other in cluster.replicas.values():
        if other is not replica:
            other.faults(reject_all=True)
    replica.kill()
    rpc.drain(call, into=result)
    assert result.code == "UNAVAILABLE"
    assert result.trailers["llmgw-reason"] == "tries_exhausted"
    n = len(result.tokens)
    assert 5 <= n < 20 and result.tokens == expect("five", 20)[:n]
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
    assert got.trailers["llmgw-reason"] == "tries_exhausted"
    assert got.tokens == expect("poison", 100)[:27]
    assert sum(r.stats().started for r in cluster.replicas.values()) == 9
    assert logged(nginx, 1)[0][3] == "8"


@pytest.mark.policies
def test_eight_failovers_are_allowed(cluster, client, expect):
    nginx = cluster.fleet(3, nginx={"pool": "llmgw_breaker off;"})
    for replica in cluster.replicas.values():
        replica.faults(die_after_tokens=3)
    client(nginx).stream("poison", 27).check(expect("poison", 27))


# a drain is not a failure

def test_drain_within_a_stream_uses_up_no_try(cluster, client, expect):
    """UNAVAILABLE with the trailer llmgw-draining: 1."""
    nginx = cluster.fleet(2, replica={"token_delay": "30ms",
                                      "drain_timeout": "200ms"},
                          nginx={"location": "llmgw_tries 1;"})
    call, result, replica = begun(client(nginx), cluster, "moving", 60, 5)
    replica.proc.send(signal.SIGTERM)
    rpc.drain(call, into=result)
    result.check(expect("moving", 60))
    assert len(result.replicas) == 2
    assert replica.proc.wait(5) == 0
    left = nginx.replicas().get(replica.id)
    assert left is None or left["breaker"]["failures"] == 0


def test_member_that_left_keeps_its_streams(cluster, client, expect):
    """Its agent leaves and ends; the replica finishes its streams."""
    nginx = cluster.fleet(2, replica={"token_delay": "50ms"})
    call, result, replica = begun(client(nginx), cluster, "stays", 60, 5)
    replica.agent.proc.send(signal.SIGTERM)
    wait_for(lambda: replica.id not in nginx.routable(), 5, "it to be out")
    rpc.drain(call, into=result)
    result.check(expect("stays", 60))
    assert result.replicas == [replica.id]


# logs

@pytest.mark.ring("the route is affinity")
def test_undisturbed_stream_in_the_log(cluster, client):
    nginx = cluster.fleet(3, nginx={"http": LOG})
    got = client(nginx).stream("calm", 7)
    replica, route, tries, failovers, tokens, first = logged(nginx, 1)[0]
    assert (replica, route, tries, failovers, tokens) \
        == (got.replicas[0], "affinity", "1", "0", "7")
    assert 0 <= float(first) < got.times[0] + 0.1


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
    nginx = cluster.fleet(3, replica={"token_delay": "30ms"},
                          nginx={"http": LOG})
    call, result, replica = begun(client(nginx), cluster, "moved", 60, 5)
    replica.kill()
    rpc.drain(call, into=result)
    words = logged(nginx, 1)[0]
    assert words[0] == result.replicas[-1] != replica.id
    assert words[2:5] == ["2", "1", "60"]
    lost = [x for x in nginx.log().splitlines()
            if f'lost replica "{replica.id}"' in x]
    assert len(lost) == 1 and "after" in lost[0] and "cause" in lost[0], lost
