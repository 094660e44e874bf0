"""What holds of any run of llmgw-sim: its own invariants, equal bytes for equal
seeds, relations between runs."""

import re
import subprocess

import pytest

from llmgw.proc import place
from llmgw.proc.seed import rng

SIM = place.binary("llmgw-sim")
RUNS = 200
AT_ONCE = 50

SCORERS = ("prefix-affinity", "precise-prefix-cache", "no-hit-lru",
           "queue-depth", "kv-utilization", "load-balance", "active-requests",
           "running-requests", "load-aware", "vllm-dp", "lora-affinity")
CLASSES = ("critical", "standard", "batch", "sheddable", "background")


def sim(*args, code=0, cwd=None):
    got = subprocess.run([SIM, *map(str, args)], capture_output=True,
                         text=True, cwd=cwd, timeout=60)
    assert code in (None, got.returncode), (args, got.stderr)
    return got


# --- any configuration

CLIENT = """  - {{id: {0}, tenant_id: {1}, slo_class: {2},
     rate_fraction: {3}, prefix_group: {4}, prefix_length: 96,
     timeout: {5}, slo_target_us: {6},
     arrival: {{process: gamma, cv: 3.0}},
     input_distribution: {{type: exponential, params: {{mean: {7}}}}},
     output_distribution: {{type: exponential, params: {{mean: {8}}}}}}}
"""


def specification(r, folder):
    """Several classes and tenants at once."""
    spec = folder / "spec.yaml"
    spec.write_text(
        f"version: '2'\nseed: {r.randint(1, 999)}\n"
        f"aggregate_rate: {r.choice((20, 200, 2000))}\n"
        f"num_requests: {r.randint(1, 400)}\nclients:\n" + "".join(
            CLIENT.format(i, r.choice("pqr"), r.choice(CLASSES), r.random(),
                          r.choice("gh"), r.choice((200_000, 5_000_000)),
                          r.choice((0, 30_000)), r.choice((5, 300)),
                          r.choice((3, 60)))
            for i in range(r.randint(2, 4))))
    return "--workload-spec", spec


def workload(r, folder):
    if r.random() < .5:
        return specification(r, folder)
    load = ("--rate", r.choice((5, 20, 100, 1000)))
    if r.random() < .2:
        load = ("--concurrency", r.randint(1, 40), "--think-time-ms",
                r.choice((0, 5)), "--horizon", r.randint(1, 20) * 10**6)
    mean = r.choice((1, 20, 300, 1500))
    answer = r.choice((1, 2, 30, 200))
    return (*load, "--num-requests", r.randint(1, 300),
            "--prompt-tokens", mean, "--prompt-tokens-stdev", mean // 2,
            "--prompt-tokens-min", 1, "--prompt-tokens-max", mean * 3,
            "--output-tokens", answer, "--output-tokens-stdev", answer // 3,
            "--output-tokens-min", 1, "--output-tokens-max", answer * 2,
            "--prefix-tokens", r.choice((0, 0, 16, 700)),
            "--timeout", r.choice((-1, 1, 3, 60)))


def replicas(r):
    return ("--num-instances", r.choice((1, 2, 3, 8, 33)),
            "--total-kv-blocks", r.choice((30, 200, 2000, 20000, 20000)),
            "--block-size-in-tokens", r.choice((1, 8, 16, 64)),
            "--max-num-seqs", r.choice((1, 4, 256)),
            "--max-num-batched-tokens", r.choice((16, 512, 2048)),
            "--long-prefill-token-threshold", r.choice((0, 0, 64)),
            "--max-model-len", r.choice((64, 1000, 40960, 40960)),
            "--scheduler", r.choice(("fcfs", "priority-fcfs", "sjf",
                                     "reverse-priority")),
            "--preemption-policy", r.choice(("fcfs", "priority")),
            "--latency-model", r.choice(("roofline", "trained-physics")))


def gateway(r):
    some = r.sample(SCORERS, r.randint(1, 4))
    return ("--admission-policy", r.choice((
                "always-admit", "always-admit", "token-bucket", "tier-shed",
                "gaie-legacy", "reject-all")),
            "--admission-latency", r.choice((0, 0, 900)),
            "--routing-latency", r.choice((0, 0, 7000)),
            "--routing-policy", r.choice((
                "round-robin", "least-loaded", "always-busiest", "weighted",
                "weighted", "weighted")),
            "--routing-scorers", ",".join(
                f"{s}:{r.choice((.1, 1, 2.5))}" for s in some),
            "--snapshot-refresh-interval", r.choice((0, 1, 50000)),
            "--cache-signal-delay", r.choice((0, 1, 50000)),
            "--semantics", r.choice(("newest", "page")))


def flow(r):
    if r.random() < .5:
        return ()
    return ("--flow-control",
            "--saturation-detector", r.choice(("never", "utilization",
                                               "concurrency")),
            "--max-concurrency", r.choice((1, 2, 4, 100)),
            "--dispatch-order", r.choice(("fifo", "priority",
                                          "slo-deadline")),
            "--fairness-policy", r.choice(("global-strict", "round-robin")),
            "--max-gateway-queue-depth", r.choice((0, 5, 50)),
            "--per-band-capacity", r.choice((0, 3)),
            "--usage-limit-threshold", r.choice((1, .5)),
            "--request-ttl", r.choice((0, 0, 5000, 10**6)),
            "--dispatch-tick-interval", r.choice((1000, 137)),
            *r.sample(("--queue-shedding", "--in-flight-eviction"),
                      r.randint(0, 2)))


def pools(r):
    if r.random() < .8:
        return ()
    prefill, both = r.choice((1, 2)), r.choice((0, 1))
    return ("--num-instances", 5, "--prefill-instances", prefill,
            "--decode-instances", r.choice((1, 2)),
            "--prefill-decode-instances", both,
            "--pd-decider", r.choice(("never", "always", "prefix-threshold")),
            *r.sample(("--pd-transfer-contention",), r.randint(0, 1)))


def configuration(seed, folder):
    r = rng(f"run {seed}")
    return ("--seed", seed, *workload(r, folder), *replicas(r), *gateway(r),
            *flow(r), *pools(r))


STUCK = re.compile(r"llmgw-sim: instance_\d+ is stuck at \d+ us: requests that"
                   r" wait there \(\d+\) are preempted for ever, \d+ of its \d+"
                   r" KV blocks are free; raise --total-kv-blocks, or set a"
                   r" --horizon or timeouts of requests")


@pytest.mark.parametrize("first", [0, *(
    pytest.param(n, marks=pytest.mark.soak)
    for n in range(AT_ONCE, RUNS, AT_ONCE))])
def test_invariants_hold_in_any_configuration(tmp_path, first):
    """A configuration without an end says so, and ends with a horizon."""
    for seed in range(first, first + AT_ONCE):
        words = ("run", "--check", *configuration(seed, tmp_path))
        got = sim(*words, code=None)
        if got.returncode == 2:
            assert STUCK.fullmatch(got.stderr.splitlines()[-1]), got.stderr
            sim(*words, "--horizon", 10**9)
        else:
            assert got.returncode == 0, (words, got.stderr)


def test_a_run_that_would_never_end_says_which_replica_is_stuck():
    """A transferred request waits with its blocks behind one that they lack."""
    words = ("run", "--check", "--num-instances", 2, "--prefill-instances", 1,
             "--decode-instances", 1, "--pd-decider", "always",
             "--max-num-seqs", 1, "--seed", 142, "--num-requests", 5,
             "--rate", 20, "--prompt-tokens", 20, "--prompt-tokens-stdev", 10,
             "--prompt-tokens-min", 1, "--prompt-tokens-max", 60,
             "--output-tokens", 200, "--output-tokens-stdev", 66,
             "--output-tokens-min", 1, "--output-tokens-max", 400,
             "--total-kv-blocks", 30, "--block-size-in-tokens", 8)
    got = sim(*words, "--timeout", -1, code=2)
    assert STUCK.fullmatch(got.stderr.splitlines()[-1])
    assert "instance_1 is stuck" in got.stderr
    assert got.stdout == ""
    for end in (("--timeout", 60), ("--timeout", -1, "--horizon", 10**8),
                ("--timeout", -1, "--total-kv-blocks", 80)):
        sim(*words, *end)


def test_equal_seeds_give_equal_bytes(tmp_path):
    for seed in range(0, RUNS, 20):
        said = set()
        for table in (tmp_path / "a", tmp_path / "b"):
            got = sim("run", *configuration(seed, tmp_path), "--text",
                      "--results-tsv", table)
            said.add((got.stdout, table.read_text()))
        assert len(said) == 1


@pytest.mark.soak
def test_another_seed_gives_another_run():
    plain = ("--num-requests", 50, "--rate", 20)
    assert sim("run", *plain, "--seed", 1).stdout != sim(
        "run", *plain, "--seed", 2).stdout


# --- relations between runs

def table(blis, tmp_path, name, *flags):
    out = tmp_path / "t.tsv"
    blis.replay(name, *flags, "--results-tsv", out)
    return out.read_text()


def test_only_the_ratio_of_weights_counts(blis, tmp_path):
    scorers = "prefix-affinity:{},queue-depth:{},kv-utilization:{}"
    assert table(blis, tmp_path, "b_seed50", "--routing-scorers",
                 scorers.format(3, 2, 2)) == table(
        blis, tmp_path, "b_seed50", "--routing-scorers",
        scorers.format(6, 4, 4))


def test_load_balance_alone_is_least_loaded(blis, tmp_path):
    assert table(blis, tmp_path, "b_ll100", "--routing-policy", "weighted",
                 "--routing-scorers", "load-balance:1") == table(
        blis, tmp_path, "b_ll100")


@pytest.mark.soak
def test_queue_depth_reads_the_whole_load_where_it_is_told_so(blis,
                                                              tmp_path):
    queue_depth = ("--routing-policy", "weighted", "--routing-scorers",
                   "queue-depth:1", "--queue-depth-signal")
    least_loaded = table(blis, tmp_path, "b_ll100")
    assert table(blis, tmp_path, "b_ll100", *queue_depth,
                 "effective") == least_loaded
    assert table(blis, tmp_path, "b_ll100", *queue_depth,
                 "queue") != least_loaded


@pytest.mark.soak
def test_dispatch_on_completion_knows_no_ticks(blis, tmp_path):
    def queued(dispatch, tick):
        return table(blis, tmp_path, "b_fc_c16_priority_global-strict",
                     "--dispatch", dispatch, "--dispatch-tick-interval", tick)

    assert queued("completion", 1000) == queued("completion", 9000)
    assert queued("tick", 1000) != queued("tick", 9000)
    assert queued("tick", 1000) != queued("completion", 1000)


def test_the_pages_queue_goes_by_priority(blis, tmp_path):
    """Without an order that is given."""
    run = "b_fc_c16_priority_global-strict"
    trace, flags = blis.runs[run]
    at = flags.index("--dispatch-order")
    blis.runs["unordered"] = trace, flags[:at] + flags[at + 2:]

    def queued(name, *more):
        return table(blis, tmp_path, name, *more)

    for semantics, order in (("page", "priority"), ("newest", "fifo")):
        asked = "--semantics", semantics
        assert queued("unordered", *asked) == queued(
            run, *asked, "--dispatch-order", order)
    assert queued(run, "--semantics", "page") != queued(
        run, "--semantics", "page", "--dispatch-order", "fifo")


@pytest.mark.soak
def test_a_queue_that_never_holds_changes_nothing(blis, tmp_path):
    assert table(blis, tmp_path, "b_ll100", "--flow-control") == table(
        blis, tmp_path, "b_ll100")


def test_a_later_horizon_changes_nothing_before_it(blis, tmp_path):
    late = table(blis, tmp_path, "b_ll100")
    early = table(blis, tmp_path, "b_ll100", "--horizon", 10**7)
    done = [row for row in early.splitlines() if "\tcompleted\t" in row]
    assert len(done) > 500
    assert set(done) <= set(late.splitlines())


@pytest.mark.parametrize("policy", [
    "weighted", pytest.param("least-loaded", marks=pytest.mark.soak)])
def test_a_run_replayed_from_its_trace_is_the_same(tmp_path, policy):
    fleet = ("--num-instances", 4, "--routing-policy", policy,
             "--total-kv-blocks", 3000, "--max-num-seqs", 32)
    spec = tmp_path / "spec.yaml"
    spec.write_text("""
version: "2"
seed: 7
aggregate_rate: 60
num_requests: 400
clients:
  - {id: a, tenant_id: ta, slo_class: critical, rate_fraction: 0.5,
     prefix_group: g1, prefix_length: 700, timeout: 4000000,
     arrival: {process: gamma, cv: 3.0},
     input_distribution: {type: gaussian,
       params: {mean: 180, std_dev: 80, min: 8, max: 900}},
     output_distribution: {type: exponential, params: {mean: 80}}}
  - {id: b, tenant_id: tb, slo_class: batch, rate_fraction: 0.5,
     arrival: {process: poisson},
     input_distribution: {type: exponential, params: {mean: 600}},
     output_distribution: {type: gaussian,
       params: {mean: 150, std_dev: 60, min: 2, max: 500}}}
""")
    first = sim("run", "--workload-spec", spec, *fleet, "--horizon", 10**8,
                "--results-tsv", tmp_path / "a", "--trace-output",
                tmp_path / "t")
    again = sim("replay", "--trace-header", tmp_path / "t.yaml",
                "--trace-data", tmp_path / "t.csv", *fleet, "--horizon",
                10**8, "--results-tsv", tmp_path / "b")
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    assert first.stdout == again.stdout
    assert len((tmp_path / "a").read_text().splitlines()) == 401
