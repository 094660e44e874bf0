"""llmgw-sim calibrate: BLIS's reports from their inputs, byte for byte, and the
linear model that an engine had."""

import csv
import json
import random
import shutil
import subprocess

import pytest

from llmgw.proc import place

SIM = place.binary("llmgw-sim")
COLUMNS = (
    "request_id,client_id,tenant_id,slo_class,session_id,round_index,"
    "prefix_group,prefix_length,streaming,input_tokens,output_tokens,"
    "text_tokens,image_tokens,audio_tokens,video_tokens,reason_ratio,model,"
    "deadline_us,server_input_tokens,arrival_time_us,send_time_us,"
    "first_chunk_time_us,last_chunk_time_us,num_chunks,status,error_message,"
    "finish_reason").split(",")

FULL = ["--itl-data", "good_itl.csv", "--network-rtt-us", "2500",
        "--network-bandwidth-mbps", "1", "--warmup-requests", "10",
        "--slo-ttft", "critical=30ms,standard=33ms",
        "--slo-e2e", "critical=1s,standard=1500ms,batch=3s"]


@pytest.fixture(scope="module")
def data(blis, tmp_path_factory):
    to = tmp_path_factory.mktemp("calibrate") / "calibrate"
    shutil.copytree(blis.dir / "calibrate", to)
    blis.replay("Hrr", "--results-path", to / "h_sim.json")
    for name in ("h.yaml", "h.csv"):
        (to / name).write_bytes((blis.dir / name).read_bytes())
    return to


def calibrate(where, *options, code=0):
    got = subprocess.run([SIM, "calibrate", *options], cwd=where,
                         capture_output=True, text=True, timeout=60)
    assert got.returncode == code, got.stderr
    return got


@pytest.mark.parametrize("name,trace,sim,more", [
    ("good_full", "good", "sim", FULL),
    ("h_vs_Hrr", "h", "h_sim", []),
    *(pytest.param(name, name, "sim", [], marks=pytest.mark.soak)
      for name in ("excellent", "good", "fair", "poor")),
])
def test_reports_are_blis_reports(data, name, trace, sim, more):
    calibrate(data, "--trace-header", f"{trace}.yaml", "--trace-data",
              f"{trace}.csv", "--sim-results", f"{sim}.json", "--report",
              "got.json", *more)
    assert ((data / "got.json").read_bytes()
            == (data / f"{name}.report.json").read_bytes())


@pytest.mark.soak
def test_another_round_trip_is_another_report(data):
    calibrate(data, "--trace-header", "good.yaml", "--trace-data", "good.csv",
              "--sim-results", "sim.json", "--report", "got.json",
              "--network-rtt-us", "1501")
    assert ((data / "got.json").read_bytes()
            != (data / "good.report.json").read_bytes())


@pytest.mark.parametrize("options,error", [
    (["--sim-results", "good.csv"], "good.csv:1: no JSON: "),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        (["--trace-header", "none.yaml"],
         "none.yaml: No such file or directory"),
        (["--itl-data", "good.csv"], "good.csv:1: the columns are not"
         " request_id,chunk_index,timestamp_us"),
        (["--slo-ttft", "critical=-1s"], "--slo-ttft: "))),
])
def test_bad_input_is_one_line_and_status_2(data, options, error):
    got = calibrate(data, "--trace-header", "good.yaml", "--trace-data",
                    "good.csv", "--sim-results", "sim.json", *options, code=2)
    assert got.stderr.startswith("llmgw-sim: " + error), got.stderr
    assert got.stderr.count("\n") == 1
    assert got.stdout == ""


class Engine:
    """An engine with the linear model's steps, and a clock that jitters."""

    def __init__(self, beta, alpha_us, jitter_us, seed):
        self.beta, self.alpha_us = beta, alpha_us
        self.jitter_us, self.random = jitter_us, random.Random(seed)

    def serve(self, requests):
        """requests: (arrival, input, output).  The times of their tokens."""
        times = [[] for _ in requests]
        waiting = [(r[0] + self.alpha_us, i) for i, r in enumerate(requests)]
        running, now = [], 0.0
        while waiting or running:
            if not running:
                now = max(now, waiting[0][0])
            new = [i for at, i in waiting if at <= now]
            waiting = [w for w in waiting if w[0] > now]
            now += (self.beta[0] + self.beta[2] * len(running)
                    + self.beta[1] * sum(requests[i][1] for i in new))
            for i in running + new:
                late = self.random.expovariate(1 / self.jitter_us)
                times[i].append(int(now + late))
            running = [i for i in running + new
                       if len(times[i]) < requests[i][2]]
        return times


def write_trace(where, requests, times):
    with open(where / "f.csv", "w", newline="") as f:
        rows = csv.DictWriter(f, COLUMNS, lineterminator="\n")
        rows.writeheader()
        for i, (r, t) in enumerate(zip(requests, times)):
            row = dict.fromkeys(COLUMNS, 0)
            row.update(request_id=i, client_id="c", tenant_id="", slo_class="",
                       session_id="", prefix_group="", streaming="true",
                       input_tokens=r[1], output_tokens=r[2], model="m",
                       arrival_time_us=r[0], send_time_us=r[0],
                       first_chunk_time_us=t[0], last_chunk_time_us=t[-1],
                       num_chunks=len(t), status="ok", error_message="",
                       finish_reason="length")
            rows.writerow(row)
    (where / "f.yaml").write_text("trace_version: 3\nmode: real\n")
    with open(where / "f.itl.csv", "w") as f:
        f.write("request_id,chunk_index,timestamp_us\n")
        for i, t in enumerate(times):
            f.writelines(f"{i},{k},{at}\n" for k, at in enumerate(t))


@pytest.mark.parametrize("beta,more", [
    pytest.param((5752.7, 17.25, 5.999), [], marks=pytest.mark.soak),
    ((20000, 40, 700), ["--itl-data", "f.itl.csv"]),    # at its limit
])
def test_a_fit_recovers_what_the_engine_had(tmp_path, beta, more):
    # The bound of 3 % is that of these requests.
    rng, at, requests = random.Random(5), 1.0, []
    for i in range(600):
        at += rng.expovariate((0.2 if i < 40 else 2 + i // 60) / 1e6)
        requests.append((int(at), rng.randint(20, 900), rng.randint(20, 200)))
    times = Engine(beta, 3000, 300, 7).serve(requests)
    write_trace(tmp_path, requests, times)
    got = calibrate(tmp_path, "--trace-header", "f.yaml", "--trace-data",
                    "f.csv", "--fit", *more)
    fit = json.loads(got.stdout)
    for said, true in zip(fit["beta_coeffs"], beta):
        assert said == pytest.approx(true, rel=0.03)
    assert fit["alpha_coeffs"][0] == pytest.approx(3300, rel=0.1)
    assert "--latency-model linear --beta-coeffs" in got.stderr


def fit_of_200(tmp_path, beta, jitter_us, seed, code):
    rng, at, requests = random.Random(5), 1.0, []
    for i in range(200):
        at += rng.expovariate((2 + i // 60) / 1e6)
        requests.append((int(at), rng.randint(20, 900), rng.randint(20, 90)))
    times = Engine(beta, 0, jitter_us, seed).serve(requests)
    write_trace(tmp_path, requests, times)
    return calibrate(tmp_path, "--trace-header", "f.yaml", "--trace-data",
                     "f.csv", "--itl-data", "f.itl.csv", "--fit", code=code)


def test_a_coefficient_below_0_within_its_error_is_0(tmp_path):
    """Of an engine whose prompts cost nothing that the jitter does not hide."""
    got = fit_of_200(tmp_path, (20000, 0, 700), 3000, 1, 0)
    fit = json.loads(got.stdout)
    assert fit["beta_coeffs"][1] == 0 < fit["beta_errors"][1] < 5
    assert fit["beta_coeffs"][0] == pytest.approx(20000, rel=0.03)
    assert fit["beta_coeffs"][2] == pytest.approx(700, rel=0.03)
    assert "b1 is uncertain: 0 +- " in got.stderr


def test_a_coefficient_below_0_is_no_fit(tmp_path):
    """Of an engine with a cache: the longer a prompt, the less it costs."""
    got = fit_of_200(tmp_path, (150000, -40, 700), 300, 7, 2)
    assert got.stdout == "" and got.stderr.count("\n") == 1
    assert "f.csv: the fit is of no use: a prompt's token would take -" \
        in got.stderr and "longer than 5 ms" in got.stderr


@pytest.mark.soak
def test_even_batches_do_not_make_a_fit(tmp_path):
    requests = [(1 + 500_000 * i, 100, 20) for i in range(40)]
    times = Engine((20000, 40, 700), 0, 100, 7).serve(requests)
    write_trace(tmp_path, requests, times)
    got = calibrate(tmp_path, "--trace-header", "f.yaml", "--trace-data",
                    "f.csv", "--fit", code=2)
    assert "too even" in got.stderr
