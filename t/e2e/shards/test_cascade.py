"""Many streams lose the same shard: its replacement computes them all again,
one after the other, and is not taken for dead because of it."""

import json
import re

import pytest

from llmgw.model import llama
from llmgw.proc.wait import wait_for
from llmgw.shards.replica import Shards, until

pytestmark = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)

# A prompt is one chunk, and chunks take turns with decoding: when the last of
# the streams has a token, the first one has about as many as there are streams.
WANT = llama.IDS | llama.TEXT
TEXTS, TOKENS = 8, 120


def body(i):
    return {"prompt": [300 + (i * 7 + k * 13) % 90 for k in range(20 + i)],
            "max_tokens": TOKENS, "temperature": .7, "seed": i,
            "ignore_eos": True}


def ended(orchestrator):
    """What it reports, once no stream is left."""
    out = orchestrator.agent.ctl("--json", "status")
    told = json.loads(out.stdout).get("pipelines")
    return told and told["streams"] == 0 and told["tokens"] and told


@pytest.mark.first
@pytest.mark.parametrize("streams", [
    8, pytest.param(64, marks=pytest.mark.soak)])
def test_the_replacement_of_a_shard_survives_the_streams_of_the_dead(
        cluster, streams):
    s = Shards(cluster, layers=8)
    s.shards("0-3", zone="here")
    s.shard("4-7", id="near", zone="here", slow_ms=20)
    s.shard("4-7", id="far", zone="there")
    s.wait_ready(s["near"], s["far"])
    o = s.orchestrator(zone="here", max_capacity=streams)
    expected = [s.undisturbed(body(i))[1] for i in range(TEXTS)]

    calls = [llama.Call(o, llama.request(body(i % TEXTS), WANT))
             for i in range(streams)]
    for call in calls:
        until(call, 1, takes=10)
    s["near"].kill()
    said = [call.end().whole().ids for call in calls]
    assert said == [expected[i % TEXTS] for i in range(streams)]

    told = wait_for(lambda: ended(o), "a report without streams")
    assert told["history_bytes"] == 0
    assert list(told["failovers"]) == ["failed"]
    assert told["failovers"]["failed"] == told["replays"] > streams / 2
    assert [one["failovers"] for one in told["shards"]
            if one["member"] in ("far", "s0-3")] == [0, 0]
    excluded = re.findall(r'shard "([^"]+)" is excluded', o.proc.text())
    assert excluded == ["near"]
