"""The simulator against real processes while something happens to a replica.

Real agents, replicas with --engine model and nginx serve a load; at the same
request of each round a replica of eight crashes, its machine dies, it hangs, is
drained, or all are updated.  Then llmgw-sim gets the trace, with the same fault
at the same time and its own agents.  Compared are the streams lost, the time
from the fault to the last request that was still sent there, and times to the
first token.  Choices are round robin: then the replica's load does not keep
requests away from it, only what its gateway knows.

By itself each is one short round, in which nothing may be lost.  With
LLMGW_REALITY=10 it is ten long ones, whose medians are held to bounds, and a
table is printed (make test-reality).
"""

import contextlib
import json
import os
import statistics
import subprocess
import time

import pytest

from llmgw.fleet.cluster import Cluster
from llmgw.fleet.updates import Fleet
from llmgw.proc import place
from llmgw.proc.machine import Machine, unavailable
from llmgw.proc.wait import wait_for
from llmgw.sim.reality import MODEL, Observation, percentile, simulate

ROUNDS = int(os.environ.get("LLMGW_REALITY", "0"))
REPLICAS, VICTIM, RATE = 8, 2, 40
IDS = [f"r{i + 1}" for i in range(REPLICAS)]
PROBE_S = 0.5                       # agents ping one member in this time
DRAIN_S = 1                         # of the update; streams take longer
OPTIONS = {k.replace("-", "_"): v for k, v in MODEL.items()}
GATEWAY = """\
policy: round-robin
token_timeout: 5
gossip: {kind: swim, delay: 0.0001}
"""


def nginx_options(cluster):
    return {"http": "llmgw_token_timeout 5s;", "pool":
            "llmgw_policy round_robin;\n        llmgw_trace_decisions "
            f"{cluster.dir}/decisions.jsonl sample=100% top=1;"}


def pairs(cluster, machine=None):
    """Agents and replicas, the victim on that machine, and nginx."""
    plain = {"insecure": True} if machine else {}   # its cable is ours alone
    if machine:
        cluster.host = machine.near
    cluster.agent("gw", "gateway", **plain)
    for i, id in enumerate(IDS):
        cluster.pair(id, engine="model", **OPTIONS, **plain,
                     agent_options=plain,
                     machine=machine if i == VICTIM else None)
    cluster.wait_ready([cluster.gateway], IDS)
    nginx = cluster.nginx(**nginx_options(cluster))
    wait_for(lambda: nginx.routable() == IDS, "all to be routable")
    return nginx


# what happens, in reality and in the simulator

class Fault:
    """.strikes: from whom requests should stay away, and when: [(replica,
    since, until)], in seconds since 1970.  yaml(): the same at a time of the
    trace.  stack: what ends after the cluster."""

    def __init__(self, cluster, stack, machine=None):
        self.cluster = cluster
        self.nginx = pairs(cluster, machine)
        self.victim = cluster.replicas[IDS[VICTIM]]

    def now(self):
        self.strikes = [(IDS[VICTIM], time.time(), float("inf"))]

    def yaml(self, at):
        return (f"faults: [{{kind: {type(self).__name__.lower()}, "
                f"replica: {VICTIM}, at: {at:.6f}}}]\n")

    def end(self):
        """After the load."""


class Crash(Fault):
    def strike(self):
        self.now()
        self.victim.kill()


class Die(Fault):
    def __init__(self, cluster, stack):
        self.machine = stack.enter_context(contextlib.closing(Machine()))
        super().__init__(cluster, stack, self.machine)

    def strike(self):
        self.machine.cut()
        self.now()
        self.victim.kill()
        self.victim.agent.kill()


class Stall(Fault):
    def strike(self):
        self.now()
        self.victim.proc.freeze()

    def end(self):
        self.victim.kill()


class Drain(Fault):
    def strike(self):
        self.now()
        self.command = subprocess.Popen(
            [place.binary("llmgwctl"), "-s", self.cluster.gateway.control,
             "drain", IDS[VICTIM]], stdout=subprocess.DEVNULL)

    def end(self):
        assert self.command.wait(20) == 0


class Update(Fault):
    def __init__(self, cluster, stack):
        self.fleet = Fleet(cluster, REPLICAS, nginx=nginx_options(cluster),
                           engine="model", token_delay=None, **OPTIONS)
        self.nginx = self.fleet.nginx

    def strike(self):
        self.update = self.fleet.update("--drain-timeout", f"{DRAIN_S}s")

    def end(self):
        self.update.done(takes=60)
        steps = {(e["id"], e["step"]): e["time"] / 1000
                 for e in self.update.lines() if e.get("event") == "step"}
        self.strikes = [(id, steps[id, "drain"], steps[id, "release"])
                        for id in IDS]
        self.restart_s = statistics.median(
            steps[id, "done"] - steps[id, "restart"] for id in IDS)
        self.fleet.close()

    def yaml(self, at):
        """How long a restart takes is for the operator to say."""
        return (f"update: {{at: {at:.6f}, drain: {DRAIN_S}, "
                f"restart: {self.restart_s:.3f}}}\n")


KINDS = [Crash, Die, Stall, Drain, Update]


# a round

@contextlib.contextmanager
def a_cluster(ports):
    """One for this round."""
    made = Cluster(ports)
    wrong = ["the round failed"]
    try:
        yield made
        wrong = []
    finally:
        wrong += made.close()
        if wrong:
            print(f"\nkept: {made.dir}\n{made.tails()}")
        else:
            made.remove()
    assert not wrong, "\n".join(wrong)


def decisions(cluster):
    """What nginx chose: (when in seconds, request, replica)."""
    rows = [json.loads(x) for x in
            (cluster.dir / "decisions.jsonl").read_text().splitlines()]
    return [(r["t_us"] / 1e6, r["request"], r["candidates"][0]["id"])
            for r in rows if r["kind"] == "route" and "chosen" in r]


def late(chosen, strikes):
    """The longest time from a strike to a request that was sent there."""
    return max([at - since for at, _, replica in chosen
                for id, since, until in strikes
                if replica == id and since <= at < until], default=0)


def began(rows, chosen):
    """When the trace's time began."""
    sent = {r["x_request_id"]: int(r["send_time_us"]) / 1e6 for r in rows}
    return min(at - sent[request] for at, request, _ in chosen)


def figures(lost, late_s, first_token_ms):
    return {"lost": lost, "late": late_s * 1000,
            "p50": percentile(first_token_ms, 50),
            "p99": percentile(first_token_ms, 99),
            "over 1 s": sum(ms > 1000 for ms in first_token_ms),
            "slowest": max(first_token_ms)}


def a_round(ports, kind, folder, requests, struck, seed):
    """The figures of reality and of the simulator."""
    folder.mkdir()
    with contextlib.ExitStack() as stack, a_cluster(ports) as cluster:
        fault = kind(cluster, stack)
        load = Observation(fault.nginx, folder, requests, RATE, seed)
        log = cluster.dir / "decisions.jsonl"
        wait_for(lambda: log.read_bytes().count(b"\n") > struck,
                 "the request to strike at", takes=2 * struck / RATE)
        fault.strike()
        rows = load.rows()
        fault.end()
        chosen = decisions(cluster)
    at = min(since for _, since, _ in fault.strikes) - began(rows, chosen)
    real = figures(sum(r["status"] != "ok" for r in rows),
                   late(chosen, fault.strikes),
                   [(int(r["first_chunk_time_us"]) - int(r["send_time_us"]))
                    / 1000 for r in rows if r["status"] == "ok"])
    results, said = simulate(folder, REPLICAS, GATEWAY + fault.yaml(at), seed)
    sim = figures(requests - said["completed_requests"],
                  said["gateway"]["misrouted_max_us"] / 1e6,
                  [r["ttft_us"] / 1000 for r in results])
    return real, sim


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__.lower())
def kind(request):
    why = unavailable() if request.param is Die else None
    if why:
        pytest.skip(why)
    return request.param


@pytest.mark.soak
@pytest.mark.skipif(ROUNDS > 0, reason="the long form runs")
def test_nothing_is_lost_as_in_the_simulation(kind, ports, tmp_path):
    real, sim = a_round(ports, kind, tmp_path / "1", 240, 80, 1)
    assert real["lost"] == sim["lost"] == 0, (real, sim)


@pytest.mark.timed
@pytest.mark.alone
@pytest.mark.skipif(ROUNDS == 0, reason="make test-reality")
def test_faults_are_those_of_the_simulation(kind, ports, tmp_path):
    rounds = []
    for i in range(1, ROUNDS + 1):
        rounds.append(a_round(ports, kind, tmp_path / str(i), 600, 200, i))
        print(f"\n{kind.__name__.lower()} {i},"
              f" load {os.getloadavg()[0]:.1f}, real/simulated:",
              *(f"{k} {v:.0f}/{rounds[-1][1][k]:.0f}"
                for k, v in rounds[-1][0].items()), end="")
    real, sim = ({k: statistics.median(r[side][k] for r in rounds)
                  for k in rounds[0][side]} for side in (0, 1))
    print(f"\n{kind.__name__.lower()}, medians:",
          *(f"{k} {real[k]:.0f}/{sim[k]:.0f}" for k in real))
    for r, s in rounds:
        assert r["lost"] == s["lost"] == 0, rounds
    assert abs(real["late"] - sim["late"]) <= PROBE_S * 1000
    assert abs(real["p50"] / sim["p50"] - 1) <= 0.10
    assert sim["slowest"] >= real["slowest"] - PROBE_S * 1000
