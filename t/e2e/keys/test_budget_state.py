"""Budgets and usage over the end of processes, full disks, and odd clocks."""

import datetime
import json
import os
import signal
import subprocess

import pytest

from llmgw.fleet.books import records, wait_records
from llmgw.proc.preload import compiled
from llmgw.proc.wait import never, wait_for
from llmgw.speak import sse
from llmgw.speak.keyfile import ask, bearer

USED = 20               # tokens of a request of ours, or a few more
SAVED = 3               # a state is written each second


def chat(nginx, key, prompt="hi len=9;"):
    return ask(nginx.api, sse.CHAT, sse.chat(prompt), bearer(key)).status


def used(record):
    return record["prompt_tokens"] + record["completion_tokens"]


def spend(nginx, key, usage):
    """Uses a budget up; returns what was used."""
    for n in range(len(records(usage)) + 1, 100):
        if chat(nginx, key) == 429:
            break
        wait_for(lambda: len(records(usage)) >= n, "its record")
    return sum(map(used, records(usage)))


def state_of(path, name="alice"):
    """What the state file says that it used this month."""
    if not path.exists():
        return None
    for line in path.read_text().splitlines():
        row = json.loads(line)
        if row.get("key") == name:
            return row["month_tokens"]
    return None


@pytest.fixture
def state(cluster):
    return cluster.dir / "usage.state"


def kill_all(nginx):
    """kill -9 of the master and its workers."""
    for pid in [nginx.proc.pid, *nginx.workers()]:
        os.kill(pid, signal.SIGKILL)
    nginx.proc.told_to_end = True
    nginx.proc.popen.wait()
    wait_for(lambda: not nginx.workers(), "all to be gone")


def again(cluster, nginx):
    """Starts it anew; routable."""
    cluster.launch(nginx)
    wait_for(lambda: nginx.routable(), "a replica")


@pytest.mark.parametrize("kept", ["log", "state", "both"])
def test_budget_is_used_up_after_kill_of_all(gateway, keyfile, usage, state,
                                             cluster, kept):
    """What was settled stays settled, by whichever file is left."""
    key = keyfile.add("alice", "budget=100/month")
    nginx = gateway(more=f" state={state}")
    total = spend(nginx, key, usage)
    assert total >= 100
    wait_for(lambda: state_of(state) == total, "the state", SAVED)
    kill_all(nginx)
    if kept == "state":
        usage.rename(cluster.dir / "elsewhere")
    elif kept == "log":
        state.unlink()
    again(cluster, nginx)
    assert chat(nginx, key) == 429
    wait_for(lambda: state_of(state) == total, "the same state", SAVED)


def test_start_counts_rotated_logs_too(gateway, keyfile, usage, state,
                                       cluster):
    key = keyfile.add("alice", "budget=100/month")
    nginx = gateway(more=f" state={state}")
    total = spend(nginx, key, usage)
    nginx.quit()
    assert nginx.proc.wait() == 0
    state.unlink()
    usage.rename(f"{usage}.2")
    subprocess.run(["gzip", f"{usage}.2"], check=True)
    again(cluster, nginx)
    assert chat(nginx, key) == 429
    wait_for(lambda: state_of(state) == total, "the state", SAVED)


def test_torn_files_are_no_harm(gateway, keyfile, usage, state, cluster):
    """Half a line at the end of the log, and half a state."""
    key = keyfile.add("alice", "budget=100/month")
    nginx = gateway(more=f" state={state}")
    total = spend(nginx, key, usage)
    kill_all(nginx)
    with open(usage, "a") as f:
        f.write('{"time":"2026-11-28T08:24:29.123Z","gateway":"gw1","bi')
    state.write_text(state.read_text()[:-5] if state.exists() else "{")
    again(cluster, nginx)
    assert chat(nginx, key) == 429
    wait_for(lambda: state_of(state) == total, "the right state", SAVED)
    keyfile.drop("alice")
    key = keyfile.add("alice", "budget=1000/month")
    wait_for(lambda: chat(nginx, key) == 200, "the larger budget", 4)
    wait_for(lambda: sum(map(used, records(usage))) > total, "whole records")


def test_killed_worker_is_settled_by_another(gateway, keyfile, usage, cluster):
    """By what it had delivered, once."""
    cluster.allowed.append("exited on signal 9")
    key = keyfile.add("alice", "streams=1")
    nginx = gateway(nginx={"workers": 2})
    cluster.hold(4)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat("hi len=9;", stream=True),
                      headers={"authorization": f"Bearer {key}"})
        r.wait_events(3)
        assert chat(nginx, key) == 429
        wait_for(lambda: cluster.engines["e1"].state()["tokens"] == 4, "four")
        for pid in nginx.workers():
            os.kill(pid, signal.SIGKILL)
    cluster.let_go()
    wait_for(lambda: len(nginx.workers()) == 2, "new workers")
    record, = wait_records(usage, 1)
    assert record["settled_by"] == "worker_died"
    assert 3 <= record["completion_tokens"] <= 4
    assert chat(nginx, key) == 200
    wait_records(usage, 2)


def test_reload_loses_and_gains_nothing(gateway, keyfile, usage, state,
                                        cluster):
    """A stream of before a reload is charged to the same account."""
    key = keyfile.add("alice", "streams=1", "rpm=6")
    nginx = gateway(more=f" state={state}")
    cluster.hold(4)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat("hi len=9;", stream=True),
                      headers={"authorization": f"Bearer {key}"})
        r.wait_events(1)
        nginx.reload()
        assert chat(nginx, key) == 429
        cluster.let_go()
        assert sse.result_of(r).finish_reason == ["stop"]
    wait_records(usage, 1)
    got = [chat(nginx, key) for _ in range(6)]
    assert got == [200] * 5 + [429]
    assert len({r["birth"] for r in wait_records(usage, 6)}) == 1


# --- the clock

@pytest.fixture
def clock(gateway, keyfile, cluster, state):
    """(nginx, set(hours)): a gateway whose wall clock is ahead."""
    hours = cluster.dir / "hours"
    hours.write_text("0")

    def set_(n):
        made = hours.with_suffix(".new")
        made.write_text(str(n))
        os.rename(made, hours)
    os.environ["LLMGW_TEST_HOURS"] = str(hours)
    try:
        yield gateway(more=f" state={state}", nginx={
            "main": "env LLMGW_TEST_HOURS; env LD_PRELOAD;",
            "preload": compiled("shifted_clock", cluster.dir)}), set_
    finally:
        del os.environ["LLMGW_TEST_HOURS"]


@pytest.fixture
def alice(keyfile):
    return keyfile.add("alice", "budget=100/day")


def next_day():
    """Hours until it is another day of UTC, and not the last ones of it."""
    return 26 - datetime.datetime.now(datetime.timezone.utc).hour


def test_midnight_opens_a_day_and_a_clock_set_back_none(alice, clock, usage,
                                                        state, cluster):
    nginx, set_clock = clock
    spend(nginx, alice, usage)
    set_clock(next_day())
    wait_for(lambda: chat(nginx, alice) == 200, "a new day")
    wait_for(lambda: chat(nginx, alice) == 429, "the new day's end", 5)
    n = len(wait_for(lambda: records(usage), "records"))
    set_clock(0)
    never(lambda: chat(nginx, alice) == 200, 1.5, "a day again")
    kill_all(nginx)                 # nor does a start in the past
    again(cluster, nginx)
    assert chat(nginx, alice) == 429
    assert len(records(usage)) == n
    set_clock(next_day() + 24)
    wait_for(lambda: chat(nginx, alice) == 200, "a third day")


def test_request_counts_in_the_day_of_its_end(alice, clock, usage, cluster):
    nginx, set_clock = clock
    cluster.hold(4)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat("hi len=120;", stream=True),
                      headers={"authorization": f"Bearer {alice}"})
        r.wait_events(1)
        set_clock(next_day())
        cluster.let_go()
        assert sse.result_of(r).finish_reason == ["stop"]
    wait_records(usage, 1)
    assert chat(nginx, alice) == 429


# --- a binary upgrade

def is_there(pid):
    try:
        os.kill(pid, 0)
        return True
    except OSError:
        return False


def test_upgrade_in_the_middle_of_a_budget(gateway, keyfile, usage, state,
                                           cluster):
    """USR2, and QUIT to the old master: what the old generation used, and its
    last stream, count in the new one."""
    key = keyfile.add("alice", "budget=300/month")
    nginx = gateway(more=f" state={state}")
    pid_file = nginx.dir / "nginx.pid"
    nginx.quit()                    # USR2 is for daemons
    assert nginx.proc.wait() == 0
    nginx.conf.write_text(
        nginx.conf.read_text().replace("daemon off;", "daemon on;"))
    assert nginx.command().returncode == 0

    def master_but(pid):
        text = pid_file.read_text().strip() if pid_file.exists() else ""
        return int(text) if text not in ("", str(pid)) else None
    old = wait_for(lambda: master_but(0), "the master")
    masters = [old]
    try:
        wait_for(lambda: nginx.routable(), "a replica")
        cluster.hold(4)
        with sse.Connection(nginx.api) as c:
            r = c.request(sse.CHAT, sse.chat("hi len=250;", stream=True),
                          headers={"authorization": f"Bearer {key}"})
            r.wait_events(1)
            os.kill(old, signal.SIGUSR2)
            masters.append(wait_for(lambda: master_but(old), "the next one"))
            os.kill(old, signal.SIGQUIT)
            cluster.let_go()
            assert sse.result_of(r).finish_reason == ["stop"]
        wait_for(lambda: not is_there(old), "the old master to end")
        wait_records(usage, 1)
        for n in range(2, 20):
            if chat(nginx, key) != 200:
                break
            wait_records(usage, n)
        total = sum(map(used, records(usage)))
        assert 300 <= total < 300 + 2 * USED + 20
        assert len({r["birth"] for r in records(usage)}) == 2
        wait_for(lambda: state_of(state) == total, "the state", SAVED)
        wait_for(lambda: not nginx.counts(), "counts of zero")
    finally:
        for pid in filter(is_there, masters):
            os.kill(pid, signal.SIGQUIT)
        wait_for(lambda: not any(map(is_there, masters)), "their end", 5)


# --- a full disk

@pytest.fixture
def tiny(cluster):
    """A small file system, to be filled."""
    if os.getuid() != 0:
        pytest.skip("needs root to mount")
    made = cluster.dir / "tiny"
    made.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "tiny",
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


def lost(nginx):
    for line in nginx.get("/metrics")[1].decode().splitlines():
        if line.startswith("llmgw_usage_lost_total"):
            return int(float(line.rpartition(" ")[2]))
    raise AssertionError("no metric of lost records")


def test_full_disk_loses_no_record_and_refuses_nobody(gateway, keyfile, tiny,
                                                      cluster):
    """Records wait until there is space; accounts settle meanwhile."""
    key = keyfile.add("alice", "budget=100000/day")
    log = tiny / "usage.log"
    nginx = gateway(log=log, more=f" state={tiny}/usage.state")
    assert chat(nginx, key) == 200
    wait_records(log, 1)
    fill(tiny)
    n = 300                         # more than what is left of a page
    for i in range(n):
        assert chat(nginx, key, f"{i} len=3;") == 200
    assert len(records(log)) < n + 1
    assert lost(nginx) == 0
    told = [x for x in nginx.error_log.read_text().splitlines()
            if "No space left" in x]
    assert 1 <= len(told) < 20
    (tiny / "filler").unlink()
    found = wait_records(log, n + 1)
    assert sorted(r["n"] for r in found) == [*range(1, n + 2)]
    assert lost(nginx) == 0


@pytest.mark.soak
def test_more_than_can_wait_is_counted_as_lost(gateway, keyfile, tiny):
    """A small zone, a disk that stays full: served, charged, and lost."""
    key = keyfile.add("alice", "rpm=100000")
    log = tiny / "usage.log"
    nginx = gateway(log=log, zone="keys:128k")
    fill(tiny)
    n = 400
    for i in range(n):
        assert chat(nginx, key, "x len=2;") == 200
    gone = wait_for(lambda: lost(nginx), "lost records")
    (tiny / "filler").unlink()
    found = wait_for(lambda: len(got := records(log)) == n - lost(nginx)
                     and got, "the others", 5)
    assert lost(nginx) >= gone and len(found) > 10


# --- the master alone

def test_workers_without_a_master_settle_what_they_serve(
        gateway, keyfile, usage, state, cluster):
    """kill -9 of the master: its workers continue until they are ended."""
    key = keyfile.add("alice", "budget=200/month")
    nginx = gateway(more=f" state={state}", nginx={"workers": 2})
    workers = nginx.workers()
    cluster.hold(4)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat("hi len=99;", stream=True),
                      headers={"authorization": f"Bearer {key}"})
        r.wait_events(1)
        nginx.proc.kill()
        cluster.let_go()
        assert sse.result_of(r).finish_reason == ["stop"]
    wait_records(usage, 1)
    total = spend(nginx, key, usage)
    for pid in workers:
        os.kill(pid, signal.SIGQUIT)
    wait_for(lambda: not any(map(is_there, workers)), "the workers to end", 5)
    again(cluster, nginx)
    assert chat(nginx, key) == 429
    wait_for(lambda: state_of(state) == total, "the state", SAVED)
