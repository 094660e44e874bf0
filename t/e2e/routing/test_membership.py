"""Membership: from replica to agent to gossip to segment to nginx."""

import itertools
import os
import signal
import statistics
import struct
import time

import pytest

from llmgw.fleet import words
from llmgw.proc.place import SLOW
from llmgw.proc.preload import compiled
from llmgw.proc.wait import never, wait_for


def view(nginx):
    return nginx.pool()["view"]


def test_members_are_told_in_full(cluster):
    nginx = cluster.fleet(2, replica={"max_capacity": 4,
                                      "model_version": "v7"})
    r1 = cluster.replicas["r1"]
    table = wait_for(lambda: len(cluster.gateway.table()) == 3
                     and cluster.gateway.table(), "three members")
    got = table["r1"]
    assert got["address"] == r1.agent.gossip
    assert got["grpc"] == r1.target
    assert (got["role"], got["state"], got["service"]) \
        == ("replica", "ALIVE", "READY")
    assert (got["model_version"], got["max_capacity"]) == ("v7", 4)
    assert got["draining"] is False
    assert got["replica_start"] > 1_600_000_000_000
    assert table["gw"]["role"] == "gateway"

    told = nginx.replicas()
    assert set(told) == {"r1", "r2"}            # a gateway is no replica
    assert told["r1"]["address"] == r1.target
    assert told["r1"]["model_version"] == "v7"
    assert told["r1"]["max_capacity"] == 4
    assert view(nginx)["source"] == cluster.gateway.members
    assert view(nginx)["stale"] is False

    headers, _ = nginx.get()
    assert headers.get_content_type() == "application/json"
    status = nginx.status()
    assert status["version"]
    assert status["worker_pid"] in nginx.workers()


def test_killed_replica_is_down_at_once_and_back(cluster, client, expect):
    """Its agent is alive and reports it: no suspicion, no timeout."""
    nginx = cluster.fleet(3)
    replica = cluster.replicas["r2"]
    for _ in range(2):
        replica.kill()
        wait_for(lambda: nginx.routable() == ["r1", "r3"], "r2 to be out")
        got = wait_for(lambda: cluster.gateway.table().get("r2"), "r2")
        assert (got["state"], got["cause"], got["service"]) \
            == ("DEAD", "down", "DOWN")
        assert nginx.replicas()["r2"]["service"] == "DOWN"
        replica.start()
        wait_for(lambda: nginx.routable() == ["r1", "r2", "r3"],
                 "r2 to be back")
    for i in range(10):
        client(nginx).stream(f"{i}", 2).check(expect(f"{i}", 2))


@pytest.mark.timed
@pytest.mark.alone
def test_killed_replica_gets_nothing_after_20_ms(cluster):
    """From kill -9 to nginx's status; the median of nine kills."""
    nginx = cluster.fleet(2)
    replica, took = cluster.replicas["r2"], []
    for _ in range(9):
        start = time.monotonic()
        replica.kill()
        wait_for(lambda: nginx.routable() == ["r1"], "r2 to be out",
                 interval=0.001)
        took.append((time.monotonic() - start) * 1000)
        replica.start()
        wait_for(lambda: nginx.routable() == ["r1", "r2"], "r2 to be back")
    assert statistics.median(took) <= 20 * SLOW, took


@pytest.mark.soak
def test_killed_pair_is_dead_by_timeout(cluster):
    nginx = cluster.fleet(3)
    cluster.replicas["r2"].agent.kill()
    cluster.replicas["r2"].kill()
    wait_for(lambda: nginx.routable() == ["r1", "r3"], "r2 to be out",
             takes=4)
    wait_for(lambda: cluster.gateway.table()["r2"]["state"] == "DEAD",
             "r2 to be declared dead", takes=5)
    assert cluster.gateway.table()["r2"]["cause"] == "timeout"


def test_what_is_stopped_says_goodbye(cluster):
    """A replica, and an agent whose replica still runs."""
    nginx = cluster.fleet(3)
    assert cluster.replicas["r1"].stop() == 0
    wait_for(lambda: nginx.routable() == ["r2", "r3"], "r1 to be out")
    wait_for(lambda: (cluster.gateway.table()["r1"]["state"],
                      cluster.gateway.table()["r1"]["service"])
             == ("LEFT", "STOPPED"), "its goodbye")   # it drained first

    cluster.replicas["r2"].agent.stop()
    wait_for(lambda: cluster.gateway.table()["r2"]["state"] == "LEFT",
             "r2 to have left")
    wait_for(lambda: nginx.routable() == ["r3"], "r2 to be out")


def test_frozen_replica_is_stalled(cluster):
    nginx = cluster.fleet(2)
    replica = cluster.replicas["r1"]
    replica.proc.freeze()
    wait_for(lambda: nginx.replicas()["r1"]["service"] == "STALLED",
             "r1 to be called stalled", takes=4)      # after 3 s
    assert nginx.routable() == ["r2"]
    assert nginx.replicas()["r1"]["state"] == "ALIVE"
    replica.proc.thaw()
    wait_for(lambda: nginx.routable() == ["r1", "r2"], "r1 to be back")


def test_new_replica_joins(cluster, client, expect):
    nginx = cluster.fleet(2)
    before = view(nginx)["generation"]
    cluster.pair("r9", token_delay="1ms")
    wait_for(lambda: "r9" in nginx.routable(), "r9 to be routable")
    assert view(nginx)["generation"] > before
    served = {client(nginx).stream(f"{i}", 1).replicas[0] for i in range(40)}
    assert "r9" in served


def test_load_is_told(cluster, load):
    nginx = cluster.fleet(1)
    cluster.hold(1)
    work = load(nginx, [[f"{i}", 30] for i in range(7)])
    work.running()
    wait_for(lambda: cluster.gateway.table()["r1"]["active_requests"] == 7,
             "7 in the members list")
    wait_for(lambda: nginx.replicas()["r1"]["reported"] == 7,
             "7 in nginx's view")
    cluster.let_go()
    work.results()
    wait_for(lambda: nginx.replicas()["r1"]["reported"] == 0, "none")


# without fresh data, nginx keeps its view

def test_dead_agent_leaves_the_last_view(cluster, client, expect):
    nginx = cluster.fleet(3)
    c = client(nginx)
    cluster.gateway.kill()
    c.stream("at once", 3).check(expect("at once", 3))
    wait_for(lambda: view(nginx)["stale"], "a stale view", takes=5)
    assert nginx.routable() == ["r1", "r2", "r3"]
    c.stream("stale", 3).check(expect("stale", 3))

    nginx.reload()
    assert view(nginx)["stale"] is True
    assert nginx.routable() == ["r1", "r2", "r3"]
    with_new_worker = client(nginx)
    with_new_worker.stream("reloaded", 3).check(expect("reloaded", 3))

    cluster.gateway.start()
    wait_for(lambda: not view(nginx)["stale"], "a fresh view", takes=3)
    wait_for(lambda: nginx.routable() == ["r1", "r2", "r3"], "all three again")
    c.stream("fresh", 3).check(expect("fresh", 3))


@pytest.mark.soak
def test_no_request_is_lost_while_the_agent_restarts(cluster, load, expect):
    nginx = cluster.fleet(3)
    jobs = [[f"{i}", 5] for i in range(600)]
    work = load(nginx, jobs, connections=2, starts_per_second=150 / SLOW)
    for _ in range(3):
        cluster.gateway.kill()
        cluster.gateway.start()
        wait_for(cluster.gateway.table, "the agent to answer")
    for (prompt, n), got in zip(jobs, work.results()):
        got.check(expect(prompt, n))


@pytest.mark.soak
def test_replicas_own_agent_restarts(cluster, client, expect):
    """The replica reports to the new agent; streams are not affected."""
    nginx = cluster.fleet(2)
    replica = cluster.replicas["r1"]
    call = client(nginx)
    replica.agent.kill()
    replica.agent.start()
    wait_for(lambda: cluster.gateway.table()["r1"]["state"] == "ALIVE"
             and nginx.routable() == ["r1", "r2"], "r1 as before")
    for i in range(10):
        call.stream(f"{i}", 2).check(expect(f"{i}", 2))


def test_dead_replica_of_a_stale_view_is_passed_over(cluster, client):
    nginx = cluster.fleet(3)
    cluster.gateway.kill()
    cluster.replicas["r2"].kill()
    for i in range(12):
        got = client(nginx).stream(f"prompt {i}", 2)
        assert got.code == "OK", (got.code, got.details)
        assert got.replicas[0] in ("r1", "r3")
    cluster.gateway.start()     # the other agents would wait for it


# a file that is not a segment

def complaints(nginx):
    return [line for line in nginx.error_log.read_text().splitlines()
            if "llmgw" in line and ".members" in line and "stale" not in line]


def start_anew(cluster, nginx):
    """Starts the gateway's agent, which writes another file; nginx looks for
    that once a second."""
    before = view(nginx)["generation"]
    cluster.gateway.start()
    wait_for(lambda: view(nginx)["generation"] > before
             and not view(nginx)["stale"], "a fresh view", takes=3)


GARBAGE = {"empty": b"", "short": b"x", "zeros": bytes(65536),
           "noise": bytes((i * 197 + i // 251) & 255 for i in range(300_000)),
           "text": b"id address state\n" * 1000,
           "layout 1": struct.pack("=8sII", b"LLMGWMBR", 1, 8).ljust(12288)}


@pytest.mark.parametrize("kind", [
    pytest.param(kind, marks=() if kind == "layout 1" else pytest.mark.soak)
    for kind in GARBAGE])
def test_garbage_for_a_segment_is_refused(cluster, client, expect, kind):
    nginx = cluster.fleet(2)
    path = cluster.gateway.members
    cluster.gateway.kill()
    said = len(complaints(nginx))
    with open(path + ".new", "wb") as f:
        f.write(GARBAGE[kind])
    os.rename(path + ".new", path)

    wait_for(lambda: len(complaints(nginx)) > said, "a complaint")
    c = client(nginx)
    for i in range(10):
        c.stream(f"{i}", 2).check(expect(f"{i}", 2))
    never(lambda: len(complaints(nginx)) != said + 1, 1.2, "logged once")
    if kind == "layout 1":
        assert "no longer read: upgrade the agent" in complaints(nginx)[-1]
    assert nginx.routable() == ["r1", "r2"]
    start_anew(cluster, nginx)


@pytest.mark.soak
def test_segment_damaged_in_place(cluster, client, expect):
    """Every byte after the first page is overwritten while nginx reads."""
    nginx = cluster.fleet(2)
    path = cluster.gateway.members
    cluster.gateway.kill()
    size = os.path.getsize(path)
    with open(path, "r+b") as f:
        f.write(b"\xff" * size)
    c = client(nginx)
    for i in range(10):
        c.stream(f"{i}", 2).check(expect(f"{i}", 2))
    assert nginx.routable() == ["r1", "r2"]
    start_anew(cluster, nginx)
    c.stream("after", 2).check(expect("after", 2))


def test_segment_truncated_under_the_reader(cluster, client, expect):
    """Reading a mapping beyond the end of the file would be a SIGBUS."""
    nginx = cluster.fleet(2)
    cluster.gateway.kill()
    os.truncate(cluster.gateway.members, 100)
    c = client(nginx)
    for i in range(10):
        c.stream(f"{i}", 2).check(expect(f"{i}", 2))
    os.unlink(cluster.gateway.members)
    c.stream("gone", 2).check(expect("gone", 2))
    start_anew(cluster, nginx)

    os.unlink(cluster.gateway.members)      # this agent puts it back
    wait_for(lambda: os.path.exists(cluster.gateway.members),
             "the segment to be back", takes=3)
    cluster.replicas["r1"].kill()
    wait_for(lambda: nginx.routable() == ["r2"], "nginx to read it", takes=3)


FIRST_READS = 12        # two whole views, and some of the next


@pytest.fixture
def failing_read(tmp_path):
    return compiled("failing_read", tmp_path)


def test_first_view_is_read_again_whichever_read_of_it_fails(cluster,
                                                             failing_read):
    """Upstream n's segment comes late, and its n-th read fails."""
    cluster.agent("gw", "gateway")
    cluster.pair("r1")
    cluster.wait_ready([cluster.gateway])
    cluster.gateway.kill()
    each = range(1, FIRST_READS + 1)
    nginx = cluster.nginx(preload=failing_read, http="\n    ".join(
        f"upstream u{n} {{ llmgw_members @dir@/members.{n}; llmgw_hash; }}"
        for n in each))
    for n in each:
        os.link(cluster.gateway.members, nginx.dir / f"members.{n}")
    wait_for(lambda: all(f"read {n} of file {n} fails\n" in nginx.log()
                         for n in each), "each read to fail")
    wait_for(lambda: all(nginx.routable(f"u{n}") == ["r1"] for n in each),
             "r1 in each upstream", takes=3)    # a second after the first try
    cluster.gateway.start()     # the other agent would wait for it


def test_workers_of_another_user_read_the_segment(cluster, client, expect):
    if os.getuid() != 0:
        pytest.skip("needs root to run workers as nobody")
    nginx = cluster.fleet(1, nginx={"user": "nobody nogroup"})
    client(nginx).stream("x", 2).check(expect("x", 2))


# every order of starting

ORDERS = [o for o in itertools.permutations(["nginx", "gateway", "agent",
                                             "replica"])
          if o.index("nginx") in (0, 3) or o[0] == "replica"][::2]
IN_GATE = ORDERS[0], ORDERS[-1]


@pytest.mark.parametrize("order", [
    pytest.param(o, marks=() if o in IN_GATE else pytest.mark.soak)
    for o in ORDERS], ids="-".join)
def test_they_come_together_by_themselves(cluster, client, expect, order):
    cluster.agent("gw", "gateway", start=False)
    replica = cluster.pair("r1", start=False)
    nginx = cluster.nginx(start=False)
    start = {"nginx": lambda: cluster.launch(nginx),
             "gateway": cluster.gateway.start,
             "agent": replica.agent.start,
             "replica": replica.start}
    for part in order:
        start[part]()
    wait_for(lambda: nginx.routable() == ["r1"], "r1 to be routable")
    client(nginx).stream("together", 2).check(expect("together", 2))


@pytest.mark.soak
def test_no_replicas(cluster, client):
    """It has a reason of its own; nginx runs before any agent, and after."""
    cluster.agent("gw", "gateway", start=False)
    nginx = cluster.nginx()
    c = client(nginx)
    for _ in range(2):
        got = c.stream("x", 2)
        assert got.code == "UNAVAILABLE"
        assert got.trailers[words.REASON] == words.NO_REPLICAS
        cluster.gateway.start()
        wait_for(cluster.gateway.table, "the agent's own table")
        wait_for(lambda: view(nginx)["members"] > 0, "the agent's view")
        cluster.gateway.stop(signal.SIGQUIT)
