"""What tests of the simulator share."""

import pytest

from llmgw.sim.blis import Blis


@pytest.fixture(scope="session")
def blis(tmp_path_factory):
    """BLIS's traces, runs and results; no test writes there."""
    return Blis(tmp_path_factory.mktemp("blis"))
