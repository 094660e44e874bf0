"""bench/micro/*.c: one C file each over core and proto, pinned to one
processor, always with -O2."""

import os
import pathlib
import re
import subprocess
import tempfile

from . import machine
from .machine import ROOT, Fail

FLAGS = ["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror",
         "-Wno-unused-parameter", "-D_GNU_SOURCE", "-I.", "-Iagent",
         "-Ibuild/gen", "-Ingx_http_llmgw_module"]
ARCHIVES = ["build/obj/release/libcore.a", "build/obj/release/libreplica.a",
            "build/obj/release/libproto.a"]
LIBS = ["-lprotobuf-c", "-lnghttp2", "-lxxhash", "-lm"]
LIMIT_S = 120
COLUMNS = ("build_ms", "slice_us", "change_ms", "change_slice_us",
           "find_ns", "pick_ns", "breaker_ns", "bounded_ns", "full_ns",
           "open_ns")


def sources():
    return sorted((ROOT / "bench" / "micro").glob("*.c"))


def run_one(source):
    with tempfile.TemporaryDirectory(prefix="llmgw-micro-") as directory:
        binary = pathlib.Path(directory, source.stem)
        made = subprocess.run(
            [*os.environ.get("CC", "gcc").split(), *FLAGS, "-o", str(binary),
             str(source), *ARCHIVES, *LIBS], cwd=ROOT, capture_output=True,
            text=True, timeout=LIMIT_S)
        if made.returncode:
            raise Fail(f"{source.name} does not compile:"
                       f" {made.stderr.strip().splitlines()[0]}")
        out = subprocess.run(
            machine.pinned(str(machine.CPUS[-1]), [binary]), cwd=ROOT,
            capture_output=True, text=True, timeout=LIMIT_S)
        if out.returncode:
            raise Fail(f"{source.name}: {out.stderr.strip()[-100:]}")
        return out.stdout


def ring_rows(text):
    """replicas -> figures, of the table that ring.c prints."""
    rows = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == len(COLUMNS) + 1 and fields[0].isdigit():
            rows[fields[0]] = dict(zip(COLUMNS, map(float, fields[1:])))
    return rows


def run(bench):
    """{"ring": rows, "loop_ns": of its own in them, "ns": {what: ns},
    "fail": {file: why}}"""
    got = {"ring": {}, "loop_ns": 0, "ns": {}, "fail": {}}
    for source in sources():
        text = bench.guard(run_one, source)
        if isinstance(text, dict):
            got["fail"][source.stem] = text["fail"]
            bench.say(f"micro {source.stem}: {text['fail']}")
            continue
        if source.stem == "ring":
            got["ring"] = ring_rows(text)
            got["loop_ns"] = float(re.search(
                r"([\d.]+) of it the loop", text)[1])
        got["ns"].update({what.strip(): float(ns) for what, ns in re.findall(
            r"^(\w+: .*?) +([\d.]+) ns$", text, re.M)})
        bench.say(f"micro {source.stem}: done")
    return got
