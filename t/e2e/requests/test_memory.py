"""The worker's memory for a stream that waits for its next token."""

import contextlib
import subprocess

import pytest

from llmgw.fleet.nginx import listen
from llmgw.proc import place
from llmgw.proc.place import FLAVOUR
from llmgw.proc.process import rss_kb
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc

HELD = 1000
GOAL_KB = 11
ADDED = {f"x-out-{i}": f"{i}" * 30 for i in range(30)}


def measured(test):
    return pytest.mark.soak(pytest.mark.alone(pytest.mark.skipif(
        FLAVOUR == "asan", reason="its malloc surrounds what is asked for")(
            test)))


def tokens(nginx):
    return nginx.pool()["totals"]["tokens"]


@contextlib.contextmanager
def held(nginx, connections, streams, prompt_bytes=64):
    """Keeps that many streams open, each with a token."""
    in_flight, had = nginx.in_flight(), tokens(nginx)
    client = subprocess.Popen(
        [place.binary("llmgw-client"), "bench", "--gateway", nginx.target,
         "--connections", str(connections), "--streams",
         str(streams // connections), "--prompt-bytes", str(prompt_bytes),
         "--hold", "--duration", "2m"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: nginx.in_flight() >= in_flight + streams,
                 f"{streams} streams more")
        wait_for(lambda: tokens(nginx) >= had + streams, "a token for each")
        yield
    finally:
        client.kill()
        client.wait()


def a_stream(nginx, goal, **options):
    """kB per stream, after the worker has allocated what it takes once.

    While a process stands still for a moment, what waits for it takes memory,
    too.  So up to three crowds of streams come, one to the others, until one
    has met the goal.
    """
    worker, = nginx.workers()
    with contextlib.ExitStack() as crowds:
        crowds.enter_context(held(nginx, 1, 20))
        for _ in range(3):
            before = rss_kb(worker)
            crowds.enter_context(held(nginx, 10, HELD, **options))
            kb = (rss_kb(worker) - before) / HELD
            if kb < goal:
                break
    return kb


@pytest.fixture
def gateway(cluster):
    """nginx and a replica where streams wait for their second token."""
    def make(**options):
        replica = cluster.replica("r1", token_delay="1ms")
        cluster.hold(1)
        return cluster.static([replica], **options)
    return make


@pytest.fixture(scope="module")
def crowded(shared):
    lines = [f"add_header {name} {value};" for name, value in ADDED.items()]
    return shared.fleet(1, nginx={"location": " ".join(lines)})


@measured
def test_nginx_as_it_comes_holds_a_stream_in_eleven_kilobytes(gateway):
    assert a_stream(gateway(), GOAL_KB) < GOAL_KB


@measured
def test_default_server_of_the_address_does_not_change_that(cluster, gateway):
    """nginx creates a request's pool before it knows the request's server."""
    nginx = gateway(server="server_name 127.0.0.1;", start=False)
    nginx.configure(http="server {\n        " + listen(nginx.port)
                    + "\n        return 404;\n    }")
    cluster.launch(nginx)
    assert a_stream(nginx, GOAL_KB) < GOAL_KB


@measured
def test_request_pool_size_of_the_configuration_stands(gateway):
    kb = a_stream(gateway(server="request_pool_size 12k;"), 12 + GOAL_KB)
    assert 12 < kb < 12 + GOAL_KB


@measured
def test_prompt_takes_its_bytes_and_no_block(gateway):
    goal = GOAL_KB + 3.3
    assert a_stream(gateway(), goal, prompt_bytes=3000) < goal


@pytest.mark.parametrize("fields", [8, 40, *(
    pytest.param(n, marks=pytest.mark.soak) for n in (0, 1, 14))])
def test_many_fields_arrive(crowded, client, expect, fields):
    """Both lists grow beyond the elements that were preallocated."""
    sent = [(f"x-in-{i}", "i" * 60) for i in range(fields)]
    for prompt in ("short", "p" * 700, "p" * 5000):
        call = client(crowded).start(prompt, 3, metadata=sent)
        rpc.drain(call).check(expect(prompt, 3))
        answer = dict(call.initial_metadata())
        assert [answer.get(name) for name in ADDED] == list(ADDED.values())
