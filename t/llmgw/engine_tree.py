#!/usr/bin/env python3
"""engine_mock.py as the processes of a real engine, for tests of who ends them.

  engine_tree.py --shape vllm|sglang --log FILE [...] -- [engine_mock.py's]

vllm: the front starts a core, which takes no notice of the front's death; the
core starts workers, each with a pipe to it at whose end the worker exits.  The
core exits when a worker has, and the front when the core has.  SIGTERM: the
front ends the core, then itself.

sglang: schedulers and a detokenizer ask the kernel for SIGKILL when the front
dies; when one of them dies the front kills them all, and itself.

Both have a daemon: forked twice, with a session of its own, deaf to SIGTERM and
SIGHUP.

Each process writes a line with its name and pid to the log.  Workers and
schedulers take --need bytes of the budget (engine/budget.py), and the engine
fails if there are not so many, as on a device.
"""

import argparse
import ctypes
import json
import os
import signal
import sys
import threading

from engine import budget

PR_SET_PDEATHSIG = 1


def note(log, name, front):
    line = json.dumps({"run": front, "name": name, "pid": os.getpid()})
    with open(log, "a") as f:
        f.write(line + "\n")


class Tree:
    def __init__(self, options):
        self.options, self.front = options, os.getpid()
        note(options.log, "front", self.front)

    def child(self, name, live, **more):
        """Forks; the child runs live() and never returns."""
        pid = os.fork()
        if pid:
            return pid
        try:
            if name:
                note(self.options.log, name, self.front)
            live(**more)
        finally:
            os._exit(0)

    def daemon(self):
        def middle():
            os.setsid()
            if os.fork() == 0:
                note(self.options.log, "daemon", self.front)
                for sig in (signal.SIGTERM, signal.SIGHUP):
                    signal.signal(sig, signal.SIG_IGN)
                while True:
                    signal.pause()
        os.waitpid(self.child(None, middle), 0)

    def take(self):
        if self.options.budget and \
                not budget.take(self.options.budget, self.options.need):
            print("CUDA out of memory", flush=True)
            os._exit(1)


class VLLM(Tree):
    def worker(self, end):
        self.take()
        os.read(end, 1)             # the end of the core

    def core(self):
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        read, write = os.pipe()
        workers = []
        for i in range(self.options.workers):
            def live():
                os.close(write)
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                self.worker(read)
            workers.append(self.child(f"worker{i}", live))
        os.wait()                   # the end of any worker
        os._exit(1)

    def begin(self):
        core = self.child("core", self.core)

        told = threading.Event()

        def watch():
            os.waitpid(core, 0)
            os._exit(0 if told.is_set() else 1)
        threading.Thread(target=watch, daemon=True).start()

        def end(*_):
            os.write(2, b"front ends its core\n")
            told.set()
            os.kill(core, signal.SIGTERM)
        signal.signal(signal.SIGTERM, end)


class SGLang(Tree):
    def with_front(self):
        ctypes.CDLL("libc.so.6").prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self.front:
            os._exit(0)

    def scheduler(self):
        self.with_front()
        self.take()
        while True:
            signal.pause()

    def detokenizer(self):
        self.with_front()
        while True:
            signal.pause()

    def begin(self):
        children = [self.child(f"worker{i}", self.scheduler)
                    for i in range(self.options.workers)]
        children.append(self.child("core", self.detokenizer))

        def watch():
            os.waitpid(-1, 0)
            for pid in children:
                os.kill(pid, signal.SIGKILL)
            os._exit(1)
        threading.Thread(target=watch, daemon=True).start()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", choices=("vllm", "sglang"), default="vllm")
    parser.add_argument("--log", required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--budget")
    parser.add_argument("--need", type=int, default=0)
    parser.add_argument("--deaf", action="store_true",
                        help="the front ignores SIGTERM")
    split = sys.argv.index("--")
    options = parser.parse_args(sys.argv[1:split])
    tree = {"vllm": VLLM, "sglang": SGLang}[options.shape](options)
    tree.daemon()
    tree.begin()
    if options.deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    import engine_mock              # late: forks are cheap before it
    sys.argv = ["engine_mock.py", *sys.argv[split + 1:]]
    engine_mock.main()


if __name__ == "__main__":
    main()
