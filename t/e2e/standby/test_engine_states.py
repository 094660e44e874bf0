"""An engine that stands by: its states, its probes, and how it ends."""

import json
import os
import pathlib
import signal
import socket
import subprocess

import pytest

from llmgw.fleet import words
from llmgw.proc import place
from llmgw.proc.process import pids_of_group, rss_kb
from llmgw.proc.wait import never, wait_for
from llmgw.speak import rpc
from llmgw.standby.group import Group, tokens_in_order
from llmgw.standby.lock import take_lock_file


def refused(one):
    """Nobody accepts at its gRPC address."""
    host, port = one.target.split(":")
    with socket.socket() as s:
        return s.connect_ex((host, int(port))) != 0


def ended(one):
    """It exits with 1, of itself."""
    one.proc.told_to_end = True
    return one.proc.wait() == 1


def workers(one):
    return [pid for pid in pids_of_group(one.proc.pid) if pid != one.proc.pid]


def probes(one):
    return [one.probes(path) for path in ("/livez", "/startupz", "/readyz")]


@pytest.fixture
def group(cluster):
    def make(**options):
        return Group(cluster, **{"agents": False, **options})
    return make


def test_the_first_serves_and_the_second_waits(group):
    g = group().start()
    a, b = g
    assert [s.state for s in a.steps()] == [
        "INIT", "STANDBY", "WAKING", "ACTIVE"]
    assert [s.state for s in b.steps()] == ["INIT", "STANDBY"]
    assert probes(a) == [200, 200, 200]
    assert probes(b) == [200, 200, 503]
    assert not refused(a) and refused(b)
    assert a.client.generate("hello", 3).code == "OK"
    limits = pathlib.Path(f"/proc/{b.proc.pid}/limits").read_text()
    assert "Max core file size        1 " in limits


def test_after_kill_9_the_standby_takes_over_with_a_greater_epoch(
        group, expect):
    g = group().start()
    a, b = g
    first = a.epoch()
    a.kill()
    b.wait("ACTIVE")
    assert b.epoch() > first
    assert b.client.generate("hello", 5).tokens == expect("hello", 5)
    a.start().wait("STANDBY")
    assert g.active() is b and refused(a)
    b.kill()
    a.wait("ACTIVE")
    assert len(g.check()) == 3
    assert g.service.group("g")["epoch"] == g.epochs()[-1]


@pytest.mark.soak
def test_only_the_active_one_gives_out_tokens(cluster, group):
    log = cluster.dir / "tokens"
    g = group(token_log=log).start()
    for _ in range(3):
        one = g.wait_active()
        assert one.client.generate("hello", 4).code == "OK"
        one.kill()
        g.wait_active()
        one.start().wait("STANDBY")
    rows = tokens_in_order(log)
    assert len(rows) == 12
    assert sorted({epoch for _, epoch in rows}) == g.epochs()[:3]


def test_an_engine_waits_for_the_sockets_it_was_told_of(cluster, group):
    path = str(cluster.dir / "weights.sock")
    g = group(ids=["a"], wait_for=path)
    g.service.start()
    a = g["a"].start()
    wait_for(lambda: words.WAITING_FOR_SOCKET in a.proc.text(), "the gate")
    assert probes(a) == [503, 503, 503]
    assert a.state() == "INIT"
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        never(lambda: a.state() != "INIT", 0.15, "a bound socket is not there")
        s.listen()
        a.wait("ACTIVE")


@pytest.mark.soak
@pytest.mark.parametrize("signals", [1, 2])
def test_a_standby_that_is_told_to_end_just_leaves(group, signals):
    g = group().start()
    a, b = g
    for _ in range(signals):
        b.proc.send(signal.SIGTERM)
    assert b.proc.wait() == 0
    assert [s.state for s in b.steps()] == ["INIT", "STANDBY", "DEAD"]
    wait_for(lambda: g.service.group("g")["waiters"] == [], "its place")
    assert g.active() is a


@pytest.mark.soak
def test_an_engine_told_to_end_in_init_leaves(cluster, group):
    g = group(ids=["a"], wait_for=cluster.dir / "never.sock")
    a = g["a"].start()
    wait_for(lambda: words.WAITING_FOR_SOCKET in a.proc.text(), "the gate")
    assert a.stop() == 0


def test_an_active_one_drains_and_then_the_standby_serves(group):
    g = group(service={"hang_timeout": "600s"}).start()
    a, b = g
    a.faults(gate=1)                # the stream runs as long as the test looks
    call = a.client.start("hello", 30, method=rpc.GENERATE)
    next(call)
    a.proc.send(signal.SIGTERM)
    wait_for(lambda: "stopping" in a.proc.text(), "the drain")
    assert a.probes("/readyz") == 503 and a.probes("/livez") == 200
    assert b.state() == "STANDBY"
    a.faults(gate=-1)
    result = rpc.drain(call)
    assert (result.code, len(result.tokens)) == ("OK", 29)
    assert a.proc.wait() == 0
    b.wait("ACTIVE")


@pytest.mark.soak
def test_a_second_signal_ends_the_streams_at_once(group):
    g = group().start()
    a, b = g
    a.faults(gate=1)
    call = a.client.start("hello", 2, method=rpc.GENERATE)
    next(call)
    a.proc.send(signal.SIGTERM)
    wait_for(lambda: "stopping" in a.proc.text(), "the drain")
    a.proc.send(signal.SIGTERM)
    result = rpc.drain(call)
    assert result.code == "UNAVAILABLE"
    assert result.trailers["llmgw-draining"] == "1"
    b.wait("ACTIVE")
    assert a.proc.wait() == 0


def looks(one):
    """While it wakes: what its probes say, and whether it refuses clients.  It
    listens a moment before it says that it is Active, so of that the last look
    says nothing."""
    found = []
    while one.state() != "ACTIVE":
        assert one.proc.alive()
        before = one.state()
        got = (*probes(one), refused(one))
        if before == one.state() == "WAKING":
            found.append(got)
    return found[:-1]


@pytest.mark.soak
def test_a_slow_wake_survives_and_its_probes_answer(group):
    """To touch so much memory takes the engine's own loop for a while.  On a
    busy machine it may wake before the test looks: try again then."""
    g = group(ids=["a"], model_memory=768)
    g.service.start()
    a = g["a"].start()
    while not (seen := looks(a)):
        a.stop()
        a.start()
    assert set(seen) == {(200, 200, 503, True)}
    assert probes(a) == [200, 200, 200]


@pytest.mark.soak
def test_a_hung_wake_ends_itself_and_the_next_is_granted(group):
    """The loop is busy, so another thread has to end the process."""
    g = group(each={"a": {"model_memory": 4096, "waking_timeout": "30ms"}})
    g.service.start()
    a, b = g
    a.start()
    assert ended(a)
    assert "not awake after 30 ms, giving up" in a.proc.text()
    assert [s.state for s in a.steps()] == [
        "INIT", "STANDBY", "WAKING", "DEAD"]
    b.start().wait("ACTIVE")
    assert b.epoch() > a.epoch()


@pytest.mark.soak
def test_a_wake_that_fails_is_one_line_and_the_end(group, cluster):
    """Its port was taken while it waited."""
    g = group(ids=["a"], wait_for=cluster.dir / "go.sock")
    g.service.start()
    a = g["a"].start()
    wait_for(lambda: words.WAITING_FOR_SOCKET in a.proc.text(), "the gate")
    host, port = a.target.split(":")
    with socket.socket() as other, socket.socket(socket.AF_UNIX) as go:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((host, int(port)))
        other.listen()
        go.bind(str(cluster.dir / "go.sock"))
        go.listen()
        assert ended(a)
    errors = [line for line in a.proc.text().splitlines() if " error " in line]
    assert len(errors) == 1 and f"cannot listen on {a.target}" in errors[0]


def test_a_worker_that_dies_ends_its_engine_and_the_standby_serves(
        group):
    g = group(engine="model", workers=2, model_memory=1).start()
    a, b = g
    worker = workers(a)[0]
    os.kill(worker, signal.SIGKILL)
    assert ended(a)
    assert f"worker {worker} died" in a.proc.text()
    b.wait("ACTIVE")
    wait_for(lambda: not pids_of_group(a.proc.pid), "its workers to end")


@pytest.mark.soak
def test_workers_die_with_their_engine(group):
    g = group(engine="model", workers=2, model_memory=1).start()
    a, b = g
    assert len(workers(a)) == 2 and workers(b) == []
    a.kill()
    b.wait("ACTIVE")
    assert not pids_of_group(a.proc.pid)        # they were waited for
    assert len(workers(b)) == 2


def test_a_holder_outlives_its_lock_service(group, expect):
    """Killed, started again, with its state file deleted, too."""
    g = group(service={"reconnect_window": "600s"}).start()
    a, b = g
    epoch = a.epoch()
    for times, delete in ((1, False), (2, True)):
        g.service.kill()
        assert a.client.generate("hello", 5).tokens == expect("hello", 5)
        assert a.state() == "ACTIVE" and b.state() == "STANDBY"
        if delete:
            g.service.state.unlink()
        g.service.start()
        again = f"epoch {epoch} was granted again"
        wait_for(lambda: a.proc.text().count(again) == times,
                 "the holder to be granted again")
        assert g.service.group("g")["holder"] == "a"
        wait_for(lambda: [w["engine"] for w in g.service.group("g")["waiters"]]
                 == ["b"], "the waiter to wait again")
    a.kill()
    b.wait("ACTIVE")
    assert g.check() == [epoch, b.epoch()]


@pytest.mark.parametrize("how", [
    "removed", pytest.param("replaced", marks=pytest.mark.soak)])
def test_a_lock_file_that_is_not_the_same_ends_the_holder(group, how):
    g = group(ids=["a"]).start()
    a = g["a"]
    path = g.service.lock_file()
    path.unlink()
    if how == "replaced":
        path.touch()
    assert ended(a)
    assert "the lock file was removed or replaced" in a.proc.text()


class Scripted:
    """A lock service that sends given lines to one engine."""

    def __init__(self, path):
        self.path = str(path)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.listener.settimeout(10)

    def meet(self):
        """The engine's claim."""
        self.conn, _ = self.listener.accept()
        self.conn.settimeout(10)
        self.lines = self.conn.makefile("rw")
        return self.hear()

    def hear(self):
        """Its next word; pings come when they will."""
        message = json.loads(self.lines.readline())
        return self.hear() if message["cmd"] == "ping" else message

    def grant(self, epoch):
        self.say(type="offer", epoch=epoch)
        assert self.hear() == {"cmd": "take", "epoch": epoch}
        self.say(type="granted", epoch=epoch, regrant=False, lock="a" * 16)

    def say(self, **message):
        self.lines.write(json.dumps(message) + "\n")
        self.lines.flush()

    def close(self):
        self.lines.close()
        self.conn.close()
        self.listener.close()


@pytest.fixture
def scripted(cluster, group):
    """scripted(**options): an engine, and a service that has met it."""
    services = []

    def make(**options):
        service = Scripted(cluster.dir / "fake.sock")
        services.append(service)
        a = group(ids=["a"], **options)["a"]
        a.argv[a.argv.index("--lock") + 1] = service.path
        a.start()
        claim = service.meet()
        assert claim["cmd"] == "acquire" and claim["group"] == "g"
        assert claim["engine"] == "a" and claim["epoch"] == 0
        return a, service
    yield make
    for service in services:
        service.close()


@pytest.mark.soak
def test_an_engine_that_is_refused_ends(scripted):
    a, service = scripted()
    service.say(type="refused", reason="no_pidfd", error="another namespace")
    assert ended(a)
    assert 'refuses group "g": no_pidfd, another namespace' in a.proc.text()
    assert [s.state for s in a.steps()] == ["INIT", "STANDBY", "DEAD"]


def test_an_engine_that_is_granted_without_the_lock_ends(cluster, scripted):
    """Two keys: the service alone is not enough."""
    a, service = scripted()
    held = take_lock_file(cluster.dir / "g.lock")
    service.grant(7)
    assert ended(a)
    os.close(held)
    assert "granted epoch 7, but its lock file cannot be" in a.proc.text()
    assert "another process holds it" in a.proc.text()
    assert [s.state for s in a.steps()] == ["INIT", "STANDBY", "DEAD"]


@pytest.mark.soak
def test_an_engine_that_could_not_lock_takes_no_offer(cluster, scripted):
    a, service = scripted()
    (cluster.dir / "g.lock").mkdir()
    service.say(type="queued", position=1)
    service.say(type="offer", epoch=7)
    assert ended(a)
    assert "no lock can be taken" in a.proc.text()
    assert "g.lock\": Is a directory" in a.proc.text()
    assert "granted" not in a.proc.text()


@pytest.mark.soak
def test_a_take_that_was_late_waits_on(scripted):
    a, service = scripted()
    service.say(type="queued", position=1)
    service.say(type="offer", epoch=7)
    assert service.hear() == {"cmd": "take", "epoch": 7}
    service.say(type="refused", reason="late", error="over")
    service.say(type="ping", seq=1)
    assert service.hear()["state"] == "standby"
    service.grant(8)
    a.wait("ACTIVE")
    assert a.epoch() == 8
    service.say(type="ping", seq=2)
    assert service.hear() == {"cmd": "pong", "seq": 2, "state": "active",
                              "progress": 0, "streams": 0}


@pytest.mark.soak
def test_a_worker_takes_no_memory_before_it_is_watched(scripted):
    """Until the service has confirmed it the engine wakes; it can be
    stopped."""
    a, service = scripted(engine="model", workers=2, model_memory=256)
    service.grant(7)
    names = {service.hear()["pid"] for _ in range(2)}
    assert names == set(workers(a))
    service.say(type="worker", pid=min(names))
    never(lambda: max(map(rss_kb, names)) > 200 << 10, 0.2, "a worker's memory")
    assert a.state() == "WAKING" and refused(a)
    a.proc.send(signal.SIGTERM)
    assert a.proc.wait() == 0
    assert a.steps()[-1].state == "DEAD"
    wait_for(lambda: not pids_of_group(a.proc.pid), "its workers to end")


@pytest.mark.soak
def test_a_wake_that_nobody_finishes_ends_itself(scripted):
    a, service = scripted(engine="model", workers=1, waking_timeout="300ms")
    service.grant(7)
    assert ended(a)
    assert "not awake after 300 ms, giving up" in a.proc.text()


def test_an_agent_starts_a_dead_engine_anew_as_the_next_standby(
        supervised, group):
    g = group(ids=["b"])
    g.service.start()
    b = g["b"]
    a = supervised("a", standby=True, group="g", lock=g.service.socket)

    def waiters():
        return [w["engine"] for w in g.service.group("g").get("waiters", [])]

    wait_for(lambda: g.service.group("g").get("state") == "active",
             "a to serve")
    assert g.service.group("g")["holder"] == "a"
    b.start()
    wait_for(lambda: waiters() == ["b"], "b to wait")
    os.kill(a.pid(), signal.SIGKILL)
    b.wait("ACTIVE")
    wait_for(lambda: waiters() == ["a"], "a to wait behind b")


WRONG = [
    (["--standby"], "--standby needs --group GROUP and --lock PATH"),
    (["--group", "g"], "--group needs --standby"),
    (["--probe-listen", "127.0.0.1:1"], "--probe-listen needs --standby"),
    (["--engine", "sim", "--workers", "2"], "--workers needs --standby"),
    (["--standby", "--group", ".g", "--lock", "/l"],
     '--group: ".g" is not 1 to 31 of letters'),
    (["--standby", "--group", "g" * 32, "--lock", "/l"], "is not 1 to 31"),
    (["--standby", "--group", "g", "--lock", "/" + "l" * 107],
     "--lock: a socket's path has 1 to 107 bytes"),
    (["--standby", "--group", "g", "--lock", "/l", "--wait-for", "/a,,/b"],
     "--wait-for: not paths of 1 to 107 bytes with commas"),
    (["--standby", "--group", "g", "--lock", "/l", "--engine", "vllm",
      "--engine-url", "http://127.0.0.1:1"],
     "--standby: not with --engine vllm, whose process cannot be watched"),
]


@pytest.mark.soak
@pytest.mark.parametrize("options,said", WRONG,
                         ids=[" ".join(w)[:40] for w, _ in WRONG])
def test_options_that_do_not_go_together_are_refused(options, said):
    done = subprocess.run(
        [place.binary("llmgw-replica"), "--id", "r", "--listen",
         "127.0.0.1:1", *options], capture_output=True, text=True, timeout=10)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def lock_is_away(one):
    status = json.loads(one.agent.ctl("--json", "status").stdout)
    return status.get("group_lock_away", False)


def test_the_agent_knows_each_step(cluster):
    """And calls the service STARTING until it is Active.  An engine that the
    lock service does not know is not called a standby."""
    cluster.agent("gw", "gateway")
    g = Group(cluster, service={"reconnect_window": "600s"})
    g.service.lock_file().touch()       # so that it grants at once

    def shown(id):
        m = cluster.gateway.table().get(id, {})
        return m.get("service"), m.get("group_state"), m.get("group_epoch")

    for one in g:
        one.agent.start()
        one.start().wait("STANDBY")
    wait_for(lambda: shown("a") == ("STARTING", "init", 0), "a to begin")
    wait_for(lambda: shown("b") == ("STARTING", "init", 0), "b to begin")
    g.service.start()
    first = g.wait_active()
    other = g.wait_standby()
    wait_for(lambda: shown(first.id) == ("READY", "active", first.epoch()),
             "the first to serve")
    wait_for(lambda: shown(other.id) == ("STARTING", "standby", 0),
             "the second to wait")

    # Whoever ended the active one now would leave the group without one.
    g.service.kill()
    wait_for(lambda: lock_is_away(first), "its loss to be known")
    out = first.agent.ctl("group", "switch", "g")
    assert out.returncode == 3 and first.state() == "ACTIVE", out.stderr
    g.service.start()
    wait_for(lambda: not lock_is_away(first), "its return to be known")
    wait_for(lambda: shown(other.id)[1] == "standby", "the second to wait")
    first.kill()
    other.wait("ACTIVE")
    wait_for(lambda: shown(other.id) == ("READY", "active", other.epoch()),
             "the second to serve")
    wait_for(lambda: shown(first.id)[0] == "DOWN", "the first to be down")
    assert cluster.gateway.table()[other.id]["group"] == "g"
