#!/usr/bin/env python3
"""A demonstration: a simulated fleet answers the three questions of
docs/simulator.md, and one of them as a page with plots."""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from llmgw.pages.document import runs  # noqa: E402
from llmgw.proc import place  # noqa: E402

PAGE = place.ROOT / "docs/simulator.md"
HTML = place.BUILD / "demo-sim.html"
TTY = sys.stdout.isatty()


def bold(text):
    return f"\033[1m{text}\033[0m" if TTY else text


def main():
    text = PAGE.read_text()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for block, out in runs(text, folder):
            question = text[:block.start()].rsplit("### ", 1)[1]
            print(bold(question.splitlines()[0]), end="\n\n")
            print(f"$ {block[1]}\n{out}", flush=True)
        subprocess.run(
            [place.binary("llmgw-sim"), "compare", "--workload-spec",
             "chat.yaml", "--num-instances", "10", "--html", HTML,
             "all well: --gateway well.yaml",
             "two die: --gateway noon.yaml"], cwd=folder, check=True,
            stdout=subprocess.DEVNULL)
    print(f"{bold('The last comparison as a page:')} {HTML}")


if __name__ == "__main__":
    main()
