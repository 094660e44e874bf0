"""Planned switches and rolling updates of standby groups, under streams."""

import os
import signal

import pytest

from llmgw.model.weights import WeightsService, id_of
from llmgw.proc import place
from llmgw.proc.wait import never, wait_for
from llmgw.speak import rpc
from llmgw.speak.traffic import Stream, Traffic
from llmgw.standby.fleet import GroupFleet
from llmgw.standby.group import Group

PAIR = {"g": ["r1", "r2"]}

# Gossip that declares a member dead within two seconds or so, and not one that
# had no processor for some hundred ms.
QUICK = {"protocol_period": "200ms", "ping_timeout": "100ms",
         "suspect_timeout": "1s"}

LONG = 100000                       # tokens: it ends when a test cancels it


@pytest.fixture
def fleet(cluster):
    """fleet(groups, n, ...): a GroupFleet, closed before the cluster's end."""
    made = []

    def make(groups=PAIR, n=None, **options):
        made.append(GroupFleet(cluster, groups, n, **options))
        return made[-1]
    yield make
    for one in made:
        one.close()


def begun(update):
    """(id, step) of each step that was entered, without those that only wait:
    what they wait for may be there already, and then they are not told."""
    return [(e["id"], e["step"]) for e in update.lines()
            if e.get("event") == "step"
            and e["step"] not in ("waiting", "rejoin")]


def begin(load, one):
    """Traffic that has begun everywhere."""
    traffic = Traffic(load, one.nginxes)
    for part in traffic.parts:
        part.running()
    return traffic


def knows(agent, id, state):
    """Waits until the agent knows that state of an engine."""
    wait_for(lambda: agent.table().get(id, {}).get("group_state") == state,
             f"{agent.id} to know {id} as {state}")


# the switch

def test_switches_under_streams_lose_nothing(fleet, load, expect, client):
    one = fleet()
    traffic = begin(load, one)
    long = Stream(client, one.nginx, one.active(), LONG)
    for _ in range(2):
        before = one.active()
        (after,) = set(PAIR["g"]) - {before}
        status, said = one.switch()
        assert status == 0, said
        assert f"g: {after} is active with epoch" in said
        assert f"{before} was" in said
        one.wait_whole_groups()     # it is started again, as the standby
        assert one.active() == after
    wait_for(lambda: len(long.result.replicas) >= 3,
             "the stream to be back where it was")
    long.cancel()
    long.check(expect)
    assert traffic.check(expect) > 50


@pytest.mark.soak
def test_active_one_killed_in_a_switch_is_succeeded(fleet, load, expect):
    one = fleet()
    traffic = begin(load, one)
    before = one.active()
    pid = one.members[before].pid()
    switch = one.cluster.run("switch", [
        "sh", "-c", f"kill -STOP {pid}; exec " + " ".join(
            [place.binary("llmgwctl"), "-s", one.gw.control, "group",
             "switch", "g"])])
    switch.told_to_end = True
    wait_for(lambda: "waiting" in switch.text(), "the switch to begin")
    os.kill(pid, signal.SIGKILL)
    assert switch.wait(20) == 0, switch.text()
    one.wait_whole_groups()
    assert one.active() != before
    traffic.check(expect)


def test_engine_that_no_agent_runs_is_told_to_end(cluster, client, expect):
    gw = cluster.agent("gw", "gateway")
    group = Group(cluster).start()
    nginx = cluster.nginx()
    wait_for(lambda: nginx.routable() == ["a"], "a to be routable")
    stream = Stream(client, nginx, "a", LONG)
    stream.wait_tokens(5)
    group["a"].proc.told_to_end = True

    # Without a keyring, its own agent alone may do it.
    for agent in (gw, group["a"].agent):
        knows(agent, "b", "standby")
    assert "no_keyring" in gw.ctl("--json", "group", "switch", "g").stdout
    out = group["a"].agent.ctl("group", "switch", "g")
    assert out.returncode == 0, out.stderr
    assert group["a"].proc.wait(10) == 0
    wait_for(lambda: stream.result.replicas == ["a", "b"], "it to go on")
    stream.cancel()
    stream.check(expect)

    # There is no standby now; when there is one, it switches back.
    knows(group["b"].agent, "b", "active")
    out = group["b"].agent.ctl("group", "switch", "g")
    assert out.returncode == 3 and "has no standby" in out.stderr
    group["a"].start().wait("STANDBY")
    knows(group["b"].agent, "a", "standby")
    group["b"].proc.told_to_end = True
    assert group["b"].agent.ctl("group", "switch", "g").returncode == 0
    group.wait_active("a")
    group.check()


def held(cluster, client, nginx, id, prompt="long"):
    """A call that this engine has given five of 20 tokens, and its result."""
    cluster.replicas[id].faults(gate=5)
    call, result = client(nginx).start(prompt, 20), rpc.Result()
    for _ in range(5):
        result.add(next(call), 0)
    assert result.replicas == [id]
    return call, result


def end(engine):
    engine.proc.told_to_end = True
    os.kill(engine.proc.pid, signal.SIGTERM)


def test_sigterm_hands_over_to_a_standby_at_once(cluster, client, expect):
    """Its stream goes on there, and what comes meanwhile is served."""
    cluster.agent("gw", "gateway")
    group = Group(cluster).start()
    nginx = cluster.nginx()
    wait_for(lambda: nginx.routable() == ["a"], "a to be routable")
    call, result = held(cluster, client, nginx, "a")
    end(group["a"])
    second = client(nginx).start("second", 20)
    got = rpc.drain(second).check(expect("second", 20))
    assert got.replicas[-1] == "b"
    rpc.drain(call, into=result).check(expect("long", 20))
    assert result.replicas == ["a", "b"]
    assert group["a"].proc.wait() == 0
    assert "handing over to a standby" in group["a"].proc.text()
    group.check()


def test_sigterm_without_a_standby_drains_until_there_is_one(
        cluster, client, expect):
    cluster.agent("gw", "gateway")
    group = Group(cluster).start()
    nginx = cluster.nginx()
    wait_for(lambda: nginx.routable() == ["a"], "a to be routable")
    group.kill("b")
    call, result = held(cluster, client, nginx, "a")
    end(group["a"])
    wait_for(lambda: nginx.routable() == [], "a to drain")
    never(lambda: not group["a"].proc.alive(), 1)
    group["b"].start().wait("ACTIVE")
    rpc.drain(call, into=result).check(expect("long", 20))
    assert result.replicas == ["a", "b"]
    group.check()


def test_sigterm_without_the_lock_service_is_a_drain(cluster, client, expect):
    """Nobody would be granted: its stream ends where it is."""
    cluster.agent("gw", "gateway")
    group = Group(cluster).start()
    nginx = cluster.nginx()
    wait_for(lambda: nginx.routable() == ["a"], "a to be routable")
    group.service.kill()
    call, result = held(cluster, client, nginx, "a")
    end(group["a"])
    wait_for(lambda: nginx.routable() == [], "a to drain")
    never(lambda: not group["a"].proc.alive(), 1)
    group["a"].faults(gate=-1)
    rpc.drain(call, into=result).check(expect("long", 20))
    assert result.replicas == ["a"]
    assert group["a"].proc.wait() == 0
    group.service.start()
    group.wait_active("b")
    group.check()


@pytest.mark.soak
def test_sigterm_by_hand_is_a_switch_too(fleet):
    """Its goodbye does not keep it from being started again."""
    one = fleet()
    before = one.active()
    os.kill(one.members[before].pid(), signal.SIGTERM)
    wait_for(lambda: one.active() not in (None, before),
             "the other one to be active")
    one.wait_whole_groups()


# rolling updates

@pytest.mark.parametrize("commands", [
    pytest.param(False, id="orders"),
    pytest.param(True, id="commands", marks=pytest.mark.soak)])
def test_update_of_a_group_loses_nothing(fleet, load, expect, commands):
    one = fleet(commands=commands)
    traffic = begin(load, one)
    active = one.active()
    (standby,) = set(PAIR["g"]) - {active}
    update = one.update().done()
    replaced = ["stop", "start"] if commands else ["restart"]
    assert begun(update) == [
        (standby, step) for step in [*replaced, "done"]] + [
        (active, step) for step in ["switch", "probe", *replaced, "done"]]
    one.wait_whole("v2")
    assert one.active() == standby
    traffic.check(expect)


@pytest.mark.soak
def test_groups_and_plain_replicas_in_one_update(fleet, load, expect):
    groups = {"g": ["r1", "r4"], "h": ["r3", "r5"]}
    one = fleet(groups, 5)
    traffic = begin(load, one)
    plan = one.gw.ctl("rolling-update", "--to", "v2", "--dry-run").stdout
    assert plan.count("of group g") == plan.count("of group h") == 2
    assert "r2  v1  order\n" in plan
    update = one.update().done()
    order = list(dict.fromkeys(id for id, _ in begun(update)))
    assert sorted(order[:2]) == ["r1", "r4"]
    assert order[2] == "r2"
    assert sorted(order[3:]) == ["r3", "r5"]
    assert {id for id, step in begun(update) if step == "drain"} == {"r2"}
    assert update.last["update"]["done"] == 5
    one.wait_whole("v2")
    traffic.check(expect)


@pytest.mark.soak
def test_killed_drivers_update_is_taken_up(fleet, load, expect):
    one = fleet(gateways=2, agent=QUICK)
    traffic = Traffic(load, one.nginxes[1:])
    for part in traffic.parts:
        part.running()
    update = one.update()
    active = one.active()
    update.wait_step(active, "switch")
    one.gw.kill()
    assert update.end() == 6
    wait_for(lambda: one.gateways[1].table()["gw1"]["state"] == "DEAD",
             "the driver to be known as dead")
    again = one.update(gateway=one.gateways[1]).done()
    assert again.last["update"]["done"] == 2
    one.gw.start()
    one.wait_whole("v2")
    traffic.check(expect)


def test_successor_that_does_not_generate_stops_the_update(fleet, client,
                                                           expect):
    """And the old version is a switch away."""
    one = fleet(quirk="test $version = v2 && more=--reject-all; :")
    active = one.active()
    update = one.update()
    assert update.end() == 1
    assert (update.last["id"], update.last["step"]) == (active, "probe")
    one.wait_whole_groups()
    assert one.active() != active
    assert one.versions()[active] == "v1"

    assert one.update(to="v1").done().last["update"]["done"] == 2
    one.wait_whole("v1")
    assert one.active() == active
    client(one.nginx).stream("on", 5).check(expect("on", 5))


@pytest.mark.soak
def test_version_that_does_not_wake_leaves_the_old_one_active(
        fleet, client, expect):
    """The one that was active comes back with the old version, and wakes."""
    one = fleet(quirk="test $version = v2 && more='--waking-timeout 10ms "
                      "--model-memory 300'; :")
    active = one.active()
    update = one.update()
    assert update.end() == 1
    assert (update.last["id"], update.last["step"]) == (active, "switch")
    assert f'"{active}" of version "v1" is active now' in update.said()
    wait_for(lambda: one.nginx.routable() == [active], "nginx to know")
    client(one.nginx).stream("on", 5).check(expect("on", 5))
    assert one.update(to="v1").done().last["update"]["done"] == 2
    one.wait_whole("v1")


@pytest.mark.soak
def test_each_version_of_the_weights_has_a_service_of_its_own(
        fleet, cluster, load, expect):
    services = []
    for i in (1, 2):
        (cluster.dir / f"w-v{i}.bin").write_bytes(os.urandom(1 << 20))
        services.append(WeightsService(
            cluster, i, socket=cluster.dir / f"weights-v{i}.sock"))
    one = fleet(weights=cluster.dir / "weights-{version}.sock",
                weights_file=cluster.dir / "w-{version}.bin")
    traffic = begin(load, one)
    services[0].wait_roles(r1="reader", r2="reader")
    one.update().done()
    one.wait_whole("v2")
    services[1].wait_roles(r1="reader", r2="reader")
    services[0].wait_roles()
    assert services[1].state()["id"] == id_of(
        (cluster.dir / "w-v2.bin").read_bytes())
    traffic.check(expect)
