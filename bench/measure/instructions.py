"""Instructions of a request and of a token, counted by callgrind.

Counting shows differences of nanoseconds that noise hides in times.  One
stream runs at a time, so that each request and each token is an event-loop
iteration of its own, and the same work gives the same count.  The kernel's
instructions are not counted.
"""

import pathlib
import re
import shutil
import subprocess

from . import peers
from .machine import Fail
from .stand import Stand

KINDS = [peers.Nginx, peers.Llmgw, peers.LlmgwBare]
SHORT = dict(requests=200, max_tokens=1)
LONG = dict(requests=20, max_tokens=101)
WARM = dict(requests=5, max_tokens=5)
ONE_BY_ONE = dict(connections=1, streams=1, ramp="0s", duration="30s",
                  drain="1s")


def counted(kind):
    """The same proxy under callgrind."""
    class Counted(kind):
        def argv(self):
            return ["valgrind", "-q", "--tool=callgrind",
                    "--trace-children=yes", "--instr-atstart=no",
                    f"--callgrind-out-file={self.dir}/callgrind.%p",
                    *super().argv()]
    return Counted


def workers_of(peer):
    """What the master has started."""
    pids = peer.pids()
    return [pid for pid in pids if int(
        pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(
            ")")[2].split()[1]) in pids]


def control(pid, *words):
    done = subprocess.run(["callgrind_control", *words, str(pid)],
                          capture_output=True, text=True, timeout=30)
    if done.returncode:
        raise Fail(f"callgrind_control: {done.stderr.strip()[-120:]}")


def count(stand, peer, pid, shape):
    """Instructions within one run of the client."""
    control(pid, "-z")
    control(pid, "-i", "on")
    stand.finish(stand.begin(peer, {**ONE_BY_ONE, **shape}))
    control(pid, "-i", "off")
    control(pid, "-d")
    newest = max(peer.dir.glob(f"callgrind.{pid}.*"),
                 key=lambda path: int(path.suffix[1:]))
    return int(re.search(r"^totals: (\d+)", newest.read_text(), re.M)[1])


def of(bench, kind, stand=Stand):
    if not shutil.which("valgrind"):
        raise Fail("valgrind is not installed (make bench-deps)")
    with stand(bench, "same", token_delay="2ms") as stand:
        peer = stand.peer(counted(kind))
        stand.wait(lambda: workers_of(peer), "its worker", peer.proc)
        [pid] = workers_of(peer)
        stand.finish(stand.begin(peer, {**ONE_BY_ONE, **WARM}))
        short, long = (count(stand, peer, pid, shape)
                       for shape in (SHORT, LONG))
    request = short / SHORT["requests"]
    return {"request": request,
            "token": (long / LONG["requests"] - request)
            / (LONG["max_tokens"] - SHORT["max_tokens"])}


def run(bench):
    rows = {}
    for kind in KINDS:
        rows[kind.name] = row = bench.guard(of, bench, kind)
        bench.say(f"instructions {kind.name}: " + (
            row.get("fail")
            or f"{row['request']:.0f} a request, {row['token']:.0f} a token"))
    return rows
