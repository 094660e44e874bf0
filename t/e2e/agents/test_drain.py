"""llmgwctl drain and undrain, under traffic and under kill -9."""

import json
import os
import signal

import pytest

from llmgw.fleet.cluster import PyReplica
from llmgw.proc import place
from llmgw.proc.wait import never, wait_for
from llmgw.speak import rpc
from llmgw.speak.traffic import Traffic


def record(agent, id):
    return agent.table().get(id, {})


def drained_by(agent, id):
    """The drain's owner; "" if it has none, None if it is not drained."""
    m = record(agent, id)
    return m.get("drain_owner", "") if m.get("draining") else None


class Drain:
    """A running llmgwctl drain."""

    def __init__(self, cluster, agent, id, *words):
        self.proc = cluster.run(
            f"drain-{len(cluster.procs)}",
            [place.binary("llmgwctl"), "-s", agent.control, "--json", "drain",
             id, *words])
        self.proc.told_to_end = True

    def lines(self):
        return [json.loads(x) for x in self.proc.text().splitlines()
                if x.startswith("{") and x.endswith("}")]

    def waits_with(self, active):
        wait_for(lambda: [x for x in self.lines()
                          if x.get("event") == "draining"
                          and x["active_requests"] == active],
                 f"the drain to wait for {active}")
        return self


def a_stream(replica, prompt="long", tokens=20):
    """A stream on that replica, past any gateway; it stands at its first
    token."""
    replica.faults(gate=1)
    call = replica.client.start(prompt, tokens, method=rpc.GENERATE)
    result = rpc.Result()
    result.add(next(call), 0)
    return call, result


def routable(nginx, *ids):
    wait_for(lambda: nginx.routable() == list(ids), f"{ids} alone")


def reported(agent, id, active):
    wait_for(lambda: record(agent, id).get("active_requests") == active,
             f"{active} requests of {id}")


# what a drain is for

def test_drain_under_load_loses_nothing(cluster, load, expect):
    nginx = cluster.fleet(3, replica={"token_delay": "5ms"})
    gw, r2 = cluster.gateway, cluster.replicas["r2"]
    traffic = Traffic(load, [nginx])

    def work_at(id, n):
        started = cluster.replicas[id].stats().started
        wait_for(lambda: cluster.replicas[id].stats().started > started + n,
                 f"work at {id}")
    work_at("r2", 10)
    out = gw.ctl("drain", "r2")
    assert out.returncode == 0, out.stderr
    after = r2.stats()
    assert (after.active_requests, after.draining) == (0, True)
    routable(nginx, "r1", "r3")
    assert nginx.replicas()["r2"]["draining"] is True

    work_at("r1", 10)
    work_at("r3", 10)
    traffic.check(expect)
    assert r2.stats().started == after.started


def test_drain_ends_with_the_last_stream(cluster, expect):
    cluster.fleet(2)
    gw, r1 = cluster.gateway, cluster.replicas["r1"]
    call, result = a_stream(r1)
    drain = Drain(cluster, gw, "r1").waits_with(1)
    never(lambda: not drain.proc.alive(), 0.3, "the drain's end")
    cluster.let_go()
    rpc.drain(call, into=result)
    result.check(expect("long", 20))
    assert drain.proc.wait() == 0
    assert drain.lines()[-1] == {"id": "r1", "active_requests": 0}
    assert drained_by(gw, "r1") == "operator"


def test_drain_timeout_says_what_is_left_and_the_drain_stays(cluster):
    nginx = cluster.fleet(2)
    gw, r1 = cluster.gateway, cluster.replicas["r1"]
    call, _ = a_stream(r1)
    out = gw.ctl("--json", "drain", "r1", "--drain-timeout", "300ms")
    assert out.returncode == 5
    assert "still has 1 running; it stays drained" in out.stderr
    last = json.loads(out.stdout.splitlines()[-1])
    assert last["code"] == "timeout" and last["active_requests"] == 1
    assert drained_by(gw, "r1") == "operator"
    routable(nginx, "r2")
    cluster.let_go()
    next(call)                      # the stream was not cut off
    call.cancel()
    assert gw.ctl("drain", "r1").returncode == 0


def test_undrain_brings_the_traffic_back(cluster, client, expect):
    nginx = cluster.fleet(2)
    gw, r1 = cluster.gateway, cluster.replicas["r1"]
    assert gw.ctl("drain", "r1").returncode == 0
    routable(nginx, "r2")
    assert "READY, draining (operator)" in gw.ctl("members").stdout
    out = gw.ctl("--json", "undrain", "r1")
    assert out.returncode == 0
    assert json.loads(out.stdout) == {"id": "r1", "draining": False}
    assert not r1.stats().draining
    routable(nginx, "r1", "r2")
    c = client(nginx)
    for i in range(40):
        c.stream(f"{i}", 2).check(expect(f"{i}", 2))
    assert r1.stats().started > 0


@pytest.mark.parametrize("asked, sealed", [
    ("r2", True), pytest.param("r1", False, marks=pytest.mark.soak)])
def test_replicas_agents_take_the_command_too(cluster, asked, sealed):
    """The cluster has a second gateway and a keyring."""
    keys = cluster.dir / "keys"
    keys.touch(mode=0o600)
    keys.write_text("a" * 64 + "\n")
    options = {"keyring": keys} if sealed else {}
    nginx = cluster.fleet(2, agent=options)
    cluster.agent("gw2", "gateway", **options)
    agent = cluster.agents[asked]
    wait_for(lambda: record(agent, "r1").get("service") == "READY"
             and record(agent, "r2").get("service") == "READY", "both")
    call, _ = a_stream(cluster.replicas["r1"])
    drain = Drain(cluster, agent, "r1").waits_with(1)
    routable(nginx, "r2")
    for a in cluster.agents.values():
        wait_for(lambda: drained_by(a, "r1") == "operator", f"{a.id}")
    call.cancel()
    assert drain.proc.wait() == 0
    assert agent.ctl("undrain", "r1").returncode == 0
    routable(nginx, "r1", "r2")


@pytest.mark.soak
def test_drain_of_what_drains_on_its_own_and_back(cluster):
    """The replica itself was told to drain: undrain ends that as well."""
    cluster.fleet(2)
    gw, r1 = cluster.gateway, cluster.replicas["r1"]
    r1.client.drain()
    wait_for(lambda: drained_by(gw, "r1") == "", "its own drain")
    assert gw.ctl("drain", "r1").returncode == 0
    assert drained_by(gw, "r1") == "operator"
    r1.client.undrain()             # its own Undrain does not end it
    wait_for(lambda: not r1.stats().draining, "its own word")
    never(lambda: drained_by(gw, "r1") != "operator", 0.3, "the drain ended")

    r1.client.drain()
    assert gw.ctl("undrain", "r1").returncode == 0
    assert drained_by(gw, "r1") is None
    assert not r1.stats().draining


# what is refused, and with which message

def test_exit_statuses(cluster):
    cluster.fleet(2)
    gw = cluster.gateway

    def said(status, words, text):
        out = gw.ctl(*words)
        assert out.returncode == status, (words, out)
        assert text in out.stderr + out.stdout, (words, out)
        assert len(out.stderr.splitlines()) == (status != 0), out

    said(4, ["drain", "nobody"], "no such member")
    said(4, ["undrain", "nobody"], "no such member")
    said(3, ["drain", "gw"], "it is a gateway")
    said(1, ["drain", "../r1"], "wrong")
    said(0, ["undrain", "r1"], "r1 gets new requests again")
    said(0, ["drain", "r1"], "r1 is drained")
    said(0, ["drain", "r1"], "r1 is drained")
    said(3, ["drain", "r2"], "the last")
    assert drained_by(gw, "r2") is None
    said(0, ["drain", "r2", "--force"], "r2 is drained")
    said(0, ["drain", "r2"], "r2 is drained")
    said(0, ["undrain", "r2"], "r2 gets new requests again")


@pytest.mark.soak
def test_undrain_of_what_is_not_reached(cluster):
    cluster.fleet(2)
    gw = cluster.gateway
    assert gw.ctl("drain", "r1").returncode == 0
    cluster.agents["r1"].kill()
    out = gw.ctl("undrain", "r1")
    assert out.returncode == 6 and "cannot be reached" in out.stderr
    assert drained_by(gw, "r1") == "operator"


@pytest.mark.soak
def test_last_but_for_a_replica_that_gets_none_is_the_last(cluster):
    cluster.fleet(2)
    gw = cluster.gateway
    cluster.replicas["r2"].stop()
    wait_for(lambda: record(gw, "r2")["service"] == "STOPPED", "r2's end")
    assert gw.ctl("drain", "r1").returncode == 3
    assert gw.ctl("drain", "r2").returncode == 0    # it gets none anyway


# an agent or a replica dies

@pytest.mark.soak
def test_drain_outlives_the_command(cluster):
    nginx = cluster.fleet(2)
    gw, r1 = cluster.gateway, cluster.replicas["r1"]
    call, _ = a_stream(r1)
    drain = Drain(cluster, gw, "r1").waits_with(1)
    drain.proc.kill()
    reported(gw, "r1", 1)
    assert drained_by(gw, "r1") == "operator"
    routable(nginx, "r2")
    call.cancel()
    reported(gw, "r1", 0)
    never(lambda: drained_by(gw, "r1") != "operator", 0.3, "the drain ended")
    assert gw.ctl("undrain", "r1").returncode == 0


@pytest.mark.soak
def test_replica_that_dies_under_it_is_drained(cluster):
    cluster.fleet(2)
    gw, r1 = cluster.gateway, cluster.replicas["r1"]
    call, _ = a_stream(r1)
    drain = Drain(cluster, gw, "r1").waits_with(1)
    r1.kill()
    assert drain.proc.wait() == 0
    assert drained_by(gw, "r1") == "operator"
    assert rpc.drain(call).code == "UNAVAILABLE"


def test_agent_that_dies_under_it_is_waited_for(cluster, tmp_path):
    """Its replica takes a while to report to the next agent."""
    cluster.fleet(2, agent={"state_dir": tmp_path})
    gw, r1 = cluster.gateway, cluster.replicas["r1"]
    call, _ = a_stream(r1)
    drain = Drain(cluster, gw, "r1").waits_with(1)
    epoch = record(gw, "r1")["epoch"]
    r1.proc.freeze()
    r1.agent.kill()
    r1.agent.start()
    wait_for(lambda: record(gw, "r1")["epoch"] > epoch, "its next life")
    assert record(gw, "r1")["service"] == "STARTING"
    never(lambda: not drain.proc.alive(), 0.3, "the drain's end")
    assert drained_by(gw, "r1") == "operator"
    r1.proc.thaw()
    reported(gw, "r1", 1)
    assert drain.proc.alive()
    call.cancel()
    assert drain.proc.wait() == 0


@pytest.mark.parametrize("sig", [
    signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.soak)])
def test_state_directory_keeps_an_operators_drain(cluster, tmp_path, sig):
    """All agents end, so only the state directory remembers."""
    cluster.fleet(2, agent={"state_dir": tmp_path})
    gw, r1 = cluster.gateway, cluster.replicas["r1"]
    assert gw.ctl("drain", "r1").returncode == 0
    assert (tmp_path / "r1.drain").read_text() == "operator\n"
    agents = list(cluster.agents.values())
    for a in agents:
        a.proc.send(sig)
    for a in agents:
        a.proc.wait()
    os.unlink(gw.members)
    for a in agents:
        a.start()
    wait_for(lambda: record(gw, "r1").get("service") == "READY"
             and record(gw, "r2").get("service") == "READY", "both")
    assert drained_by(gw, "r1") == "operator"
    assert drained_by(gw, "r2") is None
    assert r1.stats().draining

    assert gw.ctl("undrain", "r1").returncode == 0
    assert (tmp_path / "r1.drain").read_text() == "\n"
    assert not r1.stats().draining
    epoch = record(gw, "r1")["epoch"]
    r1.agent.kill()
    r1.agent.start()
    wait_for(lambda: record(gw, "r1")["epoch"] > epoch
             and record(gw, "r1")["service"] == "READY", "its next life")
    never(lambda: drained_by(gw, "r1") is not None, 0.3, "drained again")


@pytest.mark.soak
def test_others_remember_an_operators_drain(cluster):
    """Without a state directory."""
    cluster.fleet(2)
    gw, r1 = cluster.gateway, cluster.replicas["r1"]
    assert gw.ctl("drain", "r1").returncode == 0
    r1.agent.argv += ["--join", gw.gossip]
    epoch = record(gw, "r1")["epoch"]
    r1.agent.kill()
    r1.agent.start()
    wait_for(lambda: record(gw, "r1")["epoch"] > epoch
             and record(gw, "r1")["service"] == "READY", "its next life")
    wait_for(lambda: drained_by(gw, "r1") == "operator", "the drain")
    never(lambda: drained_by(gw, "r1") != "operator", 0.3, "the drain ended")
    assert gw.ctl("undrain", "r1").returncode == 0
    assert not r1.stats().draining


@pytest.mark.soak
def test_undrain_while_the_replica_is_not_there_yet(cluster, tmp_path):
    """An earlier agent told it to drain, which it reports too late."""
    r1 = cluster.pair("r1", agent_options={"state_dir": tmp_path})
    wait_for(lambda: record(r1.agent, "r1").get("service") == "READY",
             "r1")
    assert r1.agent.ctl("drain", "r1", "--force").returncode == 0
    r1.proc.freeze()
    r1.agent.kill()
    r1.agent.start()
    wait_for(lambda: drained_by(r1.agent, "r1") == "operator", "the agent")
    assert record(r1.agent, "r1")["service"] == "STARTING"
    assert r1.agent.ctl("undrain", "r1").returncode == 0
    r1.proc.thaw()
    wait_for(lambda: record(r1.agent, "r1")["service"] == "READY"
             and drained_by(r1.agent, "r1") is None, "r1 to be back")
    assert not r1.stats().draining


@pytest.mark.soak
@pytest.mark.parametrize("text", ["somebody\n", "operator", "\0\n"], ids=repr)
def test_state_that_makes_no_sense_is_one_warning(cluster, tmp_path, text):
    (tmp_path / "r1.drain").write_text(text)
    replica = cluster.pair("r1", agent_options={"state_dir": tmp_path})
    wait_for(lambda: record(replica.agent, "r1").get("service") == "READY",
             "r1")
    assert drained_by(replica.agent, "r1") is None
    assert replica.agent.proc.text().count("cannot be read from") == 1


# which replicas get Drain, and which do not

def test_new_process_under_a_drain_is_not_told(cluster):
    nginx = cluster.fleet(2)
    gw, r1 = cluster.gateway, cluster.replicas["r1"]
    assert gw.ctl("drain", "r1").returncode == 0
    before = record(gw, "r1")["replica_start"]
    r1.kill()
    r1.start()
    wait_for(lambda: record(gw, "r1")["replica_start"] > before
             and record(gw, "r1")["service"] == "READY", "r1 anew")
    assert gw.ctl("drain", "r1").returncode == 0    # nor by a second one
    never(lambda: r1.stats().draining, 0.3, "told to drain")
    assert drained_by(gw, "r1") == "operator"
    routable(nginx, "r2")
    r1.client.generate("probe", 1)      # direct requests are served
    assert gw.ctl("undrain", "r1").returncode == 0
    routable(nginx, "r1", "r2")


@pytest.mark.soak
def test_engine_that_knows_no_drain_is_held_back_by_gateways(cluster,
                                                             client):
    """It does not report either, so what still runs there is unknown."""
    cluster.agent("gw", "gateway")
    engines = [PyReplica(cluster, f"p{i}", {}) for i in (1, 2)]
    for e in engines:
        cluster.replicas[e.id] = e
        cluster.agent(e.id, grpc=e.target)
    gw, nginx = cluster.gateway, cluster.nginx()
    wait_for(lambda: nginx.routable() == ["p1", "p2"], "both")
    out = gw.ctl("--json", "drain", "p1", "--drain-timeout", "500ms")
    assert out.returncode == 5
    assert json.loads(out.stdout.splitlines()[-1])["active_requests"] is None
    assert "does not report" in out.stderr
    wait_for(lambda: "does not implement Drain" in
             cluster.agents["p1"].proc.text(), what="the agent's words")
    routable(nginx, "p2")
    for i in range(20):
        got = client(nginx).stream(f"{i}", 1)
        assert (got.code, got.replicas) == ("OK", ["p2"])
    assert gw.ctl("undrain", "p1").returncode == 0
    routable(nginx, "p1", "p2")


@pytest.mark.soak
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces")
def test_replica_that_is_not_on_loopback_is_told(cluster):
    """It accepts Drain only from its own host: it checks the peer."""
    space = cluster.run("space", ["unshare", "-n", "sh", "-c", "ip link set"
                                  " lo up && ip addr add 10.9.9.9/32 dev lo"
                                  " && echo up; exec sleep 1000"])
    wait_for(lambda: "up" in space.text(), "the namespace")
    within = ["nsenter", "-t", str(space.pid), "-n"]

    r1 = cluster.replica("r1", start=False)
    r1.argv[r1.argv.index("--listen") + 1] = f"10.9.9.9:{r1.port}"
    r1.argv.append("--insecure")
    r1.agent = cluster.agent("r1", grpc=f"10.9.9.9:{r1.port}", start=False)
    r1.argv = within + r1.argv + ["--agent", r1.agent.control]
    r1.agent.argv = within + r1.agent.argv
    r1.agent.start()
    r1.start()
    wait_for(lambda: record(r1.agent, "r1").get("service") == "READY",
             "r1")

    assert r1.agent.ctl("drain", "r1", "--force").returncode == 0
    assert r1.agent.ctl("undrain", "r1").returncode == 0
    assert drained_by(r1.agent, "r1") is None
    assert "did not accept" not in r1.agent.proc.text()


# the agent's shutdown drains in the same way

def test_sigterm_of_the_agent_drains_as_shutdown(cluster, client, expect):
    nginx = cluster.fleet(2)
    gw, r1 = cluster.gateway, cluster.replicas["r1"]
    call, result = a_stream(r1)
    reported(r1.agent, "r1", 1)
    r1.agent.proc.send(signal.SIGTERM)
    wait_for(lambda: drained_by(gw, "r1") == "shutdown", "the drain")
    routable(nginx, "r2")
    cluster.let_go()
    rpc.drain(call, into=result)
    result.check(expect("long", 20))
    assert r1.agent.proc.wait() == 0

    r1.agent.argv += ["--join", gw.gossip]
    r1.agent.start()                    # that drain ended with the old process
    routable(nginx, "r1", "r2")
