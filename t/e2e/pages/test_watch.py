"""llmgwctl's output for people and scrapers: --watch, colours, metrics."""

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios
import time

import pytest

from llmgw.proc import place
from llmgw.proc.wait import PATIENCE, QUICK, readable, wait_for


@pytest.fixture
def pair(cluster):
    """A gateway's agent, and a replica with its agent."""
    gw = cluster.agent("gw", "gateway")
    cluster.pair("r1")
    wait_for(lambda: gw.table().get("r1", {}).get("service") == "READY",
             "r1")
    return gw


class Terminal:
    """llmgwctl on a pseudo terminal."""

    def __init__(self, agent, *words, rows=24, env=()):
        self.screen = b""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, 60, 0, 0))
        self.popen = subprocess.Popen(
            [place.binary("llmgwctl"), "-s", agent.control, *words],
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            env={**os.environ, **dict(env)})
        os.close(slave)

    def pump(self):
        """Reads what has come; False: it has ended."""
        while readable([self.master]):
            try:
                more = os.read(self.master, 65536)
            except OSError:
                return False
            self.screen += more
        return True

    def frames(self):
        self.pump()
        return self.screen.split(b"\033[H")[1:]

    def wait_frames(self, n, what="frames"):
        """One comes at once, and each further one a second later."""
        return wait_for(lambda: len(got := self.frames()) >= n and got,
                        what, takes=n - 1 + QUICK)

    def close(self):
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()
        os.close(self.master)


@pytest.fixture
def terminal():
    made = []

    def make(*args, **options):
        made.append(Terminal(*args, **options))
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.mark.soak
def test_table_is_aligned_and_plain_in_a_pipe(pair):
    lines = pair.ctl("members").stdout.splitlines()
    assert len(lines) == 3
    heads = [m.start() for m in re.finditer(r"\S+", lines[0])]
    for line in lines[1:]:
        assert all(line[i] != " " and line[i - 1] == " "
                   for i in heads[1:]), lines
    assert "\033" not in "".join(lines)


def test_terminal_has_colours_unless_told_not_to(pair, terminal):
    for env, coloured in ((), True), ([("NO_COLOR", "1")], False):
        t = terminal(pair, "members", env=env)
        assert t.popen.wait(PATIENCE) == 0
        t.pump()
        assert (b"\033[32mALIVE" in t.screen) == coloured
        assert b"ALIVE" in t.screen


def test_watched_table_is_drawn_in_place(cluster, pair, terminal):
    t = terminal(pair, "members", "--watch")
    frames = t.wait_frames(2)       # so that the first one is whole
    assert t.screen.startswith(b"\033[2J") or b"\033[2J" in t.screen[:20]
    assert b"r1" in frames[0] and b"DOWN" not in frames[0]
    assert all(line.endswith(b"\033[K\r") for line in
               frames[0].split(b"\n")[:3])
    cluster.replicas["r1"].kill()
    wait_for(lambda: b"DEAD (down)" in t.frames()[-1], "the death of r1",
             takes=1 + QUICK)
    t.popen.send_signal(signal.SIGINT)
    assert t.popen.wait(PATIENCE) == 0
    t.pump()
    assert t.screen.count(b"\033[?7l") == t.screen.count(b"\033[?7h")
    assert b"llmgwctl:" not in t.screen


@pytest.mark.timed
def test_watch_comes_about_once_a_second(pair, terminal):
    start = time.monotonic()
    t = terminal(pair, "status", "--watch")
    t.wait_frames(4)
    assert 2.5 < time.monotonic() - start < 15


def test_low_terminal_says_what_is_left_out(pair, terminal):
    t = terminal(pair, "status", "--watch", rows=10)
    more = wait_for(lambda: t.pump() and re.search(
        rb"\.\.\. (\d+) more\033\[K\r\n", t.screen), "its last line")
    assert t.frames()[0].count(b"\n") == 9
    n = int(more.group(1))
    assert n + 8 == len(pair.ctl("status").stdout.splitlines())


@pytest.mark.soak
def test_watch_outlives_a_restart_of_the_agent(cluster, pair, terminal):
    t = terminal(pair, "members", "--watch")
    t.wait_frames(1)
    pair.stop(signal.SIGQUIT)
    wait_for(lambda: t.pump() and b"llmgwctl:" in t.screen, "a complaint",
             takes=1 + QUICK)
    seen = len(t.frames())
    pair.start()
    t.wait_frames(seen + 1, "a frame of the next agent")
    assert t.popen.poll() is None


@pytest.mark.parametrize("as_json, sig", [
    pytest.param(False, signal.SIGINT, marks=pytest.mark.soak),
    (False, signal.SIGTERM),
    (True, signal.SIGINT),
    pytest.param(True, signal.SIGTERM, marks=pytest.mark.soak)])
def test_watch_into_a_pipe_appends(pair, as_json, sig):
    argv = [place.binary("llmgwctl"), "-s", pair.control,
            *(["--json"] if as_json else []), "members", "--watch"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as ctl:
        if as_json:
            for _ in range(2):
                said = json.loads(ctl.stdout.readline())
                assert {m["id"] for m in said["members"]} == {"gw", "r1"}
        else:
            for _ in range(2):
                assert ctl.stdout.readline().startswith("ID ")
                assert ctl.stdout.readline().startswith("gw ")
                assert ctl.stdout.readline().startswith("r1 ")
                assert ctl.stdout.readline() == "\n"
        ctl.send_signal(sig)
        rest = ctl.stdout.read()
        assert "\033" not in rest
        assert ctl.wait(PATIENCE) == 0


def test_watch_of_nobody_fails_at_once(cluster):
    gone = cluster.dir / "nobody.sock"
    out = subprocess.run([place.binary("llmgwctl"), "-s", str(gone),
                          "members", "--watch"], capture_output=True,
                         text=True, timeout=PATIENCE)
    assert out.returncode == 6
    assert out.stderr.startswith("llmgwctl: ")


SERIES = re.compile(r'^llmgw_agent_\w+\{agent="gw"(,\w+="[^"]*")*\} [0-9.]+$')


def test_metrics_are_the_status(pair):
    out = pair.ctl("metrics")
    assert out.returncode == 0
    status = json.loads(pair.ctl("--json", "status").stdout)
    found = {}
    for line in out.stdout.splitlines():
        if not line.startswith("#"):
            assert SERIES.match(line), line
            name, _, value = line.partition(" ")
            found[name] = float(value)
    counters = status["counters"]
    dropped = counters.pop("dropped")
    for name in counters:
        value = found.pop(f'llmgw_agent_{name}_total{{agent="gw"}}')
        assert 0 <= value <= counters[name]
    for reason in dropped:
        assert found.pop(f'llmgw_agent_dropped_total{{agent="gw",'
                         f'reason="{reason}"}}') == dropped[reason]
    assert found['llmgw_agent_members{agent="gw",state="ALIVE"}'] == 2
    assert found['llmgw_agent_joined{agent="gw"}'] == 1
    assert counters["datagrams_sent"] > 0


@pytest.mark.soak
@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool")
def test_promtool_finds_nothing_to_say_of_the_agents_metrics(pair):
    out = subprocess.run(["promtool", "check", "metrics"],
                         input=pair.ctl("metrics").stdout,
                         capture_output=True, text=True, timeout=20)
    assert (out.returncode, out.stdout, out.stderr) == (0, "", "")
