"""Foreign engines, as static `server` lines."""

import signal

import pytest

from llmgw.engine import pyreplica
from llmgw.fleet import words
from llmgw.proc.wait import wait_for
from llmgw.speak.affinity import homes


def check_all(jobs, results):
    for (prompt, n), got in zip(jobs, results):
        got.check(pyreplica.tokens(prompt, n))


@pytest.fixture
def gate(tmp_path):
    """A file: while it is there, the streams of held engines get 2 tokens."""
    path = tmp_path / "gate"
    path.touch()
    return path


@pytest.fixture
def held(cluster, gate):
    return [cluster.pyreplica(x, token_delay_ms=1, hold=f"{gate}:2")
            for x in "abc"]


@pytest.mark.soak
def test_three_grpcio_servers_serve_streams(cluster, load):
    engines = [cluster.pyreplica(x, token_delay_ms=1) for x in "abc"]
    nginx = cluster.static(engines)
    jobs = [[f"prompt {i}", 5] for i in range(50)]
    results = load(nginx, jobs, connections=2).results()
    check_all(jobs, results)
    served = {r.replicas[0] for r in results}
    assert served == {e.target for e in engines}    # the id is the address


def test_goaway_loses_no_stream(cluster, load, held, gate):
    nginx = cluster.static(held)
    jobs = [[f"prompt {i}", 10] for i in range(50)]
    work = load(nginx, jobs, connections=2)
    work.running()
    held[0].proc.send(signal.SIGTERM)
    wait_for(lambda: "stopping" in held[0].proc.text(), "its GOAWAY")
    gate.unlink()
    check_all(jobs, work.results())
    assert held[0].proc.wait(2) == 0


@pytest.mark.soak
def test_new_streams_while_one_is_going_away(cluster, load):
    engines = [cluster.pyreplica(x, token_delay_ms=20) for x in "abc"]
    nginx = cluster.static(engines)
    jobs = [[f"prompt {i}", 10] for i in range(300)]
    work = load(nginx, jobs, connections=2, starts_per_second=200)
    engines[1].proc.send(signal.SIGTERM)
    check_all(jobs, work.results())


def test_stream_goes_on_at_another_engine(cluster, load, held, gate):
    nginx = cluster.static(held)
    jobs = [[f"prompt {i}", 5] for i in range(50)]
    work = load(nginx, jobs, connections=2)
    work.running()
    held[2].kill()
    gate.unlink()
    results = work.results()
    check_all(jobs, results)
    assert any(r.replicas[0] == held[2].target for r in results)


def test_final_token_ends_the_stream_at_once(cluster, client):
    """The engine's status comes 30 seconds later; no one waits for it."""
    nginx = cluster.static([cluster.pyreplica("late", linger_ms=30000)])
    client(nginx).stream("x", 3).check(pyreplica.tokens("x", 3))


@pytest.mark.parametrize("code", [
    "OK", "INTERNAL", pytest.param("UNAVAILABLE", marks=pytest.mark.soak),
    pytest.param("ABORTED", marks=pytest.mark.soak)])
def test_unfinished_stream_is_never_ok(cluster, client, code):
    """An engine ends each stream at the 4th token, with any status.  As there
    is no other, it is tried again until the tries are used up."""
    bad = cluster.pyreplica("bad", token_delay_ms=1, end_after=3,
                            end_code=code)
    nginx = cluster.static([bad])
    got = client(nginx).stream("x", 20)
    assert got.code == "UNAVAILABLE", (got.code, got.details)
    assert got.trailers[words.REASON] == words.TRIES_EXHAUSTED
    assert got.tokens == pyreplica.tokens("x", 3)
    assert got.finals == []


@pytest.mark.soak
@pytest.mark.parametrize("code", ["OK", "INTERNAL", "RESOURCE_EXHAUSTED"])
def test_a_good_engine_finishes_what_a_bad_one_began(cluster, client, code):
    bad = cluster.pyreplica("bad", token_delay_ms=1, end_after=3,
                            end_code=code)
    good = cluster.pyreplica("good", token_delay_ms=1)
    nginx = cluster.static([bad, good])
    moved = 0
    for i in range(40):
        got = client(nginx).stream(f"prompt {i}", 10)
        got.check(pyreplica.tokens(f"prompt {i}", 10))
        moved += got.replicas == [bad.target, good.target]
    assert moved > 0


@pytest.mark.parametrize("code", [
    "INVALID_ARGUMENT", *(pytest.param(code, marks=pytest.mark.soak)
                          for code in (
        "NOT_FOUND", "PERMISSION_DENIED", "UNAUTHENTICATED",
        "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNIMPLEMENTED"))])
def test_the_engines_no_is_passed_on(cluster, client, code):
    engines = [cluster.pyreplica(x, token_delay_ms=1, end_after=-1,
                                 end_code=code) for x in "ab"]
    nginx = cluster.static(engines)
    got = client(nginx).stream("x", 5)
    assert got.code == code, (got.code, got.details)
    assert got.tokens == []


def test_dead_static_line_is_passed_over(cluster, client):
    live, dead = (cluster.replica(x, token_delay="1ms") for x in "ab")
    nginx = cluster.static([live, dead])
    dead.kill()
    for i in range(20):
        got = client(nginx).stream(f"prompt {i}", 2)
        assert got.code == "OK", (got.code, got.details)
        assert got.replicas == [live.target]
    live.kill()
    got = client(nginx).stream("x", 2)
    assert got.code == "UNAVAILABLE"
    assert got.trailers[words.REASON] == words.TRIES_EXHAUSTED


@pytest.mark.ring("others do not read weights")
def test_down_and_weight_are_obeyed(cluster, load):
    a, b, c = (cluster.replica(x, token_delay="0ms") for x in "abc")
    nginx = cluster.nginx(f"""llmgw_hash vnodes=2000 load_factor=0;
        server {a.target} weight=3;
        server {b.target};
        server {c.target} down;""")
    results = load(nginx, [[f"{i} prompt", 1] for i in range(400)],
                   starts_per_second=500).results()
    served = [r.replicas[0] for r in results if r.code == "OK"]
    assert len(served) == 400
    assert served.count(c.target) == 0
    assert 0.62 < served.count(a.target) / 400 < 0.88   # six sigma
    assert nginx.replicas()[c.target]["routable"] is False


def test_max_conns_is_a_capacity(cluster, load):
    a, b = (cluster.replica(x, token_delay="1ms") for x in "ab")
    cluster.hold(1)
    nginx = cluster.nginx(f"""llmgw_hash load_factor=0;
        server {a.target} max_conns=5;
        server {b.target};""")
    work = load(nginx, [[f"{i} prompt", 3] for i in range(60)])
    work.running()
    busy = {i: r["in_flight"] for i, r in nginx.replicas().items()}
    assert busy == {a.target: 5, b.target: 55}
    cluster.let_go()
    assert all(r.code == "OK" for r in work.results())


def test_static_lines_beside_members(cluster, client):
    cluster.agent("gw", "gateway")
    cluster.pair("r1")
    extra = cluster.replica("extra")
    nginx = cluster.nginx(f"""llmgw_members {cluster.gateway.members};
        llmgw_hash;
        server {extra.target};""")
    both = sorted(["r1", extra.target])
    wait_for(lambda: nginx.routable() == both, "both to be routable")
    served = homes(lambda i: client(nginx).stream(f"{i} prompt", 1)
                   .replicas[0], 2)
    assert set(served) == set(both)


@pytest.mark.soak
def test_static_line_of_a_member_is_inert(cluster, client):
    """The same address twice is one replica."""
    cluster.agent("gw", "gateway")
    r1 = cluster.pair("r1")
    nginx = cluster.nginx(f"""llmgw_members {cluster.gateway.members};
        llmgw_hash;
        server {r1.target};""")
    wait_for(lambda: nginx.routable() == ["r1"], "the member alone")
    for i in range(10):
        assert client(nginx).stream(f"{i}", 1).replicas == ["r1"]
