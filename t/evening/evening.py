#!/usr/bin/python3
"""What README.md says of the first evening, carried out: evening.py ROOT.

In the namespaces and the root directory that fresh.sh has prepared.  Says
PASSED or FAILED of each fact.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parents[1]
sys.path.insert(0, str(SOURCES / "t"))
from llmgw.fleet import supervised  # noqa: E402
from llmgw.pages.facts import Facts  # noqa: E402
from llmgw.pages.readme import MODEL, commands, tokens  # noqa: E402
from llmgw.proc import wait  # noqa: E402

LIMIT_S = 60        # for the first token, from the first key that is pressed
ENGINES = {"gpu1": "127.0.1.1:8000", "gpu2": "127.0.1.2:8000"}
fact = Facts()


class Person:
    """Somebody at a terminal of that machine, with a shell as at a login."""

    def __init__(self, root):
        self.argv = ["env", "-i", "HOME=/home/somebody", "USER=somebody",
                     "LANG=C.UTF-8", "TERM=dumb", "/usr/sbin/chroot",
                     "--userspec=somebody:somebody", root, "/bin/bash", "-lc"]

    def types(self, command, **more):
        return subprocess.Popen([*self.argv, f"cd ~/llmgw && {command}"],
                                text=True, start_new_session=True, **more)


def engine(name, address):
    """A double of vLLM; its process."""
    process = subprocess.Popen(
        ["/usr/bin/python3", str(SOURCES / "t/llmgw/engine_mock.py"),
         "--kind", "vllm", "--listen", address, "--model", MODEL])
    wait.wait_for(lambda: ask(address, "/health") is not None,
                  f"{name} to listen")
    return process


def ask(address, path, body=None):
    try:
        with urllib.request.urlopen(f"http://{address}{path}", body) as got:
            return got.read()
    except OSError:
        return None


def hold(tokens):
    for address in ENGINES.values():
        ask(address, "/mock/faults", json.dumps({"gate": tokens}).encode())


def serving():
    """The names of the engines that have a stream."""
    return [name for name, address in ENGINES.items()
            if json.loads(ask(address, "/mock/state") or b"{}").get("running")]


class Output:
    """What a command says, line by line, in a file that can be read again."""

    def __init__(self, name):
        self.path = pathlib.Path("/tmp") / f"evening-{os.getpid()}-{name}"

    def __enter__(self):
        self.file = open(self.path, "w")
        return self

    def __exit__(self, *_):
        self.file.close()
        self.path.unlink()

    def text(self):
        return self.path.read_text()


def first_token(person, engines):
    install, up, curl = commands()
    began = time.monotonic()
    with Output("install") as said:
        done = person.types(install, stdin=subprocess.PIPE, stdout=said.file,
                            stderr=subprocess.STDOUT)
        done.communicate("y\n", timeout=LIMIT_S)
        if not fact(done.returncode == 0, install):
            return print(said.text())
    print(f"{time.monotonic() - began:.1f} s", flush=True)

    with Output("up") as said, Output("curl") as answer:
        gateway = person.types(up, stdout=said.file, stderr=subprocess.STDOUT)
        try:
            told = wait.within(
                LIMIT_S, lambda: "curl " in said.text()
                or gateway.poll() is not None, "llmgw up to be ready")
            fact(told and gateway.poll() is None, up)
            client = person.types(curl, stdout=answer.file)
            wait.within(LIMIT_S, lambda: tokens(answer.text())
                        or client.poll() is not None, "a token")
            seconds = time.monotonic() - began
            fact(tokens(answer.text()), curl)
            fact(seconds <= LIMIT_S, f"first token after {seconds:.1f} s, of"
                 f" {LIMIT_S}")
            wait.within(LIMIT_S, lambda: said.text().count(" ready: ") == 2,
                        "both engines to be ready")
            engine_dies(engines, client, answer)
            stops(gateway)
        finally:
            print(said.text(), answer.text(), sep="\n", flush=True)


def engine_dies(engines, client, answer):
    [name] = serving()
    before = len(tokens(answer.text()))
    os.kill(engines[name].pid, signal.SIGKILL)
    ENGINES.pop(name)
    hold(-1)
    status = client.wait(timeout=LIMIT_S)
    got = answer.text()
    fact(status == 0 and len(tokens(got)) > before and "error" not in got
         and got.rstrip().endswith("data: [DONE]"),
         f"{name} is killed, and the answer goes on")


def stops(gateway):
    """Ctrl-C, at its terminal: to all processes of it."""
    os.killpg(gateway.pid, signal.SIGINT)
    fact(gateway.wait(timeout=LIMIT_S) == 0, "Ctrl-C ends it")
    left = [words for words in map(supervised.cmdline, supervised.pids())
            if words and "llmgw" in words[0]]
    fact(not left, f"nothing of it is left {left or ''}")


def main():
    person = Person(sys.argv[1])
    engines = {name: engine(name, address)
               for name, address in ENGINES.items()}
    hold(3)
    first_token(person, engines)
    return fact.end()


if __name__ == "__main__":
    sys.exit(main())
