"""`llmgw up` as the first process of a container."""

import os
import pathlib
import signal
import subprocess

import pytest

from llmgw.fleet.launcher import Launcher
from llmgw.fleet.supervised import pids, stat
from llmgw.proc.wait import wait_for
from llmgw.speak import sse

HELD = 3
UNSHARE = ("unshare", "--pid", "--fork", "--mount-proc")

pytestmark = pytest.mark.skipif(
    subprocess.run([*UNSHARE, "true"], capture_output=True).returncode != 0,
    reason="needs the right to make a pid namespace")


def children(pid):
    return [p for p in pids() if (stat(p) or ("X", 0))[1] == pid]


@pytest.fixture
def up(cluster):
    up = Launcher(cluster, cluster.engine().url, prefix=UNSHARE).started()
    cluster.hold(HELD)
    return up


def first_of(up):
    """Its pid out here."""
    pid, = children(up.proc.pid)
    inside = pathlib.Path(f"/proc/{pid}/status").read_text()
    assert inside.partition("NSpid:")[2].split()[1] == "1"
    return pid


def end(up, sig):
    up.proc.told_to_end = True      # unshare(1) itself takes no signal
    os.kill(first_of(up), sig)


@pytest.mark.parametrize("sig", (signal.SIGTERM, signal.SIGQUIT))
def test_stream_finishes_and_nothing_is_left(cluster, up, sig):
    with sse.Connection(up.target) as connection:
        response = connection.request(sse.CHAT, sse.chat("hi len=20;",
                                                         stream=True))
        response.wait_events(HELD)
        end(up, sig)
        up.wait_said("Ending: ")
        cluster.let_go()
        got = sse.result_of(response)
    assert got.done == 1 and not got.error
    assert up.wait_end(takes=6) == 0


def test_orphans_are_reaped(up):
    first = first_of(up)
    subprocess.run(["nsenter", "--target", str(first), "--pid", "sh", "-c",
                    "sleep 60 & :"], check=True, timeout=20)

    def orphans():
        return [p for p in children(first) if pathlib.Path(
            f"/proc/{p}/comm").read_text() == "sleep\n"]
    orphan, = wait_for(orphans, "an orphan")
    os.kill(orphan, signal.SIGKILL)
    wait_for(lambda: not pathlib.Path(f"/proc/{orphan}").exists(),
             "the orphan to be reaped")
    end(up, signal.SIGTERM)
    assert up.wait_end(takes=6) == 0


def test_logs_go_to_standard_error_when_told(cluster):
    up = Launcher(cluster, cluster.engine().url, "--log-stderr",
                  prefix=UNSHARE).started()
    for line in ("start worker process", "llmgw-agent gateway: ",
                 "llmgw-replica "):
        up.wait_said(line)
    assert not list(up.dir.glob("*.log"))
    end(up, signal.SIGTERM)
    assert up.wait_end(takes=6) == 0
