"""What a shard takes and what it refuses: each limit at its edge and beyond."""

import grpc
import pytest

from llmgw import rpc


def end(replies):
    """(status, llmgw-reason) of a stream, read to its end."""
    with pytest.raises(grpc.RpcError) as caught:
        list(replies)
    error = caught.value
    return error.code().name, dict(error.trailing_metadata()).get(
        "llmgw-reason")


def test_a_replica_that_is_no_shard_says_that_it_is_off(cluster):
    replica = cluster.replica("r1")
    open = rpc.shard.Request(open=rpc.shard.Open(session=1))
    assert end(replica.client.forward(iter([open]))) == (
        "UNIMPLEMENTED", "experimental_disabled")
