"""Agents that write either layout of the members segment, beside one nginx."""

import signal
import struct

import pytest

from llmgw.place import SLOW
from llmgw.traffic import Traffic
from llmgw.wait import wait_for


def layout(agent):
    with open(agent.members, "rb") as f:
        return struct.unpack_from("=I", f.read(12), 8)[0]


def restart(agent, version):
    """Restarts it as an upgrade does: the next agent takes over."""
    agent.stop(signal.SIGQUIT)
    if "--members-layout" not in agent.argv:
        agent.argv += ["--members-layout", ""]
    agent.argv[agent.argv.index("--members-layout") + 1] = version
    agent.start()


@pytest.mark.parametrize("version", ["1", "2"])
def test_nginx_reads_either_layout(cluster, client, expect, version):
    nginx = cluster.fleet(2, agent={"members_layout": version})
    assert layout(cluster.gateway) == int(version)
    for i in range(10):
        client(nginx).stream(f"{i}", 2).check(expect(f"{i}", 2))
    cluster.replicas["r1"].kill()
    wait_for(lambda: nginx.routable() == ["r2"], 5, "r1 to be out")


def test_layout_changes_under_traffic(cluster, load, expect):
    """1, 2, 1 again: no request fails, and nginx reads what each writes."""
    nginx = cluster.fleet(2, agent={"members_layout": "1"})
    gateway = cluster.gateway
    traffic = Traffic(load, [nginx])
    for version in ("2", "1", "2"):
        generation = nginx.pool()["view"]["generation"]
        restart(gateway, version)
        wait_for(lambda: layout(gateway) == int(version), 5, "the new file")
        wait_for(lambda: nginx.pool()["view"]["generation"] > generation, 5,
                 "nginx to look at it")
        cluster.replicas["r1"].stop()
        wait_for(lambda: nginx.routable() == ["r2"], 5, "r1 to be out")
        cluster.replicas["r1"].start()
        wait_for(lambda: nginx.routable() == ["r1", "r2"], 10,
                 "r1 to be back")
    assert traffic.check(expect) > 100 / SLOW
