"""A worker stopped by SIGSTOP, as when its machine is suspended."""

import os
import signal
import time

import pytest

from llmgw import rpc
from llmgw.wait import wait_for

# The replicas, which are well, stand still for less on a busy machine.
TIMEOUT = 1.5


@pytest.mark.parametrize("seconds", [TIMEOUT - 0.02, TIMEOUT + 0.05,
                                     2 * TIMEOUT])
def test_stop_beyond_the_token_timeout_blames_nobody(cluster, client, expect,
                                                     seconds):
    """Tokens came meanwhile; they are read before timeouts are judged."""
    nginx = cluster.fleet(
        3, replica={"token_delay": "50ms"},
        nginx={"location": f"llmgw_token_timeout {TIMEOUT * 1000:g}ms;"})
    c = client(nginx)
    calls = [(c.start(f"prompt {i}", 60), rpc.Result()) for i in range(8)]
    for call, result in calls:
        result.add(next(call), time.monotonic())

    worker, = nginx.workers()
    os.kill(worker, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(worker, signal.SIGCONT)

    for i, (call, result) in enumerate(calls):
        rpc.drain(call, into=result)
        result.check(expect(f"prompt {i}", 60))
        assert len(set(result.replicas)) == 1
    assert "stream lost" not in nginx.log()
    for replica in nginx.replicas().values():
        assert replica["breaker"]["state"] == "closed"
        assert replica["breaker"]["failures"] == 0


def test_replicas_that_stood_still_too_have_their_time_again(cluster, client,
                                                             expect):
    """The whole machine was suspended."""
    nginx = cluster.fleet(
        1, replica={"token_delay": "200ms"},
        nginx={"location": f"llmgw_token_timeout {TIMEOUT * 1000:g}ms;"})
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

    rpc.drain(call, into=result).check(expect("suspended", 10))
    assert "stream lost" not in nginx.log()


def test_silent_replica_is_left_after_a_stop_as_well(cluster, client, expect):
    """It gets its full timeout once more, and no longer."""
    nginx = cluster.fleet(
        2, replica={"token_delay": "50ms"},
        nginx={"location": "llmgw_token_timeout 700ms;"})
    start, result = time.monotonic(), rpc.Result()
    call = client(nginx).start("frozen", 20)
    result.add(next(call), start)

    worker, = nginx.workers()
    silent = cluster.replicas[result.replicas[-1]]
    silent.proc.freeze()
    os.kill(worker, signal.SIGSTOP)
    time.sleep(1)
    os.kill(worker, signal.SIGCONT)
    resumed = time.monotonic()

    rpc.drain(call, into=result).check(expect("frozen", 20))
    silent.proc.thaw()
    assert len(set(result.replicas)) == 2
    assert time.monotonic() - resumed < 8       # 10 s by default
    wait_for(lambda: nginx.in_flight() == 0, 5, "a count of zero")
