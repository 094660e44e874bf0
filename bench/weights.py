#!/usr/bin/env python3
"""`make bench-weights`: what a weights service saves of memory and of time.

A random model of about 200 MB and engines `llama`.  The first table is what the
kernel counts, the second how long an engine takes until it serves, by where its
weights come from.  The file is in the page cache: a disk would make the first
two rows longer.
"""

import argparse
import contextlib
import pathlib
import re
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "t"))
from llmgw.fleet.cluster import Cluster  # noqa: E402
from llmgw.model import gguf, llama  # noqa: E402
from llmgw.model.weights import WeightsService  # noqa: E402
from llmgw.proc import memory  # noqa: E402
from llmgw.proc.ports import Ports  # noqa: E402
from llmgw.proc.wait import wait_for  # noqa: E402
from llmgw.standby.group import Group  # noqa: E402

MB = 1 << 20


def write_model(path, words):
    """One as wide as small models are; with so many words more."""
    gguf.EMBED, gguf.FFN, gguf.HEADS, gguf.HEADS_KV = 1024, 2816, 16, 8
    gguf.write(path, layers=10, more=words)


@contextlib.contextmanager
def scene(model):
    """A cluster, its weights service, and the options of an engine."""
    cluster = Cluster(Ports(), "bench")
    service = WeightsService(cluster)
    try:
        yield cluster, service, {"engine": "llama", "model": model,
                                 "context_tokens": 1024, "threads": 1,
                                 "weights": service.path}
    except BaseException:
        print(cluster.tails(), file=sys.stderr)
        raise
    finally:
        wrong = cluster.close()
        cluster.remove()
    assert not wrong, wrong


def two(cluster, options, **more):
    """a serves, b stands by."""
    return Group(cluster, agents=False, each={"b": {"weights_role": "ro"}},
                 **options, **more)


def say(replica):
    """Seconds until the first token."""
    began = time.monotonic()
    answer = llama.ask(replica, llama.infer("Once upon a time", 1))
    took = time.monotonic() - began
    assert answer.code == "OK", answer.details
    return took


# memory

def held(before, engines):
    """MB: of all processes, then of each engine the shared and its own."""
    return ((memory.shmem() - before) / MB,
            [memory.pss_shmem(e.proc.pid) / MB for e in engines],
            [memory.anonymous(e.proc.pid) / MB for e in engines])


def mapped_memory(model):
    got = {}
    with scene(model) as (cluster, service, options):
        before = memory.shmem()
        a, b = group = two(cluster, options)
        group.service.start()
        a.start().wait("ACTIVE")
        say(a)
        got["one engine serves"] = held(before, [a])
        b.start().wait("STANDBY")
        got["a second one sleeps, mapped"] = held(before, [a, b])
        a.kill()
        b.wait("ACTIVE")
        say(b)
        got["the first was killed, the second is awake"] = held(before, [b])
        b.kill()
        wait_for(lambda: not service.state()["clients"], "its end")
        got["no engine is left, the service is"] = held(before, [])
    return got


def unmapped_memory(model):
    with scene(model) as (cluster, service, options):
        before = memory.shmem()
        a, b = two(cluster, options, sleep="unmapped").start()
        say(a)
        return {"one serves, a second one sleeps, unmapped":
                held(before, [a, b])}


def measure_memory(model, rounds):
    """Of the machine's memory the median, since it is not ours alone."""
    size = pathlib.Path(model).stat().st_size
    rows = {}
    for _ in range(rounds):
        for name, value in {**mapped_memory(model),
                            **unmapped_memory(model)}.items():
            rows.setdefault(name, []).append(value)
    print(f"\nThe file has {size / MB:.1f} MB.\n\n"
          "| | Shmem of the machine, MB more | Pss_Shmem of each, MB | "
          "anonymous memory of each, MB |\n|---|---|---|---|")
    for name, values in rows.items():
        shmem = statistics.median(v[0] for v in values)
        each = [", ".join(f"{x:.1f}" for x in column) or "-"
                for column in values[-1][1:]]
        print(f"| {name} | {shmem:.1f} | {each[0]} | {each[1]} |")


# time

def begun(replica):
    """Seconds from the start of a process until it is ready."""
    began = time.time()
    replica.start()
    line = wait_for(lambda: re.search(r"^(\S+)Z info .*continue here",
                                      replica.proc.text(), re.M), takes=60)
    stamp = time.strptime(line[1][:19], "%Y-%m-%dT%H:%M:%S")
    return (time.mktime(stamp) - time.timezone + float(line[1][19:])) - began


def cold_and_warm(model):
    """A plain file, the first of a service, and a further one."""
    got = {}
    with scene(model) as (cluster, service, options):
        for name, sockets in (
                ("the file, without a service", None),
                ("the file, as the first of a service", service.path),
                ("the service", service.path)):
            one = cluster.replica(name.replace(" ", "-").replace(",", ""),
                                  start=False,
                                  **{**options, "weights": sockets})
            got[name] = begun(one), say(one)
            one.kill()
    return got


def woken(model, sleep):
    with scene(model) as (cluster, service, options):
        group = two(cluster, options, sleep=sleep).start()
        a, b = group
        a.kill()
        b.wait("ACTIVE")
        at = {s.state: s.at for s in b.steps()}
        return at["ACTIVE"] - at["WAKING"], say(b)


def measure_times(model, rounds):
    rows = {}
    for _ in range(rounds):
        for name, value in cold_and_warm(model).items():
            rows.setdefault(name, []).append(value)
        for sleep in "mapped", "unmapped":
            rows.setdefault(f"sleep, {sleep}", []).append(woken(model, sleep))
    print("\n| weights from | until it serves, ms | first token, ms |\n"
          "|---|---|---|")
    for name, values in rows.items():
        cells = [f"{statistics.median(v):.0f} ({min(v):.0f}-{max(v):.0f})"
                 for v in ([1000 * x for x in column]
                           for column in zip(*values))]
        print(f"| {name} | {cells[0]} | {cells[1]} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--words", type=int, default=32000,
                        help="of the model's vocabulary")
    args = parser.parse_args()
    if not llama.is_built():
        sys.exit(llama.MISSING)
    path = pathlib.Path("build") / f"weights-{args.words}.gguf"
    if not path.exists():
        write_model(path, args.words)
    measure_memory(str(path.absolute()), args.rounds)
    measure_times(str(path.absolute()), args.rounds)


main()
