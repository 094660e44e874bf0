"""Time that the machine, and not the product, takes from the processes of a
test.

A process that wants to run and does not get a processor is not slow.  The
kernel counts that time for each thread (schedstat, its second number, in ns).
A thread of ours reads it a few times a second for this process and for all that
the test has started, so that whoever waits for a fact can leave it out.
"""

import pathlib
import threading
import time

SAMPLE_S = 0.25


def _tasks(pid):
    """The thread ids of a process and of its children."""
    try:
        tasks = [p.name for p in pathlib.Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return
    for tid in tasks:
        yield pid, tid
        try:
            children = pathlib.Path(
                f"/proc/{pid}/task/{tid}/children").read_text().split()
        except OSError:
            continue
        for child in children:
            yield from _tasks(child)


class Contention:
    def __init__(self):
        self.lock = threading.Lock()
        self.total, self.known = 0.0, {}
        self.thread = None

    def start(self):
        if self.thread is None:
            self.thread = threading.Thread(target=self._run, daemon=True)
            self.thread.start()

    def lost(self):
        """Seconds so far, of all processes together; it only grows."""
        with self.lock:
            self._sample()
            return self.total

    def _run(self):
        while True:
            self.lost()
            time.sleep(SAMPLE_S)

    def _sample(self):
        seen = {}
        for pid, tid in _tasks("self"):
            try:
                fields = pathlib.Path(
                    f"/proc/{pid}/task/{tid}/schedstat").read_text().split()
            except OSError:
                continue
            seen[tid] = int(fields[1]) / 1e9
        for tid, waited in seen.items():
            self.total += max(0.0, waited - self.known.get(tid, 0.0))
        self.known = seen
