"""A worker stopped by SIGSTOP, as when its machine is suspended."""

import os
import signal
import time

import pytest

from llmgw.fleet import words
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc

# The replicas, which are well, stand still for less on a busy machine.
TIMEOUT = 1.5
IN_TIME = f"llmgw_token_timeout {TIMEOUT * 1000:g}ms;"


@pytest.mark.parametrize("seconds", [
    pytest.param(TIMEOUT - 0.02, marks=pytest.mark.soak), TIMEOUT + 0.05,
    pytest.param(2 * TIMEOUT, marks=pytest.mark.soak)])
def test_stop_beyond_the_token_timeout_blames_nobody(cluster, client, expect,
                                                     seconds):
    """Tokens came meanwhile; they are read before timeouts are judged."""
    nginx = cluster.fleet(3, nginx={"location": IN_TIME})
    c = client(nginx)
    cluster.hold(1)
    calls = [(c.start(f"prompt {i}", 20), rpc.Result()) for i in range(8)]
    for call, result in calls:
        result.add(next(call), time.monotonic())

    worker, = nginx.workers()
    os.kill(worker, signal.SIGSTOP)
    cluster.hold(2)
    time.sleep(seconds)
    os.kill(worker, signal.SIGCONT)
    cluster.let_go()

    for i, (call, result) in enumerate(calls):
        rpc.drain(call, into=result)
        result.check(expect(f"prompt {i}", 20))
        assert len(set(result.replicas)) == 1
    assert words.STREAM_LOST not in nginx.log()
    for replica in nginx.replicas().values():
        assert replica["breaker"]["state"] == "closed"
        assert replica["breaker"]["failures"] == 0


@pytest.mark.soak
def test_replicas_that_stood_still_too_have_their_time_again(cluster, client,
                                                             expect):
    """The whole machine was suspended."""
    nginx = cluster.fleet(1, nginx={"location": IN_TIME})
    cluster.hold(1)
    start, result = time.monotonic(), rpc.Result()
    call = client(nginx).start("suspended", 10)
    result.add(next(call), start)

    worker, = nginx.workers()
    replica = cluster.replicas["r1"]
    replica.agent.proc.freeze()
    replica.proc.freeze()
    os.kill(worker, signal.SIGSTOP)
    time.sleep(TIMEOUT + 0.5)       # and before gossip calls it dead
    os.kill(worker, signal.SIGCONT)
    replica.proc.thaw()
    replica.agent.proc.thaw()
    cluster.let_go()

    rpc.drain(call, into=result).check(expect("suspended", 10))
    assert words.STREAM_LOST not in nginx.log()


@pytest.mark.soak
def test_silent_replica_is_left_after_a_stop_as_well(cluster, client, expect):
    """It gets its full timeout once more, and no longer."""
    nginx = cluster.fleet(
        2, nginx={"location": "llmgw_token_timeout 700ms;"})
    cluster.hold(1)
    start, result = time.monotonic(), rpc.Result()
    call = client(nginx).start("frozen", 20)
    result.add(next(call), start)

    worker, = nginx.workers()
    silent = cluster.replicas[result.replicas[-1]]
    silent.proc.freeze()
    for replica in cluster.replicas.values():
        if replica is not silent:
            replica.faults(gate=-1)
    os.kill(worker, signal.SIGSTOP)
    time.sleep(1)
    os.kill(worker, signal.SIGCONT)

    rpc.drain(call, into=result).check(expect("frozen", 20))
    silent.proc.thaw()
    assert len(set(result.replicas)) == 2
    wait_for(lambda: nginx.in_flight() == 0, "a count of zero")
