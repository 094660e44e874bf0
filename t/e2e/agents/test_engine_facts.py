"""What a replica reports of its engine reaches llmgwctl and nginx."""

import json
import signal
import struct

import pytest

from llmgw.engine.report_connection import Reporter
from llmgw.fleet import words
from llmgw.proc import place
from llmgw.proc.wait import never, wait_for

SERVICES = ["STARTING", "READY", "STALLED", "DOWN", "READY"]


@pytest.fixture
def sidecar(cluster):
    """A gateway, nginx, and an agent whose replica is the test itself."""
    def make(nginx=True):
        cluster.agent("gw", "gateway")
        replica = cluster.replica("r1")
        agent = cluster.agent("r1", grpc=replica.target)
        return agent, cluster.nginx(
            pool="llmgw_queue hold=0;") if nginx else None
    return make


def seen(cluster, **fields):
    member = cluster.gateway.table().get("r1", {})
    return fields.items() <= member.items()


def routed(nginx, field):
    """What nginx knows of r1; None until it knows of it."""
    return nginx.replicas().get("r1", {}).get(field)


def test_state_of_the_engine_is_routed_by(cluster, sidecar, client, expect):
    """STARTING, READY, STALLED, DOWN: each at once, in both."""
    agent, nginx = sidecar()
    reporter = Reporter(cluster, agent, state="STARTING")
    for state in SERVICES:
        reporter.say(state=state)
        wait_for(lambda: seen(cluster, service=state), f"{state}")
        wait_for(lambda: routed(nginx, "service") == state,
                 f"{state} in nginx")
        routable = state == "READY"
        assert nginx.routable() == (["r1"] if routable else [])
        got = client(nginx).stream("hello", 3)
        if routable:
            got.check(expect("hello", 3))
        else:
            assert got.trailers[words.REASON] == words.NO_REPLICAS

    # The agent's own word is stronger than READY.
    reporter.silence()
    wait_for(lambda: seen(cluster, service="STALLED"), "a stall", takes=4)
    reporter.close()
    wait_for(lambda: seen(cluster, service="DOWN"), "its end")


def test_models_and_load_are_shown_and_change(cluster, sidecar):
    agent, nginx = sidecar()
    reporter = Reporter(cluster, agent, models=["llama-8b", "sql"],
                        running=3, waiting=1, kv_permille=455,
                        kv_free_blocks=9000, hit_permille=801,
                        resume_group="g1")
    wait_for(lambda: seen(cluster, models=["llama-8b", "sql"], running=3,
                          waiting=1, kv_permille=455, kv_free_blocks=9000,
                          hit_permille=801, resume_group="g1"), "all of it")
    before = nginx.pool()["view"]["generation"]

    wait_for(lambda: routed(nginx, "models") == ["llama-8b", "sql"]
             and routed(nginx, "engine"), "the same in nginx")
    assert routed(nginx, "engine") == {"running": 3, "waiting": 1,
                                       "kv_permille": 455}
    facts = routed(nginx, "facts")
    assert 0 <= facts.pop("age_ms") < 10000
    assert facts == {"active": 0, "running": 3, "waiting": 1,
                     "kv_permille": 455, "kv_free_blocks": 9000,
                     "hit_permille": 801}
    assert routed(nginx, "models_cut") == 0
    assert routed(nginx, "resume_group") == "g1"
    assert nginx.pool()["model"] == "llama-8b"
    table = cluster.gateway.ctl("members").stdout
    assert "llama-8b +1" in table
    assert "3 running, 1 waiting, KV 45%, hits 80%" in table
    status = json.loads(agent.ctl("--json", "status").stdout)
    assert status["models"] == ["llama-8b", "sql"]
    assert status["waiting"] == 1

    # A change of the load alone changes nothing that is routed by.
    reporter.say(waiting=0, kv_permille=None)
    wait_for(lambda: routed(nginx, "engine") == {
        "running": 3, "waiting": 0, "kv_permille": None}, "the load")
    assert nginx.pool()["view"]["generation"] == before

    reporter.say(models=["llama-8b"], resume_group=None)
    wait_for(lambda: routed(nginx, "models") == ["llama-8b"], "the change")
    wait_for(lambda: routed(nginx, "resume_group") == "", "its group")
    reporter.say(models=None, running=None, waiting=None,
                 kv_free_blocks=None, hit_permille=None)
    wait_for(lambda: routed(nginx, "models") == [], "none")
    wait_for(lambda: routed(nginx, "engine") is None, "no engine")
    wait_for(lambda: "models" not in cluster.gateway.table()["r1"], "none")


def test_a_list_that_is_too_long_for_gossip_says_so(cluster, sidecar):
    agent, nginx = sidecar()
    names = ["base"] + [f"adapter-{i:03}" for i in range(60)]
    Reporter(cluster, agent, models=names)
    wait_for(lambda: routed(nginx, "models"), "the models")
    got = nginx.replicas()["r1"]
    assert got["models"] == names[:len(got["models"])]
    assert sum(len(name) + 1 for name in got["models"]) <= 256
    assert got["models_cut"] == len(names) - len(got["models"]) > 0
    member = cluster.gateway.table()["r1"]
    assert (member["models"], member["models_cut"]) == (got["models"],
                                                        got["models_cut"])


def test_wrong_report_is_refused_with_its_reason(cluster, sidecar):
    agent, _ = sidecar(nginx=False)
    reporter = Reporter(cluster, agent, models=["a"])
    wait_for(lambda: seen(cluster, models=["a"]), "the models")
    for wrong, words in [
            ({"state": "READY "}, '"state" is none of'),
            ({"models": ["a", "a"]}, '"models" is not a list of up to 64'),
            ({"models": ["x" * 256]}, '"models"'),
            ({"kv_permille": 1001}, '"kv_permille"'),
            ({"kv_free_blocks": -1}, '"kv_free_blocks"'),
            ({"hit_permille": 1001}, '"hit_permille"'),
            ({"waiting": -1}, '"waiting"')]:
        answer = reporter.refusal(**wrong)
        assert answer["code"] == "bad_report"
        assert words in answer["error"]
    assert seen(cluster, models=["a"], service="READY")


@pytest.mark.soak
def test_events_tell_models(cluster, sidecar):
    agent, _ = sidecar(nginx=False)
    reporter = Reporter(cluster, agent, models=["a"])
    wait_for(lambda: seen(cluster, models=["a"]), "the models")
    events = cluster.run(
        "events", [place.binary("llmgwctl"), "-s", cluster.gateway.control,
                   "events"])
    wait_for(lambda: '"event":"members"' in events.text(), "the first")
    reporter.say(models=["a", "b"])
    wait_for(lambda: [e for e in map(json.loads, events.text().splitlines())
                      if e["event"] == "models" and e["id"] == "r1"
                      and (e["from"], e["to"]) == (["a"], ["a", "b"])],
             "the event")


def test_next_agent_of_the_gateway_keeps_the_models(cluster, sidecar):
    """From the segment: nginx does not lose them for a moment."""
    agent, nginx = sidecar()
    Reporter(cluster, agent, models=["a", "b"])
    wait_for(lambda: routed(nginx, "models"), "the models")
    generation = nginx.pool()["view"]["generation"]
    cluster.gateway.stop(signal.SIGQUIT)
    agent.stop(signal.SIGQUIT)          # nobody tells them again
    cluster.gateway.start()
    wait_for(lambda: cluster.gateway.table().get("r1", {}).get("models")
             == ["a", "b"], "the models")
    never(lambda: routed(nginx, "models") != ["a", "b"], 0.5, "others")
    with open(cluster.gateway.members, "rb") as f:
        assert struct.unpack_from("=8sI", f.read(12))[1] == 2
    assert nginx.pool()["view"]["generation"] >= generation
