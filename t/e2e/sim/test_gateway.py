"""llmgw-sim --gateway: a trace through our own gateway while replicas fail."""

import collections
import json
import re
import subprocess

import pytest

from llmgw.sim.blis import SIM

MODEL = ["--model", "qwen/qwen3-14b", "--hardware", "H100", "--num-instances",
         "16", "--total-kv-blocks", "20000"]


def replay(blis, file, *more):
    return subprocess.run(
        [SIM, "replay", "--trace-header", blis.dir / "b.yaml",
         "--trace-data", blis.dir / "b.csv", "--gateway", file, *MODEL, *more],
        capture_output=True, text=True, timeout=60)


def counts(blis, tmp_path, text, *more):
    file = tmp_path / "gateway.yaml"
    file.write_text(text)
    got = replay(blis, file, *more)
    assert got.returncode == 0, got.stderr
    said = json.loads(got.stdout)
    return said, said["gateway"]


def all_are_through(said):
    """Some have deadlines that cannot be met, whatever fails."""
    assert said["injected_requests"] == 3000
    assert said["completed_requests"] + said["timed_out_requests"] == 3000
    assert said["timed_out_requests"] < 150


CRASH = """
capacity: 64
faults:
  - {kind: crash, replica: 2, count: 2, at: 20}
"""


def test_crash_of_two_of_sixteen_loses_no_stream(blis, tmp_path):
    said, gateway = counts(blis, tmp_path, CRASH)
    all_are_through(said)
    assert gateway["lost"] == 0
    assert gateway["failovers"] > 10
    assert gateway["failed_reset"] >= gateway["failovers"] - 10
    assert gateway["overtaken"] == gateway["left_in_flight"] == 0


@pytest.mark.parametrize("policy", [
    "weighted", *(pytest.param(policy, marks=pytest.mark.soak) for policy in (
        "round_robin", "least_loaded",
        "weighted no-hit-lru:1,precise-prefix-cache:1,load-balance:1"))])
def test_crash_under_each_policy_loses_no_stream(blis, tmp_path, policy):
    said, gateway = counts(blis, tmp_path, f"policy: '{policy}'\n"
                           "hedge: {delay: 2, budget: 0.05}\ngateways: 3\n"
                           + CRASH)
    all_are_through(said)
    assert gateway["lost"] == 0
    assert gateway["failovers"] > 10
    assert gateway["overtaken"] == gateway["left_in_flight"] == 0


@pytest.mark.soak
def test_round_robin_takes_turns(blis, tmp_path):
    table = tmp_path / "results.tsv"
    counts(blis, tmp_path, "policy: round-robin\n", "--results-tsv", table)
    names, *rows = [line.split("\t") for line in
                    table.read_text().splitlines()]
    at = names.index("handled_by")
    served = collections.Counter(row[at] for row in rows)
    assert len(served) == 16
    assert max(served.values()) - min(served.values()) <= 1


@pytest.mark.soak
def test_same_seed_gives_the_same_bytes(blis, tmp_path):
    file = tmp_path / "gateway.yaml"
    file.write_text("faults: [{kind: crash, every: 10, for: 5}]\n")
    first, second = replay(blis, file), replay(blis, file)
    assert first.stdout == second.stdout
    assert json.loads(first.stdout)["gateway"]["faults"] > 3
    other = replay(blis, file, "--seed", "5")
    assert other.stdout != first.stdout


OUTAGE = """
queue: {{hold: {hold}}}
faults:
  - {{kind: crash, replica: 0, count: 16, at: 20, for: 2}}
"""


def failed(said):
    return 3000 - said["completed_requests"] - said["timed_out_requests"]


def test_hold_of_the_simulated_gateway_is_that_of_nginx(blis, tmp_path):
    """All replicas are down for two seconds.  Without a hold, which is the
    default here, those that come then fail; with one only those that used up
    their tries before the gateway knew.  Equal runs are equal."""
    without, gateway = counts(blis, tmp_path, OUTAGE.format(hold=0))
    assert gateway["lost"] > 10
    kept, gateway = counts(blis, tmp_path, OUTAGE.format(hold=5))
    assert failed(kept) < failed(without) / 5
    assert gateway["lost"] == gateway["left_in_flight"] == 0
    again = replay(blis, tmp_path / "gateway.yaml")
    assert json.loads(again.stdout) == kept


@pytest.mark.soak
def test_hold_changes_nothing_where_a_replica_is_there(blis, tmp_path):
    """Neither without faults, nor where some replicas are lost."""
    for text in "", CRASH:
        file = tmp_path / "gateway.yaml"
        said = []
        for hold in 0, 5:
            file.write_text(f"queue: {{hold: {hold}}}\n{text}")
            said.append(replay(blis, file).stdout)
        assert said[0] == said[1] and said[0]


def test_gateways_hear_by_swim_and_lose_no_stream(blis, tmp_path):
    said, gateway = counts(blis, tmp_path, """
gateways: 3
gossip: {kind: swim, delay: 0.001, jitter: 0.002, loss: 0.02}
faults:
  - {kind: die, replica: 2, count: 2, at: 3}
  - {kind: drain, replica: 15, at: 12, for: 2}
update: {at: 5, drain: 1, restart: 1, parallel: 2}
""")
    all_are_through(said)
    assert gateway["lost"] == 0
    assert gateway["failed_member_dead"] > 0
    assert gateway["updated"] == 14


@pytest.mark.soak
def test_a_run_with_faults_passes_its_checks(blis, tmp_path):
    file = tmp_path / "gateway.yaml"
    file.write_text(CRASH)
    assert replay(blis, file, "--check").returncode == 0


# Options of BLIS's gateway, and of the records of its decisions.
IGNORED = {
    "--semantics": "page", "--admission-policy": "tier-shed",
    "--admission-latency": 5, "--token-bucket-capacity": 7,
    "--token-bucket-refill-rate": 7, "--routing-policy": "round-robin",
    "--routing-scorers": "queue-depth:1", "--routing-latency": 5,
    "--snapshot-refresh-interval": 0, "--cache-signal-delay": 0,
    "--queue-depth-signal": "effective", "--flow-control": None,
    "--saturation-detector": "never", "--dispatch-order": "fifo",
    "--fairness-policy": "round-robin", "--slo-targets": "batch=5",
    "--max-gateway-queue-depth": 5, "--per-band-capacity": 5,
    "--queue-depth-threshold": 4, "--kv-cache-util-threshold": 0.5,
    "--max-concurrency": 5, "--usage-limit-threshold": 0.5,
    "--request-ttl": 5, "--dispatch-tick-interval": 5,
    "--dispatch": "completion", "--queue-shedding": None,
    "--in-flight-eviction": None, "--prefill-instances": 1,
    "--decode-instances": 1, "--prefill-decode-instances": 1,
    "--pd-decider": "never", "--pd-prefix-threshold": 5,
    "--pd-transfer-bandwidth": 5, "--pd-transfer-base-latency": 5,
    "--pd-transfer-contention": None,
    "--prefill-routing-scorers": "queue-depth:1",
    "--decode-routing-scorers": "queue-depth:1", "--prefill-tp": 2,
    "--decode-tp": 2, "--prefill-hardware": "H100",
    "--decode-hardware": "H100", "--prefill-latency-model": "roofline",
    "--decode-latency-model": "roofline", "--prefill-max-model-len": 100,
    "--decode-max-model-len": 100, "--decisions": "d.bin",
    "--decisions-tsv": "d.tsv", "--decisions-top": 3,
    "--decisions-sample": 50, "--summarize-trace": None,
    "--trace-level": "decisions", "--counterfactual-k": 2,
}

HEEDED = """workload-spec workload rate num-requests concurrency think-time-ms
prefix-tokens prompt-tokens prompt-tokens-stdev prompt-tokens-min
prompt-tokens-max output-tokens output-tokens-stdev output-tokens-min
output-tokens-max timeout trace-output text csv report metrics-path results-path
results-tsv slo-ttft slo-itl slo-e2e detectors saturation-config
saturation-report saturation-final-window fitness-weights seed horizon check
model model-config-folder hardware hardware-config tp latency-model alpha-coeffs
beta-coeffs gpu-memory-utilization block-size-in-tokens total-kv-blocks
max-model-len max-num-seqs max-num-batched-tokens long-prefill-token-threshold
scheduler preemption-policy num-instances policy-config gateway help version"""


def test_an_option_without_effect_is_refused_and_there_is_no_third_kind(
        tmp_path):
    (tmp_path / "g.yaml").write_text("capacity: 8\n")
    plain = (SIM, "run", "--gateway", "g.yaml", "--num-requests", "2")

    def run(*words):
        return subprocess.run([*plain, *map(str, words)], cwd=tmp_path,
                              capture_output=True, text=True, timeout=60)

    options = set(re.findall(r"^ +--([a-z0-9-]+)", run("--help").stdout, re.M))
    assert options == set(HEEDED.split()) | {o[2:] for o in IGNORED}
    assert run().returncode == 0
    for option, value in IGNORED.items():
        got = run(option, *(() if value is None else (value,)))
        assert got.returncode == 2 and got.stdout == "", option
        assert got.stderr.startswith(f"llmgw-sim: {option}"), got.stderr
        assert "with --gateway" in got.stderr and got.stderr.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["g.yaml"]


@pytest.mark.parametrize("text, key", [
    ("admission: {policy: token-bucket}\n", "admission"),
    ("routing: {policy: least-loaded}\n", "routing"),
    ("tenant_budgets: {a: 0.5}\n", "tenant_budgets")])
def test_a_bundle_that_a_gateway_would_ignore_is_refused(tmp_path, text, key):
    (tmp_path / "g.yaml").write_text("capacity: 8\n")
    (tmp_path / "bundle.yaml").write_text(text)
    got = subprocess.run([SIM, "run", "--gateway", "g.yaml", "--num-requests",
                          "2", "--policy-config", "bundle.yaml"],
                         cwd=tmp_path, capture_output=True, text=True)
    assert got.returncode == 2
    assert got.stderr.startswith(f"llmgw-sim: bundle.yaml: {key} is of BLIS")


@pytest.mark.parametrize("text, what", [
    ("\nqueue: {size: 10, sise: 3}\n", ":2: "),
    ("faults:\n  - {kind: crash, replica: 15, count: 2}\n",
     ":2: replicas 15 to 16 of 16"),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        ("capacity: -1\n", ":1: "),
        ("faults:\n  - {kind: explode}\n",
         ':2: "kind" is "explode", not crash, die, stall, slow or drain'),
        ("faults:\n  - {kind: slow}\n", ":2: a fault has a factor"),
        ("gossip: {kind: rumour}\n",
         ':1: "kind" is "rumour", not delay or swim'),
        ("faults:\n  - {at: 3}\n", ":2: a fault has a kind"),
        ("queue: {timeout: 0}\n", ':1: "timeout" is 0, not 0.001 to '),
        ("hedge: {delay: .nan}\n", ":1: "),
        ("facts: -1\n", ":1: "),
        ("policy: fastest\n", ':1: unknown policy "fastest"'),
        ("policy: least_loaded 1\n", ':1: only the policy "weighted" has'),
        ("policy: weighted queue-depth:0\n",
         "is not a finite number above 0"))),
])
def test_bad_files_are_refused_with_their_line(blis, tmp_path, text, what):
    file = tmp_path / "gateway.yaml"
    file.write_text(text)
    got = replay(blis, file)
    assert got.returncode == 2 and got.stdout == ""
    lines = got.stderr.splitlines()
    assert lines[-1].startswith(f"llmgw-sim: {file}") and what in lines[-1]
