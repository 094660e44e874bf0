"""Limits of one account under a crowd: two upstreams, three models, two
locations, four workers.

LLMGW_LIMIT_SECONDS is how long each crowd asks (300 for the long form).
"""

import contextlib
import os
import signal
import statistics
import threading
import time

import pytest

from llmgw.fleet.books import records
from llmgw.proc.place import SLOW
from llmgw.proc.wait import still, wait_for
from llmgw.speak import sse
from llmgw.speak.crowd import Crowd, most_at_once
from llmgw.speak.keyfile import ask, bearer, line

SECONDS = float(os.environ.get("LLMGW_LIMIT_SECONDS", 20))
CLIENTS = 1000
MODELS = "llmgw_model one as mock-model; llmgw_model two as mock-model;" \
         " llmgw_model three as mock-model pool=second;"


@pytest.fixture
def wide(gateway, cluster):
    """A gateway over two engines, each in an upstream of its own."""
    def make(**engine):
        second = f"upstream second {{ llmgw_members {cluster.dir}" \
            "/gw.members; llmgw_hash; llmgw_breaker off; }"
        cluster.allowed += ["exited on signal 9", "was locked by"]
        return gateway(1, nginx={
            "workers": 4, "http": second, "openai": MODELS,
            "server": f"location /too/ {{ llmgw_openai llm; {MODELS} }}",
            "pool": "llmgw_breaker off;"}, **engine)
    return make


def asks(key, **more):
    """Each client has a location and a model of its own."""
    def one(i):
        path = ("", "/too")[i % 2] + sse.CHAT
        model = ("one", "two", "three")[i // 2 % 3]
        return path, sse.chat(f"{i} len=9;", model, **more), bearer(key)
    return one


def check_rpm(answers, rpm, began):
    """At each moment no more were admitted than the formula allows."""
    served = sorted(a.times[-1] for a in answers if a.status == 200)
    for n, at in enumerate(served, 1):
        assert n <= rpm + rpm / 60 * (at - began) + 1, (n, at - began)
    return len(served)


@pytest.mark.soak
def test_rpm_is_its_formula_whatever_happens(wide, keyfile, usage):
    """Reloads and killed workers neither add nor remove requests of an
    account."""
    rpm = 1200
    key = keyfile.add("alice", f"rpm={rpm}")
    nginx = wide()
    began = time.monotonic()
    crowd = Crowd(nginx, CLIENTS, asks(key), SECONDS)
    while crowd.is_alive():
        time.sleep(1)
        nginx.proc.send(signal.SIGHUP)
        time.sleep(1)
        os.kill(nginx.workers()[-1], signal.SIGKILL)
    answers = crowd.done()
    n = check_rpm(answers, rpm, began)
    still(lambda: len(records(usage)), 2.5)
    charged = len(records(usage))
    most = rpm + rpm / 60 * (time.monotonic() - began)
    assert n <= charged <= most
    assert charged >= .9 * (rpm + rpm / 60 * (SECONDS - 1))
    assert {a.status for a in answers} <= {0, 200, 429, 502, 503}
    print(f"{n} served, {charged} charged, {most:.0f} allowed,"
          f" {len(answers)} asked")


@pytest.mark.soak
def test_streams_are_never_one_too_many(wide, keyfile):
    """From the first to the last but one event, a stream certainly has a
    place."""
    key = keyfile.add("alice", "streams=20")
    nginx = wide(faults='{"token_delay": 0.05}')
    crowd = Crowd(nginx, CLIENTS, asks(key, stream=True), SECONDS)
    while crowd.is_alive():
        time.sleep(2)
        nginx.proc.send(signal.SIGHUP)
        time.sleep(.5)
        os.kill(nginx.workers()[-1], signal.SIGKILL)
    spans = [(a.times[0], a.times[-2]) for a in crowd.done()
             if a.status == 200 and len(a.times) > 2]
    assert most_at_once(spans) == 20
    wait_for(lambda: not nginx.counts(), "counts of zero")
    check_places(nginx, key, 20)


def check_places(nginx, key, n):
    """All of them are there again, and not one more."""
    with contextlib.ExitStack() as stack:
        for i in range(n):
            c = stack.enter_context(sse.Connection(nginx.api))
            r = c.request(sse.CHAT, sse.chat(f"{i} len=400;", "one",
                                             stream=True),
                          headers={"authorization": f"Bearer {key}"})
            r.wait_events(1)
            assert r.status == 200, i
        got = ask(nginx.api, sse.CHAT, sse.chat("x", "one"), bearer(key))
        got.is_refused(429, "rate_limit_exceeded")


@pytest.mark.soak
def test_tpm_is_used_up_and_not_exceeded(wide, keyfile, usage):
    """Clients that ask for twenty times of what comes."""
    tpm = 30000
    key = keyfile.add("alice", f"tpm={tpm}")
    nginx = wide()
    crowd = Crowd(nginx, 200, asks(key, max_tokens=200), SECONDS + 60, .5)

    def is_empty():
        last = [a.status for a in crowd.answers[-100:]]
        return last.count(429) > 50
    wait_for(is_empty, "the full bucket to be used", 60)
    first, began = sum(map(cost, records(usage))), time.monotonic()
    time.sleep(SECONDS)
    used = sum(map(cost, records(usage))) - first
    due = tpm / 60 * (time.monotonic() - began)
    crowd.stop()
    crowd.done()
    assert .95 <= used / due <= 1.05, used / due
    print(f"{used / due:.3f} of what was due")


def cost(record):
    return record["prompt_tokens"] + record["completion_tokens"]


# --- what a large file costs running streams

KEYS = 10_000


def gaps(nginx, key, seconds):
    """Milliseconds between the tokens of streams, beyond their pace."""
    crowd = Crowd(nginx, 20, lambda i: (
        sse.CHAT, sse.chat(f"{i} len=200;", stream=True), bearer(key)),
        seconds, .01)
    found = []
    for a in crowd.done():
        found += [b - x for x, b in zip(a.times, a.times[1:])]
    return [1000 * x for x in found]


@pytest.mark.soak
@pytest.mark.timed
@pytest.mark.alone
def test_10000_new_keys_each_second_delay_no_token(gateway, keyfile):
    """By more than 5 ms, at the 999th of 1,000 tokens."""
    key = keyfile.add("alice")
    nginx = gateway(faults='{"token_delay": 0.02}')
    going, n = threading.Event(), 0

    def write():
        nonlocal n
        while not going.wait(2.2):      # it must stand still to be taken
            n += 1
            keyfile.write("\n".join(keyfile.lines + [
                line(f"sk-{n}-{i}", f"n{i}", "rpm=100")
                for i in range(KEYS)]) + "\n")
    before = gaps(nginx, key, 10 * SLOW)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        after = gaps(nginx, key, 20 * SLOW)
    finally:
        going.set()
        writer.join()
    tail = [statistics.quantiles(x, n=1000)[-1] for x in (before, after)]
    print(f"p99.9 of {len(after)} gaps: {tail[0]:.1f} ms, {tail[1]:.1f} ms with"
          f" {n} files of {KEYS} keys")
    assert n > 3 and tail[1] - tail[0] <= 5
