"""An engine that computes, observed, fitted and simulated.

The first workload gives the latency model.  The simulation of a second one,
which the fit has not seen, has to come near to what was observed of it.  Both
are observed in turns, a part of each at a time, so that what else the machine
does falls on both.  docs/workloads.md shows the commands, and the grades of
LLMGW_CALIBRATE=4.
"""

import csv
import json
import os
import subprocess
import time

import pytest

from llmgw.fleet import words
from llmgw.model import gguf, llama
from llmgw.proc import place
from llmgw.proc.wait import contention, wait_for

pytestmark = [pytest.mark.soak, pytest.mark.timed, pytest.mark.alone,
              pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)]

SIM = place.binary("llmgw-sim")
PARTS = int(os.environ.get("LLMGW_CALIBRATE", 2))       # of a workload

# A step of one stream takes some 6 ms with one thread.  A word of a prompt
# is four of its tokens.
MODEL = {"width": 512, "layers": 16, "context": 512}
ENGINE = {"engine": "llama", "threads": 1, "exact": "off", "max_capacity": 8,
          "token_delay": None}

# An engine that waits for processors is one engine now and another one then.
BUSY = 0.2

# In bursts, so that batches of all sizes form.
SPEC = """\
version: "2"
seed: {seed}
aggregate_rate: 1.5
num_requests: 25
clients:
  - id: c
    rate_fraction: 1
    arrival: {{process: gamma, cv: 2}}
    input_distribution: {{type: gaussian,
                          params: {{mean: 12, std_dev: 8, min: 2, max: 28}}}}
    output_distribution: {{type: gaussian,
                           params: {{mean: 30, std_dev: 15, min: 5, max: 70}}}}
"""

# As the engine: eight streams, and little more than one prompt in a step.
FLEET = ("--max-num-seqs", 8, "--max-num-batched-tokens", 128,
         "--total-kv-blocks", 1000)


def sim(where, *words):
    got = subprocess.run([SIM, *map(str, words)], cwd=where, text=True,
                         capture_output=True)
    assert got.returncode == 0, got.stderr
    return got.stdout


def trace(name):
    return "--trace-header", f"{name}.yaml", "--trace-data", f"{name}.csv"


def itl(name):
    return "--itl-data", f"{name}.csv.itl.csv"


def observe(where, nginx, name, seed):
    (where / "spec.yaml").write_text(SPEC.format(seed=seed))
    sim(where, "observe", "--server-url", f"http://{nginx.api}", "--model",
        "m", *trace(name), "--workload-spec", "spec.yaml", "--record-itl")


def join(where, name, parts):
    """The parts as one trace, a quarter of an hour apart."""
    for kind in ".csv", ".csv.itl.csv":
        rows = []
        for i, part in enumerate(parts):
            with open(where / f"{part}{kind}") as f:
                for row in csv.DictReader(f):
                    row["request_id"] = int(row["request_id"]) + i * 1000
                    for key in row:
                        if key.endswith(("time_us", "timestamp_us")):
                            row[key] = int(row[key]) + i * 900_000_000
                    rows.append(row)
        with open(where / f"{name}{kind}", "w", newline="") as f:
            out = csv.DictWriter(f, rows[0], lineterminator="\n")
            out.writeheader()
            out.writerows(rows)
    (where / f"{name}.yaml").write_text((where / f"{part}.yaml").read_text())


def simulate(where, name, beta, alpha):
    """calibrate's metrics of the trace by that model."""
    sim(where, "replay", *trace(name), *FLEET, "--latency-model", "linear",
        "--beta-coeffs", ",".join(map(str, beta)),
        "--alpha-coeffs", ",".join(map(str, alpha)),
        "--results-path", "sim.json")
    return json.loads(sim(where, "calibrate", *trace(name), *itl(name),
                          "--sim-results", "sim.json"))["metrics"]


def errors(metrics):
    """Of the means: {what: share}."""
    return {what: m["workload_level"]["mean_percent_error"]
            for what, m in metrics.items()}


def test_a_fit_predicts_what_the_engine_does_next(cluster, tmp_path):
    gguf.write(tmp_path / "m.gguf", **MODEL)
    nginx = cluster.fleet(1, nginx={"openai": True}, replica={
        **ENGINE, "model": tmp_path / "m.gguf"})
    wait_for(lambda: words.CONTINUE_HERE in
             cluster.replicas["r1"].proc.text(), "the model", takes=60)
    began, lost = time.monotonic(), contention.lost()
    for i in range(PARTS):
        observe(tmp_path, nginx, f"fitted{i}", 2 * i)
        observe(tmp_path, nginx, f"other{i}", 2 * i + 1)
    lost = (contention.lost() - lost) / (time.monotonic() - began)
    for name in "fitted", "other":
        join(tmp_path, name, [f"{name}{i}" for i in range(PARTS)])

    fit = json.loads(sim(tmp_path, "calibrate", *trace("fitted"),
                         *itl("fitted"), "--fit"))
    beta, alpha = fit["beta_coeffs"], fit.get("alpha_coeffs", (0, 0, 0))
    said = simulate(tmp_path, "other", beta, alpha)
    print(f"\nbeta {beta}, alpha {alpha}, r2 {fit['r2']}, lost {lost}")
    for what, m in said.items():
        print(what, {k: v for part in m.values() if isinstance(part, dict)
                     for k, v in part.items()
                     if k.startswith(("real_mean", "sim_mean", "mean_pe",
                                      "p90_pe", "mape", "pear", "qual"))})

    if lost > BUSY:
        pytest.skip(f"other work took the processors for {lost:.0%} of the"
                    " time")
    # The engine is not linear, so its own model is off by 12 to 33 %; the model
    # of an engine that takes three times as long is by much more.
    slow = simulate(tmp_path, "other", [3 * b for b in beta], alpha)
    for what, error in errors(said).items():
        assert error < 0.5 < errors(slow)[what], (what, said, slow)
    assert said["e2e"]["request_level"]["pearson_r"] > 0.6, said
