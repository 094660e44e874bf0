"""llmgw_status reports what docs/status.md promises, for all workers."""

import json
import os
import pathlib
import signal
import urllib.request

import jsonschema
import pytest

from llmgw.engine.report_connection import Reporter
from llmgw.proc.wait import wait_for
from llmgw.shards.told import WEIGHTS, ToldShard
from llmgw.speak.callers import finish

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"
SCHEMA = json.loads((DOCS / "status.schema.json").read_text())


def checked(nginx):
    """Checks the whole answer against the schema; returns the only pool."""
    headers, body = nginx.get()
    assert headers["content-type"] == "application/json"
    assert headers["cache-control"] == "no-store"
    said = json.loads(body)
    jsonschema.Draft202012Validator(SCHEMA).validate(said)
    return said["pools"][0]


def of(pool, id):
    return next(r for r in pool["replicas"] if r["id"] == id)


def requests(pool, **want):
    return sum(r["count"] for r in pool["totals"]["requests"]
               if want.items() <= r.items())


def test_idle_pool_follows_the_schema(cluster):
    nginx = cluster.fleet(3)
    pool = checked(nginx)
    assert {r["id"] for r in pool["replicas"]} == {"r1", "r2", "r3"}
    assert [(g["state"], g["cause"]) for g in pool["gateways"]] \
        == [("ALIVE", None)]
    assert abs(sum(r["share"] for r in pool["replicas"]) - 1) < 0.001
    assert pool["totals"]["requests"] == []
    assert pool["first_token"] is None
    assert all(r["first_token"] is None for r in pool["replicas"])
    assert pool["zone"]["used"] == 3 <= pool["zone"]["slots"]
    for h in pool["histograms"].values():
        assert len(h["counts"]) == len(h["bounds"]) + 1
        assert h["bounds"] == sorted(set(h["bounds"]))
        assert h["count"] == 0


def test_engine_follows_the_schema(cluster):
    cluster.agent("gw", "gateway")
    agent = cluster.agent("r1", grpc=cluster.replica("r1").target)
    reporter = Reporter(cluster, agent, models=["a", "b"], waiting=2)
    nginx = cluster.nginx()

    def told():
        """Its load and its models come in packets of their own."""
        pool = checked(nginx)
        return any(r["engine"] and r["models"] for r in pool["replicas"]) \
            and pool
    pool = wait_for(told, "r1")
    assert pool["model"] == "a"
    only = of(pool, "r1")
    assert only["models"] == ["a", "b"]
    assert only["engine"] == {"running": None, "waiting": 2,
                              "kv_permille": None}
    age_ms = only["facts"].pop("age_ms")
    assert only["facts"] == {"active": 0, "running": None, "waiting": 2,
                             "kv_permille": None, "kv_free_blocks": None,
                             "hit_permille": None}

    # They are as old as the last report.
    reporter.silence()
    wait_for(lambda: of(checked(nginx), "r1")["facts"]["age_ms"]
             > age_ms + 1000, "older facts")


def test_how_a_pool_chooses_follows_the_schema(cluster):
    replica = cluster.replica("alone")
    nginx = cluster.nginx(
        f"server {replica.target} max_conns=4;"
        "llmgw_policy weighted queue-depth:2,prefix_affinity:0.5;"
        "llmgw_prefix_index block=32 size=8m;"
        "llmgw_queue 7 timeout=3s order=priority fairness=round_robin"
        " saturation=concurrency=4 ttl=2500ms shedding=on;")
    pool = checked(nginx)
    assert pool["policy"] == {"name": "weighted", "scorers": [
        {"name": "queue-depth", "weight": 2.0},
        {"name": "prefix-affinity", "weight": 0.5}]}
    assert pool["prefix_index"] == {"block": 32, "blocks": 2000,
                                    "match": 256, "size": 8 << 20}
    assert pool["queue"] == {
        "length": 0, "size": 7, "held": 0, "timeout_ms": 3000,
        "hold_ms": 3000, "waits_for": None,
        "order": "priority", "fairness": "round_robin",
        "saturation": "concurrency", "ttl_ms": 2500, "shedding": True}


def test_classes_and_tenants_follow_the_schema(cluster, client):
    nginx = cluster.static(
        [cluster.replica("r1", max_capacity=8)],
        pool="llmgw_slo gold ttft=60s itl=9s; llmgw_tenant_budget acme=0.5;"
             "llmgw_admission token_bucket capacity=50 rate=0.001;",
        location="llmgw_class request; llmgw_tenant request;")
    bucket = checked(nginx)["admission"]["bucket"]
    assert bucket == {"capacity": 50, "rate": 0.001, "tokens": 50}
    for _ in range(2):
        got = client(nginx).stream("p" * 40, 1, slo_class="gold",
                                   tenant_id="acme")
        assert got.code == "OK"
    assert client(nginx).stream("p" * 400, 1, tenant_id="acme").code \
        == "RESOURCE_EXHAUSTED"

    def counted(pool):
        return [g["requests"] for g in pool["classes"] + pool["tenants"]]

    wait_for(lambda: counted(checked(nginx)) == [
        {"": 0, "admission_token_bucket": 1}, {"": 2},
        {"": 2, "admission_token_bucket": 1}], "the counts")
    pool = checked(nginx)
    assert [g["name"] for g in pool["classes"]] == ["other", "gold"]
    gold = pool["classes"][1]
    assert (gold["ttft_ms"], gold["itl_ms"], gold["goodput"]) \
        == (60000, 9000, 2)
    assert gold["first_token"]["count"] == 2
    acme, = pool["tenants"]
    assert (acme["name"], acme["budget"], acme["in_flight"]) \
        == ("acme", 0.5, 0)
    assert pool["admission"]["bucket"]["tokens"] < 49


def test_shards_follow_the_schema(cluster):
    """They are listed apart, and are neither gateways nor replicas."""
    nginx = cluster.fleet(1)
    assert checked(nginx)["shards"] == []
    one = ToldShard(cluster, "s1", 0, 7, active_requests=3, waiting=2,
                    zone="eu-1")
    ToldShard(cluster, "s2", 8, 15, max_capacity=0)
    cluster.agent("s3", "shard", grpc=f"127.0.0.1:{cluster.ports.take()}")

    def shards():
        return {s["id"]: s for s in checked(nginx)["shards"]}

    def all_told():
        got = shards()
        return len(got) == 3 and got["s1"]["sessions"] == 3 \
            and got["s1"]["usable"] and got["s2"]["usable"] and got
    s1, s2, s3 = wait_for(all_told, "the shards").values()
    assert s1 == {
        "id": "s1", "address": s1["address"], "state": "ALIVE", "cause": None,
        "service": "READY", "draining": False, "usable": True, "sessions": 3,
        "max_sessions": 64, "queue": 2, "computes": {
            "model": "toy", "weights": WEIGHTS, "numerics": "n1", "first": 0,
            "last": 7, "layers": 16, "memory": 1 << 30, "loaded": True,
            "zone": "eu-1"}}
    assert (s2["queue"], s2["max_sessions"]) == (None, 0)
    assert (s2["computes"]["first"], s2["computes"]["zone"]) == (8, "")
    assert (s3["computes"], s3["usable"]) == (None, False)
    pool = checked(nginx)
    assert [g["id"] for g in pool["gateways"]] == ["gw"]
    assert [r["id"] for r in pool["replicas"]] == ["r1"]

    one.die()
    wait_for(lambda: shards()["s1"]["cause"] == "down", "its end")
    assert not shards()["s1"]["usable"]


def test_static_pool_follows_the_schema(cluster):
    replica = cluster.replica("alone")
    nginx = cluster.nginx(f"llmgw_hash; server {replica.target};")
    pool = checked(nginx)
    assert pool["gateways"] == pool["classes"] == pool["tenants"] == []
    assert pool["shards"] == []
    assert pool["policy"] == {"name": "affinity", "scorers": []}
    assert pool["prefix_index"] is None
    assert pool["admission"] == {"rule": "always", "bucket": None}
    assert pool["view"]["source"] is None
    only, = pool["replicas"]
    assert (only["id"], only["share"]) == (replica.target, 1)
    assert only["reported"] is None


@pytest.mark.soak
def test_counts_are_those_of_the_replicas(cluster, load):
    nginx = cluster.fleet(2, nginx={"workers": 2})
    jobs = [[f"prompt {i}", 3 + i % 5] for i in range(100)]
    assert {r.code for r in load(nginx, jobs, connections=4).results()} \
        == {"OK"}
    wait_for(lambda: checked(nginx)["streams"] == 0,
             "the other worker to have counted, too")
    pool = checked(nginx)
    tokens = sum(n for _, n in jobs)
    assert pool["totals"]["tokens"] == tokens
    assert pool["totals"]["attempts"] == 100
    assert pool["totals"]["failures"] == 0
    assert requests(pool) == requests(pool, code="OK", reason="") == 100
    for id, replica in cluster.replicas.items():
        told, did = of(pool, id), replica.stats()
        assert (told["tokens"], told["attempts"]) == (did.tokens, did.started)
    for name, n in (("first_token", 100), ("inter_token", tokens - 100),
                    ("request", 100), ("queue_wait", 0)):
        h = pool["histograms"][f"{name}_seconds"]
        assert h["count"] == sum(h["counts"]) == n


def test_levels_are_those_of_all_workers(cluster, caller):
    nginx = cluster.fleet(1, nginx={"workers": 2})
    cluster.hold(1)
    cluster.allowed.append("exited on signal 9")
    calls = [caller(nginx).ask(f"{i}", 2) for i in range(8)]
    for one in calls:
        one.wait_first()
    pool = checked(nginx)
    assert pool["streams"] == pool["in_flight"] == 8
    assert 1 <= pool["sessions"] <= 2
    for one in calls:
        one.cancel()
    wait_for(lambda: checked(nginx)["streams"] == 0, "no stream")
    for pid in nginx.workers():
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: checked(nginx)["sessions"] == 0,
             "the dead workers' sessions to be taken off")


@pytest.mark.timed
def test_quantiles_follow_the_load(cluster, client):
    nginx = cluster.fleet(1, replica={"first_token_delay": "150ms"})
    c = client(nginx)
    slowest = max(c.stream(f"{i}", 2).times[0] for i in range(5))
    pool = checked(nginx)
    # no bucket's bound is more than 2.5 times that of the one before
    assert 100 <= pool["first_token"]["p50_ms"] <= 2500 * slowest
    assert of(pool, "r1")["first_token"] == pool["first_token"]


@pytest.mark.soak
def test_rates_and_quantiles_are_of_the_load(cluster, caller):
    nginx = cluster.fleet(1)
    one = caller(nginx).ask("runs on", 100000).wait_first()
    wait_for(lambda: min(checked(nginx)["rates"].values()) > 0, "a rate",
             takes=4)
    one.cancel()
    wait_for(lambda: checked(nginx)["rates"] == {"tokens": 0, "attempts": 0},
             "the rate to fall to nothing", takes=4)
    pool = checked(nginx)
    assert pool["first_token"]["p50_ms"] > 0
    assert of(pool, "r1")["first_token"] == pool["first_token"]


@pytest.mark.soak
def test_failed_replica_is_told(cluster, client, caller):
    nginx = cluster.fleet(
        2, nginx={"pool": "llmgw_breaker min_requests=2 cooldown=60s;"})
    cluster.hold(1)
    one = caller(nginx).ask("to be moved", 30)
    one.wait_first()
    victim, = [r["id"] for r in checked(nginx)["replicas"] if r["in_flight"]]
    cluster.replicas[victim].kill()
    cluster.let_go()
    finish([one])
    pool = wait_for(lambda: (p := checked(nginx))
                    and of(p, victim)["cause"] == "down" and p, "down")
    told = of(pool, victim)
    assert (told["state"], told["service"]) == ("DEAD", "DOWN")
    assert (told["attempts"], told["failures"]) == (1, 1)
    assert not told["routable"]
    assert sum(pool["totals"]["failovers"].values()) == 1
    assert sum(pool["totals"]["attempts_failed"].values()) == 1


def test_open_circuit_tells_when_it_may_close(cluster, client):
    nginx = cluster.fleet(1, nginx={
        "pool": "llmgw_breaker min_requests=3 cooldown=1000s"
                " max_cooldown=1000s; llmgw_queue off;"})
    assert of(checked(nginx), "r1")["breaker"] == {
        "state": "closed", "failures": 0, "requests": 0, "probe_in_ms": None}
    cluster.replicas["r1"].faults(reject_all=True)
    client(nginx).stream("x", 2)
    pool = checked(nginx)
    breaker = of(pool, "r1")["breaker"]
    assert (breaker["state"], breaker["failures"]) == ("open", 3)
    assert 900000 < breaker["probe_in_ms"] <= 1000000
    assert pool["totals"]["breaker_transitions"]["opened"] == 1


@pytest.mark.soak
def test_breaker_off_is_null(cluster):
    nginx = cluster.fleet(1, nginx={"pool": "llmgw_breaker off;"})
    assert of(checked(nginx), "r1")["breaker"] is None


def test_line_tells_what_it_waits_for(cluster, caller):
    nginx = cluster.fleet(1, replica={"max_capacity": 1})
    cluster.hold(1)
    busy = caller(nginx).ask("busy", 2).wait_first()
    assert checked(nginx)["queue"]["waits_for"] is None
    waiter = caller(nginx).ask("waiter", 2)
    wait_for(lambda: checked(nginx)["queue"]["length"] == 1, "a waiter")
    assert checked(nginx)["queue"]["waits_for"] == "room"
    cluster.let_go()
    finish([busy, waiter])


def answer_to(nginx, method, data=None):
    ask = urllib.request.Request(
        f"http://127.0.0.1:{nginx.status_port}/status", method=method,
        data=data)
    try:
        with urllib.request.urlopen(ask, timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, b""


def test_other_methods(cluster):
    nginx = cluster.static([], hash="prefix=64;\n        server 127.0.0.1:1")
    assert answer_to(nginx, "HEAD") == (200, b"")
    assert answer_to(nginx, "POST", b"x") == (405, b"")


def without_required(schema):
    if isinstance(schema, dict):
        return {k: without_required(v) for k, v in schema.items()
                if k != "required"}
    return schema


def test_example_of_the_docs_follows_the_schema():
    """It leaves things out, but has no name that does not exist."""
    text = (DOCS / "status.md").read_text()
    example = json.loads(text.partition("```json\n")[2].partition("```")[0])
    jsonschema.Draft202012Validator(without_required(SCHEMA)).validate(example)
    pool, = example["pools"]
    assert set(pool) == set(SCHEMA["$defs"]["pool"]["properties"])
    replica, = pool["replicas"]
    assert set(replica) == set(SCHEMA["$defs"]["replica"]["properties"])
    zone, = example["keys"]
    assert set(zone) == set(SCHEMA["$defs"]["keys"]["properties"])
    account, = zone["accounts"]
    assert set(account) == set(SCHEMA["$defs"]["account"]["properties"])


def test_docs_explain_every_field_of_a_replica():
    text = (DOCS / "status.md").read_text()
    table = text.partition("## A gateway, a replica")[2]
    for name in SCHEMA["$defs"]["replica"]["properties"]:
        assert f"`{name}`" in table or name in ("id", "address", "weight",
                                                "model_version"), name
