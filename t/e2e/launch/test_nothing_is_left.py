"""SIGKILL of any two of an engine's processes and of those around it leaves
nothing of it, and no stream is lost that another replica can go on with."""

import itertools
import os
import signal

import pytest

from llmgw.fleet.launched import Launched
from llmgw.proc.place import SLOW
from llmgw.proc.wait import PATIENCE, wait_for
from llmgw.speak import sse

KEPT = ("adapter", "keeper", "keeper2", "front", "core", "worker0", "worker1",
        "daemon")
ALL = [(a, b) for a, b in itertools.permutations((*KEPT, "agent"), 2)]
# Whose death ends the engine.  A daemon is nothing to it, and SGLang's front
# does not notice that others were killed.
ENDS = {"vllm": set(KEPT) - {"daemon"},
        "sglang": {"adapter", "keeper", "keeper2", "front"}}
GATE = [("adapter", "keeper"), ("keeper2", "adapter"), ("keeper", "keeper2"),
        ("core", "front"), ("agent", "adapter")]


def kill_two(one, first, second, at_once=False, shape="vllm"):
    """One behind the other, as fast as this process can.  at_once: all has to
    be gone within a second."""
    tree = one.tree()
    one.kill(first, tree)
    one.kill(second, tree)
    if not ENDS[shape].intersection((first, second)):
        return
    seconds = one.gone(tree, f"{first} and {second}")
    assert not at_once or seconds < 1 * SLOW


def again(one, before):
    """What the test killed is started; the engine is by itself."""
    for part in (one.agent, one.pair):
        if part.proc.told_to_end:
            part.proc.popen.wait(PATIENCE)      # a kill takes a moment
        if not part.proc.alive():
            part.start()
    wait_for(lambda: len(one.runs()) > before, "another start", takes=15)


@pytest.mark.parametrize("pair", GATE, ids="-".join)
def test_nothing_outlives_two_deaths(cluster, pair):
    one = Launched(cluster, "a1")
    one.tree()
    before = len(one.runs())
    kill_two(one, *pair)
    again(one, before)
    one.tree()


@pytest.mark.timed
@pytest.mark.parametrize("first", (*KEPT, "agent"))
@pytest.mark.parametrize("shape", ["vllm", "sglang"])
def test_nothing_outlives_two_deaths_in_any_order(cluster, shape, first):
    one = Launched(cluster, "a1", kind=shape, shape=shape)
    one.tree()
    for second in (*KEPT, "agent"):
        if second == first or not ENDS[shape].intersection((first, second)):
            continue
        before = len(one.runs())
        kill_two(one, first, second, at_once=True, shape=shape)
        if one.pair.proc.alive():
            one.pair.proc.kill()    # its pauses would grow
        again(one, before)


@pytest.mark.parametrize("pair", [("front", "worker0"), ("adapter", "core")],
                         ids="-".join)
def test_streams_go_on_elsewhere(cluster, pair):
    cluster.agent("gw", "gateway")
    fleet = [Launched(cluster, id, engine=["--faults", '{"gate": 3}'])
             for id in ("a1", "a2")]
    for one in fleet:
        one.ready()
    nginx = cluster.nginx(openai=True, pool="llmgw_breaker off;")
    wait_for(lambda: nginx.routable() == ["a1", "a2"], "both routable")
    with sse.Connection(nginx.api, takes=20) as c:
        answer = c.request(sse.CHAT, sse.chat("hello len=8;", stream=True))
        wait_for(lambda: any(one.member()["active_requests"] for one in fleet),
                 "a stream")
        fleet.sort(key=lambda one: -one.member()["active_requests"])
        kill_two(fleet[0], *pair)
        os.kill(fleet[1].tree()["front"], signal.SIGUSR1)
        got = sse.result_of(answer)
    assert got.error is None and got.finish_reason == ["stop"]
    right = sse.call(cluster.engine("right", "vllm").target, sse.CHAT,
                     sse.chat("hello len=8;", stream=True), strict=False)
    assert got.text == right.text
    again(fleet[0], 1)
