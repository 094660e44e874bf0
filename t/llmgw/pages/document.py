"""Commands on a page of docs/, with the files that they read."""

import os
import re
import subprocess

from ..proc import place

FILE = re.compile(r"`(\w+\.yaml)`:\n\n```yaml\n(.*?)```", re.S)
CONSOLE = re.compile(r"```console\n\$ ((?:[^\n]*\\\n)*[^\n]*)\n(.*?)```", re.S)


def runs(text, folder):
    """Yields (match, stdout) of each command, run in folder; the match has
    the command and, behind it, what the page shows of its output."""
    for name, content in FILE.findall(text):
        (folder / name).write_text(content)
    path = f"{place.BUILD}:{os.environ['PATH']}"
    for block in CONSOLE.finditer(text):
        yield block, subprocess.run(
            ["sh", "-c", block[1]], cwd=folder, text=True, check=True,
            stdout=subprocess.PIPE, env={**os.environ, "PATH": path}).stdout
