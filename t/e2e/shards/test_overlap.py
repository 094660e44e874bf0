"""A prompt's chunks overlap over its shards, and pipelines that share shards
do not wait for each other in a circle.

`slow_ms` is a sleep in each step of a shard, so the times are those
of the sleeps whatever the machine does besides.
"""

import time

import pytest

from llmgw.model import llama
from llmgw.shards.replica import Shards

pytestmark = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)

STEP_S = .05
SHARDS, CHUNKS, ROWS = 4, 8, 32
# One behind the other, and overlapping: 1600 and 550 ms; nothing that does not
# overlap is faster than the former.
IN_TURN_S = SHARDS * CHUNKS * STEP_S
OVERLAPPING_S = (SHARDS + CHUNKS - 1) * STEP_S
MOST_S = (IN_TURN_S + OVERLAPPING_S) / 2
TRIES = 10


def ids(n, seed=1):
    """A prompt of so many tokens; none is a control token."""
    return [300 + (seed * 7 + i * 13) % 90 for i in range(n)]


def completion(prompt, n, **more):
    return {"prompt": prompt, "max_tokens": n, "ignore_eos": True, **more}


@pytest.mark.timed
def test_chunks_of_a_prompt_overlap_over_the_shards(cluster):
    s = Shards(cluster, layers=8)
    s.shards("0-1", "2-3", "4-5", "6-7",
             slow_ms=round(STEP_S * 1000))
    o = s.orchestrator()
    body = completion(ids(CHUNKS * ROWS), 1)
    times = []
    while len(times) < TRIES and min(times, default=9) >= MOST_S:
        began = time.monotonic()
        said = llama.ask(o, llama.request(body)).whole().says()
        times.append(time.monotonic() - began)
        assert said == s.undisturbed(body)
    print(f"{min(times) * 1000:.0f} ms, overlapping"
          f" {OVERLAPPING_S * 1000:.0f}, in turn {IN_TURN_S * 1000:.0f}")
    assert OVERLAPPING_S <= min(times) < MOST_S


def test_two_pipelines_over_three_shards_do_not_lock_each_other(cluster):
    s = Shards(cluster, layers=8)
    s.shards("0-2", "3-5", "6-7", slow_ms=1)
    orchestrators = [s.orchestrator(id) for id in ("o1", "o2")]
    bodies = [completion(ids(40 + 60 * i, i), 12, temperature=.7, seed=i)
              for i in range(3)]
    calls = [llama.Call(o, llama.request(body))
             for body in bodies for o in orchestrators]
    expected = [s.undisturbed(body) for body in bodies for o in orchestrators]
    assert [call.end().whole().says() for call in calls] == expected
