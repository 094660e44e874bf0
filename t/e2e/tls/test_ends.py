"""A replica with TLS and its clients: accepted and refused clients, and the
messages of both ends."""

import os
import socket
import ssl
import subprocess

import pytest

from llmgw.fleet.certs import Pki
from llmgw.proc import place
from llmgw.proc.wait import wait_for


@pytest.fixture
def pki(cluster):
    return Pki(cluster.dir)


@pytest.fixture
def other(cluster):
    return Pki(cluster.dir, "other")


def client(target, *options):
    """One token of a replica, by llmgw-client."""
    return subprocess.run(
        [place.binary("llmgw-client"), "bench", "--method", "generate",
         "--gateway", target, "--requests", "1", "--max-tokens", "1",
         *map(str, options)], capture_output=True, text=True, timeout=60)


def tls(pki, name="gw", pair=None, ca=None, peer="r1"):
    cert, key = pair or pki.pair(name)
    return ["--tls-cert", cert, "--tls-key", key, "--tls-ca", ca or pki.ca,
            "--tls-name", peer]


def serves(cluster, id, **options):
    replica = cluster.replica(id, token_delay="0ms", **options)
    wait_for(lambda: "serving" in replica.proc.text(), "it to serve")
    return replica


def check(replica, here, there, *options):
    """That client is refused, and says why; so does the replica."""
    got = client(replica.target, *options)
    assert got.returncode == 1, got
    assert here in got.stderr, got.stderr
    assert got.stderr.count("\n") == 1, got.stderr
    wait_for(lambda: there in replica.proc.text(),
             f"the replica to say: {there}")
    return got


def test_those_come_in_that_have_a_certificate(cluster, pki):
    replica = serves(cluster, "r1", **pki.replica("r1", "gw*,r1"))
    for name in ("gw", "gw-7", "r1"):
        got = client(replica.target, *tls(pki, name))
        assert got.returncode == 0, got.stderr
    assert "refused" not in replica.proc.text()


def test_plain_and_tls_do_not_meet(cluster, pki):
    secure = serves(cluster, "r1", **pki.replica("r1"))
    plain = serves(cluster, "r2")
    check(secure, "it may expect TLS", "the peer does not speak TLS")
    check(plain, "does not speak TLS",
          "the peer speaks TLS, and this end does not", *tls(pki))


def test_certificates_are_looked_at_by_both_ends(cluster, pki, other):
    replica = serves(cluster, "r1", **pki.replica("r1", "gw*,r1"))
    check(replica, "does not know the CA that has signed this end's",
          "not signed by the CA", *tls(other, ca=pki.ca))
    check(replica, "not signed by the CA", "does not know the CA",
          *tls(pki, ca=other.ca))
    check(replica, "this end's certificate has expired",
          "certificate has expired: renew it",
          *tls(pki, pair=pki.expired("gw")))
    check(replica, "refuses the name in this end's certificate",
          'has to name one of "gw*,r1" as a subjectAltName, DNS:..., and names'
          ' "ops"', *tls(pki, "ops"))
    check(replica, 'has to name "r2" as a subjectAltName, DNS:..., and names'
          ' "r1"', "refuses the name in this end's certificate",
          *tls(pki, peer="r2"))
    check(replica, "this end shows no certificate",
          "the peer shows no certificate", "--tls-ca", pki.ca, "--tls-name",
          "r1")


def test_a_replica_whose_certificate_has_expired(cluster, pki):
    replica = serves(cluster, "r1", **pki.replica(
        "r1", pair=pki.expired("r1")))
    check(replica, "certificate has expired: renew it",
          "this end's certificate has expired", *tls(pki))


def test_old_versions_of_tls_are_refused(cluster, pki):
    replica = serves(cluster, "r1", **pki.replica("r1"))
    cert, key = pki.pair("gw")
    subprocess.run(
        ["openssl", "s_client", "-connect", replica.target, "-tls1",
         "-cipher", "DEFAULT@SECLEVEL=0", "-alpn", "h2", "-cert", cert,
         "-key", key], stdin=subprocess.DEVNULL, capture_output=True,
        timeout=20)
    wait_for(lambda: "the peer has no TLS 1.2 or later"
             in replica.proc.text(), "the replica to say so")


def test_an_agent_says_why_it_cannot_ask_its_replica(cluster, pki, other):
    """Each reason once; and it finds the replica when that is mended."""
    replica = cluster.replica("r1", start=False, **pki.replica("r1"))
    agent = cluster.agent("r1", grpc=replica.target, **pki.agent(
        "r1", ca=other.ca))
    replica.start()
    wait_for(lambda: "cannot be asked for its health: the peer's certificate"
             " was not signed by the CA" in agent.proc.text(), "its words",
             takes=4)
    wait_for(lambda: agent.proc.text().count("cannot be asked") == 1,
             "a second time")
    (other.dir / "ca.crt").write_bytes(pki.ca.read_bytes())
    wait_for(lambda: agent.table().get("r1", {}).get("service") == "READY",
             "the replica to be ready", takes=4)
    assert agent.proc.text().count("cannot be asked") == 1


def test_a_handshake_that_stalls_is_named(cluster, pki):
    with socket.create_server(("127.0.0.1", cluster.ports.take())) as silent:
        agent = cluster.agent("r1", **pki.agent("r1"),
                              grpc=f"127.0.0.1:{silent.getsockname()[1]}")
        wait_for(lambda: "the TLS handshake took too long"
                 in agent.proc.text(), "its words", takes=4)


def test_drain_and_undrain_go_over_tls(cluster, pki):
    """The replica reports, so its drain comes by the agent's call."""
    cluster.agent("gw", "gateway", **pki.agent("gw"))
    replica = cluster.pair("r1", agent_options=pki.agent("r1"),
                           **pki.replica("r1"))
    cluster.wait_ready()
    assert replica.agent.ctl("drain", "r1", "--force").returncode == 0
    wait_for(lambda: replica.stats().draining, "it to drain")
    assert replica.agent.ctl("undrain", "r1").returncode == 0
    wait_for(lambda: not replica.stats().draining, "it to serve")
    assert "did not accept" not in replica.agent.proc.text()


def serial(replica, pki):
    """Of the certificate that it shows to a new connection."""
    context = ssl.create_default_context(cafile=pki.ca)
    context.load_cert_chain(*pki.pair("gw"))
    context.set_alpn_protocols(["h2"])
    with socket.create_connection(replica.target.split(":")) as plain, \
            context.wrap_socket(plain, server_hostname=replica.id) as one:
        return one.getpeercert()["serialNumber"]


def test_files_are_read_again_when_they_change(cluster, pki):
    replica = serves(cluster, "r1", **pki.replica("r1"))
    before = serial(replica, pki)
    stream = replica.client.start("hello", 20, method="/llmgateway.LLMReplica"
                                  "/Generate")
    next(stream)
    pki.issue("r1")
    wait_for(lambda: serial(replica, pki) != before, "the new certificate")
    assert "certificates were read again" in replica.proc.text()
    assert len(list(stream)) == 19

    now = serial(replica, pki)
    cert = pki.dir / "r1.crt"
    cert.write_text("nothing\n")
    assert serial(replica, pki) == now
    wait_for(lambda: "the previous certificates stay in use"
             in replica.proc.text(), "the warning")


def test_files_that_cannot_be_used_end_the_start(cluster, pki):
    cert, key = pki.pair("r1")
    for file, says in ((pki.dir / "none", "No such file"),
                       (pki.pair("r2")[1], "this key is not the certificate")):
        got = subprocess.run(
            [place.binary("llmgw-replica"), "--id", "r1", "--engine", "sim",
             "--listen", f"127.0.0.1:{cluster.ports.take()}",
             "--tls-cert", cert, "--tls-key", file, "--tls-client-ca", pki.ca],
            capture_output=True, text=True, timeout=20)
        assert got.returncode == 1
        assert f'"{file}": {says}' in got.stderr
        assert got.stderr.count("\n") == 1


# llmgwctl certs

def certs(*words):
    return subprocess.run([place.binary("llmgwctl"), "certs", *map(str, words)],
                          capture_output=True, text=True, timeout=20)


def test_certs_are_made_and_not_replaced_without_a_word(tmp_path):
    pki = tmp_path / "pki"
    assert certs("init", pki).stdout == f"{pki}/ca.crt\n{pki}/ca.key\n"
    assert certs("issue", pki, "r1", "--ip", "192.0.2.1,::1", "--dns",
                 "llm").returncode == 0
    text = subprocess.run(
        ["openssl", "x509", "-in", pki / "r1.crt", "-noout", "-text"],
        capture_output=True, text=True, check=True).stdout
    assert "DNS:r1, DNS:llm, IP Address:192.0.2.1" in text
    subprocess.run(["openssl", "verify", "-CAfile", pki / "ca.crt",
                    pki / "r1.crt"], check=True, capture_output=True)
    for key in ("ca.key", "r1.key"):
        assert os.stat(pki / key).st_mode & 0o777 == 0o600

    before = (pki / "r1.crt").read_bytes(), (pki / "ca.crt").read_bytes()
    for words in (("issue", pki, "r1"), ("init", pki)):
        got = certs(*words)
        assert got.returncode == 1
        assert "is there already, and --force would replace it" in got.stderr
    assert before == ((pki / "r1.crt").read_bytes(),
                      (pki / "ca.crt").read_bytes())
    assert certs("issue", pki, "r1", "--force").returncode == 0
    assert (pki / "r1.crt").read_bytes() != before[0]


@pytest.mark.parametrize("words, code, says", [
    (["issue", "none", "r1"], 1, "there is no CA here"),
    (["issue", "pki", "a/b"], 2, "NAME is a member's id"),
    (["issue", "pki", "ca"], 2, "NAME is a member's id"),
    (["issue", "pki", "r1", "--ip", "host"], 2, "--ip takes numeric"),
    (["issue", "pki", "r1", "--dns", "*.x"], 2, "no wildcards"),
    (["issue", "pki", "r1", "--days", "0"], 2, "--days"),
    (["issue", "pki"], 2, "issue DIR NAME"),
    (["init", "pki", "--ip", "192.0.2.1"], 2, "a CA has no --ip"),
], ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_certs_refuse(tmp_path, monkeypatch, words, code, says):
    monkeypatch.chdir(tmp_path)
    got = certs(*words)
    assert got.returncode == code, got
    assert says in got.stderr
    assert got.stderr.count("\n") == 1
