"""One upstream and several base models: each as if it had an upstream."""

import collections
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import threading

import pytest

from llmgw.engine.report_connection import Reporter
from llmgw.fleet import words
from llmgw.proc import place
from llmgw.proc.preload import compiled
from llmgw.proc.seed import rng
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc, sse

SERVED, UNKNOWN = (200, None), (404, words.MODEL_NOT_FOUND)
ABSENT = (503, words.NO_REPLICAS)


def upstream(cluster, models=16, queue="hold=0"):
    return f"llmgw_members {cluster.gateway.members} models={models};" \
           f"\n        llmgw_hash prefix=64; llmgw_queue {queue};"


def ask(nginx, model, prompt="x", n=3):
    got = sse.call(nginx.api, sse.TEXT, sse.text(prompt, model, max_tokens=n))
    return got.status, got.error and got.error["code"]


def listed(nginx):
    with sse.Connection(nginx.api) as c:
        r = c.request("/v1/models")
        r.read()
        return sorted(m["id"] for m in r.json["data"])


def series(nginx, name):
    """{labels: value} of a family; labels as they are written."""
    found = {}
    for line in nginx.get("/metrics")[1].decode().splitlines():
        got = re.fullmatch(rf"{name}{{(.*)}} ([\d.]+)", line)
        if got:
            found[got[1]] = float(got[2])
    return found


@pytest.fixture
def fleet(cluster, serving):
    """fleet({id: model}, ...): its nginx, when all are routed; and who tells
    what each serves."""
    def make(models, capacity=0, pools=16, queue="hold=0", **options):
        cluster.agent("gw", "gateway")
        tell = {id: serving(id, model if isinstance(model, list) or not model
                            else [model], capacity=capacity)
                for id, model in models.items()}
        options.setdefault("upstream", upstream(cluster, pools, queue))
        options.setdefault("openai", True)
        options.setdefault(
            "server", "location = /metrics { llmgw_metrics; }")
        nginx = cluster.nginx(**options)
        wait_for(lambda: sorted(sum(nginx.models().values(), []))
                 == sorted(models), "all to be routed")
        return nginx, tell
    return make


def test_each_request_goes_by_its_model(cluster, fleet, client, expect):
    """No line names any of them; a name that no replica reports is unknown."""
    nginx, tell = fleet({"a1": "a", "a2": ["a", "sql"], "b1": "b", "c1": "c",
                         "plain": None})
    wait_for(lambda: nginx.models() == {"a": ["a1", "a2", "plain"],
                                        "b": ["b1"], "c": ["c1"]},
             "the pools")
    assert listed(nginx) == ["a", "b", "c", "sql"]
    for model, ids in ("b", ["b1"]), ("c", ["c1"]), ("sql", ["a2"]):
        before = {id: r.stats().started for id, r in cluster.replicas.items()}
        assert [ask(nginx, model, f"{i}") for i in range(3)] == [SERVED] * 3
        assert {id for id, r in cluster.replicas.items()
                if r.stats().started > before[id]} == set(ids)
    assert ask(nginx, "d") == UNKNOWN

    # What names no model is the majority's.
    got = client(nginx).stream("x", 3).check(expect("x", 3))
    assert set(got.replicas) <= {"a1", "a2", "plain"}

    # A model whose replicas are down is known, and the others go on.
    tell["b1"].close()
    wait_for(lambda: nginx.models()["b"] == [], "b to be down")
    assert (ask(nginx, "b"), ask(nginx, "c")) == (ABSENT, SERVED)
    assert listed(nginx) == ["a", "c", "sql"]


def test_model_that_was_scaled_to_zero_is_waited_for(cluster, fleet, clock):
    """In its own pool, hours later, when gossip has forgotten it."""
    options, ahead = clock
    nginx, tell = fleet({"a1": "a", "b1": "b"}, queue="hold=30s", **options)
    tell["b1"].say(models=["a"])
    wait_for(lambda: nginx.models() == {"a": ["a1", "b1"], "b": []}, "none")
    ahead(5 * 3600)
    assert ask(nginx, "a") == SERVED
    with concurrent.futures.ThreadPoolExecutor() as threads:
        got = threads.submit(ask, nginx, "b")
        wait_for(lambda: '_held{upstream="llm",model="b"} 1' in
                 nginx.get("/metrics")[1].decode(), "it to wait")
        assert ask(nginx, "a") == SERVED
        tell["b1"].say(models=["b"])
        assert got.result() == SERVED


# --- names of llmgw_model lines that no replica reports

def test_named_model_without_a_replica_waits_for_its_first_one(
        cluster, fleet, serving):
    """In a pool of its own; no engine of another model is asked."""
    nginx, tell = fleet({"a1": "a"}, queue="hold=30s",
                        openai="llmgw_model x as b;")
    wait_for(lambda: nginx.models() == {"a": ["a1"]}, "a")
    with concurrent.futures.ThreadPoolExecutor() as threads:
        got = threads.submit(ask, nginx, "x")
        wait_for(lambda: '_held{upstream="llm",model="b"} 1' in
                 nginx.get("/metrics")[1].decode(), "it to wait")
        assert (ask(nginx, "a"), ask(nginx, "c")) == (SERVED, UNKNOWN)
        serving("b1", ["b"])
        assert got.result() == SERVED
    assert nginx.models() == {"a": ["a1"], "b": ["b1"]}
    assert cluster.replicas["b1"].stats().started == 1
    assert listed(nginx) == ["a", "b", "x"]


def test_named_model_without_a_replica_is_absent_at_the_end_of_its_hold(
        fleet):
    nginx, _ = fleet({"a1": "a"}, openai="llmgw_model b; llmgw_model c;",
                     pools=2)
    wait_for(lambda: nginx.models() == {"a": ["a1"]}, "a")
    assert [ask(nginx, m) for m in "abcd"] == [SERVED, ABSENT, ABSENT,
                                               UNKNOWN]
    assert nginx.models() == {"a": ["a1"], "b": []}     # c found no pool


def test_named_models_are_scaled_from_zero_each_by_its_own(cluster, fleet,
                                                           serving):
    """No replica was ever there: both wait, and none goes to the other's."""
    nginx, _ = fleet({}, queue="hold=30s",
                     openai="llmgw_model a; llmgw_model b;")
    with concurrent.futures.ThreadPoolExecutor() as threads:
        a, b = (threads.submit(ask, nginx, model) for model in "ab")
        wait_for(lambda: sum(series(nginx, "llmgw_held").values()) == 2,
                 "both to wait")
        serving("b1", ["b"])
        assert b.result() == SERVED
        assert not a.done()
        serving("a1", ["a"])
        assert a.result() == SERVED
    assert {id: r.stats().started for id, r in cluster.replicas.items()} \
        == {"a1": 1, "b1": 1}
    wait_for(lambda: not nginx.counts(), "counts of zero")


def test_named_model_that_turns_out_an_adapter_is_waited_for(cluster, fleet):
    """Its request goes to the pool of the base model."""
    nginx, tell = fleet({"a1": "a", "b1": "b"}, queue="hold=30s",
                        openai="llmgw_model sql;")
    with concurrent.futures.ThreadPoolExecutor() as threads:
        got = threads.submit(ask, nginx, "sql")
        wait_for(lambda: '_held{upstream="llm",model="sql"} 1' in
                 nginx.get("/metrics")[1].decode(), "it to wait")
        tell["b1"].say(models=["b", "sql"])
        assert got.result() == SERVED
    assert cluster.replicas["b1"].stats().started == 1
    assert ask(nginx, "sql") == SERVED
    wait_for(lambda: not nginx.counts(), "counts of zero")


def test_replica_that_names_no_models_judges_a_named_one(cluster, fleet):
    nginx, _ = fleet({"a1": "a", "plain": None}, openai="llmgw_model b;")
    wait_for(lambda: nginx.models() == {"a": ["a1", "plain"]}, "both")
    assert ask(nginx, "b") == SERVED


def test_full_model_holds_up_no_other(cluster, fleet):
    nginx, _ = fleet({"a1": "a", "b1": "b"}, capacity=1,
                     queue="4 hold=0")
    wait_for(lambda: nginx.models() == {"a": ["a1"], "b": ["b1"]}, "both")
    cluster.replicas["a1"].faults(gate=1)
    with sse.Connection(nginx.api) as busy, sse.Connection(nginx.api) as waits:
        r = busy.request(sse.TEXT, sse.text("x", "a", max_tokens=3,
                                            stream=True))
        r.wait_events(1)
        later = waits.request(sse.TEXT, sse.text("y", "a", max_tokens=3))
        wait_for(lambda: nginx.pool(model="a")["queue"]["length"] == 1,
                 "one of a in the queue")
        assert ask(nginx, "b") == SERVED
        assert nginx.pool(model="b")["queue"]["length"] == 0
        assert nginx.pool(model="a")["queue"]["length"] == 1
        cluster.let_go()
        assert sse.result_of(later).status == 200
        r.wait_events(None)


def test_prompts_keep_their_replica_in_each_model(fleet):
    """Each model has a ring: others' replicas do not move its prompts."""
    nginx, tell = fleet({f"{m}{i}": m for m in "ab" for i in (1, 2, 3)})
    wait_for(lambda: [len(v) for v in nginx.models().values()] == [3, 3],
             "two models")

    def where(model):
        took = {}
        for i in range(20):
            before = counted(model)
            assert ask(nginx, model, f"prompt {i} " * 9) == SERVED
            took[i] = [id for id, n in counted(model).items()
                       if n > before[id]]
        return took

    def counted(model):
        return {r["id"]: r["totals"]["attempts"] if "totals" in r
                else r["attempts"]
                for r in nginx.pool(model=model)["replicas"]}
    first = {m: where(m) for m in "ab"}
    assert len({tuple(v) for v in first["a"].values()}) == 3
    tell["b1"].say(models=["c"])
    wait_for(lambda: sorted(nginx.models()) == ["a", "b", "c"], "a third one")
    again = where("a")
    same = sum(first["a"][i] == again[i] for i in range(20))
    assert same >= 18


def test_replica_that_changes_its_model_changes_over(cluster, fleet, client,
                                                     expect):
    """Its running stream ends as it began; nothing new of the old model."""
    nginx, tell = fleet({"a1": "a", "a2": "a", "b1": "b"})
    cluster.replicas["a1"].faults(gate=2)
    cluster.replicas["a2"].faults(gate=2)
    call, result = client(nginx).start("running", 5), rpc.Result()
    result.add(next(call), 0)
    id = result.replicas[0]
    tell[id].say(models=["b"])
    rest = "a2" if id == "a1" else "a1"
    wait_for(lambda: nginx.models() == {"a": [rest],
                                        "b": sorted([id, "b1"])}, "the move")
    cluster.let_go()
    rpc.drain(call, into=result)
    assert result.tokens == expect("running", 5)
    assert [ask(nginx, m, f"{i}") for m in "ab" for i in range(4)] \
        == [SERVED] * 8


def test_one_model_too_many_is_told_so_and_said_once(fleet, cluster):
    nginx, tell = fleet({"a1": "a", "a2": "a", "b1": "b"}, workers=2,
                        pools=2)
    tell["a2"].say(models=["c"])
    wait_for(lambda: nginx.pool()["models_unrouted"] == 1, "one too many")
    assert [ask(nginx, m) for m in "abcd"] == [SERVED, SERVED, ABSENT,
                                               UNKNOWN]
    assert sorted(nginx.models()) == ["a", "b"]
    assert listed(nginx) == ["a", "b"]
    assert series(nginx, "llmgw_models_unrouted") == {'upstream="llm"': 1}
    said = [line for line in nginx.log().splitlines()
            if "is not routed, all 2 pools" in line]
    assert len(said) == 1 and 'model "c"' in said[0]

    # With more pools it gets one; the others keep theirs.
    nginx.configure(upstream=upstream(cluster, models=3))
    nginx.reload()
    wait_for(lambda: sorted(nginx.models()) == ["a", "b", "c"], "three")
    assert [ask(nginx, m) for m in "abc"] == [SERVED] * 3


def test_sums_by_upstream_never_fall(fleet):
    """Series get a label for the model when a second one appears."""
    nginx, tell = fleet({"a1": "a", "a2": "a"})
    wait_for(lambda: nginx.models() == {"a": ["a1", "a2"]}, "one model")
    for i in range(4):
        assert ask(nginx, "a", f"{i}") == SERVED

    def sums():
        return {name: sum(series(nginx, name).values())
                for name in ("llmgw_tokens_total", "llmgw_requests_total",
                             "llmgw_attempts_total")}
    before = sums()
    assert before["llmgw_requests_total"] == 4
    assert not any("model=" in key
                   for key in series(nginx, "llmgw_requests_total"))
    tell["a2"].say(models=["b"])
    wait_for(lambda: sorted(nginx.models()) == ["a", "b"], "two models")
    assert ask(nginx, "b") == SERVED
    after = sums()
    assert after["llmgw_requests_total"] == 5
    assert after["llmgw_tokens_total"] == before["llmgw_tokens_total"] + 3
    requests = series(nginx, "llmgw_requests_total")
    assert requests['upstream="llm",model="b",code="OK",reason=""'] == 1
    assert requests['upstream="llm",model="a",code="OK",reason=""'] == 4
    assert 'upstream="llm",model=""' not in str(
        [k for k, v in requests.items() if v])
    assert 'upstream="llm"' in series(nginx, "llmgw_view_members")


def test_refusal_of_an_unknown_model_is_no_models(fleet):
    """With one model it is in the only series, with two beside both."""
    nginx, tell = fleet({"a1": "a", "a2": "a"})
    wait_for(lambda: nginx.models() == {"a": ["a1", "a2"]}, "one model")
    assert ask(nginx, "d") == UNKNOWN
    code = 'code="NOT_FOUND",reason=""'
    assert series(nginx, "llmgw_requests_total")[f'upstream="llm",{code}'] == 1
    tell["a2"].say(models=["b"])
    wait_for(lambda: sorted(nginx.models()) == ["a", "b"], "two models")
    assert ask(nginx, "d") == UNKNOWN
    found = {key: n for key, n in series(nginx, "llmgw_requests_total").items()
             if code in key and n}
    assert found == {f'upstream="llm",model="",{code}': 2}


def test_decisions_of_all_models_are_logged(cluster, fleet):
    """Each with its model, and explain makes them again."""
    log = cluster.dir / "decisions.jsonl"
    nginx, _ = fleet({"a1": "a", "b1": "b", "b2": "b"}, workers=1,
                     pool=f"llmgw_trace_decisions {log} sample=100% top=all;")
    for i in range(4):
        assert [ask(nginx, m, f"{i} prompt") for m in "ab"] == [SERVED] * 2
    found = [json.loads(line) for line in log.read_text().splitlines()]
    routes = [line for line in found if line["kind"] == "route"]
    assert [r["model"] for r in routes] == ["a", "b"] * 4
    for r in routes:
        assert r["pool"] == "llm"
        assert sorted(c["id"] for c in r["candidates"]) \
            == {"a": ["a1"], "b": ["b1", "b2"]}[r["model"]]
    assert sum(line["kind"] == "policy" for line in found) == 1
    done = subprocess.run([place.binary("llmgw-sim"), "explain", log],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def shared(pid):
    """Of each piece of memory that nginx shares: its size and what of it is
    in use, in kB."""
    with open(f"/proc/{pid}/smaps") as f:
        text = f.read()
    return [(int(size), int(used)) for size, used in re.findall(
        r"/dev/zero \(deleted\)\nSize: +(\d+) kB\n(?:.*\n)*?Rss: +(\d+) kB",
        text)]


def test_pools_without_a_model_take_no_memory(fleet):
    nginx, tell = fleet({"a1": "a", "b1": "b"}, pools=64)
    zones = [used for size, used in shared(nginx.workers()[0])
             if size == 2048]
    assert len(zones) == 64
    assert len([used for used in zones if used > 64]) <= 2


class Asker(threading.Thread):
    """A client of one model: one request after another, until stop()."""

    def __init__(self, nginx, model):
        super().__init__(daemon=True)
        self.nginx, self.model = nginx, model
        self.answers, self.over = [], threading.Event()
        self.start()

    def run(self):
        while not self.over.is_set():
            self.answers.append(ask(self.nginx, self.model,
                                    f"{len(self.answers)}"))

    def stop(self):
        upto = len(self.answers) + 3
        wait_for(lambda: len(self.answers) >= upto, "more answers")
        self.over.set()
        self.join()
        return collections.Counter(self.answers)


def places(nginx):
    """In which order the pools are, as all workers have them."""
    return [pool["model"] for pool in nginx.status()["pools"]]


def test_bindings_outlive_reloads_under_load(cluster, fleet):
    """With another number of pools too, and four workers."""
    nginx, _ = fleet({"a1": "a", "a2": "a", "b1": "b", "c1": "c"}, workers=4)
    before = places(nginx)
    askers = [Asker(nginx, m) for m in "abc"]
    for models in 64, 3, 16:
        nginx.configure(upstream=upstream(cluster, models=models))
        nginx.reload()
        wait_for(lambda: places(nginx) == before, "the same pools")
    for asker in askers:
        assert set(asker.stop()) == {SERVED}
    assert places(nginx) == before


def test_bindings_outlive_workers_that_are_killed(cluster, fleet):
    """SIGKILL of each worker, while models come and go."""
    cluster.allowed += ["exited on signal 9", "was locked by"]
    nginx, tell = fleet({"a1": "a", "a2": "a", "b1": "b", "x1": "x0"},
                        workers=2)
    before = places(nginx)
    for i in range(1, 6):
        tell["x1"].say(models=[f"x{i}"])
        for pid in nginx.workers():
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: _has(nginx, f"x{i}"), f"x{i}")
        assert places(nginx)[:3] == before
    assert [ask(nginx, m) for m in ("a", "b", "x5")] == [SERVED] * 3
    assert ask(nginx, "x1") == ABSENT       # bound for some minutes more


def _has(nginx, model):
    try:
        return nginx.models().get(model) == ["x1"]
    except OSError:
        return False                        # the worker was killed just now


# --- ten minutes, on a clock that a test moves

@pytest.fixture
def clock(cluster):
    """(options of nginx, ahead(seconds)): its clock is ahead by so much."""
    seconds = cluster.dir / "seconds"
    seconds.write_text("0")

    def ahead(n):
        made = seconds.with_suffix(".new")
        made.write_text(str(n))
        os.rename(made, seconds)
    os.environ["LLMGW_TEST_SECONDS"] = str(seconds)
    try:
        yield {"main": "env LLMGW_TEST_SECONDS; env LD_PRELOAD;",
               "preload": compiled("shifted_clock", cluster.dir)}, ahead
    finally:
        del os.environ["LLMGW_TEST_SECONDS"]


def test_model_is_unbound_ten_minutes_after_its_last_member(fleet, clock,
                                                            cluster):
    """And then the next one gets its pool; its counts stay in the sums."""
    options, ahead = clock
    nginx, tell = fleet({"a1": "a", "a2": "a", "b1": "b"}, pools=2,
                        **options)
    assert ask(nginx, "b") == SERVED
    total = sum(series(nginx, "llmgw_tokens_total").values())
    tell["b1"].say(models=["c"])
    wait_for(lambda: nginx.pool()["models_unrouted"] == 1, "one too many")
    assert [ask(nginx, m) for m in "abc"] == [SERVED, ABSENT, ABSENT]
    ahead(590)
    assert ask(nginx, "a") == SERVED
    assert sorted(nginx.models()) == ["a", "b"]
    ahead(700)
    wait_for(lambda: sorted(nginx.models()) == ["a", "c"], "its place")
    assert [ask(nginx, m) for m in "abc"] == [SERVED, UNKNOWN, SERVED]
    tokens = series(nginx, "llmgw_tokens_total")
    assert sum(tokens.values()) == total + 4 * 3
    assert tokens['upstream="llm",model="",replica=""'] == 3
    assert sum(v for k, v in tokens.items() if 'model="c"' in k) == 3


# --- many replicas

MODELS = [f"m{i}" for i in range(6)]


@pytest.mark.soak
def test_models_come_and_go_at_random(cluster, fleet):
    """Engines of six models load others, one after another, over four workers
    and reloads: each request is served by a replica of its model alone, and is
    refused only where that has none."""
    draw = rng("models")
    now = {f"r{i:02}": draw.choice(MODELS) for i in range(16)}
    nginx, tell = fleet(now, workers=4)
    for step in range(40):
        if step % 10 == 9:
            nginx.configure(upstream=upstream(cluster,
                                              draw.choice((6, 16, 64))))
            nginx.reload()
        id = draw.choice(sorted(now))
        now[id] = draw.choice(MODELS)
        tell[id].say(models=[now[id]])
        of = {m: sorted(i for i in now if now[i] == m) for m in MODELS}
        wait_for(lambda: {m: ids for m, ids in nginx.models().items() if ids}
                 == {m: ids for m, ids in of.items() if ids}, "the view")
        for model in MODELS:
            before = {i: cluster.replicas[i].stats().started for i in now}
            got = ask(nginx, model, f"{step}")
            assert got == SERVED if of[model] else got in (ABSENT, UNKNOWN)
            assert {i for i in now
                    if cluster.replicas[i].stats().started > before[i]} \
                <= set(of[model])


# --- what it costs

UNDER = ["valgrind", "-q", "--tool=callgrind", "--trace-children=yes",
         "--toggle-collect=ngx_http_llmgw_openai_received",
         "--toggle-collect=ngx_http_llmgw_session_read_handler"]
COUNTED = 10


def instructions(cluster, models, max_tokens):
    """Of a request: from its body to its attempt, and of what its replica
    sends."""
    nginx = cluster.nginx(upstream(cluster, models), start=False, openai=True,
                          workers=1)
    proc = cluster.run("nginx", [
        *UNDER, f"--callgrind-out-file={nginx.dir}/callgrind.%p",
        *nginx.argv()])

    def names():
        try:
            return list(nginx.models())
        except OSError:
            return None
    wait_for(lambda: names() == ["a"], "nginx to know a", 30)
    for i in range(COUNTED):
        assert ask(nginx, "a", f"{i}", max_tokens) == SERVED
    assert proc.stop(takes=30) is None
    texts = [path.read_text() for path in nginx.dir.glob("callgrind.*")]
    return sum(int(n) for text in texts for n in
               re.findall(r"(?m)^summary: (\d+)", text)) / COUNTED


@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind")
def test_one_model_costs_as_much_whatever_room_there_is(cluster):
    """Instructions of a request and a token, by callgrind.  Tokens come one by
    one, so that each is an iteration of its own."""
    cluster.agent("gw", "gateway")
    replica = cluster.replica("a1", token_delay="20ms")
    Reporter(cluster, cluster.agent("a1", grpc=replica.target), models=["a"],
             max_capacity=0)
    cost = {}
    for models in 1, 16:
        one = instructions(cluster, models, 1)
        many = instructions(cluster, models, 31)
        cost[models] = {"request": one, "token": (many - one) / 30}
        print(f"models={models}: {cost[models]}")
    assert cost[16]["request"] < cost[1]["request"] * 1.02 + 200
    assert cost[16]["token"] < cost[1]["token"] * 1.02 + 5
