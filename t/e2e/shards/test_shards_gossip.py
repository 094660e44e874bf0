"""What shards say of themselves, from their reports to all that show it.

The shards are told (llmgw/shards/told.py): their agents, gossip, the segment,
llmgwctl and nginx are real, and nothing is computed.
"""

import json

import pytest

from llmgw.engine.report_connection import Reporter
from llmgw.proc import place
from llmgw.proc.wait import wait_for
from llmgw.shards.told import OTHER_WEIGHTS, WEIGHTS, ToldShard

PIPELINES = {
    "ready": True, "streams": 2, "tokens": 700, "constructs": 4,
    "construct_us": {"sum": 8000, "p50": 1500, "p95": 4000},
    "first_token_us": {"count": 4, "sum": 90000, "p50": 20000, "p95": 40000},
    "failovers": {"failed": 1, 'a"b': 2}, "fallbacks": 0, "replays": 1,
    "shards": [
        {"id": "toy:0-7@s1", "member": "s1", "first": 0, "last": 7,
         "sessions": 2, "steps": 9, "corruptions": 1, "failovers": 1,
         "latency_us": {"sum": 18000, "p50": 1900, "p95": 2500},
         "excluded_ms": 30000, "excluded_for": "shard_corruption"},
        {"id": "toy:8-15@s2", "member": "s2", "first": 8, "last": 15,
         "sessions": 2, "steps": 9, "corruptions": 0,
         "latency_us": {"sum": 9000, "p50": 900, "p95": 1000}}]}

MAP = f"""\
toy, 16 layers, weights {WEIGHTS[:12]}, numerics n1
      0       8
  s1  ########........  0-7    3/64 sessions, 1 waits  loaded  2.0 GiB  eu-1
  s2  ....########....  4-11   0/64 sessions           loaded  1.0 GiB
  s3  ............####  12-15  0/64 sessions           -       1.0 GiB
      1111222211111111

toy, 80 layers, 2 a column, weights {OTHER_WEIGHTS[:12]}, numerics n1
      0       16      32      48      64
  w1  {40 * "#"}  0-79  0/64 sessions  loaded  1.0 GiB
      {40 * "1"}
s4 reports nothing about its slice"""


@pytest.fixture
def gateway(cluster):
    agent = cluster.agent("gw", "gateway")
    wait_for(agent.table, "the gateway's agent")
    return agent


def collected(agent):
    return json.loads(agent.ctl("--json", "shards").stdout)


def gaps(agent):
    """Of the only model; None: there is none."""
    models = collected(agent)["models"]
    return models[0]["gaps"] if models else None


def drawn(agent):
    out = agent.ctl("shards")
    assert out.returncode == 0, out.stderr
    return [line.rstrip() for line in out.stdout.splitlines()]


def wait_usable(agent, *ids):
    """All of these take new sessions, as far as this agent knows."""
    def unusable():
        table = agent.table()
        return [id for id in ids
                if not table.get(id, {}).get("shard", {}).get("usable")]
    wait_for(lambda: not unusable(), f"{ids} to be usable")


class Events:
    """llmgwctl events, from now on."""

    def __init__(self, cluster, agent):
        self.proc = cluster.run(
            "events", [place.binary("llmgwctl"), "-s", agent.control,
                       "events"])
        wait_for(lambda: '"members"' in self.proc.text(), "the first line")

    def of_shards(self):
        lines = [json.loads(line) for line in self.proc.text().splitlines()
                 if line.endswith("}")]         # the last may be half there
        return [(e["event"].removeprefix("shard_"), e["shard"])
                for e in lines if e["event"].startswith("shard_")]


def test_coverage_is_drawn_with_its_gaps(cluster, gateway):
    assert drawn(gateway) == ["there are no shards"]
    ToldShard(cluster, "s1", 0, 7, active_requests=3, waiting=1, zone="eu-1",
              memory=2 << 30)
    ToldShard(cluster, "s2", 4, 11)
    ToldShard(cluster, "s3", 12, 15, loaded=False)
    ToldShard(cluster, "w1", 0, 79, layers=80, weights=OTHER_WEIGHTS)
    cluster.agent("s4", "shard", grpc=f"127.0.0.1:{cluster.ports.take()}")
    wait_usable(gateway, "s1", "s2", "s3", "w1")
    wait_for(lambda: "s4" in gateway.table(), "the silent one")
    wait_for(lambda: drawn(gateway) == MAP.split("\n"), f"\n{MAP}\n")

    # Drained, the middle has no usable shard; it ends as it began.
    assert gateway.ctl("drain", "s2").returncode == 0
    wait_for(lambda: gaps(gateway) == [[8, 11]], "the gap")
    wait_for(lambda: drawn(gateway)[3].endswith("draining"), "the reason")
    assert drawn(gateway)[3][6:22] == "....oooooooo...."
    wait_for(lambda: drawn(gateway)[6]
             == "  layers 8-11 have no usable shard", "its name")
    table = gateway.table()["s2"]
    assert (table["role"], table["draining"]) == ("shard", True)
    assert gateway.ctl("undrain", "s2").returncode == 0
    wait_for(lambda: gaps(gateway) == [], "its return")

    members = gateway.ctl("members").stdout
    assert "toy:4-11 of 16" in members and "3/64" in members
    assert collected(gateway)["silent"] == ["s4"]


def test_shards_come_and_go_as_events(cluster, gateway):
    """At once with the process."""
    events = Events(cluster, gateway)
    one = ToldShard(cluster, "s1", 0, 7)
    two = ToldShard(cluster, "s2", 8, 15)
    wait_usable(gateway, "s1", "s2")
    wait_for(lambda: len(events.of_shards()) == 2, "both offers")
    assert sorted(events.of_shards()) == [("advertised", one.name),
                                          ("advertised", two.name)]
    one.die()
    wait_for(lambda: events.of_shards()[2:] == [("retired", one.name)],
             "its end")
    wait_for(lambda: gaps(gateway) == [[0, 7]], "the gap")

    # A new process brings it back.
    again = Reporter(cluster, one.agent, shard=one.shard, max_capacity=64)
    wait_usable(gateway, "s1")
    wait_for(lambda: events.of_shards()[3:] == [("advertised", one.name)],
             "its return")
    again.close()


@pytest.mark.soak
def test_what_a_shard_said_is_forgotten_some_time_later(cluster, gateway):
    """First it stalls, and is offered, but not used."""
    events = Events(cluster, gateway)
    one = ToldShard(cluster, "s1", 0, 15,
                    agent={"test_shard_expiry": "3200ms"})
    wait_usable(gateway, "s1")
    one.hang()
    wait_for(lambda: gateway.table()["s1"]["service"] == "STALLED",
             "a stall", takes=4)
    wait_for(lambda: "shard" not in gateway.table()["s1"], "its expiry",
             takes=4)
    assert gateway.table()["s1"]["state"] == "ALIVE"
    wait_for(lambda: events.of_shards()[1:] == [("retired", one.name)],
             "its retirement")
    assert collected(gateway) == {"models": [], "silent": ["s1"]}

    # A new process brings it back.
    one.die()
    again = Reporter(cluster, one.agent, shard=one.shard, max_capacity=64)
    wait_usable(gateway, "s1")
    again.close()


def test_nothing_is_routed_to_shards(cluster, client, expect):
    """nginx lists them, and neither asks them nor counts them."""
    nginx = cluster.fleet(1)
    ToldShard(cluster, "s1", 0, 15, active_requests=60)
    wait_usable(cluster.gateway, "s1")
    wait_for(lambda: nginx.pool()["view"]["members"] == 3, "nginx's view")
    assert nginx.routable() == ["r1"]
    for n in range(3):
        client(nginx).stream(f"hello {n}", 3).check(expect(f"hello {n}", 3))

    # Nor is one part of a rolling update, unless it is named: then it refuses.
    plan = cluster.gateway.ctl("--json", "rolling-update", "--to", "v2",
                               "--dry-run")
    assert "s1" not in plan.stdout
    named = cluster.gateway.ctl("rolling-update", "--to", "v2", "--members",
                                "s1", "--dry-run")
    assert named.returncode == 4 and "is no replica" in named.stderr


def test_report_of_a_shard_is_for_a_shards_agent(cluster, gateway):
    replica = cluster.replica("r1")
    agent = cluster.agent("r1", grpc=replica.target)
    shard = {"model": "toy", "weights": WEIGHTS, "numerics": "n1", "first": 0,
             "last": 7, "layers": 8, "memory": 1}
    reporter = Reporter(cluster, agent)
    wait_for(lambda: reporter.answers, "the first answer")
    assert reporter.refusal(shard=shard)["code"] == "not_a_shard"
    wrong = reporter.refusal(shard={**shard, "last": 8})
    assert wrong["code"] == "bad_report" and '"last"' in wrong["error"]


def metric(agent, name):
    """{labels: value} of its series."""
    lines = [line.rsplit(" ", 1)
             for line in agent.ctl("metrics").stdout.splitlines()
             if line.startswith(name + "{")]
    return {labels[len(name):]: float(value) for labels, value in lines}


def test_an_orchestrator_tells_how_its_shards_do(cluster, gateway):
    """In its agent's status, as metrics, and which it leaves out."""
    ToldShard(cluster, "s1", 0, 7)
    ToldShard(cluster, "s2", 8, 15)
    replica = cluster.replica("o1")
    agent = cluster.agent("o1", grpc=replica.target)
    reporter = Reporter(cluster, agent, pipelines=PIPELINES)
    wait_usable(agent, "s1", "s2")

    status = json.loads(agent.ctl("--json", "status").stdout)
    assert status["pipelines"] == PIPELINES
    assert "construct_us" in agent.ctl("status").stdout
    assert metric(agent, "llmgw_pipeline_construct_seconds") == {
        '{agent="o1",quantile="0.5"}': 0.0015,
        '{agent="o1",quantile="0.95"}': 0.004}
    assert metric(agent, "llmgw_pipeline_construct_seconds_count") == {
        '{agent="o1"}': 4}
    assert metric(agent, "llmgw_pipeline_failovers_total") == {
        '{agent="o1",reason="failed"}': 1, '{agent="o1",reason="a\\"b"}': 2}
    assert metric(agent, "llmgw_shard_latency_seconds_sum") == {
        '{agent="o1",shard="toy:0-7@s1"}': 0.018,
        '{agent="o1",shard="toy:8-15@s2"}': 0.009}
    assert metric(agent, "llmgw_shard_corruption_detected_total") == {
        '{agent="o1",shard="toy:0-7@s1"}': 1,
        '{agent="o1",shard="toy:8-15@s2"}': 0}
    assert metric(agent, "llmgw_shard_excluded_seconds") == {
        '{agent="o1",shard="toy:0-7@s1"}': 30}

    # Which ones it leaves out is known where it is known.
    wait_for(lambda: any("excluded for 30.0 s: shard_corruption" in line
                         for line in drawn(agent)), "what it leaves out")
    wait_usable(gateway, "s1")
    assert not any("left out" in line for line in drawn(gateway))

    wait_for(lambda: reporter.answers, "the first answer")
    too_long = {"x": "y" * 32768}
    assert reporter.refusal(pipelines=too_long)["code"] == "bad_report"
    reporter.close()
    wait_for(lambda: "pipelines" not in
             json.loads(agent.ctl("--json", "status").stdout),
             "its end")
