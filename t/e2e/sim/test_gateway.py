"""llmgw-sim --gateway: a trace through our own gateway while replicas fail."""

import collections
import json
import subprocess

import pytest

from llmgw.blis import SIM

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
def test_blis_queue_and_checks(blis, tmp_path):
    file = tmp_path / "gateway.yaml"
    file.write_text(CRASH)
    got = replay(blis, file, "--flow-control")
    assert got.returncode == 2 and "nor its flow control" in got.stderr
    assert replay(blis, file, "--check").returncode == 0


@pytest.mark.parametrize("text, what", [
    ("\nqueue: {size: 10, sise: 3}\n", ":2: "),
    ("faults:\n  - {kind: crash, replica: 15, count: 2}\n",
     ":2: replicas 15 to 16 of 16"),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        ("capacity: -1\n", ":1: "),
        ("faults:\n  - {kind: explode}\n",
         ":2: a fault is crash, die, stall"),
        ("faults:\n  - {kind: slow}\n", ":2: a fault has a factor"),
        ("gossip: {kind: rumour}\n",
         ":1: gossip is \"delay\" or \"swim\""),
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
