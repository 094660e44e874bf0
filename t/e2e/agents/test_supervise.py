"""An agent that runs its replica: `llmgw-agent ... -- COMMAND`."""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from llmgw.fleet import words
from llmgw.fleet.supervised import stat, zombies
from llmgw.proc import place
from llmgw.proc.place import SLOW
from llmgw.proc.wait import never, readable, wait_for
from llmgw.speak import rpc
from llmgw.speak.traffic import Traffic


# the scene

@pytest.fixture
def served(supervised, cluster):
    """A gateway, one supervised replica and nginx: no other replica."""
    def make(**options):
        cluster.agent("gw", "gateway")
        one = supervised(**{"token_delay": "1ms", **options}).ready()
        nginx = cluster.nginx()
        wait_for(lambda: nginx.routable() == ["r1"], "r1 to be routable")
        return one, nginx
    return make


def a_stream(one, client, target, method=rpc.INFER):
    """A stream of 20 tokens, which stands at its first."""
    one.replica.faults(gate=1)
    call = client(target).start("stands", 20, method=method)
    result = rpc.Result()
    result.add(next(call), 0)
    return call, result


def ends(one, stream, expect):
    """It runs on to its end."""
    one.replica.faults(gate=-1)
    call, result = stream
    rpc.drain(call, into=result)
    return result.check(expect("stands", 20))


# the command line

@pytest.mark.parametrize("role, words, said", [
    ("replica", ["--"], "no command"),
    ("replica", ["stray"], "stray"),
    ("replica", ["stray", "--", "sleep", "1"], "stray"),
    ("gateway", ["--", "sleep", "1"], "sleep"),
], ids=str)
def test_usage(role, words, said):
    out = subprocess.run(
        [place.binary("llmgw-agent"), "--id", "a", "--role", role,
         "--gossip", "127.0.0.1:20000", *words],
        capture_output=True, text=True, timeout=10)
    assert out.returncode == 2
    assert said in out.stderr and len(out.stderr.splitlines()) == 1


# start and stop

def test_child_is_started_and_stopped(supervised, cluster):
    cluster.agent("gw", "gateway")
    one = supervised().ready()
    pid = one.pid()
    assert stat(pid)[1] == one.agent.proc.pid
    assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"
    wait_for(lambda: "r1" in cluster.gateway.table(), "r1 at the gateway")

    assert one.agent.stop() == 0
    assert stat(pid) is None
    log = one.log()
    # A change is logged when it is published, up to 20 ms later.
    assert "is STOPPED" in log
    for order in (["leaving", "ended (exit status 0)", "is LEFT", "left"],
                  ["leaving", "drained by shutdown", "left"]):
        at = [log.index(word) for word in order]
        assert at == sorted(at), log
    wait_for(lambda: cluster.gateway.table()["r1"]["state"] == "LEFT",
             "LEFT at the gateway")


@pytest.mark.soak
def test_child_inherits_nothing(supervised, tmp_path):
    """It has only the three standard descriptors, and default signals."""
    out = tmp_path / "seen"
    script = (
        "import os, sys, time\n"
        "has = lambda fd: os.path.exists(f'/proc/self/fd/{fd}')\n"
        "open_fds = [fd for fd in range(256) if has(fd)]\n"
        "status = open('/proc/self/status').read()\n"
        "open(sys.argv[1] + '.new', 'w').write(f'{open_fds}\\n{status}')\n"
        "os.rename(sys.argv[1] + '.new', sys.argv[1])\n"
        "time.sleep(1000)\n")
    one = supervised(command=[place.PYTHON, "-c", script, str(out)])
    wait_for(out.exists, "the child's words")
    seen = out.read_text()
    assert seen.startswith("[0, 1, 2]\n")
    assert "SigBlk:\t0000000000000000" in seen
    ignored = int(re.search(r"SigIgn:\t(\w+)", seen).group(1), 16)
    # The agent ignores SIGPIPE, and so does Python: test_child.c looks at it.
    assert ignored & (1 << (signal.SIGHUP - 1)) == 0
    assert one.agent.stop() == 0


def test_streams_finish_before_the_child_is_stopped(served, client, expect):
    one, nginx = served()
    stream = a_stream(one, client, nginx)
    one.agent.proc.send(signal.SIGTERM)
    wait_for(lambda: nginx.routable() == [], "nothing new for r1")
    ends(one, stream, expect)
    assert one.agent.proc.wait(5) == 0


@pytest.mark.soak
def test_streams_of_a_replica_that_is_no_child_finish(cluster, client,
                                                      expect):
    """Without a command the agent waits for them before it leaves."""
    nginx = cluster.fleet(1)
    agent = cluster.replicas["r1"].agent
    cluster.hold(1)
    call, result = client(nginx).start("to the end", 20), rpc.Result()
    result.add(next(call), 0)
    wait_for(lambda: agent.table()["r1"]["active_requests"] == 1,
             "the stream to be reported")
    agent.proc.send(signal.SIGTERM)
    wait_for(lambda: nginx.routable() == [], "nothing new for r1")
    assert agent.proc.alive()
    cluster.let_go()
    rpc.drain(call, into=result)
    result.check(expect("to the end", 20))
    assert agent.proc.wait(5) == 0
    assert cluster.replicas["r1"].proc.alive()


@pytest.mark.soak
def test_second_sigterm_waits_for_no_stream(served, client):
    one, nginx = served()
    call, _ = a_stream(one, client, one.replica, rpc.GENERATE)
    one.agent.proc.send(signal.SIGTERM)
    wait_for(lambda: "drained by" in one.log(), "the drain")
    assert one.agent.proc.alive()
    one.agent.proc.send(signal.SIGTERM)
    got = rpc.drain(call)
    assert got.code == "UNAVAILABLE"
    assert got.trailers["llmgw-draining"] == "1"
    assert one.agent.proc.wait(5) == 0


def test_drain_timeout_ends_streams(served, client):
    """The agent's timeout counts where the replica's own is longer."""
    one, nginx = served(agent={"drain_timeout": "500ms"})
    call, _ = a_stream(one, client, one.replica, rpc.GENERATE)
    one.agent.proc.send(signal.SIGTERM)
    got = rpc.drain(call)
    assert got.trailers["llmgw-draining"] == "1"
    assert one.agent.proc.wait(5) == 0
    assert "killing" not in one.log()


@pytest.mark.soak
def test_child_that_does_not_end_is_killed_with_its_workers(supervised):
    one = supervised(agent={"drain_timeout": "100ms"}, command=[
        "sh", "-c", "trap '' TERM; echo deaf; sleep 60 & echo worker $!;"
        "while :; do sleep 0.2; done"])
    worker = wait_for(lambda: re.search(r"worker (\d+)\n", one.log()),
                      "the child")
    assert stat(int(worker[1])) is not None
    one.agent.proc.send(signal.SIGTERM)
    assert one.agent.proc.wait(15) == 0
    log = one.log()
    assert "killing it" in log and "ended (signal 9)" in log
    wait_for(lambda: (stat(int(worker[1])) or "Z")[0] == "Z", "its worker")


# crash

@pytest.mark.timed
def test_crashed_child_is_started_again(supervised):
    one = supervised().ready()
    pid, times = one.pid(), []
    for pause in (250, 500, 1000):
        began = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        pid = one.pid(other_than=pid)
        times.append(time.monotonic() - began)
        assert times[-1] > pause / 1000 - 0.01, (pause, times)
        assert f"(signal 9), starting it again in {pause} ms" in one.log()
        one.ready()
    assert zombies(one.agent.proc.pid) == []


def test_crash_is_told_and_the_next_child_is_routed_to(served, client, expect):
    one, nginx = served()
    pid = one.pid()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: words.IS_DOWN in one.log(), what="DOWN")
    wait_for(lambda: one.pid(other_than=pid) and nginx.routable() == ["r1"],
             "r1 to be back")
    client(nginx).stream("again", 3).check(expect("again", 3))


@pytest.mark.soak
def test_command_that_is_not_there(supervised):
    one = supervised(command=["llmgw-no-such-command"])
    wait_for(lambda: one.log().count("cannot execute") >= 2,
             "two attempts")
    assert "\"llmgw-no-such-command\": No such file" in one.log()
    assert one.service() == "STARTING"
    assert one.agent.stop() == 0


def test_goodbye_unasked_is_respected(supervised):
    """The replica was stopped by hand: it stays stopped."""
    one = supervised().ready()
    os.kill(one.pid(), signal.SIGTERM)
    wait_for(lambda: "not started again" in one.log(), "its end")
    never(one.children, 0.6, "a child")
    assert one.service() == "STOPPED"
    assert zombies(one.agent.proc.pid) == []
    assert one.agent.stop() == 0


# the agent goes, the child stays

def test_killed_agents_child_is_adopted(served, client, expect):
    one, nginx = served()
    pid = one.pid()
    stream = a_stream(one, client, nginx)
    one.agent.kill()
    one.agent.start()
    wait_for(lambda: f"adopted the replica that reports, pid {pid}"
             in one.log(), "the adoption")
    assert ends(one, stream, expect).replicas == ["r1"]
    assert one.children() == [pid]

    # It is treated as a child: restarted, and stopped with the agent.
    os.kill(pid, signal.SIGKILL)
    again = one.pid(other_than=pid)
    one.ready()
    assert one.agent.stop() == 0
    assert stat(again) is None


@pytest.mark.timed
@pytest.mark.alone
def test_first_agents_child_is_started_at_once(supervised):
    began = time.monotonic()
    one = supervised()
    wait_for(one.children, "the child")
    assert time.monotonic() - began < 1.5 * SLOW, "2 s for nobody"


@pytest.mark.soak
def test_child_is_adopted_though_the_socket_file_is_gone(supervised):
    """systemd removes it with /run/llmgw."""
    one = supervised().ready()
    pid = one.pid()
    one.agent.kill()
    os.unlink(one.control)
    one.agent.start()
    wait_for(lambda: f"adopted the replica that reports, pid {pid}"
             in one.log(), "the adoption")
    never(lambda: one.children() != [pid], 2.2, "another child")


@pytest.mark.soak
def test_adopted_child_is_stopped_with_the_agent(supervised):
    one = supervised().ready()
    pid = one.pid()
    one.agent.kill()
    one.agent.start()
    one.ready()
    assert one.agent.stop() == 0
    wait_for(lambda: (stat(pid) or "Z")[0] in "ZX", "the child's end")
    assert "said goodbye" not in one.log()
    assert one.log().index("ended (ended)") < one.log().index("is LEFT")


def test_sigquit_is_an_upgrade(served, client, expect):
    one, nginx = served()
    pid = one.pid()
    stream = a_stream(one, client, nginx)
    assert one.agent.stop(signal.SIGQUIT) == 0
    assert "leaving" not in one.log()
    assert stat(pid)[0] in "SRD"
    one.agent.start()
    wait_for(lambda: f"pid {pid}" in one.log(), "the adoption")
    ends(one, stream, expect)
    assert one.pid() == pid


@pytest.mark.parametrize("sig", [
    signal.SIGKILL, pytest.param(signal.SIGQUIT, marks=pytest.mark.soak)])
def test_no_request_is_refused_while_the_agent_restarts(served, load, expect,
                                                        sig):
    """The only replica's agent restarts; nginx keeps routing."""
    one, nginx = served(token_delay="5ms")
    traffic = Traffic(load, [nginx])
    restart_under(one.replica, one.agent, sig)
    traffic.check(expect)


@pytest.mark.soak
def test_no_request_is_refused_while_a_plain_agent_restarts(cluster, load,
                                                            expect):
    """The same where the replica is not the agent's child."""
    nginx = cluster.fleet(1)
    replica = cluster.replicas["r1"]
    traffic = Traffic(load, [nginx])
    restart_under(replica, replica.agent, signal.SIGKILL)
    traffic.check(expect)


def restart_under(replica, agent, sig):
    """Restarts the agent three times, with twenty requests between."""
    for _ in range(3):
        before = replica.stats().started
        wait_for(lambda: replica.stats().started > before + 20, "requests")
        agent.stop(sig)
        agent.start()
        wait_for(lambda: agent.table().get("r1", {}).get("service")
                 == "READY", "r1 to be READY")


@pytest.mark.soak
def test_replica_of_a_child_that_is_a_shell(supervised, cluster):
    """The child does not report, its own child does; its death is seen."""
    one = supervised(command=["sh", "-c", "\"$@\"; exit 9", "sh"])
    one.agent.stop()
    one.agent.argv += [*one.replica.argv, "--agent", one.control]
    one.agent.start()
    one.ready()
    pid = one.pid()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: "ended (exit status 9)" in one.log(), "the shell")
    assert one.pid(other_than=pid) != pid
    assert one.agent.stop() == 0
    # The shell does not pass SIGTERM on.
    for left in one.children():
        os.kill(left, signal.SIGTERM)
    wait_for(lambda: not one.children(), "the replica's end")


# death and sleep

@pytest.mark.soak
def test_frozen_child_is_stalled_and_never_dead(served, cluster):
    one, nginx = served()
    pid = one.pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: cluster.gateway.table()["r1"]["service"]
                 == "STALLED", "the stall", takes=4)
        never(lambda: cluster.gateway.table()["r1"]["state"] == "DEAD", 4,
              "frozen, and taken for dead")
        assert one.children() == [pid]
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: nginx.routable() == ["r1"], "r1 to be back")
    assert one.pid() == pid


def is_down_first(replica):
    """Kills it.  Whether it is DOWN before its process has ended."""
    pidfd = os.pidfd_open(replica.proc.pid)
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(replica.agent.control)
            lines = s.makefile("r")
            replica.proc.send(signal.SIGKILL)
            while True:
                ended = bool(readable([pidfd]))
                s.sendall(b'{"cmd":"members"}\n')
                if '"service":"DOWN"' in lines.readline().replace(" ", ""):
                    return not ended
    finally:
        os.close(pidfd)


@pytest.mark.timed
@pytest.mark.alone
def test_large_replica_is_down_before_it_has_ended(cluster):
    """The lifelock is released before memory is freed and files are closed.

    Freeing 1 GB takes 70 ms; where the machine does not run the agent within
    that time, there are two more tries.
    """
    one = cluster.pair("r1", model_memory=1024)
    for _ in range(3):
        wait_for(lambda: one.agent.table().get("r1", {}).get("service")
                 == "READY", "r1 to be READY", takes=30)
        if is_down_first(one):
            return
        one.start()
    raise AssertionError("it was never DOWN before it had ended")


def test_connection_that_a_child_of_the_replica_holds(cluster):
    """No end of file comes, but its pidfd shows its end."""
    agent = cluster.agent("r1", grpc=f"127.0.0.1:{cluster.ports.take()}")
    wait_for(agent.table, "the agent")
    script = (
        "import os, socket, sys, time\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
        "s.sendall(b'{\"cmd\":\"report\",\"replica_start\":1,\"pid\":%d,'\n"
        "          b'\"model_version\":\"v1\",\"max_capacity\":1,'\n"
        "          b'\"active_requests\":0}\\n' % os.getpid())\n"
        "os.fork()\n"
        "time.sleep(100)\n")
    engine = cluster.run("engine", [place.PYTHON, "-c", script,
                                    agent.control])
    wait_for(lambda: agent.table()["r1"]["service"] == "READY", "a report")
    try:
        engine.send(signal.SIGKILL)
        wait_for(lambda: agent.table()["r1"]["service"] == "DOWN", "DOWN")
    finally:
        os.killpg(engine.pid, signal.SIGKILL)


@pytest.mark.soak
def test_health_judged_child_is_down_with_its_process(supervised, cluster):
    """A child that never reports; grpc.health.v1 shows its state."""
    one = supervised(command=["sh", "-c", "exec \"$@\"", "sh"])
    one.agent.stop()
    one.agent.argv += one.replica.argv
    one.agent.start()
    one.ready()
    os.kill(one.pid(), signal.SIGKILL)
    wait_for(lambda: words.IS_DOWN in one.log(), "DOWN")
    one.ready()
    assert one.agent.stop() == 0


# the service manager

def test_service_manager_is_told(supervised, cluster, monkeypatch):
    path = str(cluster.dir / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(10 * SLOW)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        monkeypatch.setenv("WATCHDOG_USEC", "200000")
        one = supervised()
        monkeypatch.undo()
        assert manager.recv(100) == b"READY=1"
        assert os.path.exists(one.control)
        assert [manager.recv(100) for _ in range(3)] == [b"WATCHDOG=1"] * 3

        one.agent.proc.freeze()
        manager.settimeout(0.5 * SLOW)
        with pytest.raises(TimeoutError):
            while True:
                manager.recv(100)
        one.agent.proc.thaw()
        manager.settimeout(10 * SLOW)
        assert manager.recv(100) == b"WATCHDOG=1"

        one.ready()
        environ = pathlib.Path(f"/proc/{one.pid()}/environ").read_bytes()
        assert b"NOTIFY_SOCKET" not in environ
        assert b"WATCHDOG" not in environ

        # The queue of a manager that does not read is short.
        manager.settimeout(0)
        with pytest.raises(BlockingIOError):
            while True:
                manager.recv(100)
        manager.settimeout(10 * SLOW)
        assert one.agent.stop() == 0
        while manager.recv(100) != b"STOPPING=1":
            pass


UNITS = sorted((place.ROOT / "packaging" / "systemd").glob("*.service"))


@pytest.mark.skipif(not shutil.which("systemd-analyze"),
                    reason="no systemd-analyze")
def test_units_are_valid(tmp_path):
    """The paths of the installed programs are replaced by this build's."""
    assert len(UNITS) == 6
    names = []
    for unit in UNITS:
        text = unit.read_text().replace("/usr/local/bin/", f"{place.BUILD}/")
        (tmp_path / unit.name).write_text(text)
        names.append(unit.name.replace("@.", "@r1."))
        if names[-1] != unit.name:
            (tmp_path / names[-1]).symlink_to(unit.name)
    out = subprocess.run(
        ["systemd-analyze", "verify", "--man=no",
         *[str(tmp_path / name) for name in names]],
        capture_output=True, text=True, timeout=60)
    ours = [line for line in (out.stderr + out.stdout).splitlines()
            if "llmgw" in line]
    assert not ours, "\n".join(ours)


@pytest.mark.parametrize("name", ["gateway", "replica"])
def test_example_configurations_are_accepted(cluster, name):
    example = place.ROOT / "packaging" / "etc" / f"{name}.conf.example"
    gossip = f"127.0.0.1:{cluster.ports.take()}"
    given = {"--gossip": gossip, "--advertise": gossip, "--join": gossip,
             "--control": cluster.dir / "a.sock", "--state-dir": cluster.dir,
             **({"--members": cluster.dir / "members"}
                if name == "gateway" else {})}
    more = [str(w) for pair in given.items() for w in pair]
    agent = cluster.run("agent-example", [
        place.binary("llmgw-agent"), "-c", str(example), *more])
    wait_for(lambda: words.SERVING in agent.text(), "the agent")
    agent.send(signal.SIGQUIT)
    assert agent.wait(5) == 0
