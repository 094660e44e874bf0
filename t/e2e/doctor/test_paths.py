"""What does not get from one host to the other: datagrams, connections, keys,
certificates."""

import contextlib

import pytest

from llmgw.pages import doctor
from llmgw.pages.doctor import keyring, says
from llmgw.proc.machine import Machine, unavailable


@pytest.fixture
def far(cluster):
    """Another machine, with r1; the gateway's agent is at this end of its
    cable."""
    why = unavailable()
    if why:
        pytest.skip(why)
    with contextlib.closing(Machine()) as machine:
        cluster.host = machine.near
        cluster.agent("gw", "gateway", insecure=True)
        cluster.pair("r1", machine=machine, insecure=True,
                     agent_options={"insecure": True})
        cluster.wait_ready()
        yield machine
        cluster.replicas["r1"].kill()
        for agent in cluster.agents.values():
            agent.kill()


def test_datagrams_that_pass_one_way_only(cluster, far):
    doctor.ask(cluster.gateway).ok("udp", "tcp")
    far.lose("ipproto", "udp")
    said = says(cluster, "udp", "wrong", "passes one way only", takes=8)
    said.ok("tcp", "members")
    r1 = cluster.agents["r1"]
    assert r1.gossip in said.lines["udp"][0][1]
    doctor.ask(r1).found("keyring", "wrong",
                         f'gossip of "r1" at {r1.gossip} has no keyring')


def test_tcp_that_is_closed(cluster, far):
    far.lose("ipproto", "tcp", answer="prohibit")
    said = doctor.ask(cluster.gateway)
    for port in ("gossip", "gRPC"):
        said.found("tcp", "wrong", f'the {port} port of "r1"')
    assert ("udp", "wrong") not in said.troubles()


def test_a_replica_whose_port_is_another_one(cluster):
    cluster.agent("gw", "gateway")
    closed = f"127.0.0.1:{cluster.ports.take()}"
    cluster.pair("r1", agent_options={"grpc": closed})
    cluster.wait_ready([cluster.gateway])
    said = doctor.ask(cluster.gateway)
    said.found("tcp", "wrong", f'the gRPC port of "r1" at {closed} takes no'
               " connection: Connection refused")
    assert said.lines["replicas"][0][0] == "unchecked"


def test_keyrings_that_are_not_one(cluster):
    one, two = (keyring(cluster, name) for name in ("one", "two"))
    gw = cluster.agent("gw", "gateway", keyring=one)
    r1 = cluster.agent("r1", keyring=two)
    said = says(cluster, "keyring", "wrong", f"what comes from {r1.gossip} is"
                " sealed with a key that this agent has not")
    assert ("agent", "warning") in said.troubles()
    r1.kill()
    plain = cluster.agent("r2", join=[gw.gossip])
    says(cluster, "keyring", "wrong",
         f"what comes from {plain.gossip} is not sealed")


def test_tls_of_another_ca_name_or_time(cluster, pki, other):
    """As nginx would ask: by the files and the name of its configuration."""
    cluster.agent("gw", "gateway")
    certs = {"r1": pki.pair("r1"), "r2": pki.expired("r2"),
             "r3": pki.pair("r9"), "r4": other.pair("r4")}
    for id, pair in certs.items():
        cluster.pair(id, **pki.replica(id, "gw*", pair=pair))
    cluster.pair("r5")
    cluster.wait_ready([cluster.gateway])
    nginx = cluster.nginx(pool=pki.nginx())
    said = doctor.ask(cluster.gateway, nginx)
    for id, text in (
            ("r2", "has expired"), ("r3", 'has to name "r3"'),
            ("r4", "was not signed by the CA"),
            ("r5", "the peer does not speak TLS")):
        line = said.found("replicas", "wrong", f'replica "{id}"')
        assert text in line[1], line
    assert len(said.lines["replicas"]) == 4 and said.lines["tcp"][0][0] == "ok"


def test_this_ends_certificate_is_refused(cluster, pki, other):
    cluster.agent("gw", "gateway")
    cluster.pair("r1", **pki.replica("r1", "gw*"))
    cluster.wait_ready([cluster.gateway])
    nginx = cluster.nginx(pool=pki.nginx())
    conf = doctor.configuration(nginx)
    cert, key = pki.pair("gw")
    for pair, text in ((other.pair("gw"), "does not know the CA"),
                       (pki.pair("ops"), "refuses the name"),
                       (pki.expired("gw"), "certificate has expired")):
        said = doctor.ask(cluster.gateway, conf=conf.replace(
            str(cert), str(pair[0])).replace(str(key), str(pair[1])))
        line = said.found("replicas", "wrong", 'replica "r1"')
        assert text in line[1], line
