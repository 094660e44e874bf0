"""What a scraper sees equals what clients and replicas counted, exactly."""

import os
import re
import signal
import time
import urllib.request

import pytest

from llmgw.engine.report_connection import Reporter
from llmgw.fleet import words
from llmgw.proc.wait import wait_for
from llmgw.shards.told import ToldShard
from llmgw.speak.callers import finish

SECONDS = float(os.environ.get("LLMGW_METRICS_SECONDS", 3))
TOKEN_MS = 10       # of the streams that are scraped for so long
LINE = re.compile(r'^(llmgw_[a-z_]+)\{([^}]*)\} ([0-9.eE+-]+|NaN)$')


@pytest.fixture
def gateway(cluster):
    """A fleet whose status server also serves metrics."""
    def make(n=3, pool="", **more):
        nginx = cluster.fleet(n, nginx={"pool": pool, **more.pop("nginx", {})},
                              **more)
        nginx.conf.write_text(nginx.conf.read_text().replace(
            "location = /status {",
            "location = /metrics { llmgw_metrics; }\n"
            "        location = /status {"))
        nginx.reload()
        return nginx
    return make


def scrape(nginx, accept="text/plain"):
    url = f"http://127.0.0.1:{nginx.status_port}/metrics"
    ask = urllib.request.Request(url, headers={"accept": accept})
    with urllib.request.urlopen(ask, timeout=5) as answer:
        return answer.headers["content-type"], answer.read().decode()


def values(nginx):
    """{(name, labels without upstream): value}"""
    found = {}
    for line in scrape(nginx)[1].splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = LINE.match(line).groups()
        labels = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        assert labels.pop("upstream") == "llm"
        key = (name, *sorted(labels.items()))
        assert key not in found, line
        found[key] = float(value)
    return found


def total(found, name, **labels):
    want = set(labels.items())
    return sum(v for (n, *have), v in found.items()
               if n == name and want <= set(have))


def test_counts_equal_the_clients_and_the_replicas(cluster, gateway, load):
    nginx = gateway()
    jobs = [[f"prompt {i}", 5 + i % 20] for i in range(300)]
    results = load(nginx, jobs, connections=4).results()
    assert {r.code for r in results} == {"OK"}
    found = values(nginx)
    tokens = sum(n for _, n in jobs)
    assert total(found, "llmgw_tokens_total") == tokens
    for id, replica in cluster.replicas.items():
        assert total(found, "llmgw_tokens_total", replica=id) \
            == replica.stats().tokens
    assert total(found, "llmgw_requests_total", code="OK", reason="") == 300
    assert total(found, "llmgw_requests_total") == 300
    assert total(found, "llmgw_first_token_seconds_count") == 300
    assert total(found, "llmgw_inter_token_seconds_count") == tokens - 300
    assert total(found, "llmgw_request_seconds_count") == 300
    assert total(found, "llmgw_in_flight") == 0
    assert total(found, "llmgw_failovers_total") == 0


def test_buckets_are_cumulative_and_end_with_the_count(gateway, client):
    nginx = gateway(1)
    for i in range(5):
        client(nginx).stream(f"{i}", 4)
    found = values(nginx)
    for name in ("first_token", "inter_token", "request", "queue_wait"):
        rows = [(dict(labels)["le"], v) for (n, *labels), v in found.items()
                if n == f"llmgw_{name}_seconds_bucket"]
        counts = [v for _, v in rows]
        assert counts == sorted(counts)
        assert rows[-1][0] == "+Inf"
        assert rows[-1][1] == total(found, f"llmgw_{name}_seconds_count")


@pytest.mark.soak
def test_failover_moves_its_counter_by_one(cluster, gateway, caller):
    nginx = gateway(2)
    cluster.hold(1)
    one = caller(nginx).ask("to be moved", 40)
    one.wait_first()
    serving = [r for r in cluster.replicas.values()
               if r.stats().active_requests]
    assert len(serving) == 1
    serving[0].kill()
    cluster.let_go()
    finish([one])
    wait_for(lambda: total(values(nginx), "llmgw_requests_total") == 1,
             "the request's end")
    found = values(nginx)
    assert total(found, "llmgw_failovers_total") == 1
    assert total(found, "llmgw_tokens_total") == 40
    assert total(found, "llmgw_requests_total", code="OK") == 1


def test_refusal_has_its_reason(cluster, gateway, client, caller):
    nginx = gateway(1, pool="llmgw_queue off;", replica={"max_capacity": 1})
    cluster.hold(1)
    busy = caller(nginx).ask("busy", 2).wait_first()
    assert client(nginx).stream("x", 2).code == "RESOURCE_EXHAUSTED"
    found = values(nginx)
    assert total(found, "llmgw_requests_total", code="RESOURCE_EXHAUSTED",
                 reason=words.QUEUE_FULL) == 1
    assert total(found, "llmgw_in_flight") == 1
    busy.cancel()
    wait_for(lambda: total(values(nginx), "llmgw_requests_total",
                           code="CANCELLED", reason=words.CLIENT_GONE) == 1,
             "the cancel to be counted")


def waited(cluster, nginx, caller, seconds=0):
    """One request waits in the line for at least so long.  Returns the least
    and the most that its wait took."""
    cluster.hold(1)
    busy = caller(nginx).ask("busy", 10).wait_first()
    began = time.monotonic()
    waiter = caller(nginx).ask("x", 2)
    wait_for(lambda: nginx.waiting() == 1, "it to wait")
    assert total(values(nginx), "llmgw_queue_length") == 1
    waits = time.monotonic()
    time.sleep(seconds)
    least = time.monotonic() - waits
    cluster.let_go()
    finish([busy, waiter])
    return least, time.monotonic() - began


def test_wait_in_the_line_is_counted(cluster, gateway, caller):
    nginx = gateway(1, replica={"max_capacity": 1})
    waited(cluster, nginx, caller)
    found = values(nginx)
    assert total(found, "llmgw_queue_wait_seconds_count") == 1
    assert total(found, "llmgw_queue_length") == 0


@pytest.mark.timed
def test_wait_in_the_line_is_measured(cluster, gateway, caller):
    nginx = gateway(1, replica={"max_capacity": 1})
    least, most = waited(cluster, nginx, caller, 0.1)
    told = total(values(nginx), "llmgw_queue_wait_seconds_sum")
    assert least - 0.01 < told < most + 0.01


def test_counts_survive_reload_and_a_killed_worker(cluster, gateway, client):
    nginx = gateway(2)
    cluster.allowed.append("exited on signal 9")
    for i in range(10):
        client(nginx).stream(f"{i}", 7)
    nginx.reload()
    assert total(values(nginx), "llmgw_tokens_total") == 70
    os.kill(nginx.workers()[0], signal.SIGKILL)
    wait_for(lambda: nginx.workers() and nginx.up(), "a new worker")
    for i in range(10):
        client(nginx).stream(f"{i}", 7)
    found = values(nginx)
    assert total(found, "llmgw_tokens_total") == 140
    assert total(found, "llmgw_requests_total", code="OK") == 20


@pytest.mark.soak
def test_two_workers_tell_the_same(gateway, load):
    nginx = gateway(2, nginx={"workers": 2})
    load(nginx, [[f"{i}", 3] for i in range(100)], connections=8).results()
    wait_for(lambda: total(values(nginx), "llmgw_streams") == 0,
             "both to have counted")
    for _ in range(10):
        assert total(values(nginx), "llmgw_requests_total") == 100


def test_open_metrics_where_it_is_accepted(gateway):
    nginx = gateway(1)
    kind, text = scrape(nginx, "application/openmetrics-text;version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")
    assert "# TYPE llmgw_requests counter" in text
    assert "llmgw_requests_total{" in text
    kind, text = scrape(nginx)
    assert kind.startswith("text/plain; version=0.0.4")
    assert "# TYPE llmgw_requests_total counter" in text
    assert "# EOF" not in text


@pytest.mark.parametrize("name", [
    pytest.param("n" * 2000, id="long", marks=pytest.mark.soak),
    pytest.param(r'\"\\' * 500, id="escaped")])
def test_upstream_of_any_name_has_whole_lines(cluster, name):
    nginx = cluster.static([], hash="prefix=64;\n        server 127.0.0.1:1",
                           server="location = /metrics { llmgw_metrics; }")
    conf = nginx.conf.read_text()
    for word in ("upstream", "llmgw_pass"):
        conf = conf.replace(f"{word} llm", f'{word} "{name}"')
    nginx.conf.write_text(conf)
    nginx.reload()
    line = re.compile(r'llmgw_\w+\{upstream="((?:[^"\\]|\\.)*)"(,[^}]+)?\}'
                      r' [0-9.]+')
    lines = [text for text in scrape(nginx)[1].splitlines()
             if not text.startswith("#")]
    assert len(lines) > 100
    for text in lines:
        assert (got := line.fullmatch(text)) and got[1] == name, text


@pytest.mark.soak
def test_breaker_is_told(cluster, gateway, client):
    nginx = gateway(1, pool="llmgw_breaker min_requests=3 cooldown=60s;"
                            " llmgw_queue off;")
    cluster.replicas["r1"].faults(reject_all=True)
    for i in range(4):
        client(nginx).stream(f"{i}", 2)
    found = values(nginx)
    assert total(found, "llmgw_breaker_state", replica="r1") == 1
    assert total(found, "llmgw_breaker_transitions_total", to="opened") == 1
    assert total(found, "llmgw_attempts_failed_total", cause="status") >= 3


def test_members_and_levels_are_told(cluster, gateway, caller):
    nginx = gateway(3)
    cluster.hold(1)
    calls = [caller(nginx).ask(f"{i}", 2) for i in range(3)]
    for one in calls:
        one.wait_first()
    found = values(nginx)
    assert total(found, "llmgw_members", role="replica", state="ALIVE") == 3
    assert total(found, "llmgw_members", role="gateway", state="ALIVE") == 1
    assert total(found, "llmgw_members") == 4
    assert total(found, "llmgw_streams") == 3
    assert total(found, "llmgw_in_flight") == 3
    assert 1 <= total(found, "llmgw_sessions") <= 3
    cluster.replicas["r1"].kill()
    wait_for(lambda: total(values(nginx), "llmgw_replica_state",
                           replica="r1") == 2, "r1 to be told as dead")
    found = values(nginx)
    assert total(found, "llmgw_members", role="replica", state="DEAD") == 1
    assert total(found, "llmgw_replica_routable", replica="r1") == 0
    for one in calls:
        one.cancel()

    # Shards have series of their own where there are any.
    assert not any(("role", "shard") in key for key in found)
    ToldShard(cluster, "s1", 0, 7)
    wait_for(lambda: total(values(nginx), "llmgw_members", role="shard",
                           state="ALIVE") == 1, "a shard")
    assert total(values(nginx), "llmgw_members", role="gateway") == 1


def told(cluster, **fields):
    """nginx, and a Reporter with these fields for each replica."""
    cluster.agent("gw", "gateway")
    reporters = {id: Reporter(
        cluster, cluster.agent(id, grpc=cluster.replica(id).target), **more)
        for id, more in fields.items()}
    server = "location = /metrics { llmgw_metrics; }"
    return cluster.nginx(server=server), reporters


def engine_lines(nginx):
    return {x for x in scrape(nginx)[1].splitlines() if re.match(
        "llmgw_engine|llmgw_replica_(info|queue|batch|kv)", x)}


def test_engine_is_told_as_far_as_it_tells(cluster):
    """A name may have any printable byte: a label escapes it."""
    nginx, reporters = told(cluster, r1={
        "models": ['my "a\\b"', "lora"], "running": 3, "waiting": 0,
        "kv_permille": 455, "kv_free_blocks": 9000, "hit_permille": 801},
        r2={"waiting": 7})
    want = {
        'llmgw_engine_running{upstream="llm",replica="r1"} 3.000',
        'llmgw_engine_waiting{upstream="llm",replica="r1"} 0.000',
        'llmgw_engine_waiting{upstream="llm",replica="r2"} 7.000',
        'llmgw_engine_kv_usage{upstream="llm",replica="r1"} 0.455',
        'llmgw_engine_kv_free_blocks{upstream="llm",replica="r1"} 9000.000',
        'llmgw_engine_hit_ratio{upstream="llm",replica="r1"} 0.801',
        'llmgw_replica_queue_depth{upstream="llm",replica="r1"} 0.000',
        'llmgw_replica_queue_depth{upstream="llm",replica="r2"} 7.000',
        'llmgw_replica_batch{upstream="llm",replica="r1"} 3.000',
        'llmgw_replica_kv_utilization{upstream="llm",replica="r1"} 0.455',
        'llmgw_replica_info{upstream="llm",replica="r1",'
        'model="my \\"a\\\\b\\""} 1'}
    wait_for(lambda: engine_lines(nginx) == want, "all that they tell")

    # A replica that is gone has no load.
    reporters["r2"].close()
    wait_for(lambda: "llmgw_engine_waiting{upstream=\"llm\",replica=\"r2\"}"
             not in scrape(nginx)[1], "its end")


@pytest.mark.soak
def test_old_facts_are_shown_and_not_believed(cluster):
    nginx, reporters = told(cluster, r1={"running": 3, "waiting": 0})
    wait_for(lambda: len(engine_lines(nginx)) >= 4, "what it tells")
    reporters["r1"].silence()
    wait_for(lambda: total(values(nginx), "llmgw_replica_facts_age_seconds",
                           replica="r1") > 2, "old facts", takes=4)
    text = scrape(nginx)[1]
    assert 'llmgw_engine_running{upstream="llm",replica="r1"} 3.000' in text
    assert 'llmgw_replica_batch{upstream="llm",replica="r1"}' not in text


def test_classes_and_tenants_are_counted(cluster, client):
    """Names that are not configured are `other`."""
    nginx = cluster.static(
        [cluster.replica("r1", max_capacity=8)],
        pool="llmgw_slo gold ttft=60s; llmgw_tenant_budget acme=1;"
             "llmgw_admission token_bucket capacity=500 rate=0.001;",
        location="llmgw_class request; llmgw_tenant request;",
        server="location = /metrics { llmgw_metrics; }")
    assert not [key for key in values(nginx)
                if re.match("llmgw_(class|tenant)_", key[0])]

    def ask(code, prompt="p", **fields):
        assert client(nginx).stream(prompt, 2, **fields).code == code

    for fields in 3 * [{"slo_class": "gold", "tenant_id": "acme"}] \
            + 2 * [{"slo_class": 'a"b\\\n', "tenant_id": 'a"b'}] \
            + [{"slo_class": "batch"}]:
        ask("OK", **fields)
    for _ in range(4):      # more than the bucket will ever hold
        ask("RESOURCE_EXHAUSTED", "p" * 4000, slo_class="gold",
            tenant_id="acme")

    def groups():
        return {key: n for key, n in values(nginx).items()
                if re.match("llmgw_(class|tenant)_.*(_total|_count|flight)$",
                            key[0])}

    def of(kind, name, what, n, **more):
        labels = {kind: name, **more}
        return {(f"llmgw_{kind}_{what}", *sorted(labels.items())): n}

    refused = {"reason": "admission_token_bucket"}
    want = {
        **of("class", "gold", "requests_total", 3, reason=""),
        **of("class", "gold", "requests_total", 4, **refused),
        **of("class", "batch", "requests_total", 1, reason=""),
        **of("class", "other", "requests_total", 2, reason=""),
        **of("class", "gold", "goodput_total", 3),
        **of("class", "batch", "goodput_total", 1),
        **of("class", "other", "goodput_total", 2),
        **of("class", "gold", "first_token_seconds_count", 3),
        **of("class", "batch", "first_token_seconds_count", 1),
        **of("class", "other", "first_token_seconds_count", 2),
        **of("tenant", "acme", "requests_total", 3, reason=""),
        **of("tenant", "acme", "requests_total", 4, **refused),
        **of("tenant", "other", "requests_total", 2, reason=""),
        **of("tenant", "acme", "first_token_seconds_count", 3),
        **of("tenant", "other", "first_token_seconds_count", 2),
        **of("tenant", "acme", "in_flight", 0),
        **of("tenant", "other", "in_flight", 0)}
    wait_for(lambda: groups() == want, "all counts")


@pytest.mark.soak
def test_attempts_and_failures_of_each_replica(cluster, gateway, client):
    nginx = gateway(2, pool="llmgw_breaker off;")
    cluster.replicas["r1"].faults(reject_all=True)
    for i in range(20):
        client(nginx).stream(f"prompt {i}", 2)
    found = values(nginx)
    failed = cluster.replicas["r1"].stats().failed
    assert failed > 0
    for name in ("attempts", "attempt_failures"):
        assert total(found, f"llmgw_{name}_total", replica="r1") == failed
    assert total(found, "llmgw_attempts_total", replica="r2") == 20
    assert total(found, "llmgw_attempt_failures_total", replica="r2") == 0
    assert total(found, "llmgw_attempts_failed_total", cause="status") \
        == failed


def test_hedge_moves_its_counter_by_one(cluster, gateway, client):
    nginx = gateway(2)
    c = client(nginx)
    slow = c.stream("hedged", 2).replicas[0]
    cluster.replicas[slow].faults(gate=0)
    assert c.stream("hedged", 2, hedge=True).code == "OK"
    found = values(nginx)
    assert total(found, "llmgw_hedges_total", outcome="won") == 1
    assert total(found, "llmgw_hedges_total") == 1
    assert total(found, "llmgw_requests_total") == 2


def counters(found):
    """The values that may only grow."""
    return {key: v for key, v in found.items()
            if key[0].endswith(("_total", "_count", "_bucket", "_sum"))}


@pytest.mark.soak
def test_counts_are_exact_under_load_and_scrapes(cluster, gateway, load):
    """200 streams, ten scrapes a second; LLMGW_METRICS_SECONDS=10 for long."""
    nginx = gateway(3, nginx={"workers": 2},
                    replica={"token_delay": f"{TOKEN_MS}ms"})
    cluster.hold(1)
    n = int(SECONDS * 1000 / TOKEN_MS)
    jobs = [[f"prompt {i}", n + i % 10] for i in range(200)]
    work = load(nginx, jobs, connections=8, seconds=600)
    work.running()
    assert total(values(nginx), "llmgw_streams") == 200
    cluster.let_go()
    before, scrapes = counters(values(nginx)), 0
    while total(before, "llmgw_requests_total") < 200:
        time.sleep(0.1)
        now = counters(values(nginx))
        assert now.keys() >= before.keys()
        assert all(now[key] >= before[key] for key in before)
        before, scrapes = now, scrapes + 1
    assert scrapes >= 2
    results = work.results()
    assert {r.code for r in results} == {"OK"}
    wait_for(lambda: total(values(nginx), "llmgw_streams") == 0,
             "both workers to have counted")

    found = values(nginx)
    tokens = sum(len(r.tokens) for r in results)
    assert tokens == sum(n for _, n in jobs)
    assert total(found, "llmgw_tokens_total") == tokens
    assert total(found, "llmgw_requests_total") == 200
    assert total(found, "llmgw_requests_total", code="OK", reason="") == 200
    for name, count in (("first_token", 200), ("request", 200),
                        ("inter_token", tokens - 200)):
        assert total(found, f"llmgw_{name}_seconds_count") == count
    for id, replica in cluster.replicas.items():
        did = replica.stats()
        assert total(found, "llmgw_tokens_total", replica=id) == did.tokens
        assert total(found, "llmgw_attempts_total", replica=id) == did.started
        assert did.started == did.finished
    for name in ("in_flight", "streams", "attempt_failures_total",
                 "failovers_total", "queue_length"):
        assert total(found, f"llmgw_{name}") == 0


def test_failover_under_load_is_exact(cluster, gateway, load):
    """A replica dies: the streams it began, and those others resumed."""
    nginx = gateway(3)
    cluster.hold(1)
    jobs = [[f"prompt {i}", 150] for i in range(60)]
    work = load(nginx, jobs, connections=4)
    work.running()
    victim = cluster.replicas["r1"]
    running = total(values(nginx), "llmgw_in_flight", replica="r1")
    assert running > 0
    victim.kill()
    cluster.let_go()
    results = work.results()
    assert {r.code for r in results} == {"OK"}
    found = values(nginx)
    assert total(found, "llmgw_failovers_total") == running
    assert total(found, "llmgw_attempts_failed_total") == running
    assert total(found, "llmgw_attempt_failures_total", replica="r1") \
        == total(found, "llmgw_attempts_total", replica="r1") == running
    assert total(found, "llmgw_attempts_total") == 60 + running
    assert total(found, "llmgw_tokens_total") \
        == sum(len(r.tokens) for r in results) == 60 * 150
    assert total(found, "llmgw_requests_total") == 60


@pytest.mark.soak
def test_worker_killed_under_load_loses_no_count(cluster, gateway, load):
    nginx = gateway(2, nginx={"workers": 2})
    cluster.hold(1)
    cluster.allowed.append("exited on signal 9")
    work = load(nginx, [[f"prompt {i}", 100] for i in range(40)],
                connections=8)
    work.running()
    before = counters(values(nginx))
    os.kill(nginx.workers()[0], signal.SIGKILL)
    cluster.let_go()
    results = work.results()
    wait_for(lambda: total(values(nginx), "llmgw_streams") == 0,
             "no stream")
    after = counters(values(nginx))
    assert all(after[key] >= before[key] for key in before)
    ended = [r for r in results if r.code == "OK"]
    assert total(after, "llmgw_requests_total", code="OK") == len(ended)
    assert total(after, "llmgw_first_token_seconds_count") == 40
    assert total(after, "llmgw_tokens_total") \
        >= sum(len(r.tokens) for r in results)
