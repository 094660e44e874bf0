"""Whether large requests hold up streams that run: the row "openai_stall".

20 streams have a token each 20 ms, few enough that all their tokens in one
iteration are no stall, and requests of 400 kB arrive beside them.
Looked at is the proxy's event loop itself, by the kernel's trace of
epoll_wait(2): how long one iteration takes, from the call's return to the next
call.  Time in which the kernel let other processes run instead is taken off;
time in which the proxy waits for something itself is not.  The gaps between a
stream's tokens are reported, too, with all that holds up the clients and the
engines on the other processor.
"""

import pathlib
import re
import subprocess

from .machine import Fail
from .openai import Engines, Haproxy, Llmgw, Nginx, NginxMemory
from .stand import say_errors

STREAMS, TOKEN = 20, "20ms"
LARGE_BYTES, LARGE_A_SECOND = 400000, 20
SECONDS = 4

CALL = "syscalls:sys_%s_epoll_wait"
LINE = re.compile(r"\s*(\d+)\s+(\d+\.\d+):\s+(?:syscalls:sys_(enter|exit)_epoll"
                  r"|PERF_RECORD_SWITCH (IN|OUT preempt))")


def worker(peer):
    """The process that serves, which may have a master."""
    pids = peer.pids()
    return next((pid for pid in pids if b"worker" in pathlib.Path(
        f"/proc/{pid}/cmdline").read_bytes()), pids[-1])


def trace(pid, seconds, directory):
    """[(ms, what)] of its main thread: enter, exit, IN, OUT preempt."""
    data = directory / "epoll.data"
    subprocess.run(
        ["perf", "record", "-q", "--switch-events", "-o", data, "-e",
         CALL % "enter", "-e", CALL % "exit", "-p", str(pid), "--", "sleep",
         str(seconds)], check=True, capture_output=True, timeout=seconds + 30)
    text = subprocess.run(
        ["perf", "script", "-i", data, "--show-switch-events", "-F",
         "tid,time,event"], check=True, capture_output=True, text=True,
        timeout=60).stdout
    found = map(LINE.match, text.splitlines())
    return [(float(f[2]) * 1000, f[3] or f[4]) for f in found
            if f and int(f[1]) == pid]


def iterations(events):
    """How long they took, in ms, in ascending order."""
    took, began, out = [], None, None
    for when, what in events:
        if what == "exit":
            began = when
        elif what == "OUT preempt":
            out = when
        elif what == "IN" and out is not None:
            began = began and began + when - out
            out = None
        elif what == "enter" and began is not None:
            took.append(when - began)
            began = None
    if not took:
        raise Fail("perf saw no iteration")
    return sorted(took)


def stall_of(bench, kind, large):
    with Engines(bench, "split", token_delay=TOKEN) as stand:
        peer = stand.peer(kind)
        stand.run(peer, requests=1, max_tokens=1, duration="10s")
        shape = dict(warmup="800ms", duration=f"{SECONDS}s")
        streams = stand.begin(peer, dict(
            shape, connections=STREAMS, streams=1, max_tokens=1000,
            ramp="200ms", poisson=True))
        others = large and stand.begin(peer, dict(
            shape, connections=8, streams=1, max_tokens=1,
            rate=LARGE_A_SECOND, poisson=True, prompt_bytes=LARGE_BYTES))
        took = iterations(trace(worker(peer), SECONDS - 1, stand.dir))
        got = stand.finish(streams)
        asked = stand.finish(others)["requests"]["ok"] if others else 0
    if got["errors"]:
        raise Fail(say_errors(got))
    if large and asked < LARGE_A_SECOND * SECONDS / 2:
        raise Fail(f"only {asked} large requests were served")
    return {"p99_ms": took[int(len(took) * .99)], "max_ms": took[-1],
            "iterations": len(took), "large": asked,
            "gap_p99_ms": got["ms"]["gap"]["p99"],
            "gap_max_ms": got["ms"]["gap"]["max"]}


def stall(bench):
    rows = {}
    for kind in Nginx, NginxMemory, Haproxy, Llmgw:
        for large in False, True:
            name = kind.name + (", with requests of 400 kB" if large else "")
            rows[name] = row = bench.guard(stall_of, bench, kind, large)
            bench.say(f"stall {name}: " + (
                row.get("fail") or f"iterations p99 {row['p99_ms']:.2f}, max"
                f" {row['max_ms']:.2f} ms; gaps p99 {row['gap_p99_ms']:.1f}"))
    return rows
