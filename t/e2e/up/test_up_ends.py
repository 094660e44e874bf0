"""How `llmgw up` ends: streams finish, and nothing is left running."""

import os
import signal

import pytest

from llmgw.fleet.launcher import Launcher
from llmgw.proc.process import pids_of_group
from llmgw.proc.wait import wait_for
from llmgw.speak import sse

HELD = 3


@pytest.fixture
def up(cluster):
    up = Launcher(cluster, cluster.engine().url).started()
    cluster.hold(HELD)
    return up


def begin(up):
    """A stream that has its first tokens, and no more yet."""
    connection = sse.Connection(up.target)
    response = connection.request(sse.CHAT, sse.chat("hi len=20;",
                                                     stream=True))
    response.wait_events(HELD)
    return response


def is_refused(up):
    try:
        sse.Connection(up.target).close()
    except ConnectionRefusedError:
        return True
    return False


def finish(cluster, response):
    cluster.let_go()
    got = sse.result_of(response)
    assert got.done == 1 and not got.error
    assert got.finish_reason == ["stop"]
    response.connection.close()     # or nginx lingers for the client's end


@pytest.mark.parametrize("sig", (signal.SIGINT, signal.SIGTERM,
                                 signal.SIGQUIT, signal.SIGKILL))
def test_stream_finishes_and_nothing_is_left(cluster, up, sig):
    response = begin(up)
    up.proc.send(sig)
    wait_for(lambda: is_refused(up), "nginx to accept no more")
    finish(cluster, response)
    assert up.wait_end(takes=6) == (-9 if sig == signal.SIGKILL else 0)


def test_idle_gateway_ends_when_its_launcher_is_killed(up):
    assert len(up.left()) > 4
    assert up.end(signal.SIGKILL, takes=6) == -9


def test_second_signal_does_not_wait(cluster, up):
    # nginx's own words for what it cuts.
    cluster.allowed += ["open socket .* left in connection", "aborting"]
    response = begin(up)
    up.proc.send(signal.SIGINT)
    wait_for(lambda: is_refused(up), "nginx to accept no more")
    up.end(signal.SIGINT)
    response.wait_events(None)
    assert response.broken or "error" in response.events[-1].data


def test_stream_that_does_not_end_is_cut_at_the_drain_timeout(cluster):
    up = Launcher(cluster, cluster.engine().url, "--drain-timeout",
                  "1s").started()
    cluster.hold(HELD)
    begin(up)
    up.end(takes=7)


def test_drain_of_orphans_has_an_end(cluster):
    up = Launcher(cluster, cluster.engine().url, "--drain-timeout",
                  "1s").started()
    cluster.hold(HELD)
    begin(up)
    up.end(signal.SIGKILL, takes=7)


def test_what_is_killed_comes_again(cluster):
    up = Launcher(cluster, cluster.engine().url).started()
    engine, = up.engines().values()
    os.kill(engine["adapter_pid"], signal.SIGKILL)
    os.kill(engine["agent_pid"], signal.SIGKILL)
    status = up.status()
    os.kill(status["agent_pid"], signal.SIGKILL)
    workers = pids_of_group(status["nginx_pid"])
    os.kill(status["nginx_pid"], signal.SIGKILL)
    wait_for(lambda: not set(workers) & set(pids_of_group(
        status["nginx_pid"])), "the old workers to end")

    def is_back():
        now = up.status()
        e, = now["engines"]
        return e["ready"] and all(
            now[k] not in (0, status[k]) for k in ("agent_pid", "nginx_pid")
        ) and e["adapter_pid"] not in (0, engine["adapter_pid"])
    wait_for(is_back, "all processes again", takes=6)
    up.wait_said("nginx                ended and is started again: signal 9")

    def answers():
        try:
            return sse.call(up.target, sse.CHAT,
                            sse.chat("hi len=5;")).status == 200
        except OSError:
            return False
    wait_for(answers, "an answer", takes=6)
    assert up.end() == 0
