"""The dashboard shows how a pool chooses, classes, tenants, facts, shards, and
keys."""

import re

import pytest

from llmgw.fleet import words
from llmgw.pages import scene as say
from llmgw.pages.dashboard import refresh, row
from llmgw.proc.wait import wait_for

FACTS = {"age_ms": 240, "active": 3, "running": 3, "waiting": 1,
         "kv_permille": 455, "kv_free_blocks": 9000, "hit_permille": 801}


def column(page, title):
    """Is it shown?"""
    return title in page.js("document.getElementById('columns').innerText")


@pytest.mark.soak
def test_facts_are_shown_with_their_age(scene, open_page):
    stage = scene(3)
    nothing = dict.fromkeys(FACTS, None)
    stage.set("r1", facts=FACTS)
    stage.set("r2", facts={**nothing, "age_ms": 2600, "active": 1})
    page = open_page(stage)
    assert column(page, "Facts")
    got = {id: row(page, id) for id in stage.pool.replicas}
    assert got["r1"]["Engine"] == "3 running, 1 waiting, KV 46%, hits 80%"
    assert [got[id]["Facts"] for id in got] \
        == ["240 ms", "2.60 s, not believed", "–"]

    # If no engine reports facts, only for a policy that reads them.
    stage.set("r1", facts={**nothing, "age_ms": 5, "active": 0})
    refresh(page)
    wait_for(lambda: not column(page, "Facts"), "no such column")
    stage.pool.policy = {"name": "least_loaded", "scorers": []}
    refresh(page)
    wait_for(lambda: column(page, "Facts"), "the column again")
    assert not column(page, "Engine")


def groups(page, id):
    """[{column: text}] of the table of classes or tenants."""
    return page.js(f"""(() => {{
        const text = (x) => x.innerText.trim();
        const table = document.getElementById({id!r});
        const head = [...table.querySelectorAll('thead th')].map(text);
        return table.hidden ? [] : [...table.querySelectorAll('tbody tr')]
            .map((row) => Object.fromEntries([...row.children].map(
                (x, i) => [head[i], text(x)])));
    }})()""")


def test_classes_tenants_and_policy(scene, open_page):
    stage = scene(2)
    page = open_page(stage)
    assert page.js("document.getElementById('groups').hidden")

    pool = stage.pool
    pool.policy = {"name": "weighted", "scorers": [
        {"name": "queue-depth", "weight": 2.0},
        {"name": "kv-utilization", "weight": 0.5}]}
    pool.queue.update(order="slo_deadline", fairness="round_robin",
                      saturation="utilization", shedding=True)
    pool.admission = {"rule": "token_bucket", "bucket": {
        "capacity": 10000.0, "rate": 1000.0, "tokens": 8123.4}}
    refresh(page)
    page.wait_text("#groups", "Choice")
    assert re.split(r"\s+·\s+", page.text("#groups-how")) == [
        "weighted: queue-depth 2, kv-utilization 0.5",
        "queue by slo deadline", "tenants in turn", "held by utilization",
        "sheds", "token bucket: 8,123 of 10,000"]
    assert groups(page, "classes") == groups(page, "tenants") == []

    pool.group("classes", "critical", ttft_ms=500, itl_ms=20)
    pool.group("tenants", "<i>acme", budget=0.25, in_flight=3)

    def more(_):
        pool.serve("classes", "critical", 10, 0.2, good=9)
        pool.serve("classes", "batch", 10, 30)
        pool.serve("tenants", "<i>acme", 1, 0.2)
    stage.before = more
    pool.serve("classes", "batch", 12, 0, words.QUEUE_TTL)
    pool.serve("classes", "batch", 3, 0, "other")
    pool.serve("tenants", "<i>acme", 2, 0, "admission_tenant_budget")
    pool.serve("tenants", "<i>acme", 4, 0, words.QUEUE_FULL)
    refresh(page)
    wait_for(lambda: [g["First token p50"][-2:] for g in
                      groups(page, "classes")] == [" s", "ms"]
             and groups(page, "tenants")[0]["Requests/s"] != "–",
             "rates and quantiles")
    batch, critical = groups(page, "classes")
    assert batch["Class"] == "batch"
    assert batch["Refused"] == "12 queue ttl"
    assert batch["Within targets"] == "–"
    assert critical["Within targets"] \
        == "90% of first token 500 ms, gap 20 ms"
    assert critical["Refused"] == "–"
    acme, = groups(page, "tenants")
    assert acme["Tenant"] == "<i>acme"
    assert (acme["In flight"], acme["Budget"]) == ("3", "25%")
    assert acme["Refused"] == "4 queue full, 2 admission tenant budget"

    # Refusals are those since the page was opened.
    page.open(stage.origin + "/dashboard")
    wait_for(lambda: [g["Refused"] for g in groups(page, "classes")]
             == ["–", "–"], "none since then")
    pool.serve("classes", "critical", 1, 0, words.QUEUE_SHED)
    refresh(page)
    wait_for(lambda: groups(page, "classes")[1]["Refused"] == "1 queue shed",
             "one")


def test_keys_by_their_use(scene, open_page):
    stage = scene(1)
    page = open_page(stage)
    assert page.js("document.getElementById('keys').hidden")

    stage.keys.append(say.key_zone(
        say.account("other", requests=2),
        say.account("<b>bob", requests=7, prompt_tokens=1000,
                    completion_tokens=20, streams=3, max_streams=5,
                    rpm={"limit": 60, "remaining": 59, "reset_ms": 1000},
                    tpm={"limit": 2000, "remaining": 0, "reset_ms": 70000},
                    budget={"period": "day", "tokens": 3000, "used": 1020,
                            "reserved": 10})))
    refresh(page)
    page.wait_text("#keys", "<b>bob")
    assert groups(page, "accounts") == [
        {"Key": "<b>bob", "Zone": "keys", "Requests": "7",
         "Tokens in": "1,000", "Tokens out": "20", "In flight": "3 of 5",
         "Budget": "1,020 of 3,000 a day, 1,980 left",
         "Rate left": "59 of 60 requests, 0 of 2,000 tokens"},
        {"Key": "other", "Zone": "keys", "Requests": "2", "Tokens in": "0",
         "Tokens out": "0", "In flight": "0", "Budget": "–",
         "Rate left": "–"}]

    stage.keys.append(say.key_zone(*(
        say.account(f"k{i}", completion_tokens=i) for i in range(1, 105))))
    refresh(page)
    page.wait_text("#keys-how", "6 keys with less use not shown")
    shown = [g["Key"] for g in groups(page, "accounts")]
    assert shown == ["<b>bob", *(f"k{i}" for i in range(104, 5, -1))]


def lanes(page):
    """The text of each line, from space to space."""
    return page.js("""[...document.querySelectorAll('#coverage li')]
        .map((x) => x.innerText.split(/\\s+/).filter(Boolean).join(' '))""")


def test_coverage_by_shards(scene, open_page):
    stage = scene(1)
    page = open_page(stage)
    assert page.js("document.getElementById('shards').hidden")

    stage.pool.shards = [
        say.shard("s2", 8, 15, sessions=3, queue=1, draining=True,
                  usable=False),
        say.shard("s1", 0, 7, computes={"zone": "eu-1", "loaded": False}),
        say.shard("s3", 4, 9, usable=False, **{
            k: v for k, v in say.SILENT.items() if k != "routable"}),
        {**say.shard("s4", 0, 0, usable=False), "computes": None}]
    refresh(page)
    page.wait_text("#shards", "1 of 4 take sessions")
    assert lanes(page) == [
        "s1 0–7 Serving 0/64 sessions, not loaded, eu-1",
        "s3 4–9 Dead 0/64 sessions",
        "s2 8–15 Draining 3/64 sessions, 1 waiting",
        "covered nobody covers layers 8–15"]
    assert "s4 says nothing" in page.text("#shards-how")
    assert "failed" not in page.text("#shards-how")
    stage.pool.shard_failures = {"survived": 3, "lost": 1}
    refresh(page)
    page.wait_text("#shards-how", "4 shards failed under requests")
    assert page.js("document.querySelectorAll('.stretch.gap').length") == 1

    stage.pool.shards[0].update(usable=True, draining=False)
    refresh(page)
    wait_for(lambda: lanes(page)[-1] == "covered all layers",
             "no gap any more")

    # Whatever it is called, it is text; many are drawn as few are.
    stage.pool.shards = [
        say.shard(f"s{i}", i % 80, i % 80, layers=4096, computes={
            "model": f"<b>{i % 20}</b>"}) for i in range(1000)]
    refresh(page)
    page.wait_text("#shards", "12 models not drawn")
    assert "<b>0</b>" in page.text("#coverage")
    assert "and 26 more" in lanes(page)
    assert page.js("document.querySelectorAll('#coverage *').length") < 2500
