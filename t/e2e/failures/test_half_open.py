"""Connections to replicas that died silently."""

import pytest

from llmgw.fleet.relay import Relay
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc

TIMEOUTS = ("llmgw_first_token_timeout 1500ms;"
            " llmgw_token_timeout 1500ms; llmgw_tries 1;")
GIVEN_UP = "the connection is given up"


@pytest.fixture
def relayed(cluster):
    """The only server of an nginx, behind a relay."""
    replica = cluster.replica("r1", token_delay="1ms")
    wait_for(lambda: replica.client.check() == "SERVING", "r1")
    relay = Relay(cluster.ports, replica.target)
    nginx = cluster.static([relay], location=TIMEOUTS)
    nginx.relay, nginx.replica = relay, replica
    yield nginx
    relay.close()


def lost_before_served(client):
    """The requests that time out before one is served."""
    for n in range(10):
        if client.stream("y", 2).code == "OK":
            return n
    raise AssertionError(f"{n + 1} requests were lost")


def test_silent_connection_is_given_up_within_two_timeouts(relayed, client,
                                                           expect):
    c = client(relayed)
    c.stream("x", 2).check(expect("x", 2))
    assert relayed.relay.connections == 1
    relayed.relay.silence()
    assert lost_before_served(c) <= 2
    assert relayed.relay.connections == 2
    assert relayed.log().count(GIVEN_UP) == 1


def test_stream_goes_on_by_a_fresh_connection(relayed, client, expect):
    relayed.replica.faults(gate=10)
    call = client(relayed).start("x", 20)
    wait_for(lambda: relayed.replica.stats().tokens == 10, "tokens")
    relayed.relay.silence()
    relayed.replica.faults(gate=-1)
    rpc.drain(call).check(expect("x", 20))
    assert relayed.relay.connections == 2


@pytest.mark.soak
def test_probe_of_an_open_circuit_gets_a_fresh_connection(relayed, client):
    relayed.configure(upstream=relayed.upstream + " llmgw_breaker"
                      " min_requests=1 cooldown=500ms max_cooldown=500ms;")
    relayed.reload()
    c = client(relayed)
    assert c.stream("x", 2).code == "OK"
    relayed.relay.silence()
    assert c.stream("x", 2, timeout=10).code == "UNAVAILABLE"
    assert relayed.pool()["replicas"][0]["breaker"]["state"] != "closed"
    assert lost_before_served(c) <= 2


@pytest.mark.soak
def test_slow_replica_whose_other_streams_run_keeps_its_connection(
        relayed, client):
    c = client(relayed)
    relayed.replica.faults(token_delay_ms=20)
    running = c.start("x", 150)
    wait_for(lambda: relayed.replica.stats().tokens > 10, "tokens")
    relayed.replica.faults(first_token_delay_ms=30000)
    assert c.stream("slow", 2, timeout=10).code == "UNAVAILABLE"
    relayed.replica.faults(first_token_delay_ms=0)
    assert rpc.drain(running).code == "OK"
    assert c.stream("y", 2).code == "OK"
    assert relayed.relay.connections == 1
    assert GIVEN_UP not in relayed.log()


def keepalive_timers(port):
    """Timers of connections to the port, from /proc/net/tcp."""
    for line in open("/proc/net/tcp").read().splitlines()[1:]:
        fields = line.split()
        if (fields[2] == f"0100007F:{port:04X}" and fields[3] == "01"):
            yield fields[5].split(":")[0]


def test_idle_connection_is_probed_by_the_kernel(relayed, client):
    assert client(relayed).stream("x", 2).code == "OK"
    wait_for(lambda: list(keepalive_timers(relayed.relay.port)) == ["02"],
             "a keepalive timer")
