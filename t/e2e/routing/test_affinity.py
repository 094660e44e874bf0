"""The prompt's prefix decides which replica serves."""

import collections
import concurrent.futures

import pytest

from llmgw.proc.wait import wait_for

pytestmark = pytest.mark.ring("a prompt has a home")

# Below the load bound's min_load of 8, so that no request is moved.
AT_ONCE = 6


def homes(c, prompts):
    """prompt -> the replica that served it."""
    def ask(prompt):
        got = c.stream(prompt, 1)
        assert got.code == "OK", (got.code, got.details)
        return prompt, got.replicas[0]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(pool.map(ask, prompts))


def shares(load, nginx, n):
    """How many of n different prompts each replica serves."""
    jobs = [[f"{i}: a prompt like no other", 1] for i in range(n)]
    results = load(nginx, jobs, connections=4,
                   starts_per_second=1000).results()
    assert all(r.code == "OK" for r in results)
    return collections.Counter(r.replicas[0] for r in results)


@pytest.mark.parametrize("length", [64, 4])
def test_one_prefix_one_replica(cluster, client, length):
    nginx = cluster.fleet(nginx={"hash": f"prefix={length}"})
    prefix = "You are a helpful assistant. ".ljust(64, "#")[:length]
    got = homes(client(nginx), [f"{prefix}{i}" for i in range(40)])
    assert len(set(got.values())) == 1


def test_what_differs_within_the_prefix_spreads(cluster, client):
    nginx = cluster.fleet(replica={"token_delay": "0ms"})
    got = homes(client(nginx), [f"{i}" + "x" * 100 for i in range(60)])
    assert len(set(got.values())) == 3
    told = [r["share"] for r in nginx.replicas().values()]
    assert abs(sum(told) - 1) < 0.01
    assert all(0.2 < share < 0.5 for share in told)


@pytest.mark.soak
def test_shares_of_3000_prompts(cluster, load):
    nginx = cluster.fleet(replica={"token_delay": "0ms"})
    got = shares(load, nginx, 3000)
    assert sum(got.values()) == 3000
    for id in ("r1", "r2", "r3"):
        assert 0.28 <= got[id] / 3000 <= 0.39, got


@pytest.mark.soak
def test_shares_of_30_prompts(cluster, client):
    nginx = cluster.fleet(replica={"token_delay": "0ms"})
    got = collections.Counter(homes(
        client(nginx), [f"prompt number {i}" for i in range(30)]).values())
    assert min(got[id] for id in ("r1", "r2", "r3")) >= 5, got


def test_keys_stay_where_they_were_after_a_death(cluster, client):
    nginx = cluster.fleet(replica={"token_delay": "0ms"})
    c = client(nginx)
    prompts = [f"key {i}" for i in range(60)]
    before = homes(c, prompts)

    cluster.replicas["r2"].kill()
    wait_for(lambda: nginx.routable() == ["r1", "r3"], "r2 to be out")
    after = homes(c, prompts)

    moved = {p for p in prompts if before[p] != after[p]}
    assert moved == {p for p in prompts if before[p] == "r2"}
    assert {after[p] for p in moved} == {"r1", "r3"}


def test_a_hot_prefix_spills_over_to_others(cluster, load):
    """80 streams of one prefix: the load bound of 1.25 holds."""
    nginx = cluster.fleet()
    cluster.hold(1)
    work = load(nginx, [["all the same", 20]] * 80, connections=2)
    work.running()
    busy = {i: r["in_flight"] for i, r in nginx.replicas().items()}
    assert sum(busy.values()) == 80
    assert max(busy.values()) <= 1.25 * 80 / 3 + 2, busy
    cluster.let_go()
    assert all(r.code == "OK" for r in work.results())


@pytest.mark.soak
def test_load_factor_0_knows_no_bound(cluster, load):
    nginx = cluster.fleet(nginx={"hash": "load_factor=0"})
    cluster.hold(1)
    work = load(nginx, [["all the same", 10]] * 40)
    work.running()
    busy = [r["in_flight"] for r in nginx.replicas().values()]
    assert sorted(busy) == [0, 0, 40]
    cluster.let_go()
    assert all(r.code == "OK" for r in work.results())
