"""Replicas and proxies of one scenario, and one run of the client."""

import json
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from . import machine
from .machine import Fail, Sampler

CLIENT = machine.ROOT / "build" / "llmgw-client"
REPLICA = machine.ROOT / "build" / "llmgw-replica"
GRACE_S = 20


class Stand:
    """A context manager: everything runs inside it, and nothing after it.

    replicas: how many, or a list of each one's options.
    """

    def __init__(self, bench, kind, replicas=2, **options):
        self.bench, self.ports = bench, bench.ports
        self.pinning = machine.Pinning(kind)
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="llmgw-bench-"))
        self.dir.chmod(0o755)
        self.procs, self.replicas, self.clients = [], [], []
        if isinstance(replicas, int):
            replicas = [options] * replicas
        self.replica_options = replicas
        self.replica_ports = [self.ports.take() for _ in replicas]

    def __enter__(self):
        try:
            for i, (port, options) in enumerate(
                    zip(self.replica_ports, self.replica_options)):
                proc = self.start_replica(f"r{i + 1}", port, options)
                self.procs.append(proc)
                self.replicas.append(proc)
            for proc in self.replicas:
                self.wait(lambda: "serving model" in proc.text(),
                          f"{proc.name} to serve", proc)
        except BaseException:
            self.close()
            raise
        return self

    def start_replica(self, name, port, options):
        argv = [REPLICA, "--id", name, "--listen", f"127.0.0.1:{port}"]
        for option, value in {"engine": "sim", **options}.items():
            argv += [f"--{option.replace('_', '-')}", value]
        return machine.start(name, argv, self.dir, self.pinning.rest)

    def __exit__(self, *_):
        self.close()

    def close(self):
        for client in self.clients:
            if client.poll() is None:
                client.kill()
                client.wait()
        for proc in reversed(self.procs):
            proc.stop(signal.SIGTERM, timeout=1)
        shutil.rmtree(self.dir, ignore_errors=True)

    def wait(self, fact, what, proc, seconds=10):
        deadline = time.monotonic() + seconds
        while not fact():
            if not proc.alive():
                raise Fail(f"{proc.name} ended: {last_line(proc)}")
            if time.monotonic() > deadline:
                raise Fail(f"waited {seconds} s for {what}")
            time.sleep(0.01)

    def peer(self, kind, **options):
        return kind(self, **options).start()

    # --- the client

    def argv(self, peer, shape):
        options = {"gateway": peer.target, "method": peer.method,
                   "drain": "0s", **shape}
        argv = [CLIENT, "bench", "--json"]
        for name, value in options.items():
            argv += [f"--{name.replace('_', '-')}"] + \
                ([] if value is True else [str(value)])
        return machine.pinned(self.pinning.rest, argv)

    def begin(self, peer, shape):
        process = subprocess.Popen(self.argv(peer, shape),
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.clients.append(process)
        process.limit_s = GRACE_S + sum(
            seconds(shape[name]) for name in ("warmup", "duration", "drain")
            if name in shape)
        return process

    def finish(self, process, may_fail=False):
        """Its report.  The client has its own timers; this limit is for a
        client that hangs."""
        try:
            out, err = process.communicate(timeout=process.limit_s)
        except subprocess.TimeoutExpired as e:
            raise Fail("the client did not end in"
                       f" {process.limit_s:.0f} s") from e
        if not out:
            raise Fail(f"client: {err.strip()[-160:] or 'said nothing'}")
        got = json.loads(out)
        if got["errors"] and not may_fail:
            raise Fail(say_errors(got))
        return got

    def run(self, peer, may_fail=False, **shape):
        """The client's report, with the proxy's CPU within its window."""
        with Sampler(peer.pids()) as sampler:
            got = self.finish(self.begin(peer, shape), may_fail)
        if sampler.pids:
            cpu = sampler.between(got["began"], got["ended"])
            got["cpu"] = cpu / got["seconds"]
            for what, count in (("token", got["tokens"]["count"]),
                                ("request", got["requests"]["ok"])):
                got[f"us_per_{what}"] = cpu * 1e6 / count if count else None
        return got


def seconds(text):
    """Parses "300ms" and "3s"."""
    return float(text[:-2]) / 1000 if text.endswith("ms") else \
        float(text[:-1])


def last_line(proc):
    lines = proc.text().strip().splitlines()
    return lines[-1][-160:] if lines else f"status {proc.popen.returncode}"


def say_errors(got):
    kinds = "; ".join(
        f"{e['count']} {e['class']} {e['code']}"
        + (f" {e['reason']}" if e["reason"] else "") for e in got["errors"])
    return f"{got['requests']['failed']} of" \
           f" {got['requests']['started']} streams failed: {kinds}"
