"""`llmgw up` of a test, and the processes that it has started."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

from ..proc import place
from ..proc.wait import PATIENCE, wait_for
from .nginx import sanitizer_env

READY = "Ready."


def curl_of(text):
    """The command that people are told to type."""
    return re.search(r"^    (curl .*?'\{.*?\}')$", text, re.M | re.S)[1]


def of_session(sid):
    """{pid: command line} of what still runs of a session: the launcher's
    children have process groups of their own, and leave no session."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            stat = pathlib.Path("/proc", name, "stat").read_text()
            words = pathlib.Path("/proc", name, "cmdline").read_bytes()
        except OSError:
            continue
        fields = stat.rpartition(")")[2].split()
        if int(fields[3]) == sid and fields[0] not in "ZX":
            found[int(name)] = words.replace(b"\0", b" ").decode().strip()
    return found


class Launcher:
    """words: URLs and options; listen: HOST, whose port is chosen here."""

    def __init__(self, cluster, *words, name="up", listen="127.0.0.1",
                 prefix=(), env=None):
        self.cluster, self.name = cluster, name
        self.port = cluster.ports.take()
        self.target = f"127.0.0.1:{self.port}"
        self.base = f"http://{self.target}"
        self.dir = cluster.dir / name
        self.argv = [*prefix, place.binary("llmgw"), "up", *words,
                     "--listen", f"{listen}:{self.port}",
                     "--dir", str(self.dir), "--module", place.MODULE,
                     "--nginx", place.NGINX]
        self.env = {**(env or {}), **sanitizer_env()} or None     # and nginx's
        self.proc = None

    def start(self):
        self.proc = self.cluster.run(self.name, self.argv, env=self.env)
        return self

    def started(self):
        """Until it says what to type next."""
        self.start()
        self.wait_said(READY, takes=6)
        return self

    def text(self):
        return self.proc.text()

    def kept(self):
        """Where root's gateway keeps the folders of engines that it starts."""
        hash = 0xcbf29ce484222325
        for byte in str(self.dir.resolve()).encode():
            hash = (hash ^ byte) * 0x100000001b3 % 2**64
        return f"/dev/shm/llmgw-{hash % 2**32:x}"

    def wait_said(self, text, takes=2):
        def said():
            assert self.proc.alive() or text in self.text(), self.text()
            return text in self.text()
        wait_for(said, f"{self.name} to say {text!r}", takes=takes)

    def ask(self, verb, *words):
        """`llmgw VERB`: (exit status, standard output and error)."""
        out = subprocess.run(
            [place.binary("llmgw"), verb, *words, "--dir", str(self.dir)],
            capture_output=True, text=True, timeout=PATIENCE)
        return out.returncode, out.stdout + out.stderr

    def status(self):
        code, text = self.ask("status", "--json")
        assert code == 0, text
        return json.loads(text)

    def engines(self):
        """{id: as status has it}"""
        return {e["id"]: e for e in self.status()["engines"]}

    def left(self):
        return of_session(self.proc.pid)

    def end(self, sig=signal.SIGTERM, takes=4):
        """Its exit status, when nothing of it is left."""
        self.proc.send(sig)
        return self.wait_end(takes)

    def wait_end(self, takes=4):
        wait_for(lambda: not self.proc.alive() and not self.left(),
                 "the end of all its processes", takes=takes)
        status, run = self.proc.popen.returncode, self.dir / "run"
        assert run.is_symlink() == (status == -signal.SIGKILL)
        if run.is_symlink():    # the next start would do it
            shutil.rmtree(run.resolve())
            shutil.rmtree(self.kept())
        return status
