"""A workload through real processes, and its trace through the simulator."""

import csv
import json
import statistics
import subprocess

from ..proc import place

SIM = place.binary("llmgw-sim")

# 15 ms until a request is queued; a step takes 40 ms, 0.05 more for each token
# of a prompt, 0.3 for each stream.
MODEL = {"latency-model": "linear", "alpha-coeffs": "15000,0,0",
         "beta-coeffs": "40000,50,300", "total-kv-blocks": 20000,
         "max-num-seqs": 256, "max-model-len": 40960}
WORKLOAD = {"prompt-tokens": 300, "prompt-tokens-stdev": 150,
            "prompt-tokens-min": 20, "prompt-tokens-max": 700,
            "output-tokens": 30, "output-tokens-stdev": 10,
            "output-tokens-min": 5, "output-tokens-max": 60}


def flags(options):
    return [word for k, v in options.items() for word in (f"--{k}", str(v))]


class Observation:
    """A workload on its way through nginx."""

    def __init__(self, nginx, folder, requests, rate, seed):
        self.folder = folder
        self.process = subprocess.Popen(
            [SIM, "observe", "--server-url", f"grpc://{nginx.target}",
             "--trace-header", "t.yaml", "--trace-data", "t.csv", "--rate",
             str(rate), "--num-requests", str(requests), "--seed", str(seed),
             *flags(WORKLOAD)], cwd=folder, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)

    def rows(self):
        said = self.process.communicate(timeout=120)[1]
        assert self.process.returncode in (0, 1), said
        with open(self.folder / "t.csv") as f:
            return list(csv.DictReader(f))


def simulate(folder, n, gateway, seed=42):
    """The observed trace in the simulator: results by request, and what was
    counted.  gateway: the text of its --gateway."""
    (folder / "gateway.yaml").write_text(gateway)
    got = subprocess.run(
        [SIM, "replay", "--trace-header", "t.yaml", "--trace-data", "t.csv",
         "--gateway", "gateway.yaml", "--num-instances", str(n), "--seed",
         str(seed), "--horizon", "600000000", "--results-path", "sim.json",
         *flags(MODEL)],
        cwd=folder, capture_output=True, text=True, timeout=60)
    assert got.returncode == 0, got.stderr
    return (json.loads((folder / "sim.json").read_text()),
            json.loads(got.stdout))


def percentile(values, p):
    return statistics.quantiles(values, n=100, method="inclusive")[p - 1]
