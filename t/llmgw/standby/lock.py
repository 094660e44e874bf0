"""llmgw-lock, and a client of its protocol (docs/lock-protocol.md)."""

import fcntl
import json
import os
import pathlib
import queue
import re
import secrets
import socket
import struct
import subprocess
import threading
import time
from collections import namedtuple

from ..proc import place
from ..proc.daemon import Daemon
from ..proc.wait import PATIENCE, QUICK, Stopwatch, TooLate, wait_for

F_OFD_SETLK = 37

Event = namedtuple("Event", "mono group what engine pid epoch text")

LINE = re.compile(r'group "([^"]+)" (\w+): (?:engine "([^"]*)", pid (\d+), '
                  r'epoch (\d+))?(.*), mono (\d+\.\d+) s$')


def slow(ms):
    """A window for this build, as the command line takes it."""
    return f"{int(ms * place.SLOW)}ms"


class LockService(Daemon):
    """llmgw-lock in a directory of its own.

    A process of a test stands still for some hundred ms on a busy machine: the
    timeouts are longer, so that it is neither called hung nor passed over.  The
    window, which is waited for at the first start, is short: a test in which
    a holder has to come back to a new service takes a longer one.
    """

    def __init__(self, cluster, name="lock", fence="kill",
                 reconnect_window=slow(300), hang_timeout=slow(10000),
                 take_timeout=slow(5000), ping_interval="50ms", prefix=()):
        self.dir = cluster.dir / name
        self.dir.mkdir()
        self.socket = str(self.dir / "lock.sock")
        self.state = self.dir / "lock.state"
        super().__init__(cluster, name, [
            *prefix, place.binary("llmgw-lock"), "--socket", self.socket,
            "--state", str(self.state), "--fence", fence,
            "--reconnect-window", reconnect_window,
            "--hang-timeout", hang_timeout, "--take-timeout", take_timeout,
            "--ping-interval", ping_interval])

    def engine(self, id, *options, prefix=()):
        """A lock_engine.py."""
        script = pathlib.Path(__file__).with_name("lock_engine.py")
        return LockEngine(self.cluster.run(f"engine-{id}", [
            *prefix, place.PYTHON, script, "--lock", self.socket, "--id", id,
            *options]))

    def start_settled(self, group="g"):
        """Its first start, at which it grants this group without waiting for
        its window: there is a lock file, and nobody has it."""
        self.lock_file(group).touch()
        return self.start()

    def start_only(self):
        """Without a question to it."""
        return super().start()

    def start(self):
        super().start()
        wait_for(self._answers, f"{self.name} to answer")
        return self

    def _answers(self):
        if not self.proc.alive():
            raise AssertionError(self.proc.text())
        try:
            return self.status()
        except OSError:
            return None

    def status(self):
        """What the service says of itself; OSError: nobody is there."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE)
            s.connect(self.socket)
            s.sendall(b'{"cmd":"status"}\n')
            with s.makefile() as answer:
                return json.loads(answer.readline() or "null")

    def group(self, name="g"):
        """One group of status(); {}: it is not known."""
        groups = {g["group"]: g for g in self.status()["groups"]}
        return groups.get(name, {})

    def lock_file(self, group="g"):
        return self.dir / f"{group}.lock"

    def ctl(self, *words):
        return subprocess.run(
            [place.binary("llmgwctl"), *words, "lock", "status", "--lock",
             self.socket], capture_output=True, text=True, timeout=PATIENCE)

    def events(self, *what, group=None):
        """The log's events of all its lives, in order."""
        found = []
        for start in range(1, self.starts + 1):
            log = self.cluster.dir / f"{self.name}.{start}.log"
            for line in log.read_text(errors="replace").splitlines():
                m = LINE.search(line)
                if m:
                    found.append(Event(
                        float(m[7]), m[1], m[2], m[3], int(m[4] or 0),
                        int(m[5] or 0), m[6]))
        return [e for e in found if (not what or e.what in what)
                and group in (None, e.group)]


Said = namedtuple("Said", "what epoch mono")


class LockEngine:
    """A running lock_engine.py, and what it said."""

    def __init__(self, proc):
        self.proc = proc
        self.kill, self.freeze, self.thaw = proc.kill, proc.freeze, proc.thaw

    def said(self, *what):
        found = []
        for line in self.proc.text().splitlines(True):
            words = line.rsplit(" ", 2)
            if len(words) == 3 and words[0] in what and line[-1] == "\n":
                found.append(Said(words[0], int(words[1]),
                                  int(words[2]) / 1e9))
        return found

    def wait(self, what, times=1, takes=QUICK):
        """The last of so many times that it said so."""
        return wait_for(
            lambda: len(self.said(what)) >= times and self.said(what)[-1],
            f"{self.proc.name} to say {what}", takes)

    def ends(self, takes=QUICK):
        """It ends without the test's doing; its exit status."""
        self.proc.told_to_end = True
        return self.proc.wait(takes)


class Refused(Exception):
    pass


NOT_FINAL = ("late", "busy", "state")       # it is still in the queue


class LockClient:
    """One connection of an engine.

    A thread reads: it answers pings with `state`, `progress` and `streams`
    as long as `answers` is true, and keeps all other lines for expect().

    The process that connects is the engine.  A holder that is fenced is killed:
    so within a test's own process only with fence="wait", or where the holder
    goes by release() or not at all.  lock_engine.py is a process of its own.
    """

    def __init__(self, path, group="g", engine="e1", nonce=None):
        self.group, self.engine = group, engine
        self.nonce = nonce or secrets.token_hex(8)
        self.state, self.progress, self.streams = "standby", 0, 0
        self.answers = True
        self.pings = 0
        self.epoch = 0
        self.lines = queue.Queue()
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(path))
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        try:
            with self.sock.makefile() as lines:
                for line in lines:
                    message = json.loads(line)
                    if message["type"] != "ping":
                        self.lines.put(message)
                        continue
                    self.pings += 1
                    if self.answers:
                        self.say(cmd="pong", seq=message["seq"],
                                 state=self.state, progress=self.progress,
                                 streams=self.streams)
        except (OSError, ValueError):
            pass
        self.lines.put({"type": "closed"})

    def say(self, fd=None, **message):
        line = json.dumps(message).encode() + b"\n"
        if fd is None:
            self.sock.sendall(line)
        else:
            socket.send_fds(self.sock, [line], [fd])

    def expect(self, *types, takes=QUICK):
        """The next line of one of these types; others are passed over, but a
        refusal or the end is an error."""
        watch = Stopwatch(takes)
        deadline = watch.began + max(takes, PATIENCE) * place.SLOW
        while True:
            try:
                message = self.lines.get(
                    timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                raise TooLate(f"{self.engine}: no {types}") from None
            if message["type"] == "closed":
                self.lines.put(message)         # whoever asks
            if message["type"] in types:
                watch.over(f"{types} for {self.engine}")
                return message
            if message["type"] in ("refused", "closed"):
                raise Refused(message.get("reason", "closed"))

    def acquire(self, epoch=0, last_epoch=0, waking_timeout_ms=60000,
                **others):
        self.say(**{"cmd": "acquire", "group": self.group,
                    "engine": self.engine, "nonce": self.nonce,
                    "last_epoch": last_epoch, "epoch": epoch,
                    "waking_timeout_ms": waking_timeout_ms, **others})
        return self

    def take(self, offer=None):
        """Takes this offer, or the next until it was in time: what was
        granted."""
        granted = None
        while granted is None:
            taken = offer or self.expect("offer")
            self.say(cmd="take", epoch=taken["epoch"])
            try:
                granted = self.expect("granted")
            except Refused as refused:
                if offer or str(refused) not in NOT_FINAL:
                    raise
        self.state, self.epoch = "waking", granted["epoch"]
        return granted

    def worker(self, pid, pidfd=None):
        fd = os.pidfd_open(pid) if pidfd is None else pidfd
        self.say(fd=fd, cmd="worker", pid=pid)
        if pidfd is None:
            os.close(fd)
        return self.expect("worker")

    def release(self):
        self.say(cmd="release")

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.thread.join()
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def take_lock_file(path):
    """The second key: a descriptor that holds it, or None."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o660)
    try:
        fcntl.fcntl(fd, F_OFD_SETLK,
                    struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except OSError:
        os.close(fd)
        return None
    opened, named = os.fstat(fd), os.stat(path)
    if (opened.st_dev, opened.st_ino) != (named.st_dev, named.st_ino):
        os.close(fd)
        return None
    return fd


def lock_path(service_socket, group):
    return pathlib.Path(service_socket).with_name(f"{group}.lock")
