#!/usr/bin/env python3
"""A demonstration: three replicas, their agents, one nginx.

It streams a prompt, kills the replica that served it, shows how the members
change and that the next prompt is served elsewhere, kills a replica in the
middle of a stream, and leaves the cluster running until Ctrl-C.  With --once
it ends by itself, and its exit status says whether all went as expected.
"""

import argparse
import json
import pathlib
import shlex
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from llmgw.fleet.cluster import Cluster  # noqa: E402
from llmgw.proc import place  # noqa: E402
from llmgw.proc.ports import Ports  # noqa: E402
from llmgw.proc.wait import wait_for  # noqa: E402

PROMPT = ("You are a helpful assistant that explains web servers to children."
          " Why does a gateway forward requests?")
NEXT = ("You are a helpful assistant that explains web servers to children."
        " And what happens when one of them falls over?")
TTY = sys.stdout.isatty()


class Surprise(Exception):
    """The demo saw something that should not happen."""


def paint(code, text):
    return f"\033[{code}m{text}\033[0m" if TTY else text


def step(text):
    print("\n" + paint("1", text), flush=True)


def ask(nginx, prompt, max_tokens=24, on_token=None):
    """Streams to the terminal; returns the replicas that served, in order."""
    argv = [place.binary("llmgw-client"), "infer", "--gateway", nginx.target,
            "--prompt", prompt, "--max-tokens", str(max_tokens), "--json"]
    spoke, count = [], 0
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as client:
        for line in client.stdout:
            said = json.loads(line)
            if "token" not in said:
                continue
            count += 1
            if said["replica"] != (spoke or [None])[-1]:
                spoke.append(said["replica"])
                print(("\n" if len(spoke) > 1 else "")
                      + paint("36", f"  [{said['replica']}] "), end="")
            print(said["token"], end="", flush=True)
            if on_token:
                on_token(count, said["replica"])
    print(flush=True)
    if client.returncode != 0 or count != max_tokens:
        raise Surprise(f"{count} of {max_tokens} tokens came, the client"
                       f" exited with {client.returncode}")
    return spoke


def curl(nginx, prompt, **more):
    """The command that asks over OpenAI's API."""
    body = {"model": "sim", "max_tokens": 24, **more,
            "messages": [{"role": "user", "content": prompt}]}
    return ["curl", "-sSN", f"http://{nginx.api}/v1/chat/completions",
            "-H", "content-type: application/json", "-d", json.dumps(body)]


def ask_openai(nginx, prompt):
    out = subprocess.run(curl(nginx, prompt), capture_output=True, text=True)
    try:
        choice, = json.loads(out.stdout)["choices"]
        print(paint("36", "  [assistant] ") + choice["message"]["content"])
    except (ValueError, KeyError) as e:
        raise Surprise(f"{out.stdout}{out.stderr}") from e
    if choice["finish_reason"] != "length":
        raise Surprise(f"the answer ended by {choice['finish_reason']}")


def members(cluster):
    out = cluster.gateway.ctl("members")
    if out.returncode != 0:
        raise Surprise(out.stderr)
    for line in out.stdout.rstrip().splitlines():
        print("  " + line)


def state(cluster, id):
    return cluster.gateway.table().get(id, {}).get("state")


def lost(cluster, nginx, id):
    """Kills it with SIGKILL and waits until every agent knows."""
    began = time.monotonic()
    cluster.replicas[id].kill()
    wait_for(lambda: id not in nginx.routable(), f"{id} to be out")
    took = time.monotonic() - began
    wait_for(lambda: state(cluster, id) == "DEAD", f"{id} to be DEAD")
    return took


def show(cluster, token_delay):
    step("Starting 3 replicas, their 3 agents, the gateway's agent and nginx")
    nginx = cluster.fleet(3, replica={"token_delay": token_delay}, nginx={
        "openai": True,
        "server": "location = /dashboard { llmgw_dashboard; }"})
    members(cluster)

    step("A prompt goes to the replica that its first 64 bytes select")
    first = ask(nginx, PROMPT)[0]

    step(f"kill -9 {first}: its agent tells the others")
    took = lost(cluster, nginx, first)
    print(f"  nginx stopped routing to {first} within {took * 1000:.0f} ms")
    members(cluster)

    step("The next prompt with the same beginning is served elsewhere")
    second = ask(nginx, NEXT)[0]
    if second == first:
        raise Surprise(f"{first} is dead, but it answered")

    step(f"kill -9 {second} in the middle of a stream: another continues it")

    def at_token(count, replica):
        if count == 10:
            cluster.replicas[replica].kill()
            cluster.let_go()

    cluster.hold(20)        # however late its tokens are seen here
    spoke = ask(nginx, NEXT, 40, on_token=at_token)
    if len(spoke) != 2:
        raise Surprise(f"the stream was served by {spoke}")

    step("Clients of OpenAI's API are served by the same replicas")
    ask_openai(nginx, NEXT)

    step("Both are started again")
    for id in sorted({first, spoke[0]}):
        cluster.replicas[id].start()
    wait_for(lambda: len(nginx.routable()) == 3, "all three replicas")
    members(cluster)
    return nginx


def explain(cluster, nginx):
    step("The cluster runs until Ctrl-C.  Try in another terminal:")
    control = cluster.gateway.control
    print(f"""
  {place.binary('llmgw-client')} infer --gateway {nginx.target} \\
      --prompt 'Hello' --max-tokens 20
  {shlex.join(curl(nginx, 'Hello', stream=True))}
  {place.binary('llmgwctl')} -s {control} members
  curl -s http://127.0.0.1:{nginx.status_port}/status
  open http://127.0.0.1:{nginx.status_port}/dashboard in a browser
  kill -9 {cluster.replicas['r1'].proc.pid}      # r1

  Logs and configuration: {cluster.dir}""", flush=True)


def stay():
    signal.sigwait({signal.SIGINT, signal.SIGTERM})


def run(cluster, once):
    nginx = show(cluster, "10ms" if once else "60ms")
    if not once:
        explain(cluster, nginx)
        stay()


def interrupted(*_):
    raise KeyboardInterrupt


def main(run=run, about=__doc__):
    """run(cluster, once) is the demonstration."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--once", action="store_true",
                        help="end by itself; the exit status says how it went")
    args = parser.parse_args()

    signal.signal(signal.SIGTERM, interrupted)
    cluster, wrong = Cluster(Ports(), "demo"), []
    try:
        run(cluster, args.once)
    except KeyboardInterrupt:
        print("\ninterrupted")
    except (Surprise, AssertionError, OSError) as e:
        wrong.append(str(e))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    step("Stopping everything")
    wrong += cluster.close()
    if wrong:
        print("\n".join(wrong) + "\n" + cluster.tails(), file=sys.stderr)
        print(f"the logs are in {cluster.dir}", file=sys.stderr)
        return 1
    cluster.remove()
    print("  done, nothing is left running")
    return 0


if __name__ == "__main__":
    sys.exit(main())
