"""Tokens through nginx."""

import contextlib
import json
import os
import pathlib
import subprocess
import threading
import types

import pytest

from llmgw.engine.scripted import scripted
from llmgw.proc import place
from llmgw.proc.place import SLOW
from llmgw.proc.process import rss_kb
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc

MEGABYTE = 1 << 20


def files_of(pid, part):
    """The process's open files whose path contains this."""
    found = []
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):    # closed just now
            found.append(os.readlink(fd))
    return [path for path in found if part in path]


def test_tokens_arrive_one_at_a_time(cluster, client, expect):
    """Each comes while the replica holds the next."""
    nginx = cluster.fleet()
    cluster.hold()
    call = client(nginx).start("the pace of it", 6)
    got = []
    for n in range(1, 6):
        cluster.hold(n)
        got.append(next(call))
    cluster.let_go()
    got += call
    assert [m.token for m in got] == expect("the pace of it", 6)
    assert [m.is_final for m in got] == [False] * 5 + [True]
    assert len({m.replica_id for m in got} & set(cluster.replicas)) == 1


def test_prompts_of_every_kind_keep_their_bytes(cluster, client, expect):
    nginx = cluster.fleet(2)
    c = client(nginx)
    for prompt in ("", "ü", "日本語のプロンプト" * 20, "\x00\x01", "a" * 64,
                   "a" * 65, "🚀" * 16):
        c.stream(prompt, 3).check(expect(prompt, 3))
    c.stream("short", 1).check(expect("short", 1))


def test_long_prompts_leave_no_file_and_no_copy(cluster, client):
    """nginx writes them to files; they are joined in memory and decoded."""
    nginx = cluster.fleet(1)
    cluster.hold(1)
    worker, = nginx.workers()
    prompts = [f"{i}" + "p" * MEGABYTE for i in range(8)]

    def ask(prompt):
        call = client(nginx).start(prompt, 2)
        next(call)
        return call
    ask(prompts[0]).cancel()
    wait_for(lambda: not nginx.counts(), "counts of zero")
    before = rss_kb(worker)
    asked = [ask(prompt) for prompt in prompts]
    grown = rss_kb(worker) - before
    assert files_of(worker, "/body/") == []
    assert grown < len(prompts) * 1.5 * 1024 * SLOW, f"{grown} kB"
    for call in asked:
        call.cancel()


def test_200_streams_at_once(cluster, load, expect):
    nginx = cluster.fleet()
    cluster.hold(1)
    jobs = [[f"prompt {i}", 10] for i in range(200)]
    work = load(nginx, jobs, connections=4)

    work.running()
    assert nginx.in_flight() == 200
    cluster.let_go()
    for (prompt, n), got in zip(jobs, work.results()):
        got.check(expect(prompt, n))
        assert len(got.replicas) == 1


@pytest.mark.soak
def test_2000_streams_over_20_connections(cluster, load, expect):
    nginx = cluster.fleet()
    cluster.hold()
    prompts = [f"prompt {i}" for i in range(100)]
    jobs = [[prompts[i % 100], 5] for i in range(2000)]
    work = load(nginx, jobs, connections=20, seconds=120)

    wait_for(lambda: nginx.in_flight() == 2000, "2,000 streams at once",
             takes=10)
    cluster.let_go()
    for (prompt, n), got in zip(jobs, work.results()):
        got.check(expect(prompt, n))


def test_two_workers_share_the_streams(cluster, load, expect):
    nginx = cluster.fleet(nginx={"workers": 2})
    cluster.hold(1)
    jobs = [[f"prompt {i}", 5] for i in range(100)]
    work = load(nginx, jobs, connections=20)

    work.running()
    wait_for(lambda: nginx.in_flight() == 100, "one count for both workers")
    cluster.let_go()
    for (prompt, n), got in zip(jobs, work.results()):
        got.check(expect(prompt, n))


def test_a_replicas_stream_limit_opens_a_second_connection(cluster, load):
    from llmgw.engine import pyreplica
    engine = cluster.pyreplica("small", max_streams=10, token_delay_ms=20)
    nginx = cluster.static([engine])
    jobs = [[f"prompt {i}", 10] for i in range(40)]
    for (prompt, n), got in zip(jobs, load(nginx, jobs).results()):
        got.check(pyreplica.tokens(prompt, n))


@pytest.mark.soak
def test_place_at_any_connection_serves_who_waits(cluster, client):
    """The waiting stream has a replica's last allowed connection; the slot is
    freed on the first one, and all others are silent."""
    calls, leaves, ends = 64, threading.Event(), threading.Event()
    begun = set()

    def generate(request, context):
        begun.add(request.prompt)
        yield rpc.pb.GenerateResponse(token="begun")
        if request.prompt != "waits":
            (leaves if request.prompt == "0" else ends).wait(60)
        yield rpc.pb.GenerateResponse(token="ended", is_final=True)

    port = cluster.ports.take()
    with scripted(port, generate, threads=calls + 8,
                  options=[("grpc.max_concurrent_streams", 1)]):
        nginx = cluster.static([types.SimpleNamespace(
            target=f"127.0.0.1:{port}")])
        c, running = client(nginx), []
        for i in range(calls):
            running.append(c.start(f"{i}", 2))
            wait_for(lambda: f"{i}" in begun, f"call {i}")
        running.append(c.start("waits", 2))
        wait_for(lambda: nginx.in_flight() == calls + 1, "who waits")
        assert "waits" not in begun
        try:
            leaves.set()
            wait_for(lambda: "waits" in begun, "his turn")
        finally:
            ends.set()
        for call in running:
            rpc.drain(call).check(["begun", "ended"])


@pytest.mark.soak
def test_variables_reach_the_access_log(cluster, client):
    names = ["replica", "route", "tries", "failovers", "queue_time",
             "first_token_time", "tokens"]
    fields = ",".join(f'"{n}":"$llmgw_{n}"' for n in names)
    nginx = cluster.fleet(2, nginx={
        "http": f"log_format llmgw '{{{fields}}}';",
        "location": "access_log @dir@/llmgw.json llmgw;"})
    path = nginx.dir / "llmgw.json"
    got = client(nginx).stream("logged", 7)

    line = json.loads(wait_for(path.read_text, "a line in the log"))
    assert line["replica"] == got.replicas[0]
    assert line["route"] == "affinity"
    assert line["tries"] == "1"
    assert line["failovers"] == "0"
    assert line["tokens"] == "7"
    assert 0.0 <= float(line["first_token_time"]) <= got.seconds + 0.01
    assert len(line["first_token_time"].partition(".")[2]) == 3


@pytest.mark.parametrize("as_json", [
    pytest.param(False, marks=pytest.mark.soak), True])
def test_client_prints_tokens_as_they_come(cluster, expect, as_json):
    nginx = cluster.fleet(2)
    argv = [place.binary("llmgw-client"), "infer", "--gateway", nginx.target,
            "--prompt", "from the shell", "--max-tokens", "8"]
    out = subprocess.run(argv + ["--json"] * as_json, capture_output=True,
                         text=True, timeout=20)

    assert out.returncode == 0, out.stderr
    tokens = expect("from the shell", 8)
    if as_json:
        lines = [json.loads(line) for line in out.stdout.splitlines()]
        tokens_said = [x["token"] for x in lines if "token" in x]
        assert tokens_said == tokens
        assert {x["replica"] for x in lines if "token" in x} <= {"r1", "r2"}
    else:
        assert "".join(tokens).strip() in out.stdout


def test_client_says_why_it_failed(cluster):
    cluster.agent("gw", "gateway")
    nginx = cluster.nginx()
    out = subprocess.run(
        [place.binary("llmgw-client"), "infer", "--gateway", nginx.target,
         "--prompt", "x", "--max-tokens", "1"],
        capture_output=True, text=True, timeout=20)
    assert out.returncode == 1
    assert "UNAVAILABLE" in out.stderr
