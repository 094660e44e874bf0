"""Commands as documents show them, run here: with paths and ports of a test."""

import os
import re
import shlex
import subprocess

from ..model import gguf, llama
from ..proc import place

LOCAL = re.compile(r"(?<=[\s=,])127\.0\.0\.1:(\d+)")

# Nobody is there from before, so none is waited for.
FRESH = {"llmgw-lock": ["--reconnect-window=10ms"],
         "llmgw-weights": ["--adopt-window=0"]}


def split(text):
    """The commands of a code block, each in one line."""
    return [line for line in
            re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]


class Commands:
    """paths: what stands in the commands -> where it is here.  Ports of
    127.0.0.1 are others here, the same one for the same.

    Without libllama the engine is simulated, and its weights are any bytes.
    With it, two engines on few processors would wait for each other's threads.
    """

    def __init__(self, cluster, paths, model):
        self.cluster = cluster
        self.paths = dict(paths)
        self.ports = {}
        self.env = {"PATH": f"{place.BUILD}:{os.environ['PATH']}"}
        file = cluster.dir / "chat.gguf"
        gguf.write(file)
        self.model = model
        self.paths[model] = str(file)

    def here(self, text):
        """The command with what is here in place of what it shows."""
        engine = ("--engine=llama --threads=1" if llama.is_built()
                  else "--engine=sim")
        file = "--model=" if llama.is_built() else "--weights-file="
        text = re.sub(rf"--engine[ =]llama(\s+)--model[ =]{self.model}",
                      rf"{engine}\1{file}{self.model}", text)
        text = LOCAL.sub(lambda m: f"127.0.0.1:{self.port(m[1])}", text)
        for shown, real in self.paths.items():
            text = text.replace(shown, real)
        return text

    def port(self, shown):
        if shown not in self.ports:
            self.ports[shown] = self.cluster.ports.take()
        return self.ports[shown]

    def start(self, name, text):
        """A daemon."""
        argv = shlex.split(self.here(text))
        argv += FRESH.get(argv[0], [])
        return self.cluster.run(name, argv, env=self.env)

    def run(self, text):
        out = subprocess.run(shlex.split(self.here(text)), text=True,
                             env={**os.environ, **self.env}, timeout=60,
                             capture_output=True)
        assert out.returncode == 0, (text, out.stdout, out.stderr)
        return out.stdout
