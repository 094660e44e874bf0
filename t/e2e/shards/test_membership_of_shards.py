"""Who serves together, as shards come, differ, and go."""

import pytest

from llmgw.model import gguf, llama
from llmgw.proc.wait import wait_for
from llmgw.shards.replica import LOAD_S, Shards, cut

pytestmark = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)

LAYERS = 4
GAP = "no pipeline (shard_unavailable): no shard for layer {} of 4 of "
BODY = llama.chat("who is there?", max_tokens=8)


@pytest.fixture
def shards(cluster):
    return Shards(cluster, layers=LAYERS)


def waits(shards, orchestrator, why):
    """It is STARTING, and its log says why."""
    wait_for(lambda: why in orchestrator.proc.text()
             and shards.service(orchestrator) == "STARTING",
             f"{orchestrator.id} to wait: {why}", takes=LOAD_S)


def logged(orchestrator, text):
    """How often its log has said that."""
    return orchestrator.proc.text().count(text)


def test_an_orchestrator_is_ready_while_shards_lead_over_all_layers(shards):
    expected = shards.undisturbed(BODY)
    shards.shards("0-1")
    o = shards.orchestrator(wait=False)
    waits(shards, o, GAP.format(2))

    # The one that joins covers more than is missing.

    shards.shards("1-3")
    shards.wait_ready(o)
    assert llama.ask(o, llama.request(BODY)).whole().says() == expected

    # A dead process is gone as soon as its agent says so: nobody suspects it.

    shards["s1-3"].kill()
    wait_for(lambda: shards.service(o) == "STARTING", "the gap to be seen")
    assert o.agent.table()["s1-3"]["cause"] == "down"
    assert logged(o, GAP.format(2)) >= 2

    shards.restart("s1-3")
    shards.wait_ready(o)
    assert llama.ask(o, llama.request(BODY)).whole().says() == expected


@pytest.mark.soak
def test_a_frozen_hosts_shard_is_left_when_gossip_misses_it(shards):
    expected = shards.undisturbed(BODY)
    shards.shards("0-3")
    shards.shard("0-3", id="spare")
    o = shards.orchestrator()
    frozen = shards["s0-3"]

    frozen.agent.proc.freeze()
    frozen.proc.freeze()
    wait_for(lambda: o.agent.table()["s0-3"]["state"] != "ALIVE",
             "it to be missed")
    assert llama.ask(o, llama.request(BODY)).whole().says() == expected
    assert shards.service(o) == "READY"

    shards["spare"].kill()
    waits(shards, o, GAP.format(0))

    # It thaws: its agent refutes, its process has never ended.

    frozen.agent.proc.thaw()
    frozen.proc.thaw()
    shards.wait_ready(o)
    assert llama.ask(o, llama.request(BODY)).whole().says() == expected


@pytest.mark.soak
def test_what_a_shard_said_expires(shards):
    """Its agent lives, and has heard nothing from it for long."""
    shards.shards("0-3", agent_options={"test_shard_expiry": "4s"})
    o = shards.orchestrator()
    shards["s0-3"].proc.freeze()
    wait_for(lambda: "shard" not in o.agent.table()["s0-3"],
             "its advertisement to expire", takes=6)
    waits(shards, o, GAP.format(0))
    shards["s0-3"].proc.thaw()
    shards.wait_ready(o)


def test_other_weights_and_other_numerics_are_never_mixed(shards, cluster):
    expected = shards.undisturbed(BODY)
    shards.shards("0-1")

    # The same model by name, with other weights.

    other = cluster.dir / "other" / "tiny.gguf"
    other.parent.mkdir()
    gguf.write(other, layers=LAYERS, seed=7)
    cut(other, cluster.dir, "--layers", "2-3")
    cluster.pair("weights", shard=cluster.dir / "tiny.2-3.gguf", threads=1,
                 agent_options={"role": "shard"})
    o = shards.orchestrator(wait=False)
    waits(shards, o, 'no pipeline (weights_mismatch): ')
    assert 'shard "weights" has weights ' in o.proc.text()

    # The same weights, computed otherwise.

    shards.shard("2-3", id="numerics", activation_dtype="fp16")
    waits(shards, o, 'shard "numerics" has weights ')
    assert llama.ask(o, llama.request(BODY)).code == "UNAVAILABLE"

    shards.shards("2-3")
    shards.wait_ready(o)
    for _ in range(3):
        assert llama.ask(o, llama.request(BODY)).whole().says() == expected
