#!/usr/bin/env python3
"""A demonstration: an engine that stands by takes over within a second.

Two engines of one host share 256 MB of weights; one serves, the other waits.
The first is killed in the middle of a stream, and a planned switch follows.
Then the cluster runs until Ctrl-C; with --once it ends by itself, and its exit
status says whether all went as expected.
"""

import itertools
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import demo  # noqa: E402
from demo import Surprise, paint, step  # noqa: E402
from llmgw.model.weights import WeightsService  # noqa: E402
from llmgw.proc import place  # noqa: E402
from llmgw.proc.wait import wait_for  # noqa: E402
from llmgw.standby.group import Group  # noqa: E402
from llmgw.standby.lock import LockService  # noqa: E402
from llmgw.standby.takeover import PHASES, phases  # noqa: E402

WEIGHTS_MB = 256
PROMPT = "Tell me of the two keepers of a lighthouse, of whom one sleeps."


def groups(cluster):
    out = cluster.gateway.ctl("group")
    if out.returncode != 0:
        raise Surprise(out.stderr)
    for line in out.stdout.rstrip().splitlines():
        print("  " + line)


def start(cluster, step_us):
    file = cluster.dir / "weights.bin"
    file.write_bytes(os.urandom(1 << 20) * WEIGHTS_MB)
    lock = LockService(cluster, reconnect_window="1s", take_timeout="1s")
    weights = WeightsService(cluster)
    cluster.agent("gw", "gateway")
    group = Group(cluster, name="lighthouse", lock=lock, engine="model",
                  latency_model="linear", alpha_coeffs="0,0,0",
                  beta_coeffs=f"{step_us},0,0", model_memory=64,
                  weights=weights.path, weights_file=file)
    group.start()
    nginx = cluster.nginx(pool="llmgw_queue 100 timeout=5s;")
    settle(nginx, group)
    for line in weights.ctl().stdout.splitlines()[:3]:
        print("  " + line)
    return group, nginx


def settle(nginx, group):
    """One serves and the other stands by, as nginx sees them."""
    def settled():
        states = {id: row["group"]["state"] for id, row in
                  nginx.replicas().items() if row["group"]}
        return sorted(states.values()) == ["active", "standby"] \
            and nginx.routable() == [group.wait_active().id]
    wait_for(settled, "an engine that serves and one that stands by")


class Watch:
    """When tokens came, and what was done at the tenth."""

    def __init__(self, act):
        self.act, self.done = act, None
        self.times = []                 # (time, replica)

    def __call__(self, count, replica):
        self.times.append((time.monotonic(), replica))
        if count == 10:
            self.done = time.monotonic()
            self.act(replica)

    def next_ms(self):
        """From then to the first token of the other engine."""
        for (_, before), (at, replica) in itertools.pairwise(self.times):
            if replica != before:
                return (at - self.done) * 1000
        raise Surprise("no other engine went on with the stream")


def killed(group, nginx):
    def kill(replica):
        group[replica].kill()
        print(paint("31", f" [kill -9 {replica}] "), end="", flush=True)

    watch = Watch(kill)
    dead, heir = demo.ask(nginx, PROMPT, 40, on_token=watch)
    took = phases(group, watch.done)
    print()
    for phase, ms in took.items():
        print(f"  {ms:7.0f} ms  {PHASES[phase]}")
    print(f"  {watch.next_ms():7.0f} ms  the stream goes on, at {heir}")
    group[dead].start()
    settle(nginx, group)


def switched(cluster, group, nginx):
    said = []

    def switch(replica):
        print(paint("33", " [group switch] "), end="", flush=True)
        said.append(cluster.run("switch", [
            place.binary("llmgwctl"), "-s", group[replica].agent.control,
            "group", "switch", group.name]))

    watch = Watch(switch)
    old, heir = demo.ask(nginx, PROMPT, 40, on_token=watch)
    if said[0].wait() != 0:
        raise Surprise(said[0].text())
    said[0].told_to_end = True
    group[old].proc.wait()
    group[old].proc.told_to_end = True
    print(f"\n  {watch.next_ms():7.0f} ms  the stream goes on, at {heir}")
    group[old].start()
    settle(nginx, group)


def show(cluster, step_us):
    step(f"Starting a lock service, a weights service, and two engines that "
         f"share {WEIGHTS_MB} MB")
    group, nginx = start(cluster, step_us)
    groups(cluster)
    step("kill -9 of the engine that serves, in the middle of a stream")
    killed(group, nginx)
    step("It was started again, and stands by now")
    groups(cluster)
    step("A planned switch: llmgwctl group switch lighthouse")
    switched(cluster, group, nginx)
    groups(cluster)
    return group, nginx


def explain(cluster, group, nginx):
    step("The cluster runs until Ctrl-C.  Try in another terminal:")
    ctl = place.binary("llmgwctl")
    print(f"""
  {place.binary('llmgw-client')} infer --gateway {nginx.target} \\
      --prompt 'Hello' --max-tokens 200
  {ctl} -s {cluster.gateway.control} group
  {ctl} lock status --lock {group.service.socket}
  kill -9 {group.wait_active().proc.pid}      # the engine that serves

  Logs and configuration: {cluster.dir}""", flush=True)


def run(cluster, once):
    group, nginx = show(cluster, 25_000 if once else 50_000)
    if not once:
        explain(cluster, group, nginx)
        demo.stay()


if __name__ == "__main__":
    sys.exit(demo.main(run, __doc__))
