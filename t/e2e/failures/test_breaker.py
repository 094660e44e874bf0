"""A sick replica is left alone, and asked again now and then."""

import os
import signal
import time

import pytest

from llmgw.fleet import words
from llmgw.proc.wait import never, wait_for
from llmgw.speak.callers import on_each_worker

SOON = "llmgw_breaker cooldown=500ms max_cooldown=500ms;"
LATE = "llmgw_breaker cooldown=60s;"


def breaker(nginx, id):
    return nginx.replicas()[id]["breaker"]["state"]


def breakers(nginx):
    return {r["breaker"]["state"] for r in nginx.replicas().values()}


def opened(nginx):
    return nginx.log().count(words.OPENED)


def sicken(cluster, is_sick=True):
    for replica in cluster.replicas.values():
        replica.faults(reject_all=is_sick)


def open_all(cluster, nginx, c):
    """Opens every circuit with requests that fail."""
    sicken(cluster)
    wait_for(lambda: c.stream("sick", 1, timeout=0.2).code
             and breakers(nginx) == {"open"}, "every circuit to be open")


def refused(nginx):
    return sum(r["count"] for r in nginx.pool()["totals"]["requests"]
               if r["reason"] == words.QUEUE_FULL)


def ask_until(c, is_done, what):
    """Sends requests one after the other; each must be served."""
    count = iter(range(1 << 30))

    def ask():
        got = c.stream(f"prompt {next(count)}", 1)
        assert got.code == "OK", (got.code, got.details, got.trailers)
        return is_done()
    wait_for(ask, what)


def check_quiet(nginx, ids):
    """No failure was counted against these replicas."""
    for id in ids:
        r = nginx.replicas()[id]
        assert r["breaker"]["state"] == "closed", r
        assert r["breaker"]["failures"] == 0, r
    assert opened(nginx) == 0


# one sick replica of several

def test_sick_replica_is_avoided(cluster, client, expect):
    nginx = cluster.fleet(3, nginx={"pool": LATE})
    c, r1 = client(nginx), cluster.replicas["r1"]
    r1.faults(reject_all=True)
    for i in range(50):
        got = c.stream(f"prompt {i}", 5).check(expect(f"prompt {i}", 5))
        assert "r1" not in got.replicas
    assert breaker(nginx, "r1") == "open"
    assert opened(nginx) == 1
    assert f'"r1" {words.OPENED}' in nginx.log()
    assert cluster.gateway.table()["r1"]["state"] == "ALIVE"
    assert breaker(nginx, "r2") == breaker(nginx, "r3") == "closed"

    failed = r1.stats().failed
    for i in range(50):
        assert c.stream(f"prompt {i}", 1).code == "OK"
    assert r1.stats().failed == failed          # it got no request
    assert r1.stats().started == 0


def test_sick_replica_that_is_well_serves_again(cluster, client):
    nginx = cluster.fleet(3, nginx={"pool": SOON})
    r1 = cluster.replicas["r1"]
    r1.faults(reject_all=True)
    c = client(nginx)
    ask_until(c, lambda: opened(nginx) == 1, "the circuit to open")
    r1.faults(reject_all=False)
    ask_until(c, lambda: breaker(nginx, "r1") == "closed",
              "the circuit to be closed")
    ask_until(c, lambda: r1.stats().started > 3, "r1 to serve again")
    assert nginx.replicas()["r1"]["breaker"]["failures"] == 0


@pytest.mark.timed
def test_sick_replica_costs_few_requests_while_it_stays_sick(cluster, client,
                                                             expect):
    """One probe after each cooldown, and each cooldown is longer."""
    nginx = cluster.fleet(2, nginx={
        "pool": "llmgw_breaker cooldown=200ms max_cooldown=10s;"})
    r1 = cluster.replicas["r1"]
    r1.faults(reject_all=True)
    c = client(nginx)
    while opened(nginx) == 0:
        asked = time.monotonic()
        assert c.stream(f"{asked}", 1).code == "OK"
    failed = r1.stats().failed
    for cooldown in (0.2, 0.4, 0.8):
        before = asked          # the failure before was not earlier
        while r1.stats().failed == failed:
            asked = time.monotonic()
            assert c.stream(f"{asked}", 1).code == "OK"
        assert r1.stats().failed == failed + 1
        failed += 1
        assert time.monotonic() - before > cooldown


@pytest.mark.soak
@pytest.mark.parametrize("fault", ["INTERNAL", "UNKNOWN", "DATA_LOSS",
                                   "ABORTED", "CANCELLED",
                                   "DEADLINE_EXCEEDED", "UNAVAILABLE"])
def test_statuses_that_open_a_circuit(cluster, client, fault):
    bad = cluster.pyreplica("bad", end_after=-1, end_code=fault,
                            token_delay_ms=1)
    good = cluster.pyreplica("good", token_delay_ms=1)
    nginx = cluster.static([bad, good], pool=LATE)
    c = client(nginx)
    ask_until(c, lambda: breaker(nginx, bad.target) == "open",
              "the circuit to open")
    assert breaker(nginx, good.target) == "closed"


@pytest.mark.soak
def test_unfinished_streams_open_a_circuit(cluster, client, expect):
    nginx = cluster.fleet(2, nginx={"pool": LATE})
    cluster.replicas["r1"].faults(die_after_tokens=2)
    c = client(nginx)
    for i in range(40):
        c.stream(f"prompt {i}", 4).check(expect(f"prompt {i}", 4))
    assert breaker(nginx, "r1") == "open"
    assert breaker(nginx, "r2") == "closed"


@pytest.mark.soak
def test_replica_that_drips_is_sick(cluster, load, expect):
    """Its streams stay open and silent."""
    nginx = cluster.fleet(3, nginx={
        "pool": LATE, "location": "llmgw_token_timeout 1s;"
        " llmgw_first_token_timeout 1s;"})
    cluster.replicas["r1"].faults(stall=True)
    jobs = [[f"prompt {i}", 10] for i in range(40)]
    results = load(nginx, jobs, connections=2).results()
    for (prompt, n), got in zip(jobs, results):
        got.check(expect(prompt, n))
    assert breaker(nginx, "r1") == "open"
    assert cluster.gateway.table()["r1"]["state"] == "ALIVE"
    started = cluster.replicas["r1"].stats().started
    load(nginx, jobs).results()
    assert cluster.replicas["r1"].stats().started == started
    wait_for(lambda: cluster.replicas["r1"].stats().active_requests == 0,
             "the silent streams to be cancelled")


@pytest.mark.soak
def test_dead_static_line_opens_its_circuit(cluster, client):
    live, dead = cluster.replica("live"), cluster.replica("dead")
    nginx = cluster.static([live, dead], pool=LATE)
    dead.kill()
    ask_until(client(nginx), lambda: breaker(nginx, dead.target) == "open",
              "the circuit to open")


# failures that are not the replica's fault

@pytest.mark.parametrize("code", [
    "INVALID_ARGUMENT", pytest.param("NOT_FOUND", marks=pytest.mark.soak),
    pytest.param("UNIMPLEMENTED", marks=pytest.mark.soak)])
def test_clients_faults_open_nothing(cluster, load, code):
    engine = cluster.pyreplica("strict", end_after=-1, end_code=code,
                               token_delay_ms=1)
    nginx = cluster.static([engine])
    results = load(nginx, [[f"{i}", 2] for i in range(50)]).results()
    assert {got.code for got in results} == {code}
    check_quiet(nginx, [engine.target])


@pytest.mark.soak
@pytest.mark.parametrize("tokens", [1, 0])
def test_cancels_open_nothing(cluster, caller, tokens):
    """Cancels after a token, and before the first."""
    nginx = cluster.fleet(2)
    replicas = cluster.replicas.values()
    cluster.hold(tokens)
    for i in range(30):
        one = caller(nginx).ask(f"prompt {i}", 1000)
        if tokens:
            one.wait_first()
        wait_for(lambda: sum(r.stats().started for r in replicas) == i + 1,
                 "the attempt")
        (one.cancel if i % 2 else one.close)()
    wait_for(lambda: sum(r.stats().cancelled for r in replicas) == 30,
             "cancels")
    wait_for(lambda: not nginx.counts(), "counts of zero")
    check_quiet(nginx, ["r1", "r2"])


@pytest.mark.soak
def test_deadlines_open_nothing(cluster, load):
    nginx = cluster.fleet(2)
    cluster.hold(2)
    results = load(nginx, [[f"{i}", 1000] for i in range(30)],
                   seconds=0.3).results()
    assert {got.code for got in results} == {"DEADLINE_EXCEEDED"}
    check_quiet(nginx, ["r1", "r2"])


@pytest.mark.soak
def test_full_replicas_open_nothing(cluster, load):
    """The replicas refuse; the gateway does not know their capacity."""
    replicas = [cluster.replica(x, token_delay="1ms", max_capacity=1)
                for x in "ab"]
    nginx = cluster.static(replicas, pool="llmgw_queue 10;")
    cluster.hold()
    work = load(nginx, [[f"{i}", 5] for i in range(60)])
    wait_for(lambda: refused(nginx), "a refusal")
    cluster.let_go()
    assert {got.code for got in work.results()} == {"OK",
                                                    "RESOURCE_EXHAUSTED"}
    check_quiet(nginx, [r.target for r in replicas])


@pytest.mark.soak
def test_full_queue_opens_nothing(cluster, load):
    nginx = cluster.fleet(2, nginx={"pool": "llmgw_queue 2;"},
                          replica={"max_capacity": 1})
    cluster.hold()
    work = load(nginx, [[f"{i}", 5] for i in range(60)])
    wait_for(lambda: refused(nginx), "a refusal")
    cluster.let_go()
    assert {got.code for got in work.results()} == {"OK",
                                                    "RESOURCE_EXHAUSTED"}
    check_quiet(nginx, ["r1", "r2"])


@pytest.mark.soak
def test_draining_replica_opens_nothing(cluster, client):
    a, b = cluster.replica("a"), cluster.replica("b")
    nginx = cluster.static([a, b])
    a.client.drain()
    c = client(nginx)
    for i in range(20):
        assert c.stream(f"{i}", 2).code == "OK"
    check_quiet(nginx, [a.target, b.target])


@pytest.mark.soak
def test_breaker_off(cluster, client, expect):
    nginx = cluster.fleet(2, nginx={"pool": "llmgw_breaker off;"})
    r1 = cluster.replicas["r1"]
    r1.faults(reject_all=True)
    c = client(nginx)
    for i in range(60):
        c.stream(f"prompt {i}", 2).check(expect(f"prompt {i}", 2))
    assert r1.stats().failed > 15
    assert opened(nginx) == 0


# all replicas are sick

def test_all_open_is_not_the_end(cluster, client, load, expect):
    nginx = cluster.fleet(2, nginx={"pool": SOON})
    c = client(nginx)
    open_all(cluster, nginx, c)
    sicken(cluster, False)
    jobs = [[f"prompt {i}", 5] for i in range(20)]
    results = load(nginx, jobs).results()
    for (prompt, n), got in zip(jobs, results):
        got.check(expect(prompt, n))
    ask_until(c, lambda: breakers(nginx) == {"closed"},
              "every circuit to be closed")


def test_all_open_and_sick(cluster, client, load):
    """Requests that wait for a probe are answered when their time is over."""
    nginx = cluster.fleet(2, nginx={
        "pool": "llmgw_queue timeout=600ms;" + LATE,
        "location": "llmgw_tries 100;"})
    open_all(cluster, nginx, client(nginx))
    results = load(nginx, [[f"{i}", 5] for i in range(20)]).results()
    assert {(got.code, got.trailers[words.REASON]) for got in results} \
        == {("UNAVAILABLE", words.CIRCUITS_OPEN)}
    assert nginx.waiting() == 0


@pytest.mark.soak
def test_time_of_a_probe_is_no_waiting(cluster, client):
    """A probe takes longer than a request may wait."""
    nginx = cluster.fleet(1, nginx={
        "pool": "llmgw_queue timeout=400ms;" + LATE,
        "location": "llmgw_tries 2; llmgw_first_token_timeout 1s;"})
    c = client(nginx)
    open_all(cluster, nginx, c)
    cluster.replicas["r1"].faults(reject_all=False, gate=0)
    started = cluster.replicas["r1"].stats().started
    got = c.stream("probe", 1, takes=4)
    assert (got.code, got.trailers[words.REASON]) \
        == ("UNAVAILABLE", words.TRIES_EXHAUSTED)
    assert cluster.replicas["r1"].stats().started == started + 2


@pytest.mark.timed
def test_all_open_and_sick_without_a_queue(cluster, client):
    """Refused at once, but for one probe of each replica in 100 ms."""
    nginx = cluster.fleet(2, nginx={"pool": "llmgw_queue off;" + LATE})
    c = client(nginx)
    open_all(cluster, nginx, c)
    began = time.monotonic()
    probes = -sum(r.stats().failed for r in cluster.replicas.values())
    results = [c.stream(f"{i}", 5) for i in range(10)]
    probes += sum(r.stats().failed for r in cluster.replicas.values())
    assert probes <= 2 * (1 + (time.monotonic() - began) / 0.1)
    assert {got.code for got in results} == {"UNAVAILABLE"}
    assert {got.trailers[words.REASON] for got in results} \
        <= {words.CIRCUITS_OPEN, words.TRIES_EXHAUSTED}


@pytest.mark.soak
def test_one_that_failed_once_is_better_than_an_open_circuit(cluster, client,
                                                             expect):
    """A circuit just opened is not forced yet; without a queue none waits."""
    nginx = cluster.fleet(2, nginx={"pool": "llmgw_queue off;" + LATE})
    c = client(nginx)
    cluster.replicas["r2"].faults(reject_all=True)
    ask_until(c, lambda: breaker(nginx, "r2") == "open", "r2 to be open")
    cluster.replicas["r1"].faults(die_after_tokens=2)
    c.stream("in parts", 6).check(expect("in parts", 6))


def test_probes_go_one_at_a_time(cluster, client, load):
    """20 requests wait while one of them probes a slow replica."""
    nginx = cluster.fleet(1, nginx={"pool": SOON})
    open_all(cluster, nginx, client(nginx))
    r1 = cluster.replicas["r1"]
    r1.faults(reject_all=False, gate=0)
    work = load(nginx, [[f"{i}", 2] for i in range(20)])
    wait_for(lambda: r1.stats().active_requests == 1, "the probe")
    never(lambda: r1.stats().active_requests > 1, 0.3, "a second probe")
    assert breaker(nginx, "r1") == "half_open"
    r1.faults(gate=-1)
    assert {got.code for got in work.results()} == {"OK"}
    assert breaker(nginx, "r1") == "closed"


@pytest.mark.soak
def test_cancelled_probe_is_not_the_last(cluster, client, caller):
    nginx = cluster.fleet(1, nginx={"pool": SOON})
    c = client(nginx)
    open_all(cluster, nginx, c)
    r1 = cluster.replicas["r1"]
    r1.faults(reject_all=False, gate=0)
    probe = caller(nginx).ask("probe", 2)
    wait_for(lambda: r1.stats().active_requests == 1, "the probe")
    probe.cancel()
    r1.faults(gate=-1)
    got = c.stream("next", 2)
    assert got.code == "OK", (got.code, got.trailers)
    assert breaker(nginx, "r1") == "closed"


@pytest.mark.soak
@pytest.mark.policies
def test_probe_that_died_with_its_worker_is_not_the_last(cluster, client,
                                                         caller):
    cluster.allowed.append("exited on signal 9")
    nginx = cluster.fleet(1, nginx={"pool": SOON, "workers": 2})
    (a,), (b,) = on_each_worker(nginx, 1, caller)
    open_all(cluster, nginx, client(nginx))
    r1 = cluster.replicas["r1"]
    r1.faults(reject_all=False, gate=0)
    pid = a.worker()
    a.ask("probe", 2)
    wait_for(lambda: r1.stats().active_requests == 1, "the probe")
    os.kill(pid, signal.SIGKILL)
    r1.faults(gate=-1)
    assert b.ask("next", 2).wait().status == 0


# all workers share the circuits

def test_workers_share_what_they_know(cluster, caller):
    nginx = cluster.fleet(2, nginx={"pool": LATE, "workers": 2})
    (a,), (b,) = on_each_worker(nginx, 1, caller)
    r1 = cluster.replicas["r1"]
    r1.faults(reject_all=True)
    for i in range(40):
        assert a.ask(f"prompt {i}", 1).wait().status == 0
    assert breaker(nginx, "r1") == "open"
    failed = r1.stats().failed
    for i in range(40):
        assert b.ask(f"prompt {i}", 1).wait().status == 0
    assert r1.stats().failed == failed
    assert opened(nginx) == 1


@pytest.mark.soak
def test_open_circuit_outlives_a_reload(cluster, client):
    nginx = cluster.fleet(2, nginx={"pool": LATE})
    cluster.replicas["r1"].faults(reject_all=True)
    ask_until(client(nginx), lambda: breaker(nginx, "r1") == "open",
              "the circuit to open")
    nginx.reload()
    assert breaker(nginx, "r1") == "open"


@pytest.mark.soak
def test_good_replica_with_few_faults_stays(cluster, client, expect):
    """One request in four fails: below the error rate of 50 %."""
    nginx = cluster.fleet(2)
    r1 = cluster.replicas["r1"]
    c = client(nginx)
    for i in range(80):
        r1.faults(reject_all=i % 4 == 0)
        c.stream(f"prompt {i}", 2).check(expect(f"prompt {i}", 2))
    assert opened(nginx) == 0
    assert nginx.replicas()["r1"]["breaker"]["failures"] > 0


@pytest.mark.soak
def test_replica_that_starts_anew_serves_again(cluster, client):
    """Its circuit was open when it died."""
    nginx = cluster.fleet(2, nginx={"pool": SOON})
    r1 = cluster.replicas["r1"]
    r1.faults(reject_all=True)
    c = client(nginx)
    ask_until(c, lambda: breaker(nginx, "r1") == "open",
              "the circuit to open")
    r1.kill()
    wait_for(lambda: nginx.routable() == ["r2"], "r1 to be out")
    r1.start()
    wait_for(lambda: nginx.routable() == ["r1", "r2"], "r1 to be back")
    ask_until(c, lambda: r1.stats().started > 0, "r1 to serve")
