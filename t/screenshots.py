#!/usr/bin/env python3
"""Pictures of the dashboard: `make screenshots`.

docs/dashboard.png and docs/dashboard-dark.png show a real cluster of six under
load; one replica is killed, one is drained and one fails.  The pictures in
build/screenshots/ are for review: a phone, and a hundred and a thousand
replicas, whose status is made up (llmgw/pages/scene.py).

It needs Debian's fonts-inter, for a page that looks as on most screens, and
pngquant, which makes the pictures in docs/ a third of the size.
"""

import json
import pathlib
import random
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from llmgw.fleet.cluster import Cluster  # noqa: E402
from llmgw.pages import scene as say  # noqa: E402
from llmgw.pages.browser import Browser  # noqa: E402
from llmgw.proc import place  # noqa: E402
from llmgw.proc.ports import Ports  # noqa: E402
from llmgw.proc.wait import wait_for  # noqa: E402

OUT = place.BUILD / "screenshots"
DOCS = place.ROOT / "docs"
DESK, PHONE = (1440, 900), (390, 844)
SECONDS = 110       # of load: by then two minutes of the charts are filled
LOCATION = "location = /dashboard { llmgw_dashboard; }"


def load(cluster, nginx):
    """Streams that come and go; heavier from the middle on."""
    proc = cluster.script("load", "speak/load.py", pipes=True)
    chance = random.Random(1)
    streams = [[f"{chance.random()}", chance.randrange(20, 120)]
               for _ in range(SECONDS * 11)]
    proc.popen.stdin.write(json.dumps(
        {"target": nginx.target, "streams": streams, "connections": 4,
         "seconds": 60, "starts_per_second": 11}) + "\n")
    proc.popen.stdin.flush()
    return proc


def befall(cluster):
    """The events one after the other, each with time to become visible."""
    yield 55, cluster.replicas["r2"].kill
    yield 70, lambda: cluster.replicas["r5"].faults(reject_all=True)
    yield 88, lambda: cluster.gateway.ctl("drain", "r4")
    yield 100, lambda: None


def fleet(cluster):
    return cluster.fleet(
        6, nginx={"server": LOCATION,
                  "pool": "llmgw_breaker min_requests=3 cooldown=30s;"},
        replica={"token_delay": "30ms", "first_token_delay": "120ms",
                 "max_capacity": 8},
        each={"r6": {"token_delay": "45ms", "model_version": "v2"},
              "r3": {"first_token_delay": "600ms"}})


def pictures_of_a_cluster(browser, ports):
    cluster = Cluster(ports, "screenshots")
    try:
        nginx = fleet(cluster)
        pages = {(size, dark): browser.page(*size, dark=dark,
                                            scale=2 if size == PHONE else 1)
                 for size in (DESK, PHONE) for dark in (False, True)}
        for page in pages.values():
            page.open(f"http://127.0.0.1:{nginx.status_port}/dashboard")
        load(cluster, nginx)
        began = time.monotonic()
        for at, happens in befall(cluster):
            wait_for(lambda: time.monotonic() - began > at, "a cue",
                     takes=SECONDS)
            happens()
        for (size, dark), page in pages.items():
            name = "dashboard" + ("-dark" if dark else "") + ".png"
            path = OUT / f"phone-{name}" if size == PHONE else DOCS / name
            page.picture(path)
            page.close()
            if shutil.which("pngquant"):
                subprocess.run(["pngquant", "--force", "--strip", "--speed=1",
                                "--output", path, path], check=True)
    finally:
        cluster.close()
        cluster.remove()


def trouble(stage, n):
    for i, state in enumerate((say.DEAD, say.SILENT, say.SUSPECT, say.LEFT,
                               say.STARTING, say.STALLED, say.OPEN, say.HALF,
                               say.draining("update:2026-11-21"))):
        stage.set(f"r{i * n // 10 + n // 20}", state)


def busy(stage):
    chance = random.Random(2)

    def more(_):
        pool = stage.pool
        for r in pool.replicas.values():
            r["in_flight"] = r["routable"] * chance.randrange(1, 8)
            r["share"] = r["share"] or (chance.uniform(0.8, 1.2)
                                        / len(pool.replicas))
            r["rates"]["tokens"] = r["in_flight"] * chance.uniform(15, 20)
            pool.tokens += round(r["rates"]["tokens"])
        for _ in range(200):
            pool.observe("inter_token_seconds", chance.lognormvariate(-3, .3))
            pool.observe("first_token_seconds", chance.lognormvariate(-2, .5))
    stage.before = more


def pictures_of_a_scene(browser, ports, n):
    stage = say.Scene(ports, n, pools=("llm", "embeddings"))
    try:
        busy(stage)
        pages = [browser.page(*DESK, dark=dark) for dark in (False, True)]
        for page in pages:
            page.open(stage.origin + "/dashboard")
            page.wait_text("#pulse", "Live")
        trouble(stage, n)
        for dark, page in enumerate(pages):
            wait_for(lambda: page.js("page.tracks.get('llm').history.length")
                     > 15, "something in the charts", takes=60)
            page.picture(OUT / f"{n}{'-dark' * dark}.png")
            page.close()
    finally:
        stage.close()


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    ports, browser = Ports(), Browser()
    try:
        pictures_of_a_scene(browser, ports, 100)
        pictures_of_a_scene(browser, ports, 1000)
        pictures_of_a_cluster(browser, ports)
    finally:
        browser.close()
    for path in sorted([*OUT.glob("*.png"), *DOCS.glob("dashboard*.png")]):
        print(f"{path.stat().st_size:8} {path.relative_to(place.ROOT)}")


if __name__ == "__main__":
    main()
