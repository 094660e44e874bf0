"""--audit: sessions that a second shard computes as well, to compare."""

import json

import pytest

from llmgw.model import llama
from llmgw.model.llama import Call, ask, chat, request
from llmgw.proc.wait import wait_for
from llmgw.shards.bad import BadShard
from llmgw.shards.replica import Shards, until

pytestmark = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)

ALERT = 'layers 0-1: shard "a-liar" differs from '


def body(i, **more):
    return chat(f"a text to audit, number {i}", ignore_eos=True, seed=i,
                temperature=.8, **{"max_tokens": 30, **more})


class Fleet:
    """Layers 0-1 at three shards, of which one may lie; 2-3 at one."""

    def __init__(self, cluster):
        cluster.agent("gw", "gateway")
        self.s = s = Shards(cluster, layers=4)
        self.bad = BadShard(cluster.ports)
        cluster.closers.append(self.bad.close)
        s.cut("0-1", "2-3", "head")
        liar = s.shard("0-1", "a-liar",
                       agent_options={"grpc": self.bad.target})
        self.bad.behind = liar.target
        s.wait_ready(liar, s.shard("0-1", "b"), s.shard("0-1", "c"),
                     s.shard("2-3", "d"))
        self.o = s.orchestrator("o1", audit="50%")

    def pipelines(self):
        out = self.o.agent.ctl("--json", "status")
        return json.loads(out.stdout).get("pipelines") or {}

    def ask(self, i):
        assert ask(self.o, request(body(i))).whole()

    def until(self, fact, what):
        """Requests one after the other, until their audits show it."""
        for i in range(40):
            self.ask(i)
            said = self.pipelines()
            if fact(said):
                return said
        raise AssertionError(f"no {what}: {said}")

    def idle(self):
        """No audit runs, and no shard has a session."""
        def is_idle():
            table = self.o.agent.table()
            return self.pipelines()["audits"] == 0 and all(
                table[id]["active_requests"] == 0 for id in "bcd")
        wait_for(is_idle, "audits to end")


@pytest.fixture
def fleet(cluster):
    return Fleet(cluster)


@pytest.mark.soak
def test_a_shard_that_computes_one_wrong_bit_is_named(fleet):
    said = fleet.until(lambda said: said["audited_rows"] > 100, "audits")
    assert said["audits_differed"] == 0 and "audit_alert" not in said
    fleet.idle()

    fleet.bad.lie, fleet.bad.after = "flipped", 20
    said = fleet.until(lambda said: ALERT in said.get("audit_alert", ""),
                       "alert")
    fleet.bad.lie = None
    assert said["audits_differed"] >= 1
    assert said["failovers"] == {}
    named = {s["member"] for s in said["shards"] if s["differed"]}
    assert named == {"a-liar"}
    assert f": {ALERT}" in fleet.o.proc.text()
    metrics = fleet.o.agent.ctl("metrics").stdout
    assert ('llmgw_shard_differed_total{agent="o1",'
            'shard="tiny-random:0-1@a-liar"} ') in metrics
    assert "llmgw_pipeline_audits_differed_total{" in metrics
    fleet.idle()


@pytest.mark.soak
def test_a_killed_shard_leaves_no_audit(fleet):
    """Under streams that it computes, and audits of others."""
    fleet.until(lambda said: said["audited_rows"] > 100, "audits")
    held = {"logprobs": True, "top_logprobs": 5}    # long messages: llama.Call
    calls = [Call(fleet.o, request(body(i, max_tokens=300, **held)), hold=5)
             for i in range(4)]
    assert all(until(call, 5) for call in calls)
    fleet.s["b"].kill()
    for call in calls:
        assert call.end().whole()
    wait_for(lambda: fleet.pipelines()["audits"] == 0, "audits to end")
    table = fleet.o.agent.table
    wait_for(lambda: table()["c"]["active_requests"] == 0
             and table()["d"]["active_requests"] == 0, "sessions to end")
    assert fleet.pipelines()["audits_differed"] == 0
