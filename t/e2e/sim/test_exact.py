"""llmgw-sim is BLIS, to the microsecond: every run of t/data/blis by its own
flags; and it is not, where a flag differs."""

import json
import pathlib
import subprocess

import pytest

from llmgw.sim.blis import FAKE, SIM, blocks

RUNS, SHARES = 135, 9       # runs, and parts of them that a test takes


def differs(blis, name, tmp_path):
    """What of a run is not BLIS's; empty: nothing."""
    table, metrics = tmp_path / "r.tsv", tmp_path / "m.json"
    decisions = tmp_path / "d.tsv"
    out = blis.replay(name, "--text", "--results-tsv", table,
                      "--metrics-path", metrics,
                      "--decisions-tsv", decisions)
    said, found, tail = blis.said(name), *blocks(out)
    wrong = []
    if table.read_text() != blis.text(name):
        wrong.append("requests")
    wrong += metrics_differ(name, said, json.loads(metrics.read_text()))
    wrong += [instance for instance, want in said["per_instance"].items()
              if want.items() - found[instance].items()]
    if sections(name, tail) != sections(name, said["stdout_tail"]):
        wrong.append("sections")
    if "_cf_" in name and decisions.read_text() != blis.text(
            name, "decisions.tsv"):
        wrong.append("decisions")
    return wrong


def metrics_differ(name, said, got):
    got.pop("requests", None)
    skip = FAKE if "_pd_" in name else set()
    want = said["metrics"]
    return [key for key in want.keys() | got.keys()
            if key not in skip and want.get(key) != got.get(key)]


def sections(name, lines):
    """{title: lines} of what BLIS gets right: it reads the session of traces
    with slo_target_us from the column beside it, and gives requests that timed
    out an end to end time where prompts are computed elsewhere."""
    found, title = {}, ""
    for line in lines:
        title = line if line.startswith("===") else title
        found.setdefault(title, []).append(line)
    if name.startswith("bt_"):
        found.pop("=== Session Metrics ===", None)
    if "_pd_" in name:
        found.pop("=== Per-Tenant Metrics ===")
        found = {title: [line for line in lines if "E2E" not in line]
                 for title, lines in found.items()}
    return found


@pytest.mark.parametrize("share", [0, 3, 6, *(
    pytest.param(n, marks=pytest.mark.soak) for n in (1, 2, 4, 5, 7, 8))])
def test_runs_equal_blis(blis, tmp_path, share):
    """Each ninth run, from this one on."""
    assert len(blis.runs) == RUNS
    wrong = {name: what for name in [*blis.runs][share::SHARES]
             if (what := differs(blis, name, tmp_path))}
    assert not wrong


def drawn_differs(blis, name, flags, tmp_path):
    metrics, trace = tmp_path / "m.json", blis.dir / "../drawn" / name
    out = subprocess.run(
        [SIM, "replay", "--trace-header", f"{trace}.yaml", "--trace-data",
         f"{trace}.csv", *flags, "--text", "--metrics-path", metrics],
        cwd=blis.dir, check=True, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL).stdout
    want = json.loads(pathlib.Path(f"{trace}.json").read_text())
    got = json.loads(metrics.read_text()) | {"stdout_tail": blocks(out)[1]}
    if "--prefill-instances" in flags:
        for said in want, got:
            for key in FAKE | {"stdout_tail"}:
                said.pop(key, None)
            for request in said["requests"]:
                request.pop("e2e_ms")
    for said in want, got:
        said["requests"] = sorted(said.get("requests", []),
                                  key=lambda r: r["requestID"])
    return [key for key in want.keys() | got.keys()
            if want.get(key) != got.get(key)]


@pytest.mark.soak
def test_drawn_runs_equal_blis(blis, tmp_path):
    """Fifty traces and command lines that were drawn at random."""
    runs = blis.drawn()
    assert len(runs) == 50
    wrong = {name: what for name, flags in runs.items()
             if (what := drawn_differs(blis, name, flags, tmp_path))}
    assert not wrong


@pytest.mark.parametrize("name,flags", [
    ("b_ll100", ("--snapshot-refresh-interval", 90000)),
    ("b_kv2600_fcfs", ("--total-kv-blocks", 2599)),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        ("b_def_s50c50", ("--cache-signal-delay", 60000)),
        ("b_seed0", ("--routing-policy", "least-loaded")),
        ("b_fc_c8", ("--dispatch-tick-interval", 900)),
        ("b_sched_sjf", ("--scheduler", "fcfs")))),
])
def test_another_flag_gives_another_result(blis, tmp_path, name, flags):
    table = tmp_path / "r.tsv"
    blis.replay(name, *flags, "--results-tsv", table)
    assert table.read_text() != blis.text(name)


def test_fifo_is_first_in_first_out(blis, tmp_path):
    """BLIS's fifo goes by priority; ours does not."""
    table = tmp_path / "r.tsv"
    blis.replay("b_fc_c16_fifo_round-robin", "--dispatch-order", "fifo",
                "--fairness-policy", "global-strict", "--results-tsv", table)
    rows = [line.split("\t") for line in table.read_text().splitlines()[1:]]
    waited = [(int(r[7]) - int(r[6] or 0), int(r[7])) for r in rows if r[7]]
    assert any(r[6] for r in rows)
    left = [route for _, route in sorted(waited)]
    assert left == sorted(left)
