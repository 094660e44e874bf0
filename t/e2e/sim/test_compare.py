"""compare: the same requests, other settings, paired."""

import json
import re
import subprocess

import pytest

from llmgw.pages.browser import Browser
from llmgw.sim.blis import SIM

FLEET = ("--trace-header", "b.yaml", "--trace-data", "b.csv",
         "--total-kv-blocks", "20000", "--num-instances", "4",
         "--snapshot-refresh-interval", "0", "--slo-ttft",
         "critical=55ms,standard=60ms,batch=100ms")
HOSTILE = "</script><script>alert(1)</script><!--"
VARIANTS = ("round-robin", "least-loaded",
            f"{HOSTILE}: --num-instances 6 --routing-policy least-loaded")


def compare(blis, *words):
    return subprocess.run([SIM, "compare", *FLEET, *map(str, words)],
                          cwd=blis.dir, text=True, capture_output=True)


@pytest.fixture(scope="module")
def three(blis, tmp_path_factory):
    """The comparison as JSON, and its page."""
    page = tmp_path_factory.mktemp("page") / "page.html"
    run = compare(blis, "--json", "--html", page, *VARIANTS)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout), page


@pytest.fixture(scope="module")
def browser():
    made = Browser()
    yield made
    made.close()


def test_each_variant_is_the_run_that_replay_makes(blis, three):
    for variant, policy in zip(three[0]["variants"],
                               ("round-robin", "least-loaded")):
        alone = subprocess.run(
            [SIM, "replay", *FLEET, "--routing-policy", policy],
            cwd=blis.dir, text=True, capture_output=True, check=True)
        assert variant["cluster"] == json.loads(alone.stdout)


def test_pairs_are_of_each_request_with_itself(blis, three, tmp_path):
    times = []
    for policy in "round-robin", "least-loaded":
        path = tmp_path / f"{policy}.json"
        subprocess.run([SIM, "replay", *FLEET, "--routing-policy", policy,
                        "--results-path", path], cwd=blis.dir, check=True,
                       capture_output=True)
        times.append({r["request_id"]: r["e2e_us"]
                      for r in json.loads(path.read_text())})
    first, second = times
    differences = [second[i] - first[i] for i in second if i in first]
    said = three[0]["variants"][1]["against_first"]
    assert said["e2e"]["pairs"] == len(differences)
    assert said["e2e"]["better"] == sum(d < 0 for d in differences)
    assert said["e2e"]["worse"] == sum(d > 0 for d in differences)
    assert said["e2e"]["mean_ms"] == pytest.approx(
        sum(differences) / len(differences) / 1000)
    assert said["completed_only_here"] == len(second.keys() - first.keys())
    assert said["completed_only_there"] == len(first.keys() - second.keys())


@pytest.mark.soak
def test_more_replicas_are_better_beyond_doubt(three):
    ttft = three[0]["variants"][2]["against_first"]["ttft"]
    assert ttft["low_ms"] < ttft["mean_ms"] < ttft["high_ms"] < 0
    assert ttft["better"] > ttft["worse"] and ttft["sign_test_p"] < 1e-6


@pytest.mark.soak
def test_a_variant_does_not_differ_from_itself(blis):
    run = compare(blis, "--json", "least-loaded",
                  "again: --routing-policy least-loaded")
    for time in "ttft", "e2e":
        got = json.loads(run.stdout)["variants"][1]["against_first"][time]
        assert got["mean_ms"] == got["low_ms"] == got["high_ms"] == 0
        assert got["better"] == got["worse"] == 0
        assert got["sign_test_p"] == 1


def test_text_has_a_row_for_each_and_the_same_bytes_again(blis):
    run = compare(blis, *VARIANTS)
    table = run.stdout.split("\n\n")[1]
    rows = re.findall(r"^(\S.*?) +\d+ +[\d.]+ ", table, re.M)
    assert rows == ["round-robin", "least-loaded", HOSTILE]
    assert compare(blis, *VARIANTS).stdout == run.stdout


def test_page_needs_nothing_else_and_follows_the_dark(three, browser):
    said, path = three
    page = browser.page(width=1400, dark=True)
    page.open(path.as_uri())
    rows = page.js("[...document.querySelectorAll('#overview tr')]"
                   ".slice(1).map(r => r.innerText.split('\\t'))")
    assert [r[0] for r in rows] == ["round-robin", "least-loaded", HOSTILE]
    assert [int(r[1]) for r in rows] == [
        v["cluster"]["completed_requests"] for v in said["variants"]]
    assert page.js("document.querySelectorAll('#pairs tr').length") == 5

    titles = page.js("[...document.querySelectorAll('figcaption')]"
                     ".map(f => f.innerText)")
    assert titles[:3] == ["Time to first token", "End to end",
                          "Goodput by class"]
    assert titles[3:] == [f"Load by replica: {r[0]}" for r in rows]
    lines = page.js("[...document.querySelectorAll('figure')][0]"
                    ".querySelectorAll('polyline').length")
    bars = page.js("[...document.querySelectorAll('figure')][2]"
                   ".querySelectorAll('rect title').length")
    assert (lines, bars) == (3, 9)
    assert all(role not in ("img", "image") or name
               for role, name in page.names())

    back = "getComputedStyle(document.body).backgroundColor"
    dark = page.js(back)
    page.media(dark=False)
    assert page.js(back) != dark
    assert page.complaints() == []
    assert [u for u in page.requests()
            if not u.startswith(("file:", "about:"))] == []
    page.close()


def test_page_says_in_tables_what_its_figures_show(three, browser):
    said, path = three
    page = browser.page(width=1400)
    page.open(path.as_uri())
    tables = page.js("""[...document.querySelectorAll('figure')].map(f => {
        f.querySelector('summary').click();
        return [...f.querySelectorAll('tr')].map(r =>
            [...r.cells].map(c => c.innerText)); })""")
    assert len(tables) == 6
    for v, row in zip(said["variants"], tables[0][1:]):
        assert float(row[tables[0][0].index("99 %")]) == pytest.approx(
            v["cluster"]["ttft_p99_ms"], abs=0.051)
    for v, row in zip(said["variants"], tables[2][1:]):
        assert [float(x) for x in row[1:]] == [
            pytest.approx(v["cluster"]["per_class"][c]["slo_attainment"] * 100,
                          abs=0.0051) for c in tables[2][0][1:]]
    assert [len(t) - 1 for t in tables[3:]] == [4, 4, 6]
    page.close()


def test_page_can_be_read_on_a_phone(three, browser):
    page = browser.page(width=360, height=700)
    page.open(three[1].as_uri())
    assert page.js("document.scrollingElement.scrollWidth") <= 360
    small = page.js("""[...document.querySelectorAll('figure > svg')].filter(
        s => s.getBoundingClientRect().width != s.getAttribute('width')
             || s.viewBox.baseVal && s.viewBox.baseVal.width).length""")
    assert small == 0           # letters are as large as everywhere
    page.close()


def test_no_number_of_a_page_is_none(blis, browser, tmp_path):
    """Of nothing that completed, and of one request."""
    for name, words in (("none", ("--admission-policy", "reject-all")),
                        ("one", ("--horizon", "1500000"))):
        path = tmp_path / f"{name}.html"
        run = compare(blis, "--html", path, *words, "round-robin")
        assert run.returncode == 0, run.stderr
        page = browser.page()
        page.open(path.as_uri())
        assert page.js("document.querySelectorAll('figure').length") == 4
        assert page.js("""[...document.querySelectorAll('svg *')].filter(n =>
            [...n.attributes].some(a => /NaN|Infinity/.test(a.value))
            || /NaN|Infinity/.test(n.textContent)).length""") == 0
        assert page.complaints() == []
        page.close()


def test_ticks_of_a_page_are_round_and_not_too_many(three, browser):
    page = browser.page()
    page.open(three[1].as_uri())
    lists = page.js("""range(80).map(i => 1e-6 * 1.37 ** i)
                       .map(max => [max, steps(max, 6)])""")
    for most, ticks in lists:
        assert 3 <= len(ticks) <= 7 and ticks[-1] <= most * 1.001
        assert f"{ticks[1]:e}"[:8] in ("1.000000", "2.000000", "5.000000")
    page.close()


@pytest.mark.parametrize("words, said", [
    ((), "compare takes 1 to 16 variants"),
    (("nix",), 'unknown routing policy "nix"'),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        (("least-loaded",) * 17, "compare takes 1 to 16 variants"),
        (("a --seed 1",), 'variant "a --seed 1" is not NAME: --OPTION'),
        (("a: --seed '1",), "variant \"a: --seed '1\" has too many words"),
        (("--html", "/nowhere/x", "least-loaded"),
         "cannot write /nowhere/x"))),
])
def test_what_cannot_be_compared_is_said(blis, words, said):
    run = compare(blis, *words)
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1].startswith(f"llmgw-sim: {said}")


@pytest.mark.soak
def test_an_option_that_is_not_there_is_said(blis):
    run = compare(blis, "a: --nix 1")
    assert run.returncode == 2 and run.stdout == ""
    assert "--nix" in run.stderr.splitlines()[-1]
