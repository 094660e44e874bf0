"""Upstreams of one model each, over one segment; models that do not mix."""

import contextlib

import pytest

from llmgw.engine.report_connection import Reporter
from llmgw.fleet import words
from llmgw.proc.wait import never, wait_for
from llmgw.speak import rpc, sse
from llmgw.speak.callers import finish

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
def caller_at(cluster):
    """As `caller`, at a port."""
    from llmgw.speak.callers import Caller

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
    nginx = cluster.nginx(_one(cluster))
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


def _one(cluster, lines=""):
    """An upstream with one pool, which any model may have."""
    return (f"llmgw_members {cluster.gateway.members} models=1;\n"
            f"        llmgw_hash prefix=64;\n        {lines}")


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


# --- base models whose replicas are all gone

SERVED, UNKNOWN = (200, None), (404, words.MODEL_NOT_FOUND)


def _leave(tell, agent, how):
    """Its process goes (DOWN), its agent says goodbye (LEFT), or both of them
    are silent (DEAD)."""
    if how == "LEFT":
        agent.proc.told_to_end = True
        assert agent.ctl("leave").returncode == 0
    elif how == "DEAD":
        agent.kill()
    tell.close()


def _yielded(nginx):
    return nginx.log().count(
        "none of them is up; those that serve \"tiny\" are routed instead")


@pytest.fixture
def mixed(cluster, serving):
    """mixed(n): three replicas of m, and n of tiny, in one upstream."""
    def make(n):
        cluster.agent("gw", "gateway")
        ids = ["m1", "m2", "m3"], [f"t{i + 1}" for i in range(n)]
        tell = {id: serving(id, [model], capacity=0)
                for model, some in zip(("m", "tiny"), ids) for id in some}
        nginx = cluster.nginx(_one(cluster, "llmgw_queue hold=0;"), openai=True)
        wait_for(lambda: nginx.routable() == ids[0]
                 and all(nginx.replicas().get(id, {}).get("service") == "READY"
                         for id in ids[1]), "the majority, and the other")

        def asked(model):
            got = sse.call(nginx.api, sse.TEXT,
                           sse.text("x", model, max_tokens=3))
            return got.status, got.error and got.error["code"]
        assert (asked("m"), asked("tiny")) == (SERVED, UNKNOWN)
        return tell, nginx, asked
    return make


def test_base_model_yields_when_its_replicas_are_gone(cluster, mixed):
    """By the view alone, and said once: its tombstones count for nothing, also
    when the gateway's agent begins anew over its segment."""
    tell, nginx, asked = mixed(1)

    # A crash of two of three changes nothing.
    _leave(tell["m1"], cluster.agents["m1"], "DOWN")
    _leave(tell["m2"], cluster.agents["m2"], "LEFT")
    wait_for(lambda: nginx.routable() == ["m3"], "m3 to be left")
    assert (asked("m"), asked("tiny")) == (SERVED, UNKNOWN)
    assert not _yielded(nginx)

    # One that drains or starts is still there.
    tell["m3"].say(draining=True)
    wait_for(lambda: not nginx.routable(), "m3 to drain")
    assert (asked("m"), asked("tiny")) == ((503, words.NO_REPLICAS), UNKNOWN)
    tell["m3"].say(draining=False)
    wait_for(lambda: nginx.routable() == ["m3"], "m3 to be back")

    _leave(tell["m3"], cluster.agents["m3"], "DEAD")
    wait_for(lambda: nginx.routable() == ["t1"], "the other model", takes=9)
    wait_for(lambda: nginx.replicas()["m3"]["state"] == "DEAD",
             "a tombstone", takes=9)
    assert (asked("m"), asked("tiny")) == (UNKNOWN, SERVED)
    assert nginx.pool()["model"] == "tiny"
    assert {"m1", "m2", "m3"} <= set(nginx.replicas())
    assert _yielded(nginx) == 1

    cluster.gateway.kill()
    cluster.gateway.start()
    wait_for(lambda: cluster.gateway.table().get("t1", {}).get("service")
             == "READY", "the gateway's agent")
    never(lambda: asked("tiny") != SERVED, 0.3, "another model")
    assert nginx.routable() == ["t1"]
    assert _yielded(nginx) == 1

    # The first one that is back has the dead of its model behind it.
    cluster.agents["m3"].start()
    Reporter(cluster, cluster.agents["m3"], models=["m"], max_capacity=0)
    wait_for(lambda: nginx.routable() == ["m3"], "m to be back", takes=9)
    assert (asked("m"), asked("tiny")) == (SERVED, UNKNOWN)


@pytest.mark.parametrize("how", [
    "LEFT", pytest.param("DEAD", marks=pytest.mark.soak)])
def test_new_agent_of_a_gateway_counts_those_that_are_gone(cluster, mixed,
                                                           how):
    """What its predecessor knew is in its segment: no other agent has told it
    anything yet, since they stand still."""
    tell, nginx, asked = mixed(2)
    for id in "m1", "m2":
        _leave(tell[id], cluster.agents[id], how)
    wait_for(lambda: nginx.routable() == ["m3"] and {
        nginx.replicas()[id]["state"] for id in ("m1", "m2")} == {how},
        "both to be gone", takes=9)
    with contextlib.ExitStack() as stack:
        for id in "m3", "t1", "t2":
            cluster.agents[id].proc.freeze()
            stack.callback(cluster.agents[id].proc.thaw)
        cluster.gateway.kill()
        cluster.gateway.start()
        wait_for(lambda: {"m3", "t1", "t2"} <= set(cluster.gateway.table()),
                 "the gateway's agent")
        never(lambda: (asked("m"), asked("tiny")) != (SERVED, UNKNOWN), 0.3,
              "another model")
    assert nginx.pool()["model"] == "m" and not _yielded(nginx)


def test_request_ends_with_the_base_model_that_it_came_for(
        cluster, serving, client, expect):
    """Running or waiting, it does not go on at a replica of the model that
    takes over."""
    cluster.agent("gw", "gateway")
    tell = {id: serving(id, [model]) for id, model in
            [("m1", "m"), ("t1", "tiny")]}
    nginx = cluster.nginx(_one(cluster, "llmgw_queue 4 hold=0;"), openai=True)
    wait_for(lambda: nginx.routable() == ["m1"]
             and nginx.replicas().get("t1", {}).get("service") == "READY",
             "both")
    cluster.replicas["m1"].faults(gate=2)
    call, result = client(nginx).start("running", 9), rpc.Result()
    result.add(next(call), 0)
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.TEXT, sse.text("waiting", "m", max_tokens=3))
        wait_for(lambda: nginx.waiting() == 1, "one in the queue")
        tell["m1"].close()
        cluster.replicas["m1"].kill()
        wait_for(lambda: nginx.routable() == ["t1"], "the other model")
        waited = sse.result_of(r)
    rpc.drain(call, into=result)
    assert (waited.status, waited.error["code"]) == (503, words.NO_REPLICAS)
    assert (result.code, result.replicas) == ("UNAVAILABLE", ["m1"])
    assert result.tokens == expect("running", 9)[:2]
    client(nginx).stream("next", 3).check(expect("next", 3))
    assert cluster.replicas["t1"].stats().started == 1
