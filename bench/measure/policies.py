"""One run of bench/policies.py: a workload through nginx and a fleet of
llmgw-replica --engine model, each with its agent, all of them fresh.

Times are the client's, from when a request was due.  What was found in caches
is counted by the replicas themselves (GetStats), not by the gateway's index.
"""

import csv
import os
import pathlib
import statistics
import subprocess

from . import machine
from .machine import Fail

from llmgw.fleet.cluster import Cluster  # noqa: E402
from llmgw.proc import place  # noqa: E402
from llmgw.proc.process import pids_of_group  # noqa: E402

SIM = place.binary("llmgw-sim")
SPECS = machine.ROOT / "bench" / "workloads"
LIMIT_S = 180

REPLICAS = 8
BLOCK_TOKENS, TOKEN_BYTES = 16, 4
BLOCKS = 4000           # of a replica's cache: 64,000 tokens
STEP_US, PROMPT_US, STREAM_US = 25000, 80, 300      # a step; more, for each

MODEL = {"engine": "model", "latency-model": "linear",
         "alpha-coeffs": "0,0,0",
         "beta-coeffs": f"{STEP_US},{PROMPT_US},{STREAM_US}",
         "block-size-in-tokens": BLOCK_TOKENS, "total-kv-blocks": BLOCKS,
         "max-model-len": 40960}

# The index knows as much of a replica as its cache holds.
INDEX = f"llmgw_prefix_index block={BLOCK_TOKENS * TOKEN_BYTES}" \
        f" blocks={BLOCKS} match=512;"

# name -> value of llmgw_policy, None: the default; "again" shows the noise
POLICIES = {
    "affinity": None,
    "round_robin": "round_robin",
    "least_loaded": "least_loaded",
    "weighted default": "weighted",
    "weighted by all load": "weighted prefix-affinity:1,effective-load:1",
    "weighted blis": "weighted blis",
    "weighted llm-d": "weighted llm-d",
    "round_robin again": "round_robin",
}
BASE, AGAIN = "round_robin", "round_robin again"

WORKLOADS = {
    "turns": "conversations of six rounds, whose prompts grow",
    "shared": "32 system prompts of 2,048 tokens, each with many users",
    "unrelated": "prompts that have nothing in common",
    "bursts": "short questions in bursts, long documents among them",
    "skewed": "a system prompt with 60 % of the requests, 30 with the rest",
}


class Fleet:
    """A context manager: replicas with agents, a gateway, nginx."""

    def __init__(self, ports, policy):
        self.cluster = Cluster(ports, "bench-policies", policy=policy)
        self.pool = INDEX if policy and "weighted" in policy else ""

    def __enter__(self):
        options = {k.replace("-", "_"): v for k, v in MODEL.items()}
        try:
            self.nginx = self.cluster.fleet(
                REPLICAS, nginx={"pool": self.pool},
                replica={**options, "token_delay": None})
        except BaseException:
            self.__exit__(Fail)
            raise
        return self

    def __exit__(self, failed, *_):
        wrong = self.cluster.close()
        self.cluster.remove()
        if wrong and not failed:
            raise Fail("; ".join(wrong)[:300])

    def stats(self):
        return [r.stats() for r in self.cluster.replicas.values()]

    def cpu_seconds(self):
        return machine.cpu_seconds(
            pid for proc in self.cluster.procs
            for pid in pids_of_group(proc.pid))


def idle_jiffies():
    """(idle, all) of all processors."""
    line = pathlib.Path("/proc/stat").read_text().splitlines()[0]
    numbers = list(map(int, line.split()[1:9]))
    return numbers[3] + numbers[4], sum(numbers)


class Load:
    """Sends a workload, and knows what that cost."""

    def __init__(self, fleet, workload, requests, seed):
        self.fleet, self.dir = fleet, fleet.cluster.dir
        self.argv = [
            SIM, "observe", "--server-url", f"grpc://{fleet.nginx.target}",
            "--workload-spec", SPECS / f"{workload}.yaml", "--seed", seed,
            "--trace-header", self.dir / "t.yaml", "--trace-data",
            self.dir / "t.csv", "--max-concurrency", 4000]
        if requests:
            self.argv += ["--num-requests", requests]

    def run(self):
        """The rows of its trace, one for each request."""
        idle, cpu = idle_jiffies(), self.fleet.cpu_seconds()
        with subprocess.Popen(list(map(str, self.argv)), text=True,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as process:
            try:
                said = process.communicate(timeout=LIMIT_S)[1]
            except subprocess.TimeoutExpired as e:
                process.kill()
                raise Fail(f"no end in {LIMIT_S} s") from e
        now = idle_jiffies()
        self.idle = (now[0] - idle[0]) / (now[1] - idle[1])
        self.cpu = self.fleet.cpu_seconds() - cpu
        if process.returncode:
            raise Fail(f"observe: {said.strip()[-200:]}")
        with open(self.dir / "t.csv") as f:
            return list(csv.DictReader(f))


def jain(values):
    """1: all are equal; 1/n: one has all (Jain, Chiu, Hawe, 1984)."""
    squares = len(values) * sum(v * v for v in values)
    return sum(values) ** 2 / squares if squares else 1.0


def percentile(values, p):
    return statistics.quantiles(values, n=100, method="inclusive")[p - 1]


def check_counts(rows, stats):
    """What the client has is what the replicas did: no request twice."""
    for what, asked, did in (
            ("requests", len(rows), sum(s.finished for s in stats)),
            ("tokens of prompts", sum(int(r["prefix_length"])
                                      + int(r["input_tokens"]) for r in rows),
             sum(s.prompt_tokens for s in stats)),
            ("tokens", sum(int(r["output_tokens"]) for r in rows),
             sum(s.tokens for s in stats))):
        if asked != did:
            raise Fail(f"{asked} {what}, but the replicas had {did}")


def first_tokens(rows):
    """{client: [ms]}"""
    got = {}
    for r in rows:
        ms = (int(r["first_chunk_time_us"]) - int(r["arrival_time_us"])) / 1e3
        got.setdefault(r["client_id"], []).append(ms)
    return got


def figures(rows, stats):
    by_client = first_tokens(rows)
    times = [ms for of in by_client.values() for ms in of]
    work = [PROMPT_US * (s.prompt_tokens - s.cached_tokens)
            + STREAM_US * s.tokens for s in stats]
    return {
        "requests": len(rows),
        "hits": sum(s.cached_tokens for s in stats)
        / sum(s.prompt_tokens for s in stats),
        "p50": percentile(times, 50), "p99": percentile(times, 99),
        "load_jain": jain(work),
        "load_max": max(work) / statistics.mean(work),
        "clients": len(by_client),
        "clients_jain": jain([statistics.mean(of)
                              for of in by_client.values()]),
    }


def run(ports, policy, workload, requests, seed):
    """The figures of one run.  requests: None, as the workload says."""
    with Fleet(ports, POLICIES[policy]) as fleet:
        load = Load(fleet, workload, requests, seed)
        rows = load.run()
        stats = fleet.stats()
        check_counts(rows, stats)
        seconds = max(int(r["last_chunk_time_us"]) for r in rows) / 1e6
    return {**figures(rows, stats), "seconds": seconds, "idle": load.idle,
            "cpu": load.cpu / seconds / os.cpu_count()}
