"""A replica's half of the report connection, with any fields."""

import json
import os
import socket
import threading
import time

from ..proc.wait import wait_for


class Reporter:
    """Reports to an agent, several times a second, until it is closed.

    fields: of the report, in place of those below or beside them; None leaves
    one out.  What say() changes is reported at once.
    """

    PERIOD = 0.2

    def __init__(self, cluster, agent, **fields):
        self.fields = {"cmd": "report", "replica_start": 1763650000000,
                       "pid": os.getpid(), "model_version": "v1",
                       "max_capacity": 4, "active_requests": 0,
                       "draining": False}
        self.answers = []           # the first report's, and refusals
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.socket = socket.socket(socket.AF_UNIX)
        wait_for(lambda: self._connects(agent.control), "its agent")
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.say(**fields)
        self.thread.start()
        cluster.closers.append(self.close)

    def _connects(self, path):
        try:
            self.socket.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    def say(self, **fields):
        with self.lock:
            self.fields.update(fields)
            self._send()
        return self

    def refusal(self, **fields):
        """What one report with these fields is refused for."""
        def refusals():
            return [a for a in self.answers if "code" in a]
        before = len(refusals())
        with self.lock:
            self._send(**fields)
        wait_for(lambda: len(refusals()) > before, "a refusal")
        return refusals()[-1]

    def _send(self, **fields):
        said = {k: v for k, v in {**self.fields, **fields}.items()
                if v is not None}
        self.socket.sendall(json.dumps(said).encode() + b"\n")

    def _run(self):
        rest, told = b"", time.monotonic()
        while not self.over.is_set():
            self.socket.settimeout(self.PERIOD / 4)
            try:
                rest += self.socket.recv(65536)
            except TimeoutError:
                pass
            except OSError:
                return
            *lines, rest = rest.split(b"\n")
            self.answers += [json.loads(line) for line in lines]
            if time.monotonic() - told > self.PERIOD:
                told = time.monotonic()
                try:
                    self.say()
                except OSError:
                    return

    def silence(self):
        """It hangs: no report, and the connection stands."""
        self.over.set()
        self.thread.join()

    def close(self):
        """It dies: the connection breaks."""
        self.silence()
        self.socket.close()
