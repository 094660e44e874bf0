"""llmgw-client bench: its counts are exact, and it detects what is wrong with a
stream."""

import concurrent.futures
import json
import signal
import statistics
import subprocess
import time

import grpc
import pytest

from llmgw.engine.scripted import scripted
from llmgw.fleet import words
from llmgw.proc import place
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc

CLIENT = place.binary("llmgw-client")
TIMES = {"count", "min", "mean", "p50", "p90", "p99", "p999", "max"}


def start(target, *options):
    return subprocess.Popen(
        [CLIENT, "bench", "--gateway", target, "--json", *map(str, options)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process, code=0):
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, (process.returncode, out, err)
    assert err == ""
    return json.loads(out)


def bench(target, *options, code=0):
    return finish(start(target, *options), code)


def errors(got):
    return {(e["class"], e["code"], e["reason"]): e["count"]
            for e in got["errors"]}


@pytest.fixture
def fleet(cluster):
    """(nginx, replicas): a fleet's."""
    def make(n=2, replica=None, nginx=None):
        gateway = cluster.fleet(n, replica=replica, nginx=nginx)
        return gateway, list(cluster.replicas.values())
    return make


def test_counts_are_those_of_the_replicas(fleet):
    nginx, replicas = fleet()
    got = bench(nginx.target, "--connections", 3, "--streams", 4,
                "--requests", 120, "--max-tokens", 7, "--duration", "30s",
                "--ramp", 0)
    assert got["requests"] == {
        "started": 120, "ok": 120, "failed": 0, "unfinished": 0,
        "never_begun": 0, "per_second": got["requests"]["per_second"]}
    assert got["tokens"]["count"] == 840
    assert got["tokens"]["takeovers"] == 0
    assert got["errors"] == []
    assert sum(r.stats().finished for r in replicas) == 120
    assert sum(r.stats().tokens for r in replicas) == 840
    assert all(r.stats().started for r in replicas), "prompts were spread"
    times = got["ms"]
    assert times["first_token"]["count"] == times["total"]["count"] == 120
    assert times["gap"]["count"] == 720
    assert times["lag"] is times["takeover"] is times["refusal"] is None


def test_openai(fleet):
    nginx, replicas = fleet(nginx={"openai": True})
    got = bench(nginx.api, "--openai", "--connections", 4, "--requests", 40,
                "--max-tokens", 7, "--duration", "30s", "--ramp", 0)
    assert got["method"] == "openai"
    assert got["requests"]["ok"] == 40 and got["errors"] == []
    assert got["tokens"]["count"] == 280
    assert sum(r.stats().tokens for r in replicas) == 280


@pytest.mark.soak
def test_openai_streams_of_a_killed_replica_are_whole(cluster, fleet):
    nginx, (one, two) = fleet(nginx={"openai": True})
    cluster.hold(5)
    process = start(nginx.api, "--openai", "--connections", 20, "--requests",
                    20, "--max-tokens", 20, "--duration", "30s", "--ramp", 0)
    wait_for(lambda: one.stats().tokens + two.stats().tokens == 100, "tokens")
    one.kill()
    cluster.let_go()
    got = finish(process)
    assert got["requests"]["ok"] == 20 and got["errors"] == []


@pytest.mark.soak
def test_openai_refusals_have_their_code(fleet):
    nginx, _ = fleet(nginx={"openai": "llmgw_model other;"})
    got = bench(nginx.api, "--openai", "--model", "nobody's", "--requests", 3,
                code=1)
    assert errors(got) == {("status", "404", words.MODEL_NOT_FOUND): 3}


def sends(command, target, key):
    out = subprocess.run(
        [CLIENT, command, "--gateway", target, "--max-tokens", "1",
         "--api-key-file", key, *{"bench": ["--requests", "1"],
                                  "infer": ["--prompt", "hi"]}[command]],
        capture_output=True, text=True, timeout=60)
    return out.returncode, out.stderr


class Listens(grpc.GenericRpcHandler):
    """Answers UNIMPLEMENTED to whatever is asked."""

    def __init__(self):
        self.fields = []

    def service(self, details):
        self.fields += details.invocation_metadata


@pytest.mark.parametrize("command", ("bench", "infer"))
def test_a_key_is_sent(cluster, command):
    key = cluster.dir / "key"
    key.write_text(" sk-one\n")
    handler, target = Listens(), f"127.0.0.1:{cluster.ports.take()}"
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1), [handler])
    assert server.add_insecure_port(target)
    server.start()
    sends(command, target, key)
    server.stop(None).wait()
    assert ("authorization", "Bearer sk-one") in handler.fields


@pytest.mark.parametrize("content", (
    "", "two keys", "one\n\ntwo", "k\0y", "cl\xe9", "k" * 512))
def test_a_file_that_holds_no_key_is_refused(tmp_path, content):
    key = tmp_path / "key"
    key.write_text(content)
    assert sends("bench", "127.0.0.1:1", key) == (
        2, f"llmgw-client bench: --api-key-file: {key} has to hold one key,"
           " and nothing else\n")


def test_fields_are_those_of_the_manual(fleet):
    nginx, _ = fleet(1)
    got = bench(nginx.target, "--requests", 5, "--max-tokens", 2,
                "--token-delay", "1ms")
    assert set(got) == {
        "gateway", "method", "connections", "streams", "max_tokens", "began",
        "ended", "seconds", "requests", "tokens", "ms", "errors",
        "client_cpu_seconds"}
    assert set(got["ms"]) == {"first_token", "gap", "takeover", "lag",
                              "total", "refusal"}
    for name in ("first_token", "gap", "lag", "total"):
        of = got["ms"][name]
        assert set(of) == TIMES
        assert of["min"] <= of["p50"] <= of["p90"] <= of["p99"] \
            <= of["p999"] <= of["max"]
    assert got["ms"]["lag"]["count"] == 10
    assert got["seconds"] == pytest.approx(got["ended"] - got["began"],
                                           abs=1e-5)
    assert got["client_cpu_seconds"] > 0


@pytest.mark.soak
def test_a_replica_is_measured_without_a_gateway(cluster):
    replica = cluster.replica("r1", token_delay="0ms")
    wait_for(lambda: replica.client.check(), "the replica")
    got = bench(replica.target, "--method", "generate", "--requests", 10,
                "--max-tokens", 1000, "--streams", 2, "--ramp", 0)
    assert got["tokens"]["count"] == 10_000
    assert replica.stats().tokens == 10_000


@pytest.mark.timed
def test_open_loop_keeps_its_schedule(fleet):
    """200 a second for one second: times count from when a start was due."""
    nginx, _ = fleet(1)
    got = bench(nginx.target, "--streams", 50, "--rate", 200, "--requests",
                200, "--max-tokens", 1, "--duration", "30s")
    assert got["requests"]["ok"] == 200
    assert got["seconds"] >= 199 / 200
    # One slot for 20 starts a second that take 0.2 s each: they wait.
    got = bench(nginx.target, "--rate", 20, "--requests", 20, "--max-tokens",
                200, "--duration", "1s")
    assert got["requests"]["never_begun"] > 10
    assert got["requests"]["failed"] == 0
    ms = got["ms"]["first_token"]
    assert ms["max"] - ms["min"] > 100, ms


@pytest.mark.timed
@pytest.mark.parametrize("options, even", [
    (("--rate", 12), True), (("--rate", 12, "--poisson"), False),
    (("--ramp", "3s"), True), (("--ramp", "3s", "--poisson"), False)])
def test_starts_are_even_or_a_poisson_process(ports, expect, options, even):
    """The deviation of the time between starts is its mean, or nothing.  It
    is judged by quartiles, since a busy machine delays some starts: those of
    half a second are a sixth of all."""
    began = []

    def generate(request, context):
        began.append(time.monotonic())
        yield rpc.pb.GenerateResponse(token=expect(request.prompt, 1)[0],
                                      is_final=True)

    port = ports.take()
    with scripted(port, generate):
        got = bench(f"127.0.0.1:{port}", "--method", "generate", "--requests",
                    36, "--streams", 36, "--max-tokens", 1, "--duration",
                    "30s", *options)
    assert got["requests"]["ok"] == 36
    began.sort()
    gaps = [b - a for a, b in zip(began, began[1:])]
    assert 1.5 < sum(gaps) < 5
    first, _, last = statistics.quantiles(gaps, n=4)
    varies = (last - first) / statistics.mean(gaps)
    assert (varies < 0.5) if even else (0.6 < varies < 1.8)


@pytest.mark.soak
def test_hold_runs_until_the_end_and_is_no_failure(fleet):
    nginx, replicas = fleet(1)
    got = bench(nginx.target, "--connections", 2, "--streams", 3, "--hold",
                "--duration", "500ms", "--ramp", 0)
    assert got["requests"]["started"] == got["requests"]["unfinished"] == 6
    assert got["requests"]["ok"] == got["requests"]["failed"] == 0
    assert got["tokens"]["count"] > 6
    wait_for(lambda: not replicas[0].stats().active_requests,
             "the replica to see them go")
    assert replicas[0].stats().cancelled == 6


def test_an_interrupt_lets_streams_end(fleet):
    nginx, replicas = fleet(1)
    process = start(nginx.target, "--streams", 4, "--max-tokens", 300,
                    "--duration", "1h", "--ramp", 0)
    wait_for(lambda: replicas[0].stats().tokens > 100, "tokens")
    process.send_signal(signal.SIGINT)
    got = finish(process)["requests"]
    assert got["unfinished"] == got["failed"] == 0
    assert got["started"] >= 4


def test_an_interrupt_ends_the_window(fleet):
    nginx, _ = fleet(1)
    process = start(nginx.target, "--streams", 4, "--max-tokens", 10**6,
                    "--duration", "1h", "--drain", 0, "--ramp", 0)
    wait_for(lambda: nginx.pool()["totals"]["tokens"] > 100,
             "tokens on their way to it")
    process.send_signal(signal.SIGINT)
    got = finish(process)
    assert got["requests"]["unfinished"] == 4
    assert got["tokens"]["count"] > 0


@pytest.mark.timed
def test_lockstep_starts_all_when_all_have_ended(fleet):
    nginx, replicas = fleet(1)
    got = bench(nginx.target, "--streams", 8, "--lockstep", "--requests", 24,
                "--max-tokens", 20)
    assert got["requests"]["ok"] == 24
    # Three times 20 tokens of a millisecond, one after the other.
    assert got["seconds"] >= 0.060


def test_refusals_are_told_by_status_and_reason(fleet):
    nginx, replicas = fleet(1, replica={"reject_all": True})
    got = bench(nginx.target, "--requests", 4, "--max-tokens", 3, code=1)
    assert sum(errors(got).values()) == got["requests"]["failed"] == 4
    assert {kind[:2] for kind in errors(got)} == {("status", "UNAVAILABLE")}
    assert ("status", "UNAVAILABLE", words.TRIES_EXHAUSTED) in errors(got)
    assert got["ms"]["refusal"]["count"] == 4
    assert got["ms"]["first_token"] is None


@pytest.mark.soak
def test_an_unfinished_stream_is_seen(cluster):
    """The replica itself ends with OK after three of five tokens."""
    replica = cluster.replica("r1", token_delay="1ms")
    wait_for(lambda: replica.client.check(), "the replica")
    replica.faults(die_after_tokens=3)
    got = bench(replica.target, "--method", "generate", "--requests", 6,
                "--max-tokens", 5, code=1)
    assert errors(got) == {("tokens", "final missing", ""): 6}
    assert got["tokens"]["count"] == 18


@pytest.mark.parametrize("fault", ["doubled", "lost", "wrong", *(
    pytest.param(fault, marks=pytest.mark.soak)
    for fault in ("final too early", "final missing"))])
def test_wrong_tokens_are_seen(ports, expect, fault):
    """A replica in Python whose fourth token is wrong."""
    tokens = expect("prompt 000000000", 6)
    tokens = {"doubled": tokens[:3] + tokens[2:5],
              "lost": tokens[:3] + tokens[4:] + [" x"],
              "wrong": tokens[:3] + [" nonsense"] + tokens[4:]}.get(
                  fault, tokens)
    final = {"final too early": 3, "final missing": -1}.get(fault, 5)
    messages = [rpc.pb.GenerateResponse(token=t, is_final=i == final)
                for i, t in enumerate(tokens)]
    port = ports.take()
    with scripted(port, lambda request, context: iter(messages)):
        got = bench(f"127.0.0.1:{port}", "--method", "generate",
                    "--prompts", 1, "--prompt-bytes", 16, "--max-tokens", 6,
                    "--requests", 2, code=1)
    assert errors(got) == {("tokens", fault, ""): 2}
    assert got["requests"]["failed"] == 2


def test_a_lost_replica_is_a_takeover(cluster, fleet):
    nginx, replicas = fleet(2)
    cluster.hold(5)
    process = start(nginx.target, "--connections", 2, "--streams", 10,
                    "--requests", 20, "--max-tokens", 20, "--ramp", 0,
                    "--duration", "30s")
    wait_for(lambda: sum(r.stats().tokens for r in replicas) == 5 * 20
             and nginx.pool()["totals"]["tokens"] == 5 * 20,
             "five tokens of each stream")
    lost = replicas[0].stats().active_requests
    assert 0 < lost < 20
    replicas[0].kill()
    cluster.let_go()
    got = finish(process)
    assert got["requests"]["ok"] == 20
    assert got["tokens"]["count"] == 400
    assert got["tokens"]["takeovers"] == lost
    assert got["ms"]["takeover"]["count"] == lost


@pytest.mark.soak
def test_a_lost_gateway_is_told_and_come_back_to(cluster):
    replica = cluster.replica("r1", token_delay="1ms")
    wait_for(lambda: replica.client.check(), "the replica")
    process = start(replica.target, "--method", "generate", "--streams", 5,
                    "--max-tokens", 10**6, "--duration", "1h", "--drain", 0,
                    "--ramp", 0)
    wait_for(lambda: replica.stats().active_requests == 5, "streams")
    replica.kill()
    replica.start()
    wait_for(lambda: replica.stats().active_requests == 5, "streams again")
    process.send_signal(signal.SIGINT)
    got = finish(process, code=1)
    assert errors(got)[("transport", "connection lost", "")] == 5
    assert got["requests"]["started"] >= 10, "it went on"
    assert got["requests"]["unfinished"] == 5


def test_nobody_listens(ports):
    out = subprocess.run([CLIENT, "bench", "--gateway",
                          f"127.0.0.1:{ports.take()}"], capture_output=True,
                         text=True, timeout=30)
    assert out.returncode == 1
    assert out.stdout == ""
    assert out.stderr.count("\n") == 1
    assert "Connection refused" in out.stderr


@pytest.mark.parametrize("options, says", [
    ([], "--gateway"),
    (["--gateway", "nowhere"], "HOST:PORT"),
    (["--connections", "0"], "from 1 to"),
    (["--max-tokens", "0"], "from 1 to"),
    (["--rate", "-1"], "from 0 to"),
    (["--rate", "nan"], "a number"),
    (["--duration", "0"], "from 1ms"),
    (["--prompt-bytes", "15"], "from 16 to"),
    (["--method", "Infer"], "infer or generate"),
    (["--lockstep", "--rate", "5"], "open one"),
    (["--lockstep", "--poisson"], "all at once"),
    (["--hedge", "--method", "generate"], "--hedge"),
    (["--first-token-delay", "5ms"], "--token-delay"),
    (["--connections", "20000", "--streams", "100"], "1000000"),
    (["more"], "more"),
])
def test_bad_options_are_one_line(options, says):
    if options and options[0] != "--gateway":
        options = ["--gateway", "127.0.0.1:1", *options]
    out = subprocess.run([CLIENT, "bench", *options], capture_output=True,
                         text=True, timeout=10)
    assert out.returncode == 2
    assert out.stdout == ""
    assert out.stderr.count("\n") == 1 and says in out.stderr, out.stderr
