"""llmgw-lock: the holder of a group, whatever is killed, and when."""

import os
import signal
import socket
import subprocess
import time

import pytest

from llmgw.proc import place
from llmgw.proc.preload import compiled
from llmgw.proc.wait import never, wait_for
from llmgw.standby.lock import (LockClient, LockService, Refused, slow,
    take_lock_file)

LONG = "600s"               # a window that no test waits for


@pytest.fixture(scope="module")
def killed_at(tmp_path_factory):
    return compiled("killed_at", tmp_path_factory.mktemp("killed_at"))


def preloaded(library, **env):
    if place.FLAVOUR == "asan":     # the preload is loaded before its runtime
        env["ASAN_OPTIONS"] = ":".join(filter(None, [
            os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
    return {"LD_PRELOAD": library, **env}


def check_epochs(service):
    """Each grant has an epoch above all before it."""
    epochs = [e.epoch for e in service.events("granted")]
    assert epochs == sorted(set(epochs)), service.events()


def takeover(service, dead, heir):
    """The holder is killed: the heir gets a greater epoch."""
    before = service.group()["epoch"]
    dead.kill()
    epoch = heir.wait("active").epoch
    assert epoch > before
    assert service.group()["epoch"] == epoch
    check_epochs(service)


def test_the_next_engine_is_granted_when_the_holder_is_killed(cluster):
    service = LockService(cluster).start()
    a = service.engine("a")
    a.wait("active")
    b = service.engine("b")
    b.wait("queued")
    assert service.group()["waiters"] == [
        {"engine": "b", "position": 1, "state": "waiting"}]
    takeover(service, a, b)
    group = service.group()
    assert (group["holder"], group["pid"]) == ("b", b.proc.pid)
    assert group["waiters"] == []
    assert 0 <= group["last"]["gone_ms"] <= group["last"]["grant_ms"]
    gone, granted = service.events("gone", "granted")[-2:]
    assert (gone.what, granted.what) == ("gone", "granted")
    assert gone.mono <= granted.mono <= b.said("active")[0].mono


# The service is killed in the middle of a grant.

@pytest.mark.parametrize("moment", [
    *(pytest.param(moment, marks=pytest.mark.soak)
      for moment in ("open", "fsync", "offer")), "rename", "granted"])
def test_a_grant_survives_the_death_of_the_service(cluster, killed_at,
                                                   moment):
    service = LockService(cluster, reconnect_window=LONG)
    service.env = preloaded(killed_at, KILLED_AT=moment)
    service.dir.joinpath("g.lock").touch()      # it grants at once
    service.start_only()
    a = service.engine("a")
    service.proc.told_to_end = True
    assert service.proc.wait() == -signal.SIGKILL
    if moment == "granted":
        a.wait("active")
    b = service.engine("b")

    service.env = None
    service.start()
    wait_for(lambda: service.group().get("state") == "active",
             "a holder that is active")
    holder, heir = (a, b) if a.said("active") else (b, a)
    if moment in ("rename", "granted"):         # it stands in the file
        assert holder is a
    if moment == "granted":
        assert a.wait("regranted").epoch == a.said("granted")[0].epoch
    heir.wait("queued")
    assert len(a.said("active") + b.said("active")) == 1
    takeover(service, holder, heir)
    assert a.said("no lock file") == b.said("no lock file") == []


def tear(path, how):
    text = path.read_bytes()
    if how == "deleted":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(text[:len(text) // 2])
    else:
        path.write_bytes(text.replace(b'"engine":"a"', b'"engine":"z"'))


@pytest.mark.parametrize("how", [
    "deleted", *(pytest.param(how, marks=pytest.mark.soak)
                 for how in ("empty", "cut", "changed"))])
def test_a_state_file_that_is_lost_resets_nothing(cluster, how):
    service = LockService(cluster, reconnect_window=LONG)
    service.lock_file().touch()
    service.start()
    a, b = service.engine("a"), None
    a.wait("active")
    b = service.engine("b")
    b.wait("queued")
    service.kill()
    tear(service.state, how)
    service.start()
    assert a.wait("regranted").epoch == a.said("active")[0].epoch
    b.wait("queued", 2)
    if how != "deleted":
        assert "state file" in service.proc.text()
    takeover(service, a, b)


@pytest.mark.soak
def test_nothing_is_left_but_the_holder(cluster):
    """State file and lock file are deleted while the service is away."""
    service = LockService(cluster, reconnect_window=slow(3000))
    service.start_settled()
    a = service.engine("a")
    a.wait("active")
    b = service.engine("b")
    b.wait("queued")
    service.kill()
    service.state.unlink()
    service.lock_file().unlink()
    service.start()
    a.ends()                        # it is not the file that it has locked
    assert b.wait("active", takes=5).mono > a.wait("lock file lost").mono
    check_epochs(service)


# The service dies, and what it finds when it is back.

@pytest.mark.soak
def test_a_healthy_holder_does_not_notice(cluster):
    service = LockService(cluster, reconnect_window=LONG).start_settled()
    a = service.engine("a")
    a.wait("active")
    b = service.engine("b")
    b.wait("queued")
    for life in range(1, 4):
        service.kill()
        service.start()
        a.wait("regranted", life)
        b.wait("queued", life + 1)
    wait_for(lambda: service.group()["state"] == "active", "its word")
    assert service.group()["holder"] == "a"
    assert len(service.events("granted")) == 1 and b.said("active") == []
    assert {e.epoch for e in a.said("active", "regranted")} \
        == {a.said("granted")[0].epoch}


@pytest.mark.parametrize("first", [
    "service", pytest.param("holder", marks=pytest.mark.soak)])
def test_a_dead_holder_is_followed_at_once(cluster, first):
    service = LockService(cluster, reconnect_window=LONG).start_settled()
    a = service.engine("a")
    a.wait("active")
    b = service.engine("b")
    b.wait("queued")
    for who in (service, a) if first == "service" else (a, service):
        who.kill()
    service.start()
    b.wait("active")                # and not after the window
    assert service.events("fenced") == []
    check_epochs(service)


def test_a_hung_holder_is_fenced(cluster):
    service = LockService(cluster).start_settled()
    a = service.engine("a")
    a.wait("active")
    b = service.engine("b")
    b.wait("queued")
    service.kill()
    a.freeze()
    service.start()
    assert a.ends() == -signal.SIGKILL
    b.wait("active")
    fenced, gone, granted = service.events("fenced", "gone", "granted")[-3:]
    assert (fenced.what, gone.what, granted.what) == ("fenced", "gone",
                                                      "granted")
    assert "did not come back" in fenced.text


@pytest.mark.soak
def test_an_unknown_holder_is_waited_for(cluster):
    """Without a state file the holder's processes are unknown: the kernel's
    lock keeps the group."""
    service = LockService(cluster).start_settled()
    a = service.engine("a")
    a.wait("active")
    service.kill()
    service.state.unlink()
    a.freeze()
    service.start()
    b = service.engine("b")
    wait_for(lambda: service.group().get("state") == "unknown",
             "the lock file to be looked at")
    never(lambda: b.said("granted"), 0.5)
    assert len(service.events("unknown")) == 1
    a.kill()
    b.wait("active")


# Holders that hang while the service is there.

@pytest.mark.soak
@pytest.mark.parametrize("option, fault", [
    (None, "no PONG"),
    ("--stuck", "no progress while streams run"),
    ("--never-wakes", "it did not wake in time")])
def test_a_holder_that_hangs_is_killed(cluster, option, fault):
    """The timeout is long enough for one that only has no processor."""
    service = LockService(cluster, hang_timeout=slow(2000)).start_settled()
    a = service.engine("a", *filter(None, [option]), "--waking-timeout",
                       "0" if option == "--never-wakes" else "60000")
    if option is None:
        a.wait("active")
        a.freeze()
    assert a.ends(takes=4) == -signal.SIGKILL
    b = service.engine("b")
    b.proc.told_to_end = True       # a busy machine may make it hang, too
    b.wait("active")
    fenced = service.events("fenced")[0]
    assert (fenced.engine, fenced.text) == ("a", f", {fault}")


@pytest.mark.soak
def test_where_nobody_is_killed_nobody_follows(cluster):
    service = LockService(cluster, fence="wait",
                          hang_timeout=slow(300)).start_settled()
    a = service.engine("a")
    a.wait("active")
    b = service.engine("b")
    b.wait("queued")
    a.freeze()
    group = wait_for(lambda: service.group()["state"] == "alarm"
                     and service.group(), "the alarm")
    assert (group["holder"], group["fence"]) == ("a", "wait")
    assert group["fault"] == "no PONG"
    never(lambda: b.said("granted"), 0.3)
    a.thaw()
    wait_for(lambda: service.group()["state"] == "active", "its recovery")
    takeover(service, a, b)
    events = [e.what for e in service.events("alarm", "recovered", "fenced")]
    assert events[:2] == ["alarm", "recovered"] and "fenced" not in events


@pytest.mark.soak
def test_a_service_that_was_stopped_blames_nobody(cluster):
    service = LockService(cluster, hang_timeout=slow(1500)).start_settled()
    a = service.engine("a")
    a.wait("active")
    wait_for(lambda: service.group()["state"] == "active", "its word")
    service.proc.freeze()
    time.sleep(3.1 * place.SLOW)            # more than twice the timeout
    service.proc.thaw()
    never(lambda: service.group()["state"] != "active", 0.3)
    assert service.events("fenced") == []


# What a client of the protocol sees.  The test itself is the engine, so no
# process is killed.

@pytest.fixture
def waiting(cluster):
    """A service that kills nobody."""
    return LockService(cluster, fence="wait").start_settled()


@pytest.fixture
def hasty(cluster):
    """One that does not wait long for who is offered the group."""
    return LockService(cluster, fence="wait",
                       take_timeout=slow(300)).start_settled()


@pytest.mark.soak
def test_waiters_are_served_in_their_order(waiting):
    clients = [LockClient(waiting.socket, engine=f"e{i}") for i in range(5)]
    for position, client in enumerate(clients):
        client.acquire()
        if position:
            assert client.expect("queued")["position"] == position
        else:
            client.take()
    for i, client in enumerate(clients[1:-1], 1):
        client.close()                      # one after the other gives up
        left = [w["engine"] for w in wait_for(
            lambda: len(waiting.group()["waiters"]) == 4 - i
            and waiting.group()["waiters"], "the place to be free")]
        assert left == [f"e{j}" for j in range(i + 1, 5)]
    last = clients[-1].expect("queued")["position"]
    while last > 1:
        last = clients[-1].expect("queued")["position"]
    assert waiting.group()["waiters"] == [
        {"engine": "e4", "position": 1, "state": "waiting"}]
    clients[0].close()
    clients[-1].close()


@pytest.mark.soak
def test_a_late_take_is_refused(hasty):
    with LockClient(hasty.socket, engine="slow") as late, \
            LockClient(hasty.socket, engine="fast") as fast:
        late.answers = False
        late.acquire()
        offer = late.expect("offer")
        fast.acquire()
        granted = fast.take()               # once the other has missed it
        assert granted["epoch"] > offer["epoch"]
        with pytest.raises(Refused, match="late"):
            late.take(offer)
        assert hasty.group()["holder"] == "fast"
        assert hasty.events("missed")[0].engine == "slow"


@pytest.mark.soak
def test_a_stopped_waiter_does_not_keep_the_others(hasty):
    holder = hasty.engine("a")
    holder.wait("active")
    stopped, next_one = hasty.engine("b"), None
    stopped.wait("queued")
    next_one = hasty.engine("c")
    next_one.wait("queued")
    stopped.freeze()
    holder.kill()
    next_one.wait("active")
    stopped.thaw()
    stopped.wait("late")
    assert hasty.group()["waiters"] == [
        {"engine": "b", "position": 1, "state": "waiting"}]
    takeover(hasty, next_one, stopped)


@pytest.mark.soak
def test_nothing_is_granted_while_a_stranger_has_the_lock_file(cluster):
    service = LockService(cluster, fence="wait",
                          take_timeout=LONG).start_settled()
    fd = take_lock_file(service.lock_file())
    with LockClient(service.socket) as client:
        client.acquire()
        client.expect("queued")
        wait_for(lambda: service.group()["state"] == "unknown", "its state")
        os.close(fd)
        offer = client.expect("offer")
        fd = take_lock_file(service.lock_file())
        with pytest.raises(Refused, match="busy"):
            client.take(offer)
        os.close(fd)
        client.take()


BAD = [
    ("{", "bad_line", "JSON object"),
    ('{"cmd":"acquire","group":"g"}', "bad_engine", "id of a replica"),
    ('{"cmd":"ping","x":"' + 4096 * "x" + '"}', "bad_line", "4096 bytes")]

MORE_BAD = [
    ("[]", "bad_line", "JSON object"),
    ('{"cmd":"no"}', "bad_line", "cmd is acquire, take"),
    ('{"cmd":"take","epoch":1}', "bad_line", "acquire comes first"),
    ('{"cmd":"take"}', "bad_epoch", "take names the epoch"),
    ('{"cmd":"worker","pid":"x"}', "bad_line", "names its pid"),
    ('{"cmd":"pong","state":"fine"}', "bad_line", "init, standby, waking"),
    ('{"cmd":"ping","seq":-1}', "bad_line", "integer from 0"),
    ('{"cmd":"acquire","group":".g"}', "bad_group", "1 to 31"),
    ('{"cmd":"acquire","group":"' + 32 * "g" + '"}', "bad_group", "1 to 31"),
    ('{"cmd":"acquire","group":"g","engine":"e","nonce":"F"}', "bad_nonce",
     "16 hex digits"),
    ('{"cmd":"acquire","group":"g","engine":"e","nonce":"0123456789abcdef",'
     '"last_epoch":1.5}', "bad_epoch", "integers from 0"),
    ('{"cmd":"acquire","group":"g","engine":"e","nonce":"0123456789abcdef",'
     '"last_epoch":9000000000000000000}', "bad_epoch", "24 h ahead")]


@pytest.mark.parametrize("line, reason, error", [
    *BAD, *(pytest.param(*row, marks=pytest.mark.soak) for row in MORE_BAD)])
def test_bad_input_is_told_what_is_right(shared_lock, line, reason, error):
    with LockClient(shared_lock.socket) as client:
        client.sock.sendall(line.encode() + b"\n")
        said = client.lines.get(timeout=20)
        assert (said["type"], said["reason"]) == ("refused", reason)
        assert error in said["error"]
        client.say(cmd="ping", seq=7)       # and nothing else happens
        assert client.expect("pong") == {"type": "pong", "seq": 7}


@pytest.fixture(scope="module")
def shared_lock(shared):
    return LockService(shared, fence="wait").start()


@pytest.mark.soak
def test_a_worker_comes_with_its_pidfd(shared_lock):
    with LockClient(shared_lock.socket, "workers") as client, \
            open(os.devnull) as other:
        client.acquire().expect("queued")
        client.say(cmd="worker", pid=1)
        with pytest.raises(Refused, match="no_pidfd"):
            client.expect("worker")
        with pytest.raises(Refused, match="no_pidfd"):
            client.worker(1, other.fileno())
        assert client.worker(os.getpid())["pid"] == os.getpid()
        client.worker(os.getppid())
        assert client.worker(os.getppid())["pid"] == os.getppid()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_a_process_of_another_user_is_no_worker(shared_lock):
    """Otherwise an engine that hangs could have the service kill any
    process."""
    with LockClient(shared_lock.socket, "strangers") as client, \
            subprocess.Popen(["sleep", "60"], user=65534) as stranger:
        client.acquire().expect("queued")
        try:
            with pytest.raises(Refused, match="other_user"):
                client.worker(stranger.pid)
        finally:
            stranger.kill()
        client.worker(os.getpid())


def answer(s):
    s.settimeout(20)
    try:
        s.sendall(b'{"cmd":"ping","seq":1}\n')
        return s.recv(4096)
    except (BrokenPipeError, ConnectionResetError):
        return b""


@pytest.mark.soak
def test_a_flood_of_connections_keeps_no_engine_out(shared_lock):
    """Those that only ask make room, the one that is silent for longest
    first."""
    many = []
    with LockClient(shared_lock.socket, group="flood", engine="a") as first:
        first.acquire().expect("queued")
        try:
            for _ in range(600):
                many.append(socket.socket(socket.AF_UNIX))
                many[-1].connect(shared_lock.socket)
            assert answer(many[0]) == b"" and b"pong" in answer(many[-1])
            with LockClient(shared_lock.socket, group="flood",
                            engine="b") as second:
                second.acquire().expect("queued")
                wait_for(lambda: len(shared_lock.group("flood")["waiters"])
                         == 2, "both to wait")
        finally:
            for s in many:
                s.close()


@pytest.mark.soak
def test_a_second_service_does_not_start(cluster):
    service = LockService(cluster).start()
    second = cluster.run("second", service.argv)
    second.told_to_end = True
    assert second.wait() == 1
    assert "serving" in second.text()
    service.kill()
    service.start()                         # a stale socket is no obstacle
    assert oct(os.stat(service.socket).st_mode & 0o777) == "0o660"
    service.stop()
    assert not os.path.exists(service.socket)


@pytest.mark.soak
def test_a_service_whose_socket_is_removed_ends_to_be_started_again(cluster):
    service = LockService(cluster, reconnect_window=LONG).start_settled()
    a = service.engine("a")
    a.wait("active")
    os.unlink(service.socket)
    service.proc.told_to_end = True
    assert service.proc.wait() == 1
    assert "was removed" in service.proc.text()
    service.start()
    a.wait("regranted")


@pytest.mark.soak
def test_two_services_do_not_share_a_state_file(cluster):
    """The one would kill the holders of the other: they do not come to it."""
    service = LockService(cluster).start_settled()
    a = service.engine("a")
    a.wait("active")
    second = LockService(cluster, "other")
    second.argv[second.argv.index("--state") + 1] = str(service.state)
    second.start_only()
    second.proc.told_to_end = True
    assert second.proc.wait() == 1
    assert "using state file" in second.proc.text()
    wait_for(lambda: service.group()["state"] == "active", "its word")


@pytest.mark.soak
def test_a_state_file_that_cannot_be_written_is_told_at_the_start(cluster):
    service = LockService(cluster)
    wrong = str(service.dir / "none" / "lock.state")
    service.argv[service.argv.index(str(service.state))] = wrong
    service.start()
    wait_for(lambda: wrong in service.proc.text(), "the warning")
    assert "cannot be written" in service.proc.text()


@pytest.mark.soak
@pytest.mark.parametrize("options, error", [
    (["--fence", "maybe"], "is not kill or wait"),
    (["--hang-timeout", "1s", "--ping-interval", "600ms"], "twice"),
    (["--take-timeout", "1ms"], "--take-timeout")])
def test_bad_options_are_told_what_is_right(cluster, options, error):
    proc = cluster.run("bad", [
        place.binary("llmgw-lock"), "--socket", "x", "--state", "y", *options])
    proc.told_to_end = True
    assert proc.wait() == 2
    assert error in proc.text() and len(proc.text().splitlines()) == 1
