"""No request ever comes to an engine that stands by: not through gossip, not
through a `server` line that names its port, not from a view that is old."""

import json
import socket
import subprocess

import pytest

from llmgw.fleet import words
from llmgw.fleet.nginx import listen
from llmgw.proc import place
from llmgw.proc.wait import wait_for
from llmgw.speak.callers import Caller, finish
from llmgw.standby.group import Group

# What an old configuration, or another gateway, may still have.
STATIC = """
    upstream static {{
        llmgw_hash;
        server {a};
        server {b};
    }}
    server {{
        {listen}
        location / {{ llmgw_pass static; }}
    }}
"""


def listens(one):
    host, port = one.target.split(":")
    with socket.socket() as s:
        return s.connect_ex((host, int(port))) == 0


def send(target, n):
    """n requests, each served whole, with the right tokens."""
    out = subprocess.run(
        [place.binary("llmgw-client"), "bench", "--gateway", target,
         "--requests", str(n), "--connections", "4", "--streams", "8",
         "--max-tokens", "2", "--duration", "60s", "--ramp", "0s", "--json"],
        capture_output=True, text=True, timeout=100)
    assert out.returncode == 0, out.stdout + out.stderr
    return json.loads(out.stdout)


@pytest.mark.parametrize("n", [
    200, pytest.param(4000, marks=pytest.mark.soak)])
def test_no_request_comes_to_an_engine_that_stands_by(cluster, expect, n):
    cluster.agent("gw", "gateway")
    a, b = g = Group(cluster, token_delay="0ms").start()
    static = f"127.0.0.1:{cluster.ports.take()}"
    nginx = cluster.nginx(
        pool="llmgw_queue timeout=1s;", workers=4,
        http=STATIC.format(a=a.target, b=b.target,
                           listen=listen(static.split(":")[1])))
    wait_for(lambda: nginx.replicas().get("b", {}).get("group")
             and nginx.routable() == ["a"], "the group")

    send(nginx.target, n)
    send(static, n)
    cluster.gateway.kill()
    wait_for(lambda: words.AGENT_SILENT in nginx.log(), "a stale view",
             takes=5)
    send(nginx.target, n)
    assert a.client.stats().started == 3 * n
    assert nginx.replicas()["b"]["attempts"] == 0
    assert not listens(b) and b.state() == "STANDBY"

    # No engine serves, and no service grants: the sleeper is tried, in vain.
    g.service.kill()
    a.kill()
    callers = [Caller(nginx).ask(f"{i}", 2) for i in range(40)]
    finish(callers)
    for one in callers:
        one.close()
    assert {one.reason for one in callers} == {words.QUEUE_TIMEOUT}
    assert nginx.replicas()["b"]["attempts"] > 0
    assert nginx.replicas()["b"]["failures"] == 0
    assert not listens(b) and b.state() == "STANDBY"

    g.service.start()
    b.wait("ACTIVE")
    assert b.client.stats().started == 0
    one = Caller(nginx).ask("p", 3)
    finish([one])
    one.close()
    assert one.tokens == expect("p", 3)
    assert b.client.stats().started == 1
