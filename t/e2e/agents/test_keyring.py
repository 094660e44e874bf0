"""Sealed gossip between real agents: keys, rotation, and what is dropped."""

import base64
import json
import os
import signal
import socket

import pytest

from llmgw.proc.place import SLOW
from llmgw.proc.seed import rng
from llmgw.proc.wait import never, wait_for

keys = rng("keys")


def new_key():
    return base64.b64encode(keys.randbytes(32)).decode()


def keyring(cluster, name, *keys):
    """Writes a file with these keys; the first one seals."""
    path = cluster.dir / f"{name}.keys"
    path.touch(mode=0o600)
    path.write_text("".join(f"{k}\n" for k in keys))
    return str(path)


def status(agent):
    """Waits until it answers: it may just have been started."""
    def ask():
        out = agent.ctl("--json", "status")
        return out.stdout if out.returncode == 0 else None
    return json.loads(wait_for(ask, f"an answer of {agent.id}"))


def dropped(agent):
    """The drop counters that are not zero."""
    return {k: n for k, n in status(agent)["counters"]["dropped"].items()
            if n}


def states(agent):
    return {id: m["state"] for id, m in agent.table().items()}


def ids(agent):
    out = agent.ctl("--json", "keyring", "list")
    assert out.returncode == 0, out.stderr
    return {k["id"]: k["primary"] for k in json.loads(out.stdout)["keys"]}


def ctl(agent, *words):
    out = agent.ctl(*words)
    assert out.returncode == 0, out.stderr


def listener(cluster):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", cluster.ports.take()))
    s.settimeout(10 * SLOW)
    cluster.closers.append(s.close)
    return s


def address(agent):
    host, port = agent.gossip.rsplit(":", 1)
    return host, int(port)


@pytest.mark.parametrize("theirs", [
    "key", pytest.param("none", marks=pytest.mark.soak),
    pytest.param("cluster", marks=pytest.mark.soak)])
def test_strangers_are_never_members(cluster, theirs):
    """Another key, no key, another cluster name: counted, not answered."""
    key = new_key()
    gw = cluster.agent("gw", "gateway", keyring=keyring(cluster, "gw", key))
    options = {
        "key": {"keyring": keyring(cluster, "other", new_key())},
        "none": {},
        "cluster": {"keyring": keyring(cluster, "same", key)},
    }[theirs]
    reason = {"key": "wrong_key", "none": "plain",
              "cluster": "other_cluster"}[theirs]

    stranger = cluster.agent("r1", start=False, **options)
    if theirs == "cluster":
        stranger.argv += ["--cluster", "test"]
    stranger.start()
    wait_for(lambda: dropped(gw).get(reason, 0) >= 3,
             f"three drops by {reason}")
    assert set(dropped(gw)) == {reason}
    assert states(gw) == {"gw": "ALIVE"}

    got = status(stranger)
    assert states(stranger) == {"r1": "ALIVE"}
    assert got["joined"] is False
    assert got["counters"]["datagrams_received"] == 0
    assert status(gw)["counters"]["datagrams_sent"] == 0
    stranger.kill()                 # its goodbye would wait to be heard


@pytest.mark.soak
def test_agent_without_a_key_drops_what_is_sealed(cluster):
    gw = cluster.agent("gw", "gateway")
    cluster.agent("r1", keyring=keyring(cluster, "r1", new_key()))
    wait_for(lambda: dropped(gw).get("sealed", 0) >= 2, "two drops")
    assert states(gw) == {"gw": "ALIVE"}


def five(cluster, key):
    """Agents that talk often."""
    agents = [cluster.agent(f"a{i}", "gateway" if i == 0 else "replica",
                            keyring=keyring(cluster, f"a{i}", key),
                            protocol_period="100ms", ping_timeout="50ms")
              for i in range(5)]
    whole = {f"a{i}": "ALIVE" for i in range(5)}
    wait_for(lambda: all(states(a) == whole for a in agents),
             "five members")
    return agents


def wait_heard(agent):
    """Waits for two more datagrams that others sealed and it opened."""
    def received():
        return status(agent)["counters"]["datagrams_received"]
    before = received()
    wait_for(lambda: received() > before + 1, f"datagrams to {agent.id}")


def assert_nothing_was_lost(agents):
    """No datagram.  A suspicion may be the machine's fault."""
    for a in agents:
        assert dropped(a) == {}
        wait_for(lambda: set(states(a).values()) == {"ALIVE"},
                 what="all to be ALIVE")


def test_keys_rotate_by_command(cluster):
    """Add at all, use at all, remove at all; no member is ever suspected."""
    agents = five(cluster, new_key())
    key, order = new_key(), rng("the order of agents")
    [old] = ids(agents[0])
    for a in order.sample(agents, 5):
        ctl(a, "keyring", "add", key)
    [new] = set(ids(agents[0])) - {old}
    assert ids(agents[0]) == {old: True, new: False}
    for verb, id in (("use", new), ("remove", old)):
        for a in order.sample(agents, 5):
            ctl(a, "keyring", verb, id)
            wait_heard(a)           # by others, whose keys are mixed
    assert all(ids(a) == {new: True} for a in agents)
    for a in agents:
        wait_heard(a)
    assert_nothing_was_lost(agents)

    # The files have the keys that are in memory: a restart reads them.
    agents[4].stop(signal.SIGQUIT)
    agents[4].start()
    wait_for(lambda: states(agents[4]) == {f"a{i}": "ALIVE"
                                           for i in range(5)}, "a4")
    assert ids(agents[4]) == {new: True}


@pytest.mark.soak
def test_keys_rotate_by_file_and_sighup(cluster):
    old, new = new_key(), new_key()
    agents = five(cluster, old)
    for keys in ([old, new], [old, "* " + new], [new]):
        for i, a in enumerate(agents):
            keyring(cluster, f"a{i}", *keys)
            a.proc.send(signal.SIGHUP)
            want = [k.startswith("* ") or len(keys) == 1 for k in keys]
            if not any(want):
                want[0] = True
            wait_for(lambda: list(ids(a).values()) == want, "the keys")
            wait_heard(a)
    assert_nothing_was_lost(agents)


def test_broken_file_leaves_the_keys_as_they_are(cluster):
    agent = cluster.agent("gw", "gateway",
                          keyring=keyring(cluster, "gw", new_key()))
    before = wait_for(lambda: agent.table() and ids(agent), "the agent")
    keyring(cluster, "gw", "nonsense")
    agent.proc.send(signal.SIGHUP)
    wait_for(lambda: "line 1: no key" in agent.proc.text(), "the complaint")
    assert ids(agent) == before
    assert agent.proc.alive()


@pytest.mark.soak
def test_file_that_others_may_read_is_refused(cluster):
    path = keyring(cluster, "gw", new_key())
    os.chmod(path, 0o640)
    agent = cluster.agent("gw", "gateway", keyring=path)
    agent.proc.told_to_end = True
    assert agent.proc.wait() == 1
    last = agent.proc.text().splitlines()[-1]
    assert path in last and "0640" in last and "chmod 600" in last


def recorded_join(cluster, key):
    """A datagram that r1 sealed for a seed, which recorded it."""
    ear = listener(cluster)
    cluster.agent("r1", keyring=keyring(cluster, "r1", key),
                  join=[f"127.0.0.1:{ear.getsockname()[1]}"])
    return ear.recvfrom(2048)[0]


def test_replayed_datagrams_are_dropped(cluster):
    key = new_key()
    gw = cluster.agent("gw", "gateway", keyring=keyring(cluster, "gw", key))
    wait_for(lambda: gw.table(), "the agent")
    datagram = recorded_join(cluster, key)
    mouth = listener(cluster)

    mouth.sendto(datagram, address(gw))     # late, but not seen before
    wait_for(lambda: states(gw) == {"gw": "ALIVE", "r1": "ALIVE"}, "r1")
    before = told(gw)
    assert dropped(gw) == {}

    for n in range(1, 51):
        mouth.sendto(datagram, address(gw))
    wait_for(lambda: dropped(gw) == {"replayed": n}, f"{n} drops")
    assert told(gw) == before
    assert_unanswered(mouth)


def told(agent):
    """What that datagram says of members."""
    return {id: (m["address"], m["epoch"]) for id, m in agent.table().items()}


def assert_unanswered(mouth):
    mouth.settimeout(0.2)
    with pytest.raises(TimeoutError):
        mouth.recvfrom(2048)


def test_changed_datagrams_are_dropped(cluster):
    """A flipped bit in every byte, every length, and garbage."""
    key = new_key()
    gw = cluster.agent("gw", "gateway", keyring=keyring(cluster, "gw", key))
    wait_for(lambda: gw.table(), "the agent")
    datagram = recorded_join(cluster, key)
    header, noise = 5 + len("default"), rng("changes of a datagram")
    mouth = listener(cluster)
    before = gw.table()

    sent = 0
    for i in range(len(datagram)):
        bad = bytearray(datagram)
        bad[i] ^= 1 << noise.randrange(8)
        mouth.sendto(bad, address(gw))
        mouth.sendto(datagram[:i], address(gw))
        mouth.sendto(datagram[:header] + noise.randbytes(i),
                     address(gw))
        sent += 3
        if i % 16 == 0:             # no faster than they are read
            wait_for(lambda: sum(dropped(gw).values()) == sent,
                     f"{sent} drops")
    mouth.sendto(datagram + b"x", address(gw))
    plain = datagram[:3] + b"\0" + datagram[4:]
    mouth.sendto(plain, address(gw))
    sent += 2
    got = wait_for(lambda: sum(dropped(gw).values()) == sent and dropped(gw),
                   f"{sent} drops")

    assert got["forged"] > len(datagram)
    assert got["magic"] == 2
    assert got["version"] == 1
    assert got["length"] >= header + 44
    assert got["wrong_key"] >= 4
    assert got["plain"] >= 1
    assert "replayed" not in got
    assert gw.table() == before
    assert status(gw)["counters"]["datagrams_sent"] == 0
    assert_unanswered(mouth)

    # The unchanged one is still accepted.
    mouth.sendto(datagram, address(gw))
    wait_for(lambda: states(gw) == {"gw": "ALIVE", "r1": "ALIVE"}, "r1")


@pytest.mark.soak
def test_injected_suspicion_is_refuted_under_seal(cluster):
    agents = five(cluster, new_key())
    ctl(agents[0], "inject-suspect", "a3")
    wait_for(lambda: all(a.table().get("a3", {}).get("incarnation", 0) >= 1
                         and states(a)["a3"] == "ALIVE" for a in agents),
             "the refutation")
    assert status(agents[3])["counters"]["refutations"] >= 1
    never(lambda: [a.id for a in agents if "DEAD" in states(a).values()], 1,
          "somebody dead")
