"""What llmgw-sim refuses: one line that says where and what, and status 2."""

import subprocess

import pytest

from llmgw.proc import place

SIM = place.binary("llmgw-sim")
HEADER = ("trace_version: 3\ntime_unit: microseconds\nmode: generated\n"
          "warm_up_requests: 0\n")
COLUMNS = ("request_id,client_id,tenant_id,slo_class,session_id,round_index,"
           "prefix_group,prefix_length,streaming,input_tokens,output_tokens,"
           "text_tokens,image_tokens,audio_tokens,video_tokens,reason_ratio,"
           "model,deadline_us,server_input_tokens,arrival_time_us,"
           "send_time_us,first_chunk_time_us,last_chunk_time_us,num_chunks,"
           "status,error_message,finish_reason\n")
ROW = "0,a,ta,batch,,0,,0,false,10,5,0,0,0,0,0,,0,0,7,7,0,0,0,ok,,\n"


def refused(*args):
    got = subprocess.run([SIM, *map(str, args)], capture_output=True,
                         text=True)
    lines = got.stderr.splitlines()
    assert (got.returncode, got.stdout, len(lines)) == (2, "", 1), (args, got)
    assert lines[0].startswith("llmgw-sim")
    return lines[0]


@pytest.mark.parametrize("flags,what", [
    (("--num-instances", "0"), "--num-instances"),
    (("--no-such-flag", "1"), "--no-such-flag"),
    (("--alpha-coeffs", "1,nan", "--beta-coeffs", "1"), "--alpha-coeffs"),
    (("--total-kv-blocks", "5000", "--block-size-in-tokens",
      "8999999999999999999"), "block-size"),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        (("--num-instances", "100000"), "--num-instances"),
        (("--rate", "nan"), "--rate"),
        (("--rate", "-1"), "--rate"),
        (("--num-requests", "1000000000"), "--num-requests"),
        (("--model", "no/such-model"), "no/such-model"),
        (("--hardware", "Z80"), "Z80"),
        (("--latency-model", "guess"), "guess"),
        (("--alpha-coeffs", "1,2,3"), "--beta-coeffs"),
        (("--routing-policy", "best"), "best"),
        (("--admission-policy", "maybe"), "maybe"),
        (("--scheduler", "lifo"), "lifo"),
        (("--preemption-policy", "none"), "none"),
        (("--token-bucket-capacity", "0"), "bucket"),
        (("--semantics", "book"), "book"),
        (("--encode-instances", "1"), "--encode-instances"),
        (("--prefill-instances", "1"), "pool"),
        (("--num-instances", "2", "--prefill-instances", "2",
          "--decode-instances", "2"), "pool"),
        (("--flow-control", "--dispatch-order", "lifo"), "lifo"),
        (("--flow-control", "--usage-limit-threshold", "0"), "usage limit"),
        (("--flow-control", "--slo-targets", "critical"), "critical"),
        (("--policy-config", "/nowhere.yaml"), "/nowhere.yaml"),
        (("--gpu-memory-utilization", "2"), "--gpu-memory-utilization"),
        (("--gpu-memory-utilization", "0.1"), "no KV block"),
        (("--num-instances", "2", "--prefill-instances", "1",
          "--decode-instances", "1", "--pd-decider", "always",
          "--decode-hardware", "L40S", "--gpu-memory-utilization", "0.5"),
         "no KV block"),
        (("--flow-control", "--dispatch-tick-interval", "9000000000000000000"),
         "--dispatch-tick-interval"),
        (("--routing-latency", "9000000000000000000"), "--routing-latency"))),
])
def test_bad_flag(flags, what):
    assert what in refused("run", *flags)


QUEUE = {"saturation-detector": "never", "dispatch-order": "fifo",
         "fairness-policy": "round-robin", "slo-targets": "batch=5",
         "max-gateway-queue-depth": 5, "per-band-capacity": 5,
         "queue-depth-threshold": 4, "kv-cache-util-threshold": 0.5,
         "max-concurrency": 5, "usage-limit-threshold": 0.5,
         "request-ttl": 5, "dispatch-tick-interval": 5,
         "dispatch": "completion", "queue-shedding": None,
         "in-flight-eviction": None}


@pytest.mark.parametrize("option", [
    "dispatch-order",
    *(pytest.param(name, marks=pytest.mark.soak) for name in QUEUE
      if name != "dispatch-order")])
def test_an_option_of_the_queue_needs_the_queue(option):
    words = [f"--{option}", *([str(QUEUE[option])] if QUEUE[option] else [])]
    said = refused("run", "--num-requests", "2", *words)
    assert f"--{option} " in said and "add --flow-control" in said
    subprocess.run([SIM, "run", "--num-requests", "2", "--flow-control",
                    *words], check=True, capture_output=True)


@pytest.mark.parametrize("scorers", [
    "queue-depth:nan",
    *(pytest.param(text, marks=pytest.mark.soak) for text in (
        "no-such:1", "queue-depth:1,queue-depth:2", "queue-depth:0",
        "queue-depth:-1", "queue-depth:inf", "queue-depth"))])
def test_bad_scorers(scorers):
    assert "--routing-scorers" in refused(
        "run", "--routing-policy", "weighted", "--routing-scorers", scorers)


@pytest.mark.parametrize("text,line", [
    ("tenant_budgets:\n  ta: 0.5\n  tb: 1.5\n", 3),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        ("admission: {policy: tier-shed}\nno_such_key: 1\n", 2),
        ("admission:\n  tier_shed_threshold: -1\n", 2),
        ("admission:\n  policy: tier-shed\n  gaie_kv_threshold: .nan\n", 3),
        ("admission:\n  slo_priorities: {critical: 101}\n", 2),
        ("admission: [\n", 2))),
])
def test_bad_policy_bundle(tmp_path, text, line):
    bundle = tmp_path / "p.yaml"
    bundle.write_text(text)
    assert f"{bundle}:{line}: " in refused("run", "--policy-config", bundle)


@pytest.mark.parametrize("header,data,where", [
    (HEADER + "colour: red\n", COLUMNS + ROW, "t.yaml:5: "),
    (HEADER, COLUMNS + ROW + ROW.replace(",10,5,", ",-10,5,"), "t.csv:3: "),
    *(pytest.param(HEADER, *case, marks=pytest.mark.soak) for case in (
        (COLUMNS + ROW[:40] + "\n", "t.csv:2: "),
        (COLUMNS + ROW.replace("7,7", "nan,7"), "t.csv:2: "),
        (COLUMNS.replace("model", "colour") + ROW, "t.csv:1: "),
        ("", "t.csv"))),
])
def test_bad_trace(tmp_path, header, data, where):
    (tmp_path / "t.yaml").write_text(header)
    (tmp_path / "t.csv").write_text(data)
    assert f"{tmp_path}/{where}" in refused(
        "replay", "--trace-header", tmp_path / "t.yaml", "--trace-data",
        tmp_path / "t.csv")


@pytest.mark.soak
@pytest.mark.parametrize("text,what", [
    ("[" * 100000 + "\n", ":1: nested deeper"),
    ("capacity: 1\n---\ncapacity: 2\n", ":2: a second document"),
])
def test_odd_yaml(tmp_path, text, what):
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    assert what in refused("run", "--gateway", path)


@pytest.mark.parametrize("args", [
    ("run", "--num-requests", "2"),
    *(pytest.param(case, marks=pytest.mark.soak) for case in (
        ("compare", "--num-requests", "2", "round-robin", "least-loaded"),
        ("search", "--num-requests", "2", "--slo-ttft", "standard=9s",
         "--replicas", "1-2"),
        ("explain", "{log}"),
        ("calibrate", "--trace-header", "{trace}.yaml", "--trace-data",
         "{trace}.csv", "--sim-results", "{results}"),
        ("calibrate", "--trace-header", "{trace}.yaml", "--trace-data",
         "{trace}.csv", "--fit"),
        ("--help",))),
])
def test_full_disk(tmp_path, args):
    files = {name: str(tmp_path / name)
             for name in ("log", "trace", "results")}
    subprocess.run([SIM, "run", "--num-requests", "40", "--rate", "20",
                    "--latency-model", "linear", "--alpha-coeffs", "0,0,0",
                    "--beta-coeffs", "5000,20,50", "--decisions", files["log"],
                    "--trace-output",
                    files["trace"], "--results-path", files["results"]],
                   check=True, capture_output=True)

    with open("/dev/full", "wb") as full:
        got = subprocess.run([SIM, *(arg.format(**files) for arg in args)],
                             stdout=full, stderr=subprocess.PIPE, text=True)

    assert got.returncode == 2
    assert "cannot write standard output" in got.stderr.splitlines()[-1]
