#!/usr/bin/env python3
"""A demonstration: three replicas that run a model, behind OpenAI's API.

It streams an answer, kills the engine that writes it, shows that the text goes
on at another, and compares it with the answer of an undisturbed request.  Then
the cluster runs until Ctrl-C; with --once it ends by itself, and its exit
status says whether all went as expected.

MODEL=FILE.gguf names a model; without it a small random one talks nonsense.
"""

import json
import os
import pathlib
import sys
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import demo  # noqa: E402
from demo import Surprise, paint, step  # noqa: E402
from llmgw.model import gguf, llama  # noqa: E402
from llmgw.proc.wait import wait_for  # noqa: E402

PROMPT = "Why does a gateway forward requests? Tell it as a story."
MODEL = os.environ.get("MODEL")
IDS = ["r1", "r2", "r3"]


def body(file, **more):
    """The random model needs ignore_eos, and is faster."""
    random = {} if MODEL else {"ignore_eos": True}
    return {"model": file.stem, "seed": 1, "stream": True,
            "max_tokens": 1800 if random else 200,
            "messages": [{"role": "user", "content": PROMPT}], **random,
            **more}


def stream(nginx, asked, on_token=None):
    """Prints an answer as it comes; returns its text."""
    request = urllib.request.Request(
        f"http://{nginx.api}/v1/chat/completions", json.dumps(asked).encode(),
        {"Content-Type": "application/json"})
    text, count, done = "", 0, False
    with urllib.request.urlopen(request, timeout=600) as answer:
        for line in map(bytes.strip, answer):
            if not line.startswith(b"data: "):
                continue
            done = line == b"data: [DONE]"
            if done:
                break
            chunk = json.loads(line[6:])
            if "error" in chunk:
                raise Surprise(chunk["error"]["message"])
            said = chunk["choices"][0]["delta"].get("content") or ""
            text, count = text + said, count + 1
            print(said, end="", flush=True)
            if on_token:
                on_token(count)
    print(flush=True)
    if not done:
        raise Surprise("the stream ended without [DONE]")
    return text


def start(cluster, file):
    options = {"engine": "llama", "model": file,
               "threads": max(1, (os.cpu_count() or 1) // len(IDS))}
    cluster.agent("gw", "gateway")
    for id in IDS:
        cluster.pair(id, **options)
    nginx = cluster.nginx(openai=True)
    wait_for(lambda: nginx.routable() == IDS, "the models to load", takes=600)
    demo.members(cluster)
    return nginx


def show(cluster):
    if not llama.is_built():
        raise Surprise("the engine is not built: run make llama")
    file = pathlib.Path(MODEL or cluster.dir / "tiny.gguf")
    if not MODEL:
        gguf.write(file)
    step(f"Starting 3 replicas that load {file.name}, agents and nginx")
    nginx = start(cluster, file.resolve())

    step("An answer over OpenAI's API; in its middle, kill -9 of its engine")
    killed = []

    def at_token(count):
        if count == 20:
            killed.extend(id for id, r in nginx.replicas().items()
                          if r["in_flight"])
            if not killed:
                raise Surprise("the answer was over too soon")
            cluster.replicas[killed[0]].kill()
            print(paint("31", f" [kill -9 {killed[0]}] "), end="")

    text = stream(nginx, body(file), at_token)

    step("The same request again, undisturbed")
    if stream(nginx, body(file)) != text:
        raise Surprise("the two answers differ")
    print(f"\n  Both have the same {len(text)} characters, though"
          f" {killed[0]} died while it wrote the first.")
    cluster.replicas[killed[0]].start()
    return nginx, file


def explain(cluster, nginx, file):
    asked = body(file, max_tokens=100)
    step("The cluster runs until Ctrl-C.  Try in another terminal:")
    print(f"""
  curl -sN http://{nginx.api}/v1/chat/completions \\
      -H 'Content-Type: application/json' \\
      -d '{json.dumps(asked)}'
  curl -s http://{nginx.api}/v1/models
  kill -9 {cluster.replicas['r2'].proc.pid}      # r2

  Logs and configuration: {cluster.dir}""", flush=True)


def run(cluster, once):
    nginx, file = show(cluster)
    explain(cluster, nginx, file)
    if not once:
        demo.stay()


if __name__ == "__main__":
    sys.exit(demo.main(run, __doc__))
