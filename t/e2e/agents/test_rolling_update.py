"""llmgwctl rolling-update on real processes, under load."""

import json
import os
import pty
import re
import shlex
import signal
import subprocess

import pytest

from llmgw import place, rpc
from llmgw.supervised import processes
from llmgw.traffic import Stream, Traffic, Watch
from llmgw.updates import Fleet, limit
from llmgw.wait import never, wait_for

# How often a pool is updated under load; ten and more also wait for what takes
# half a minute.
ROUNDS = int(os.environ.get("LLMGW_UPDATES", 2))


@pytest.fixture
def fleet(cluster):
    """fleet(n=3, ...): a fleet, closed before the cluster's end."""
    made = []

    def make(n=3, **options):
        made.append(Fleet(cluster, n, **options))
        return made[-1]
    yield make
    for one in made:
        one.close()


def status(agent):
    out = agent.ctl("--json", "status")
    return json.loads(out.stdout)["update"] if out.returncode == 0 else None


def rolling(agent, *words):
    """Runs the command without --json: exit status, stdout, stderr."""
    out = agent.ctl("rolling-update", *words)
    return out.returncode, out.stdout, out.stderr


def check(traffic, expect, nginxes):
    """All requests were served, none with a second try."""
    n = traffic.check(expect)

    def asked():
        return sum((one.dir / "access.log").read_text().count(rpc.INFER)
                   for one in nginxes)
    wait_for(lambda: asked() >= n, 5, "a line for each request")
    assert n == asked() > 100


# under load

@pytest.mark.policies("weighted")
@pytest.mark.parametrize("commands", [False, True], ids=["orders", "commands"])
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


@pytest.mark.parametrize("n", [3, 2] if ROUNDS >= 10 else [3])
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


def test_as_many_at_once_as_are_asked_for(fleet, client):
    one = fleet(5, commands=True)
    streams = [Stream(client, one.nginx, id, 100_000)
               for id in ("r1", "r2")]
    update = one.update("--max-unavailable", "2")
    update.wait_step("r1", "drain")
    update.wait_step("r2", "drain")
    wait_for(lambda: sorted(one.drained()) == ["r1", "r2"], 10,
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


@pytest.mark.parametrize("kind", QUIRKS)
def test_bad_version_stops_the_update(fleet, cluster, client, expect, kind):
    quirk, word = QUIRKS[kind]
    broken = cluster.dir / "broken"
    broken.touch()
    one = fleet(3, quirk=quirk.format(dir=cluster.dir))
    update = one.update("--rejoin-timeout", limit(1.5) if kind == "rejoin"
                        else limit(10))
    assert update.end() == 1
    assert update.last["code"] == "step_failed"
    assert update.last["id"] == "r1"
    assert update.last["step"] == ("probe" if kind == "probe" else "rejoin")
    assert 'replica "r1" failed at' in update.said()
    assert word in update.said() and "0 of 3 done" in update.said()

    # The others were not touched, none is drained, requests are served.
    assert {s["id"]: s["step"] for s in update.last["update"]["steps"]} == \
        {"r1": "failed", "r2": "undone", "r3": "undone"}
    assert one.versions()["r2"] == one.versions()["r3"] == "v1"
    wait_for(lambda: one.drained() == {}, 5, "no drain")
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
    assert again.last["update"]["done"] == 3
    one.wait_whole("v2")


@pytest.mark.parametrize("step", ["stop", "start"])
def test_command_that_fails_stops_the_update(fleet, client, expect, step):
    one = fleet(3, commands=True)
    words = {"stop": one.stop, "start": one.start,
             step: "echo $LLMGW_ID at $LLMGW_GRPC: no such unit >&2; exit 3"}
    update = one.update("--stop", words["stop"], "--start", words["start"],
                        commands=False)
    assert update.end() == 1
    assert (update.last["id"], update.last["step"]) == ("r1", step)
    assert f'replica "r1" failed at "{step}": exit status 3: ' \
        f"r1 at {one.members['r1'].target}: no such unit" in update.said()
    wait_for(lambda: one.drained() == {}, 5, "no drain")
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
                                 for m in one.members.values()), 20,
                 "the end of the new agents")


def test_command_that_does_not_end_is_ended(fleet, cluster):
    one = fleet(3, commands=True)
    update = one.update("--stop", "echo waiting; sleep 1000", "--start", "true",
                        "--rejoin-timeout", "2s", commands=False)
    assert update.end() == 1
    assert "not done after 2 s: waiting" in update.said()


# an agent dies

def test_update_goes_on_without_its_client(fleet, client):
    one = fleet(3, commands=True)
    stream = Stream(client, one.nginx, "r1", 100_000)
    update = one.update()
    update.wait_step("r1", "drain")
    update.proc.kill()
    shown = status(one.gw)
    assert (shown["state"], shown["to"]) == ("running", "v2")
    assert shown["steps"][0]["step"] == "drain"

    # The same command attaches to it, and ends when the update ends.
    again = one.update()
    wait_for(again.lines, 10, "its first line")
    assert again.lines()[0]["attached"]
    assert again.lines()[0]["update"]["id"] == shown["id"]
    stream.cancel()
    assert again.done().last["update"]["done"] == 3
    assert status(one.gw)["state"] == "complete"
    one.wait_whole("v2")


def test_agent_that_leaves_gives_back_what_it_drained(fleet, client, expect):
    one = fleet(3)
    stream = Stream(client, one.nginx, "r1", 100_000)
    update = one.update()
    update.wait_step("r1", "drain")
    agent = one.members["r1"].agent
    wait_for(lambda: "r1" in one.drained(agent), 5, "the drain of r1")
    assert one.gw.stop() == 0
    assert update.end() == 1 and update.last["code"] == "aborted"
    wait_for(lambda: one.drained(agent) == {}, 5, "no drain")
    stream.wait_tokens(20)
    stream.cancel()
    stream.check(expect)


def test_agent_that_leaves_finishes_what_it_stopped(fleet, cluster):
    one = fleet(3, commands=True)
    go_on = cluster.dir / "go-on"
    update = one.update(
        "--stop", one.stop + f"while ! test -e {go_on}; do sleep 0.02; done",
        "--start", one.start, commands=False)
    update.wait_step("r1", "stop")
    one.gw.proc.send(signal.SIGTERM)
    wait_for(lambda: "leaving" in one.gw.proc.text(), 5, "SIGTERM")
    go_on.touch()
    assert one.gw.proc.wait(15) == 0
    assert update.end() == 1 and update.last["code"] == "aborted"
    assert update.last["update"]["done"] == 1
    agent = one.members["r1"].agent
    wait_for(lambda: one.versions(agent)["r1"] == "v2", 5, "r1 as v2")
    assert one.drained(agent) == {}


def test_killed_agent_leaves_what_the_same_command_takes_up(fleet, client,
                                                            expect):
    one = fleet(3)
    stream = Stream(client, one.nginx, "r2", 100_000)
    update = one.update()
    update.wait_step("r2", "drain")
    wait_for(lambda: "r2" in one.drained(), 5, "the drain of r2")
    one.gw.kill()
    assert update.end() == 6
    stream.wait_tokens(50)

    one.gw.start()
    wait_for(lambda: "r2" in one.drained(), 10, "the drain, as it was")
    again = one.update()
    again.wait_step("r2", "drain")
    stream.cancel()
    stream.check(expect)
    assert again.done().order() == ["r2", "r3"]
    assert again.last["update"]["skipped"] == 1
    one.wait_whole("v2")


@pytest.mark.skipif(ROUNDS < 10, reason="half a minute, LLMGW_UPDATES=10")
def test_drain_of_a_killed_agent_ends(fleet, client, expect):
    one = fleet(3)
    stream = Stream(client, one.nginx, "r1", 100_000)
    update, others = one.update(), [m.agent for m in one.members.values()]
    wait_for(lambda: all("r1" in one.drained(x) for x in others), 10,
             "the drain of r1, at all")
    one.gw.kill()
    assert update.end() == 6
    wait_for(lambda: not any(one.drained(x) for x in others), 45,
             "the end of the lease")
    stream.wait_tokens(50)
    stream.cancel()
    stream.check(expect)
    one.gw.start()
    wait_for(lambda: one.nginx.routable() == ["r1", "r2", "r3"], 15,
             "all to be routable")


def test_replica_that_is_killed_in_its_drain_is_updated(fleet, client,
                                                        expect):
    one = fleet(3)
    stream = Stream(client, one.nginx, "r1", 600)
    update = one.update()
    update.wait_step("r1", "drain")
    wait_for(lambda: "r1" in one.drained(), 5, "the drain of r1")
    one.members["r1"].kill()
    update.done()
    assert stream.end().code == "OK"
    stream.check(expect)
    assert stream.result.replicas[0] == "r1"
    assert len(stream.result.replicas) >= 2
    one.wait_whole("v2")


def test_agent_of_a_draining_replica_may_be_killed(fleet, client, expect):
    """The next agent drains its replica again, and restarts it."""
    one = fleet(3)
    stream = Stream(client, one.nginx, "r1", 100_000)
    update = one.update()
    update.wait_step("r1", "drain")
    agent = one.members["r1"].agent
    wait_for(lambda: "r1" in one.drained(agent), 5, "the drain of r1")
    agent.kill()
    agent.start()
    wait_for(lambda: "r1" in one.drained(agent), 10, "the drain, again")
    stream.wait_tokens(20)
    assert update.steps("r1") == ["drain"]
    stream.cancel()
    stream.check(expect)
    assert update.done().order() == ["r1", "r2", "r3"]
    one.wait_whole("v2")


# long streams

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


def test_drain_waits_for_a_long_stream(fleet, client, expect):
    one = fleet(3)
    stream = Stream(client, one.nginx, "r1", 100_000)
    update = one.update()
    update.wait_step("r1", "drain")
    stream.wait_tokens(400)
    assert update.steps("r1") == ["drain"]
    events = [e for e in update.lines() if e["event"] == "progress"]
    assert events[-1]["steps"][0]["active_requests"] == 1
    assert stream.result.replicas == ["r1"]

    # An abort ends the update and undrains r1.
    out = one.gw.ctl("--json", "rolling-update", "--abort")
    assert out.returncode == 0
    assert json.loads(out.stdout.splitlines()[-1])["update"]["state"] \
        == "aborted"
    assert update.end() == 1 and update.last["code"] == "aborted"
    assert one.drained() == {}
    wait_for(lambda: "r1" in one.nginx.routable(), 5, "r1 to be routable")
    stream.wait_tokens(50)
    stream.cancel()
    stream.check(expect)
    assert set(one.versions().values()) == {"v1"}


@pytest.mark.parametrize("commands", [False, True], ids=["orders", "commands"])
def test_drain_timeout_moves_a_long_stream(fleet, client, expect, commands):
    """With --stop, the replica's own --drain-timeout ends its wait."""
    one = fleet(3, commands=commands, drain_timeout="1s")
    stream = Stream(client, one.nginx, "r1", 100_000)
    update = one.update("--drain-timeout", "2s")
    update.wait_step("r1", "done")
    events = {(e["id"], e["step"]): e for e in update.lines()
              if e.get("event") == "step"}
    waited = (events["r1", "stop" if commands else "restart"]["time"]
              - events["r1", "drain"]["time"]) / 1000
    assert waited > 1.99
    assert events["r1", "done"]["streams_left"] == 1
    stream.wait_tokens(200)
    assert stream.result.replicas[0] == "r1"
    assert len(stream.result.replicas) >= 2
    stream.cancel()
    update.done()
    stream.check(expect)
    one.wait_whole("v2")


# one at a time

def test_second_update_is_refused(fleet, client):
    one = fleet(3, gateways=2, commands=True)
    stream = Stream(client, one.nginx, "r1", 100_000)
    update = one.update()
    update.wait_step("r1", "drain")
    other = one.gateways[1]
    wait_for(lambda: one.drained(other), 5, "the drain at the other gateway")
    owner = other.table()["r1"]["drain_owner"]
    assert owner == "update:" + status(one.gw)["id"]

    for agent, to in ((one.gw, "v3"), (other, "v3"), (other, "v2")):
        code, out, err = rolling(agent, "--to", to)
        assert code == 3 and 'driven by "gw1"' in err, (to, err)
    assert status(other) is None
    stream.cancel()
    update.done()
    one.wait_whole("v2")
    assert rolling(other, "--to", "v2")[0] == 0


def test_of_two_at_the_same_instant_one_yields(fleet, client):
    one = fleet(3, gateways=2, commands=True)
    stream = Stream(client, one.nginx, "r1", 100_000)
    updates = [one.update(gateway=gw, to=f"v{i + 2}")
               for i, gw in enumerate(one.gateways)]
    wait_for(lambda: not all(u.proc.alive() for u in updates), 20,
             "one of them to yield")
    stream.cancel()
    codes = [update.end() for update in updates]
    assert sorted(codes) == [0, 3], [u.proc.text() for u in updates]
    won = codes.index(0)
    assert updates[1 - won].last["code"] == "update_running"
    assert updates[1 - won].order() == []
    one.wait_whole(f"v{won + 2}")


# what is refused, and with which message

def test_exit_statuses(fleet, cluster):
    one = fleet(2)
    gw = one.gw
    r1 = one.members["r1"].agent
    for words, said in [
            ([], "--to or --abort"), (["--to", "no good"], "--to"),
            (["--to", "v2", "--stop", "true"], "--start"),
            (["--to", "v2", "--start", os.fsdecode(b"caf\xe9")], "UTF-8"),
            (["--to", "v2", "--members", "r1,,r2"], "--members"),
            (["--to", "v2", "--min-available", "-1"], "--min-available"),
            (["--to", "v2", "--max-unavailable", "0"], "--max-unavailable"),
            (["--to", "v2", "--drain-timeout", "soon"], "--drain-timeout"),
            (["v2"], "v2")]:
        code, out, err = rolling(gw, *words)
        assert code == 2 and said in err, (words, err)
        assert len(err.splitlines()) == 1 and out == ""

    for agent, words, status_, said in [
            (gw, ["--to", "v2", "--members", "r9"], 4, '"r9"'),
            (gw, ["--to", "v2", "--members", "gw1"], 4, "no replica"),
            (gw, ["--abort"], 4, "no update"),
            (gw, ["--to", "v2", "--min-available", "2"], 3,
             "--min-available"),
            (r1, ["--to", "v2"], 3, "gateway"),
            (gw, ["--to", "v1"], 0, "")]:
        code, out, err = rolling(agent, *words)
        assert code == status_ and said in err, (words, out, err)

    code, out, err = rolling(gw, "--to", "v2", "--dry-run")
    assert code == 0
    assert out.splitlines()[1:] == ["  r1  v1  order", "  r2  v1  order"]
    assert status(gw)["to"] == "v1"         # the one with nothing to do
    assert one.update("--members", "r2").done().order() == ["r2"]
    assert one.versions() == {"r1": "v1", "r2": "v2"}
    one.gw.stop()
    assert rolling(gw, "--to", "v2")[0] == 6


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another")
def test_agent_that_cannot_become_the_caller_runs_no_commands(fleet, cluster):
    one = fleet(2, commands=True)
    home = cluster.dir / "nobody"
    home.mkdir()
    os.chown(home, 65534, 65534)
    gw = cluster.agent("gw9", "gateway", start=False,
                       keyring=one.shared.get("keyring"))
    os.chown(one.shared["keyring"], 65534, 65534)
    gw.control, gw.members = str(home / "sock"), str(home / "members")
    gw.argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
               *gw.argv, "--control", gw.control, "--members", gw.members]
    gw.start()
    wait_for(lambda: one.versions(gw) == {"r1": "v1", "r2": "v1"}, 10,
             "the members at gw9")
    code, _, err = rolling(gw, "--to", "v2", "--start", "true")
    assert code == 3 and "cannot become uid 0" in err
    out = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
         place.binary("llmgwctl"), "-s", gw.control, "rolling-update", "--to",
         "v2", "--start", "echo I am $(id -un); exit 1"],
        capture_output=True, text=True, timeout=30)
    assert out.returncode == 1
    assert "exit status 1: I am nobody" in out.stderr


def test_pool_of_one_needs_to_be_told(fleet):
    one = fleet(1)
    code, _, err = rolling(one.gw, "--to", "v2")
    assert code == 3 and "--min-available" in err
    assert one.update("--min-available", "0").done().order() == ["r1"]
    one.wait_whole("v2")


@pytest.mark.parametrize("kind", ["keyring", "child"])
def test_who_cannot_be_restarted_is_refused_before_any_drain(fleet, kind):
    one = fleet(2, keyring=kind != "keyring", commands=kind == "child")
    code, _, err = rolling(one.gw, "--to", "v2")
    assert code == 3 and '"r1"' in err and "--start" in err
    assert ("keyring" in err) == (kind == "keyring")
    assert one.drained() == {} and status(one.gw) is None


def test_who_is_down_goes_first(fleet):
    one = fleet(3, commands=True)
    one.members["r3"].kill()
    wait_for(lambda: one.gw.table()["r3"]["service"] == "DOWN", 10, "DOWN")
    assert one.update().done().order() == ["r3", "r1", "r2"]
    one.wait_whole("v2")


def test_operators_drain_outlives_an_update(fleet):
    one = fleet(3, commands=True)
    assert one.gw.ctl("drain", "r2").returncode == 0
    one.update().done()
    assert one.drained() == {"r2": "operator"}
    assert set(one.versions().values()) == {"v2"}
    assert one.gw.ctl("undrain", "r2").returncode == 0
    one.wait_whole("v2")


# the output for people

def on_a_terminal(agent, *words, env):
    """The command under a pseudo terminal: exit status and output."""
    master, slave = pty.openpty()
    proc = subprocess.Popen(
        [place.binary("llmgwctl"), "-s", agent.control, "rolling-update",
         *words], stdin=slave, stdout=slave, stderr=slave,
        env={**os.environ, "TERM": "xterm", **env})
    os.close(slave)
    text = b""
    try:
        while chunk := os.read(master, 65536):
            text += chunk
    except OSError:
        pass                            # the other end is closed
    os.close(master)
    return proc.wait(60), text.decode().replace("\r\n", "\n")


COLOUR = re.compile(r"\033\[\d*m")


def test_terminal_shows_a_table_with_a_bar(fleet):
    one = fleet(2)
    code, text = on_a_terminal(one.gw, "--to", "v2", env={"NO_COLOR": "1"})
    assert code == 0
    assert not COLOUR.search(text) and "\033[3A" in text
    assert "[------------------------]  0 of 2" in text
    assert "[############------------]  1 of 2" in text
    assert "[########################]  2 of 2" in text
    assert text.endswith("complete: 2 of 2 have version v2\n")

    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    code, text = on_a_terminal(one.gw, "--to", "v3", env=env)
    assert code == 0 and COLOUR.search(text)

    code, out, err = rolling(one.gw, "--to", "v4")
    assert code == 0 and "\033" not in out and err == "", err
    assert "r1: drain, 0 running\n" in out and "r2: done\n" in out
