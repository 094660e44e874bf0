"""llmgwctl with real agents: leave, events, permissions, exit statuses."""

import json
import os
import signal
import socket
import subprocess

import pytest

from llmgw.proc import place
from llmgw.proc.process import rss_kb
from llmgw.proc.wait import wait_for

NOBODY = 65534


class Events:
    """Runs llmgwctl events and reads the events as they come."""

    def __init__(self, cluster, agent):
        self.agent = agent
        wait_for(lambda: agent.table(), "the agent")
        self.proc = cluster.run(
            "events", [place.binary("llmgwctl"), "-s", agent.control,
                       "events"])
        self.first = wait_for(self.lines, "the first line")[0]

    def lines(self):
        return [json.loads(x) for x in self.proc.text().splitlines()
                if x.startswith("{")]

    def of(self, id, event):
        return [x for x in self.lines()
                if x["event"] == event and x["id"] == id]

    def wait(self, id, event, **fields):
        return wait_for(
            lambda: [x for x in self.of(id, event)
                     if fields.items() <= x.items()],
            f"{event} of {id}, {fields}")[0]


def test_events_tell_a_members_life(cluster):
    gw = cluster.agent("gw", "gateway")
    events = Events(cluster, gw)
    assert events.first["event"] == "members"
    assert [m["id"] for m in events.first["members"]] == ["gw"]

    replica = cluster.pair("r1", model_version="v1")
    joined = events.wait("r1", "joined")
    assert joined["member"]["address"] == replica.agent.gossip
    assert abs(joined["time"] - events.first["time"]) < 60_000
    if joined["member"]["service"] != "READY":     # published together
        events.wait("r1", "service", to="READY")
    if joined["member"]["model_version"] != "v1":
        events.wait("r1", "version", to="v1")

    replica.kill()
    events.wait("r1", "state", **{"from": "ALIVE", "to": "DEAD",
                                  "cause": "down"})
    events.wait("r1", "service", **{"from": "READY", "to": "DOWN"})

    replica.argv += ["--model-version", "v2"]
    replica.start()
    events.wait("r1", "version", **{"from": "v1", "to": "v2"})
    replica.stop()
    events.wait("r1", "draining", to=True)
    events.wait("r1", "state", to="LEFT")

    times = [x["time"] for x in events.lines()]
    assert times == sorted(times)
    events.proc.send(signal.SIGTERM)


@pytest.mark.parametrize("sig, ended, status, last", [
    (signal.SIGTERM, 0, 0, ["LEFT"]), (signal.SIGKILL, -9, 6, [])])
def test_events_end_with_the_agent(cluster, sig, ended, status, last):
    gw = cluster.agent("gw", "gateway")
    events = Events(cluster, gw)
    assert gw.stop(sig) == ended
    assert events.proc.wait() == status
    events.proc.told_to_end = True
    assert [x["to"] for x in events.of("gw", "state")][-1:] == last


def test_leave_is_told_to_all_and_ends_the_agent(cluster):
    gw = cluster.agent("gw", "gateway")
    r1, r2 = cluster.agent("r1"), cluster.agent("r2")
    wait_for(lambda: all(len(a.table()) == 3 for a in (gw, r1, r2)),
             "three members")
    out = r1.ctl("leave")
    assert out.returncode == 0, out.stderr
    assert out.stdout == ""
    r1.proc.told_to_end = True
    assert r1.proc.wait() == 0
    for a in (gw, r2):
        wait_for(lambda: a.table()["r1"]["state"] == "LEFT", "LEFT")
    assert not os.path.exists(r1.control)
    assert r1.ctl("leave").returncode == 6


@pytest.mark.soak
def test_agent_that_leaves_before_it_knows_anybody_is_left(cluster):
    """Its earlier run was killed, so others still know it as ALIVE."""
    gw = cluster.agent("gw", "gateway")
    r1 = cluster.agent("r1")
    wait_for(lambda: "r1" in gw.table(), what="r1")
    gw.proc.freeze()                # it answers no JOIN
    r1.kill()
    r1.start()
    wait_for(lambda: "serving" in r1.proc.text(), what="the next run")
    r1.proc.freeze()
    r1.proc.send(signal.SIGTERM)
    gw.proc.thaw()
    r1.proc.thaw()
    assert r1.proc.wait() == 0
    wait_for(lambda: gw.table()["r1"]["state"] == "LEFT", what="LEFT")


def a_key(cluster):
    path = cluster.dir / "keys"
    path.touch(mode=0o600)
    path.write_text("a" * 64 + "\n")
    return str(path)


@pytest.mark.parametrize("sealed", [
    False, pytest.param(True, marks=pytest.mark.soak)])
def test_second_holder_of_an_id_ends_with_3(cluster, sealed):
    options = {"keyring": a_key(cluster)} if sealed else {}
    gw = cluster.agent("gw", "gateway", **options)
    first = cluster.agent("r1", **options)
    wait_for(lambda: len(gw.table()) == 2, "r1")
    second = cluster.agent("r1", start=False, join=[gw.gossip], **options)
    second.control = str(cluster.dir / "second.sock")
    second.argv += ["--control", second.control]
    second.name = "agent-second"
    second.start()
    second.proc.told_to_end = True
    assert second.proc.wait(20) == 3
    assert f"in use by a living agent at {first.gossip}" in second.proc.text()
    wait_for(lambda: gw.table()["r1"]["address"] == first.gossip
             and gw.table()["r1"]["state"] == "ALIVE", "the first")
    assert first.proc.alive()


def test_client_that_asks_and_never_reads_costs_bounded_memory(cluster):
    gw = cluster.agent("gw", "gateway")
    wait_for(lambda: gw.table(), "the agent")
    before = rss_kb(gw.proc.pid)
    ask = rest = b'{"cmd":"members"}\n' * 500
    full = 0
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(gw.control)
        client.setblocking(False)
        while full < 20:            # for good: the agent takes no more
            try:
                rest = rest[client.send(rest):] or ask
                full = 0
            except BlockingIOError:
                full += 1
            assert "gw" in gw.table()
        assert rss_kb(gw.proc.pid) - before < 8 * 1024
    assert "gw" in gw.table()


def ctl_as(uid, gid, agent, *words):
    return subprocess.run(
        ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups",
         place.binary("llmgwctl"), "-s", agent.control, *words],
        capture_output=True, text=True, timeout=20)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another")
def test_group_reads_and_changes_nothing_and_others_do_not_get_in(cluster):
    gw = cluster.agent("gw", "gateway")
    wait_for(lambda: gw.table(), "the agent")
    for words in (["members"], ["status"]):
        assert ctl_as(NOBODY, 0, gw, *words).returncode == 0
    for words in (["leave"], ["keyring", "add", "x"], ["keyring", "use", "x"],
                  ["keyring", "remove", "x"], ["inject-suspect", "gw"]):
        out = ctl_as(NOBODY, 0, gw, *words)
        assert out.returncode == 1, words
        assert "only root and the agent's own user" in out.stderr
    out = ctl_as(NOBODY, NOBODY, gw, "members")
    assert out.returncode == 6
    assert "Permission denied" in out.stderr
    assert gw.table()["gw"]["state"] == "ALIVE"


@pytest.mark.parametrize("words,status", [
    (["members", "now"], 2),
    (["leave", "now"], 2),
    (["keyring"], 2),
    (["keyring", "dance"], 2),
    (["keyring", "add"], 2),
    (["keyring", "list", "all"], 2),
    (["keyring", "use", "a", "b"], 2),
    (["inject-suspect"], 2),
    (["keyring", "list"], 3),
    (["keyring", "use", "00000000"], 3),
    (["inject-suspect", "nobody"], 4),
    (["drain"], 2),
    (["drain", "r1", "r2"], 2),
    (["drain", "r1", "--slowly"], 2),
    (["drain", "--drain-timeout", "soon", "r1"], 2),
    (["undrain", "r1", "--force"], 2),
], ids=str)
def test_exit_status(shared, words, status):
    gw = shared.gateway or shared.agent("gw", "gateway")
    wait_for(lambda: gw.table(), "the agent")
    out = gw.ctl(*words)
    assert out.returncode == status, out
    assert len(out.stderr.splitlines()) == 1, out.stderr


@pytest.mark.soak
def test_key_comes_by_standard_input(cluster):
    gw = cluster.agent("gw", "gateway", keyring=a_key(cluster))
    wait_for(lambda: gw.table(), "the agent")
    out = subprocess.run(
        [place.binary("llmgwctl"), "-s", gw.control, "keyring", "add", "-"],
        input="b" * 64 + "\n", capture_output=True, text=True, timeout=20)
    assert out.returncode == 0, out.stderr
    assert [x.split()[1:] for x in out.stdout.splitlines()] \
        == [["encrypts,", "decrypts"], ["decrypts"]]
    assert "a" * 8 not in out.stdout and "b" * 8 not in out.stdout
