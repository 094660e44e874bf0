"""search: the least number of replicas, and the best weights."""

import json
import re
import subprocess

import pytest

from llmgw.sim.blis import SIM

FLEET = ("--trace-header", "b.yaml", "--trace-data", "b.csv",
         "--total-kv-blocks", "20000", "--snapshot-refresh-interval", "0",
         "--slo-ttft", "critical=55ms,standard=60ms,batch=100ms")


def sim(blis, command, *words):
    return subprocess.run([SIM, command, *FLEET, *map(str, words)],
                          cwd=blis.dir, text=True, capture_output=True)


def attained(blis, replicas):
    run = sim(blis, "replay", "--routing-policy", "least-loaded",
              "--num-instances", replicas)
    classes = json.loads(run.stdout)["per_class"]
    return {name: c["slo_attainment"] for name, c in classes.items()}


def test_one_replica_fewer_breaks_the_promise(blis):
    run = sim(blis, "search", "--replicas", "2-40", "--goodput", 95,
              "--routing-policy", "least-loaded", "--json")
    assert run.returncode == 0, run.stderr
    best = json.loads(run.stdout)["best"]
    assert best["attained"] == attained(blis, best["replicas"])
    assert min(best["attained"].values()) >= 0.95
    assert min(attained(blis, best["replicas"] - 1).values()) < 0.95


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_two_searches_print_the_same_bytes_by_number_of_replicas(blis, form):
    words = ("--replicas", "2-40", "--goodput", 95, "--routing-policy",
             "least-loaded", *form)
    once, twice = (sim(blis, "search", *words, "--jobs", n) for n in (1, 3))
    assert once.returncode == 0, once.stderr
    assert once.stdout == twice.stdout
    if form:
        tried = [t["replicas"] for t in json.loads(once.stdout)["tried"]]
    else:
        tried = [int(n) for n in re.findall(
            r"^[* ] +(\d+) +[\d.]+ ", once.stdout, re.M)]
        marked = re.findall(r"^\* +(\d+) ", once.stdout, re.M)
        assert f"least number of replicas: {marked[0]}\n" in once.stdout
    assert len(tried) > 4
    assert tried == sorted(tried)


@pytest.mark.soak
def test_a_class_may_be_promised_more_than_another(blis):
    run = sim(blis, "search", "--replicas", "2-40", "--json",
              "--goodput", "batch=50,critical=97",
              "--routing-policy", "least-loaded")
    best = json.loads(run.stdout)["best"]
    assert best["attained"]["critical"] >= 0.97
    assert attained(blis, best["replicas"] - 1)["critical"] < 0.97


def test_what_cannot_be_kept_is_status_1(blis):
    run = sim(blis, "search", "--replicas", "2-3", "--goodput", 95)
    assert run.returncode == 1
    assert "no number of replicas in 2-3 reaches the goodput" in run.stdout


@pytest.mark.soak
def test_best_weights_win_and_do_not_depend_on_cores(blis):
    words = ("--num-instances", 4, "--weights",
             "prefix-affinity,queue-depth,kv-utilization", "--tries", 8,
             "--goodput", 1, "--json", "--seed", 7)
    run = sim(blis, "search", *words, "--jobs", 1)
    assert run.returncode == 0, run.stderr
    assert sim(blis, "search", *words, "--jobs", 5).stdout == run.stdout
    got = json.loads(run.stdout)
    assert got["best"]["goodput"] == max(t["goodput"] for t in got["tried"])
    assert len({t["scorers"] for t in got["tried"]}) == len(got["tried"])
    alone = sim(blis, "replay", "--num-instances", 4, "--seed", 7,
                "--routing-policy", "weighted", "--routing-scorers",
                got["best"]["scorers"])
    assert json.loads(alone.stdout)["slo_attainment"] == got["best"][
        "goodput"]


@pytest.mark.soak
def test_fitness_may_be_what_is_best(blis):
    run = sim(blis, "search", "--num-instances", 4, "--tries", 4, "--json",
              "--weights", "queue-depth,load-balance", "--fitness-weights",
              "mean_e2e:1", "--goodput", 1)
    got = json.loads(run.stdout)
    assert got["best"]["fitness"] == max(t["fitness"] for t in got["tried"])


@pytest.mark.parametrize("words, said", [
    ((), "search takes one of --replicas and --weights"),
    (("--replicas", "5-2"), '--replicas: "5-2" is not MIN-MAX'),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        (("--replicas", "1-2x"), '--replicas: "1-2x" is not MIN-MAX'),
        (("--replicas", "1-2", "--goodput", "101"),
         '--goodput: "101" is not a'),
        (("--replicas", "1-2", "--goodput", "x=5"),
         '--goodput: "x=5" is a class'),
        (("--weights", "nix"), '--weights: there is no scorer "nix"'),
        (("--weights", "queue-depth,queue_depth"),
         '--weights: "queue_depth" is'),
        (("--replicas", "1-2", "--model", "nix"), "--model: "))),
])
def test_bad_questions_are_refused(blis, words, said):
    run = sim(blis, "search", *words)
    assert run.returncode == 2 and run.stdout == ""
    assert run.stderr.splitlines()[-1].startswith(f"llmgw-sim: {said}")
