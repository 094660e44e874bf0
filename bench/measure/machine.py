"""The machine: which process runs where, and what it costs.

CPU time is the kernel's clock of a process (clock_getcpuclockid(3)): user and
system time of all its threads, ended ones included, in nanoseconds.
/proc/PID/stat has the same in ticks of 10 ms.
"""

import datetime
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "t"))
from llmgw.proc.process import Proc, pids_of_group, rss_kb  # noqa: E402

SAMPLE_S = 0.005
CPUS = sorted(os.sched_getaffinity(0))


class Fail(Exception):
    """Why a row cannot be measured."""


class Pinning:
    """same: proxy, client and replicas share one processor, so that a
    wake-up costs all of them the same; the harness is on another.
    split: the proxy has a processor for itself, all others share the rest."""

    def __init__(self, kind):
        if kind == "split" and len(CPUS) < 2:
            raise Fail("split needs two processors")
        self.kind = kind
        self.proxy = str(CPUS[-1])
        self.rest = self.proxy if kind == "same" else \
            ",".join(map(str, CPUS[:-1]))

    def __str__(self):
        return (f"{self.kind}: proxy on processor {self.proxy}, client and"
                f" replicas on {self.rest}")


def pin_harness():
    os.sched_setaffinity(0, set(CPUS[:-1]) or set(CPUS))


def pinned(cpus, argv):
    return ["taskset", "-c", cpus, *map(str, argv)]


def start(name, argv, directory, cpus):
    return Proc(name, pinned(cpus, argv), pathlib.Path(directory,
                                                       f"{name}.log"))


def pids(proc):
    """The processes of its process group."""
    return pids_of_group(proc.pid)


# --- CPU

def cpu_seconds(pids):
    total = 0.0
    for pid in pids:
        try:
            total += time.clock_gettime((~pid << 3) | 2)
        except OSError:     # it has ended
            pass
    return total


class Sampler:
    """Records the CPU time of processes; windows are computed later."""

    def __init__(self, pids):
        self.pids = list(pids)
        self.points = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.look()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.look()

    def look(self):
        self.points.append((time.monotonic(), cpu_seconds(self.pids)))

    def run(self):
        while not self.over.wait(SAMPLE_S):
            self.look()

    def at(self, when):
        for (t0, c0), (t1, c1) in zip(self.points, self.points[1:]):
            if t0 <= when <= t1:
                return c0 + (c1 - c0) * (when - t0) / (t1 - t0)
        raise Fail("the window was not sampled")

    def between(self, began, ended):
        return self.at(ended) - self.at(began)


# --- memory, sockets, system calls

def rss(pids):
    return sum(rss_kb(pid) for pid in pids)


def sockets_to(pids, ports):
    """How many connections these processes have to these ports."""
    mine = set()
    for pid in pids:
        for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            try:
                found = re.match(r"socket:\[(\d+)\]", os.readlink(fd))
            except OSError:
                continue
            if found:
                mine.add(found[1])
    count = 0
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        remote = int(fields[2].rpartition(":")[2], 16)
        count += (fields[3] == "01" and remote in ports
                  and fields[9] in mine)
    return count


class Syscalls:
    """System calls of some processes: perf where it is, else strace (which
    slows them down, so that more tokens share a call)."""

    def __init__(self, pids):
        self.tool = "perf" if shutil.which("perf") else "strace"
        if not shutil.which(self.tool):
            raise Fail("neither perf nor strace is installed")
        self.pids = ",".join(map(str, pids))

    def count(self, seconds):
        argv = {"perf": ["perf", "stat", "-x,", "-e",
                         "raw_syscalls:sys_enter", "-p", self.pids],
                "strace": ["strace", "-f", "-c", "-q",
                           *(w for p in self.pids.split(",")
                             for w in ("-p", p))]}[self.tool]
        argv += ["--", "sleep", str(seconds)] if self.tool == "perf" else []
        if self.tool == "strace":
            argv = ["timeout", "-s", "INT", str(seconds), *argv]
        out = subprocess.run(argv, capture_output=True, text=True,
                             timeout=seconds + 20)
        pattern = (r"^(\d+),.*raw_syscalls" if self.tool == "perf"
                   else r"^100\.00\s+\S+\s+\S*\s*(\d+).* total$")
        found = re.search(pattern, out.stderr, re.M)
        if not found:
            raise Fail(f"{self.tool}: {out.stderr.strip()[-120:]}")
        return int(found[1])


# --- words

def version(*argv):
    try:
        out = subprocess.run(argv, capture_output=True, text=True, timeout=10)
    except OSError:
        return "not installed"
    text = (out.stdout + out.stderr).strip().splitlines()
    return text[0] if text else "?"


def describe():
    model = re.search(r"model name\s*: (.*)",
                      pathlib.Path("/proc/cpuinfo").read_text())
    commit = version("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD")
    return {
        "date": datetime.datetime.now().astimezone().strftime(
            "%Y-%m-%d %H:%M %Z"),
        "cpu": model[1] if model else platform.processor(),
        "processors": len(CPUS),
        "kernel": platform.release(),
        "load": os.getloadavg()[0],
        "commit": commit,
        "nginx": version("nginx", "-v").rpartition("/")[2],
        "haproxy": version("haproxy", "-v").split(" 20")[0],
        "caddy": version("caddy", "version"),
    }
