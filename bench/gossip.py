#!/usr/bin/env python3
"""`make bench-gossip`: compares llmgw-agent with Serf, N of each on loopback.

They run one after the other in a network namespace of this run, so that the
loopback device counts only their bytes, headers included.  Nothing is polled
while measuring: agents write their changes to this process as they happen
(llmgw-agent: the `events` of its control socket; Serf: its log, through a
pipe), and this process notes the time when it reads them.  So both have the
same delay, one wake-up of this process.

A member of llmgw is an agent whose replica is this process, which reports once
a second.  When an agent is killed, nothing is left that could report its end:
that is the case of agent and replica killed together.
"""

import argparse
import base64
import ctypes
import datetime
import json
import os
import pathlib
import platform
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from gossip_board import Board, Lines, Loop
from measure import page

ROOT = pathlib.Path(__file__).resolve().parents[1]

FIRST_PORT = 20000
SETTLE_S = 5                    # from the last join to measuring at rest
JOINS = 5                       # the join time is that of the last starts
PR_SET_PDEATHSIG = 1

# (n, row) -> limit of the median, in the row's unit
GOALS = {
    (20, "suspected"): 1.1, (50, "suspected"): 1.1,
    (20, "dead"): 4.0, (50, "dead"): 4.8,
    (20, "join"): 0.3, (50, "join"): 0.3,
    (20, "bytes"): 700, (20, "gateway"): 110,
    (20, "rss"): 3.0, (50, "rss"): 3.0,
}

ROWS = [
    ("join", "start to known to all", "s"),
    ("suspected", "kill -9 to first suspicion", "s"),
    ("dead", "kill -9 to DEAD at all", "s"),
    ("rejoin", "restart to known to all", "s"),
    ("bytes", "at rest, with all headers", "B/s a member"),
    ("gateway", "the same, for one gateway more", "B/s a member"),
    ("cpu", "at rest, CPU", "ms/s a member"),
    ("rss", "VmRSS", "MiB a member"),
    ("pss", "Pss", "MiB a member"),
    ("wrong", "a living member called dead", "times, by all"),
    ("doubted", "a living member suspected", "times, by all"),
]


class Member:
    """One process.  start() it, kill() it, start() it again."""

    def __init__(self, fleet, index):
        self.fleet, self.index = fleet, index
        self.id = f"m{index:02}"
        self.popen = None
        self.lines = []

    def spawn(self, argv, **options):
        """A process that does not outlive this one."""
        self.fleet.board.says[self.id] = {}
        self.popen = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL,
            preexec_fn=lambda: ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG,
                                                       signal.SIGKILL),
            **options)

    def note(self, when, member, word):
        self.fleet.board.note(when, self.id, member, word)

    def kill(self):
        if self.popen is not None:
            self.popen.kill()
            self.popen.wait()
            self.popen = None
        for lines in self.lines:
            lines.close()
        self.lines = []


class Agent(Member):
    """An llmgw-agent; this process is its replica."""

    def start(self):
        fleet = self.fleet
        self.control = str(fleet.dir / f"{self.id}.sock")
        gateway = self.index < fleet.gateways
        address = f"127.0.0.1:{FIRST_PORT + self.index}"
        argv = [fleet.binary, "--id", self.id, "--gossip", address,
                "--control", self.control,
                "--role", "gateway" if gateway else "replica"]
        if gateway:
            argv += ["--members", str(fleet.dir / f"{self.id}.members")]
        if fleet.key:
            argv += ["--keyring", str(fleet.dir / "keys")]
        if self.index:
            argv += ["--join", f"127.0.0.1:{FIRST_PORT}"]
        with open(fleet.dir / f"{self.id}.log", "ab") as log:
            self.spawn(argv, stdout=log, stderr=log)
        self.ask({"cmd": "events"}, self.hear)
        self.report = None
        if not gateway:
            self.since_ms = int(time.time() * 1000)
            self.report = self.ask(self.state(), self.answer)

    def ask(self, command, hear):
        """On a new connection; the socket appears a moment after the start."""
        deadline = time.monotonic() + 10
        while True:
            link = socket.socket(socket.AF_UNIX)
            try:
                link.connect(self.control)
                break
            except OSError:
                link.close()
                if time.monotonic() > deadline or self.popen.poll() is not None:
                    raise
                time.sleep(0.001)
        link.sendall(json.dumps(command).encode() + b"\n")
        self.lines.append(Lines(self.fleet.loop, link, hear))
        return link

    def state(self):
        return {"cmd": "report", "replica_start": self.since_ms,
                "pid": os.getpid(), "model_version": "v1",
                "max_capacity": 16, "active_requests": 0}

    def tick(self):
        if self.popen is not None and self.report is not None:
            self.report.send(json.dumps(self.state()).encode() + b"\n")

    def answer(self, when, line):
        if b'"ok":true' not in line:
            raise RuntimeError(f"{self.id} refuses a report: {line.decode()}")

    def hear(self, when, line):
        event = json.loads(line)
        what = event.get("event")
        if what == "members":
            for member in event["members"]:
                self.note(when, member["id"], member["state"])
        elif what == "joined":
            self.note(when, event["id"], event["member"]["state"])
        elif what == "state":
            self.note(when, event["id"], event["to"])


class SerfAgent(Member):
    SAYS = [(re.compile(rb"serf: EventMemberJoin: (\S+)"), "ALIVE"),
            (re.compile(rb"serf: EventMemberFailed: (\S+)"), "DEAD"),
            (re.compile(rb"memberlist: Suspect (\S+) has failed"), "SUSPECT")]

    def start(self):
        fleet = self.fleet
        address = f"127.0.0.1:{FIRST_PORT + self.index}"
        argv = [fleet.binary, "agent", f"-node={self.id}", f"-bind={address}",
                f"-rpc-addr=127.0.0.1:{FIRST_PORT + 1000 + self.index}",
                f"-profile={fleet.profile}", "-log-level=info"]
        if fleet.key:
            argv.append("-encrypt=" + base64.b64encode(fleet.key).decode())
        if self.index:
            argv.append(f"-join=127.0.0.1:{FIRST_PORT}")
        self.spawn(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lines.append(Lines(fleet.loop, self.popen.stdout, self.hear))

    def tick(self):
        pass

    def hear(self, when, line):
        for pattern, word in self.SAYS:
            found = pattern.search(line)
            if found:
                self.note(when, found[1].decode(), word)


class Fleet:
    """n members of one kind, and the measurements."""

    def __init__(self, options, n, kind, profile=None, gateways=None):
        self.options, self.n, self.profile = options, n, profile
        self.gateways = gateways or options.gateways
        self.kind = kind
        self.key = None if options.plain else bytes(range(32))
        self.loop, self.board = Loop(options.end), Board()
        self.random = random.Random(options.seed)
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="llmgw-gossip-"))
        if self.key:
            keys = self.dir / "keys"
            keys.write_text(self.key.hex() + "\n")
            keys.chmod(0o600)
        self.binary = shutil.which("serf") if kind is SerfAgent \
            else str(options.agent)
        self.members = [kind(self, i) for i in range(n)]

    def __enter__(self):
        if not self.binary or not os.access(self.binary, os.X_OK):
            raise RuntimeError("not installed")
        self.loop.every(1, lambda: [m.tick() for m in self.members])
        return self

    def __exit__(self, *_):
        for member in self.members:
            member.kill()
        shutil.rmtree(self.dir, ignore_errors=True)

    def others(self, member):
        return [m.id for m in self.members
                if m is not member and m.popen is not None]

    def say(self, text):
        name = "serf " + self.profile if self.profile else "llmgw"
        print(f"  {name}, {self.n}: {text}", file=sys.stderr, flush=True)

    def start(self, member):
        """Waits until all others know it.  Returns the seconds."""
        since, others = time.monotonic(), self.others(member)
        member.start()
        self.loop.wait(lambda: self.board.all_say(others, member.id, "ALIVE"),
                       f"{member.id} to be known to all")
        if not others:
            return None
        return self.board.last(since, member.id, "ALIVE") - since

    def build(self):
        took = [self.start(member) for member in self.members]
        ids = [m.id for m in self.members]
        self.loop.wait(lambda: all(self.board.all_say(ids, i, "ALIVE")
                                   for i in ids), "all to know all")
        return {"join": took[1:][-JOINS:]}

    def rest(self):
        """Their cost at rest."""
        self.loop.sleep(SETTLE_S)
        bytes_before, since = loopback_bytes(), time.monotonic()
        cpu_before = [cpu_ms(m.popen.pid) for m in self.members]
        self.loop.sleep(self.options.rest)
        seconds = time.monotonic() - since
        cpu = [(cpu_ms(m.popen.pid) - before) / seconds
               for m, before in zip(self.members, cpu_before)]
        got = {"cpu": cpu,
               "rss": [memory_mib(m.popen.pid, "status", "VmRSS")
                       for m in self.members],
               "pss": [memory_mib(m.popen.pid, "smaps_rollup", "Pss")
                       for m in self.members]}
        if self.options.namespace:
            got["bytes"] = [(loopback_bytes() - bytes_before)
                            / seconds / self.n]
        return got

    def kill_one(self):
        """Returns seconds: first suspicion, DEAD at all, known again."""
        board, loop = self.board, self.loop
        loop.sleep(0.5 + self.random.random())
        victim = self.random.choice(self.members[self.gateways:])
        board.killed.add(victim.id)
        since = time.monotonic()
        victim.kill()
        loop.wait(lambda: board.all_say(self.others(victim), victim.id,
                                        "DEAD"), f"{victim.id} to be dead")
        dead = board.last(since, victim.id, "DEAD")
        suspected = board.first(since, victim.id, "SUSPECT") or dead
        again = self.start(victim)
        board.killed.discard(victim.id)
        return suspected - since, dead - since, again

    def measure(self, kills):
        got = self.build()
        self.say(f"joined, the last in {got['join'][-1]:.3f} s")
        got.update(self.rest())
        rounds = []
        for i in range(kills):
            try:
                rounds.append(self.kill_one())
            except RuntimeError as e:
                got["note"] = f"kill {i + 1}: {e}"
                self.say(got["note"])
                break
            self.say("kill %d: suspected %.2f s, dead %.2f s, again %.2f s"
                     % (i + 1, *rounds[-1]))
        for name, values in zip(("suspected", "dead", "rejoin"),
                                zip(*rounds)):
            got[name] = list(values)
        got["wrong"] = [self.board.wronged("DEAD")]
        got["doubted"] = [self.board.wronged("SUSPECT")]
        return got


def loopback_bytes():
    """Sent on this namespace's loopback; each packet once."""
    for line in open("/proc/net/dev"):
        name, _, fields = line.partition(":")
        if name.strip() == "lo":
            return int(fields.split()[8])
    raise RuntimeError("no loopback device")


def cpu_ms(pid):
    """Of all threads, in nanoseconds; /proc/PID/stat has ticks of 10 ms."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        text = pathlib.Path(f"/proc/{pid}/task/{task}/schedstat").read_text()
        total += int(text.split()[0])
    return total / 1e6


def memory_mib(pid, file, field):
    for line in pathlib.Path(f"/proc/{pid}/{file}").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no {field}")


def figure(row, value):
    if row in ("wrong", "doubted", "bytes", "gateway"):
        return f"{value:.0f}"
    return f"{value:.3f}" if row == "join" else f"{value:.2f}"


def cell(row, got):
    if isinstance(got, str):
        return f"FAIL: {got}"
    values = got.get(row)
    if not values:
        return "" if row == "gateway" else "FAIL: not measured"
    text = figure(row, statistics.median(values))
    if len(values) > 1:
        text += (f" ({figure(row, min(values))}.."
                 f"{figure(row, max(values))})")
    return text


def goal(n, row, got):
    """The goal, and whether llmgw's median meets it."""
    limit = GOALS.get((n, row))
    if limit is None:
        return ""
    text = f"<= {limit:g}"
    if isinstance(got, str) or not got.get(row):
        return text
    kept = statistics.median(got[row]) <= limit
    return text + (" ok" if kept else " MISSED")


def table(results, names):
    lines = ["| n | | unit | goal | " + " | ".join(names) + " |",
             "|---|---|---|---|" + "---|" * len(names)]
    for n, by_name in results.items():
        for row, text, unit in ROWS:
            own = by_name.get("llmgw", "not run")
            cells = [cell(row, by_name.get(name, "not run"))
                     for name in names]
            lines.append(f"| {n} | {text} | {unit} | {goal(n, row, own)} | "
                         + " | ".join(cells) + " |")
    notes = [f"{name}, n = {n}: {got['note']}."
             for n, by_name in results.items() for name, got in by_name.items()
             if isinstance(got, dict) and "note" in got]
    return "\n".join(lines + [""] * bool(notes) + notes)


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def serf_version():
    try:
        out = subprocess.run(["dpkg-query", "-W", "-f=${Version}", "serf"],
                             capture_output=True, text=True).stdout
    except OSError:
        out = ""
    return out or "not installed"


def method(options, load):
    kills = ", ".join(f"{k} at n = {n} ({s} of Serf's)" for n, k, s in
                      zip(options.n, options.kills, options.serf_kills))
    crypto = "none" if options.plain else "on, both"
    return f"""\
{datetime.date.today()}, {processor()}, {os.cpu_count()} processors, Linux
{platform.release()}, load average {load[0]:.1f} at the start and
{os.getloadavg()[0]:.1f} at the end. llmgw-agent with its defaults and
{options.gateways} gateway(s) among the n, Serf of Debian ({serf_version()})
with its profiles; encryption: {crypto}. One after the other, in a network
namespace of their own. Kills: {kills}. At rest: {options.rest:g} s. Median
(min..max): of the kills, of the last {JOINS} of n starts, of the members.
Bytes are what the loopback device counted, Ethernet, IP and UDP headers
included. Start is the fork of the new process."""


def in_namespace():
    """Runs this script again in a network namespace."""
    for words in (["unshare", "-n"], ["unshare", "-r", "-n"]):
        try:
            works = subprocess.run([*words, "true"],
                                   stderr=subprocess.DEVNULL).returncode == 0
        except OSError:
            return
        if works:
            os.execvp(words[0], [*words, sys.executable, *sys.argv,
                                 "--namespace"])


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--kills", type=int, nargs="+", default=[15, 15],
                        help="of each n")
    parser.add_argument("--serf-kills", type=int, nargs="+", default=[15, 7])
    parser.add_argument("--limit", type=float, default=1500,
                        metavar="SECONDS", help="of the whole run")
    parser.add_argument("--rest", type=float, default=20, metavar="SECONDS")
    parser.add_argument("--gateways", type=int, default=1)
    parser.add_argument("--only", default="llmgw,serf local,serf lan")
    parser.add_argument("--plain", action="store_true",
                        help="without encryption")
    parser.add_argument("--quick", action="store_true",
                        help="3 kills, 5 s at rest")
    parser.add_argument("--write", action="store_true",
                        help="put the table into docs/benchmarks.md")
    parser.add_argument("--agent", default=ROOT / "build" / "llmgw-agent")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--namespace", action="store_true",
                        help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.kills = options.serf_kills = [3]
        options.rest = 5
    for kills in (options.kills, options.serf_kills):
        kills += kills[-1:] * (len(options.n) - len(kills))
    options.end = time.monotonic() + options.limit
    return options


def further_gateway(options, n, got):
    """The extra bytes each member sends where one replica is a gateway."""
    with Fleet(options, n, Agent, gateways=options.gateways + 1) as fleet:
        fleet.build()
        bytes_more = fleet.rest().get("bytes")
        fleet.say(f"{fleet.gateways} gateways: {bytes_more}")
    if bytes_more:
        got["gateway"] = [bytes_more[0] - got["bytes"][0]]


def run(options, n, kills, name):
    kind, profile = (Agent, None) if name == "llmgw" \
        else (SerfAgent, name.split()[1])
    try:
        with Fleet(options, n, kind, profile) as fleet:
            got = fleet.measure(kills)
    except (RuntimeError, OSError) as e:
        return str(e)
    if kind is Agent:
        try:
            further_gateway(options, n, got)
        except (RuntimeError, OSError) as e:
            got["note"] = f"one gateway more: {e}"
    return got


def main():
    options = parse()
    if not options.namespace:
        in_namespace()
        print("no network namespace: bytes are not measured", file=sys.stderr)
    else:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    load, names, results = os.getloadavg(), options.only.split(","), {}
    for n, own, serf in zip(options.n, options.kills, options.serf_kills):
        for name in names:
            results.setdefault(n, {})[name] = run(
                options, n, own if name == "llmgw" else serf, name)
            text = method(options, load) + "\n\n" + table(results, names)
            if options.write:   # so that an interrupted run leaves its part
                page.write("gossip", text)
    print(text)
    complete = all(isinstance(got, dict) and "note" not in got
                   for by_name in results.values()
                   for got in by_name.values())
    return 0 if complete and "MISSED" not in text else 1


if __name__ == "__main__":
    sys.exit(main())
