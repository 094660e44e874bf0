"""Agents whose disk is slow, or full."""

import json
import os
import signal
import subprocess

import pytest

from llmgw.proc import place
from llmgw.proc.preload import compiled
from llmgw.proc.wait import never, wait_for
from llmgw.speak import rpc


class SlowDisk:
    """With .env, fsync() of an agent blocks from hold() to release()."""

    def __init__(self, tmp_path):
        self.gate = tmp_path / "gate"
        self.env = {"LD_PRELOAD": compiled("slow_sync", tmp_path),
                    "ASAN_OPTIONS": "verify_asan_link_order=0",
                    "SLOW_SYNC": str(self.gate)}

    def hold(self):
        self.gate.touch()

    def release(self):
        self.gate.unlink()


@pytest.fixture
def slow_disk(tmp_path):
    disk = SlowDisk(tmp_path)
    yield disk
    disk.gate.unlink(missing_ok=True)


def ctl(cluster, agent, *words, **options):
    """Starts llmgwctl and leaves it running."""
    proc = cluster.run(f"ctl-{len(cluster.procs)}",
                       [place.binary("llmgwctl"), "-s", agent.control, *words],
                       **options)
    proc.told_to_end = True
    return proc


def state(agent, id):
    return agent.table().get(id, {}).get("state")


def lives(agent, gw):
    """It answers, hears of a suspicion, and refutes it."""
    assert agent.table()
    before = gw.table()[agent.id]["incarnation"]
    assert gw.ctl("inject-suspect", agent.id).returncode == 0

    def refutes():
        member = gw.table()[agent.id]
        return member["incarnation"] > before and member["state"] == "ALIVE"
    wait_for(refutes, f"{agent.id} to be ALIVE again")


def slow_pair(cluster, slow_disk, tmp_path, id="r1", **agent_options):
    kept = tmp_path / "state"
    kept.mkdir()
    r1 = cluster.pair(id, start=False,
                      agent_options={"state_dir": kept, **agent_options})
    r1.agent.env = slow_disk.env
    r1.agent.start()
    r1.start()
    cluster.wait_ready()
    return r1.agent, kept


# a slow disk

@pytest.mark.parametrize("asked", [
    "gw", pytest.param("r1", marks=pytest.mark.soak)])
def test_drain_on_a_slow_disk_is_answered_when_it_is_kept(
        cluster, slow_disk, tmp_path, asked):
    gw = cluster.agent("gw", "gateway")
    cluster.pair("r2")
    r1, kept = slow_pair(cluster, slow_disk, tmp_path)
    slow_disk.hold()
    drain = ctl(cluster, cluster.agents[asked], "drain", "r1")
    wait_for(lambda: gw.table()["r1"]["draining"], "the drain of r1")
    lives(r1, gw)
    assert drain.alive() and not (kept / "r1.drain").exists()
    slow_disk.release()
    assert drain.wait(5) == 0, drain.text()
    assert (kept / "r1.drain").read_text() == "operator\n"
    assert gw.ctl("undrain", "r1").returncode == 0
    wait_for(lambda: (kept / "r1.drain").read_text() == "\n", "the undrain")


@pytest.mark.parametrize("verb, text", [
    ("drain", "operator\n"),
    pytest.param("undrain", "\n", marks=pytest.mark.soak)])
def test_order_to_an_agent_that_dies_before_it_is_kept_is_given_again(
        cluster, slow_disk, tmp_path, verb, text):
    gw = cluster.agent("gw", "gateway")
    cluster.pair("r2")
    r1, kept = slow_pair(cluster, slow_disk, tmp_path)
    drains = verb == "drain"
    if not drains:
        assert gw.ctl("drain", "r1").returncode == 0
    slow_disk.hold()
    order = ctl(cluster, gw, verb, "r1")
    wait_for(lambda: gw.table()["r1"]["draining"] == drains, f"the {verb}")
    r1.kill()
    assert order.alive()
    slow_disk.release()
    r1.start()
    assert order.wait(10) == 0, order.text()
    assert gw.table()["r1"]["draining"] == drains
    assert (kept / "r1.drain").read_text() == text


@pytest.mark.soak
def test_agent_ends_though_its_disk_hangs(cluster, slow_disk, tmp_path):
    gw = cluster.agent("gw", "gateway")
    cluster.pair("r2")
    r1, _ = slow_pair(cluster, slow_disk, tmp_path)
    slow_disk.hold()
    ctl(cluster, gw, "drain", "r1")
    wait_for(lambda: gw.table()["r1"]["draining"], "the drain of r1")
    cluster.replicas["r1"].stop()
    assert r1.stop(takes=8) == 0
    wait_for(lambda: state(gw, "r1") == "LEFT", what="LEFT")


def test_keys_on_a_slow_disk_are_used_when_they_are_kept(
        cluster, slow_disk, tmp_path):
    ring = tmp_path / "ring"
    ring.write_text("11" * 32 + "\n")
    ring.chmod(0o600)
    other = tmp_path / "other"
    other.write_text(ring.read_text())
    other.chmod(0o600)
    gw = cluster.agent("gw", "gateway", keyring=other)
    r1, _ = slow_pair(cluster, slow_disk, tmp_path, keyring=ring)

    def keys():
        out = r1.ctl("--json", "keyring", "list")
        return len(json.loads(out.stdout)["keys"])

    def add(key):
        proc = ctl(cluster, r1, "keyring", "add", "-", pipes=True)
        proc.popen.stdin.write(key + "\n")
        proc.popen.stdin.close()
        return proc

    slow_disk.hold()
    first = add("22" * 32)
    wait_for(lambda: (tmp_path / "ring.new").exists(), "the write")
    second = add("33" * 32)
    assert second.wait(3) != 0          # one change at a time
    r1.proc.send(signal.SIGHUP)         # and no reload in between
    lives(r1, gw)
    assert first.alive() and keys() == 1
    slow_disk.release()
    assert first.wait(5) == 0
    assert keys() == 2
    assert len(ring.read_text().splitlines()) == 3      # two keys and a comment
    wait_for(lambda: "was read again" in r1.proc.text(), "the reading")
    assert keys() == 2


@pytest.fixture
def slow_child(supervised, cluster, slow_disk, tmp_path):
    """Its agent's disk may be slow, and a gateway's agent may restart it."""
    ring = tmp_path / "ring"
    ring.write_text("11" * 32 + "\n")
    ring.chmod(0o600)
    gw = cluster.agent("gw", "gateway", keyring=ring)
    kept = tmp_path / "state"
    kept.mkdir()
    one = supervised(env={**slow_disk.env, "LLMGW_VERSION": "v1"},
                     agent={"state_dir": kept, "keyring": ring},
                     model_version="{version}").ready()
    wait_for(lambda: gw.table().get("r1", {}).get("service") == "READY",
             "r1 at the gateway")
    return one, gw, kept


def test_version_on_a_slow_disk_is_kept_before_the_order_is_answered(
        slow_child, cluster, slow_disk):
    one, gw, kept = slow_child
    one.replica.faults(gate=1)
    call = one.replica.client.start("long", 2, method=rpc.GENERATE)
    next(call)                          # the drain waits for it
    update = ctl(cluster, gw, "rolling-update", "--to", "v2",
                 "--min-available", "0")
    wait_for(lambda: (kept / "r1.drain").exists()
             and "update:" in (kept / "r1.drain").read_text(), "the drain")
    slow_disk.hold()
    call.cancel()
    wait_for(lambda: "restarting the replica as version" in one.log(),
             "the restart")
    lives(one.agent, gw)
    assert update.alive() and not (kept / "r1.version").exists()
    slow_disk.release()
    assert update.wait(10) == 0, update.text()
    assert (kept / "r1.version").read_text() == "v2\n"
    assert one.agent.table()["r1"]["model_version"] == "v2"


@pytest.mark.soak
def test_update_drains_again_after_an_agent_that_dies_before_it_is_kept(
        slow_child, cluster, slow_disk):
    one, gw, kept = slow_child
    slow_disk.hold()
    update = ctl(cluster, gw, "rolling-update", "--to", "v2",
                 "--min-available", "0")
    wait_for(lambda: gw.table()["r1"]["draining"], "the drain")
    one.agent.kill()
    assert not (kept / "r1.drain").exists()
    slow_disk.release()
    one.agent.start()
    assert update.wait(20) == 0, update.text()
    assert one.agent.table()["r1"]["model_version"] == "v2"


# a full disk

@pytest.fixture
def tiny(tmp_path):
    """A small file system, to be filled."""
    if os.getuid() != 0:
        pytest.skip("needs root to mount")
    made = tmp_path / "tiny"
    made.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,mode=755", "tiny",
                    made], check=True)
    yield made
    subprocess.run(["umount", "-l", made], check=True)


def fill(where):
    """Fills it to the last byte; existing files keep their pages."""
    with open(where / "filler", "wb", buffering=0) as f:
        for size in (65536, 4096, 1):
            try:
                while True:
                    f.write(b"x" * size)
            except OSError:
                pass


def troubles(agent):
    out = agent.ctl("--json", "status")
    return json.loads(out.stdout)["troubles"] if out.returncode == 0 else None


def test_agent_starts_on_a_full_state_disk(cluster, tiny):
    """It writes its epoch as soon as there is space."""
    gw = cluster.agent("gw", "gateway")
    fill(tiny)
    r1 = cluster.pair("r1", agent_options={"state_dir": tiny}).agent
    wait_for(lambda: gw.table().get("r1", {}).get("service") == "READY",
             "r1")
    assert "No space left" in troubles(r1)["state"]
    assert "No space left" in r1.ctl("status").stdout
    assert r1.proc.text().count("cannot be written: No space left") == 1
    never(lambda: r1.proc.text().count("No space left") != 1, 1.2,
          "said again")
    (tiny / "filler").unlink()
    wait_for(lambda: troubles(r1) == {}, "the epoch to be kept")
    epoch = gw.table()["r1"]["epoch"]
    assert (tiny / "r1.epoch").read_text() == f"{epoch}\n"
    wait_for(lambda: "can be written again" in r1.proc.text(), what="its words")


@pytest.mark.soak
def test_drain_on_a_full_disk_holds_nobody_up(cluster, tiny):
    gw = cluster.agent("gw", "gateway")
    cluster.pair("r2")
    r1 = cluster.pair("r1", agent_options={"state_dir": tiny}).agent
    cluster.wait_ready()
    fill(tiny)
    assert gw.ctl("drain", "r1").returncode == 0
    assert "No space left" in troubles(r1)["state"]
    assert gw.ctl("undrain", "r1").returncode == 0
    assert gw.ctl("drain", "r1").returncode == 0
    (tiny / "filler").unlink()
    wait_for(lambda: troubles(r1) == {}, "the drain to be kept")
    assert (tiny / "r1.drain").read_text() == "operator\n"


def test_gateway_starts_on_a_full_members_disk(cluster, tiny, client, expect):
    """nginx keeps what it has, here nothing, until there is space."""
    fill(tiny)
    gw = cluster.agent("gw", "gateway", start=False)
    gw.members = str(tiny / "gw.members")
    gw.argv[gw.argv.index("--members") + 1] = gw.members
    gw.start()
    cluster.pair("r1")
    nginx = cluster.nginx()
    wait_for(lambda: (troubles(gw) or {}).get("segment"), "it to say so")
    assert "No space left" in troubles(gw)["segment"]
    assert gw.proc.text().count("cannot be written") == 1
    assert nginx.routable() == []
    (tiny / "filler").unlink()
    wait_for(lambda: nginx.routable() == ["r1"], "r1 to be routable")
    wait_for(lambda: troubles(gw) == {}, what="no trouble")
    wait_for(lambda: "can be written again" in gw.proc.text(), what="its words")
    client(nginx).stream("hello", 5).check(expect("hello", 5))


@pytest.mark.parametrize("option, path, said", [
    ("members", "/nonexistent/members", "No such file"),
    ("state_dir", "/nonexistent", "No such file"),
], ids=["members", "state"])
def test_directory_that_is_not_there_is_refused(cluster, option, path, said):
    agent = cluster.agent("a", **{option: path, "join": ()})
    agent.proc.told_to_end = True
    assert agent.proc.wait(5) == 1
    assert said in agent.proc.text()
