"""The daemons' command lines, and the replica as a server by itself."""

import os
import shutil
import signal
import subprocess

import pytest

from llmgw.fleet import supervised
from llmgw.proc import place
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc

PROGRAMS = ["llmgw-agent", "llmgw-replica", "llmgw-simreplica", "llmgwctl",
            "llmgw-client"]


def run(*argv):
    return subprocess.run([place.binary(argv[0]), *argv[1:]],
                          capture_output=True, text=True, timeout=10)


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_and_version(program):
    out = run(program, "--help")
    assert out.returncode == 0 and program in out.stdout
    out = run(program, "--version")
    assert out.returncode == 0
    assert (place.ROOT / "VERSION").read_text().strip() in out.stdout


@pytest.mark.parametrize("argv", [
    ["llmgw-replica"],
    ["llmgw-replica", "--id", "r1"],
    ["llmgw-replica", "--id", "a b", "--listen", "127.0.0.1:1"],
    ["llmgw-replica", "--id", "-x", "--listen", "127.0.0.1:1"],
    ["llmgw-replica", "--id", "x" * 64, "--listen", "127.0.0.1:1"],
    ["llmgw-replica", "--id", "r1", "--listen", "here"],
    ["llmgw-replica", "--id", "r1", "--listen", "127.0.0.1:99999"],
    ["llmgw-replica", "--id", "r1", "--listen", "127.0.0.1:1"],
    ["llmgw-replica", "--id", "r1", "--listen", "127.0.0.1:1", "--engine",
     "sim", "--token-delay", "50"],
    ["llmgw-simreplica", "--id", "r1", "--listen", "127.0.0.1:1",
     "--error-rate", "1.5"],
    ["llmgw-replica", "--id", "r1", "--listen", "127.0.0.1:1", "--engine",
     "sim", "--max-capacity", "-1"],
    ["llmgw-replica", "--id", "r1", "--listen", "127.0.0.1:1", "--engine",
     "sim", "--max-capacity", "some"],
    ["llmgw-replica", "--id", "r1", "--listen", "127.0.0.1:1",
     "--engine", "gpt"],
    ["llmgw-simreplica", "--id", "r1", "--listen", "127.0.0.1:1",
     "--engine", "vllm"],
    ["llmgw-replica", "--id", "r1", "--listen", "127.0.0.1:1",
     "--engine", "vllm"],
    ["llmgw-replica", "--id", "r1", "--listen", "127.0.0.1:1", "--engine",
     "sim", "--engine-url", "http://127.0.0.1:8000"],
    ["llmgw-replica", "--id", "r1", "--listen", "127.0.0.1:1", "--engine",
     "vllm", "--engine-url", "http://127.0.0.1:8000", "--token-delay", "1s"],
    ["llmgw-replica", "--id", "r1", "--listen", "127.0.0.1:1", "--engine",
     "sim", "--exact", "off"],
    ["llmgw-replica", "--id", "r1", "--listen", "127.0.0.1:1", "--engine",
     "sim", "--tls-cert", "x"],
    ["llmgw-replica", "--id", "r1", "--listen", "127.0.0.1:1", "--engine",
     "sim", "--tls-client-name", "gw*"],
    ["llmgw-replica", "--nonsense"],
    ["llmgw-agent"],
    ["llmgw-agent", "--id", "a", "--role", "king", "--gossip",
     "127.0.0.1:1"],
    ["llmgw-agent", "--id", "a", "--role", "replica", "--gossip",
     "0.0.0.0:20000"],
    ["llmgw-agent", "--id", "a", "--role", "replica", "--gossip",
     "127.0.0.1:9000"],
    ["llmgw-agent", "--id", "a", "--role", "gateway", "--gossip",
     "127.0.0.1:1", "--tls-ca", "x"],
    ["llmgwctl"],
    ["llmgwctl", "dance"],
    ["llmgw-client"],
    ["llmgw-client", "infer"],
    ["llmgw-client", "infer", "--gateway", "127.0.0.1:1", "--prompt", "x",
     "--max-tokens", "1", "--tls-name", "gw"],
    ["llmgw-client", "infer", "--gateway", "127.0.0.1:1", "--prompt", "x",
     "--max-tokens", "many"],
], ids=" ".join)
def test_bad_command_line(argv):
    """It prints one line on standard error and exits with 2."""
    out = run(*argv)
    assert out.returncode == 2, out
    assert len(out.stderr.splitlines()) == 1, out.stderr
    assert out.stdout == ""


def test_options_from_a_file(cluster, client):
    port = cluster.ports.take()
    conf = cluster.dir / "replica.conf"
    conf.write_text(f"# a replica\nid filed\nlisten 127.0.0.1:{port}\n"
                    "model-version v42\nengine sim\ntoken-delay 1ms\n")
    cluster.run("replica-filed", [place.binary("llmgw-replica"), "-c",
                                  str(conf), "--model-version", "v43"])
    assert client(f"127.0.0.1:{port}").stats().model_version == "v43"


def test_a_replica_without_an_engine_says_what_to_give():
    out = run("llmgw-replica", "--id", "r1", "--listen", "127.0.0.1:1")
    assert out.returncode == 2
    for way in ("--engine-url", "--engine-command", "--engine llama",
                "--engine sim"):
        assert way in out.stderr


def test_a_simulated_engine_has_the_pid_and_the_words_it_was_started_with(
        cluster):
    """And is a program of its own: nothing of it is in llmgw-replica."""
    one = cluster.replica("r1", token_delay="1ms")
    one.stats()
    assert os.readlink(f"/proc/{one.proc.pid}/exe") \
        == place.binary("llmgw-simreplica")
    assert supervised.cmdline(one.proc.pid) == list(map(str, one.argv))
    shown = run("llmgw-replica", "--help").stdout
    assert "--token-delay" not in shown and "--stall-timeout" in shown


def test_a_simulated_engine_that_is_not_installed_says_which_package_has_it(
        tmp_path):
    copy = shutil.copy(place.binary("llmgw-replica"), tmp_path)
    conf = tmp_path / "r1.conf"
    conf.write_text("engine model\nbeta-coeffs 1,0,0\n")
    out = subprocess.run([copy, "-c", conf, "--id", "r1", "--listen",
                          "127.0.0.1:1"], capture_output=True, text=True,
                         timeout=10)
    assert out.returncode == 2
    assert out.stderr == (f'llmgw-replica: --engine model: "{tmp_path}/'
                          'llmgw-simreplica": No such file or directory; it '
                          'is in the package llmgw-tools\n')


def test_port_that_is_taken(cluster):
    taken = cluster.replica("a")
    taken.stats()
    out = run("llmgw-replica", "--id", "b", "--engine", "sim", "--listen",
              taken.target)
    assert out.returncode != 0
    assert taken.target in out.stderr


@pytest.mark.soak
def test_ctl_without_an_agent(cluster):
    out = run("llmgwctl", "-s", str(cluster.dir / "nobody.sock"), "members")
    assert out.returncode not in (0, 2)
    assert "nobody.sock" in out.stderr


@pytest.mark.soak
def test_ctl_members_for_people(cluster):
    cluster.agent("gw", "gateway")
    cluster.pair("r1")
    wait_for(lambda: cluster.gateway.table().get("r1", {})
             .get("service") == "READY", "r1")
    out = cluster.gateway.ctl("members")
    assert out.returncode == 0
    line = next(x for x in out.stdout.splitlines() if "r1" in x.split())
    assert "ALIVE" in line and "READY" in line
    assert cluster.gateway.ctl("status").returncode == 0


# the replica

@pytest.mark.timed
def test_replica_streams_at_its_pace(cluster, client, expect):
    replica = cluster.replica("a", token_delay="20ms")
    got = client(replica).generate("direct", 10)
    got.check(expect("direct", 10))
    assert 0.15 < got.seconds < 10


def test_replica_continues_anywhere(cluster, client, expect):
    c = client(cluster.replica("a", token_delay="0ms"))
    whole = expect("parts", 20)
    for already in (0, 1, 7, 19):
        got = c.generate("parts", 20, already=already)
        assert got.tokens == whole[already:]
        assert got.finals == [19 - already]


def test_replica_counts(cluster, client):
    replica = cluster.replica("a", token_delay="1ms")
    c = client(replica)
    c.generate("x", 4)
    cluster.hold(1)
    call = c.start("x", 5, method=rpc.GENERATE)
    next(call)
    assert replica.stats().active_requests == 1
    call.cancel()
    wait_for(lambda: replica.stats().cancelled == 1, "the cancel")
    replica.faults(error_rate=1.0)
    assert c.generate("x", 1).code == "UNAVAILABLE"
    got = replica.stats()
    assert (got.started, got.finished, got.failed) == (2, 1, 1)
    assert got.active_requests == 0
    assert got.tokens == 5


def test_replica_refuses_above_its_capacity(cluster, client):
    replica = cluster.replica("a", token_delay="1ms", max_capacity=2)
    cluster.hold(1)
    c = client(replica)
    calls = [c.start("x", 5, method=rpc.GENERATE) for _ in range(2)]
    for call in calls:
        next(call)
    assert c.generate("x", 1).code == "RESOURCE_EXHAUSTED"
    calls[0].cancel()
    wait_for(lambda: replica.stats().active_requests == 1, "a free slot")
    assert c.generate("x", 1).code == "OK"
    calls[1].cancel()


def test_replica_drains(cluster, client):
    replica = cluster.replica("a", token_delay="1ms")
    cluster.hold(1)
    c = client(replica)
    call = c.start("x", 5, method=rpc.GENERATE)
    next(call)
    assert c.drain().success
    got = c.generate("x", 1)
    assert got.code == "UNAVAILABLE"
    assert got.trailers["llmgw-draining"] == "1"
    cluster.let_go()
    assert rpc.drain(call).code == "OK"
    assert c.undrain().success
    assert c.generate("x", 1).code == "OK"


@pytest.mark.soak
def test_replica_ends_after_its_streams(cluster, client):
    replica = cluster.replica("a", token_delay="1ms")
    cluster.hold(1)
    c = client(replica)
    call = c.start("x", 5, method=rpc.GENERATE)
    next(call)
    replica.proc.send(signal.SIGTERM)
    wait_for(lambda: replica.stats().draining, "the SIGTERM")
    cluster.let_go()
    assert rpc.drain(call).code == "OK"
    assert replica.proc.wait(2) == 0


@pytest.mark.soak
def test_second_sigterm_ends_it_now(cluster, client):
    replica = cluster.replica("a", token_delay="1ms")
    cluster.hold(1)
    c = client(replica)
    call = c.start("x", 5, method=rpc.GENERATE)
    next(call)
    replica.proc.send(signal.SIGTERM)
    wait_for(lambda: replica.stats().draining, what="the first SIGTERM")
    replica.proc.send(signal.SIGTERM)
    got = rpc.drain(call)
    assert got.code == "UNAVAILABLE"
    assert got.trailers["llmgw-draining"] == "1"
    assert replica.proc.wait(2) == 0


@pytest.mark.soak
@pytest.mark.alone
def test_replica_of_many_streams(cluster, load, expect):
    """One process serves 5,000 streams at once."""
    replica = cluster.replica("a", token_delay="100ms")
    cluster.hold()
    work = load(replica, [["many", 3]] * 5000, method="generate",
                connections=10, seconds=120)
    wait_for(lambda: replica.stats().active_requests == 5000,
             "5,000 streams at once", takes=60)
    cluster.let_go()
    for got in work.results():
        got.check(expect("many", 3))


@pytest.mark.soak
def test_faults_answer_with_all_of_them(cluster):
    replica = cluster.replica("a", token_delay="7ms")
    got = replica.faults(stall=False)
    assert got.token_delay_ms == 7
    assert replica.faults(first_token_delay_ms=3).first_token_delay_ms == 3
    assert replica.faults().first_token_delay_ms == 3


@pytest.mark.parametrize("argv, ways", [
    (["llmgw-replica", "--id", "r1", "--engine", "sim", "--listen",
      "0.0.0.0:20000"],
     ["--tls-cert", "--tls-client-ca", "llmgwctl certs", "--insecure"]),
    (["llmgw-agent", "--id", "a", "--role", "gateway", "--gossip",
      "192.0.2.1:20000"], ["--keyring FILE", "openssl rand", "--insecure"]),
], ids=["replica", "agent"])
def test_what_other_hosts_reach_is_locked(argv, ways):
    """It does not start, and says both ways out."""
    out = run(*argv)
    assert out.returncode == 2, out
    assert len(out.stderr.splitlines()) == 1, out.stderr
    assert f'"{argv[-1]}" is not loopback' in out.stderr
    for way in ways:
        assert way in out.stderr


def test_check_looks_at_the_options_and_starts_nothing(tmp_path):
    argv = ["llmgw-agent", "--check", "--id", "a", "--role", "gateway",
            "--control", tmp_path / "a.sock", "--gossip"]
    out = run(*argv, "127.0.0.1:20000")
    assert (out.returncode, out.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []
    out = run(*argv, "192.0.2.1:20000")
    assert out.returncode == 2
    assert "is not loopback" in out.stderr
