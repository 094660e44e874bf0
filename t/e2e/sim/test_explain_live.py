"""The decision log that nginx writes, and what explain makes of it."""

import json
import os
import signal
import subprocess

import pytest

from llmgw.fleet import words
from llmgw.proc import place
from llmgw.proc.wait import wait_for
from llmgw.sim.blis import SIM
from llmgw.speak import rpc
from llmgw.speak.callers import finish

POLICIES = ("affinity", "round_robin", "least_loaded", "weighted default",
            "weighted llm-d")
ALL = "llmgw_trace_decisions @dir@/decisions.jsonl sample=100% top=all {};"


@pytest.fixture
def traced(cluster):
    """traced(trace, ...): a fleet behind nginx with a decision log."""
    def make(trace=ALL.format(""), replica=None, **nginx):
        return cluster.fleet(4, replica={"token_delay": "0ms",
                                         **(replica or {})},
                             nginx={"pool": trace, **nginx})
    return make


def path_of(nginx):
    return nginx.dir / "decisions.jsonl"


def explain(path, *words, code=0):
    run = subprocess.run([SIM, "explain", *words, str(path)], text=True,
                         capture_output=True)
    assert run.returncode == code, run.stderr
    return run


def said(path):
    run = explain(path, "--json")
    assert run.stderr == ""
    return json.loads(run.stdout)


def bench(nginx, requests, *more):
    subprocess.run(
        [place.binary("llmgw-client"), "bench", "--gateway", nginx.target,
         "--requests", str(requests), "--duration", "60s", "--ramp", "0",
         "--max-tokens", "2", "--prompts", "150", "--prompt-bytes", "300",
         *map(str, more)], check=True, capture_output=True, timeout=60)


def lines(nginx, kind=None):
    """Those of the file that are whole."""
    text = path_of(nginx).read_text()
    found = [json.loads(line) for line in text.split("\n")[:-1]]
    return [line for line in found if kind in (None, line["kind"])]


def count(nginx, result):
    return nginx.pool()["totals"]["trace_lines"][result]


def end(nginx):
    """Its workers write what is in their buffers."""
    nginx.proc.send(signal.SIGQUIT)
    wait_for(lambda: not nginx.proc.alive(), "nginx to end")


def chosen(nginx):
    return [line for line in lines(nginx, "route") if "outcome" not in line]


@pytest.mark.parametrize("requests", [
    300, pytest.param(2000, marks=[pytest.mark.soak, pytest.mark.first])])
def test_live_choices_are_made_again(traced, requests):
    """Five policies, one after the other, by four workers, into one file;
    replicas that are often full, so that requests wait."""
    nginx = traced(ALL.format("buffer=64k flush=50ms"), workers=4,
                   replica={"max_capacity": 5}, policy=POLICIES[0])
    for i, policy in enumerate(POLICIES):
        if i:
            nginx.configure(policy=policy)
            nginx.reload()
        bench(nginx, requests, "--connections", 32)

    end(nginx)
    got = said(path_of(nginx))
    total = requests * len(POLICIES)
    assert got["routed"] == got["replayed"] == total
    assert got["different"] == got["not_replayed"] == got["unreadable"] == 0
    assert set(got["outcomes"]) == {"waits"}
    assert set(got["targets"]) == {"r1", "r2", "r3", "r4"}

    heads = lines(nginx, "log")
    assert len({head["worker"] for head in heads}) > len(POLICIES)
    assert {line["policy"] for line in lines(nginx, "policy")} == {
        "affinity", "round-robin", "least-loaded", "weighted"}
    routes = chosen(nginx)
    assert {"affinity", "policy", "cold"} <= {r["route"] for r in routes}
    assert {c.get("failed") for r in routes for c in r["candidates"]} \
        >= {"full", None}
    ages = [c["age_ms"] for r in routes for c in r["candidates"]
            if "age_ms" in c]
    assert len(ages) > 2 * total and max(ages) < 60000


def test_a_moved_file_is_begun_again_and_buffers_are_written(traced):
    nginx = traced(ALL.format("buffer=1m"), workers=2)
    bench(nginx, 200, "--connections", 8)
    assert count(nginx, "written") == 0

    moved = nginx.dir / "moved.jsonl"
    path_of(nginx).rename(moved)
    nginx.proc.send(signal.SIGUSR1)
    wait_for(path_of(nginx).exists, "the file to be opened again")
    bench(nginx, 200, "--connections", 8)
    end(nginx)

    old, new = said(moved), said(path_of(nginx))
    assert old["routed"] >= 200
    assert old["routed"] + new["routed"] == 400
    for got in old, new:
        assert got["replayed"] == got["routed"] and got["different"] == 0


@pytest.mark.soak
def test_a_killed_worker_leaves_a_log_that_can_be_read(cluster, traced):
    cluster.allowed += ["exited on signal 9", "was locked by"]
    nginx = traced(ALL.format("buffer=4k"), workers=2)
    before = nginx.workers()
    with subprocess.Popen(
            [place.binary("llmgw-client"), "bench", "--gateway", nginx.target,
             "--connections", "16", "--duration", "60s", "--ramp", "0",
             "--max-tokens", "2"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL) as load:
        for pid in before:
            had = count(nginx, "written")
            wait_for(lambda: count(nginx, "written") > had + 200, "lines")
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: pid not in nginx.workers(), "its end")
        load.kill()

    wait_for(lambda: len(nginx.workers()) == 2, "other workers")
    bench(nginx, 200)
    end(nginx)
    got = json.loads(explain(path_of(nginx), "--json").stdout)
    assert got["routed"] == got["replayed"] > 500
    assert got["different"] == 0
    assert got["unreadable"] <= len(before)


@pytest.fixture
def tiny(tmp_path):
    """A file system of 128 kB."""
    if os.getuid() != 0:
        pytest.skip("needs root to mount")
    made = tmp_path / "tiny"
    made.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k,mode=755",
                    "tiny", made], check=True)
    yield made
    subprocess.run(["umount", "-l", made], check=True)


def test_a_full_disk_loses_lines_and_no_request(traced, tiny):
    path = tiny / "decisions.jsonl"
    filler = tiny / "filler"
    filler.write_bytes(b"x" * 65536)
    nginx = traced(f"llmgw_trace_decisions {path} sample=100% top=all;")
    bench(nginx, 500)       # all of them are served
    assert count(nginx, "lost") > 100
    said = [line for line in nginx.log().splitlines()
            if "cannot write to the decision log" in line]
    assert 0 < len(said) == len({line.split(" [")[0] for line in said})
    assert "No space left on device" in said[0]

    filler.unlink()
    had = count(nginx, "written")

    def goes_on():
        bench(nginx, 1)
        return count(nginx, "written") > had
    wait_for(goes_on, "lines that can be written again")
    end(nginx)
    got = json.loads(explain(path, "--json").stdout)
    assert got["routed"] == got["replayed"] > 0
    assert got["different"] == 0
    assert path.read_text().count('\n{"kind":"log"') > 0     # begun anew


@pytest.mark.soak
def test_a_request_is_in_the_sample_with_all_its_decisions_or_none(traced):
    nginx = traced("llmgw_breaker off; llmgw_trace_decisions"
                   " @dir@/decisions.jsonl sample=10% top=1;",
                   replica={"error_rate": "0.1"}, location="llmgw_tries 12;",
                   policy="round_robin")
    bench(nginx, 2000, "--connections", 8)
    requests = {}
    for line in lines(nginx, "route"):
        requests.setdefault(line["request"], []).append(line)
        assert len(line["candidates"]) < 3
    assert 100 < len(requests) < 300
    for tries in requests.values():
        # A pause before replicas are asked again is a line without one.
        made = [t["attempt"] for t in tries if "chosen" in t]
        assert made == [*range(1, len(made) + 1)]
    assert max(map(len, requests.values())) > 1
    assert said(path_of(nginx))["not_replayed"] > 100


def test_without_facts_and_under_other_fronts(cluster):
    """Static lines tell nothing of themselves; a native pass has the id that
    nginx gave it."""
    replicas = [cluster.replica(f"r{i}", token_delay="0ms") for i in range(3)]
    nginx = cluster.static(
        replicas, pool=ALL.format(""), server="location /native/ {"
        " proxy_read_timeout 50ms; proxy_next_upstream off;"
        " proxy_pass http://llm/; }")
    bench(nginx, 30)
    subprocess.run(["curl", "-s", "-o", "/dev/null", "--http0.9", "-m", "5",
                    "-H", "connection: close",
                    f"http://{nginx.api}/native/"])     # a replica: no HTTP/1
    routes = chosen(nginx)
    assert said(path_of(nginx))["replayed"] == len(routes) > 30
    assert all(len(r["request"]) == 32 for r in routes)
    assert not any("age_ms" in c for r in routes for c in r["candidates"])
    assert routes[0]["candidates"][0]["unknown"] == ["queue", "batch", "kv"]
    assert {c["id"] for c in routes[0]["candidates"]} \
        == {r.target for r in replicas}


@pytest.mark.soak
def test_choices_among_many_are_made_again(cluster):
    """From 256 replicas on the ring keeps the sums of its bound for a
    millisecond; the bound is so tight that many requests go elsewhere."""
    one = cluster.replica("r", token_delay="1ms")
    members = cluster.dir / "members"
    segment = cluster.run("segment", [
        place.ROOT / "build" / "bench" / "segment", members, 300, 1000,
        "still", one.target.split(":")[1]])
    wait_for(lambda: "ready" in segment.text(), "the segment")
    nginx = cluster.nginx(
        f"llmgw_members {members}; llmgw_hash load_factor=1 min_load=0;"
        " llmgw_trace_decisions @dir@/decisions.jsonl sample=100% top=all;",
        workers=2)
    bench(nginx, 200, "--connections", 16, "--streams", 4)
    got = said(path_of(nginx))
    assert got["routed"] == got["replayed"] == 200
    routes = chosen(nginx)
    assert {r["of"] for r in routes} == {300}
    assert {r["route"] for r in routes} >= {"affinity", "spill"}
    assert sum("sums" in r for r in routes) > 50


@pytest.mark.soak
@pytest.mark.parametrize("policy", ["affinity", "weighted default"])
def test_choices_that_no_rank_decides_are_made_again(cluster, client, policy):
    """A replica that failed once is taken again where the other one's circuit
    is open; where all circuits are open, an attempt is forced.  Of eight
    requests at once one alone may force a circuit."""
    nginx = cluster.fleet(2, replica={"token_delay": "0ms"}, nginx={
        "pool": "llmgw_queue off; llmgw_breaker error_rate=90% cooldown=60s;"
                + ALL.format(""), "policy": policy})
    r1, r2 = cluster.replicas["r1"], cluster.replicas["r2"]
    c = client(nginx)

    def seen(is_such):
        def ask():
            for call in [c.start("a prompt", 2, timeout=5) for _ in range(8)]:
                rpc.drain(call)
            return any(is_such(r, r["candidates"][r["chosen"]])
                       for r in chosen(nginx))
        return ask

    r2.faults(reject_all=True)
    for _ in range(8):          # so that r1 has not failed most of them
        assert c.stream("a prompt", 2).code == "OK"
    r1.faults(error_rate=0.3)
    wait_for(seen(lambda r, best: r["attempt"] > 1 and "failed" not in best
                  and {c.get("circuit") for c in r["candidates"]}
                  == {None, "open"} and "state" in best),
             "a replica that is taken again")
    r1.faults(reject_all=True)
    wait_for(seen(lambda r, best: best.get("failed") == "circuit"),
             "a forced attempt")
    got = said(path_of(nginx))
    assert got["replayed"] == got["routed"] == len(chosen(nginx))
    assert got["different"] == 0


def test_what_the_queue_refuses_is_there_with_its_reason(cluster, traced,
                                                         caller):
    nginx = traced("llmgw_queue size=1 timeout=2s; llmgw_trace_decisions"
                   " @dir@/decisions.jsonl sample=100%;",
                   replica={"max_capacity": 1})
    cluster.hold(1)
    busy = [caller(nginx).ask(f"busy {i}", 2) for i in range(4)]
    for one in busy:
        one.wait_first()
    waiter = caller(nginx).ask("waiter", 2)
    wait_for(lambda: nginx.waiting() == 1, "a request to wait")
    finish([caller(nginx).ask("too many", 2), waiter], takes=4)
    cluster.let_go()
    finish(busy)

    got = said(path_of(nginx))
    assert got["routed"] == 4 and got["admitted"] == 0
    assert got["rejections"] == {words.QUEUE_FULL: 1, words.QUEUE_TIMEOUT: 1}
    assert got["outcomes"]["full"] == 1 and got["outcomes"]["waits"] >= 1
    refused = lines(nginx, "admission")
    assert {(r["pool"], r["slo_class"], r["tenant"]) for r in refused} \
        == {("llm", "", "")}
    assert {r["request"] for r in refused}.isdisjoint(
        r["request"] for r in chosen(nginx))


def test_who_may_enter_is_there_with_class_and_tenant(traced, caller):
    nginx = traced("llmgw_admission token_bucket capacity=4 rate=1;"
                   " llmgw_trace_decisions @dir@/decisions.jsonl"
                   " sample=100%;",
                   location="llmgw_class request; llmgw_tenant request;")
    known = {"slo_class": "critical", "tenant_id": "acme"}
    finish([caller(nginx).ask("x" * 12, 1, **known)])
    finish([caller(nginx).ask("x" * 4000, 1, slo_class="made up")])
    one, two = lines(nginx, "admission")
    assert (one["slo_class"], one["admitted"], one["tokens"]) \
        == ("critical", True, 3)
    assert len(one["tenant"]) == 16 and int(one["tenant"], 16)
    assert (two["slo_class"], two["tenant"], two["tokens"], two["reason"]) \
        == ("other", "", 1000, "admission_token_bucket")
    assert [r["request"] for r in chosen(nginx)] == [one["request"]]
    got = said(path_of(nginx))
    assert (got["admitted"], got["rejected"]) == (1, 1)
    assert got["rejections"] == {"admission_token_bucket": 1}
