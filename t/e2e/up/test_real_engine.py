"""`llmgw up` before llama.cpp's own server, as a first user types it.

A long form: `make test-llama-server LLAMA_SERVER=PATH`.
"""

import os
import shutil
import signal
import subprocess

import pytest

from llmgw.engine.real import LlamaServer
from llmgw.fleet.launcher import Launcher, curl_of
from llmgw.fleet.supervised import cmdline, pids
from llmgw.model import gguf
from llmgw.proc import place
from llmgw.proc.wait import wait_for

pytestmark = [pytest.mark.soak, pytest.mark.skipif(
    not place.LLAMA_SERVER, reason="needs LLAMA_SERVER, llama.cpp's server")]

# Seconds that a real server may take for its model.
LOADS = 20


def gets_tokens(up):
    said = subprocess.run(curl_of(up.text()), shell=True, capture_output=True,
                          text=True, timeout=60)
    assert said.stdout.startswith("data: {"), said
    assert '"content":' in said.stdout, said
    assert said.stdout.endswith("data: [DONE]\n\n"), said


def is_ready(up):
    engine, = up.engines().values()
    return engine["ready"]


def started(up):
    up.start()
    up.wait_said("Ready.", takes=LOADS)
    return up


def test_server_that_runs_is_found_lost_and_found_again(cluster):
    server = LlamaServer(cluster, "e1").start()
    up = started(Launcher(cluster, server.url))
    assert "ready: llamacpp " in up.text() and "context 2048" in up.text()
    assert "--metrics" not in up.text()
    gets_tokens(up)
    server.proc.kill()
    up.wait_said("waiting: nothing listens there yet", takes=4)
    server.start()
    wait_for(lambda: is_ready(up), "the server again", takes=LOADS)
    gets_tokens(up)
    assert up.end() == 0


def test_server_without_metrics_is_told_so(cluster):
    server = LlamaServer(cluster, "e1")
    server.argv.remove("--metrics")
    server.start()
    up = started(Launcher(cluster, server.url))
    assert "start it with --metrics" in up.text()
    assert up.end() == 0


def test_server_that_is_started_here_comes_again(cluster):
    model = cluster.dir / "tiny.gguf"
    gguf.write(model, blank=False)
    up = Launcher(cluster, f"exec:{place.LLAMA_SERVER} -m {model} --port "
                           "{port} --metrics --threads 1 --parallel 4 "
                           "--ctx-size 8192")

    def server():
        return [p for p in pids() if cmdline(p)[:1] == [place.LLAMA_SERVER]
                and str(model) in cmdline(p)]
    try:
        started(up)
        gets_tokens(up)
        first, = server()
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: server() not in ([], [first]), "another", takes=4)
        wait_for(lambda: is_ready(up), "it to serve", takes=LOADS)
        gets_tokens(up)
        assert up.end(takes=6) == 0 and server() == []
    finally:
        shutil.rmtree(up.kept(), ignore_errors=True)
