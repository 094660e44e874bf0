"""Lines and files: widths, lengths, and what no file may contain."""

import collections
import re

from tree import folder

COLUMNS = 80
FILE_LINES = 600
FOLDER_FILES = 25

CODE = (".c", ".h", ".py", ".js", ".css")

UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
MACHINE = re.compile(r"(^|[\s\"'=(:])/wo" r"rk/")

# The dashboard may show what a status contains only as text.
MARKUP = re.compile(r"\b(inner|outer)HTML\b|insertAdjacentHTML|\beval\("
                    r"|document\.write|createContextualFragment|\bFunction\(")


def check(tree):
    for path, text in tree.text.items():
        for i, line in tree.lines(path):
            _line(tree, path, i, line)
        count = text.count("\n")
        if text and not text.endswith("\n"):
            tree.say(path, count + 1, "no newline at the end")
        if path.endswith(CODE) and count > FILE_LINES:
            tree.say(path, FILE_LINES + 1,
                     f"{count} lines, the limit is {FILE_LINES}")
    _folders(tree)


def _line(tree, path, i, line):
    if path.endswith(CODE) and len(line) > COLUMNS:
        tree.say(path, i, f"{len(line)} columns, the limit is {COLUMNS}")
    if line != line.rstrip():
        tree.say(path, i, "space at the end of the line")
    if "\t" in line and path.endswith((".c", ".h", ".py", ".proto")):
        tree.say(path, i, "a tab")
    if UNFINISHED.search(line):
        tree.say(path, i, "unfinished work: " + line.strip())
    if path.endswith(".js") and MARKUP.search(line):
        tree.say(path, i, "text that would be taken for markup or code")
    if MACHINE.search(line):
        tree.say(path, i, "a path of one machine")


def _folders(tree):
    sources = collections.defaultdict(list)
    for path in tree.of(".c", ".h"):
        sources[folder(path)].append(path)
    for paths in sources.values():
        if len(paths) > FOLDER_FILES:
            tree.say(paths[FOLDER_FILES], 1,
                     f"source file {FOLDER_FILES + 1} of {len(paths)} in"
                     f" {folder(paths[0])}/, the limit is {FOLDER_FILES}")
