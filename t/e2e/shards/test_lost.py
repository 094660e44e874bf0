"""A shard is lost in the middle of a stream, and the stream goes on: the same
text, and the same bits in each layer and each logit."""

import os

import pytest

from llmgw.model import llama
from llmgw.model.llama import Call, chat, request
from llmgw.proc.preload import compiled
from llmgw.proc.seed import rng
from llmgw.proc.wait import wait_for
from llmgw.shards.replica import LOGITS, Shards, until

pytestmark = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)

# Positions at which a shard is killed; make soak has more.
KILLS = int(os.environ.get("LLMGW_SHARD_KILLS", 3))
# A held stream stands still about a hundred tokens later, see llama.Call.
TOKENS, BEHIND = 300, 150
PARTS = FIRST, LAST = "0-3", "4-7"
ZONES = "near", "far"
IDS = [f"{zone}-{part}" for zone in ZONES for part in PARTS]
TRIES = 5           # of what takes another turn if a fact was not known yet


def body(i):
    """Prompts of several chunks; every other one is drawn."""
    return {**chat(f"conversation {i} " + "pa ne " * 20, ignore_eos=True,
                   **({"temperature": .8, "seed": i} if i % 2
                      else {"temperature": 0})),
            "max_tokens": TOKENS, **llama.LOGPROBS}


class Twice:
    """Each slice at two shards: those named "near" are in the orchestrator's
    zone, so they are asked while they live."""

    def __init__(self, cluster):
        cluster.agent("gw", "gateway")
        self.s = Shards(cluster, hashed=True)
        self.s.cut(*PARTS, "head")
        self.one = self.s.single()
        self.s.wait_ready(*[
            self.s.shard(id.partition("-")[2], id,
                         zone=id.partition("-")[0]) for id in IDS])
        self.o = self.s.orchestrator(zone="near")

    def begin(self, asked, n, beside=0):
        """A call that has n tokens and stands still; beside: so many others
        do."""
        wait_for(lambda: all(map(self.knows, IDS)), "shards to be known")
        self.wait_sessions(beside)
        call = Call(self.o, request(asked), hold=n)
        assert until(call, n)
        self.wait_sessions(beside + 1)
        return call

    def knows(self, id):
        """Whether the orchestrator's agent knows the process that runs."""
        rows = [agent.table().get(id, {}) for agent in
                (self.o.agent, self.s[id].agent)]
        return all(r.get("service") == "READY" for r in rows) \
            and rows[0]["replica_start"] == rows[1]["replica_start"]

    def sessions(self, id):
        return self.s[id].agent.table()[id]["active_requests"]

    def wait_sessions(self, n):
        """Of each part, as its shards tell."""
        def told():
            return [sum(self.sessions(f"{zone}-{part}") for zone in ZONES)
                    for part in PARTS]
        wait_for(lambda: told() == [n, n], f"{n} sessions of each part")

    def lost(self, id):
        """How often a stream lost it."""
        return self.o.proc.text().count(f'lost shard "{id}"')

    def kill(self, *ids):
        """At once, shards that streams use; they are lost."""
        before = [self.lost(id) for id in ids]
        for id in ids:
            self.s[id].proc.freeze()
        for id in ids:
            self.s[id].kill()
        for id, n in zip(ids, before):
            wait_for(lambda: self.lost(id) > n, f"{id} to be missed")

    def same(self, asked, call):
        said = call.end().whole().says()
        assert said == llama.ask(self.one, request(asked)).whole().says()

    def same_bits(self):
        def entered(*ids):
            return {row for row in self.s.rows(*ids) if row[0] in (4, LOGITS)}
        right = entered("single")
        assert len(right) > 100
        assert entered(*(f"{zone}-{part}" for zone in ZONES
                         for part in PARTS)) == right


@pytest.fixture(scope="module")
def twice(shared):
    if not llama.is_built():
        pytest.skip(llama.MISSING)
    return Twice(shared)


def loses(twice, asked, at, *ids):
    """A stream in whose middle these shards are killed; False: it was begun
    elsewhere, since the orchestrator had not seen yet that they run again."""
    call = twice.begin(asked, at)
    are_used = all(map(twice.sessions, ids))
    if are_used:
        twice.kill(*ids)
    twice.same(asked, call)
    for id in ids if are_used else ():
        twice.s.restart(id)
    return are_used


def test_a_shard_that_is_killed_changes_no_bit(twice):
    """The first or the last one; then it is started in place."""
    for i, part in enumerate(PARTS):
        assert any(loses(twice, body(i), 10, f"near-{part}")
                   for _ in range(TRIES))
    twice.same_bits()


@pytest.mark.soak
def test_shards_that_are_killed_anywhere_change_no_bit(twice):
    draw = rng("kills")
    for i in range(KILLS):
        at, part = draw.randrange(1, TOKENS - BEHIND), draw.choice(PARTS)
        assert any(loses(twice, body(i), at, f"near-{part}")
                   for _ in range(TRIES))
    twice.same_bits()


@pytest.mark.soak
def test_a_shard_that_stands_still_is_left_by_its_streams(twice):
    """It says nothing of their steps, and its agent that it is STALLED."""
    asked, id = [body(200 + i) for i in range(3)], f"near-{LAST}"
    calls = [twice.begin(one, 20, beside=i) for i, one in enumerate(asked)]
    assert twice.sessions(id) == 3
    before = twice.lost(id)
    twice.s[id].proc.freeze()
    for call in calls:
        call.go_on()
    wait_for(lambda: twice.lost(id) == before + 3, "all of them to leave it",
             takes=6)
    for one, call in zip(asked, calls):
        twice.same(one, call)
    twice.s[id].kill()
    twice.s.restart(id)
    twice.same_bits()


@pytest.mark.soak
def test_a_shard_that_was_late_is_asked_again_when_its_twin_stands_still(
        twice):
    """It has been left out by the stream, and for others; but it runs."""
    near, far = [f"{zone}-{LAST}" for zone in ZONES]
    asked = {**body(300), "max_tokens": 700}
    call = twice.begin(asked, 20)
    for id, hold in (near, 250), (far, None):
        before = twice.lost(id)
        twice.s[id].proc.freeze()
        call.go_on(hold)
        wait_for(lambda: twice.lost(id) > before, f"{id} to be left", takes=6)
        if id == near:
            assert until(call, hold)
            twice.s[id].proc.thaw()
            wait_for(lambda: twice.knows(id), f"{id} to be known as well")
    twice.same(asked, call)
    for id in near, far:
        twice.s[id].kill()
        twice.s.restart(id)
    twice.same_bits()


def test_a_stream_leaves_a_shard_that_stood_still_when_it_came(twice):
    """It is not known yet that it stands still when the session is asked for.
    """
    asked, id = body(400), f"near-{LAST}"
    twice.same(asked, twice.begin(asked, 20))       # that is how long it takes
    wait_for(lambda: all(map(twice.knows, IDS)), "shards to be known")
    twice.s[id].proc.freeze()
    before = twice.lost(id)
    call = Call(twice.o, request(body(401)))
    wait_for(lambda: twice.lost(id) > before, f"{id} to be left", takes=6)
    twice.same(body(401), call)
    twice.s[id].kill()
    twice.s.restart(id)
    twice.same_bits()


@pytest.mark.soak
def test_two_shards_are_killed_at_once(twice):
    ids = [f"near-{part}" for part in PARTS]
    assert any(loses(twice, body(100), 20, *ids) for _ in range(TRIES))
    twice.same_bits()


@pytest.mark.soak
def test_a_shard_is_started_in_place_and_takes_over(twice):
    """Of the last layers first the one dies, then its replacement: the first
    one, started again, is another shard than the one that failed."""
    near, far = f"near-{LAST}", f"far-{LAST}"
    asked, other = ({**body(i), "max_tokens": 600} for i in (101, 102))

    def goes_on():
        call = twice.begin(asked, 10)
        is_used = twice.sessions(near)
        if is_used:
            twice.kill(near)
            call.go_on(300)
            assert until(call, 300, takes=5)
            twice.s.restart(near)
            beside = twice.begin(other, 1, beside=1)
            is_used = twice.sessions(near)
            if is_used:
                twice.kill(far)
                twice.s.restart(far)
            twice.same(other, beside)
        twice.same(asked, call)
        return is_used
    assert any(goes_on() for _ in range(TRIES))
    twice.same_bits()


@pytest.mark.soak
def test_streams_wait_for_a_shard_that_loads(cluster, tmp_path):
    """It was idle and is unloaded when its twin dies, and loads for longer than
    it lets sessions wait."""
    slow = tmp_path / "slow"
    cluster.agent("gw", "gateway")
    s = Shards(cluster)
    s.cut(*PARTS, "head")
    far = s.shard(LAST, "far", zone="far", start=False, shard_idle="300ms",
                  shard_load_timeout="1s")
    far.env = {"LD_PRELOAD": compiled("slow_fopen", tmp_path),
               "ASAN_OPTIONS": "verify_asan_link_order=0",
               "SLOW_FOPEN": str(slow)}
    far.agent.start()
    s.wait_ready(s.shard(FIRST, "first"), s.shard(LAST, "near", zone="near"),
                 far.start())
    wait_for(lambda: "the slice is unloaded" in far.proc.text(), "that")
    slow.touch()
    o = s.orchestrator(zone="near")
    asked = [body(i) for i in range(4)]
    calls = [Call(o, request(one), hold=10) for one in asked[:3]]
    assert all(until(call, 10) for call in calls)
    s["near"].kill()
    calls.append(Call(o, request(asked[3])))
    for call in calls:
        call.go_on()
    wait_for(lambda: o.proc.text().count("loading: ") >= 6,
             "all to be refused", takes=10)
    slow.unlink()
    for one, call in zip(asked, calls):
        assert call.end().whole().says() == s.undisturbed(one)
    assert "no shards compute" not in o.proc.text()
