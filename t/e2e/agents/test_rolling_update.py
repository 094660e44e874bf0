"""llmgwctl rolling-update on real processes, under load."""

import json
import os
import shlex
import signal

import pytest

from llmgw.fleet.supervised import processes
from llmgw.fleet.updates import fleets, limit, rolling, status
from llmgw.proc.wait import never, wait_for
from llmgw.speak import rpc
from llmgw.speak.traffic import Stream, Traffic, Watch

# How often a pool is updated under load.
ROUNDS = int(os.environ.get("LLMGW_UPDATES", 1))

TOKENS = 40         # of a long request


@pytest.fixture
def fleet(cluster):
    yield from fleets(cluster)


def a_stream(one, client, replica):
    """A long request there, which stands at its tenth token."""
    one.hold(10)
    stream = Stream(client, one.nginx, replica, TOKENS)
    wait_for(lambda: len(stream.result.tokens) == 10, "ten tokens")
    return stream


def lives(one, stream):
    """Ten further tokens come, and then it stands again."""
    upto = len(stream.result.tokens) + 10
    one.hold(upto)
    wait_for(lambda: len(stream.result.tokens) == upto, f"{upto} tokens")
    assert not stream.result.code, stream.result


def ends(one, stream, expect):
    """It runs on to its end, and every token came once."""
    one.let_go()
    return stream.end().check(expect(stream.prompt, TOKENS))


def check(traffic, expect, nginxes):
    """All requests were served, none with a second try."""
    n = traffic.check(expect)

    def asked():
        return sum((one.dir / "access.log").read_text().count(rpc.INFER)
                   for one in nginxes)
    wait_for(lambda: asked() >= n, "a line for each request")
    assert n == asked() > 100


# under load

@pytest.mark.parametrize("commands", [
    False, pytest.param(True, marks=pytest.mark.soak)],
    ids=["orders", "commands"])
def test_update_under_load_loses_nothing(fleet, load, expect, commands):
    one = fleet(3, commands=commands)
    traffic, watch = Traffic(load, one.nginxes), Watch(one)
    for part in traffic.parts:
        part.running()
    for i in range(ROUNDS):
        update = one.update(to=f"v{i + 2}").done()
        assert update.order() == ["r1", "r2", "r3"]
        assert update.last["update"]["done"] == 3
    watch.check()
    check(traffic, expect, one.nginxes)
    one.wait_whole(f"v{ROUNDS + 1}")


@pytest.mark.soak
@pytest.mark.parametrize("n", [3, 2])
def test_two_gateways_lose_nothing(fleet, load, expect, n):
    one = fleet(n, gateways=2)
    traffic = Traffic(load, one.nginxes)
    for part in traffic.parts:
        part.running()
    update = one.update(gateway=one.gateways[1]).done()
    assert update.last["update"]["done"] == n
    check(traffic, expect, one.nginxes)
    one.wait_whole("v2")
    for agent in one.gateways:
        assert one.drained(agent) == {}


@pytest.mark.soak
def test_replica_that_a_shell_runs_is_restarted(fleet):
    """Its agent started a shell, which does not pass SIGTERM on."""
    one = fleet(2, is_wrapped=True)
    before = {m.id: m.agent.proc.pid for m in one.members.values()}
    one.update().done()
    one.wait_whole("v2")
    for member in one.members.values():
        assert member.agent.proc.alive()
        assert member.agent.proc.pid == before[member.id]
        assert member.pid()


@pytest.mark.soak
def test_as_many_at_once_as_are_asked_for(fleet, client):
    one = fleet(5, commands=True)
    streams = [a_stream(one, client, id) for id in ("r1", "r2")]
    update = one.update("--max-unavailable", "2")
    update.wait_step("r1", "drain")
    update.wait_step("r2", "drain")
    wait_for(lambda: sorted(one.drained()) == ["r1", "r2"],
             "both to be drained")
    never(lambda: len(one.drained()) > 2, 0.5, "a third")
    for stream in streams:
        stream.cancel()
    assert update.done().last["update"]["min_available"] == 3
    one.wait_whole("v2")


# a bad version: the update stops, the service goes on

QUIRKS = {
    "rejoin": ("test -e {dir}/broken && test $version = v2 && exit 7; :",
               "not back after"),
    "version": ("test -e {dir}/broken && test $version = v2 && version=v9",
                'version "v9"'),
    "probe": ("test -e {dir}/broken && test $version = v2 "
              "&& more=--reject-all", "UNAVAILABLE"),
}


@pytest.mark.parametrize("kind", [
    "rejoin", pytest.param("version", marks=pytest.mark.soak),
    pytest.param("probe", marks=pytest.mark.soak)])
def test_bad_version_stops_the_update(fleet, cluster, client, expect, kind):
    quirk, word = QUIRKS[kind]
    broken = cluster.dir / "broken"
    broken.touch()
    one = fleet(2, quirk=quirk.format(dir=cluster.dir))
    update = one.update("--rejoin-timeout", limit(1) if kind == "rejoin"
                        else limit(10))
    assert update.end() == 1
    assert update.last["code"] == "step_failed"
    assert update.last["id"] == "r1"
    assert update.last["step"] == ("probe" if kind == "probe" else "rejoin")
    assert 'replica "r1" failed at' in update.said()
    assert word in update.said() and "0 of 2 done" in update.said()

    # The other was not touched, none is drained, requests are served.
    assert {s["id"]: s["step"] for s in update.last["update"]["steps"]} == \
        {"r1": "failed", "r2": "undone"}
    assert one.versions()["r2"] == "v1"
    wait_for(lambda: one.drained() == {}, "no drain")
    calls = client(one.nginx)
    for i in range(20):
        calls.stream(f"on {i}", 5).check(expect(f"on {i}", 5))
    assert status(one.gw)["state"] == "failed"

    # Back to the old version; once repaired, the same command continues.
    if kind == "rejoin":
        assert one.update(to="v1").done().order() == ["r1"]
        one.wait_whole("v1")
    broken.unlink()
    if kind == "probe":
        one.members["r1"].kill()
        one.members["r1"].replica.client.faults(reject_all=False)
    again = one.update().done()
    assert again.last["update"]["done"] == 2
    one.wait_whole("v2")


@pytest.mark.parametrize("step", [
    "start", pytest.param("stop", marks=pytest.mark.soak)])
def test_command_that_fails_stops_the_update(fleet, client, expect, step):
    one = fleet(2, commands=True)
    words = {"stop": one.stop, "start": one.start,
             step: "echo $LLMGW_ID at $LLMGW_GRPC: no such unit >&2; exit 3"}
    update = one.update("--stop", words["stop"], "--start", words["start"],
                        commands=False)
    assert update.end() == 1
    assert (update.last["id"], update.last["step"]) == ("r1", step)
    assert f'replica "r1" failed at "{step}": exit status 3: ' \
        f"r1 at {one.members['r1'].target}: no such unit" in update.said()
    wait_for(lambda: one.drained() == {}, "no drain")
    client(one.nginx).stream("on", 5).check(expect("on", 5))
    assert one.update().done().order()[0] == "r1"
    one.wait_whole("v2")


def test_agent_may_be_stopped_along_with_its_replica(fleet, cluster, client,
                                                     expect):
    """Like systemd units that stop together, or a pod."""
    one = fleet(2)
    for id, member in one.members.items():
        (cluster.dir / f"{id}.agent").write_text(
            f"exec setsid {shlex.join(member.agent.argv)}")
        (cluster.dir / f"{id}.agent.pid").write_text(
            str(member.agent.proc.pid))
        member.agent.proc.told_to_end = True
    pid = f"{cluster.dir}/$LLMGW_ID.agent.pid"
    stop = (f"p=$(cat {pid}); kill $p; "
            "while test -e /proc/$p/exe; do sleep 0.02; done")
    start = (f"sh {cluster.dir}/$LLMGW_ID.agent "
             f">>{cluster.dir}/$LLMGW_ID.again.log 2>&1 & echo $! >{pid}")
    try:
        update = one.update("--stop", stop, "--start", start).done()
        assert update.order() == ["r1", "r2"]
        one.wait_whole("v2")
        client(one.nginx).stream("on", 5).check(expect("on", 5))
    finally:
        for id in one.members:
            os.kill(int((cluster.dir / f"{id}.agent.pid").read_text()),
                    signal.SIGTERM)
        wait_for(lambda: not any(processes(m.agent.control)
                                 for m in one.members.values()),
                 "the end of the new agents", takes=5)


@pytest.mark.soak
def test_command_that_does_not_end_is_ended(fleet, cluster):
    one = fleet(3, commands=True)
    update = one.update("--stop", "echo waiting; sleep 1000", "--start", "true",
                        "--rejoin-timeout", "1s", commands=False)
    assert update.end() == 1
    assert "not done after 1 s: waiting" in update.said()


# an agent dies

def test_update_goes_on_without_its_client(fleet, client, expect):
    one = fleet(2, commands=True)
    stream = a_stream(one, client, "r1")
    update = one.update()
    update.wait_step("r1", "drain")
    update.proc.kill()
    shown = status(one.gw)
    assert (shown["state"], shown["to"]) == ("running", "v2")
    assert shown["steps"][0]["step"] == "drain"

    # The same command attaches to it, and ends when the update ends.
    again = one.update()
    wait_for(again.lines, "its first line")
    assert again.lines()[0]["attached"]
    assert again.lines()[0]["update"]["id"] == shown["id"]
    ends(one, stream, expect)
    assert again.done().last["update"]["done"] == 2
    assert status(one.gw)["state"] == "complete"
    one.wait_whole("v2")


@pytest.mark.soak
def test_agent_that_leaves_gives_back_what_it_drained(fleet, client, expect):
    one = fleet(3)
    stream = a_stream(one, client, "r1")
    update = one.update()
    update.wait_step("r1", "drain")
    agent = one.members["r1"].agent
    wait_for(lambda: "r1" in one.drained(agent), "the drain of r1")
    assert one.gw.stop() == 0
    assert update.end() == 1 and update.last["code"] == "aborted"
    wait_for(lambda: one.drained(agent) == {}, "no drain")
    ends(one, stream, expect)


@pytest.mark.soak
def test_agent_that_leaves_finishes_what_it_stopped(fleet, cluster):
    one = fleet(3, commands=True)
    go_on = cluster.dir / "go-on"
    update = one.update(
        "--stop", one.stop + f"while ! test -e {go_on}; do sleep 0.02; done",
        "--start", one.start, commands=False)
    update.wait_step("r1", "stop")
    one.gw.proc.send(signal.SIGTERM)
    wait_for(lambda: "leaving" in one.gw.proc.text(), "SIGTERM")
    go_on.touch()
    assert one.gw.proc.wait(15) == 0
    assert update.end() == 1 and update.last["code"] == "aborted"
    assert update.last["update"]["done"] == 1
    agent = one.members["r1"].agent
    wait_for(lambda: one.versions(agent)["r1"] == "v2", "r1 as v2")
    assert one.drained(agent) == {}


def test_killed_agent_leaves_what_the_same_command_takes_up(fleet, client,
                                                            expect):
    one = fleet(3)
    stream = a_stream(one, client, "r2")
    update = one.update()
    update.wait_step("r2", "drain")
    wait_for(lambda: "r2" in one.drained(), "the drain of r2")
    one.gw.kill()
    assert update.end() == 6
    lives(one, stream)

    one.gw.start()
    wait_for(lambda: "r2" in one.drained(), "the drain, as it was")
    again = one.update()
    again.wait_step("r2", "drain")
    ends(one, stream, expect)
    assert stream.result.replicas == ["r2"]
    assert again.done().order() == ["r2", "r3"]
    assert again.last["update"]["skipped"] == 1
    one.wait_whole("v2")


@pytest.mark.soak
def test_drain_of_a_killed_agent_ends(fleet, client, expect):
    """Its lease of half a minute."""
    one = fleet(3)
    stream = a_stream(one, client, "r1")
    update, others = one.update(), [m.agent for m in one.members.values()]
    wait_for(lambda: all("r1" in one.drained(x) for x in others),
             "the drain of r1, at all")
    one.gw.kill()
    assert update.end() == 6
    wait_for(lambda: not any(one.drained(x) for x in others),
             "the end of the lease", takes=45)
    ends(one, stream, expect)
    one.gw.start()
    wait_for(lambda: one.nginx.routable() == ["r1", "r2", "r3"],
             "all to be routable")


@pytest.mark.soak
def test_replica_that_is_killed_in_its_drain_is_updated(fleet, client,
                                                        expect):
    one = fleet(3)
    stream = a_stream(one, client, "r1")
    update = one.update()
    update.wait_step("r1", "drain")
    wait_for(lambda: "r1" in one.drained(), "the drain of r1")
    one.let_go("r2", "r3")
    one.members["r1"].kill()
    update.done()
    stream.end().check(expect(stream.prompt, TOKENS))
    assert stream.result.replicas[0] == "r1"
    assert len(stream.result.replicas) >= 2
    one.wait_whole("v2")


@pytest.mark.soak
def test_agent_of_a_draining_replica_may_be_killed(fleet, client, expect):
    """The next agent drains its replica again, and restarts it."""
    one = fleet(3)
    stream = a_stream(one, client, "r1")
    update = one.update()
    update.wait_step("r1", "drain")
    agent = one.members["r1"].agent
    wait_for(lambda: "r1" in one.drained(agent), "the drain of r1")
    agent.kill()
    agent.start()
    wait_for(lambda: "r1" in one.drained(agent), "the drain, again")
    lives(one, stream)
    assert update.steps("r1") == ["drain"]
    ends(one, stream, expect)
    assert update.done().order() == ["r1", "r2", "r3"]
    one.wait_whole("v2")


@pytest.mark.soak
def test_agent_that_starts_anew_at_the_release_has_released(fleet):
    """A lease ends when the agent that it was given to restarts."""
    one = fleet(2, first_token_delay="1s")
    agent = one.members["r1"].agent
    update = one.update()
    update.wait_step("r1", "probe")
    agent.proc.freeze()
    update.wait_step("r1", "release")
    agent.kill()
    agent.start()
    assert update.done().last["update"]["done"] == 2
    one.wait_whole("v2")


# long streams

def test_drain_waits_for_a_long_stream(fleet, client, expect):
    one = fleet(2)
    stream = a_stream(one, client, "r1")
    update = one.update()
    update.wait_step("r1", "drain")

    def progress():
        return [e["steps"][0] for e in update.lines()
                if e["event"] == "progress"]
    wait_for(progress, "a word of the update", takes=3)
    assert progress()[-1]["active_requests"] == 1
    lives(one, stream)
    assert update.steps("r1") == ["drain"]

    # An abort ends the update and undrains r1.
    out = one.gw.ctl("--json", "rolling-update", "--abort")
    assert out.returncode == 0
    assert json.loads(out.stdout.splitlines()[-1])["update"]["state"] \
        == "aborted"
    assert update.end() == 1 and update.last["code"] == "aborted"
    assert one.drained() == {}
    wait_for(lambda: "r1" in one.nginx.routable(), "r1 to be routable")
    ends(one, stream, expect)
    assert stream.result.replicas == ["r1"]
    assert set(one.versions().values()) == {"v1"}


@pytest.mark.parametrize("commands", [
    False, pytest.param(True, marks=pytest.mark.soak)],
    ids=["orders", "commands"])
def test_drain_timeout_moves_a_long_stream(fleet, client, expect, commands):
    """With --stop, the replica's own --drain-timeout ends its wait."""
    one = fleet(2, commands=commands, drain_timeout="500ms")
    stream = a_stream(one, client, "r1")
    update = one.update("--drain-timeout", "500ms", "--members", "r1").done()
    [done] = [e for e in update.lines() if e.get("event") == "step"
              and (e["id"], e["step"]) == ("r1", "done")]
    assert done["streams_left"] == 1
    assert one.versions() == {"r1": "v2", "r2": "v1"}
    ends(one, stream, expect)
    assert stream.result.replicas == ["r1", "r2"]


# one at a time

def test_second_update_is_refused(fleet, client, expect):
    one = fleet(2, gateways=2, commands=True)
    stream = a_stream(one, client, "r1")
    update = one.update()
    update.wait_step("r1", "drain")
    other = one.gateways[1]
    wait_for(lambda: one.drained(other), "the drain at the other gateway")
    owner = other.table()["r1"]["drain_owner"]
    assert owner == "update:" + status(one.gw)["id"]

    for agent, to in ((one.gw, "v3"), (other, "v3"), (other, "v2")):
        code, out, err = rolling(agent, "--to", to)
        assert code == 3 and 'driven by "gw1"' in err, (to, err)
    assert status(other) is None
    ends(one, stream, expect)
    update.done()
    one.wait_whole("v2")
    assert rolling(other, "--to", "v2")[0] == 0


@pytest.mark.soak
def test_of_two_at_the_same_instant_one_yields(fleet, client):
    one = fleet(3, gateways=2, commands=True)
    stream = a_stream(one, client, "r1")
    updates = [one.update(gateway=gw, to=f"v{i + 2}")
               for i, gw in enumerate(one.gateways)]
    wait_for(lambda: not all(u.proc.alive() for u in updates),
             "one of them to yield")
    stream.cancel()
    codes = [update.end() for update in updates]
    assert sorted(codes) == [0, 3], [u.proc.text() for u in updates]
    won = codes.index(0)
    assert updates[1 - won].last["code"] == "update_running"
    assert updates[1 - won].order() == []
    one.wait_whole(f"v{won + 2}")
