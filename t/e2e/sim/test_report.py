"""What a run says: on stdout, in files, and what it refuses to begin."""

import csv
import json
import subprocess

import pytest

from llmgw.sim.blis import SIM, blocks

FAST = ("--total-kv-blocks", "4000", "--num-instances", "3",
        "--routing-policy", "least-loaded")


def replay(blis, *more, trace="w"):
    return subprocess.run(
        [SIM, "replay", "--trace-header", f"{trace}.yaml", "--trace-data",
         f"{trace}.csv", *FAST, *map(str, more)],
        cwd=blis.dir, text=True, capture_output=True)


def test_stdout_is_the_metrics_block_as_json(blis):
    out = blis.replay("b_goodput")
    want = blis.said("b_goodput")["metrics"]
    assert json.loads(out) == want
    assert list(json.loads(out)) == list(want)
    assert blis.replay("b_goodput") == out


@pytest.mark.soak
def test_csv_has_a_line_for_each_instance_and_the_cluster(blis):
    run = replay(blis, "--csv")
    rows = list(csv.DictReader(run.stdout.splitlines()))
    assert [r["instance_id"] for r in rows] == [
        "instance_0", "instance_1", "instance_2", "cluster"]
    completed = [int(r["completed_requests"]) for r in rows]
    assert sum(completed[:3]) == completed[3] == 600
    cluster = json.loads(replay(blis).stdout)
    assert float(rows[3]["ttft_p99_ms"]) == cluster["ttft_p99_ms"]


def test_files_tell_the_same_run(blis, tmp_path):
    full, metrics = tmp_path / "full.json", tmp_path / "metrics.json"
    results, table = tmp_path / "results.json", tmp_path / "table.tsv"
    run = replay(blis, "--report", full, "--metrics-path", metrics,
                 "--results-path", results, "--results-tsv", table)
    said = json.loads(run.stdout)

    with_requests = json.loads(metrics.read_text())
    requests = with_requests.pop("requests")
    assert with_requests == said
    arrived = [r["arrived_at"] for r in requests]
    assert len(arrived) == 600 and arrived == sorted(arrived)

    listed = json.loads(results.read_text())
    assert [r["request_id"] for r in listed] == list(range(600))
    rows = list(csv.DictReader(table.read_text().splitlines(),
                               delimiter="\t"))
    assert [int(r["ttft_us"]) for r in rows] == [
        r["ttft_us"] for r in listed]

    full = json.loads(full.read_text())
    assert full["cluster"] == said
    assert full["requests"] == {"completed": 600}
    assert len(full["instances"]) == 3
    assert full["cache"]["hit_rate_mean"] == said["cache_hit_rate"]
    assert full["classes"]["batch"]["ttft"]["count"] == 111
    assert 0 < full["tenants_jain"] < 1


@pytest.mark.parametrize("words, reasons", [
    (("--admission-policy", "token-bucket"), {"token_bucket"}),
    (("--flow-control", "--saturation-detector", "concurrency",
      "--max-concurrency", 2, "--max-gateway-queue-depth", 9,
      "--queue-shedding", "--request-ttl", 90000),
     {"queue_full", "displaced", "expired"}),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        (("--admission-policy", "reject-all"), {"reject_all"}),
        (("--admission-policy", "tier-shed"), {"tier_shed"}),
        ((), None)))])
def test_refusals_are_counted_by_reason(blis, tmp_path, words, reasons):
    path = tmp_path / "table.tsv"
    said = json.loads(replay(blis, *words, "--results-tsv", path,
                             trace="b").stdout)
    if reasons is None:
        assert "refused" not in said
        return
    assert said["refused"].keys() == reasons
    status = [row["status"] for row in csv.DictReader(
        path.read_text().splitlines(), delimiter="\t")]
    assert sum(said["refused"].values()) == len(status) - sum(
        map(status.count, ("completed", "length_capped", "timed_out")))


def test_a_queue_says_that_it_takes_the_place_of_an_admission_policy(
        blis, tmp_path):
    bundle = tmp_path / "bundle.yaml"
    bundle.write_text("admission: {policy: tier-shed}\n")
    for words in (("--admission-policy", "tier-shed"),
                  ("--policy-config", bundle)):
        run = replay(blis, "--flow-control", *words)
        assert run.returncode == 0 and "refused" not in json.loads(run.stdout)
        assert run.stderr.startswith(
            "llmgw-sim: the admission policy tier-shed has no effect: ")
        assert "has no effect" not in replay(blis, *words).stderr
    assert replay(blis, "--flow-control").stderr.count("llmgw-sim:") == 0


@pytest.mark.soak
def test_both_hit_rates_are_said(blis, tmp_path):
    """BLIS's is the mean of the replicas' rates, whatever they served."""
    path = tmp_path / "full.json"
    replay(blis, "--report", path, "--routing-policy", "always-busiest")
    cache = json.loads(path.read_text())["cache"]
    assert cache["hit_rate_by_block"] == pytest.approx(
        3 * cache["hit_rate_mean"])


@pytest.mark.soak
def test_fitness_is_the_weighted_sum(blis):
    run = replay(blis, "--text", "--fitness-weights",
                 "p99_ttft:2,throughput:1")
    lines = run.stdout.splitlines()
    at = lines.index("=== Fitness Evaluation ===")
    score, ttft, throughput = (float(line.split(": ")[1])
                               for line in lines[at + 1:at + 4])
    assert score == pytest.approx(2 * ttft + throughput, abs=3e-6)
    m = blocks(run.stdout[run.stdout.index("=== Sim"):])[0]["cluster"]
    rps = m["responses_per_sec"]
    assert throughput == pytest.approx(rps / (rps + 100), abs=1e-6)
    assert ttft == pytest.approx(1 / (1 + m["ttft_p99_ms"]), abs=1e-6)


def test_verdicts_of_detectors_end_in_the_label(blis, tmp_path):
    path, conf = tmp_path / "verdicts.json", tmp_path / "conf.yaml"
    conf.write_text("threshold: {threshold_ms: 1}\n")
    run = replay(blis, "--detectors", "threshold,composite",
                 "--saturation-config", conf, "--saturation-report", path)
    report = json.loads(path.read_text())
    assert json.loads(run.stdout)["saturation"] == report["final"]
    assert report["final"]["threshold"] == "OVERLOADED"
    assert len(report["trace"]) == 2 * 2 * 600
    assert [v["detector"] for v in report["trace"][:2]] == [
        "composite", "threshold"]


@pytest.mark.parametrize("words, said", [
    (("--slo-ttft", "critical"), '--slo-ttft: "critical" is not CLASS=TIME'),
    (("--report", "/nowhere/x"), "cannot write /nowhere/x: "),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        (("--slo-e2e", "a=1s,"), '--slo-e2e: "" is empty'),
        (("--detectors", "nix"), '--detectors: "nix" is not composite,'),
        (("--saturation-report", "x"),
         "--saturation-report needs --detectors"),
        (("--fitness-weights", "p99_ttft:-1"), "--fitness-weights: "),
        (("--fitness-weights", "speed:1"),
         '--fitness-weights: "speed" is none'),
        (("--trace-level", "all"), '--trace-level: "all" is neither none'),
        (("--text", "--csv"), "--text and --csv exclude each other"))),
])
def test_what_cannot_be_is_refused_before_the_run(blis, words, said):
    run = replay(blis, *words)
    assert run.returncode == 2 and run.stdout == ""
    assert run.stderr.splitlines()[-1].startswith(f"llmgw-sim: {said}")


@pytest.mark.soak
def test_bad_settings_of_detectors_have_file_and_line(blis, tmp_path):
    conf = tmp_path / "conf.yaml"
    for text, line in (("threshold: {threshold_ms: 0}", 1),
                       ("composite: {}", 1),
                       ("\nbacklog_drift: {window_size_sec: 1}", 2)):
        conf.write_text(text + "\n")
        run = replay(blis, "--detectors", "threshold", "--saturation-config",
                     conf)
        assert run.returncode == 2
        assert run.stderr.splitlines()[-1].startswith(
            f"llmgw-sim: {conf}:{line}: ")
