"""What a shard takes and what it refuses: each limit at its edge and beyond."""

import grpc
import pytest

from llmgw import llama
from llmgw.shard_session import ROWS, Session, facts, pb
from llmgw.shards import Shards

built = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)


@pytest.fixture(scope="module")
def slices(shared):
    """Of a model of four layers, whose last shard computes logits."""
    return Shards(shared, layers=4)


@pytest.fixture(scope="module")
def shard(slices):
    """Layers 2-3, with 64 sessions of 256 positions."""
    made = slices.shard("2-3", context_tokens=256)
    made.facts = facts(made)
    return made


@pytest.fixture
def session(shard):
    made = Session(shard, shard.facts)
    yield made
    made.cancel()


def test_a_replica_that_is_no_shard_says_that_it_is_off(cluster):
    replica = cluster.replica("r1")
    asked = replica.client.forward(iter([pb.Request(open=pb.Open())]))
    with pytest.raises(grpc.RpcError) as caught:
        list(asked)
    assert caught.value.code().name == "UNIMPLEMENTED"
    assert ("llmgw-reason", "experimental_disabled") in \
        caught.value.trailing_metadata()


@built
def test_a_session_computes_and_ends(shard, session):
    session.open()
    opened, f = session.opened, shard.facts
    assert (opened.context, opened.max_rows, opened.width) == (256, ROWS, 128)
    session.step(0, rows=32).step(32, rows=1, logits_rows=1)
    assert session.result() == (0, 0, b"")
    position, rows, logits = session.result()
    assert (position, rows, len(logits)) == (32, 1, 4 * opened.vocabulary)

    # Another one, whose steps are other ones, has the same logits.
    again = Session(shard, f, number=8).open()
    for at in range(0, 32, 8):
        again.step(at, rows=8)
        again.result()
    assert again.step(32, rows=1, logits_rows=1).result() == (32, 1, logits)
    assert again.close().end() == session.half_close().end() == ("OK", None)


@built
def test_a_shard_generates_nothing(shard):
    assert shard.client.generate("hello", 3).code == "UNIMPLEMENTED"
