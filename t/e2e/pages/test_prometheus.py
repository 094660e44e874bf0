"""What docs/ gives to Prometheus and Grafana fits what is exported."""

import contextlib
import itertools
import json
import re
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

from llmgw.engine.report_connection import Reporter
from llmgw.proc import place
from llmgw.proc.wait import wait_for

DOCS = place.ROOT / "docs"
RULES = DOCS / "prometheus" / "llmgw.rules.yml"
CASES = place.ROOT / "t" / "prometheus" / "llmgw.test.yml"
BOARD = json.loads((DOCS / "grafana" / "llmgw.json").read_text())
METRICS = "location = /metrics { llmgw_metrics; }"
SUFFIXES = ("_bucket", "_sum", "_count")


def promtool(*words, **more):
    return subprocess.run(["promtool", *words], capture_output=True,
                          text=True, timeout=60, **more)


def documented(*chapters):
    """Names in docs/metrics.md, which lint compares with the code."""
    text = (DOCS / "metrics.md").read_text()
    found = {title: set(re.findall(r"^\| `(llmgw_\w+)`", part, re.M))
             for title, part in re.findall(
                 r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.M | re.S)}
    return set().union(*(found[title] for title in chapters))


def families():
    """The families that nginx exports, from docs/metrics.md."""
    return documented("Counters", "Histograms", "Gauges")


def scraped_names():
    """The same families, as sample names: with _bucket, _sum, _count."""
    return documented("Counters", "Gauges") | {
        name + suffix for name in documented("Histograms")
        for suffix in SUFFIXES}


def all_names():
    return scraped_names() | documented("The agent")


def named_in(text):
    return set(re.findall(r"\bllmgw_\w+", text))


def panels():
    return [p for p in BOARD["panels"] if p["type"] != "row"]


def expressions():
    return [t["expr"] for p in panels() for t in p["targets"]]


# the rules


@pytest.mark.soak
def test_rules_are_sound():
    out = promtool("check", "rules", str(RULES))
    assert out.returncode == 0, out.stdout + out.stderr


@pytest.mark.soak
def test_rules_fire_where_they_should():
    out = promtool("test", "rules", str(CASES))
    assert out.returncode == 0, out.stdout + out.stderr


def test_every_alert_has_a_case_and_is_documented():
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
    cases, page = CASES.read_text(), (DOCS / "monitoring.md").read_text()
    assert len(alerts) > 10
    for alert in alerts:
        assert f'ALERTS{{alertname="{alert}"' in cases, alert
        assert f"| `{alert}` |" in page, alert
    told = set(re.findall(r"^\| `(Llmgw\w+)` \|", page, re.M))
    assert told == set(alerts)


def test_rules_name_metrics_that_exist():
    code = re.sub(r"#.*", "", RULES.read_text())
    assert named_in(code) <= all_names()
    assert named_in(CASES.read_text()) <= all_names()


# Grafana's dashboard


def test_board_names_metrics_that_exist():
    for expr in expressions():
        assert named_in(expr) and named_in(expr) <= all_names(), expr
    for one in BOARD["templating"]["list"]:
        assert named_in(json.dumps(one)) <= scraped_names()


def test_board_shows_every_family():
    shown = set().union(*map(named_in, expressions()))
    assert families() - {n.removesuffix("_bucket") for n in shown} == {
        "llmgw_models_unrouted",        # the error log says it
        "llmgw_view_stale",             # its age is shown
        "llmgw_replica_draining"}       # llmgw_replica_routable is


@pytest.mark.soak
def test_boards_expressions_parse(tmp_path):
    rules = "".join(
        f"  - record: board:{i}\n    expr: {json.dumps(expr)}\n"
        for i, expr in enumerate(
            e.replace("$__rate_interval", "1m") for e in expressions()))
    file = tmp_path / "board.yml"
    file.write_text(f"groups:\n- name: board\n  rules:\n{rules}")
    out = promtool("check", "rules", str(file))
    assert out.returncode == 0, out.stdout + out.stderr


@pytest.mark.soak
def test_board_is_as_grafana_wants_it():
    assert BOARD["schemaVersion"] >= 36 and BOARD["id"] is None
    names = [one["name"] for one in BOARD["templating"]["list"]]
    assert names == ["datasource", "instance", "upstream", "model"]
    ids = [p["id"] for p in BOARD["panels"]]
    assert len(ids) == len(set(ids))
    source = {"type": "prometheus", "uid": "${datasource}"}
    for p in panels():
        assert p["title"] and p["description"]
        assert p["datasource"] == source
        assert all(t["datasource"] == source for t in p["targets"])
        refs = [t["refId"] for t in p["targets"]]
        assert refs and len(refs) == len(set(refs))
        assert all("$upstream" in t["expr"] or "llmgw_agent_" in t["expr"]
                   for t in p["targets"])


def test_boards_panels_are_of_the_chosen_models():
    """And of what has no label `model`: all of an upstream with one model,
    and what is counted for all models together."""
    for expr in expressions():
        series = re.findall(r"llmgw_\w+(?:\{[^}]*\})?", expr)
        assert "llmgw_agent_" in expr or all(
            'model=~"$model|"' in one for one in series), expr


@pytest.mark.soak
def test_boards_panels_do_not_overlap():
    taken = set()
    for at in (p["gridPos"] for p in BOARD["panels"]):
        cells = set(itertools.product(range(at["x"], at["x"] + at["w"]),
                                      range(at["y"], at["y"] + at["h"])))
        assert at["x"] + at["w"] <= 24 and not cells & taken
        taken |= cells
    assert len(taken) == 24 * (max(y for _, y in taken) + 1)


# over a real gateway


def text_of(nginx, accept="text/plain"):
    ask = urllib.request.Request(
        f"http://127.0.0.1:{nginx.status_port}/metrics",
        headers={"accept": accept})
    with urllib.request.urlopen(ask, timeout=20) as answer:
        return answer.read().decode()


@pytest.fixture
def gateway(cluster):
    def make(n=2):
        return cluster.fleet(n, nginx={"server": METRICS})
    return make


def test_scrape_passes_promtools_check(cluster, gateway, client):
    nginx = gateway()
    agent = cluster.agent("r3", grpc=cluster.replica("r3").target)
    Reporter(cluster, agent, max_capacity=0, models=["m"], running=1,
             waiting=0, kv_permille=1, kv_free_blocks=1, hit_permille=1)
    wait_for(lambda: "r3" in nginx.routable(), "r3")
    for i in range(5):
        assert client(nginx).stream(f"{i}", 5).code == "OK"
    # Nobody has a class, a tenant, a standby group or a second model here.
    names = {name for name in scraped_names() if not re.match(
        "llmgw_(class|tenant|group|replica_group|models)_", name)}

    def whole():
        """Its load comes apart from what it is, and is old after 2 s."""
        text = text_of(nginx)
        return names == {re.match(r"llmgw_\w+", line).group() for line in
                         text.splitlines() if not line.startswith("#")} \
            and text
    out = promtool("check", "metrics", input=wait_for(whole, "every name"))
    assert out.returncode == 0, out.stdout + out.stderr


@contextlib.contextmanager
def prometheus(cluster, nginx):
    """A Prometheus that scrapes nginx and evaluates our rules.  On a busy
    machine it loses a scrape now and then, and knows nothing until the next.
    """
    port, where = cluster.ports.take(), cluster.dir / "prometheus"
    where.mkdir()
    config = where / "prometheus.yml"
    config.write_text(f"""\
global: {{scrape_interval: 250ms, scrape_timeout: 250ms,
         evaluation_interval: 250ms}}
rule_files: [{RULES}]
scrape_configs:
  - job_name: llmgw
    static_configs: [{{targets: ['127.0.0.1:{nginx.status_port}']}}]
""")
    proc = cluster.run("prometheus", [
        "prometheus", f"--config.file={config}",
        f"--storage.tsdb.path={where / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}"])

    def ask(query):
        """[(labels, value)] of an instant query; None before it answers."""
        url = (f"http://127.0.0.1:{port}/api/v1/query?"
               + urllib.parse.urlencode({"query": query}))
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                said = json.load(answer)
        except OSError:
            return None
        assert said["status"] == "success", said
        return [(r["metric"], float(r["value"][1]))
                for r in said["data"]["result"]]
    yield ask
    assert proc.alive(), proc.text()


@pytest.mark.soak
def test_scaler_from_zero_by_a_query(cluster, client, expect):
    """That of docs/monitoring.md: a request is held, and a replica started."""
    cluster.agent("gw", "gateway")
    nginx = cluster.nginx(pool="llmgw_queue timeout=60s hold=60s;",
                          server=METRICS, openai="llmgw_model m;")
    query = "sum(increase(llmgw_held_total[2m])) > 0"
    with prometheus(cluster, nginx) as ask:
        wait_for(lambda: ask("llmgw_held_total == 0"), "the first scrape",
                 takes=15)
        assert not ask(query)
        call = client(nginx).start("first", 5)
        wait_for(lambda: ask(query), "the query to see it", takes=15)
        cluster.pair("r1")
        assert [t.token for t in call] == expect("first", 5)


@pytest.mark.soak
def test_prometheus_scrapes_and_answers(cluster, gateway, client):
    nginx = gateway(2)
    with prometheus(cluster, nginx) as ask:
        def labelled(query, name):
            return {m[name]: v for m, v in ask(query) or ()}
        wait_for(lambda: ask('up{job="llmgw"} == 1'), "the first scrape",
                 takes=15)
        for i in range(40):
            assert client(nginx).stream(f"{i}", 5).code == "OK"
            time.sleep(0.02)    # so that scrapes fall between them
        made = {id: r.stats().tokens for id, r in cluster.replicas.items()}
        assert sum(made.values()) == 200
        wait_for(lambda: labelled("llmgw_tokens_total{replica!=''}",
                                  "replica") == made, "all tokens")
        rate = wait_for(lambda: labelled(
            "sum by (upstream) (rate(llmgw_tokens_total[1m]))", "upstream"),
            "a rate")
        assert rate.keys() == {"llm"} and rate["llm"] > 0
        slow = wait_for(lambda: ask(
            "histogram_quantile(0.99, sum by (le) "
            "(rate(llmgw_first_token_seconds_bucket[1m])))"), "a quantile")
        assert 0 < slow[0][1] < 5

        cluster.replicas["r1"].kill()
        cluster.replicas["r2"].kill()
        wait_for(lambda: ask('ALERTS{alertname="LlmgwNoRoutableReplica"}'),
                 "the alert to be pending")
        wait_for(lambda: labelled("llmgw_replica_state", "replica")
                 == {"r1": 2.0, "r2": 2.0}, "both to be dead")
