#!/usr/bin/env python3
"""A demonstration: one model in four processes, each with half of its layers.

It streams an answer, kills a shard that computes for it, shows that the text
goes on, and compares it with the answer of an undisturbed request.  Then the
cluster runs until Ctrl-C; with --once it ends by itself, and its exit status
says whether all went as expected.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import demo  # noqa: E402
import demo_llama  # noqa: E402
from demo import Surprise, paint, step  # noqa: E402
from llmgw.model import llama  # noqa: E402
from llmgw.proc import place  # noqa: E402
from llmgw.proc.wait import wait_for  # noqa: E402
from llmgw.shards.replica import Shards  # noqa: E402

PROMPT = "Four readers know a book together, and one of them falls asleep."
SHARDS = {"s1": "0-3", "s2": "0-3", "s3": "4-7", "s4": "4-7"}
NEAR = "s1", "s3"       # in the orchestrator's zone, so they are asked first
VICTIM, HEIR = "s3", "s4"


def body(max_tokens=300):
    return {"model": "tiny-random", "seed": 1, "stream": True,
            "max_tokens": max_tokens, "ignore_eos": True,
            "messages": [{"role": "user", "content": PROMPT}]}


def coverage(cluster):
    out = cluster.gateway.ctl("shards")
    if out.returncode != 0:
        raise Surprise(out.stderr)
    for line in out.stdout.rstrip().splitlines():
        print("  " + line)


def start(cluster):
    cluster.agent("gw", "gateway")
    shards = Shards(cluster)
    shards.cut(*SHARDS.values(), "head")
    shards.wait_ready(*[
        shards.shard(part, id, slow_ms=1,
                     zone="here" if id in NEAR else "there")
        for id, part in SHARDS.items()])
    shards.orchestrator("o1", zone="here")
    nginx = shards.gateway()
    wait_for(lambda: nginx.routable() == ["o1"], "the orchestrator", takes=60)
    coverage(cluster)
    return shards, nginx


def took_over(shards):
    """What the orchestrator says of it: its own lines, without the date."""
    lines = [line.partition(" o1: ")[2] for line in
             shards["o1"].proc.text().splitlines() if " stream " in line]
    if not any(f'shard "{HEIR}"' in line for line in lines):
        raise Surprise(f"{HEIR} did not take over")
    print("\n" + "\n".join(f"  {line}" for line in lines))


def show(cluster):
    if not llama.is_built():
        raise Surprise("the engine is not built: run make llama")
    step("Cutting a model of 8 layers in two; four shards have half of it each")
    shards, nginx = start(cluster)

    step("An answer over OpenAI's API; in its middle, kill -9 of a shard")

    def at_token(count):
        if count == 20:
            shards[VICTIM].kill()
            print(paint("31", f" [kill -9 {VICTIM}] "), end="")

    text = demo_llama.stream(nginx, body(), at_token)
    took_over(shards)
    coverage(cluster)

    step("The same request again, undisturbed")
    if demo_llama.stream(nginx, body()) != text:
        raise Surprise("the two answers differ")
    print(f"\n  Both have the same {len(text)} characters, though"
          f" {VICTIM} died while it computed the first.")
    shards.restart(VICTIM)
    return shards, nginx


def explain(cluster, shards, nginx):
    step("The cluster runs until Ctrl-C.  Try in another terminal:")
    print(f"""
  curl -sN http://{nginx.api}/v1/chat/completions \\
      -H 'Content-Type: application/json' \\
      -d '{json.dumps(body(100))}'
  {place.binary('llmgwctl')} -s {cluster.gateway.control} shards
  kill -9 {shards['s1'].proc.pid}      # s1

  Logs and configuration: {cluster.dir}""", flush=True)


def run(cluster, once):
    shards, nginx = show(cluster)
    if not once:
        explain(cluster, shards, nginx)
        demo.stay()


if __name__ == "__main__":
    sys.exit(demo.main(run, __doc__))
