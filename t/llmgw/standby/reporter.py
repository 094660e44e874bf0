"""A process that reports as a member of a standby group, and is no engine.

It says to its agent what stdin tells it to, one JSON object of fields a line,
and writes to its log each SIGTERM: "term MONOTONIC_NS".  From the first one on
it says that it drains.  It ends with stdin.
"""

import json
import os
import pathlib
import signal
import socket
import sys
import threading
import time


class GroupReporter:
    """The process, beside an agent.

    pid: what it says it is, its own by default.
    """

    def __init__(self, cluster, agent, state, epoch=0, group="g", **fields):
        self.proc = cluster.script(
            f"reporter-{agent.id}", "standby/reporter.py", agent.control,
            pipes=True)
        self.kill = self.proc.kill
        self.fields = {"group": group, **fields}
        self.say(state, epoch)
        cluster.closers.append(self.kill)

    def say(self, state, epoch=0, **fields):
        """It is in that state of its group."""
        self.fields.update(
            fields, group_state=state, group_epoch=epoch,
            state="READY" if state == "active" else "STARTING")
        self.proc.popen.stdin.write(json.dumps(self.fields) + "\n")
        self.proc.popen.stdin.flush()
        return self

    def terms(self):
        """When it got each SIGTERM, seconds."""
        return [int(line.split()[1]) / 1e9 for line in
                pathlib.Path(self.proc.log).read_text().splitlines(True)
                if line.startswith("term ") and line[-1] == "\n"]


def main():
    report = {"cmd": "report", "replica_start": time.time_ns() // 1000000,
              "pid": os.getpid(), "model_version": "v1", "max_capacity": 4,
              "active_requests": 0, "draining": False}
    lock = threading.Lock()

    def on_term(*_):
        os.write(2, f"term {time.monotonic_ns()}\n".encode())
        report["draining"] = True       # as repeat() says soon

    signal.signal(signal.SIGTERM, on_term)
    report.update(json.loads(sys.stdin.readline()))
    agent = socket.socket(socket.AF_UNIX)
    agent.connect(sys.argv[1])

    def say():
        with lock:
            agent.sendall(json.dumps(report).encode() + b"\n")

    def repeat():
        # Python's handler runs in the main thread alone, which has to be the
        # one that is interrupted.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        while True:
            say()
            time.sleep(0.1)

    say()
    threading.Thread(target=repeat, daemon=True).start()
    for line in sys.stdin:
        report.update(json.loads(line))
        say()
    os._exit(0)


if __name__ == "__main__":
    main()
