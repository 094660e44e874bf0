"""HTTP servers for native passes."""

import pytest

from llmgw.pyhttp import HttpEngine


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
