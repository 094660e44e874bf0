"""An agent without free descriptors, or with a full control socket."""

import os
import resource
import socket
import time

import pytest

from llmgw.proc.wait import wait_for

LIMIT = 48


def ticks(pid):
    """CPU time of a process, in clock ticks."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def share_of_a_cpu(pid, seconds=2.0):
    before = ticks(pid)
    time.sleep(seconds)
    return (ticks(pid) - before) / os.sysconf("SC_CLK_TCK") / seconds


def control(agent):
    s = socket.socket(socket.AF_UNIX)
    s.connect(agent.control)
    return s


def gossip(agent):
    host, port = agent.gossip.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=2)


@pytest.fixture
def exhausted(cluster):
    """An agent whose last descriptor is taken, and what takes them."""
    agent = cluster.agent("a")
    wait_for(agent.table, "the agent")
    resource.prlimit(agent.proc.pid, resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
    # A client that listens to events keeps its place and its descriptor.
    taken = [control(agent) for _ in range(LIMIT)]
    for s in taken:
        s.send(b'{"cmd":"events"}\n')
    wait_for(lambda: len(os.listdir(f"/proc/{agent.proc.pid}/fd")) == LIMIT,
             "no descriptor to be left")
    return agent, taken


@pytest.mark.parametrize("door", [control, gossip])
def test_agent_without_descriptors_answers_again(exhausted, door):
    agent, taken = exhausted
    more = [door(agent) for _ in range(4)]
    where = "control socket" if door is control else "gossip address"

    def complaints():
        return agent.proc.text().count(
            f"cannot accept connections at the {where}: Too many open files")
    wait_for(complaints, "its words")
    more += [door(agent) for _ in range(4)]
    for s in taken + more:
        s.close()
    wait_for(agent.table, "the agent to answer again")
    assert complaints() == 1


@pytest.mark.timed
@pytest.mark.parametrize("door", [control, gossip])
def test_agent_without_descriptors_does_not_spin(exhausted, door):
    agent, taken = exhausted
    more = [door(agent) for _ in range(4)]
    assert share_of_a_cpu(agent.proc.pid) < 0.1
    for s in taken + more:
        s.close()


@pytest.mark.soak
def test_idle_connections_lock_nobody_out(cluster):
    agent = cluster.agent("a")
    wait_for(agent.table, "the agent")
    taken = [control(agent) for _ in range(80)]
    assert agent.ctl("status").returncode == 0
    assert agent.ctl("members").returncode == 0
    for s in taken:
        s.close()
