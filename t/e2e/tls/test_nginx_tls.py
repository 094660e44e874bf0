"""nginx and replicas over TLS: all that streams have without it, certificates
that are not accepted, and renewal under load."""

import re
import socket
import struct

import pytest

from llmgw.fleet.certs import Pki
from llmgw.fleet.relay import Relay
from llmgw.fleet.updates import fleets
from llmgw.proc import place
from llmgw.proc.wait import never, wait_for
from llmgw.speak import rpc
from llmgw.speak.traffic import Traffic

NO_TLS = "llmgw: no TLS with replica"


@pytest.fixture
def pki(cluster):
    return Pki(cluster.dir)


def fleet(cluster, pki, n=2, each=None, pool=None, **nginx):
    """As Cluster.fleet(), with TLS on every connection.

    each: id -> options of that replica.
    """
    cluster.agent("gw", "gateway", **pki.agent("gw"))
    ids = [f"r{i + 1}" for i in range(n)]
    for id in ids:
        cluster.pair(id, agent_options=pki.agent(id), **{
            "token_delay": "1ms", **pki.replica(id, "gw*,r*"),
            **(each or {}).get(id, {})})
    cluster.wait_ready([cluster.gateway], ids)
    got = cluster.nginx(pool=pki.nginx() if pool is None else pool, **nginx)
    wait_for(lambda: got.routable() == ids, f"{ids} to be routable")
    return got


class Static:
    """One replica in a `server` line, behind a relay."""

    def __init__(self, cluster, pki, **nginx):
        pki.issue("r1", "--ip", "127.0.0.1")
        self.replica = cluster.replica("r1", token_delay="1ms",
                                       **pki.replica("r1"))
        wait_for(lambda: self.replica.client.check() == "SERVING", "r1")
        self.relay = Relay(cluster.ports, self.replica.target)
        self.nginx = cluster.nginx(
            f"llmgw_hash; server {self.relay.target}; {pki.nginx()}", **nginx)


@pytest.fixture
def static(cluster, pki):
    made = []

    def make(**nginx):
        made.append(Static(cluster, pki, **nginx))
        return made[-1]
    yield make
    for one in made:
        one.relay.close()


def resumes(hello):
    """Whether this ClientHello offers a session (RFC 8446, 4.1.2)."""
    at = 5 + 4 + 2 + 32
    at += 1 + hello[at]
    at += 2 + struct.unpack_from(">H", hello, at)[0]
    at += 1 + hello[at]
    at += 2
    found = []
    while at < len(hello):
        kind, size = struct.unpack_from(">HH", hello, at)
        found.append(kind)
        at += 4 + size
    assert 16 in found, "no ALPN"
    return 41 in found


def begun(c, nginx, cluster, prompt, n, tokens=5):
    """A call that is held after some tokens, and the replica it is at."""
    cluster.hold(tokens)
    call, result = c.start(prompt, n), rpc.Result()
    for _ in range(tokens):
        result.add(next(call), 0)
    return call, result, cluster.replicas[result.replicas[-1]]


# as without TLS

def test_streams_are_whole(cluster, client, expect, pki):
    nginx = fleet(cluster, pki)
    c = client(nginx)
    for i in range(10):
        c.stream(f"prompt {i}", 20).check(expect(f"prompt {i}", 20))
    c.stream("many", 5000).check(expect("many", 5000))
    for replica in cluster.replicas.values():
        assert "refused" not in replica.proc.text()


def test_killed_replica_mid_stream(cluster, client, expect, pki):
    nginx = fleet(cluster, pki)
    call, result, replica = begun(client(nginx), nginx, cluster, "lost", 40)
    replica.kill()
    cluster.let_go()
    rpc.drain(call, into=result)
    result.check(expect("lost", 40))
    assert len(result.replicas) == 2


def test_a_drain_moves_nothing_and_loses_nothing(cluster, client, expect,
                                                 pki):
    nginx = fleet(cluster, pki)
    c = client(nginx)
    call, result, replica = begun(c, nginx, cluster, "drained", 40)
    drained = cluster.gateway.ctl("drain", replica.id, "--drain-timeout",
                                  "100ms")
    assert drained.returncode == 5, drained     # it waited for the stream
    wait_for(lambda: replica.id not in nginx.routable(), "the drain")
    cluster.let_go()
    rpc.drain(call, into=result).check(expect("drained", 40))
    assert result.replicas == [replica.id]
    for i in range(5):
        assert c.stream(f"{i}", 2).replicas != [replica.id]


def test_hedged_requests_get_the_faster_answer(cluster, client, expect, pki):
    nginx = fleet(cluster, pki)
    cluster.replicas["r2"].faults(gate=0)
    for i in range(5):
        got = client(nginx).stream(f"prompt {i}", 5, hedge=True)
        assert got.check(expect(f"prompt {i}", 5)).replicas == ["r1"]
    wait_for(lambda: cluster.replicas["r2"].stats().active_requests == 0,
             "the other ones' end")


@pytest.fixture
def updatable(cluster):
    yield from fleets(cluster)


def test_rolling_update(updatable, client, expect, pki):
    """Its trial is a call of the gateway's agent."""
    one = updatable(2, pki=pki, nginx={"pool": pki.nginx()})
    one.update(to="v2").done()
    one.wait_whole("v2")
    client(one.nginx).stream("updated", 5).check(expect("updated", 5))


def test_a_connection_that_went_silent_is_given_up(static, client, expect):
    """The next one resumes its TLS session."""
    one = static(location="llmgw_first_token_timeout 1500ms; llmgw_tries 1;")
    c = client(one.nginx)
    c.stream("x", 2).check(expect("x", 2))
    one.relay.silence()
    lost = next(n for n in range(10)
                if c.stream("y", 2, takes=4).code == "OK")
    assert lost <= 2
    assert [resumes(hello) for hello in one.relay.hellos] == [False, True]


def test_a_connection_that_was_reset_is_resumed(static, client, expect):
    one = static()
    c = client(one.nginx)
    c.stream("x", 2).check(expect("x", 2))
    one.relay.reset()
    for n in range(3):
        if c.stream("y", 2, takes=4).code == "OK":
            break
    assert [resumes(hello) for hello in one.relay.hellos] == [False, True]


def queued(port):
    """Bytes that the kernel holds for connections to the port."""
    for line in open("/proc/net/tcp").read().splitlines()[1:]:
        fields = line.split()
        if fields[2] == f"0100007F:{port:04X}" and fields[3] == "01":
            yield int(fields[4].split(":")[0], 16)


@pytest.mark.first
def test_a_large_prompt_waits_for_a_reader_that_stands_still(
        cluster, client, expect, pki):
    """Writes are partial, and repeated from another buffer."""
    pki.issue("r1", "--ip", "127.0.0.1")
    replica = cluster.replica("r1", token_delay="0ms", **pki.replica("r1"))
    wait_for(lambda: replica.client.check() == "SERVING", "r1")
    nginx = cluster.nginx(
        f"llmgw_hash; server {replica.target}; {pki.nginx()}",
        server="location /llmgateway.InferenceGateway/ {"
               " client_max_body_size 64m; llmgw_pass llm; }")
    c = client(nginx)
    c.stream("warm", 2).check(expect("warm", 2))
    prompt = "0123456789abcdef" * (60 * 65536)      # 60 MB
    replica.proc.freeze()
    try:
        call = c.start(prompt, 3)
        wait_for(lambda: any(queued(replica.port)), "the socket to be full",
                 takes=20)
    finally:
        replica.proc.thaw()
    got = rpc.drain(call, takes=20)
    got.check(expect(prompt, 3))


# certificates that are not accepted

def tells(nginx, *words):
    def line():
        return any(NO_TLS in one and all(w in one for w in words)
                   for one in nginx.log().splitlines())
    wait_for(line, f"nginx to say: {words}")


def refuses(cluster, client, nginx, here, there):
    """The first request learns it; nothing is lost in nginx."""
    assert client(nginx).stream("x", 2, timeout=10).code == "UNAVAILABLE"
    tells(nginx, '"r1"', here)
    if there:
        text = cluster.replicas["r1"].proc.text
        wait_for(lambda: there in text(), f"the replica to say: {there}")


@pytest.mark.parametrize("case, here, there", [
    ("ca", "not signed by the CA that this end knows", "does not know the CA"),
    ("other", "does not know the CA that has signed this end's certificate",
     "not signed by the CA"),
    ("expired", "certificate has expired: renew it",
     "this end's certificate has expired"),
    ("old", "this end's certificate has expired", "certificate has expired"),
    ("none", "this end shows no certificate", "shows no certificate"),
    ("name", "refuses the name in this end's certificate",
     'has to name one of "gw*,r*"'),
    ("member", 'has to name "r1" as a subjectAltName, DNS:..., and names'
     ' "r2"', "refuses the name in this end's certificate"),
    ("plain", "the peer does not speak TLS",
     "the peer speaks TLS, and this end does not"),
])
def test_both_ends_say_why_not(cluster, client, pki, case, here, there):
    other = Pki(cluster.dir, "other")
    pool = {
        "ca": lambda: pki.nginx(ca=other.ca),
        "other": lambda: pki.nginx(pair=other.pair("gw")),
        "old": lambda: pki.nginx(pair=pki.expired("gw")),
        "none": lambda: "llmgw_ssl on;"
                        f" llmgw_ssl_trusted_certificate {pki.ca};",
        "name": lambda: pki.nginx("ops"),
    }.get(case, pki.nginx)()
    replica = {
        "expired": lambda: pki.replica("r1", pair=pki.expired("r1")),
        "member": lambda: pki.replica("r1", "gw*,r*", pair=pki.pair("r2")),
        "plain": lambda: {},
    }.get(case, lambda: pki.replica("r1", "gw*,r*"))()
    cluster.agent("gw", "gateway")
    cluster.pair("r1", **replica)
    cluster.wait_ready()
    nginx = cluster.nginx(pool=pool, location="llmgw_tries 1;")
    wait_for(lambda: nginx.routable() == ["r1"], "r1 to be routable")
    refuses(cluster, client, nginx, here, there)


def test_nginx_without_tls_at_a_replica_with_it(cluster, client, pki):
    cluster.agent("gw", "gateway")
    replica = cluster.pair("r1", **pki.replica("r1"))
    cluster.wait_ready()
    nginx = cluster.nginx(location="llmgw_tries 1;")
    wait_for(lambda: nginx.routable() == ["r1"], "r1 to be routable")
    assert client(nginx).stream("x", 2, timeout=10).code == "UNAVAILABLE"
    wait_for(lambda: "the peer does not speak TLS" in replica.proc.text(),
             "its words")
    wait_for(lambda: "it may expect TLS, see llmgw_ssl" in nginx.log(),
             "nginx's")


def test_a_handshake_that_stalls_holds_nobody_up(cluster, client, expect,
                                                 pki):
    """And another replica serves."""
    pki.issue("r1", "--ip", "127.0.0.1")
    replica = cluster.replica("r1", token_delay="0ms", **pki.replica("r1"))
    wait_for(lambda: replica.client.check() == "SERVING", "r1")
    with socket.create_server(("127.0.0.1", cluster.ports.take())) as silent:
        target = f"127.0.0.1:{silent.getsockname()[1]}"
        nginx = cluster.nginx(
            "llmgw_hash; llmgw_breaker off;"
            f" server {replica.target}; server {target}; {pki.nginx()}",
            location="llmgw_connect_timeout 300ms;")
        for i in range(10):
            client(nginx).stream(f"{i}", 2, takes=4).check(
                expect(f"{i}", 2))
        wait_for(lambda: "in the TLS handshake: does it speak TLS"
                 in nginx.log(), "nginx's words")


def test_a_member_that_claims_anothers_id_gets_nothing(cluster, client,
                                                       expect, pki):
    """It gossips with the id and another address, says that it is ready, and
    has a certificate of the fleet, but not that member's."""
    nginx = fleet(cluster, pki)
    c = client(nginx)
    r1 = cluster.replicas["r1"]
    r1.kill()
    r1.agent.proc.kill()
    thief = cluster.replica("thief", start=False, token_delay="0ms",
                            **pki.replica("r2", "gw*,r*"))
    cluster.replicas.pop("thief")
    agent = cluster.agent("r1", grpc=thief.target)
    thief.argv += ["--agent", agent.control]
    thief.start()
    wait_for(lambda: nginx.replicas()["r1"]["address"] == thief.target
             and "r1" in nginx.routable(), "nginx to hear of it", takes=10)
    for i in range(20):
        got = c.stream(f"prompt {i}", 5)
        assert got.check(expect(f"prompt {i}", 5)).replicas == ["r2"]
    tells(nginx, '"r1"', 'has to name "r1"', 'names "r2"')
    assert "Generate" not in thief.proc.text()


# static lines, and names

def test_names_of_static_lines_and_of_all(cluster, client, expect, pki):
    pki.issue("r1", "--ip", "127.0.0.1", "--dns", "localhost,llm")
    replica = cluster.replica("r1", token_delay="0ms", **pki.replica("r1"))
    wait_for(lambda: replica.client.check() == "SERVING", "r1")
    host = f"localhost:{replica.port}"
    for server, more, is_named in (
            (replica.target, "", True), (host, "", True),
            (host, "llmgw_ssl_name llm;", True),
            (host, "llmgw_ssl_name gw;", False),
            (host, "llmgw_ssl_name gw; llmgw_ssl_verify off;", True)):
        nginx = cluster.nginx(f"llmgw_hash; server {server};"
                              f" {pki.nginx(more=more)}",
                              location="llmgw_tries 1;")
        got = client(nginx).stream("x", 2, timeout=10)
        assert (got.code == "OK") == is_named, (server, more, got)


# renewal

def test_renewal_of_both_ends_under_load(cluster, client, load, expect, pki):
    """Certificates are renewed while requests come, and lose none."""
    nginx = fleet(cluster, pki)
    traffic = Traffic(load, [nginx])
    traffic.parts[0].running()
    for id in ("r1", "r2", "gw"):
        pki.issue(id)
    wait_for(lambda: "have changed, a reload takes them" in nginx.log(),
             "nginx's warning", takes=4)
    nginx.reload()
    client(nginx).stream("behind it", 20).check(expect("behind it", 20))
    wait_for(lambda: all("certificates were read again" in r.proc.text()
                         for r in cluster.replicas.values()),
             "a new connection to each replica")
    assert traffic.check(expect) > 50
    assert nginx.log().count("have changed, a reload takes them") == 1


def test_workers_that_may_not_see_the_files_do_not_complain(cluster, client,
                                                            expect, pki):
    """The master has read them, as root."""
    for name in ("gw", "r1"):
        pki.issue(name)
    pki.dir.chmod(0o700)
    nginx = fleet(cluster, pki, n=1, user="www-data")
    client(nginx).stream("x", 2).check(expect("x", 2))
    never(lambda: "have changed" in nginx.log(), 1.5)


def test_nothing_is_resumed_behind_a_reload_with_another_ca(
        cluster, static, client, pki):
    """The replica's certificate is of a CA that does not count any more."""
    other = Pki(cluster.dir, "other")
    one = static(location="llmgw_tries 1;")
    assert client(one.nginx).stream("x", 2).code == "OK"
    one.nginx.configure(upstream=one.nginx.upstream.replace(
        f"trusted_certificate {pki.ca}", f"trusted_certificate {other.ca}"))
    one.nginx.reload()
    assert client(one.nginx).stream("x", 2, timeout=10).code == "UNAVAILABLE"
    tells(one.nginx, "not signed by the CA")
    assert not any(resumes(hello) for hello in one.relay.hellos)


# grpc_pass

def test_grpc_pass_as_the_page_shows_it(cluster, client, expect, pki):
    text = (place.ROOT / "docs" / "tls.md").read_text()
    [location] = re.findall(r"```nginx\n(location .*?)```", text, re.S)
    pki.pair("gw1")
    location = location.replace("/etc/llmgw/tls", str(pki.dir))
    for id in ("r1", "r2"):
        pki.issue(id, "--dns", "llm")
    nginx = fleet(cluster, pki, server=location)
    got = client(nginx).generate("native", 20)
    got.check(expect("native", 20))


# configurations

@pytest.mark.parametrize("more, word, mention", [
    ("llmgw_ssl on;", "llmgw_ssl on", "needs \"llmgw_ssl_trusted_certificate"),
    ("llmgw_ssl on; llmgw_ssl_verify off; llmgw_ssl_certificate x;",
     "llmgw_ssl on", "needs \"llmgw_ssl_certificate_key\""),
    ("llmgw_ssl on; llmgw_ssl_verify off; llmgw_ssl_certificate_key x;",
     "llmgw_ssl on", "needs \"llmgw_ssl_certificate\""),
    ("llmgw_ssl on; llmgw_ssl_trusted_certificate none.crt;", "llmgw_ssl on",
     "none.crt\": No such file"),
    ("llmgw_ssl on; llmgw_ssl_verify off; llmgw_ssl_name *.x;",
     "llmgw_ssl on", "without wildcards"),
    ("llmgw_ssl yes;", "llmgw_ssl yes", "it must be \"on\" or \"off\""),
])
def test_bad_configurations_are_refused(cluster, more, word, mention):
    cluster.allowed.append(r"\[emerg\]")
    nginx = cluster.nginx(f"llmgw_members @dir@/m;\n        {more}",
                          start=False)
    out = nginx.command("-t")
    assert out.returncode != 0
    [at] = [i + 1 for i, line in
            enumerate(nginx.conf.read_text().splitlines()) if word in line]
    [error] = [x for x in out.stderr.splitlines() if "[emerg]" in x]
    assert mention in error
    assert f"{nginx.conf}:{at}" in error
