"""nginx's access log as a trace: what ran through the gateway is replayed."""

import csv
import json
import subprocess

import pytest

from llmgw.fleet import words
from llmgw.proc import place

SIM = place.binary("llmgw-sim")
LINE = {"time": "2026-11-22T20:00:10+00:00", "request_id": "a", "client": "c",
        "code": "OK", "reason": "", "tokens": "30", "request_time": "2.500",
        "first_token_time": "0.250"}


def convert(where, text, *more, code=0):
    (where / "a.log").write_text(text)
    got = subprocess.run(
        [SIM, "convert", "--access-log", "a.log", "--trace-header", "t.yaml",
         "--trace-data", "t.csv", *more], cwd=where, capture_output=True,
        text=True, timeout=30)
    assert got.returncode == code, got.stderr
    return got


def log(*lines):
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_lines_become_requests_that_are_replayed(tmp_path):
    got = convert(tmp_path, log(
        LINE | {"time": "2026-11-22T22:00:12+02:00", "tokens": "5"},
        LINE, LINE | {"code": "", "request_id": "page"},
        LINE | {"msec": "1795377611.250", "prompt_tokens": "77", "code":
                "UNAVAILABLE", "reason": words.QUEUE_FULL, "tokens": "0"}))
    assert got.stderr == "3 requests, 1 other lines\n"
    with open(tmp_path / "t.csv") as f:
        rows = list(csv.DictReader(f))
    assert [(r["arrival_time_us"], r["input_tokens"], r["output_tokens"],
             r["status"]) for r in rows] == [
        ("1", "512", "30", "ok"), ("1250001", "77", "0", "error"),
        ("2000001", "512", "5", "ok")]
    assert rows[0]["first_chunk_time_us"] == "250001"
    assert rows[0]["last_chunk_time_us"] == "2500001"
    out = subprocess.run(
        [SIM, "replay", "--trace-header", "t.yaml", "--trace-data", "t.csv",
         "--latency-model", "linear", "--alpha-coeffs", "0,0,0",
         "--beta-coeffs", "5000,20,50", "--num-instances", "2",
         "--total-kv-blocks", "4000", "--horizon", "900000000"],
        cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert out.returncode == 0, out.stderr


@pytest.mark.parametrize("text,error", [
    (log(LINE) + "nonsense\n", "a.log:2: no JSON object: "),
    (log(LINE | {"request_time": "-1"}), "a.log:1: a request lacks times "),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        (log(LINE | {"time": "noon"}), "a.log:1: a request lacks times "),
        (log(LINE | {"tokens": "1e300"}), "a.log:1: a request lacks times "),
        ("[]\n", "a.log:1: no JSON object: another value"),
        ("", "a.log: no requests"))),
])
def test_bad_logs(tmp_path, text, error):
    got = convert(tmp_path, text, code=2)
    assert got.stderr.startswith("llmgw-sim: " + error), got.stderr
    assert got.stderr.count("\n") == 1
