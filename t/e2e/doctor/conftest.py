"""A fleet, and the doctor at its gateway."""

import pytest

from llmgw.fleet.certs import Pki


@pytest.fixture
def pki(cluster):
    return Pki(cluster.dir)


@pytest.fixture
def other(cluster):
    return Pki(cluster.dir, "other")
