"""The simulator against real processes: one trace through nginx and replicas
with --engine model, and through llmgw-sim with the same gateway.

By itself this is one short round with wide bounds.  With LLMGW_REALITY=10 it is
that many rounds of fifteen seconds, the median of their errors has to be below
5 %, and a table is printed (make test-reality).
"""

import os
import statistics

import pytest

from llmgw.proc import place
from llmgw.proc.wait import wait_for
from llmgw.sim.reality import MODEL, Observation, percentile, simulate

ROUNDS = int(os.environ.get("LLMGW_REALITY", "0"))

RING = {"load_factor": 1, "min_load": 1}    # whatever the keys, equal loads


def replicas(cluster, n, round=1):
    """Fresh ones for each round: their caches are empty, as simulated."""
    made = [cluster.replica(f"r{round}-{i + 1}", engine="model", **{
        k.replace("-", "_"): v for k, v in MODEL.items()}) for i in range(n)]
    ring = " ".join(f"{k}={v}" for k, v in RING.items())
    nginx = cluster.static(made, hash=f"prefix=64 {ring}")
    wait_for(lambda: len(nginx.routable()) == n, "all to be routable")
    return made, nginx


def gateway(more=""):
    """The file of --gateway that says what that nginx does."""
    ring = "".join(f"{k}: {v}\n" for k, v in RING.items())
    return f"{ring}key_tokens: 16\n{more}"


def compare(rows, results):
    """{(metric, p): (real, simulated)}, in ms."""
    real = {"first token": [int(r["first_chunk_time_us"])
                            - int(r["send_time_us"]) for r in rows],
            "end to end": [int(r["last_chunk_time_us"])
                           - int(r["send_time_us"]) for r in rows]}
    sim = {"first token": [r["ttft_us"] for r in results],
           "end to end": [r["e2e_us"] for r in results]}
    return {(m, p): (percentile(real[m], p) / 1000,
                     percentile(sim[m], p) / 1000)
            for m in real for p in (50, 90)}


def one_round(cluster, folder, requests, rate, seed):
    folder.mkdir()
    _, nginx = replicas(cluster, 8, seed)
    rows = Observation(nginx, folder, requests, rate, seed).rows()
    assert [r["status"] for r in rows] == ["ok"] * requests
    results, _ = simulate(folder, 8, gateway())
    assert len(results) == requests
    return compare(rows, results)


@pytest.mark.timed
@pytest.mark.alone
@pytest.mark.skipif(ROUNDS > 0, reason="the long form runs")
def test_real_times_are_those_of_the_simulation(cluster, tmp_path):
    """Real processes are no faster, and not twice as slow."""
    got = one_round(cluster, tmp_path / "1", 120, 40, 1)
    for (metric, p), (real, sim) in got.items():
        assert 0.8 * sim < real, (metric, p, got)
        if p == 50:
            assert real < 2 * place.SLOW * sim, (metric, p, got)


@pytest.mark.timed
@pytest.mark.alone
@pytest.mark.skipif(ROUNDS == 0, reason="make test-reality")
def test_real_times_within_five_percent(cluster, tmp_path):
    rounds = [one_round(cluster, tmp_path / str(i), 600, 40, i)
              for i in range(1, ROUNDS + 1)]
    errors = {}
    for key in rounds[0]:
        off = [real / sim - 1 for real, sim in (r[key] for r in rounds)]
        errors[key] = statistics.median(map(abs, off))
        print("%s p%d:" % key,
              " ".join("%.1f/%.1f" % r[key] for r in rounds),
              "ms real/simulated, median error %.1f %%" % (100 * errors[key]))
    assert max(errors.values()) < 0.05, errors


def in_flight(nginx, replica):
    return sum(r["in_flight"] for r in nginx.replicas().values()
               if r["address"] == replica.target)


@pytest.mark.soak
def test_crash_of_two_of_sixteen_loses_no_stream(cluster, tmp_path):
    """In real processes, and in the simulator with the trace of them."""
    made, nginx = replicas(cluster, 16)
    load = Observation(nginx, tmp_path, 160, 80, 7)
    dying = made[2:4]
    wait_for(lambda: min(in_flight(nginx, r) for r in dying) >= 3,
             "streams at both")
    for replica in dying:
        replica.kill()
    rows = load.rows()
    assert [r["status"] for r in rows] == ["ok"] * 160

    at = statistics.median(int(r["arrival_time_us"]) for r in rows) / 1e6
    results, said = simulate(
        tmp_path, 16, gateway("faults: [{kind: crash, replica: 2, count: 2, "
                              f"at: {at:.3f}}}]\n"))
    assert said["completed_requests"] == len(results) == 160
    assert said["gateway"]["lost"] == 0
    assert said["gateway"]["failovers"] > 0
