"""`llmgw up exec:COMMAND`: engines that it starts, and their ends."""

import json
import os
import shlex
import shutil
import signal

import pytest

from llmgw.fleet.launched import WHERE, lives, runs_of, tree_command
from llmgw.fleet.launcher import Launcher
from llmgw.proc.wait import wait_for
from llmgw.speak import clients, sse

HELD = 3
GATE = ["--faults", f'{{"gate": {HELD}}}']      # SIGUSR1 opens it


# What gateways have kept, for the end of a test.
_kept = []


@pytest.fixture(autouse=True)
def removed():
    yield
    while _kept:
        shutil.rmtree(_kept.pop(), ignore_errors=True)


class Started:
    """An engine of `exec:`, seen from outside."""

    def __init__(self, cluster, name, by="port", **options):
        self.log = cluster.dir / f"tree-{name}.jsonl"
        self.log.touch()
        self.word = "exec:" + shlex.join(tree_command(
            self.log, where=WHERE[by], **options))

    def runs(self):
        return runs_of(self.log)

    def front(self):
        return self.runs()[-1]["front"]

    def left(self):
        return [pid for run in self.runs() for pid in run.values()
                if lives(pid)]


def up_with(cluster, *engines, options=(), **more):
    up = Launcher(cluster, *(e.word for e in engines), *options, **more)
    _kept.append(up.kept())
    up.started()
    wait_for(lambda: all(e["ready"] for e in up.engines().values()),
             "all engines", takes=6)
    return up


def begin(up):
    connection = sse.Connection(up.target, takes=20)
    response = connection.request(sse.CHAT, sse.chat("hi len=20;",
                                                     stream=True))
    response.wait_events(HELD)
    return response


def finish(response):
    got = sse.result_of(response)
    assert got.done == 1 and not got.error
    assert got.finish_reason == ["stop"]
    response.connection.close()


def is_refused(up):
    try:
        sse.Connection(up.target).close()
    except ConnectionRefusedError:
        return True
    return False


def nothing_is_left(up, *engines, takes=4):
    status = up.wait_end(takes)
    wait_for(lambda: not any(e.left() for e in engines), "the engines' end")
    return status


@pytest.mark.parametrize("kind, by", (("vllm", "port"), ("openai", "socket")))
def test_engine_is_started_and_serves(cluster, kind, by):
    engine = Started(cluster, "e", by, kind=kind)
    up = up_with(cluster, engine)
    assert "ready: started here, model mock-model" in up.text()
    got = sse.call(up.target, sse.CHAT, sse.chat("hi len=5;", stream=True))
    assert got.done and not got.error
    up.proc.send(signal.SIGTERM)
    assert nothing_is_left(up, engine) == 0


def test_stream_goes_on_when_its_engine_is_killed(cluster):
    engines = [Started(cluster, n, engine=GATE) for n in ("e1", "e2")]
    up = up_with(cluster, *engines)
    response = begin(up)
    pool, = json.loads(clients.curl(f"{up.base}/status")[2])["pools"]
    serving, = [r["id"] for r in pool["replicas"] if r["in_flight"]]
    if serving != list(up.engines())[0]:
        engines.reverse()
    os.kill(engines[0].front(), signal.SIGKILL)
    os.kill(engines[1].front(), signal.SIGUSR1)
    finish(response)
    wait_for(lambda: len(engines[0].runs()) == 2, "another start", takes=4)
    wait_for(lambda: up.engines()[serving]["ready"], "it to serve", takes=6)
    up.proc.send(signal.SIGTERM)
    assert nothing_is_left(up, *engines) == 0


def test_stream_finishes_at_ctrl_c(cluster):
    engine = Started(cluster, "e", engine=GATE)
    up = up_with(cluster, engine)
    response = begin(up)
    up.proc.send(signal.SIGINT)
    up.wait_said("Ending: ")
    os.kill(engine.front(), signal.SIGUSR1)
    finish(response)
    assert nothing_is_left(up, engine) == 0


def test_nothing_is_left_5_s_behind_the_drain_of_a_killed_launcher(cluster):
    """Nor of an engine that ignores SIGTERM, under a stream that does not
    end."""
    engine = Started(cluster, "e", engine=GATE, deaf=True)
    up = up_with(cluster, engine, options=("--drain-timeout", "1s"))
    begin(up)
    up.proc.send(signal.SIGKILL)
    assert nothing_is_left(up, engine, takes=1 + 5) == -signal.SIGKILL


def test_next_start_waits_for_what_a_killed_launcher_has_left(cluster):
    # The next start removes the directory where nginx had its pid.
    cluster.allowed.append(r"unlink\(\) .*nginx.pid")
    engine = Started(cluster, "e", deaf=True)
    up = up_with(cluster, engine)
    first = engine.front()
    up.proc.kill()
    wait_for(lambda: is_refused(up), "the port to be free")
    up.start()
    up.wait_said("waits: an earlier engine has not ended yet", takes=4)
    assert lives(first) and len(engine.runs()) == 1
    wait_for(lambda: len(engine.runs()) == 2, "the next engine", takes=8)
    assert not lives(first)


def test_two_gateways_start_the_same_command(cluster):
    engines = [Started(cluster, n) for n in ("e1", "e2")]
    for i, engine in enumerate(engines):
        up_with(cluster, engine, name=f"up{i}")


def test_engine_that_cannot_start_is_told(cluster):
    up = Launcher(cluster, "exec:/bin/sh -c 'echo no such model; exit 3' "
                           "{port}")
    _kept.append(up.kept())
    up.start()
    up.wait_said("engine ended (exit status 3)", takes=4)
    assert "its output is in" in up.text()
    log = next(up.dir.glob("*-adapter.log"))
    assert "engine: no such model" in log.read_text()
