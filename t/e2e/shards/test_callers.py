"""Who uses a shard: its sessions, rows and refusals by caller, as its agent
shows them."""

import dataclasses
import json

import pytest

from llmgw.model import llama
from llmgw.proc.wait import wait_for
from llmgw.shards.replica import Shards
from llmgw.shards.session import STEPS, Session, facts

pytestmark = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)


@pytest.fixture
def shard(cluster):
    s = Shards(cluster, layers=4)
    made = s.shard("2-3", context_tokens=256, shard_sessions=3)
    made.facts = facts(made)
    return made


def callers(shard):
    out = shard.agent.ctl("--json", "status")
    return json.loads(out.stdout)["callers"]


def shown(shard, id, **figures):
    wait_for(lambda: figures.items() <= callers(shard).get(id, {}).items(),
             f"{id}: {figures}")


def test_sessions_rows_and_refusals_are_shown_by_caller(shard):
    f = shard.facts
    one, two, three = [Session(shard, f, n).open(caller=caller)
                       for n, caller in ((1, "o1"), (2, "o1"), (3, "o2"))]
    one.step(0, rows=5).result()
    three.step(0, rows=2).result()
    shown(shard, "o1", sessions=2, opened=2, rows=5, refused={})
    shown(shard, "o2", sessions=1, opened=1, rows=2, refused={})

    more = Session(shard, f, 4).ask(caller="o2")
    assert more.end() == ("RESOURCE_EXHAUSTED", "shard_full")
    assert two.step(7).end() == ("FAILED_PRECONDITION", "bad_position")
    assert one.close().end() == ("OK", None)
    assert Session(shard, f, 5).ask(caller="no name").end() == (
        "INVALID_ARGUMENT", "bad_shape")
    shown(shard, "o1", sessions=0, rows=5, refused={"bad_position": 1})
    shown(shard, "o2", sessions=1, refused={"shard_full": 1})
    shown(shard, "(others)", refused={"bad_shape": 1})
    three.cancel()
    shown(shard, "o2", sessions=0, opened=1)

    metrics = shard.agent.ctl("metrics").stdout
    for series, value in (
            ('sessions{agent="s2-3",caller="o1"}', 0),
            ('opened_total{agent="s2-3",caller="o1"}', 2),
            ('rows_total{agent="s2-3",caller="o2"}', 2),
            ('refusals_total{agent="s2-3",caller="o2",reason="shard_full"}',
             1)):
        assert f"\nllmgw_shard_caller_{series} {value}\n" in metrics
    assert "callers\n  " in shard.agent.ctl("status").stdout


def test_a_caller_that_is_killed_has_no_session_left(shard, cluster):
    client = cluster.script(
        "client", "shards/session.py", shard.target,
        json.dumps(dataclasses.asdict(shard.facts)), 2, pipes=True)
    assert client.popen.stdout.readline() == "open\n"
    shown(shard, "orch", sessions=2, opened=2)
    client.kill()
    shown(shard, "orch", sessions=0, opened=2)
    assert callers(shard)["orch"]["rows"] <= 2 * STEPS * 32
