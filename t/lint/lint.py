#!/usr/bin/env python3
"""`make lint`: checks the rules of this repository in a few seconds.

    lines.py      widths, lengths of files, sources per folder
    functions.py  lengths of C functions; code that decides is pure; nginx calls
                  what core offers; no two of them have one name
    rooms.py      the includes that docs/ARCHITECTURE.md allows; circles
    docs.py       directives, variables, metrics, paths and walks in docs/
    python.py     compiles, no unused import, no test hides another
    unstable.py   unstable tests are few, and new

usage: lint.py [ROOT]

It needs only the standard library.
"""

import pathlib
import sys

import docs
import functions
import lines
import python
import rooms
import unstable
from tree import Tree


def main(root):
    tree = Tree(root)
    for check in (lines, rooms, docs, python, unstable):
        check.check(tree)
    sizes = functions.check(tree)
    found = sorted(set(tree.found))
    for path, line, what in found:
        print(f"{path}:{line}: {what}")
    print(f"lint: {len(tree.text)} files, {sizes},"
          f" {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1
                  else pathlib.Path(__file__).resolve().parents[2]))
