"""An adapter that starts its engine (`--engine-command`), and the processes of
both: engine_tree.py plays the engine."""

import contextlib
import json
import os
import shlex
import signal
import time

from ..proc import place
from ..proc.wait import contention, wait_for
from .supervised import cmdline, pids, stat

KEEPER = "llmgw-keeper"


def lives(pid):
    return (stat(pid) or "X")[0] not in "ZX"


def tree_command(log, kind="vllm", shape="vllm", where=(), engine=(), more=(),
                 workers=2, deaf=False):
    """The words that start engine_tree.py; where: it listens."""
    return [place.PYTHON, str(place.HARNESS / "engine_tree.py"), "--shape",
            shape, "--log", str(log), "--workers", str(workers), *more,
            *(["--deaf"] if deaf else []), "--", "--kind", kind, *where,
            *engine]


def runs_of(log):
    """Of each start of the engine: name -> pid."""
    found = {}
    for line in log.read_text().splitlines():
        row = json.loads(line)
        found.setdefault(row["run"], {})[row["name"]] = row["pid"]
    return list(found.values())


WHERE = {"port": ["--listen", "127.0.0.1:{port}"],
         "socket": ["--uds", "{socket}"]}


class Launched:
    """options: of the adapter; engine: arguments of engine_mock.py.  The rest
    is engine_tree.py's."""

    def __init__(self, cluster, id, kind="vllm", shape="vllm", need=0,
                 budget=None, workers=2, deaf=False, by="port", engine=(),
                 start=True, env=None, **options):
        self.cluster, self.id = cluster, id
        self.log = cluster.dir / f"tree-{id}.jsonl"
        self.log.touch()
        options.setdefault("engine_stop_timeout", "2s")     # within ENDS
        more = ["--budget", str(budget), "--need", str(need)] if budget else []
        command = tree_command(self.log, kind, shape, WHERE[by], engine, more,
                               workers, deaf)
        self.pair = cluster.pair(id, start=False, engine=kind,
                                 engine_command=shlex.join(command), **options)
        self.pair.is_simulated = False
        self.pair.env = {"XDG_RUNTIME_DIR": str(cluster.dir),
                         "RUNTIME_DIRECTORY": "", **(env or {})}
        self.agent = self.pair.agent
        if start:
            self.agent.start()
            self.pair.start()

    # its processes

    def runs(self):
        return runs_of(self.log)

    def keepers(self):
        """The adapter's, the outer one first."""
        stats = {p: stat(p) for p in pids() if cmdline(p)[:1] == [KEEPER]}
        found = {p: s[1] for p, s in stats.items() if s and s[0] not in "ZX"}
        outer = [p for p in found if found[p] == self.pair.proc.pid]
        return outer + [p for p in found if found[p] in outer]

    def tree(self, names=5 + 2):
        """All processes of the engine that runs, as soon as it is whole."""
        def whole():
            keepers = self.keepers()
            run = self.runs()[-1] if self.runs() else {}
            everyone = {**dict(zip(("keeper", "keeper2"), keepers)), **run}
            return len(everyone) == names and everyone
        return wait_for(whole, f"all processes of {self.id}", takes=4)

    def kill(self, name, tree):
        """adapter, agent, or a name of the tree."""
        if name in ("adapter", "agent"):
            (self.pair if name == "adapter" else self.agent).proc.send(
                signal.SIGKILL)
        elif lives(tree[name]):
            with contextlib.suppress(ProcessLookupError):   # it ends just now
                os.kill(tree[name], signal.SIGKILL)

    def left(self, tree):
        return {name: pid for name, pid in tree.items() if lives(pid)}

    def gone(self, tree, without="what was killed"):
        """Waits for the end of all of them.  Seconds that it took, without
        those in which the machine let nobody run."""
        began, lost = time.monotonic(), contention.total
        wait_for(lambda: not self.left(tree), f"the end of {self.id}'s engine "
                 f"without {without}")
        return time.monotonic() - began - (contention.lost() - lost)

    # what is told of it

    def member(self):
        return self.agent.table().get(self.id, {})

    def ready(self, takes=6):
        wait_for(lambda: self.member().get("service") == "READY",
                 f"{self.id} to be READY", takes=takes)
        return self

    def text(self):
        return self.pair.proc.text()
