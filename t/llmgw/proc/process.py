"""One process of a test: started in its own group, ended by its id."""

import os
import pathlib
import signal
import subprocess

from . import late, place
from .wait import PATIENCE, QUICK, Stopwatch, TooLate, wait_for, within

# An agent that nobody hears any more says goodbye for a second or two.
ENDS = 4

_reaper = None


def _tell_reaper(word, pgid):
    global _reaper
    if _reaper is None:
        _reaper = subprocess.Popen(
            [place.PYTHON, str(pathlib.Path(__file__).with_name("reaper.py"))],
            stdin=subprocess.PIPE, text=True, start_new_session=True)
    _reaper.stdin.write(f"{word} {pgid}\n")
    _reaper.stdin.flush()


def pids_of_group(pgid):
    """The processes of a group that still run (a zombie does not)."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            stat = pathlib.Path("/proc", name, "stat").read_text()
        except OSError:
            continue
        fields = stat.rpartition(")")[2].split()
        if int(fields[2]) == pgid and fields[0] not in "ZX":
            found.append(int(name))
    return found


def rss_kb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def writes(pid):
    """Counts write() and writev(), which nginx uses for its clients; what
    goes to replicas uses send()."""
    io = pathlib.Path(f"/proc/{pid}/io").read_text()
    return int(io.split("syscw: ")[1].split()[0])


class Proc:
    """name: for messages.  log: file for standard output and error."""

    def __init__(self, name, argv, log, env=None, pipes=False):
        self.name = name
        self.argv = [str(a) for a in argv]
        self.log = pathlib.Path(log)
        self.told_to_end = False
        pipe = subprocess.PIPE if pipes else None
        with open(self.log, "ab") as out:
            self.popen = subprocess.Popen(
                self.argv, stdin=pipe or subprocess.DEVNULL,
                stdout=pipe or out, stderr=out, text=True,
                env=late.environment(self.argv, {**os.environ, **(env or {})}),
                start_new_session=True)
        self.pid = self.popen.pid
        _tell_reaper("add", self.pid)

    def alive(self):
        return self.popen.poll() is None

    def send(self, sig):
        self.told_to_end |= sig != signal.SIGHUP
        if self.alive():
            os.kill(self.pid, sig)

    def kill(self):
        """kill -9 of this process, not of its group."""
        self.send(signal.SIGKILL)
        self.popen.wait()

    def freeze(self):
        if self.alive():
            os.kill(self.pid, signal.SIGSTOP)

    def thaw(self):
        if self.alive():
            os.kill(self.pid, signal.SIGCONT)

    def wait(self, takes=QUICK):
        """Its exit status; an error if its group is not empty then."""
        wait_for(lambda: not self.alive(), f"the end of {self.name}", takes)
        return self.popen.returncode

    def stop(self, sig=signal.SIGTERM, takes=ENDS, timeout=PATIENCE):
        """Asks for an orderly end, and kills the group if that takes too long.

        Returns what was wrong, or None.
        """
        wrong = None
        if not self.told_to_end and not self.alive():
            wrong = f"{self.name} ended by itself: {self.popen.returncode}"
        watch = Stopwatch(takes)
        self.send(sig)
        try:
            within(timeout, lambda: not self._left())
            watch.over(f"the end of {self.name}")
        except TooLate:
            wrong = wrong or f"{self.name} did not end, left: {self._left()}"
            os.killpg(self.pid, signal.SIGKILL)
        self.popen.wait()
        self.close_pipes()
        _tell_reaper("del", self.pid)
        return wrong

    def _left(self):
        return ([self.pid] if self.alive() else []) or pids_of_group(self.pid)

    def close_pipes(self):
        for f in (self.popen.stdin, self.popen.stdout):
            if f:
                try:
                    f.close()
                except OSError:
                    pass

    def text(self):
        return self.log.read_text(errors="replace")
