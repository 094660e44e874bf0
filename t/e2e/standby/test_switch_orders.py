"""llmgwctl group, with processes that only report in place of engines."""

import base64
import json
import re
import secrets
import time

import pytest

from llmgw.fleet.supervised import stat
from llmgw.proc import place
from llmgw.proc.wait import never, wait_for
from llmgw.standby.reporter import GroupReporter


class Scene:
    """A gateway's agent, and those of r1 and r2 without replicas."""

    def __init__(self, cluster, keyring=True):
        self.cluster, shared = cluster, {}
        if keyring:
            path = cluster.dir / "keys"
            path.touch(mode=0o600)
            path.write_bytes(base64.b64encode(secrets.token_bytes(32)))
            shared["keyring"] = str(path)
        self.gw = cluster.agent("gw", "gateway", **shared)
        self.r1, self.r2 = (cluster.agent(
            id, grpc=f"127.0.0.1:{cluster.ports.take()}", **shared)
            for id in ("r1", "r2"))
        for agent in (self.gw, self.r1, self.r2):
            wait_for(lambda: len(agent.table()) == 3,
                     f"{agent.id} to know all")

    def report(self, agent, state, epoch=0, **fields):
        reporter = GroupReporter(self.cluster, agent, state, epoch, **fields)
        self.shown(agent.id, state)
        return reporter

    def shown(self, id, state):
        """Waits until all agents know that state of it."""
        for agent in (self.gw, self.r1, self.r2):
            wait_for(lambda: agent.table().get(id, {}).get("group_state")
                     == state, f"{agent.id} to know {id} as {state}")

    def pair(self):
        """r1 is active, r2 stands by."""
        return self.report(self.r1, "active", 10), \
            self.report(self.r2, "standby")

    def switch(self, *words, agent=None, group="g"):
        """The command, while it runs; .end() is its exit status."""
        proc = self.cluster.run(
            f"switch-{len(self.cluster.procs)}",
            [place.binary("llmgwctl"), "-s", (agent or self.gw).control,
             "--json", "group", "switch", group, *words])
        proc.told_to_end = True
        return proc


@pytest.fixture
def scene(cluster):
    return Scene(cluster)


def lines(proc):
    return [json.loads(x) for x in proc.text().splitlines()
            if x.startswith("{") and x.endswith("}")]


def refused(agent, group="g"):
    """(exit status, code) of a switch that is refused."""
    out = agent.ctl("--json", "group", "switch", group)
    return out.returncode, json.loads(out.stdout.splitlines()[-1])["code"]


def test_active_one_gets_sigterm_twice_and_the_successor_is_awaited(scene):
    r1, r2 = scene.pair()
    switch = scene.switch()
    wait_for(lambda: len(r1.terms()) == 2, "two SIGTERMs")
    assert switch.alive()           # two at once would have been one

    r1.kill()
    r2.say("waking", 11)
    r2.say("active", 11)
    assert switch.wait(10) == 0
    *events, last = lines(switch)
    assert [e["event"] for e in events] == ["switching"] * len(events)
    assert events[0]["from"] == "r1"
    assert (last["group"], last["from"], last["to"], last["epoch"]) == \
        ("g", "r1", "r2", 11)
    assert 0 <= events[0]["ms"] <= last["ms"] and last["ms"] > 0
    assert r2.terms() == []


def test_what_cannot_be_switched_is_refused(scene):
    assert refused(scene.gw) == (4, "not_found")
    r2 = scene.report(scene.r2, "standby")
    assert refused(scene.gw) == (3, "not_active")
    r2.say("active", 5)
    scene.shown("r2", "active")
    assert refused(scene.gw) == (3, "no_standby")

    # One that loads yet cannot take over, nor can one of another group.
    r1 = scene.report(scene.r1, "init")
    assert refused(scene.gw) == (3, "no_standby")
    r1.say("standby", group="h")
    scene.shown("r1", "standby")
    assert refused(scene.gw) == (3, "no_standby")
    assert refused(scene.gw, "other") == (4, "not_found")
    out = scene.gw.ctl("group", "switch", ".x")
    assert out.returncode == 1 and '"group" is missing or wrong' in out.stderr
    assert r2.terms() == r1.terms() == []


def test_without_its_lock_service_the_active_one_is_not_ended(scene):
    """Nobody could be active next, though a standby is still shown."""
    r1, r2 = scene.pair()

    def says_away():
        status = json.loads(scene.r1.ctl("--json", "status").stdout)
        return status.get("group_lock_away", False)

    r1.say("active", 10, group_lock_away=True)
    wait_for(says_away, "its agent to know")
    assert refused(scene.gw) == refused(scene.r1) == (3, "no_lock")
    assert r1.terms() == []

    r1.say("active", 10, group_lock_away=False)
    wait_for(lambda: not says_away(), "its agent to know")
    switch = scene.switch()
    wait_for(lambda: len(r1.terms()) == 2, "two SIGTERMs")
    r1.kill()
    r2.say("active", 11)
    assert switch.wait(10) == 0


@pytest.mark.soak
def test_second_signal_waits_for_the_first_to_arrive(scene):
    """Two that wait at a stopped process are one."""
    r1, r2 = scene.pair()
    r1.proc.freeze()
    switch = scene.switch(agent=scene.r1)
    wait_for(lambda: "was asked to end" in scene.r1.proc.text(),
             "the first signal")
    time.sleep(0.3)                 # more than is between two signals
    r1.proc.thaw()
    wait_for(lambda: len(r1.terms()) == 2, "two SIGTERMs")
    r1.kill()
    r2.say("active", 11)
    assert switch.wait(10) == 0


@pytest.mark.soak
def test_command_that_was_stopped_goes_on(scene):
    r1, r2 = scene.pair()
    switch = scene.switch()
    wait_for(lambda: len(r1.terms()) == 2 and lines(switch), "the switch")
    switch.freeze()
    wait_for(lambda: stat(switch.pid)[0] == "T", "it to stop")
    switch.thaw()
    wait_for(lambda: stat(switch.pid)[0] != "T", "it to go on")
    r1.kill()
    r2.say("active", 11)
    assert switch.wait(10) == 0


def test_stranger_is_not_signalled(scene):
    """A process that names another one as itself."""
    stranger = scene.cluster.run("stranger", ["sleep", "60"])
    r1 = scene.report(scene.r1, "active", 10, pid=stranger.pid)
    scene.report(scene.r2, "standby")
    assert refused(scene.gw) == (3, "no_process")
    assert refused(scene.r1) == (3, "no_process")
    never(lambda: not stranger.alive() or r1.terms(), 0.2, "a signal")


def test_without_a_keyring_its_own_agent_alone_does_it(cluster):
    scene = Scene(cluster, keyring=False)
    r1, r2 = scene.pair()
    assert refused(scene.gw) == (3, "no_keyring")
    assert refused(scene.r2) == (3, "no_keyring")
    assert r1.terms() == []
    switch = scene.switch(agent=scene.r1)
    wait_for(lambda: len(r1.terms()) == 2, "two SIGTERMs")
    r1.kill()
    r2.say("active", 11)
    assert switch.wait(10) == 0


@pytest.mark.soak
def test_same_command_twice_ends_one_only(scene):
    r1, r2 = scene.pair()
    switches = [scene.switch(agent=agent)
                for agent in (scene.gw, scene.r1, scene.r2)]
    wait_for(lambda: len(r1.terms()) == 2, "two SIGTERMs")
    r1.kill()
    r2.say("active", 11)
    assert [switch.wait(10) for switch in switches] == [0, 0, 0]
    assert {lines(switch)[-1]["to"] for switch in switches} == {"r2"}
    assert r2.terms() == []


@pytest.mark.soak
def test_active_one_that_dies_meanwhile_is_succeeded_all_the_same(scene):
    r1, r2 = scene.pair()
    scene.r1.proc.freeze()          # the order does not reach it
    switch = scene.switch()
    wait_for(lambda: lines(switch), "the first event")
    r1.kill()
    scene.r1.proc.thaw()
    r2.say("active", 11)
    assert switch.wait(10) == 0
    assert lines(switch)[-1]["to"] == "r2"
    assert r1.terms() == []


@pytest.mark.soak
@pytest.mark.parametrize("killed", ["command", "agent"])
def test_what_was_ordered_goes_on_without_the_one_that_asked(scene, killed):
    r1, r2 = scene.pair()
    switch = scene.switch()
    wait_for(r1.terms, "a SIGTERM")
    if killed == "command":
        switch.kill()
    else:
        scene.gw.kill()
        assert switch.wait(10) == 6
    wait_for(lambda: len(r1.terms()) == 2, "two SIGTERMs")
    r1.kill()
    r2.say("active", 11)
    scene.gw = scene.r2 if killed == "agent" else scene.gw
    scene.shown("r2", "active")
    assert r2.terms() == []


@pytest.mark.soak
def test_successor_that_does_not_wake_is_a_time_out(scene):
    r1, _ = scene.pair()
    out = scene.gw.ctl("group", "switch", "g", "--timeout", "300ms")
    assert out.returncode == 5
    assert 'no standby of its group is active yet' in out.stderr
    wait_for(lambda: len(r1.terms()) == 2, "two SIGTERMs")


def test_list_shows_each_group_and_who_is_active(scene):
    out = scene.gw.ctl("group", "list")
    assert out.returncode == 0
    assert out.stdout.split() == ["GROUP", "ID", "STATE", "EPOCH", "VERSION",
                                  "SERVICE", "AGENT"]
    scene.pair()

    def listed():
        return json.loads(scene.gw.ctl("--json", "group").stdout)["groups"]
    (group,) = listed()
    assert (group["group"], group["active"], group["epoch"],
            group["conflict"]) == ("g", "r1", 10, False)
    assert [m["id"] for m in group["members"]] == ["r1", "r2"]
    table = [line.split() for line in
             scene.gw.ctl("group").stdout.splitlines()[1:]]
    assert table == [["g", "r1", "active", "10", "v1", "READY", "ALIVE"],
                     ["g", "r2", "standby", "-", "v1", "STARTING", "ALIVE"]]


@pytest.mark.soak
def test_two_active_ones_are_a_conflict_and_the_later_is_named(scene):
    scene.report(scene.r1, "active", 10)
    r2 = scene.report(scene.r2, "active", 12)
    out = scene.gw.ctl("group", "list").stdout
    assert 'more than one active replica; requests go to "r2"' in out
    r2.kill()
    wait_for(lambda: re.search("r2 +gone", scene.gw.ctl("group").stdout),
             "r2 to be gone")
    (group,) = json.loads(
        scene.gw.ctl("--json", "group").stdout)["groups"]
    assert (group["active"], group["conflict"]) == ("r1", False)
