"""What BLIS gives: its traces, runs and results (t/data/blis)."""

import functools
import json
import pathlib
import subprocess
import tarfile

from llmgw.proc import place

DATA = place.ROOT / "t/data/blis"
SIM = place.binary("llmgw-sim")

# Of disaggregated runs BLIS averages over requests that timed out, too.
FAKE = {f"e2e_{what}_ms" for what in ("mean", "p90", "p95", "p99")}


def words(flags):
    """[(flag, value or None)] of a command line."""
    out = []
    for word in flags:
        if word.startswith("--"):
            out.append((word, None))
        else:
            out[-1] = (out[-1][0], word)
    return out


class Blis:
    def __init__(self, folder):
        for name in ("blis", "drawn"):
            with tarfile.open(DATA / f"{name}.tar.xz") as archive:
                archive.extractall(folder)
        self.dir = pathlib.Path(folder) / "blis"
        first, _, *rows = (self.dir / "runs.tsv").read_text().splitlines()
        self.common = words(first.split("says otherwise: ")[1].split())
        self.runs = {}
        for row in rows:
            name, trace, flags = row.split("\t")
            self.runs[name] = trace, self.flags(flags)

    def flags(self, text):
        """The common flags, changed as a row of runs.tsv says."""
        given, _, without = text.partition("(without ")
        flags = dict(self.common) | dict(words(given.split()))
        for flag in without.rstrip(")").split():
            del flags[flag]
        if flags.get("--dispatch-order") == "fifo":
            flags["--dispatch-order"] = "priority"      # BLIS's mistake
        return [w for pair in flags.items() for w in pair if w is not None]

    def command(self, name, *more):
        """replay's command line; what comes later in it wins."""
        trace, flags = self.runs[name]
        return [SIM, "replay", "--trace-header", f"{trace}.yaml",
                "--trace-data", f"{trace}.csv", *flags, *map(str, more)]

    def replay(self, name, *more):
        """Its stdout."""
        return subprocess.run(
            self.command(name, *more), cwd=self.dir, check=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def drawn(self):
        """Runs whose traces and flags were drawn: {name: flags}."""
        rows = (self.dir / "../drawn/runs.tsv").read_text().splitlines()
        return {name: flags.split()
                for name, flags in (row.split("\t") for row in rows)}

    def text(self, name, kind="tsv"):
        return (self.dir / "results" / f"{name}.{kind}").read_text()

    @functools.lru_cache(maxsize=4)
    def said(self, name):
        return json.loads(self.text(name, "json"))


def blocks(stdout):
    """What BLIS prints: {instance: metrics block}, and the lines behind."""
    found, rest = {}, stdout
    head = "=== Simulation Metrics ===\n"
    while rest.startswith(head):
        block, end = json.JSONDecoder().raw_decode(rest, len(head))
        found[block["instance_id"]] = block
        rest = rest[end:].lstrip("\n")
    return found, rest.splitlines()
