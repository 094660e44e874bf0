"""Reloads that change how requests are routed, under load: what runs and what
waits is not lost, and a part that begins anew says so, once."""

import collections
import itertools

import pytest

from llmgw.proc.place import SLOW
from llmgw.proc.wait import wait_for

pytestmark = pytest.mark.flow

JOBS = [[f"conversation {i % 5}: " * 10 + f"{i}", 5 + i % 20]
        for i in range(60)]
INDEX = "begin with an empty prefix index"
ORDER = "has another order of its queue"
ZONE = "another size, new workers count from zero"

# Lines of the upstream block, and what is said when they come into force.
STEPS = [
    ("llmgw_policy round_robin;", []),
    ("llmgw_policy weighted;", []),
    ("llmgw_policy weighted llm-d; llmgw_prefix_index blocks=500;", [INDEX]),
    ("llmgw_policy weighted; llmgw_prefix_index blocks=500; llmgw_queue"
     " order=priority fairness=round_robin; llmgw_slo gold priority=9;",
     [ORDER]),
    ("llmgw_policy least_loaded; llmgw_queue order=slo_deadline"
     " saturation=concurrency=50; llmgw_slo gold priority=1 ttft=1s;"
     " llmgw_slo silver;", [ORDER]),
    ("llmgw_queue fairness=round_robin shedding=on;", [ORDER]),
    ("", [ORDER]),
    ("llmgw_policy weighted; llmgw_zone llmgw_llm:3m;", [ZONE]),
    ("llmgw_policy weighted; llmgw_zone llmgw_llm:3m; llmgw_admission"
     " token_bucket capacity=1000000 rate=1000000;", []),
]


def test_parts_change_under_load(cluster, load, expect):
    nginx = cluster.fleet(
        3, replica={"token_delay": "10ms", "max_capacity": 3},
        nginx={"workers": 2, "policy": None,
               "location": "llmgw_class request; llmgw_tenant request;"})
    base = nginx.upstream
    works = [load(nginx, JOBS, connections=3, starts_per_second=30 / SLOW,
                  until_told=True, fields=fields)
             for fields in ({"slo_class": "gold", "tenant_id": "a"},
                            {"slo_class": "batch", "tenant_id": "b"})]
    expected = collections.Counter()
    for lines, said in STEPS:
        nginx.configure(upstream=f"{base} {lines}")
        nginx.reload()
        expected.update(said)
        wait_for(lambda: all(nginx.log().count(text) >= expected[text]
                             for text in said), f"{said} of {lines}")
    for work in works:
        work.stop()
    for work in works:
        for got, (prompt, n) in zip(work.results(), itertools.cycle(JOBS)):
            got.check(expect(prompt, n))
    wait_for(lambda: len(nginx.workers()) == 2, "old workers to leave")
    wait_for(lambda: not nginx.counts(), "counts of zero")
    assert {text: nginx.log().count(text)
            for text in (INDEX, ORDER, ZONE)} == expected
