"""llmgw-lock: a holder is gone when all of it is, and not before.

Memory is counted in a tmpfs that is this test's alone.  That earlier signs of
a death come before the memory is back is shown in test_memory_gone.py.
"""

import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import pytest

from llmgw.proc import place
from llmgw.proc.preload import compiled
from llmgw.proc.wait import never, wait_for
from llmgw.standby.lock import LockService, slow

MEMORY_MB = 1024        # at most

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")


class Memory(threading.Thread):
    """A tmpfs, and how many bytes of it were in use when."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.samples, self.ends = path, [], False
        path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o",
                        f"size={2 * MEMORY_MB}m", "none", path], check=True)

    def used_mb(self):
        fs = os.statvfs(self.path)
        return (fs.f_blocks - fs.f_bfree) * fs.f_frsize >> 20

    def run(self):
        while not self.ends:
            self.samples.append((time.monotonic(), self.used_mb()))
            time.sleep(0.001)

    def after(self, mono):
        return wait_for(lambda: [mb for at, mb in list(self.samples)
                                 if at >= mono], "a sample")[0]

    def close(self):
        self.ends = True
        if self.is_alive():
            self.join()
        subprocess.run(["umount", "-l", self.path], check=True)


@pytest.fixture
def memory(cluster):
    made = Memory(cluster.dir / "memory")
    yield made
    made.close()


def is_dead(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


@root
@pytest.mark.parametrize("where, mb", [
    ("worker", MEMORY_MB // 4), *(
        pytest.param(where, MEMORY_MB, marks=pytest.mark.soak)
        for where in ("worker", "itself"))])
def test_the_memory_is_back_at_the_grant(cluster, memory, where, mb):
    service = LockService(cluster).start_settled()
    options = ["--memory", str(mb), "--memory-dir", memory.path]
    if where == "worker":
        options += ["--in-worker", "--pdeathsig"]
    a = service.engine("a", *options)
    a.wait("active", takes=10)      # it touches each page
    assert service.group()["processes"] == (2 if where == "worker" else 1)
    b = service.engine("b")
    b.wait("queued")
    assert memory.used_mb() >= mb
    memory.start()
    a.kill()
    granted = b.wait("granted")
    event = service.events("granted")[-1]
    assert event.engine == "b" and event.epoch == granted.epoch
    assert memory.after(event.mono) == 0        # before anybody was told


@root
def test_a_worker_that_outlives_its_engine_is_killed(cluster, memory):
    service = LockService(cluster, reconnect_window="600s").start_settled()
    a = service.engine("a", "--in-worker", "--memory", "1", "--memory-dir",
                       memory.path)
    a.wait("active")
    worker = a.said("worker")[0].epoch
    b = service.engine("b")
    b.wait("queued")
    a.kill()
    b.wait("active")
    assert is_dead(worker)
    assert service.events("fenced") == []       # it was dead already


@pytest.mark.soak
@root
def test_without_a_right_to_kill_a_worker_is_waited_for(cluster, memory):
    service = LockService(cluster, fence="wait",
                          reconnect_window=slow(300)).start_settled()
    a = service.engine("a", "--in-worker", "--memory", "1", "--memory-dir",
                       memory.path)
    a.wait("active")
    worker = a.said("worker")[0].epoch
    b = service.engine("b")
    b.wait("queued")
    a.kill()
    wait_for(lambda: service.group()["state"] == "alarm", "the alarm")
    assert service.group()["processes"] == 1
    never(lambda: b.said("granted"), 0.2)
    os.kill(worker, signal.SIGKILL)
    b.wait("active")


# Other PID namespaces, as those of containers in one pod.

@pytest.fixture
def unshared(cluster):
    """Words that start a process in a PID namespace of its own.  unshare(1)
    does not pass SIGTERM on, but its child goes with it."""
    yield words_of_unshare()
    for proc in cluster.procs:
        if proc.argv[0] == "unshare" and proc.alive():
            proc.kill()


def words_of_unshare():
    words = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if os.geteuid() != 0:
        words += ["--user", "--map-root-user"]
    made = subprocess.run([*words, "true"], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no PID namespaces: {made.stderr.strip()}")
    return words


def inner(proc):
    """The process that unshare started."""
    path = f"/proc/{proc.pid}/task/{proc.pid}/children"
    return int(wait_for(lambda: pathlib.Path(path).read_text().split(),
                        "its child")[0])


def has_peerpidfd():
    return tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 5)


@pytest.mark.skipif(not has_peerpidfd(), reason="Linux 6.5 has SO_PEERPIDFD")
def test_engines_of_sibling_namespaces_are_watched_and_not_killed(cluster,
                                                                   unshared):
    service = LockService(cluster, prefix=unshared, hang_timeout=slow(300))
    service.start_settled()
    a = service.engine("a", prefix=unshared)
    first = a.wait("active")
    b = service.engine("b", prefix=unshared)
    b.wait("queued")
    group = service.group()
    assert (group["holder"], group["pid"], group["fence"]) == ("a", 0, "wait")
    assert "cannot be killed" in service.proc.text()

    os.kill(inner(a.proc), signal.SIGSTOP)
    wait_for(lambda: service.group()["state"] == "alarm", "the alarm")
    never(lambda: b.said("granted"), 0.2)

    a.proc.told_to_end = True
    os.kill(inner(a.proc), signal.SIGKILL)
    assert b.wait("active").epoch > first.epoch


@pytest.mark.soak
def test_an_engine_of_a_namespace_below_is_killed(cluster, unshared):
    service = LockService(cluster, hang_timeout=slow(2000)).start_settled()
    a = service.engine("a", prefix=unshared)
    a.wait("active")
    assert service.group()["pid"] == inner(a.proc)
    assert service.group()["fence"] == "kill"
    a.proc.told_to_end = True
    os.kill(inner(a.proc), signal.SIGSTOP)
    b = service.engine("b")
    b.proc.told_to_end = True       # a busy machine may make it hang, too
    b.wait("active", takes=4)
    assert service.events("fenced")[0].engine == "a"


# A kernel without SO_PEERPIDFD.

@pytest.fixture
def old_kernel(tmp_path):
    env = {"LD_PRELOAD": compiled("no_peerpidfd", tmp_path)}
    if place.FLAVOUR == "asan":     # the preload is loaded before its runtime
        env["ASAN_OPTIONS"] = ":".join(filter(None, [
            os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
    return env


@pytest.mark.soak
def test_an_old_kernel_has_the_peers_pid(cluster, old_kernel):
    service = LockService(cluster)
    service.env = old_kernel
    service.start_settled()
    a = service.engine("a")
    a.wait("active")
    group = service.group()
    assert (group["pid"], group["fence"]) == (a.proc.pid, "kill")
    b = service.engine("b")
    b.wait("queued")
    a.kill()
    b.wait("active")


@pytest.mark.soak
def test_an_old_kernel_knows_nothing_of_sibling_namespaces(
        cluster, unshared, old_kernel):
    service = LockService(cluster, prefix=unshared)
    service.env = old_kernel
    service.start_settled()
    a = service.engine("a", prefix=unshared)
    assert a.ends() == 1
    assert "refused: no_pidfd" in a.proc.text()
    assert service.status()["groups"] == []


def test_the_operator_sees_who_holds_what(cluster):
    service = LockService(cluster).start_settled()
    assert service.ctl().stdout == "no group yet\n"
    other = subprocess.run([place.binary("llmgwctl"), "-s", service.socket,
                            "status"], capture_output=True, text=True)
    assert (other.returncode, other.stdout) == (1, "")
    assert "is something else" in other.stderr
    a = service.engine("a")
    a.wait("active")
    b = service.engine("b")
    b.wait("queued")
    wait_for(lambda: service.group()["state"] == "active", "its word")
    out = service.ctl()
    assert out.returncode == 0
    epoch = a.said("granted")[0].epoch
    assert out.stdout == f"""\
g
  state     active
  holder    a (pid {a.proc.pid}, 1 process), epoch {epoch}
  waiters   b waiting
  fence     kill
"""
    a.kill()
    b.wait("active")
    wait_for(lambda: service.group()["state"] == "active", "its word")
    lines = service.ctl().stdout.splitlines()
    assert lines[3] == "  waiters   -"
    assert lines[5].startswith("  takeover  gone after ")
    told = json.loads(service.ctl("--json").stdout)
    assert told["groups"][0]["holder"] == "b"
    assert told == {k: v for k, v in service.status().items() if k != "ok"}

    service.kill()
    out = service.ctl()
    assert (out.returncode, out.stdout) == (6, "")
