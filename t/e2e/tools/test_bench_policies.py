"""bench/policies.py: its figures are those of the replicas and of the clients,
and a run that fails says so."""

import json
import subprocess
import sys

import pytest

from llmgw.proc import place

sys.path.insert(0, str(place.ROOT / "bench"))
from measure import policies, policy_page  # noqa: E402
from measure.machine import Fail  # noqa: E402

REQUESTS = 60


def measured(tmp_path, *names, workload="shared"):
    results = tmp_path / "policies.json"
    out = subprocess.run(
        [place.PYTHON, str(place.ROOT / "bench/policies.py"), "--rounds", "1",
         "--requests", str(REQUESTS), "--workload", workload, "--results",
         str(results), *(w for n in names for w in ("--policy", n))],
        capture_output=True, text=True, timeout=60 * place.SLOW)
    return out, json.loads(results.read_text())["rounds"][workload][0]


@pytest.mark.soak
@pytest.mark.first
def test_two_policies_get_the_same_requests(tmp_path):
    """Prompts that share much: some of it is found in caches, and the more
    where a prompt's beginning chooses the replica."""
    out, got = measured(tmp_path, "affinity", "round_robin")
    assert out.returncode == 0, (out.stdout, out.stderr)
    for name in ("affinity", "round_robin"):
        of = got[name]
        assert of["requests"] == REQUESTS
        assert 0 < of["p50"] <= of["p99"]
        assert 1 / policies.REPLICAS <= of["load_jain"] <= 1 <= of["load_max"]
        assert f"| {name} | {of['hits'] * 100:.1f} (" in out.stdout
    assert got["affinity"]["hits"] > got["round_robin"]["hits"]


def stats(**counts):
    return type("Stats", (), {"finished": 2, "prompt_tokens": 30,
                              "cached_tokens": 10, "tokens": 8, **counts})


ROWS = [{"client_id": client, "prefix_length": "5", "input_tokens": "10",
         "output_tokens": "4", "arrival_time_us": "1000",
         "first_chunk_time_us": str(1000 + ms * 1000)}
        for client, ms in (("a", 100), ("b", 300))]


def test_figures_are_sums_over_replicas():
    idle = stats(finished=0, prompt_tokens=0, cached_tokens=0, tokens=0)
    policies.check_counts(ROWS, [stats(), idle])
    got = policies.figures(ROWS, [stats(), idle])
    assert got["hits"] == pytest.approx(1 / 3)
    assert (got["p50"], got["p99"]) == pytest.approx((200, 298))
    assert (got["load_jain"], got["load_max"]) == (0.5, 2)
    assert got["clients_jain"] == pytest.approx(400**2 / (2 * 100_000))


@pytest.mark.parametrize("count", ["finished", "prompt_tokens", "tokens"])
def test_a_request_served_twice_spoils_a_run(count):
    with pytest.raises(Fail):
        policies.check_counts(ROWS, [stats(**{count: 31})])


def rounds_of(p99, hits):
    return {"rounds": {"turns": [
        {"round_robin": {"p99": 100, "hits": 0.25},
         "weighted default": {"p99": p99, "hits": hits}}]}}


@pytest.mark.soak
@pytest.mark.parametrize("p99, hits, verdict", [
    (105, 0.75, "Met"), (106, 0.75, "MISSED"), (105, 0.74, "MISSED")])
def test_the_goal_is_met_at_its_limits(p99, hits, verdict):
    assert policy_page.goal(rounds_of(p99, hits)).endswith(f"{verdict}.")


@pytest.mark.soak
def test_a_run_that_failed_shows_no_figure():
    got = policy_page.row([{"affinity": {"fail": "no such luck"}}],
                          "affinity")
    assert got[:2] == ["affinity", "FAIL: no such luck"] and not any(got[2:])
