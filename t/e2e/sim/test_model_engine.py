"""llmgw-replica --engine model: the simulator's replica in real time."""

import signal
import subprocess
import time

import grpc
import pytest

from llmgw.proc import place
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc, sse

# A step takes 20 ms, 1 ms more for a token of a prompt.
LINEAR = {"engine": "model", "latency_model": "linear", "token_delay": None,
          "alpha_coeffs": "0,0,0", "beta_coeffs": "20000,1000,0"}


def model(cluster, **options):
    return cluster.replica("m1", **{**LINEAR, **options})


def engine_of(cluster, id="r1"):
    """running, waiting, kv_permille, as the gateway's agent knows them."""
    row = cluster.gateway.table().get(id, {})
    return tuple(row.get(k) for k in ("running", "waiting", "kv_permille"))


def test_says_what_the_simulation_says(cluster, client, expect):
    c = client(model(cluster, beta_coeffs="100,0,0"))
    c.generate("hello", 40).check(expect("hello", 40))
    c.generate("hello", 40, already=25).check(expect("hello", 40)[25:])
    c.generate("", 3).check(expect("", 3))


@pytest.mark.timed
def test_takes_the_time_that_the_model_says(cluster, client):
    """200 tokens of a prompt take 220 ms; cached, but for the last, 24."""
    c = client(model(cluster, block_size_in_tokens=4))
    first = c.generate("a prompt" * 100, 5)
    assert first.times[0] >= 0.22
    assert first.times[4] >= 0.22 + 4 * 0.02
    again = min((c.generate("a prompt" * 100 + "more", 2).times[0]
                 for _ in range(5)))
    assert 0.02 <= again < 0.2      # of five, one that nothing held up


def test_counts_what_its_cache_held(cluster, client):
    """Blocks of four tokens, of four bytes each."""
    replica = model(cluster, beta_coeffs="100,0,0", block_size_in_tokens=4)
    c = client(replica)
    c.generate("x" * 160, 3)
    got = replica.stats()
    assert (got.started, got.finished, got.tokens) == (1, 1, 3)
    assert (got.prompt_tokens, got.cached_tokens) == (40, 0)
    c.generate("x" * 160 + "y" * 8, 3)
    got = replica.stats()
    assert (got.prompt_tokens, got.cached_tokens) == (82, 40)
    c.generate("y" * 160, 3)
    got = replica.stats()
    assert (got.prompt_tokens, got.cached_tokens) == (122, 40)


@pytest.mark.timed
def test_batches_share_steps(cluster, load):
    """Thirty streams of ten tokens, at 20 ms a step, not one by one."""
    job = load(model(cluster, beta_coeffs="20000,0,0"),
               [[f"prompt {i}", 10] for i in range(30)], method="generate")
    results = job.results()
    assert all(len(r.tokens) == 10 for r in results)
    took = max(r.times[-1] for r in results)
    assert 10 * 0.02 <= took < 30 * 10 * 0.02 * place.SLOW


def test_reports_queue_batch_and_cache(cluster, client):
    """One place in the batch: the second waits; cancelled, both are gone."""
    nginx = cluster.fleet(1, replica={
        **LINEAR, "max_num_seqs": 1, "max_capacity": 8,
        "total_kv_blocks": 100, "block_size_in_tokens": 16})
    c = client(nginx)
    calls = [c.start("x" * 160, 500)]
    next(calls[0])
    calls.append(c.start("x" * 160, 500))
    wait_for(lambda: engine_of(cluster)[:2] == (1, 1), "one to wait")
    wait_for(lambda: engine_of(cluster)[2] >= 30, "blocks in use")
    calls[0].cancel()
    next(calls[1])
    wait_for(lambda: engine_of(cluster)[:2] == (1, 0), "none to wait")
    calls[1].cancel()
    wait_for(lambda: engine_of(cluster) == (0, 0, 0), "all to be free")

    # The second one's two blocks were the first one's.
    row = cluster.gateway.table
    wait_for(lambda: row()["r1"].get("kv_free_blocks") == 100, "blocks")
    wait_for(lambda: row()["r1"].get("hit_permille") == 500, "hits")


def test_capacity_is_the_batch(cluster, client):
    replica = model(cluster, max_num_seqs=2)
    c = client(replica)
    calls = [c.start("x", 500, method=rpc.GENERATE) for _ in range(2)]
    for call in calls:
        next(call)
    got = c.generate("x", 5)
    assert (got.code, got.details) == ("RESOURCE_EXHAUSTED",
                                       "replica is full")
    for call in calls:
        call.cancel()


def test_both_fronts_continue_byte_by_byte(cluster, client, expect):
    """r1 is so slow that it is killed in the middle of both streams; r2, to
    which they go, is not."""
    nginx = cluster.fleet(1, nginx={"openai": True}, replica={
        **LINEAR, "beta_coeffs": "150000,0,0"})
    c = client(nginx)
    start, result = time.monotonic(), rpc.Result()
    call = c.start("Once", 60)
    with sse.Connection(nginx.api) as chat:
        answer = chat.request(sse.CHAT, sse.chat("Once", stream=True,
                                                 max_tokens=60))
        for _ in range(3):
            result.add(next(call), start)
        answer.wait_events(3)
        cluster.pair("r2", **{**LINEAR, "beta_coeffs": "1000,0,0"})
        wait_for(lambda: nginx.routable() == ["r1", "r2"], "r2")
        cluster.replicas["r1"].kill()
        rpc.drain(call, into=result)
        result.check(expect("Once", 60))
        assert len(result.replicas) == 2
        events = answer.wait_events(None)
        text = "".join(c["delta"].get("content", "") for e in events
                       if e.data != "[DONE]" for c in e.json["choices"])
    assert text == "".join(expect("user: Once\nassistant:", 60))


def test_drains(cluster, client, expect):
    """SIGTERM: what runs ends, nothing new begins."""
    replica = model(cluster, beta_coeffs="20000,0,0")
    c = client(replica)
    call = c.start("bye", 15, method=rpc.GENERATE)
    start, result = time.monotonic(), rpc.Result()
    result.add(next(call), start)
    replica.proc.popen.send_signal(signal.SIGTERM)
    rpc.drain(call, into=result)
    result.check(expect("bye", 15))
    replica.proc.told_to_end = True
    assert replica.proc.popen.wait(10) == 0


@pytest.mark.soak
def test_a_client_that_does_not_read_holds_up_nobody(cluster, client,
                                                     expect):
    """The machine goes on; what the client has not taken is only counted."""
    replica = model(cluster, beta_coeffs="100,0,0", max_model_len=200000)
    slow, other = client(replica), client(replica)
    call = slow.start("slow", 8000, method=rpc.GENERATE)
    next(call)
    assert len(other.generate("other", 50).tokens) == 50
    rest = rpc.drain(call)
    assert (rest.code, rest.tokens) == ("OK", expect("slow", 8000)[1:])


@pytest.mark.parametrize("options, says", [
    (["--latency-model", "linear"], "--alpha-coeffs and --beta-coeffs"),
    (["--token-delay", "5ms"], "--token-delay: not with --engine model"),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        (["--latency-model", "crystal-ball"], "--latency-model"),
        (["--alpha-coeffs", "1,2", "--beta-coeffs", "1,2,3"], "3 numbers"),
        (["--alpha-coeffs", "1,2,nan", "--beta-coeffs", "1,2,3"],
         "3 numbers"),
        (["--model", "gpt-2"], "--model-config-folder"),
        (["--hardware", "H9000"], "--hardware-config"),
        (["--scheduler", "lottery"], "--scheduler"),
        (["--tp", "3"], "divisible by tp"),
        (["--total-kv-blocks", "0"], "--total-kv-blocks"),
        (["--engine", "sim", "--max-num-seqs", "4"],
         "--max-num-seqs: not with --engine sim"))),
])
def test_refuses_what_is_no_model(options, says):
    got = subprocess.run(
        [place.binary("llmgw-replica"), "--id", "r", "--listen",
         "127.0.0.1:1", "--engine", "model", *options],
        capture_output=True, text=True, timeout=10)
    assert got.returncode == 2
    assert says in got.stderr
    assert got.stderr.count("\n") == 1


def test_refuses_what_does_not_fit(cluster, client):
    c = client(model(cluster, beta_coeffs="100,0,0", max_model_len=100))
    got = c.generate("x" * 200, 51)
    assert got.code == grpc.StatusCode.INVALID_ARGUMENT.name
    assert got.details == ("prompt and answer are 101 tokens, the model takes"
                           " 100")
    assert len(c.generate("x" * 200, 50).tokens) == 50
