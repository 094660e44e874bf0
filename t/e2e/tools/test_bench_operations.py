"""bench/operations.py: its figures are those of the requests' trace."""

import sys

import pytest

from llmgw.proc import place

sys.path.insert(0, str(place.ROOT / "bench"))
import operations  # noqa: E402
from measure.machine import Fail  # noqa: E402


def row(at_s, first_ms, status="ok"):
    return {"arrival_time_us": str(int(at_s * 1e6)), "status": status,
            "first_chunk_time_us": str(int(at_s * 1e6 + first_ms * 1e3))}


def test_requests_are_told_apart_by_when_they_came():
    rows = [row(i / 100, 50 if 2 <= i / 100 <= 4 else 10) for i in range(600)]
    got = operations.compared([*rows, row(3, 0, "error")], 2, 4)
    assert (got["requests"], got["failed"]) == (601, 1)
    assert got["during_p99"] == pytest.approx(50, abs=.01)
    assert got["others_p99"] == pytest.approx(10, abs=.01)


def test_too_few_requests_are_no_measurement():
    with pytest.raises(Fail, match="only 50 and 50 requests"):
        operations.compared([row(i, 1) for i in range(100)], 0, 49)


def test_what_failed_is_shown_as_failed():
    rows = {name: [{"requests": 9, "failed": 0}] for name in operations.ROWS}
    rows["sick"] = [{"fail": "no such luck"}]
    text = operations.table({
        "machine": {"date": "d", "cpu": "c", "processors": 2, "kernel": "k",
                    "load": 1.0, "commit": "x"},
        "options": {"rounds": 1}, "rows": rows})
    assert "FAIL: no such luck" in text and text.count("FAIL") == 1
