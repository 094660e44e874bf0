"""Upstreams of one model each, over one segment; models that do not mix."""

import pytest

from llmgw.callers import finish
from llmgw.reporter import Reporter
from llmgw.wait import never, wait_for

TWO = """
    upstream other {{
        llmgw_members {members} model=large;
        llmgw_queue 4;
    }}
    server {{
        {listen}
        listen 127.0.0.1:{port} http2;
        location / {{ llmgw_pass other; }}
    }}
"""


@pytest.fixture
def serving(cluster):
    """serving(id, models): a replica whose agent is told that it serves
    these; returns who tells it."""
    def make(id, models, capacity=1):
        replica = cluster.replica(id, token_delay="1ms")
        agent = cluster.agent(id, grpc=replica.target)
        return Reporter(cluster, agent, models=models, max_capacity=capacity)
    return make


@pytest.fixture
def caller_at(cluster):
    """As `caller`, at a port."""
    from llmgw.callers import Caller

    class At:
        pass

    def make(port):
        at = At()
        at.target = f"127.0.0.1:{port}"
        one = Caller(at)
        cluster.closers.append(one.close)
        return one
    return make


def ids(nginx, pool="llm"):
    return sorted(nginx.replicas(pool))


def test_full_model_does_not_hold_up_another(cluster, serving, caller_at,
                                             expect):
    """Two upstreams read one segment: each has its replicas, and a queue."""
    cluster.agent("gw", "gateway")
    members = cluster.gateway.members
    tell = {id: serving(id, [model]) for id, model in
            [("s1", "small"), ("s2", "small"), ("l1", "large")]}
    serving("plain", None)
    port = cluster.ports.take()
    nginx = cluster.nginx(
        f"llmgw_members {members} model=small;\n        llmgw_queue 4;",
        http=TWO.format(members=members, port=port, listen=""))
    wait_for(lambda: nginx.routable() == ["s1", "s2"]
             and nginx.routable("other") == ["l1"], "the two pools")
    assert ids(nginx) == ["s1", "s2"] and ids(nginx, "other") == ["l1"]
    assert nginx.pool()["model"] == "small"
    assert nginx.pool("other")["model"] == "large"
    shares = [r["share"] for r in nginx.replicas().values()]
    assert abs(sum(shares) - 1) < 0.001

    cluster.replicas["l1"].faults(gate=1)
    large = [caller_at(port).ask(f"large {i}", 3) for i in range(3)]
    large[0].wait_first()
    wait_for(lambda: nginx.pool("other")["queue"]["length"] == 2,
             "two in the queue")
    small = caller_at(nginx.port).ask("small", 3)
    finish([small])
    assert small.tokens == expect("small", 3)
    assert nginx.pool("other")["queue"]["length"] == 2
    cluster.let_go()
    finish(large)
    assert [one.tokens for one in large] \
        == [expect(f"large {i}", 3) for i in range(3)]
    assert all(one.status == 0 for one in large)

    # A replica that loads another model changes over.
    tell["s2"].say(models=["large"])
    wait_for(lambda: nginx.routable() == ["s1"]
             and nginx.routable("other") == ["l1", "s2"], "the change")
    tell["s2"].say(models=None)
    wait_for(lambda: ids(nginx, "other") == ["l1"], "s2 to be nobody's")


def test_minority_of_another_model_is_not_routed(cluster, serving, client,
                                                 expect):
    """Without model=: warned of once, and routed by what most serve."""
    cluster.agent("gw", "gateway")
    tell = {id: serving(id, [model], capacity=0) for id, model in
            [("r1", "a"), ("r2", "a"), ("r3", "b")]}
    nginx = cluster.nginx()
    wait_for(lambda: nginx.routable() == ["r1", "r2"] and
             nginx.replicas().get("r3", {}).get("service") == "READY",
             "the majority, and the other")
    assert nginx.pool()["model"] == "a"
    for i in range(20):
        got = client(nginx).stream(f"{i}", 2).check(expect(f"{i}", 2))
        assert got.replicas != ["r3"]
    wait_for(lambda: _warnings(nginx), "the warning")
    assert "most serve \"a\", so 1 that serve \"b\"" in _warnings(nginx)[-1]

    # A crash does not turn it round: the dead count, too.
    cluster.replicas["r1"].kill()
    tell["r1"].close()
    wait_for(lambda: nginx.routable() == ["r2"], "r1 to be out")
    never(lambda: nginx.routable() != ["r2"], 0.3, "others")

    # More of b: its replicas are those that are routed.
    tell["r2"].say(models=["b"])
    wait_for(lambda: nginx.routable() == ["r2", "r3"], "b")
    assert nginx.pool()["model"] == "b"
    assert len(_warnings(nginx)) <= 3


def _warnings(nginx):
    return [line for line in nginx.log().splitlines()
            if "replicas serve different models" in line]


@pytest.mark.soak
def test_replicas_without_models_go_with_any(cluster, serving):
    """As replicas that know nothing of models do beside newer ones."""
    cluster.agent("gw", "gateway")
    serving("r1", ["a"])
    serving("r2", None)
    nginx = cluster.nginx()
    wait_for(lambda: nginx.routable() == ["r1", "r2"], "both")
    assert not _warnings(nginx)
    assert nginx.pool()["model"] == "a"
