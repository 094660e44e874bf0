"""A shard is lost in the middle of a stream, and the stream goes on: the same
text, and the same bits in each layer and each logit."""

import os
import random

import pytest

from llmgw import llama
from llmgw.llama import Call, chat, request
from llmgw.shards.replica import Shards, hashes, until
from llmgw.wait import wait_for

pytestmark = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)

# Positions at which a shard is killed: 20 in the long form.
KILLS = int(os.environ.get("LLMGW_SHARD_KILLS", 3))
SEED = int(os.environ.get("LLMGW_SHARD_SEED", 17))
TOKENS = 100
PARTS = FIRST, LAST = "0-3", "4-7"
IDS = [f"{zone}-{part}" for zone in ("near", "far") for part in PARTS]
TRIES = 5           # of what takes another turn if a fact was not known yet


def body(i):
    """Prompts of several chunks; every other one is drawn."""
    return {**chat(f"conversation {i} " + "pa ne " * 20, ignore_eos=True,
                   **({"temperature": .8, "seed": i} if i % 2
                      else {"temperature": 0})), "max_tokens": TOKENS}


class Twice:
    """Each slice at two shards: those named "near" are in the orchestrator's
    zone, so they are asked while they live."""

    def __init__(self, cluster):
        cluster.agent("gw", "gateway")
        self.s = Shards(cluster)
        self.s.cut(*PARTS, "head")
        self.single_log = cluster.dir / "single.hashes"
        self.log = cluster.dir / "sharded.hashes"
        self.one = self.s.single(hash_log=self.single_log)
        self.s.wait_ready(*[
            self.s.shard(id.partition("-")[2], id, test_step_delay="2ms",
                         zone=id.partition("-")[0]) for id in IDS])
        self.o = self.s.orchestrator(hash_log=self.log, zone="near")

    def begin(self, asked, n, hold=None):
        """A call that has n tokens; it goes on, unless the machine kept this
        test from seeing that in time."""
        wait_for(lambda: all(map(self.knows, IDS)), 20, "shards to be known")
        call = Call(self.o, request(asked), hold)
        until(call, n)
        return call

    def knows(self, id):
        """Whether the orchestrator's agent knows the process that runs."""
        rows = [agent.table().get(id, {}) for agent in
                (self.o.agent, self.s[id].agent)]
        return all(r.get("service") == "READY" for r in rows) \
            and rows[0]["replica_start"] == rows[1]["replica_start"]

    def lost(self, id):
        """How often a stream lost it."""
        return self.o.proc.text().count(f'lost shard "{id}"')

    def kill(self, id, call):
        """Whether the call lost it: the orchestrator may not have seen yet
        that it runs again, and have begun the stream elsewhere."""
        before = self.lost(id)
        self.s[id].kill()
        wait_for(lambda: self.lost(id) > before or not call.thread.is_alive(),
                 20, f"{id} to be missed")
        return self.lost(id) > before

    def same(self, asked, call):
        said = call.end().whole().says()
        assert said == llama.ask(self.one, request(asked)).whole().says()

    def same_bits(self):
        right, found = hashes(self.single_log), hashes(self.log)
        for stream in right:
            rows = found[stream]
            assert rows.items() <= right[stream].items()
            positions = {p for layer, p in right[stream] if layer == 1}
            assert {p for at, p in rows if at == 4} == positions
            assert {p for at, p in rows if at == 8} == \
                {p for at, p in right[stream] if at == 8}


@pytest.fixture(scope="module")
def twice(shared):
    if not llama.is_built():
        pytest.skip(llama.MISSING)
    return Twice(shared)


def loses(twice, asked, at, id):
    """A stream in whose middle a shard is killed; whether it lost it."""
    call = twice.begin(asked, at)
    was_lost = twice.kill(id, call)
    twice.same(asked, call)
    twice.s.restart(id)
    return was_lost


def test_a_shard_that_is_killed_changes_no_bit(twice):
    """Anywhere, the first or the last one; then it is started in place."""
    draw = random.Random(SEED)
    for i in range(KILLS):
        at, id = draw.randrange(TOKENS - 60), f"near-{draw.choice(PARTS)}"
        assert any(loses(twice, body(i), at, id) for _ in range(TRIES))
    twice.same_bits()


def test_two_shards_are_killed_at_once(twice):
    ids, asked = [f"near-{part}" for part in PARTS], body(100)

    def loses_both():
        before = [twice.lost(id) for id in ids]
        call = twice.begin(asked, 20)
        for id in ids:
            twice.s[id].proc.freeze()
        for id in ids:
            twice.s[id].kill()
        twice.same(asked, call)
        for id in ids:
            twice.s.restart(id)
        return all(twice.lost(id) > n for id, n in zip(ids, before))
    assert any(loses_both() for _ in range(TRIES))
    twice.same_bits()


def test_a_shard_is_started_in_place_and_takes_over(twice):
    """Of the last layers first the one dies, then its replacement: the first
    one, started again, is another shard than the one that failed."""
    near, far = f"near-{LAST}", f"far-{LAST}"
    asked = {**body(101), "max_tokens": 600, **llama.LOGPROBS}
    other = {**body(102), "max_tokens": 600, **llama.LOGPROBS}

    def is_used(call):
        """The orchestrator computes with the new process."""
        def sessions():
            table = twice.s[near].agent.table()
            return table[near]["active_requests"]
        wait_for(lambda: sessions() or not call.thread.is_alive(), 20,
                 "a session")
        return sessions() > 0

    def goes_on():
        call = twice.begin(asked, 10, hold=10)
        was_lost = twice.kill(near, call)
        call.go_on(300)
        until(call, 300)
        twice.s.restart(near)
        beside = twice.begin(other, 1, hold=1)
        was_lost = was_lost and is_used(beside)
        if was_lost:
            was_lost = twice.kill(far, call)
            twice.s.restart(far)
        beside.cancel()
        twice.same(asked, call)
        return was_lost
    assert any(goes_on() for _ in range(TRIES))
    twice.same_bits()
