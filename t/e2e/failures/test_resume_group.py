"""A stream that has delivered tokens resumes only in its replica's group."""

import pytest

from llmgw.traffic import Stream
from llmgw.wait import still, wait_for

# Of replicas that die: a stream there does not end before.
SLOW_TOKENS = {"token_delay": "100ms"}


def fleet(cluster, groups, pool="", each=None):
    """groups: id -> resume group, or None for the empty group."""
    cluster.agent("gw", "gateway")
    for id, group in groups.items():
        options = {"resume_group": group} if group else {}
        cluster.pair(id, agent_options=options, **{
            "token_delay": "20ms", **(each or {}).get(id, {})})
    nginx = cluster.nginx(pool=pool)
    wait_for(lambda: nginx.routable() == sorted(groups), 15,
             "all to be routable")
    wait_for(lambda: all(nginx.replicas()[id]["resume_group"] == (g or "")
                         for id, g in groups.items()), 5, "their groups")
    return nginx


@pytest.mark.parametrize("group", ["a", None])
def test_stream_goes_on_in_its_group(cluster, client, expect, group):
    """The empty group counts as a group.  Another group's five are idle."""
    nginx = fleet(cluster, {"r1": group, "r2": group,
                            **{f"s{i}": "other" for i in range(5)}},
                  each={"r1": SLOW_TOKENS})
    streams = [Stream(client, nginx, "r1", 150) for _ in range(4)]
    cluster.replicas["r1"].kill()
    for stream in streams:
        got = stream.end().check(expect(stream.prompt, 150))
        assert got.replicas == ["r1", "r2"]


@pytest.mark.policies
def test_nobody_of_the_group_is_left(cluster, client, expect):
    nginx = fleet(cluster, {"r1": "a", "s1": "b", "s2": "b"},
                  each={"r1": SLOW_TOKENS})
    stream = Stream(client, nginx, "r1", 100)
    cluster.replicas["r1"].kill()
    got = stream.end()
    assert got.code == "UNAVAILABLE"
    assert got.trailers["llmgw-reason"] == "tries_exhausted"
    assert got.replicas == ["r1"]
    stream.check(expect)
    wait_for(lambda: not nginx.counts(), 2, "counts of zero")

    # A new request may go to any replica.
    client(nginx).stream(stream.prompt, 5).check(expect(stream.prompt, 5))


@pytest.mark.policies
def test_before_a_token_anybody_may_serve(cluster, client, expect):
    nginx = fleet(cluster, {"r1": "a", "r2": "a", "s1": "b"})
    for id in ("r1", "r2"):
        cluster.replicas[id].faults(reject_all=True)
    for i in range(10):
        got = client(nginx).stream(f"{i}", 3).check(expect(f"{i}", 3))
        assert got.replicas == ["s1"]


def test_stream_waits_for_its_group(cluster, client, expect):
    """r2 is full, s1 is not: the stream waits, new requests do not."""
    nginx = fleet(cluster, {"r1": "a", "r2": "a", "s1": "b"},
                  each={"r1": SLOW_TOKENS, "r2": {"max_capacity": 1}})
    busy = Stream(client, nginx, "r2", 600)
    stream = Stream(client, nginx, "r1", 60)
    cluster.replicas["r1"].kill()
    wait_for(lambda: nginx.pool()["queue"]["length"] == 1, 5,
             "the stream to wait")
    for i in range(5):
        got = client(nginx).stream(f"{i}", 3).check(expect(f"{i}", 3))
        assert got.replicas == ["s1"]
    still(lambda: len(stream.result.tokens))
    assert nginx.waiting() == 1

    busy.cancel()
    got = stream.end().check(expect(stream.prompt, 60))
    assert got.replicas == ["r1", "r2"]


def test_group_dies_while_the_stream_waits_for_it(cluster, client,
                                                  expect):
    """Then no replica is left, not even for the stream that ran there."""
    nginx = fleet(cluster, {"r1": "a", "r2": "a", "s1": "b"},
                  each={"r1": SLOW_TOKENS, "r2": {"max_capacity": 1}})
    busy = Stream(client, nginx, "r2", 600)
    stream = Stream(client, nginx, "r1", 60)
    cluster.replicas["r1"].kill()
    wait_for(lambda: nginx.pool()["queue"]["length"] == 1, 5,
             "the stream to wait")
    cluster.replicas["r2"].kill()
    for one in (busy, stream):
        got = one.end()
        assert got.code == "UNAVAILABLE"
        assert got.trailers["llmgw-reason"] == "tries_exhausted"
        one.check(expect)
    wait_for(lambda: not nginx.counts(), 2, "counts of zero")
