#!/usr/bin/env python3
"""Draws sentences of this repository at random, to be read as a stranger.

usage: sentences.py [-n 60] [--seed N] [--kind comment,message,doc] [PATH...]

Whoever wrote a sentence understands it.  So read the drawn ones without their
files, once each, and mark those that need a second reading: their share says
how readable the rest is, and what they have in common is what to look for.
Comments, messages (texts of five words or more in C) and docs (Markdown) are
drawn in equal parts.  The same seed draws the same sentences from the same
tree; without one the seed is drawn, too, and printed.
"""

import argparse
import ast
import pathlib
import random
import re
import sys
import textwrap

from tree import Tree

KINDS = ("comment", "message", "doc")
LEAST_WORDS = 5

COMMENT = re.compile(r"/\*(.*?)\*/|//([^\n]*)", re.S)
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
LITERALS = re.compile(f"{LITERAL.pattern}(?:[\\s\\\\]*{LITERAL.pattern})*")
CODE = re.compile(r"`[^`]*`|%[-+*.0-9]*\w+|\\.")
DRAWN = re.compile(r"-->|--\+|\+--|\s\|\s|\s{3,}\S|={3}|-{4}")   # not prose
END = re.compile(r"(?<=[.?!])\s+")


def of_text(text, line):
    """(line, sentence) of prose; a blank line ends a sentence, too."""
    for block in re.finditer(r"(?:[^\n]*\S[^\n]*\n?)+", text):
        prose = block.group(0)
        if not DRAWN.search(prose.strip()):
            at = line + text[:block.start()].count("\n")
            yield from ((at, s) for s in END.split(" ".join(prose.split())))


def comments_of_c(text):
    for found in COMMENT.finditer(text):
        inner = found.group(1) or found.group(2) or ""
        inner = re.sub(r"^[ \t]*\*(?: |$)", "", inner, flags=re.M)
        inner = re.sub(r"^[ \t]+", "", inner, flags=re.M) \
            if not DRAWN.search(inner) else inner
        yield from of_text(inner, text[:found.start()].count("\n") + 1)


def messages_of_c(text):
    text = COMMENT.sub(lambda c: "\n" * c.group(0).count("\n"), text)
    text = re.sub(r"^[ \t]*#[ \t]*include.*$", "", text, flags=re.M)
    for found in LITERALS.finditer(text):
        said = "".join(part.group(1)
                       for part in LITERAL.finditer(found.group(0)))
        if not re.search(r'\\":|^[{[]s', said):           # JSON
            yield text[:found.start()].count("\n") + 1, said


def comments_of_python(text):
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return
    for node in nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            doc = ast.get_docstring(node)
            if doc:
                yield from of_text(doc, getattr(node, "lineno", 1))
    for found in re.finditer(r"(?:^[ \t]*# .*\n)+", text, re.M):
        yield from of_text(re.sub(r"^[ \t]*# ", "", found.group(0),
                                  flags=re.M),
                           text[:found.start()].count("\n") + 1)


def docs(text):
    """Paragraphs, items of lists, and cells of tables; no code."""
    text = re.sub(r"^```.*?^```", lambda c: "\n" * c.group(0).count("\n"),
                  text, flags=re.S | re.M)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    paragraph, began = [], 1
    for i, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("|"):
            for cell in line.strip("| ").split(" | "):
                yield from of_text(cell, i)
        if not line.strip() or line.startswith(("|", "#", "* ", "- ")):
            yield from of_text(" ".join(paragraph), began)
            paragraph, began = [], i
        if line.strip() and not line.startswith(("|", "#")):
            paragraph.append(re.sub(r"^[*-] ", "", line.strip()))


def sentences(tree, paths, kinds):
    """kind -> [(path, line, sentence)]"""
    readers = {"comment": {(".c", ".h"): comments_of_c,
                           (".py",): comments_of_python},
               "message": {(".c", ".h"): messages_of_c},
               "doc": {(".md",): docs}}
    return {kind: [(path, line, said)
                   for ends, read in readers[kind].items()
                   for path in tree.of(*ends) if is_below(path, paths)
                   for line, said in read(tree.text[path])
                   if is_sentence(said)]
            for kind in kinds}


def is_sentence(said):
    words = re.findall(r"[A-Za-z][a-z']+", CODE.sub(" ", said))
    return len(words) >= LEAST_WORDS


def is_below(path, paths):
    return not paths or any(path == p or path.startswith(p.rstrip("/") + "/")
                            for p in paths)


def draw(found, n, seed):
    """n in all, in equal parts, as far as a kind has as many."""
    rnd = random.Random(seed)
    kinds = [k for k in found if found[k]]
    for i, kind in enumerate(kinds):
        part = n // len(kinds) + (i < n % len(kinds))
        for path, line, said in rnd.sample(found[kind],
                                           min(part, len(found[kind]))):
            yield kind, path, line, said


def main(argv):
    parser = argparse.ArgumentParser(
        description="Draws sentences at random, to be read as a stranger.")
    parser.add_argument("-n", type=int, default=60, help="how many (60)")
    parser.add_argument("--seed", type=int, help="draws the same again")
    parser.add_argument("--kind", default=",".join(KINDS),
                        help="some of comment, message, doc")
    parser.add_argument("paths", nargs="*", metavar="PATH",
                        help="files or folders, from the repository on")
    args = parser.parse_args(argv)
    kinds = args.kind.split(",")
    if not set(kinds) <= set(KINDS) or args.n < 1:
        parser.error(f"-n from 1 on, --kind of {', '.join(KINDS)}")
    seed = random.randrange(10 ** 6) if args.seed is None else args.seed
    root = pathlib.Path(__file__).resolve().parents[2]
    found = sentences(Tree(root), args.paths, kinds)
    print(f"seed {seed}, of " + ", ".join(
        f"{len(found[k])} {k}s" for k in kinds))
    for i, (kind, path, line, said) in enumerate(draw(found, args.n, seed),
                                                 1):
        print(f"\n{i:3}. {path}:{line} ({kind})")
        print(textwrap.fill(said, 78, initial_indent="     ",
                            subsequent_indent="     "))
    return 0 if any(found.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
