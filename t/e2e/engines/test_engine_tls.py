"""Engines behind https: whose certificate is good, and what becomes of one that
is not."""

import subprocess

import pytest

from llmgw.fleet.certs import Authority
from llmgw.proc import place
from llmgw.proc.wait import wait_for
from llmgw.speak import generate, sse


@pytest.fixture
def ours(cluster):
    return Authority(cluster.dir, "ours")


def test_streams_of_an_engine_behind_https(cluster, ours):
    """Tokens, a loss of the engine, and a client that leaves."""
    nginx = cluster.engines_fleet(2, adapter={"engine_ca_file": ours.file},
                                  tls=ours.sign())
    first, second = cluster.engines["e1"], cluster.engines["e2"]
    ask = sse.chat("safe len=60;", stream=True)
    right = sse.call(nginx.api, sse.CHAT, ask)
    assert right.finish_reason == ["stop"] and not right.error
    assert sse.call(nginx.api, sse.CHAT,
                    {**ask, "stream": False}).text == right.text

    cluster.hold(7)
    had = first if first.events("place") else second
    with sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, ask)
        r.wait_events(3)
        had.kill()
        cluster.let_go()
        got = sse.result_of(r)
    assert (got.error, got.text, got.done) == (None, right.text, 1)

    left = second if had is first else first
    cluster.hold(7)
    with sse.Connection(nginx.api) as c:
        c.request(sse.CHAT, sse.chat("left len=60;", stream=True)
                  ).wait_events(3)
    wait_for(lambda: left.events("disconnect"), "the engine to know")


def serves(replica):
    return replica.client.check() == "SERVING"


def behind(cluster, certificate, **options):
    engine = cluster.engine(tls=certificate)
    return engine, cluster.replica("r1", engine="vllm", engine_url=engine.url,
                                   **options)


REFUSED = {
    "signed by another": (
        lambda ours, other: (other.sign(), {"engine_ca_file": ours.file}),
        "unable to get local issuer certificate"),
    "signed by nobody the system knows": (
        lambda ours, other: (ours.sign(), {}),
        "unable to get local issuer certificate"),
    "of another host": (
        lambda ours, other: (ours.sign("DNS:engine.example"),
                             {"engine_ca_file": ours.file}),
        "127.0.0.1"),
    "expired": (
        lambda ours, other: (ours.sign(days=-1),
                             {"engine_ca_file": ours.file}),
        "certificate has expired"),
}


@pytest.mark.parametrize("what", [
    "signed by another", *(pytest.param(what, marks=pytest.mark.soak)
                           for what in REFUSED if what != "signed by another")])
def test_certificate_is_refused(cluster, ours, what):
    make, reason = REFUSED[what]
    certificate, options = make(ours, Authority(cluster.dir, "other"))
    engine, replica = behind(cluster, certificate, **options)
    # A machine that is too slow may be told of a time-out before.
    wait_for(lambda: any(
        "engine does not answer" in line and reason in line
        for line in replica.proc.text().splitlines()),
        f"{reason} in the log")
    got = generate.ask(replica.client, sse.chat("hi len=3;"))
    assert got.code == "UNAVAILABLE" and not got.messages, got
    assert not serves(replica)
    assert not engine.events("request")


@pytest.mark.soak
def test_engine_that_comes_back_as_another_is_not_used(cluster, ours):
    """Its address is the same, and who is there now may be anybody."""
    good, bad = ours.sign(), Authority(cluster.dir, "other").sign()
    engine, replica = behind(cluster, good, engine_ca_file=ours.file)
    wait_for(lambda: serves(replica), "the right one to serve")
    engine.argv[engine.argv.index(str(good))] = str(bad)
    engine.kill()
    wait_for(lambda: not serves(replica), "its end to be seen")
    before = engine.events("request")
    engine.start()
    wait_for(lambda: "certificate problem" in replica.proc.text(),
             "a line in the log")
    assert not serves(replica) and engine.events("request") == before
    engine.argv[engine.argv.index(str(bad))] = str(good)
    engine.kill()
    engine.start()
    wait_for(lambda: serves(replica), "the right one to serve again")


@pytest.mark.parametrize("url, content, reason", [
    ("https://127.0.0.1:1", None, "No such file"),
    ("https://127.0.0.1:1", "-----BEGIN EC PRIVATE KEY-----\n", "no certif"),
    ("http://127.0.0.1:1", "-----BEGIN CERTIFICATE-----\n", "https://")])
def test_bad_ca_file_is_refused(cluster, url, content, reason):
    path = cluster.dir / "ca.crt"
    if content:
        path.write_text(content)
    out = subprocess.run([
        place.binary("llmgw-replica"), "--id", "r", "--listen",
        f"127.0.0.1:{cluster.ports.take()}", "--engine", "vllm",
        "--engine-url", url, "--engine-ca-file", path],
        capture_output=True, text=True, timeout=10)
    assert out.returncode == 1
    assert reason in out.stderr and "ca" in out.stderr.lower()
