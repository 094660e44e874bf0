"""HTTP servers for native passes, and replicas of several models."""

import pytest

from llmgw.engine.pyhttp import HttpEngine
from llmgw.engine.report_connection import Reporter
from llmgw.proc.wait import wait_for


@pytest.fixture
def engines(cluster):
    """engines(n): n HTTP servers."""
    made = []

    def make(n, **options):
        made.extend(HttpEngine(cluster.ports.take(), name, **options)
                    for name in "abcdef"[:n])
        return made
    yield make
    for one in made:
        one.close()


@pytest.fixture
def serving(cluster):
    """serving(id, models): a replica whose agent is told that it serves
    these; returns who tells it."""
    def make(id, models, capacity=1):
        replica = cluster.replica(id, token_delay="1ms")
        wait_for(lambda: "serving" in replica.proc.text(), id)
        agent = cluster.agent(id, grpc=replica.target)
        return Reporter(cluster, agent, models=models, max_capacity=capacity)
    return make
