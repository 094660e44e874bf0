"""Reload and graceful stop finish running streams."""

import os
import pathlib
import re
import signal

import pytest

from llmgw.fleet.native import grpc
from llmgw.fleet.nginx import version
from llmgw.proc.process import pids_of_group
from llmgw.proc.wait import wait_for
from llmgw.speak import rawh2, rpc


def is_there(pid):
    return os.path.exists(f"/proc/{pid}/exe")


def is_accepted(sock):
    """Whether the other end, on this machine, is some process's: before that
    it has no inode."""
    port, peer = (f":{at[1]:04X}" for at in (sock.getsockname(),
                                             sock.getpeername()))
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        field = line.split()
        if field[1].endswith(peer) and field[2].endswith(port):
            return field[9] != "0"
    return False


@pytest.mark.parametrize("reloads, streams", [
    (3, 40), pytest.param(20, 200, marks=pytest.mark.soak)])
def test_reloads_under_streams(cluster, load, expect, reloads, streams):
    nginx = cluster.fleet()
    cluster.hold(1)
    jobs = [[f"prompt {i}", 20] for i in range(streams)]
    work = load(nginx, jobs, connections=4)
    work.running()

    for _ in range(reloads):
        nginx.reload()
    cluster.let_go()
    for (prompt, n), got in zip(jobs, work.results()):
        got.check(expect(prompt, n))
    wait_for(lambda: len(nginx.workers()) == 1, "old workers to leave")


def test_new_streams_during_reloads(cluster, client, expect):
    nginx = cluster.fleet()
    c = client(nginx)
    for i in range(10):
        nginx.proc.send(signal.SIGHUP)
        for k in range(5):
            c.stream(f"{i} {k}", 3).check(expect(f"{i} {k}", 3))


@pytest.mark.soak
def test_reload_with_a_new_configuration(cluster, client):
    nginx = cluster.fleet(2)
    before = nginx.pool()["view"]["source"]
    nginx.configure(server="client_max_body_size 9m;")
    nginx.reload()
    assert nginx.pool()["view"]["source"] == before
    assert nginx.routable() == ["r1", "r2"]     # from the first status on


def test_reload_that_brings_the_module(cluster, client):
    """A reload loads the module, the next removes it, one loads it again."""
    nginx = cluster.static([cluster.pyreplica("p0")], start=False)
    with_it = nginx.conf.read_text()
    without = re.sub(r"load_module[^;]*;"
                     r"|llmgw_(hash|policy|queue|pass|token_timeout)[^;]*;",
                     "", with_it)
    without = without.replace("llmgw_status;",
                              """return 200 '{"worker_pid": 0}';""")
    nginx.conf.write_text(without)
    cluster.launch(nginx)
    for text in (with_it, without, with_it):
        nginx.conf.write_text(text)
        nginx.reload()
    assert client(nginx).stream("here", 2).code == "OK"
    assert len(nginx.workers()) == 1


def test_reload_that_is_refused_keeps_the_old(cluster, client, expect):
    nginx = cluster.fleet(1)
    cluster.allowed.append(r"\[emerg\].*prefix=none")
    workers = nginx.workers()
    good = nginx.upstream
    nginx.configure(upstream=good.replace("prefix=64", "prefix=none"))
    nginx.proc.send(signal.SIGHUP)
    wait_for(lambda: "[emerg]" in nginx.log(), "the refusal")
    client(nginx).stream("still", 2).check(expect("still", 2))
    assert nginx.workers() == workers
    nginx.configure(upstream=good)


@pytest.mark.policies("weighted")
def test_counts_survive_a_reload(cluster, load):
    """The new worker still counts streams of the old one."""
    nginx = cluster.fleet()
    cluster.hold(1)
    work = load(nginx, [[f"prompt {i}", 3] for i in range(30)])
    work.running()
    nginx.reload()
    assert nginx.in_flight() == 30
    cluster.let_go()
    assert all(r.code == "OK" for r in work.results())


@pytest.mark.soak
def test_small_zone_was_made_without_flow_control(cluster, client, expect):
    """Its memory is for replicas, unless it is asked for more when made."""
    nginx = cluster.fleet(1, nginx={"pool": "llmgw_zone one:640k;",
                                    "policy": None})
    first = nginx.upstream + " llmgw_queue order=priority;"
    slots = nginx.pool()["zone"]["slots"]
    for upstream in (first, first.replace("one:", "another:")):
        nginx.configure(upstream=upstream)
        nginx.reload()
        assert nginx.log().count("was made without flow control") == 1
        client(nginx).stream("on", 3).check(expect("on", 3))
    assert nginx.pool()["zone"]["slots"] < slots


def test_quit_finishes_streams_and_leaves_nothing(cluster, load, expect):
    nginx = cluster.fleet()
    cluster.hold(1)
    jobs = [[f"prompt {i}", 5] for i in range(50)]
    work = load(nginx, jobs, connections=2)
    work.running()

    out = nginx.command("-s", "quit")
    assert out.returncode == 0, out.stderr
    nginx.proc.told_to_end = True
    wait_for(lambda: "gracefully shutting down" in nginx.log(), "the quit")
    cluster.let_go()
    for (prompt, n), got in zip(jobs, work.results()):
        got.check(expect(prompt, n))
    assert nginx.proc.wait(2) == 0
    assert pids_of_group(nginx.proc.pid) == []


def test_quit_of_an_idle_gateway_waits_for_nothing(cluster, client):
    """Idle connections to replicas, which are kept for 60 s, do not delay its
    end."""
    nginx = cluster.fleet()
    c = client(nginx)
    c.stream("warm", 2)
    c.close()
    nginx.quit()
    assert nginx.proc.wait(2) == 0


class Late(rawh2.RawH2):
    """It says nothing before it may."""

    may_send = False

    def flush(self):
        if self.may_send:
            super().flush()


@pytest.mark.skipif(version() >= (1, 27, 1), reason="nginx closes it at once")
@pytest.mark.parametrize("method", [rpc.INFER, rpc.GENERATE, rpc.CHECK])
def test_late_connection_is_told_to_go(cluster, expect, method):
    """It was accepted before the worker was asked to exit, and sends two
    requests at once after that: to a front, to a native pass, or to a handler
    that has no stream."""
    nginx = cluster.fleet(1, nginx=grpc(""))
    with Late(nginx.target) as late:
        wait_for(lambda: is_accepted(late.sock), "it to be accepted")
        nginx.quit()
        wait_for(lambda: "gracefully shutting down" in nginx.log(), "the quit")
        sids = [rpc.ask(late, "late", 3, method=method) for _ in range(2)]
        late.may_send = True
        late.flush()
        for answer in map(late.wait, sids):
            assert answer.grpc_status == 0
            if method == rpc.INFER:
                assert rpc.tokens(answer) == expect("late", 3)
        wait_for(lambda: late.goaway or late.pump(.1) and late.goaway,
                 "GOAWAY")
    assert nginx.proc.wait(2) == 0


def test_new_binary_takes_over_under_streams(cluster, client, load, expect):
    """USR2, then QUIT to the old master: how the module is replaced.

    nginx accepts USR2 only as a daemon.
    """
    cluster.fleet()
    cluster.hold(2)
    nginx = cluster.nginx(start=False, main="env LD_PRELOAD;"
                          " env ASAN_OPTIONS;")     # nginx clears the rest
    nginx.conf.write_text(
        nginx.conf.read_text().replace("daemon off;", "daemon on;"))
    pid_file = nginx.dir / "nginx.pid"

    def master_but(pid):
        try:
            text = pid_file.read_text().strip()
        except FileNotFoundError:       # not yet, or not any more
            return None
        return int(text) if text not in ("", str(pid)) else None

    out = nginx.command()
    assert out.returncode == 0, out.stderr
    old = wait_for(lambda: master_but(0), "the master")
    masters = [old]
    try:
        wait_for(lambda: nginx.routable() == ["r1", "r2", "r3"], "a pool")
        jobs = [[f"prompt {i}", 5] for i in range(50)]
        work = load(nginx, jobs, connections=2)
        work.running()
        worker = nginx.status()["worker_pid"]
        os.kill(old, signal.SIGUSR2)
        masters.append(wait_for(lambda: master_but(old), "the next one"))
        os.kill(old, signal.SIGQUIT)
        wait_for(lambda: f" {worker}#{worker}: gracefully shutting down"
                 in nginx.log(), "the old worker to stop accepting")
        c = client(nginx)
        c.stream("new", 2).check(expect("new", 2))
        c.close()           # nginx would linger for it
        cluster.let_go()
        for (prompt, n), got in zip(jobs, work.results()):
            got.check(expect(prompt, n))
        wait_for(lambda: not is_there(old), "the old master to end")
        assert nginx.routable() == ["r1", "r2", "r3"]
        assert nginx.counts() == {}
    finally:
        for pid in filter(is_there, masters):
            os.kill(pid, signal.SIGQUIT)
        wait_for(lambda: not any(map(is_there, masters)), "the masters to end")


@pytest.mark.soak
def test_fast_stop_with_streams(cluster, load):
    """nginx -s stop cuts streams: UNAVAILABLE, and no alert."""
    nginx = cluster.fleet()
    cluster.hold(1)
    work = load(nginx, [[f"prompt {i}", 5] for i in range(20)])
    work.running()
    nginx.proc.send(signal.SIGTERM)
    assert nginx.proc.wait(2) == 0
    assert all(r.code == "UNAVAILABLE" for r in work.results())


def test_killed_worker_leaves_no_count(cluster, client, load, expect):
    nginx = cluster.fleet()
    cluster.hold(1)
    cluster.allowed.append("exited on signal 9")
    work = load(nginx, [[f"prompt {i}", 5] for i in range(20)])
    work.running()
    assert nginx.in_flight() == 20
    worker = nginx.workers()[0]
    os.kill(worker, signal.SIGKILL)
    assert all(r.code != "OK" for r in work.results())
    wait_for(lambda: nginx.workers() not in ([], [worker]), "a new worker")
    wait_for(lambda: nginx.in_flight() == 0, "counts of zero")
    cluster.let_go()
    client(nginx).stream("next", 2).check(expect("next", 2))
