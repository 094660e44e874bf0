"""Flow control in the queue: which request is served next, held or shed.

The replica is a gate in this process: it notes which prompts come, in which
order, and answers each when the test says so.  So no test looks at a clock.
"""

import collections
import contextlib
import os
import re
import signal
import threading

import pytest

from llmgw.engine.report_connection import Reporter
from llmgw.engine.scripted import Target, scripted
from llmgw.fleet import words
from llmgw.fleet.native import HTTP
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc, sse
from llmgw.speak.callers import finish, on_each_worker

pytestmark = pytest.mark.flow

RESOURCE_EXHAUSTED = 8
WHOSE = "llmgw_class request; llmgw_tenant request;"
METRICS = "location = /metrics { llmgw_metrics; }"


class Gate:
    def __init__(self):
        self.served = []
        self.open = threading.Semaphore(0)

    def generate(self, request, context):
        self.served.append(request.prompt)
        while context.is_active() and not self.open.acquire(timeout=0.1):
            pass
        yield rpc.pb.GenerateResponse(token="t", is_final=True)

    def let(self, n):
        """n requests are answered."""
        for _ in range(n):
            self.open.release()

    def wait_served(self, n):
        wait_for(lambda: len(self.served) >= n,
                 f"{n} requests at the replica", interval=0.002)
        return self.served[:n]


@pytest.fixture
def gate(cluster, ports):
    """gate(queue, ...): a Gate, and nginx before it with that llmgw_queue."""
    with contextlib.ExitStack() as stack:
        def start(queue, capacity=1, replicas=1, **options):
            made = Gate()
            cluster.closers.append(lambda: made.let(1000))
            targets = [Target(ports.take()) for _ in range(replicas)]
            for target in targets:
                port = int(target.target.split(":")[1])
                stack.enter_context(scripted(port, made.generate, threads=64))
            lines = "".join(f" server {t.target} max_conns={capacity};"
                            for t in targets)
            options.setdefault("location", WHOSE)
            options["server"] = options.get("server", "") + METRICS
            made.upstream = lambda queue: f"llmgw_hash; {queue}{lines}"
            return made, cluster.nginx(made.upstream(queue), **options)
        yield start


def fill(gate, caller, nginx, n=1):
    callers = [caller(nginx).ask(f"busy {i}", 1) for i in range(n)]
    gate.wait_served(n)
    return callers


def line_up(nginx, callers, prompts, **fields):
    """One after another, each in the queue before the next one asks."""
    for one, prompt in zip(callers, prompts):
        before = nginx.waiting()
        slo_class, tenant = prompt.split()[:2]
        one.ask(prompt, 1, **{**fields, "slo_class": slo_class,
                              "tenant_id": tenant})
        wait_for(lambda: nginx.waiting() == before + 1,
                 f"{prompt} in the queue", interval=0.002)


def jain(counts):
    """Jain, Chiu, Hawe, 1984"""
    return sum(counts) ** 2 / (len(counts) * sum(x * x for x in counts))


def all_is_well(nginx, callers):
    finish(callers)
    assert [(c.status, c.reason) for c in callers] \
        == [(0, None)] * len(callers)
    wait_for(lambda: not nginx.counts(), "counts of zero")


# --- who is next

def test_classes_are_served_by_priority_over_all_workers(gate, caller):
    made, nginx = gate("llmgw_queue 100 order=priority;", workers=4)
    callers = fill(made, caller, nginx)
    prompts = ["sheddable a 1", "standard a 2", "critical a 3", "batch a 4",
               "critical a 5", "standard a 6", "background a 7", "other a 8"]
    waiters = [c for one in on_each_worker(nginx, 2, caller) for c in one]
    line_up(nginx, waiters, prompts)
    made.let(9)
    assert made.wait_served(9)[1:] == [
        "critical a 3", "critical a 5", "standard a 2", "standard a 6",
        "other a 8", "batch a 4", "sheddable a 1", "background a 7"]
    all_is_well(nginx, callers + waiters)


def test_first_come_first_served_over_two_workers(gate, caller):
    """A queue in its default order knows no classes."""
    made, nginx = gate("llmgw_queue 100;", workers=2)
    callers = fill(made, caller, nginx)
    prompts = ["sheddable a 1", "critical a 2", "standard a 3",
               "critical a 4", "sheddable a 5", "standard a 6"]
    waiters = [c for one in zip(*on_each_worker(nginx, 3, caller))
               for c in one]
    line_up(nginx, waiters, prompts)
    made.let(7)
    assert made.wait_served(7)[1:] == prompts
    all_is_well(nginx, callers + waiters)


@pytest.mark.soak
def test_earliest_deadline_is_served_first(gate, caller):
    """Of one priority, and one tenant."""
    made, nginx = gate(
        "llmgw_slo patient priority=3 ttft=60s; llmgw_slo hasty priority=3"
        " ttft=1s; llmgw_slo top priority=5; llmgw_queue order=slo_deadline;")
    callers = fill(made, caller, nginx)
    prompts = ["standard a 1", "patient a 2", "hasty a 3", "top a 4"]
    waiters = [caller(nginx) for _ in prompts]
    line_up(nginx, waiters, prompts)
    made.let(5)
    assert made.wait_served(5)[1:] == ["top a 4", "hasty a 3", "patient a 2",
                                       "standard a 1"]
    all_is_well(nginx, callers + waiters)


@pytest.mark.soak
def test_critical_is_served_at_twice_the_capacity(gate, caller):
    """Two of four that come in each round can be served."""
    made, nginx = gate("llmgw_queue size=4 order=priority shedding=on;",
                       capacity=2, workers=2)
    callers = fill(made, caller, nginx, 2)
    kinds, rounds = [], 6
    for i in range(rounds):
        for kind in "sheddable", "critical", "standard", "sheddable":
            kinds.append(kind)
            callers.append(caller(nginx).ask(f"{kind} {i}", 1,
                                             slo_class=kind))
            wait_for(lambda: all_are_known(nginx, callers),
                     "it to wait, or to be refused")
        made.let(2)
        served = made.wait_served(4 + 2 * i)[-2:]
        assert f"critical {i}" in served, made.served   # in its own round
    made.let(100)
    finish(callers)
    got = collections.Counter((kind, c.reason or "served")
                              for kind, c in zip(kinds, callers[2:]))
    assert got["critical", "served"] == got["standard", "served"] == rounds
    assert got["sheddable", words.QUEUE_SHED]
    assert got["sheddable", words.QUEUE_FULL]
    assert got["sheddable", "served"] <= 4      # those that wait at the end
    wait_for(lambda: not nginx.counts(), "counts of zero")


# Class, requests a second, of 32 a second that two replicas can serve.
OFFERED = ("critical", 8), ("standard", 16), ("sheddable", 40)
SECONDS = int(os.environ.get("LLMGW_CLASSES", "3"))


@pytest.mark.timed
@pytest.mark.parametrize("order", ["priority", "fifo"]
                         if "LLMGW_CLASSES" in os.environ else ["priority"])
def test_classes_keep_their_targets_at_twice_the_capacity(cluster, load,
                                                          order):
    """Real replicas, streams of half a second, a target of ten such; with
    LLMGW_CLASSES=20 and -s so many seconds, and what each class had of them.
    """
    nginx = cluster.fleet(
        2, replica={"token_delay": "50ms", "max_capacity": 8},
        nginx={"location": WHOSE, "server": METRICS, "pool":
               f"llmgw_queue size=32 order={order} shedding=on;"
               " llmgw_slo critical ttft=5s;"})
    jobs = [(of, load(nginx, [[f"{of} {i}", 10] for i in range(n * SECONDS)],
                      fields={"slo_class": of}, starts_per_second=n))
            for of, n in OFFERED]
    got = {of: job.results() for of, job in jobs}
    for of, results in got.items():
        first = sorted(r.times[0] for r in results if r.times)
        print(order, of, collections.Counter(
            r.trailers.get(words.REASON, r.code) for r in results),
            "first token, p50 and p99:",
            *(round(first[int(len(first) * q)], 3) for q in (0.5, 0.99)))
    if order == "priority":
        for of in "critical", "standard":
            assert {r.code for r in got[of]} == {"OK"}
        assert {r.trailers.get(words.REASON) for r in got["sheddable"]
                if r.code != "OK"} <= {words.QUEUE_FULL, words.QUEUE_SHED}
        assert nginx.counted("llmgw_class_goodput_total")["critical"] \
            == len(got["critical"])
    wait_for(lambda: not nginx.counts(), "counts of zero")


def all_are_known(nginx, callers):
    """Each waits, is at a replica, or has ended."""
    for one in callers:
        if one.ended is None:
            one.take_in()
    return nginx.waiting() + nginx.in_flight() \
        + sum(c.ended is not None for c in callers) == len(callers)


# --- tenants

def test_tenant_with_ten_times_the_load_gets_its_share(gate, caller):
    """Over four workers; all offer more than their share."""
    made, nginx = gate("llmgw_queue 200 fairness=round_robin;", workers=4)
    callers = fill(made, caller, nginx)
    tenants = ["greedy"] * 40 + ["b", "c", "d"] * 4
    waiters = [caller(nginx).ask(f"standard {t}", 1, tenant_id=t)
               for t in tenants]
    wait_for(lambda: nginx.waiting() == len(waiters), "all to wait")
    made.let(1 + len(waiters))
    served = made.wait_served(1 + len(waiters))[1:]
    counts = collections.Counter(x.split()[1] for x in served[:16])
    assert jain([counts[t] for t in ("greedy", "b", "c", "d")]) > 0.95, counts
    all_is_well(nginx, callers + waiters)


@pytest.mark.soak
def test_full_queue_makes_room_for_tenants_with_less_in_it(gate, caller):
    made, nginx = gate("llmgw_queue 12 fairness=round_robin;", workers=2)
    callers = fill(made, caller, nginx)
    greedy = [caller(nginx) for _ in range(13)]
    line_up(nginx, greedy[:12], ["standard greedy"] * 12)
    assert greedy[12].ask("more", 1, tenant_id="greedy").wait().reason \
        == words.QUEUE_FULL
    others = [caller(nginx).ask(f"standard {t}", 1, tenant_id=t)
              for t in ("b", "c", "d") * 3]
    shed = finish_some(greedy[:12], 9)
    assert {(c.status, c.reason) for c in shed} \
        == {(RESOURCE_EXHAUSTED, words.QUEUE_SHED)}
    assert [greedy.index(c) for c in shed] == list(range(3, 12))
    made.let(100)
    served = made.wait_served(13)[1:]
    counts = collections.Counter(x.split()[1] for x in served)
    assert set(counts.values()) == {3}, counts
    all_is_well(nginx, callers + greedy[:3] + others)


def finish_some(callers, n):
    """Reads until n of them have ended; returns those."""
    def enough():
        for one in callers:
            if one.ended is None:
                one.take_in()
        return sum(c.ended is not None for c in callers) >= n
    wait_for(enough, f"{n} ends", interval=0)
    return [c for c in callers if c.ended is not None]


# --- who is refused

def test_shed_request_is_told_so(gate, caller):
    """Its worker is not the one that sheds it."""
    made, nginx = gate("llmgw_queue 2 order=priority shedding=on;", workers=2)
    callers = fill(made, caller, nginx)
    (low, newest), (high, more) = on_each_worker(nginx, 2, caller)
    line_up(nginx, [low, newest], ["sheddable a", "sheddable a"])
    high.ask("critical", 1, slo_class="critical")
    newest.wait()
    assert (newest.status, newest.reason) == (RESOURCE_EXHAUSTED,
                                              words.QUEUE_SHED)
    assert int(newest.answer.get("grpc-retry-pushback-ms")) > 0
    more.ask("background", 1, slo_class="background").wait()
    assert more.reason == words.QUEUE_FULL
    assert nginx.waiting() == 2
    made.let(3)
    assert made.wait_served(3)[1:] == ["critical", "sheddable a"]
    all_is_well(nginx, callers + [low, high])


def test_ttl_ends_a_wait(gate, caller):
    made, nginx = gate("llmgw_queue ttl=200ms timeout=1m;")
    callers = fill(made, caller, nginx)
    got = caller(nginx).ask("late", 1).wait()
    assert (got.status, got.reason) == (RESOURCE_EXHAUSTED, words.QUEUE_TTL)
    assert int(got.answer.get("grpc-retry-pushback-ms")) > 0
    made.let(1)
    all_is_well(nginx, callers)


@pytest.mark.soak
def test_ttl_in_other_protocols(gate, caller):
    """OpenAI's API and a native pass: 429, and when to come back."""
    made, nginx = gate("llmgw_queue ttl=200ms timeout=1m;", openai=True,
                       server=HTTP.format(lines="llmgw_key x queue=llm;"))
    callers = fill(made, caller, nginx)
    for path, body in ((sse.TEXT, sse.text("late")), ("/http/x", b"late")):
        with sse.Connection(nginx.api) as connection:
            got = connection.request(path, body)
            got.head()
            assert got.status == 429
            assert int(got.headers["retry-after"]) >= 1
    assert nginx.status()["pools"][0]["totals"]["requests"]
    made.let(1)
    all_is_well(nginx, callers)


# --- saturation

@pytest.mark.soak
def test_concurrency_holds_what_replicas_have_room_for(gate, caller):
    """Two attempts at each of two replicas are a full fleet, half of it is
    for those that may be shed."""
    made, nginx = gate(
        "llmgw_queue order=priority saturation=concurrency=2"
        " usage_limit=50%;", capacity=10, replicas=2)
    first = [caller(nginx).ask(f"critical {i}", 1, slo_class="critical")
             for i in range(2)]
    made.wait_served(2)
    low, high, last = [caller(nginx) for _ in range(3)]
    line_up(nginx, [low], ["sheddable a"])
    assert len(made.served) == 2
    high.ask("critical 2", 1, slo_class="critical")
    assert made.wait_served(3)[2] == "critical 2"
    last.ask("critical 3", 1, slo_class="critical")
    made.wait_served(4)
    assert gauge(nginx, "llmgw_saturation") == 1
    held = caller(nginx)
    line_up(nginx, [held], ["critical b"])
    made.let(1)
    assert made.wait_served(5)[4] == "critical b"
    made.let(4)                                 # below a half
    assert made.wait_served(6)[5] == "sheddable a"
    made.let(1)
    all_is_well(nginx, [*first, low, high, last, held])


def gauge(nginx, name):
    text = nginx.get("/metrics")[1].decode()
    return float(re.search(rf"^{name}{{[^}}]*}} (\S+)$", text,
                           re.M).group(1))


def test_reports_hold_and_let_go(cluster, caller):
    """No release comes: only the replica's next report lets it go."""
    cluster.agent("gw", "gateway")
    replica = cluster.replica("r1", token_delay="1ms")
    agent = cluster.agent("r1", grpc=replica.target)
    reporter = Reporter(cluster, agent, running=0, waiting=10, kv_permille=0)
    nginx = cluster.nginx(pool="llmgw_queue saturation=utilization;",
                          server=METRICS)
    wait_for(lambda: nginx.routable() == ["r1"], "r1 to be routable")
    wait_for(lambda: gauge(nginx, "llmgw_saturation") == 2, "its report")
    one = caller(nginx).ask("held", 1)
    wait_for(lambda: nginx.waiting() == 1, "it to wait")
    reporter.say(waiting=4)
    one.wait()
    assert one.status == 0
    assert gauge(nginx, "llmgw_saturation_unknown_total") == 0
    wait_for(lambda: not nginx.counts(), "counts of zero")


@pytest.mark.soak
def test_unknown_facts_hold_nobody(gate, caller):
    made, nginx = gate("llmgw_queue saturation=utilization;", capacity=10)
    callers = [caller(nginx).ask(f"{i}", 1) for i in range(8)]
    made.wait_served(8)
    assert gauge(nginx, "llmgw_saturation_unknown_total") >= 8
    made.let(8)
    all_is_well(nginx, callers)


# --- workers that die, and reloads

@pytest.mark.soak
def test_killed_worker_leaves_the_others_in_order(cluster, gate, caller):
    cluster.allowed.append("exited on signal 9")
    made, nginx = gate("llmgw_queue 100 order=priority fairness=round_robin"
                       " shedding=on;", workers=2)
    gone, stays = on_each_worker(nginx, 4, caller)
    busy = stays.pop().ask("busy", 1)
    made.wait_served(1)
    victim = gone[0].worker()
    prompts = ["standard a", "critical a", "sheddable b"]
    line_up(nginx, gone[1:], prompts)
    line_up(nginx, stays, prompts)
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: nginx.waiting() == 3, "its places to be taken back")
    made.let(4)
    assert made.wait_served(4)[1:] == ["critical a", "standard a",
                                       "sheddable b"]
    all_is_well(nginx, [busy, *stays])


@pytest.mark.soak
def test_reload_with_another_order_loses_nothing(gate, caller):
    made, nginx = gate("llmgw_queue 100;", workers=2)
    callers = fill(made, caller, nginx)
    old = [caller(nginx) for _ in range(4)]
    line_up(nginx, old, ["sheddable a 1", "standard a 2", "critical b 3",
                         "standard b 4"])
    nginx.configure(upstream=made.upstream(
        "llmgw_queue 100 order=priority fairness=round_robin;"))
    nginx.reload()
    new = [caller(nginx) for _ in range(2)]
    line_up(nginx, new, ["standard b 5", "critical a 6"])
    made.let(7)
    assert made.wait_served(7)[1:] in (
        [f"critical {x}" for x in xs] + [f"standard {y}" for y in ys]
        + ["sheddable a 1"]
        for xs in (["a 6", "b 3"], ["b 3", "a 6"])
        for ys in (["a 2", "b 4", "b 5"], ["b 4", "a 2", "b 5"]))
    all_is_well(nginx, callers + old + new)
    assert nginx.log().count("has another order of its queue") == 1
