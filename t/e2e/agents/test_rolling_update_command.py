"""llmgwctl rolling-update: what it refuses, and what it prints."""

import os
import pty
import re
import subprocess

import pytest

from llmgw.fleet.updates import fleets, rolling, status
from llmgw.proc import place
from llmgw.proc.wait import wait_for


@pytest.fixture
def fleet(cluster):
    yield from fleets(cluster)


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
    wait_for(lambda: one.versions(gw) == {"r1": "v1", "r2": "v1"},
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


@pytest.mark.soak
def test_pool_of_one_needs_to_be_told(fleet):
    one = fleet(1)
    code, _, err = rolling(one.gw, "--to", "v2")
    assert code == 3 and "--min-available" in err
    assert one.update("--min-available", "0").done().order() == ["r1"]
    one.wait_whole("v2")


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["keyring", "child"])
def test_who_cannot_be_restarted_is_refused_before_any_drain(fleet, kind):
    one = fleet(2, keyring=kind != "keyring", commands=kind == "child")
    code, _, err = rolling(one.gw, "--to", "v2")
    assert code == 3 and '"r1"' in err and "--start" in err
    assert ("keyring" in err) == (kind == "keyring")
    assert one.drained() == {} and status(one.gw) is None


@pytest.mark.soak
def test_who_is_down_goes_first(fleet):
    one = fleet(3, commands=True)
    one.members["r3"].kill()
    wait_for(lambda: one.gw.table()["r3"]["service"] == "DOWN", "DOWN")
    assert one.update().done().order() == ["r3", "r1", "r2"]
    one.wait_whole("v2")


@pytest.mark.soak
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
    code, text = on_a_terminal(one.gw, "--to", "v3", "--members", "r1",
                               env=env)
    assert code == 0 and COLOUR.search(text)

    code, out, err = rolling(one.gw, "--to", "v4")
    assert code == 0 and "\033" not in out and err == "", err
    assert re.search(r"^r1: drain, \d running$", out, re.M), out
    assert "r2: done\n" in out
