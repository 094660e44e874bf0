"""A stream that has delivered tokens resumes only in its replica's group."""

import pytest

from llmgw.fleet import words
from llmgw.proc.wait import wait_for
from llmgw.speak.traffic import Stream

def fleet(cluster, groups, pool="", each=None):
    """groups: id -> resume group, or None for the empty group."""
    cluster.agent("gw", "gateway")
    for id, group in groups.items():
        options = {"resume_group": group} if group else {}
        cluster.pair(id, agent_options=options, token_delay="1ms",
                     **(each or {}).get(id, {}))
    nginx = cluster.nginx(pool=pool)
    wait_for(lambda: nginx.routable() == sorted(groups),
             "all to be routable")
    wait_for(lambda: all(nginx.replicas()[id]["resume_group"] == (g or "")
                         for id, g in groups.items()), "their groups")
    cluster.hold(5)
    return nginx


def begun(client, nginx, id):
    """A stream of 20 tokens that is held at that replica after five."""
    stream = Stream(client, nginx, id, 20)
    wait_for(lambda: len(stream.result.tokens) == 5, "its first tokens")
    return stream


@pytest.mark.parametrize("group", [
    "a", pytest.param(None, marks=pytest.mark.soak)])
def test_stream_goes_on_in_its_group(cluster, client, expect, group):
    """The empty group counts as a group.  Another group's three are idle."""
    nginx = fleet(cluster, {"r1": group, "r2": group,
                            **{f"s{i}": "other" for i in range(3)}})
    streams = [begun(client, nginx, "r1") for _ in range(2)]
    cluster.replicas["r1"].kill()
    cluster.let_go()
    for stream in streams:
        got = stream.end().check(expect(stream.prompt, 20))
        assert got.replicas == ["r1", "r2"]


def test_nobody_of_the_group_is_left(cluster, client, expect):
    nginx = fleet(cluster, {"r1": "a", "s1": "b", "s2": "b"})
    stream = begun(client, nginx, "r1")
    cluster.replicas["r1"].kill()
    got = stream.end()
    assert got.code == "UNAVAILABLE"
    assert got.trailers[words.REASON] == words.TRIES_EXHAUSTED
    assert got.replicas == ["r1"]
    stream.check(expect)
    wait_for(lambda: not nginx.counts(), "counts of zero")

    # A new request may go to any replica.
    client(nginx).stream(stream.prompt, 5).check(expect(stream.prompt, 5))


@pytest.mark.soak
@pytest.mark.policies
def test_before_a_token_anybody_may_serve(cluster, client, expect):
    nginx = fleet(cluster, {"r1": "a", "r2": "a", "s1": "b"})
    for id in ("r1", "r2"):
        cluster.replicas[id].faults(reject_all=True)
    c = client(nginx)
    for i in range(10):
        got = c.stream(f"{i}", 3).check(expect(f"{i}", 3))
        assert got.replicas == ["s1"]


def test_stream_waits_for_its_group(cluster, client, expect):
    """r2 is full, s1 is not: the stream waits, new requests do not."""
    nginx = fleet(cluster, {"r1": "a", "r2": "a", "s1": "b"},
                  each={"r2": {"max_capacity": 1}})
    busy = begun(client, nginx, "r2")
    stream = begun(client, nginx, "r1")
    cluster.replicas["r1"].kill()
    wait_for(lambda: nginx.pool()["queue"]["length"] == 1,
             "the stream to wait")
    for i in range(5):
        got = client(nginx).stream(f"{i}", 3).check(expect(f"{i}", 3))
        assert got.replicas == ["s1"]
    assert len(stream.result.tokens) == 5
    assert nginx.waiting() == 1

    busy.cancel()
    cluster.let_go()
    got = stream.end().check(expect(stream.prompt, 20))
    assert got.replicas == ["r1", "r2"]


@pytest.mark.soak
def test_group_dies_while_the_stream_waits_for_it(cluster, client,
                                                  expect):
    """Then no replica is left, not even for the stream that ran there."""
    nginx = fleet(cluster, {"r1": "a", "r2": "a", "s1": "b"},
                  each={"r2": {"max_capacity": 1}})
    busy = begun(client, nginx, "r2")
    stream = begun(client, nginx, "r1")
    cluster.replicas["r1"].kill()
    wait_for(lambda: nginx.pool()["queue"]["length"] == 1,
             "the stream to wait")
    cluster.replicas["r2"].kill()
    for one in (busy, stream):
        got = one.end()
        assert got.code == "UNAVAILABLE"
        assert got.trailers[words.REASON] == words.TRIES_EXHAUSTED
        one.check(expect)
    wait_for(lambda: not nginx.counts(), "counts of zero")
