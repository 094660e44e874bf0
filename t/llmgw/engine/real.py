"""Real engines in place of the mock: one at ENGINE_URL, or llama.cpp's server,
started by the test on a small random model.

They have no faults to set and no log to read, and say what they like: a test
that wants more is skipped.  What they can do alone, test_llama_server.py does.
"""

import json
import urllib.request

import pytest

from ..model import gguf
from ..proc import place
from ..proc.daemon import Daemon
from ..proc.wait import wait_for

# What a real engine can or need not be told.
IGNORED = {"reasoning", "strict", "sampling_defaults", "model"}

# The server computes the same text whoever is in the batch, and whatever it
# has in its cache (docs/engines.md).
EXACT = ["--flash-attn", "on", "--cache-type-k", "q8_0", "--cache-type-v",
         "q8_0", "--no-repack", "--no-kv-unified"]


def engine(cluster, id, kind, options):
    """A real engine that will do, or this test is skipped."""
    wants = set(options) - IGNORED
    if wants:
        pytest.skip(f"only the mock knows {', '.join(sorted(wants))}")
    if options.get("model", place.ENGINE_MODEL) != place.ENGINE_MODEL:
        pytest.skip(f"the engine's model is {place.ENGINE_MODEL}")
    has = place.ENGINE_KIND if place.ENGINE_URL else "llamacpp"
    if kind not in (None, has):
        pytest.skip(f"the engine is {has}, and not {kind}")
    return RealEngine(id) if place.ENGINE_URL else LlamaServer(cluster, id)


class Faultless:
    def faults(self, **faults):
        if any(value is not None for value in faults.values()):
            self.state()

    def state(self):
        pytest.skip("a real engine has neither faults nor a log to ask for")

    def events(self, *_):
        self.state()


class RealEngine(Faultless):
    """The one at ENGINE_URL."""

    def __init__(self, id):
        self.id, self.kind, self.url = id, place.ENGINE_KIND, place.ENGINE_URL
        self.target = self.url.partition("://")[2].rstrip("/")

    def start(self):
        return self


class LlamaServer(Faultless, Daemon):
    """model: a GGUF file.  args: further options of its."""
    kind = "llamacpp"

    def __init__(self, cluster, id, model=None, slots=8, args=()):
        self.id = id
        self.port = cluster.ports.take()
        self.target = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.target}"
        if model is None:
            model = cluster.dir / "tiny.gguf"
            if not model.exists():
                gguf.write(model, blank=False)
        super().__init__(cluster, f"engine-{id}", [
            place.LLAMA_SERVER, "--model", model, "--alias",
            place.ENGINE_MODEL, "--host", "127.0.0.1", "--port", self.port,
            "--parallel", slots, "--ctx-size", slots * 2048, "--threads", 1,
            "--metrics", "--no-ui", *EXACT, *args])

    def start(self, wait=True):
        super().start()
        if wait:
            wait_for(self._is_ready, f"engine {self.id} to be ready")
        return self

    def _is_ready(self):
        if not self.proc.alive():
            raise AssertionError(self.proc.text())
        try:
            return self.ask("/health") is not None
        except OSError:
            return False

    def ask(self, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        with urllib.request.urlopen(self.url + path, data, 10) as answer:
            text = answer.read().decode()
        return json.loads(text) if text.startswith(("{", "[")) else text

    def metric(self, name):
        for line in self.ask("/metrics").splitlines():
            if line.startswith(f"llamacpp:{name} "):
                return float(line.split()[1])
        raise AssertionError(f"no metric {name}")
