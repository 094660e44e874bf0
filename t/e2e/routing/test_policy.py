"""llmgw_policy: which of the replicas that may serve does."""

import collections

import pytest

from llmgw.engine.report_connection import Reporter
from llmgw.fleet.native import SESSION, generate, grpc, started
from llmgw.proc.wait import wait_for

LOG = {"http": "log_format route '$llmgw_replica $llmgw_route';",
       "location": "access_log @dir@/route.log route;"}

# A step takes 2 ms, whatever is in it.
MODEL = {"engine": "model", "latency_model": "linear", "token_delay": None,
         "alpha_coeffs": "0,0,0", "beta_coeffs": "2000,0,0"}


def routes(nginx, n):
    """(replica, route) of all n requests so far."""
    path = nginx.dir / "route.log"
    wait_for(lambda: path.exists() and path.read_text().count("\n") >= n,
             f"{n} lines in the log")
    return [tuple(line.split()) for line in path.read_text().splitlines()]


def shares(nginx, n):
    return collections.Counter(replica for replica, _ in routes(nginx, n))


# round_robin

def test_turns_are_taken_over_four_workers(cluster, client, expect):
    nginx = cluster.fleet(4, nginx={"policy": "round_robin", "workers": 4,
                                    **LOG})
    clients = [client(nginx) for _ in range(8)]
    for i in range(40):
        clients[i % 8].stream(f"prompt {i}", 3).check(expect(f"prompt {i}", 3))

    assert set(shares(nginx, 40).values()) == {10}
    assert {route for _, route in routes(nginx, 40)} == {"policy"}


@pytest.mark.soak
def test_turns_are_taken_by_requests_at_once(cluster, load, expect):
    nginx = cluster.fleet(4, nginx={"policy": "round_robin", **LOG})
    jobs = [[f"prompt {i}", 20] for i in range(100)]
    for (prompt, n), got in zip(jobs, load(nginx, jobs).results()):
        got.check(expect(prompt, n))
    assert set(shares(nginx, 100).values()) == {25}


def test_those_that_are_left_take_turns_after_a_death(cluster, client, load,
                                                      expect):
    nginx = cluster.fleet(4, nginx={"policy": "round_robin", **LOG})
    cluster.hold(2)
    jobs = [[f"prompt {i}", 5] for i in range(40)]
    work = load(nginx, jobs)
    work.running()
    cluster.replicas["r2"].kill()
    wait_for(lambda: nginx.routable() == ["r1", "r3", "r4"], "its end")
    cluster.let_go()
    for (prompt, n), got in zip(jobs, work.results()):
        got.check(expect(prompt, n))

    before = shares(nginx, 40)
    c = client(nginx)
    for i in range(30):
        c.stream(f"more {i}", 3).check(expect(f"more {i}", 3))
    after = shares(nginx, 70)
    assert {id: after[id] - before[id] for id in after} == {
        "r1": 10, "r3": 10, "r4": 10, **({"r2": 0} if "r2" in after else {})}


@pytest.mark.soak
def test_full_replicas_lose_their_turn_and_the_queue_serves_all(
        cluster, load, expect):
    """Two places at each of three; 30 requests wait and are granted."""
    nginx = cluster.fleet(3, nginx={"policy": "round_robin", **LOG},
                          replica={"max_capacity": 2})
    jobs = [[f"prompt {i}", 3] for i in range(30)]
    for (prompt, n), got in zip(jobs, load(nginx, jobs).results()):
        got.check(expect(prompt, n))
    assert {route for _, route in routes(nginx, 30)} == {"policy"}


# least_loaded

@pytest.fixture
def reported(cluster):
    """reported(policy): nginx, and reporters of r1 to r3, whose replicas say
    nothing themselves."""
    def make(policy):
        cluster.agent("gw", "gateway")
        reporters = {}
        for id in ("r1", "r2", "r3"):
            replica = cluster.replica(id, token_delay="1ms")
            agent = cluster.agent(id, grpc=replica.target)
            reporters[id] = Reporter(cluster, agent, running=0, waiting=0,
                                     kv_permille=0, max_capacity=0)
        nginx = cluster.nginx(policy=policy, **LOG)
        wait_for(lambda: len(nginx.routable()) == 3, "three replicas")
        return nginx, reporters
    return make


def report(nginx, reporters, **waiting):
    """What is new is passed on at once, and so is young: each number is."""
    for id, n in waiting.items():
        reporters[id].say(waiting=n)

    def heard():
        seen = nginx.replicas()
        return all((seen[id]["engine"] or {}).get("waiting") == n
                   for id, n in waiting.items())
    wait_for(heard, "nginx to hear the reports")


@pytest.mark.parametrize("policy", [
    "least_loaded",
    pytest.param("weighted queue-depth:1", marks=pytest.mark.soak)])
def test_requests_follow_what_replicas_report(cluster, client, reported,
                                              policy):
    nginx, reporters = reported(policy)
    c = client(nginx)
    for turn, least in enumerate(("r2", "r3", "r1"), 1):
        report(nginx, reporters, **{id: turn if id == least else 20 * turn
                                    for id in reporters})
        for i in range(5):
            assert c.stream(f"{least} {i}", 2).replicas == [least]
    assert {route for _, route in routes(nginx, 15)} == {"policy"}


def test_a_burst_does_not_go_to_the_shortest_queue_alone(cluster, load,
                                                         reported):
    """Between two reports the queue is carried on by what was sent: of 40
    requests at once, 4 fewer go to each of the two that had 4 more."""
    nginx, reporters = reported("weighted queue-depth:1")
    cluster.hold(1)
    report(nginx, reporters, r1=6, r2=2, r3=6)
    work = load(nginx, [[f"prompt {i}", 3] for i in range(40)])
    work.running()
    cluster.let_go()
    assert all(got.code == "OK" for got in work.results())
    got = shares(nginx, 40)
    assert abs(got["r1"] - got["r3"]) <= 1, got
    assert 3 <= got["r2"] - got["r1"] <= 5, got


# weighted

def test_what_shares_a_prefix_goes_where_it_is(cluster, client, expect):
    """The first of a conversation is cold; the rest follow it."""
    nginx = cluster.fleet(3, nginx={"policy": "weighted", "workers": 2, **LOG},
                          replica=MODEL)
    clients = [client(nginx) for _ in range(4)]
    homes = []
    for talk in range(4):
        text = f"{talk} system prompt " * 40
        for turn in range(4):
            got = clients[turn].stream(text, 2).check(expect(text, 2))
            text += f"answer and question {turn} " * 5
            homes.append((talk, got.replicas[0]))

    assert len(set(homes)) == 4, homes
    # two workers write to the log, so its order is not theirs
    assert collections.Counter(route for _, route in routes(nginx, 16)) == {
        "cold": 4, "policy": 12}


@pytest.mark.soak
def test_new_prompts_spread_by_no_hit_lru(cluster, client):
    nginx = cluster.fleet(3, nginx={"policy": "weighted no_hit_lru:1", **LOG})
    c = client(nginx)
    for i in range(12):
        c.stream(f"{i} is another prompt " * 20, 2)
    assert set(shares(nginx, 12).values()) == {4}


# whatever the policy

def test_native_passes_obey(cluster, client, expect):
    nginx = cluster.fleet(4, nginx=grpc(SESSION, policy="round_robin"))
    c = client(nginx)
    for i in range(20):
        generate(c, "one session", f"prompt {i}", 3).check(
            expect(f"prompt {i}", 3))
    assert started(cluster) == {"r1": 5, "r2": 5, "r3": 5, "r4": 5}


def test_a_reload_changes_the_policy_and_streams_go_on(cluster, client, load,
                                                       expect):
    nginx = cluster.fleet(3, nginx=LOG)
    cluster.hold(2)
    jobs = [[f"prompt {i}", 5] for i in range(12)]
    work = load(nginx, jobs)
    work.running()

    for policy, route in [("weighted", "cold"), ("round_robin", "policy"),
                          ("least_loaded", "policy"),
                          ("affinity", "affinity")]:
        nginx.configure(policy=policy)
        nginx.reload()
        with_it = client(nginx)
        with_it.stream(policy, 2).check(expect(policy, 2))
        wait_for(lambda: any(r == route for _, r in routes(nginx, 1)),
                 f"{route} in the log")
    cluster.let_go()
    for (prompt, n), got in zip(jobs, work.results()):
        got.check(expect(prompt, n))
