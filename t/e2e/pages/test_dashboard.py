"""The dashboard in a browser, over a real gateway."""

import json
import re
import signal
import urllib.request

import pytest

from llmgw.fleet import words
from llmgw.pages import scene as say
from llmgw.pages.dashboard import POLLED, forget, refresh, row
from llmgw.proc.wait import QUICK, never, wait_for
from llmgw.speak.callers import finish

PAGE = """
        location = /dashboard {
            llmgw_dashboard;
        }"""


@pytest.fixture
def gateway(cluster):
    def make(n=3, pool="", **more):
        nginx = cluster.fleet(n, nginx={"pool": pool, "server": PAGE}, **more)
        nginx.origin = f"http://127.0.0.1:{nginx.status_port}"
        return nginx
    return make


def wait_state(page, id, state):
    wait_for(lambda: (row(page, id) or {}).get("State", "").startswith(state),
             f"{id} to be shown as {state}", POLLED)


def wait_event(page, text):
    page.wait_text("#list", text, POLLED)


def fetch(nginx, method="GET", **headers):
    url = f"http://127.0.0.1:{nginx.status_port}/dashboard"
    ask = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.urlopen(ask, timeout=5) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.headers, e.read()


# the location


def test_page_is_served_once_and_then_revalidated(cluster):
    nginx = cluster.static([], server=PAGE, hash="prefix=64;\n"
                           "        server 127.0.0.1:1")
    code, headers, body = fetch(nginx)
    assert code == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert int(headers["content-length"]) == len(body)
    assert body.startswith(b"<!DOCTYPE html>")
    assert body.rstrip().endswith(b"</html>")
    assert b'<meta name="llmgw-status" content="status">' in body
    assert headers["cache-control"] == "no-cache"
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none';")
    assert "script-src 'sha256-" in policy and "unsafe" not in policy
    etag = headers["etag"]
    code, headers, body = fetch(nginx, **{"If-None-Match": etag})
    assert (code, body, headers["etag"]) == (304, b"", etag)
    code, headers, body = fetch(nginx, "HEAD")
    assert (code, body) == (200, b"")
    assert int(headers["content-length"]) > 10000
    assert fetch(nginx, "POST")[0] == 405


def test_status_elsewhere_is_named_and_changes_the_etag(cluster):
    nginx = cluster.static([], server=PAGE, hash="prefix=64;\n"
                           "        server 127.0.0.1:1")
    before = fetch(nginx)[1]["etag"]
    nginx.configure(server=PAGE.replace(
        "llmgw_dashboard;", """llmgw_dashboard '/a/"b"<c>&d';"""))
    nginx.reload()
    code, headers, body = fetch(nginx)
    assert headers["etag"] != before
    assert b'content="/a/&quot;b&quot;&lt;c&gt;&amp;d"' in body
    assert int(headers["content-length"]) == len(body)


@pytest.mark.soak
def test_page_within_a_page_does_not_end_it(cluster):
    nginx = cluster.static([], server=PAGE + """
        location = /around {
            ssi on;
            ssi_types *;
            return 200 '<!--#include virtual="/dashboard" -->behind it';
        }""", hash="prefix=64;\n        server 127.0.0.1:1")
    body = nginx.get("/around")[1]
    assert body == fetch(nginx)[2] + b"behind it"


# over real gateways


def test_shows_load_and_a_killed_replica(cluster, gateway, open_page, caller):
    nginx = gateway(3, replica={"max_capacity": 4})
    cluster.hold(1)
    page = open_page(nginx)
    assert page.text("#now dd") == "3 / 3"
    assert page.js("document.title") == "3/3 serving · llm · llmgw"

    running = [caller(nginx).ask(f"stream {i}", 9) for i in range(3)]
    for one in running:
        one.wait_first()
    page.wait_text("#now dl div:nth-child(2)", "3\nof 12 places", POLLED)

    victim = running[0].messages[-1].replica_id
    cluster.replicas[victim].kill()
    wait_state(page, victim, "Dead")
    wait_event(page, f"{victim} dead: its process ended")
    wait_event(page, "failed over: ")
    assert page.text("#now dd") == "2 / 3"
    for one in running:
        one.cancel()


def test_shows_requests_that_are_held(cluster, gateway, open_page, caller):
    """Without a replica they wait, and the page says for what."""
    nginx = gateway(1, pool="llmgw_queue 100 hold=25s;")
    page = open_page(nginx)
    cluster.replicas["r1"].kill()
    wait_for(lambda: not nginx.routable(), "no replica")
    held = [caller(nginx).ask(f"held {i}", 1) for i in range(3)]
    page.wait_text("#now dl div:nth-child(3)", "3\nfor a replica", POLLED)
    page.wait_text("body", "requests wait until there is one", POLLED)
    cluster.replicas["r1"].start()
    finish(held)


@pytest.mark.timed
@pytest.mark.alone
def test_shows_the_pace_of_streams(gateway, open_page, caller):
    nginx = gateway(1, replica={"token_delay": "20ms"})
    page = open_page(nginx)
    one = caller(nginx).ask("stream", 2000).wait_first()
    wait_for(lambda: page.js("Number(document.querySelectorAll("
                             "'#now dd')[6].textContent) > 20"),
             "the tokens of a stream", POLLED + 1)
    wait_for(lambda: 10 <= shown_ms(page, "Token gap", "p50") <= 25,
             "the gap of 20 ms in its bucket", POLLED)
    one.cancel()


def shown_ms(page, chart, series):
    text = page.js(f"""[...document.querySelectorAll('.chart')].find(
        (x) => x.innerText.startsWith({chart!r})).querySelector('svg.plot')
        .getAttribute('aria-label')""")
    return float((re.search(rf"{series} ([\d.]+) ms", text)
                  or re.match("()", "0")).group(1) or 0)


@pytest.mark.soak
def test_shows_a_circuit_open_and_closed_again(cluster, gateway, open_page,
                                               client):
    nginx = gateway(2, pool="llmgw_breaker min_requests=3 cooldown=1s;")
    page = open_page(nginx)
    cluster.replicas["r1"].faults(reject_all=True)
    n = iter(range(1000))
    wait_for(lambda: client(nginx).stream(f"{next(n)}", 1) and
             nginx.replicas()["r1"]["breaker"]["state"] == "open",
             "the circuit to open")
    wait_event(page, "r1 circuit opened")
    wait_state(page, "r1", "Circuit")
    cluster.replicas["r1"].faults(reject_all=False)
    wait_for(lambda: client(nginx).stream(f"{next(n)}", 1) and
             nginx.replicas()["r1"]["breaker"]["state"] == "closed",
             "the circuit to close", takes=3)
    wait_event(page, "half open")
    wait_event(page, "r1 circuit closed")
    wait_state(page, "r1", "Serving")


def test_shows_a_drain(cluster, gateway, open_page):
    nginx = gateway(2)
    page = open_page(nginx)
    assert cluster.gateway.ctl("drain", "r2").returncode == 0
    wait_state(page, "r2", "Draining for operator")
    wait_event(page, "r2 draining for operator")
    assert cluster.gateway.ctl("undrain", "r2").returncode == 0
    wait_state(page, "r2", "Serving")


@pytest.mark.soak
def test_shows_a_restart_of_nginx(cluster, gateway, open_page, client):
    nginx = gateway(1)
    page = open_page(nginx)
    page.allowed.append("ERR_CONNECTION_(REFUSED|RESET)|ERR_EMPTY_RESPONSE")
    assert client(nginx).stream("before", 5).code == "OK"
    refresh(page)
    nginx.proc.send(signal.SIGTERM)
    nginx.proc.wait()
    wait_for(lambda: re.match(r"No answer from the gateway for \d+ s: ",
                              page.text("#notices")), "the alarm", takes=5)
    assert page.text("#pulse") == "No answer"
    cluster.launch(nginx)
    page.wait_text("#pulse", "Live", POLLED)
    wait_event(page, "nginx started anew")
    assert page.text("#notices") == ""
    assert row(page, "r1")["State"] == "Serving"


# states that a gateway might report


def test_every_state_has_its_word_and_pattern(scene, open_page):
    stage = scene(12)
    states = {"r2": say.DEAD, "r3": say.SILENT, "r4": say.SUSPECT,
              "r5": say.LEFT, "r6": say.STARTING, "r7": say.STALLED,
              "r8": say.OPEN, "r9": say.HALF, "r10": say.draining("ops"),
              "r11": say.of_group("g1", "standby"),
              "r12": say.of_group("g1", "waking", 7)}
    for id, state in states.items():
        stage.set(id, state)
    page = open_page(stage)
    got = {id: row(page, id)["State"] for id in stage.pool.replicas}
    assert got == {
        "r1": "Serving", "r2": "Dead process gone", "r3": "Dead silent",
        "r4": "Suspect", "r5": "Left", "r6": "Starting", "r7": "Stalled",
        "r8": "Circuit open probe in 4 s", "r9": "Circuit half open",
        "r10": "Draining for ops", "r11": "Standby of g1, warm",
        "r12": "Standby of g1, waking"}
    fills = page.js("""[...document.querySelectorAll('#ring-arcs path')]
        .filter((x) => x.getAttribute('d'))
        .map((x) => getComputedStyle(x).fill)""")
    assert len(fills) == len(set(fills)) == 10
    assert page.js("document.getElementById('ring-t').textContent") \
        .startswith("Ring of 12 replicas: 1 serving, 2 standby, 1 circuit half"
                    " open")


def test_takeover_of_a_group(scene, open_page):
    stage = scene(2)
    group = {"name": "g1", "active": "r1", "epoch": 7, "lock": say.LOCK,
             "standby": 1, "waking": 0, "conflict": False, "takeovers": 0,
             "active_ms": None, "first_token_ms": None}
    stage.pool.groups = [group]
    stage.set("r1", say.of_group("g1", "active", 7))
    stage.set("r2", say.of_group("g1", "standby"))
    page = open_page(stage)
    assert row(page, "r1")["State"] == "Serving active in g1"
    assert row(page, "r2")["State"] == "Standby of g1, warm"

    stage.set("r1", say.DEAD)
    group.update(active=None, standby=1)
    stage.pool.queue.update(length=3, waits_for="standby")
    refresh(page)
    page.wait_text("#notices", "requests wait for a standby")

    stage.set("r2", {"service": "READY", "routable": True},
              say.of_group("g1", "active", 8))
    group.update(active="r2", epoch=8, standby=0, takeovers=1, active_ms=312)
    stage.pool.queue.update(length=0, waits_for=None)
    refresh(page)
    wait_event(page, "r2 took g1 over, 312 ms after the last one died")
    assert page.text("#notices") == ""

    group.update(conflict=True)
    refresh(page)
    page.wait_text("#notices", "Two lock services grant the group g1")


@pytest.mark.soak
def test_models_and_engines(scene, open_page):
    stage = scene(4)
    stage.pool.model = "llama-8b"
    engine = {"running": 3, "waiting": 1, "kv_permille": 455}
    stage.set("r1", {"models": ["llama-8b", "sql"], "models_cut": 2,
                     "engine": engine})
    stage.set("r2", {"models": ["llama-8b"],
                     "engine": {**engine, "running": None, "waiting": 0}})
    stage.set("r3", {"models": ["<b>x"], "routable": False})
    page = open_page(stage)
    assert page.js("document.getElementById('columns').innerText"
                   ".includes('Engine')")
    got = {id: row(page, id) for id in stage.pool.replicas}
    assert [got[id]["Model"] for id in got] \
        == ["llama-8b +3", "llama-8b", "<b>x", "–"]
    assert got["r1"]["Engine"] == "3 running, 1 waiting, KV 46%"
    assert got["r2"]["Engine"] == "0 waiting, KV 46%"
    assert got["r4"]["Engine"] == "–"
    assert got["r3"]["State"] == "Off another model"

    # If no replica reports them, there are no such columns.
    for id in ("r1", "r2", "r3"):
        stage.set(id, {"models": [], "engine": None})
    refresh(page)
    wait_for(lambda: not page.js("document.getElementById('columns').innerText"
                                 ".includes('Engine')"), "fewer columns")


@pytest.mark.soak
def test_progress_of_a_rolling_update(scene, open_page):
    stage = scene(3)
    page = open_page(stage)
    assert page.js("document.getElementById('update').hidden")
    stage.set("r1", say.draining("update:u7"), in_flight=5)
    refresh(page)
    page.wait_text("#update", "Rolling update u7")
    page.wait_text("#update-doing", "Draining r1: 5 streams left here")
    wait_event(page, "r1 draining for update:u7")
    stage.set("r1", draining=False, drain_owner=None, routable=True,
              model_version="v2", in_flight=0)
    stage.set("r2", say.LEFT, say.draining("update:u7"))
    refresh(page)
    page.wait_text("#update-text", "1 of 3 replicas at v2")
    page.wait_text("#update-doing", "Draining r2: 0 streams left here")
    wait_event(page, "r1 version v1 → v2")
    assert "v2: 1" in page.js("document.getElementById('update-split')"
                              ".getAttribute('aria-label')")
    for id in ("r2", "r3"):
        stage.pool.add(id, model_version="v2")
    refresh(page)
    page.wait_text("#update-text", "3 replicas at v2")


def test_counts_become_events_and_percentiles(scene, open_page):
    stage = scene(2)
    page = open_page(stage)
    pool = stage.pool

    def more(_):
        pool.tokens += 500
        pool.observe("first_token_seconds", 0.2, 99)
        pool.observe("first_token_seconds", 30, 1)
    stage.before = more
    pool.requests[("RESOURCE_EXHAUSTED", words.QUEUE_FULL)] = 12
    pool.requests[("CANCELLED", words.CLIENT_GONE)] = 40
    pool.failovers["member_down"] = 3
    refresh(page)
    wait_event(page, "12 streams not served: queue full")
    wait_event(page, "3 streams failed over: member down")
    assert page.text("#now dl div:nth-child(8)").split()[2] == "12"
    wait_for(lambda: 100 < shown_ms(page, "First token", "p50") < 250,
             "the median within its bucket")
    assert "gone" not in page.text("#list")


def test_says_what_is_wrong_with_the_view(scene, open_page):
    stage = scene(2)
    page = open_page(stage)
    stage.pool.view.update(stale=True, age_ms=7000, isolated=True)
    refresh(page)
    page.wait_text("#notices", "The agent is silent for 7 s")
    page.wait_text("#notices", "cut off from gossip")
    wait_event(page, "the agent is silent")
    stage.pool.view.update(stale=False, age_ms=3, isolated=False)
    refresh(page)
    wait_event(page, "the agent is back")
    assert page.text("#notices") == ""
    stage.set("r1", say.DEAD)
    stage.set("r2", say.SILENT)
    refresh(page)
    page.wait_text("#notices", "No replica is serving")


@pytest.mark.soak
def test_several_pools(scene, open_page):
    stage = scene(2, pools=("llm", "embed"))
    stage.pools["embed"].set("r1", say.DEAD)
    page = open_page(stage)
    assert page.text("#pools").split("\n") == ["llm 2/2", "embed 1/2"]
    assert row(page, "r1")["State"] == "Serving"
    page.click("#pools button:nth-child(2)")
    assert row(page, "r1")["State"] == "Dead process gone"
    stage.pools["llm"].set("r2", say.DEAD)
    refresh(page)
    wait_event(page, "llm: r2 dead")

    # Pools of one upstream are distinguished by their models.
    stage.pools["embed"].name = "llm"
    stage.pools["llm"].model, stage.pools["embed"].model = "a", "b"
    refresh(page)
    page.wait_text("#pools", "llm a 1/2")
    page.wait_text("#pools", "llm b 1/2")


GARBAGE = [
    (403, "text/html", b"<b>no</b>", "status answers 403"),
    (200, "application/json", b"{}", "no status of llmgw"),
    (200, "text/html", b"<script>x</script>", "not in JSON"),
    (200, "application/json", b'{"pools": [null, 7, {"name": {}, "totals": 3,'
     b' "replicas": [[], {"id": 5}], "queue": "x", "histograms": [1]}]}',
     "No replica is serving"),
]


def test_garbage_for_a_status(scene, open_page):
    stage = scene(2)
    page = open_page(stage)
    page.allowed.append("status of 403")
    for *raw, said in GARBAGE:
        stage.raw = raw
        refresh(page)
        if said == "No replica is serving":
            page.wait_text("#now dd", "0 / 2")
        else:
            forget(page)
            page.wait_text("#notices", said)
    stage.raw = None
    refresh(page)
    wait_for(lambda: row(page, "r1") is not None, "the status again")
    assert page.text("#notices") == ""


def test_hostile_names_are_text(scene, open_page):
    bad = "<img src=x onerror=window.hit=1>"
    stage = scene(1, pools=(bad, "b"))
    stage.pool.add(bad, model_version="</script><script>window.hit=2</script>",
                   **say.draining(f"update:{bad}"))
    stage.pool.add("__proto__", address="${window.hit=3}")
    stage.pool.failovers[bad] = 0
    page = open_page(stage)
    stage.pool.failovers[bad] = 2
    stage.set("__proto__", say.DEAD)
    refresh(page)
    wait_event(page, "__proto__ dead")
    wait_event(page, f"2 streams failed over: {bad}")
    page.wait_text("#update", f"Rolling update {bad}")
    assert row(page, bad)["Version"].startswith("</script>")
    assert page.js("window.hit ?? document.querySelectorAll("
                   "'img, body script + script').length") == 0


def test_a_thousand_replicas_filtered_and_sorted(scene, open_page):
    stage = scene(1000)
    stage.set("r777", say.DEAD)
    stage.set("r500", in_flight=8)
    page = open_page(stage)
    assert page.js("document.querySelectorAll('#rows tr').length") == 25
    assert page.text("#page") == "1 to 25 of 1,000"
    assert page.js("document.querySelectorAll('svg.ring *').length") < 120
    page.click("#columns th:nth-child(3) button")
    assert page.text("#rows th") == "r500"
    page.click("#on")
    assert page.text("#page") == "26 to 50 of 1,000"
    page.js("document.getElementById('find').value = 'R77'; "
            "document.getElementById('find').dispatchEvent("
            "new Event('input'))")
    assert page.text("#page") == "1 to 11 of 11" \
        or page.js("document.querySelectorAll('#rows tr').length") == 11
    page.click("#chips button:nth-child(3)")
    assert page.text("#rows").split()[0] == "r777"
    assert page.js("document.querySelectorAll('#rows tr').length") == 1


@pytest.mark.soak
def test_memory_is_bounded(scene, open_page):
    """More than ten minutes of changes, without waiting."""
    stage = scene(20)
    page = open_page(stage)
    said = stage.status()
    for r in said["pools"][0]["replicas"]:
        r.update(say.DEAD)
    got = page.js("""(() => {
        const states = [%s, %s];
        poller.hold(true);
        for (let i = 0; i < 700; i++) {
            states[i %% 2].pools[0].replicas[i %% 20].draining = i %% 3 > 0;
            page.take(structuredClone(states[i %% 2]));
        }
        const track = page.tracks.get('llm');
        return [document.querySelectorAll('#list li').length,
                track.history.length, track.history.at.length,
                track.recent.length, page.events.last.size];
    })()""" % (json.dumps(stage.status()), json.dumps(said)))
    assert got == [200, 600, 600, 11, 0]


@pytest.mark.soak
def test_asks_one_at_a_time_and_not_while_hidden(scene, open_page):
    stage = scene(2)
    page = open_page(stage)
    page.js("AbortSignal.timeout = () => new AbortController().signal")
    stage.gate.clear()      # and none is given up
    wait_for(lambda: stage.at_once == 1, "a question that has to wait", POLLED)
    never(lambda: stage.at_once > 1, 1.3, "two questions at once")
    page.js("""Object.defineProperty(document, 'hidden', {get: () => away});
               var away = true;
               document.dispatchEvent(new Event('visibilitychange'))""")
    asked = stage.asked
    stage.gate.set()
    never(lambda: stage.asked > asked, 1.3, "a question while hidden")
    page.js("away = false;"
            "document.dispatchEvent(new Event('visibilitychange'))")
    wait_for(lambda: stage.asked > asked, "a question when back")
    page.click("#hold")
    page.wait_text("#pulse", "Paused")


@pytest.mark.soak
def test_gives_up_a_question_that_is_not_answered(scene, open_page):
    stage = scene(2)
    page = open_page(stage)
    stage.gate.clear()
    page.wait_text("#notices", "it does not answer in time", 1 + 3 + QUICK)
    assert page.js("document.body.classList.contains('silent')")
    stage.gate.set()
    page.wait_text("#pulse", "Live")
    assert not page.js("document.body.classList.contains('silent')")


# accessibility


@pytest.mark.soak
def test_keyboard_reaches_everything(scene, open_page):
    stage = scene(60)
    stage.set("r60", say.DEAD)
    page = open_page(stage)
    reached = []
    for _ in range(40):
        page.key("Tab")
        what, ring = page.js("""(() => {
            const x = document.activeElement, style = getComputedStyle(x);
            return [x === document.body ? 'BODY'
                    : x.id || x.getAttribute('role') || x.innerText.trim(),
                    style.outlineStyle !== 'none'
                    && parseFloat(style.outlineWidth) > 0];
        })()""")
        if what in reached or what == "BODY":
            break
        assert ring, f"the focus does not show on {what}"
        reached.append(what)
    assert reached[:4] == ["Skip to the replicas", "hold", "theme", "find"]
    assert {"All 60", "Dead 1", "Replica", "State", "region", "on",
            "log"} <= set(reached)
    page.js("document.querySelector('#columns th:nth-child(2) button')"
            ".focus()")
    page.key("Enter")
    assert page.text("#rows th") == "r60"
    assert page.js("document.querySelector('#columns th:nth-child(2)').ariaSort"
                   ) == "descending"
    page.key("Enter")
    assert page.text("#rows th") == "r1"


@pytest.mark.soak
def test_screen_reader_is_told(scene, open_page):
    stage = scene(3)
    page = open_page(stage)
    nodes = page.names()
    for role in ("button", "img", "image", "searchbox", "region", "table",
                 "columnheader", "rowheader", "log", "textbox"):
        assert all(name for had, name in nodes if had == role), role
    roles = [role for role, _ in nodes]
    assert roles.count("columnheader") == 10
    assert roles.count("rowheader") == 3
    assert ("log", "Events") in nodes
    assert ("table", "Replicas") in nodes
    assert any(name.startswith("Token gap, now: p50") for _, name in nodes)
    assert page.js("document.getElementById('log').ariaLive") == "polite"
    assert page.js("document.documentElement.lang") == "en"


@pytest.mark.soak
@pytest.mark.parametrize("width, dark", [(320, False), (390, True),
                                         (768, False)])
def test_narrow_screens_do_not_scroll_sideways(scene, open_page, width, dark):
    stage = scene(12, pools=("llm", "p" * 63))
    long = "x" * 63
    stage.pool.add(long, model_version=long, **say.draining("update:" + long))
    stage.pool.policy = {"name": "weighted", "scorers": [
        {"name": f"precise-prefix-cache-{i}", "weight": 2} for i in range(8)]}
    stage.pool.group("classes", long, ttft_ms=1)
    stage.pool.group("tenants", long)
    page = open_page(stage, width=width, height=800, dark=dark)
    page.wait_text("#update", "Rolling update")
    assert page.js("document.documentElement.scrollWidth") == width
    assert page.js("""[...document.querySelectorAll('body *')].filter((x) => {
        const box = x.getBoundingClientRect();
        return box.width && box.right > innerWidth + 1
            && !x.closest('.scroll, .unseen');
    }).map((x) => x.outerHTML.slice(0, 80))""") == []


@pytest.mark.soak
def test_light_and_dark(scene, open_page):
    stage = scene(2)
    page = open_page(stage, dark=True)
    back = "getComputedStyle(document.body).backgroundColor"
    dark = page.js(back)
    page.media(dark=False)
    assert (light := page.js(back)) != dark
    page.click("#theme")
    page.click("#theme")
    assert page.text("#theme") == "Theme: dark"
    assert page.js(back) == dark
    page.open(stage.origin + "/dashboard")
    assert page.text("#theme") == "Theme: dark"
    page.click("#theme")
    assert page.js(back) == light
