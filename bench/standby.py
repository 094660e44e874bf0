#!/usr/bin/env python3
"""`make bench-standby`: what it takes until a model whose engine was killed
goes on, with an engine that stands by and without one.

    bench/standby.py [--kills N] [--megabytes N] [--vocabulary N] [--write]

The engine is `llama`, with a random model that was filled up to its size.  In
each round streams run through nginx, the engine that serves them gets SIGKILL,
and the clock runs until the slowest of the streams has its next token.  Without
a standby the engine is started again at once, and the streams wait in the
gateway until it serves.  The file is in the page cache all the time, which is
the best case for the two rows without a standby.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import statistics
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "t")]
import grpc  # noqa: E402
from llmgw.fleet.cluster import Cluster  # noqa: E402
from llmgw.model import gguf, llama  # noqa: E402
from llmgw.model.weights import WeightsService  # noqa: E402
from llmgw.proc.ports import Ports  # noqa: E402
from llmgw.proc.wait import wait_for  # noqa: E402
from llmgw.speak.rpc import Client  # noqa: E402
from llmgw.standby.group import Group  # noqa: E402
from llmgw.standby.lock import LockService  # noqa: E402
from llmgw.standby.takeover import phases  # noqa: E402
from measure import machine, page  # noqa: E402

RESULTS = ROOT / "build/bench/standby.json"
MB = 1 << 20
BLOCK_MB = 64
STREAMS = 4
TOKENS = 1500
LIMIT_S = 120
IN_FLIGHT_S = 0.2       # so long tokens of a dead engine may still arrive

ARMS = {"standby": "an engine stands by",
        "warm": "restart, weights in a service",
        "cold": "cold restart"}
PHASES = {"gone": "gone", "granted": "granted", "active": "serves",
          "token": "next token"}
GOAL_P50_MS, GOAL_P99_MS, GOAL_RATIO = 300, 1000, 10


def write_model(path, megabytes, vocabulary):
    """A small model; what it lacks in size is random bytes behind it."""
    gguf.write(path, more=vocabulary - len(gguf.vocabulary()))
    block = os.urandom(BLOCK_MB * MB)
    left = megabytes * MB - path.stat().st_size
    with open(path, "ab") as file:
        while left > 0:
            left -= file.write(block[:left])
    os.sync()       # a grant waits for the disk, which would still be writing


class Streams:
    """Requests that run, and when each of their tokens came from where."""

    def __init__(self, nginx):
        self.client = Client(nginx.target)
        self.seen = [[] for _ in range(STREAMS)]
        self.calls = [self.client.start(f"stream {i}", TOKENS)
                      for i in range(STREAMS)]
        self.threads = [threading.Thread(target=self._read, args=pair)
                        for pair in zip(self.calls, self.seen)]
        for thread in self.threads:
            thread.start()
        wait_for(lambda: all(len(s) > 3 for s in self.seen),
                 "the streams' first tokens", takes=LIMIT_S)

    def _read(self, call, seen):
        with contextlib.suppress(grpc.RpcError):
            for message in call:
                seen.append((time.monotonic(), message.replica_id))

    @staticmethod
    def _is_whole(call):
        return call.done() and call.code() is grpc.StatusCode.OK

    def next_token(self, is_next):
        """When the last of them had the first token for which is_next(time,
        engine) is true; a stream that had all before does not count."""
        def first(seen):
            return next((at for at, by in list(seen) if is_next(at, by)), None)

        def went_on():
            firsts = []
            for call, seen in zip(self.calls, self.seen):
                if first(seen) is None and call.done():
                    if not self._is_whole(call):
                        raise AssertionError(f"a stream ended: {call.code()}")
                else:
                    firsts.append(first(seen))
            return firsts and None not in firsts and max(firsts)
        return wait_for(went_on, "the streams to go on", takes=LIMIT_S)

    def end(self):
        for call in self.calls:
            call.cancel()
        for thread in self.threads:
            thread.join()
        self.client.close()


class Arm:
    """A gateway before engines of the model."""

    def __init__(self, cluster, model):
        self.cluster = cluster
        self.options = {"engine": "llama", "model": model, "threads": 1,
                        "context_tokens": 2048, "max_capacity": STREAMS}
        cluster.agent("gw", "gateway")
        self.prepare()
        self.nginx = cluster.nginx(
            pool=f"llmgw_queue 100 timeout={LIMIT_S}s hold={LIMIT_S}s;")

    def kill(self, engine):
        killed = time.monotonic()
        engine.kill()
        return killed


class Standby(Arm):
    def prepare(self):
        lock = LockService(self.cluster, hang_timeout="10s")
        self.weights = WeightsService(self.cluster)
        self.group = Group(self.cluster, lock=lock, token_delay=None,
                           weights=self.weights.path, **self.options)
        self.group.start(LIMIT_S)

    def settled(self):
        row = {id: (r["group"] or {}).get("state")
               for id, r in self.nginx.replicas().items()}
        return sorted(map(str, row.values())) == ["active", "standby"] and \
            self.nginx.routable() == [self.group.wait_active().id]

    def round(self):
        wait_for(self.settled, "an active engine and a standby", takes=LIMIT_S)
        streams = Streams(self.nginx)
        engine = self.group.wait_active()
        killed = self.kill(engine)
        try:
            token = streams.next_token(lambda at, by: by != engine.id)
        finally:
            streams.end()
        took = phases(self.group, killed)
        engine.start()
        return {**took, "token": (token - killed) * 1000}


class Cold(Arm):
    """One engine, started again in the moment of its death."""

    more = {}

    def prepare(self):
        self.engine = self.cluster.pair("c", **self.options, **self.more)

    def round(self):
        wait_for(lambda: self.nginx.routable() == ["c"], "it", takes=LIMIT_S)
        streams = Streams(self.nginx)
        killed = self.kill(self.engine)
        self.engine.start()
        try:
            token = streams.next_token(
                lambda at, by: at > killed + IN_FLIGHT_S)
        finally:
            streams.end()
        return {"token": (token - killed) * 1000}


class Warm(Cold):
    """The same, with the weights in memory already."""

    def prepare(self):
        self.weights = WeightsService(self.cluster)
        self.more = {"weights": self.weights.path}
        super().prepare()


KINDS = {"standby": Standby, "warm": Warm, "cold": Cold}


def measure(name, model, kills):
    """[{phase: ms}], or why not."""
    cluster = Cluster(Ports(), f"bench-{name}")
    rounds, wrong = [], None
    try:
        arm = KINDS[name](cluster, model)
        for i in range(kills):
            rounds.append(arm.round())
            print(f"{name} {i + 1}/{kills}: " + ", ".join(
                f"{what} {ms:.0f} ms" for what, ms in rounds[-1].items()),
                file=sys.stderr, flush=True)
    except (AssertionError, OSError) as e:
        wrong = str(e).splitlines()[0]
        print(cluster.tails(), file=sys.stderr)
    wrong = wrong or "; ".join(cluster.close()) or None
    cluster.remove()
    return {"fail": wrong} if wrong else {"rounds": rounds}


def percentile(values, p):
    """By nearest rank: of 30, the p99 is the greatest."""
    return sorted(values)[math.ceil(p / 100 * len(values)) - 1]


def cells(rounds, what):
    values = [r[what] for r in rounds if what in r]
    return "-" if not values else (f"{percentile(values, 50):.0f} / "
                                   f"{percentile(values, 99):.0f}")


def judge(arms):
    """(what was measured, "met", "MISSED" or "FAIL: why")"""
    for name in "standby", "cold":
        if "fail" in arms[name]:
            return "-", f"FAIL: {arms[name]['fail']}"
    ours, cold = ([r["token"] for r in arms[name]["rounds"]]
                  for name in ("standby", "cold"))
    p50, p99 = percentile(ours, 50), percentile(ours, 99)
    ratio = statistics.median(cold) / statistics.median(ours)
    is_met = p50 < GOAL_P50_MS and p99 < GOAL_P99_MS and ratio >= GOAL_RATIO
    return (f"p50 {p50:.0f} ms, p99 {p99:.0f} ms; {ratio:.1f} x faster than a "
            "cold restart in the median"), "met" if is_met else "MISSED"


def about(results):
    m = results["machine"]
    return (f"{m['date']}, {m['cpu']}, {m['processors']} processors, Linux "
            f"{m['kernel']}, load\naverage {m['load']:.1f} at the start; "
            f"commit {m['commit']}.")


def table(results):
    got, verdict = judge(results["arms"])
    o = results["options"]
    lines = [
        about(results), "",
        f"{o['kills']} kills a row; a model of {o['megabytes']} MB with "
        f"{o['vocabulary']:,} tokens of vocabulary, {STREAMS} streams.", "",
        "| # | what | goal | measured | |", "|---|---|---|---|---|",
        f"| 24 | kill -9 to the next token | p50 < {GOAL_P50_MS} ms, p99 < "
        f"{GOAL_P99_MS} ms, {GOAL_RATIO} x faster than a cold restart | {got} "
        f"| {verdict} |", "",
        "| ms after kill -9, p50 / p99 | " + " | ".join(PHASES.values()) + " |",
        "|---|" + "---|" * len(PHASES)]
    for name, title in ARMS.items():
        arm = results["arms"][name]
        lines.append(f"| {title} | " + (
            f"FAIL: {arm['fail']}" + " |" * len(PHASES) if "fail" in arm else
            " | ".join(cells(arm["rounds"], what) for what in PHASES) + " |"))
    return "\n".join(lines), verdict


def run(options):
    if not llama.is_built():
        return {name: {"fail": llama.MISSING} for name in ARMS}
    cluster = Cluster(Ports(), "bench-model")
    model = cluster.dir / "model.gguf"
    try:
        write_model(model, options.megabytes, options.vocabulary)
        return {name: measure(name, model, options.kills) for name in ARMS}
    finally:
        cluster.remove()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--kills", type=int, default=30)
    p.add_argument("--megabytes", type=int, default=2048)
    p.add_argument("--vocabulary", type=int, default=128000)
    p.add_argument("--results", type=pathlib.Path, default=RESULTS)
    p.add_argument("--write", action="store_true",
                   help="put the tables into docs/benchmarks.md")
    options = p.parse_args()
    results = {"machine": machine.describe(), "arms": run(options), "options": {
        k: getattr(options, k) for k in ("kills", "megabytes", "vocabulary")}}
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(results, indent=1) + "\n")
    text, verdict = table(results)
    print(text)
    if options.write:
        page.write("standby", text)
    return 0 if verdict == "met" else 1


if __name__ == "__main__":
    sys.exit(main())
