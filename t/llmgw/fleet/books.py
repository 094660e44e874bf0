"""The books of a gateway: what its usage log says, beside what doubles of
engines have generated and what clients have got."""

import collections
import contextlib
import json
import pathlib
import subprocess

from ..proc import place
from ..proc.wait import PATIENCE, TooLate, wait_for, within

# A worker that dies is found by the sweep, each second.
SWEPT = 5

LOOKS = 3               # how often a process sleeps, until it has no work


def records(*paths):
    """The records of logs, each once.  Where a disk was full or a process was
    killed, the begin of a record stands in a line of its own, or before another
    one."""
    found = {}
    for path in paths:
        if not pathlib.Path(path).exists():
            continue
        for line in pathlib.Path(path).read_text().split("\n")[:-1]:
            with contextlib.suppress(ValueError):
                r = json.loads(line[max(0, line.rfind('{"time":"')):])
                known = found.setdefault((r["gateway"], r["birth"], r["n"]), r)
                assert known == r, (known, r)
    return list(found.values())


def sums(paths, *options):
    """What llmgwctl usage adds up: (groups, the total, doubles)"""
    out = subprocess.run(
        [place.binary("llmgwctl"), "--json", "usage", *options,
         *map(str, paths)], capture_output=True, text=True, timeout=PATIENCE)
    assert out.returncode == 0, out.stderr
    got = json.loads(out.stdout)
    return got["groups"], got["total"], got["doubles"]


def by_key(found, *members):
    """{key: the sum of these members}"""
    result = collections.Counter()
    for r in found:
        result[r["key"]] += sum(r[m] for m in members)
    return +result


def made(paths, word="made"):
    """{whose: tokens}, of ledgers; word: made or unseen."""
    result = collections.Counter()
    for path in paths:
        if pathlib.Path(path).exists():
            for line in pathlib.Path(path).read_text().split("\n")[:-1]:
                what, whose = line.split()
                result[whose] += what == word
    return +result


def wait_records(path, n, takes=SWEPT):
    """So many, and no more."""
    found = wait_for(lambda: len(got := records(path)) >= n and got,
                     f"{n} records", takes)
    assert len(found) == n, found[n:]
    return found


def check_balance(log, ledgers, keys=None):
    """Charged and thrown away is what was generated, for each key (None: all)
    and to the token, as soon as all is settled."""
    def differ():
        mine = by_key(records(log), "completion_tokens", "wasted_tokens")
        theirs = made(ledgers)
        return {key: (mine[key], theirs[key])
                for key in keys or mine.keys() | theirs.keys()
                if mine[key] != theirs[key]}
    try:
        within(PATIENCE, lambda: not differ(), "balanced books")
    except TooLate:
        raise AssertionError(f"{{key: (charged, made)}}: {differ()}") from None


# Nothing moves

def _waiting_bytes(ports, behind):
    """In sockets of these ports, to be sent or to be read; and connections to
    be accepted.  behind: likewise in those of their peers."""
    n = 0
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        near, far = (int(fields[i].rpartition(":")[2], 16) for i in (1, 2))
        if near in ports or far in behind:
            n += sum(int(x, 16) for x in fields[4].split(":"))
    return n


def _is_running(pid):
    try:
        tasks = [*pathlib.Path(f"/proc/{pid}/task").iterdir()]
        return any((t / "stat").read_text().rpartition(")")[2].split()[0]
                   in "RD" for t in tasks)
    except OSError:
        return False


def wait_rest(cluster, nginx):
    """Waits until no byte is under way and each process of a gateway, an
    adapter or an engine sleeps: streams that hold() holds have what was
    generated for them, at each step of the way."""
    behind = {int(x.target.rpartition(":")[2]) for x in
              (*cluster.replicas.values(), *cluster.engines.values())}
    ports = behind | {nginx.port, nginx.status_port}
    asleep = collections.Counter()

    def rests():
        if _waiting_bytes(ports, behind):
            asleep.clear()
            return False
        pids = nginx.workers() + [
            x.proc.pid for x in (*cluster.replicas.values(),
                                 *cluster.engines.values()) if x.proc.alive()]
        sleepers = [p for p in pids if not _is_running(p)]
        asleep.update(sleepers)
        return sleepers == pids and all(asleep[p] >= LOOKS for p in pids)
    within(3 * PATIENCE, rests, "rest")
