"""llmgw-client bench --openai: counts are exact, and what is wrong with an
answer is found."""

import json
import subprocess

import pytest

from llmgw.fleet.certs import Authority
from llmgw.proc import place


def bench(target, *options, code=0):
    out = subprocess.run(
        [place.binary("llmgw-client"), "bench", "--openai", "--json",
         "--gateway", target, "--duration", "20s", "--ramp", "0",
         *map(str, options)], capture_output=True, text=True, timeout=60)
    assert (out.returncode, out.stderr) == (code, ""), out
    return json.loads(out.stdout)


@pytest.mark.parametrize("faults, kind", [
    ({"end_at": 2}, ("tokens", "lost at the end", "")),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        ({"error_at": 1}, ("tokens", "error in the stream", "")),
        ({"status": 429}, ("status", "429", "")),
        ({"close_at": 1}, ("transport", "Transferred a partial file", ""))))])
def test_wrong_answers_are_found(cluster, faults, kind):
    engine = cluster.engine(kind="openai", faults=json.dumps(faults))
    got = bench(engine.target, "--any-text", "--model", "mock-model",
                "--requests", 3, "--max-tokens", 4, code=1)
    assert got["requests"]["failed"] == 3
    assert [(e["class"], e["code"], e["reason"]) for e in got["errors"]] \
        == [kind]


def test_a_key_over_tls(cluster):
    ours = Authority(cluster.dir, "ours")
    engine = cluster.engine(kind="openai", tls=ours.sign(), api_key="secret")
    key = cluster.dir / "key"
    key.write_text("secret\n")
    asks = ["--tls-ca", ours.file, "--any-text", "--model", "mock-model",
            "--requests", 3, "--max-tokens", 1]
    got = bench(engine.target, *asks, "--api-key-file", key)
    assert got["requests"]["ok"] == 3
    got = bench(engine.target, *asks, code=1)
    assert [(e["class"], e["code"]) for e in got["errors"]] \
        == [("status", "401")]


@pytest.mark.soak
def test_counts_are_those_of_the_replicas(cluster):
    nginx = cluster.fleet(2, nginx={"openai": True})
    got = bench(nginx.api, "--connections", 4, "--requests", 60,
                "--max-tokens", 7, "--any-text")
    assert got["requests"]["ok"] == 60 and got["requests"]["failed"] == 0
    stats = [r.stats() for r in cluster.replicas.values()]
    assert sum(s.finished for s in stats) == 60
    assert sum(s.tokens for s in stats) == 420
