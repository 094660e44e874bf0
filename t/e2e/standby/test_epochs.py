"""What engines say of their standby group reaches the segment."""

import json
import os
import signal
import time

import pytest

from llmgw.engine.report_connection import Reporter
from llmgw.fleet import segment
from llmgw.proc import place
from llmgw.proc.wait import never, wait_for

LOCK = "00000000deadbeef"
EPOCH = int(time.time() * 1e6)


@pytest.fixture
def pair(cluster):
    """A gateway's agent, and two whose replicas are the test itself: r1 is
    active, and r2 stands by."""
    def make():
        gw = cluster.agent("gw", "gateway")
        wait_for(lambda: os.path.exists(gw.members), "the segment")
        return [Reporter(cluster, cluster.agent(id, grpc=f"127.0.0.1:{port}"),
                         group="g", **says)
                for id, port, says in [
                    ("r1", cluster.ports.take(), active(EPOCH)),
                    ("r2", cluster.ports.take(), standby())]]
    return make


def active(epoch):
    return {"group_state": "active", "group_epoch": epoch, "group_lock": LOCK}


def standby():
    return {"group_state": "standby"}


def in_segment(cluster, id, **fields):
    record = (segment.records(cluster.gateway.members) or {}).get(id, {})
    return fields.items() <= record.items()


def shown(agent, id, **fields):
    return fields.items() <= agent.table().get(id, {}).items()


def log(agent):
    return agent.proc.text()


def whole_lines(proc):
    """Of a process that may be writing the last one."""
    return [line for line in proc.text().splitlines(True)
            if line.endswith("\n")]


def test_takeover_reaches_the_segment(cluster, pair):
    """The dead one keeps its epoch, and the next one has a greater one."""
    r1, r2 = pair()
    gw = cluster.gateway
    wait_for(lambda: in_segment(
        cluster, "r1", service="READY", group="g", group_state="active",
        group_epoch=EPOCH, group_lock=LOCK), "the active one")
    wait_for(lambda: in_segment(
        cluster, "r2", service="STARTING", group="g", group_state="standby",
        group_epoch=0), "the standby")
    assert not cluster.gateway.table()["gw"].get("group")
    events = cluster.run("events", [place.binary("llmgwctl"), "-s", gw.control,
                                    "events"])
    wait_for(lambda: '"event":"members"' in events.text(), "the first")

    r1.close()
    r2.say(group_state="waking", group_epoch=EPOCH + 1, group_lock=LOCK)
    wait_for(lambda: in_segment(cluster, "r2", service="STARTING",
                                group_state="waking"), "it to wake")
    r2.say(group_state="active")
    wait_for(lambda: in_segment(
        cluster, "r2", service="READY", group_state="active",
        group_epoch=EPOCH + 1, group_lock=LOCK), "the next active one")
    wait_for(lambda: in_segment(
        cluster, "r1", service="DOWN", group="g", group_state="active",
        group_epoch=EPOCH), "the dead one")
    wait_for(lambda: shown(cluster.agents["r1"], "r2", service="READY",
                           group_state="active", group_epoch=EPOCH + 1),
             "it at the other agent")

    line = f'replica "r2" is ACTIVE of group "g", epoch {EPOCH + 1}'
    wait_for(lambda: line in log(gw), "its line")
    wait_for(lambda: [e for e in map(json.loads, whole_lines(events))
                      if (e["event"], e.get("id")) == ("group", "r2")
                      and (e["group"], e["to"], e["epoch"])
                      == ("g", "active", EPOCH + 1)], "the event")
    status = json.loads(cluster.agents["r2"].ctl("--json", "status").stdout)
    assert (status["group"], status["group_state"]) == ("g", "active")
    rows = gw.ctl("members").stdout.splitlines()
    assert rows[0].split()[4] == "GROUP"
    assert f"g active {EPOCH + 1}" in rows[3]


@pytest.mark.soak
def test_column_of_groups_is_there_where_groups_are(cluster):
    agent = cluster.agent("gw", "gateway")
    wait_for(lambda: agent.table().get("gw"), "its table")
    assert "GROUP" not in agent.ctl("members").stdout


def test_next_agent_of_the_gateway_keeps_groups(cluster, pair):
    """From the segment, while nobody tells it again; one that left says LEFT
    and keeps its own, too."""
    pair()
    wait_for(lambda: in_segment(cluster, "r1", group_epoch=EPOCH)
             and in_segment(cluster, "r2", group_state="standby"), "both")
    cluster.agents["r2"].stop(signal.SIGTERM)
    wait_for(lambda: in_segment(cluster, "r2", liveness="LEFT", group="g",
                                group_state="standby"), "it to leave")
    cluster.gateway.stop(signal.SIGQUIT)
    cluster.agents["r1"].stop(signal.SIGQUIT)
    cluster.gateway.start()
    wait_for(lambda: shown(cluster.gateway, "r1", group="g",
                           group_state="active", group_epoch=EPOCH), "it")
    wait_for(lambda: in_segment(cluster, "r1", group_epoch=EPOCH,
                                group_lock=LOCK), "it in the segment")


def test_epoch_a_day_ahead_of_the_clock_is_refused(cluster, pair):
    """The rest of the record stands, and one line says why."""
    r1, r2 = pair()
    wait_for(lambda: in_segment(cluster, "r1", group_epoch=EPOCH), "it")
    agent = cluster.agents["r1"]
    ahead = int((time.time() + 25 * 3600) * 1e6)
    r1.say(group_epoch=ahead, max_capacity=7)
    wait_for(lambda: shown(cluster.gateway, "r1", max_capacity=7), "it")
    wait_for(lambda: in_segment(
        cluster, "r1", service="READY", group="g", group_state="init",
        group_epoch=0), "it in the segment")
    warning = 'replica "r1" has an epoch of group "g" that is 25 hours ahead'
    wait_for(lambda: warning in log(agent), "the warning")
    never(lambda: log(agent).count(warning) > 1, 0.2, "it again")
    r1.say(group_epoch=EPOCH + 1)
    wait_for(lambda: in_segment(cluster, "r1", group_state="active",
                                group_epoch=EPOCH + 1), "it again")


@pytest.mark.soak
def test_wrong_group_is_refused_with_its_reason(cluster, pair):
    r1, r2 = pair()
    wait_for(lambda: in_segment(cluster, "r1", group_epoch=EPOCH), "it")
    for wrong, words in [({"group": "a/b"}, '"group" is not 1 to 31'),
                         ({"group_state": "ACTIVE"}, '"group_state" is none'),
                         ({"group_epoch": None}, '"group_epoch" is wrong'),
                         ({"group_lock": "1"}, '"group_lock" is not 16'),
                         ({"group": None}, 'without "group"')]:
        answer = r1.refusal(**wrong)
        assert answer["code"] == "bad_report"
        assert words in answer["error"]
    wait_for(lambda: in_segment(cluster, "r1", group_state="active",
                                group_epoch=EPOCH), "no change")
