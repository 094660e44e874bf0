"""Workloads of llmgw-sim: sessions as BLIS has them, traces that are what was
run, and what is refused."""

import csv
import json
import subprocess
import tarfile

import pytest

from llmgw.proc import place

SIM = place.binary("llmgw-sim")
SESSIONS = place.ROOT / "t/data/blis/sessions.tar.xz"
LINEAR = ["--latency-model", "linear", "--alpha-coeffs", "100,1,0",
          "--beta-coeffs", "5000,20,50", "--num-instances", "3",
          "--total-kv-blocks", "4000", "--horizon", "900000000",
          "--routing-policy", "weighted",
          "--routing-scorers", "precise-prefix-cache:2,queue-depth:1"]

SPEC = """\
version: "2"
seed: 7
aggregate_rate: 20
num_requests: 150
clients:
  - id: talk
    rate_fraction: 1
    prefix_group: g
    prefix_length: 100
    arrival: {process: poisson}
    input_distribution: {type: exponential, params: {mean: 120}}
    output_distribution: {type: exponential, params: {mean: 40}}
    reasoning: {multi_turn: {max_rounds: 4, think_time_us: 200000,
                             context_growth: accumulate}}
  - id: bulk
    rate_fraction: 1
    timeout: 900000
    slo_target_us: 300000
    arrival: {process: gamma, cv: 3}
    input_distribution: {type: gaussian,
                         params: {mean: 300, std_dev: 99, min: 2, max: 900}}
    output_distribution: {type: constant, params: {value: 30}}
"""


def sim(where, *words, code=0):
    got = subprocess.run([SIM, *map(str, words)], cwd=where, text=True,
                         capture_output=True, timeout=60)
    assert got.returncode == code, got.stderr
    return got


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    to = tmp_path_factory.mktemp("sessions")
    with tarfile.open(SESSIONS) as archive:
        archive.extractall(to)
    return to


@pytest.mark.parametrize("growth, run", [
    ("accumulate", 1), ("plain", 2),
    *(pytest.param(growth, run, marks=pytest.mark.soak) for growth, run in (
        ("plain", 0), ("plain", 1), ("plain", 3), ("accumulate", 0),
        ("accumulate", 2), ("accumulate", 3)))])
def test_sessions_are_those_of_blis(sessions, growth, run):
    """Fixed, in closed loop, with a time to think, and with a horizon."""
    theirs = json.loads((sessions / f"{growth}.{run}.json").read_text())
    flags = (sessions / "flags.txt").read_text().split()
    sim(sessions, "replay", *flags, "--trace-header", f"{growth}.yaml",
        "--trace-data", "s.csv", *theirs["flags"].split(),
        "--routing-policy", "weighted", "--routing-scorers",
        "precise-prefix-cache:2,queue-depth:1", "--metrics-path", "m.json")
    ours = json.loads((sessions / "m.json").read_text())
    assert ours["cache_hit_rate"] == theirs["hits"]
    assert {r["requestID"]: [r["arrived_at"], r["num_prefill_tokens"],
                             r["ttft_ms"], r["e2e_ms"], r["handled_by"]]
            for r in ours["requests"]} \
        == {r[0]: r[1:] for r in theirs["requests"]}


def rows(path):
    with open(path) as f:
        return list(csv.DictReader(f, delimiter="\t"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    where = tmp_path_factory.mktemp("run")
    (where / "s.yaml").write_text(SPEC)
    sim(where, "run", *LINEAR, "--workload-spec", "s.yaml", "--trace-output",
        "t", "--results-tsv", "run.tsv")
    return where


def test_a_trace_of_a_run_replays_as_the_run(run):
    """Each request gets the same times, at the same replica."""
    sim(run, "replay", *LINEAR, "--trace-header", "t.yaml", "--trace-data",
        "t.csv", "--results-tsv", "replay.tsv")

    def facts(path):
        return sorted([(r["route_us"], r["status"], r["ttft_us"], r["e2e_us"],
                        r["handled_by"]) for r in rows(path)])
    assert len(rows(run / "run.tsv")) > 150     # later rounds are in it
    assert facts(run / "replay.tsv") == facts(run / "run.tsv")


@pytest.mark.soak
def test_a_seed_is_one_workload(run):
    again = ["run", *LINEAR, "--workload-spec", "s.yaml", "--results-tsv"]
    first = sim(run, *again, "a.tsv")
    second = sim(run, *again, "b.tsv")
    other = sim(run, *again, "c.tsv", "--seed", "8")
    assert first.stdout == second.stdout != other.stdout
    assert (run / "a.tsv").read_bytes() == (run / "b.tsv").read_bytes()
    assert (run / "a.tsv").read_bytes() != (run / "c.tsv").read_bytes()


@pytest.mark.parametrize("change,error", [
    (("cv: 3", "cv: -3"), 's.yaml:19: "cv" is -3, not'),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        (("seed: 7", "sede: 7"), 's.yaml:2: unknown key "sede"'),
        (("aggregate_rate: 20", "aggregate_rate: .nan"),
         's.yaml:3: "aggregate_rate" is .nan, which is no finite number'),
        (("aggregate_rate: 20", "aggregate_rate: -1"),
         's.yaml:3: "aggregate_rate" is -1, not 0 to'),
        (("num_requests: 150", "num_requests: 1000000000"),
         's.yaml:4: "num_requests" is 1000000000, not 0 to 10000000'),
        (("clients:", "clients: ["), "s.yaml:6: no YAML: "),
        (("version", "\0version"), "s.yaml:1: no YAML: "))),
])
def test_bad_specifications(tmp_path, change, error):
    (tmp_path / "s.yaml").write_text(SPEC.replace(*change, 1))
    got = sim(tmp_path, "run", *LINEAR, "--workload-spec", "s.yaml", code=2)
    assert got.stderr.startswith("llmgw-sim: " + error), got.stderr
    assert got.stderr.count("\n") == 1 and got.stdout == ""


@pytest.mark.parametrize("change,error", [
    (lambda b: b[:len(b) // 2 - 20], "t.csv:"),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        (lambda b: b.replace(b",talk,", b",talk,,", 1), "t.csv:"),
        (lambda b: b.replace(b"false", b"NaN", 1), "t.csv:2: \"streaming\""),
        (lambda b: b.replace(b"\n0,", b"\n-1,", 1),
         't.csv:2: "request_id" is "-1", which is negative'),
        (lambda b: b[:300] + bytes(range(256)) + b[300:], "t.csv:1: binary"),
        (lambda b: b"", "t.csv:1: empty"))),
])
def test_bad_traces(run, tmp_path, change, error):
    (tmp_path / "t.csv").write_bytes(change((run / "t.csv").read_bytes()))
    got = sim(tmp_path, "replay", *LINEAR, "--trace-header", run / "t.yaml",
              "--trace-data", "t.csv", code=2)
    assert got.stderr.startswith("llmgw-sim: " + error), got.stderr
    assert got.stderr.count("\n") == 1 and got.stdout == ""


@pytest.mark.soak
def test_a_thousand_million_requests_are_refused_at_once(tmp_path):
    sim(tmp_path, "run", *LINEAR, "--num-requests", 10 ** 9, code=2)
    got = sim(tmp_path, "run", *LINEAR, "--num-requests", 0, "--rate", 1e6,
              "--horizon", 10 ** 9, code=2)
    assert "1000000000 requests are more than 10000000" in got.stderr
