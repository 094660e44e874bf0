"""The lines of README.md's first evening, but for the packages: t/evening has
those."""

import os
import shlex
import signal
import subprocess

from llmgw.pages.readme import MODEL, commands, tokens
from llmgw.proc import place
from llmgw.proc.wait import PATIENCE, wait_for


def test_first_evening(cluster):
    _, up, curl = commands()
    engines = {f"gpu{i}": cluster.engine(f"gpu{i}", model=MODEL)
               for i in (1, 2)}
    for name, engine in engines.items():
        assert f"http://{name}:8000" in up
        up = up.replace(f"http://{name}:8000", engine.url)
    address = f"127.0.0.1:{cluster.ports.take()}"
    env = {"PATH": f"{place.BUILD}:{os.environ['PATH']}"}
    gateway = cluster.run("up", [
        *shlex.split(up), "--listen", address, "--dir", str(cluster.dir / "up"),
        "--nginx", place.NGINX, "--module", place.MODULE], env=env)
    wait_for(lambda: gateway.text().count(" ready: ") == 2
             and f"http://{address}/v1" in gateway.text(),
             "llmgw up to be ready", takes=6)

    cluster.hold(3)
    assert "127.0.0.1:8080" in curl
    curl = curl.replace("127.0.0.1:8080", address)
    answer = cluster.dir / "answer"
    with open(answer, "w") as out:
        asked = subprocess.Popen(["/bin/sh", "-c", f"exec {curl}"], stdout=out,
                                 stderr=subprocess.DEVNULL)
    wait_for(lambda: tokens(answer.read_text()), "a token")
    before = len(tokens(answer.read_text()))
    [serving] = [e for e in engines.values() if e.state()["running"]]
    serving.kill()
    cluster.let_go()
    assert asked.wait(timeout=PATIENCE) == 0
    assert len(tokens(answer.read_text())) > before
    assert answer.read_text().rstrip().endswith("data: [DONE]")

    gateway.send(signal.SIGINT)
    wait_for(lambda: not gateway.alive(), "llmgw up to end", takes=6)
