"""What observe records of an engine is enough for calibrate to find the
engine's model: the three coefficients it was started with, within 3 %."""

import json
import subprocess

import pytest

from llmgw.proc import place

SIM = place.binary("llmgw-sim")
BETA = (20000, 60, 1000)      # us: a step, a prompt's token, a decoded token

# Bursts: batches of one size would not tell the coefficients apart.
SPEC = """\
version: "2"
seed: 3
aggregate_rate: 25
num_requests: 110
clients:
  - id: c
    rate_fraction: 1
    arrival: {process: gamma, cv: 2}
    input_distribution: {type: gaussian,
                         params: {mean: 200, std_dev: 120, min: 8, max: 500}}
    output_distribution: {type: gaussian,
                          params: {mean: 14, std_dev: 8, min: 2, max: 30}}
"""


def sim(where, *words):
    got = subprocess.run([SIM, *map(str, words)], cwd=where, text=True,
                         capture_output=True, timeout=60)
    assert got.returncode == 0, got.stderr
    return got.stdout


@pytest.mark.timed
@pytest.mark.alone
@pytest.mark.parametrize("api", ["grpc", "openai"])
def test_an_engine_s_coefficients_are_recovered(cluster, tmp_path, api):
    nginx = cluster.fleet(1, nginx={"openai": True}, replica={
        "engine": "model", "latency_model": "linear", "token_delay": None,
        "alpha_coeffs": "2000,0,0",
        "beta_coeffs": ",".join(map(str, BETA)), "total_kv_blocks": 20000})
    url = (f"grpc://{nginx.target}" if api == "grpc"
           else f"http://{nginx.api}")
    (tmp_path / "s.yaml").write_text(SPEC)
    trace = ["--trace-header", "t.yaml", "--trace-data", "t.csv"]
    sim(tmp_path, "observe", "--server-url", url, *trace, "--workload-spec",
        "s.yaml", "--model", "qwen3-14b", "--record-itl")
    # Without the times of tokens it guesses them: in bursts less well.
    for more, error in (["--itl-data", "t.csv.itl.csv"], 0.03), ([], 0.1):
        fit = json.loads(sim(tmp_path, "calibrate", *trace, "--fit", *more))
        for said, true in zip(fit["beta_coeffs"], BETA):
            assert said == pytest.approx(true, rel=error), (more, fit)
