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


def test_nginx_reads_either_layout(cluster, client, expect):
    nginx = cluster.fleet(2, agent={"members_layout": "1"})
    r1 = cluster.replicas["r1"]
    for version in ("1", "2"):
        if version == "2":
            restart(cluster.gateway, version)
        wait_for(lambda: layout(cluster.gateway) == int(version), "the file")
        for i in range(5):
            client(nginx).stream(f"{i}", 2).check(expect(f"{i}", 2))
        r1.kill()
        wait_for(lambda: nginx.routable() == ["r2"], "r1 to be out", takes=3)
        r1.start()
        wait_for(lambda: nginx.routable() == ["r1", "r2"], "r1 to be back")


@pytest.mark.soak
def test_layout_changes_under_traffic(cluster, load, expect):
    """1, 2, 1 again: no request fails, and nginx reads what each writes."""
    nginx = cluster.fleet(2, agent={"members_layout": "1"})
    gateway = cluster.gateway
    traffic = Traffic(load, [nginx])
    for version in ("2", "1", "2"):
        generation = nginx.pool()["view"]["generation"]
        restart(gateway, version)
        wait_for(lambda: layout(gateway) == int(version), "the new file")
        wait_for(lambda: nginx.pool()["view"]["generation"] > generation,
                 "nginx to look at it")
        cluster.replicas["r1"].stop()
        wait_for(lambda: nginx.routable() == ["r2"], "r1 to be out")
        cluster.replicas["r1"].start()
        wait_for(lambda: nginx.routable() == ["r1", "r2"], "r1 to be back")
    assert traffic.check(expect) > 100 / SLOW
