"""All other agents are gone, and the replicas are well: nginx serves on."""

import threading

import pytest

from llmgw.proc.wait import wait_for

# Gossip that declares a member dead within a second or so.
QUICK = {"protocol_period": "100ms", "ping_timeout": "40ms",
         "suspect_timeout": "400ms"}
IDS = ("r1", "r2", "r3")


def view(nginx):
    return nginx.status()["pools"][0]["view"]


def all_dead(cluster):
    table = cluster.gateway.table()
    return {table.get(id, {}).get("state") for id in IDS} == {"DEAD"}


class Asker:
    """Sends requests without a pause and records those not served."""

    def __init__(self, client):
        self.client = client
        self.asked, self.wrong = 0, []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._ask)

    def _ask(self):
        while not self.ended.is_set():
            self.asked += 1
            prompt = f"prompt {self.asked}"
            got = self.client.stream(prompt, 3)
            if got.code != "OK":
                self.wrong.append((self.asked, got.trailers))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def check(self):
        assert self.asked > 20
        assert not self.wrong, (len(self.wrong), self.asked, self.wrong[:3])


def test_gateway_cut_off_from_gossip_serves_on(cluster, client, expect):
    """All other agents are frozen: dead by timeout, but replicas serve."""
    nginx = cluster.fleet(3, agent=QUICK)
    c = client(nginx)
    for id in IDS:
        cluster.agents[id].proc.freeze()
    try:
        wait_for(lambda: all_dead(cluster), "all members to be dead",
                 takes=4)
        wait_for(lambda: view(nginx)["isolated"],
                 "the agent to be isolated")
        for i in range(10):
            c.stream(f"after {i}", 5).check(expect(f"after {i}", 5))
    finally:
        for id in IDS:
            cluster.agents[id].proc.thaw()
    wait_for(lambda: nginx.routable() == list(IDS), "all to be back")
    wait_for(lambda: not view(nginx)["isolated"], "the isolation to end")


def isolated_by_kill(cluster, nginx):
    """The agents of all replicas are gone, and the gateway's knows it."""
    for id in IDS:
        cluster.agents[id].kill()
    wait_for(lambda: all_dead(cluster), "all members to be dead", takes=4)
    wait_for(lambda: view(nginx)["isolated"], "the agent to be isolated")


def test_gateways_agent_restarted_in_isolation(cluster, client, expect):
    """Its first segment routes to all replicas that nginx had; isolation
    ends when the replicas' agents are back."""
    nginx = cluster.fleet(3, agent=QUICK)
    with Asker(client(nginx)) as asker:
        isolated_by_kill(cluster, nginx)
        for _ in range(2):
            cluster.gateway.kill()
            cluster.gateway.start()
            wait_for(lambda: all_dead(cluster), "the dead to be listed")
            assert view(nginx)["isolated"]
            had = asker.asked
            wait_for(lambda: asker.asked > had + 50, "requests")
        for id in IDS:
            cluster.agents[id].start()
        wait_for(lambda: nginx.routable() == list(IDS), "all to be back")
        wait_for(lambda: not view(nginx)["isolated"],
                 "the isolation to end")
    asker.check()
    client(nginx).stream("after", 5).check(expect("after", 5))


@pytest.mark.soak
@pytest.mark.first
def test_the_dead_are_judged_by_their_connections(cluster, client, expect):
    """In isolation the replicas end one after the other: streams go to those
    that are left, and without any they are refused."""
    nginx = cluster.fleet(3, agent=QUICK)
    isolated_by_kill(cluster, nginx)
    cluster.gateway.kill()
    cluster.gateway.start()
    wait_for(lambda: all_dead(cluster), "the dead to be listed")
    c = client(nginx)
    for id in ("r1", "r2"):
        cluster.replicas[id].kill()
        for i in range(10):
            got = c.stream(f"to {i}", 3, takes=4)
            got.check(expect(f"to {i}", 3))
    cluster.replicas["r3"].kill()
    for i in range(5):
        got = c.stream(f"to nobody {i}", 3, takes=4)    # open circuits
        assert got.code == "UNAVAILABLE", got
