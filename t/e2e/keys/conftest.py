"""Keys, and gateways that ask for them."""

import pytest

from llmgw.fleet.ways_in import Doors
from llmgw.speak.keyfile import KeyFile


@pytest.fixture
def keyfile(cluster):
    return KeyFile(cluster.dir)


@pytest.fixture
def usage(cluster):
    """The path of the usage log."""
    return cluster.dir / "usage.log"


@pytest.fixture
def gateway(cluster, keyfile, usage):
    """gateway(n, ...): engines e1 .. en behind a gateway with keys and a usage
    log; options of engines_fleet()."""
    def make(n=1, more="", zone="keys:1m", log=usage, nginx=None,
             **options):
        nginx = {**(nginx or {})}
        nginx["http"] = "\n    ".join((
            keyfile.directive(zone, more),
            f"llmgw_usage_log {log} gateway=gw1;", nginx.get("http", "")))
        nginx["server"] = "location = /metrics { llmgw_metrics; }\n" \
            + nginx.get("server", "")
        return cluster.engines_fleet(n, nginx=nginx, **options)
    return make


@pytest.fixture(scope="module")
def doors(shared):
    return Doors(shared)
