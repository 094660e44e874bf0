"""A sharded replica: slices of a model, shards, orchestrators, and one process
with the whole model to compare with.

    s = Shards(cluster, layers=8)
    s.shards("0-3", "4-7")              # s["0-3"].kill(), .freeze(), .restart()
    o = s.orchestrator("o1")            # READY when this returns
    llama.ask(o, llama.request(body)).whole().says() == s.undisturbed(body)

Every process has an agent of its own, as in production; shards and
orchestrators are cluster.Replica.
"""

import os
import pathlib
import subprocess

from ..fleet import words
from ..model import gguf, llama
from ..proc import place
from ..proc.preload import llama_calls
from ..proc.wait import QUICK, wait_for

LOGITS = -1         # in place of a layer
LOAD_S = 10         # a tiny model, beside others that load theirs


def cut(model, out, *words):
    """Runs llmgw-slice; the files in its folder: {"0-3": path, "head": path}.
    """
    model, out = pathlib.Path(model), pathlib.Path(out)
    done = subprocess.run(
        [place.binary("llmgw-slice"), str(model), "--out", str(out),
         *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return {path.name.removeprefix(model.stem + ".").removesuffix(".gguf"):
            path for path in out.glob(f"{model.stem}.*.gguf")}


def until(call, n, takes=QUICK):
    """Waits until a Call of llama.py has so many ids; whether it goes on."""
    wait_for(lambda: len(call.answer.ids) >= n or not call.thread.is_alive(),
             f"{n} tokens", takes)
    return call.thread.is_alive()


class Shards:
    """model: options of gguf.write(), or the path of a file as `file`; slices
    are written beside it, once.

    hashed: what each process computes is kept, for rows()."""

    def __init__(self, cluster, file=None, norms=True, hashed=False, **model):
        self.cluster, self.norms, self.hashed = cluster, norms, hashed
        self.model = pathlib.Path(file or cluster.dir / "tiny.gguf")
        if not file:
            gguf.write(self.model, **{"layers": 8, **model})
        self.files = {}             # "0-3" or "head" -> path
        self.members = {}           # id -> Replica
        self._single = None

    # files

    def file(self, part):
        """Of a slice "0-3" or of the "head"."""
        self.cut(part)
        return self.files[part]

    def cut(self, *parts):
        """Writes those that are not there, in one run of llmgw-slice."""
        folder = self.model.parent / "slices"
        for path in folder.glob(f"{self.model.stem}.*.gguf"):
            self.files[path.name.split(".")[-2]] = path
        new = [part for part in parts if part not in self.files]
        layers = ",".join(part for part in new if part != "head")
        if new:
            self.files |= cut(self.model, folder,
                              *(["--head"] if "head" in new else []),
                              *(["--layers", layers] if layers else []),
                              *([] if self.norms else ["--no-norms"]))

    # processes

    def __getitem__(self, id):
        return self.members[id]

    def _preload(self, made, layer=None, slow_ms=0):
        """t/preload/llama_calls.c, if anything is asked of it."""
        if self.hashed or slow_ms:
            made.env = {"LD_PRELOAD": llama_calls(self.cluster.dir),
                        "SLOW_DECODE": str(slow_ms)}
        if self.hashed:
            made.env["HASHED_ROWS"] = str(self.cluster.dir / f"{made.id}.rows")
        if self.hashed and layer is not None:
            made.env["HASHED_LAYER"] = str(layer)
        if place.FLAVOUR == "asan" and made.env:
            made.env["ASAN_OPTIONS"] = ":".join(filter(None, [
                os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))

    def rows(self, *ids):
        """What entered the layers of these processes, and the logits that left
        them: {(layer, position, hash)}; layer LOGITS: logits."""
        lines = [line for id in ids
                 for path in self.cluster.dir.glob(f"{id}.rows.*")
                 for line in path.read_text().splitlines()]
        return {(int(layer), int(position), value)
                for layer, position, value in map(str.split, lines)}

    def shard(self, part, id=None, agent_options=None, start=True, slow_ms=0,
              **options):
        """The process of a slice; its id is s0-3 unless it is said.  slow_ms:
        each step sleeps so long first."""
        id = id or f"s{part}"
        made = self.members[id] = self.cluster.pair(
            id, start=False, shard=self.file(part), threads=1,
            agent_options={"role": "shard", **(agent_options or {})},
            **{"context_tokens": 1024, **options})
        self._preload(made, part.partition("-")[0], slow_ms)
        if start:
            made.agent.start()
            made.start()
        return made

    def shards(self, *parts, **options):
        """Those of these parts; waits until they are ready."""
        self.cut(*parts, "head")
        made = [self.shard(part, **options) for part in parts]
        self.wait_ready(*made)
        return made

    def orchestrator(self, id="o1", agent_options=None, wait=True, **options):
        """Its agent writes the segment that it reads."""
        path = str(self.cluster.dir / f"{id}.members")
        made = self.cluster.pair(
            id, orchestrate=self.file("head"), members=path,
            agent_options={"members": path, **(agent_options or {})},
            **{"context_tokens": 1024, **options})
        self.members[id] = made
        if wait:
            self.wait_ready(made)
        return made

    def single(self, id="single", start=True, **options):
        """The whole model in one process, with no agent."""
        options = {"engine": "llama", "model": self.model, "threads": 1,
                   "context_tokens": 1024, **options}
        made = self.cluster.replica(id, start=False, **options)
        self._preload(made)
        if start:
            made.start()
            wait_for(lambda: words.CONTINUE_HERE in made.proc.text(),
                     f"{id} to load", takes=LOAD_S)
        return made

    def undisturbed(self, body):
        """What the whole model says to a request."""
        self._single = self._single or self.single("undisturbed")
        return llama.ask(self._single, llama.request(body)).whole().says()

    def gateway(self, **options):
        """nginx with OpenAI's front over all orchestrators that are ready,
        and its agent, which must be the first that was made."""
        return self.cluster.nginx(**{"openai": True, **options})

    # facts

    @staticmethod
    def service(member):
        """READY, STARTING, ... as its own agent has it."""
        return member.agent.table().get(member.id, {}).get("service")

    def wait_ready(self, *members):
        def is_ready(one):
            assert one.proc.alive(), one.proc.text()
            return self.service(one) == "READY"
        for one in members:
            wait_for(lambda: is_ready(one), f"{one.id} to be ready",
                     takes=LOAD_S)

    def restart(self, id):
        """The process of a dead member again; its agent ran on."""
        wait_for(lambda: self.service(self.members[id]) != "READY",
                 f"{id} to be gone")
        self.members[id].start()
        self.wait_ready(self.members[id])
        return self.members[id]
