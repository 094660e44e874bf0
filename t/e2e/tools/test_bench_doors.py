"""bench/doors.py: its goals are judged at their limits, by the figures of the
right rows."""

import sys

import pytest

from llmgw.proc import place

sys.path[:0] = [str(place.ROOT / "bench")]
import doors  # noqa: E402
from measure import goals  # noqa: E402


def around(x):
    return {"median": x, "min": x - 1, "max": x + 1, "n": 5}


def verdict(number, results):
    return {n: v for n, _, _, _, v in goals.judge(results, doors.GOALS)}[
        number]


def paired(**rows):
    return {"paired": {name: {"rows": {peer: {key: around(value)}}}
                       for name, (peer, key, value) in rows.items()}}


@pytest.mark.parametrize("token, thousand, request_, said", [
    (1.15, 1.15, 1.2, "met"), (1.151, 1, 1, "MISSED"),
    (1, 1.151, 1, "MISSED"), (1, 1, 1.201, "MISSED")])
def test_cpu_of_tls(token, thousand, request_, said):
    assert verdict(28, paired(
        tls200=("TLS", "ratio", token), tls1000=("TLS", "ratio", thousand),
        tls_rps=("TLS", "ratio", request_))) == said


@pytest.mark.parametrize("full, resumed, stands, said", [
    (1.2, 0.2, 0.2, "met"), (1.21, 0, 0, "MISSED"), (1, 0.21, 0, "MISSED"),
    (1, 0, 0.21, "MISSED")])
def test_round_trips_of_tls(full, resumed, stands, said):
    names = [name for name in doors.doors.ASKS if "clear text" not in name]
    assert len(names) == 3
    assert verdict("28b", {"first_token": {
        name: {"trips": trips, "near_more": around(1)}
        for name, trips in zip(names, (full, resumed, stands))}}) == said


@pytest.mark.parametrize("more_us, more, said", [
    (2, 15, "met"), (2.01, 0, "MISSED"), (0, 16, "MISSED")])
def test_cpu_of_keys(more_us, more, said):
    assert verdict(29, {
        **paired(keys_rps=("keys", "more", more_us)), "instructions": {
            "no keys": {"request": 1, "token": 4000},
            "keys": {"request": 1, "token": 4000 + more}}}) == said


@pytest.mark.parametrize("worst, said", [(36, "met"), (36.1, "MISSED")])
def test_keys_that_are_rewritten(worst, said):
    assert verdict("29b", {"rewritten": {
        "still": {"gap": around(30)},
        "rewritten": {"gap": around(worst - 1)}}}) == said


def test_what_was_not_measured_says_why():
    results = {
        "machine": {"date": "d", "cpu": "c", "processors": 2, "kernel": "k",
                    "load": 1.0, "commit": "x", "nginx": "1"},
        "rounds": 1, "seconds": 1.0, "load_at_end": 1.0,
        "paired": {"tls200": {"fail": "no such luck"}},
        "first_token": {"fail": "no ss here"}}
    text = doors.document(results)
    assert verdict(28, results) == "FAIL: no such luck"
    assert verdict("28b", results) == "FAIL: no ss here"
    assert verdict("29b", results) == "FAIL: not measured"
    assert text.count("FAIL: no ss here") == 2
