"""Docs against code: names both ways, links, paths, and walks."""

import fnmatch
import re

from rooms import MODULE, ROOTS

# Newcomers follow the paths in these, and in the README.md of each room, so
# each path must exist.
GUIDES = ("docs/ARCHITECTURE.md", "docs/failures.md", "docs/limits.md",
          "CONTRIBUTING.md")

# A word in backticks is a path if it has a slash or one of these endings.
PATH = re.compile(r"[\w.*-]+(/[\w.*-]*)+|[\w*-]+\.(c|h|py|js|md|sh|proto)")
NOT_KEPT = ("build/", "/")
NAME = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


def check(tree):
    directives, variables = set(), set()
    for path in tree.of(".c"):
        if not path.startswith(MODULE + "/"):
            continue
        for name, after in re.findall(
                r'ngx_string\("(llmgw_\w+)"\),\s*(\w+)', tree.text[path]):
            (directives if after.startswith("NGX_") else variables).add(name)
    _both_ways(tree, "directive", directives, "docs/directives.md",
               r"^## (llmgw_\w+)$")
    _both_ways(tree, "variable", variables, "docs/variables.md",
               r"^## \$(llmgw_\w+)$")
    _both_ways(tree, "metric", _metrics(tree), "docs/metrics.md",
               r"^\| `(llmgw_\w+)`")
    _both_ways(tree, "check", set(re.findall(
        r'^    \{ "(\w+)", \{ "', tree.text.get(
            "agent/ctl/doctor/check.c", ""), re.M)), "docs/doctor.md",
        r"^\| `(\w+)` \|")
    _links(tree)
    for path in tree.of(".md"):
        _shown(tree, path)
    for path in filter(_is_guide, tree.of(".md")):
        _paths(tree, path)
        _walks(tree, path)


def _is_guide(path):
    return path in GUIDES or (path.endswith("/README.md")
                              and not path.startswith(("docs/", "t/")))


def _metrics(tree):
    """Names as they are scraped: from the tables of the pages' scopes, the
    counters of zone/metrics.h, and the few that ctl/metrics.c writes without
    a table."""
    names = {"llmgw_" + name + {"COUNTER": "_total"}.get(kind, "")
             for path in tree.of(".c")
             if path.startswith(MODULE + "/pages/facts/")
             for name, kind in re.findall(
                 r"\b(?:X|METRIC_ROW|METRIC_LABELLED)\((\w+[a-z]), (\w+),",
                 tree.text[path])}
    text = tree.text.get(MODULE + "/zone/metrics.h", "")
    for kind, body in re.findall(
            r"#define NGX_HTTP_LLMGW_(\w+)\(X\)(.*?[^\\])\n\n", text, re.S):
        suffix = "_total" if kind.endswith("COUNTERS") else ""
        names |= {f"llmgw_{name}{suffix}"
                  for name in re.findall(r"^\s+X\((\w+),", body, re.M)}
    names |= {f"llmgw_agent_{name}" for name in (
        "info", "uptime_seconds", "members", "dropped_total")}
    names |= {f"llmgw_agent_{name}" for name in re.findall(
        r'^    \{ "(\w+)", "', tree.text.get("agent/ctl/metrics.c", ""),
        re.M)}
    names |= {"llmgw_" + name + {"counter": "_total"}.get(kind, "")
              for name, kind in re.findall(
                  r'{ "(\w+)", "(counter|gauge|summary)", "',
                  tree.text.get("agent/ctl/shards/pipelines.c", ""))}
    names |= {f"llmgw_agent_{name}_total" for name in re.findall(
        r"^    X\((\w+),", tree.text.get("common/swim_counters.h", ""),
        re.M)}
    return names


def _both_ways(tree, kind, code, path, heading):
    written = {}
    for i, line in tree.lines(path):
        got = re.match(heading, line)
        if got:
            written[got.group(1)] = i
    for name in sorted(code - set(written)):
        tree.say(path, 1, f"{kind} {name} is not documented")
    for name in sorted(set(written) - code):
        tree.say(path, written[name], f"{kind} {name} is not in the code")


def _links(tree):
    """Links to files in this repository must not be broken."""
    for path in tree.of(".md"):
        for i, line in tree.lines(path):
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", line):
                if "://" not in target and not (
                        (tree.root / path).parent / target).exists():
                    tree.say(path, i, f"a link to {target}, which is not")


def _words(line):
    return re.findall(r"`([^`\s]+)`", line)


def _paths(tree, path):
    """Names in capitals too: one of the files on the line must contain it."""
    for i, line in tree.lines(path):
        words = _words(line)
        for word in words:
            if PATH.fullmatch(word) and not word.startswith(NOT_KEPT) \
                    and not _exists(tree, word):
                tree.say(path, i, f"{word} is not there")
        texts = [tree.text[root + word] for root in ROOTS for word in words
                 if root + word in tree.text]
        for word in filter(NAME.fullmatch, words):
            if texts and not any(word in text for text in texts):
                tree.say(path, i, f"{word} is in none of these files")


def _exists(tree, word):
    """NNNN and NAME are placeholders that a reader fills in."""
    word = re.sub(r"NNNN|NAME", "*", word)
    if "*" in word:
        return any(fnmatch.fnmatch(p, root + word)
                   for root in ROOTS for p in tree.files)
    return any(tree.has(root + word) for root in ROOTS)


# --- walks

def _walks(tree, path):
    """A table whose columns are file, function, ...: the function must be
    defined in the file, and a file of an earlier row must call it, by its
    name or through the field that it was assigned to.  So may a file of the
    page's table whose columns are set up in, function, ..."""
    setup, before = [], None
    for i, line in tree.lines(path):
        cells = [c.strip() for c in line.strip("| ").split("|")]
        if not line.startswith("|"):
            before = None
        elif cells[:2] == ["set up in", "function"]:
            before = setup
        elif cells[:2] == ["file", "function"]:
            before = []
        elif before is not None and not line.startswith("|--"):
            at = _step(tree, path, i, cells)
            name = cells[1].strip("`()")
            if at and before and before is not setup \
                    and not _is_called(tree, name, before + setup):
                tree.say(path, i, f"no step before calls {name}()")
            before += [at] if at else []


def _step(tree, path, i, cells):
    """The file of a row."""
    file, function = (c.strip("`") for c in cells[:2])
    at = next((root + file for root in ROOTS if root + file in tree.text),
              None)
    if at is None:
        return None                 # _paths() reports it
    name = re.escape(function.removesuffix("()"))
    if not re.search(rf"^{name}\(", tree.text[at], re.M):
        tree.say(path, i, f"{function} is not defined in {file}")
    return at


def _is_called(tree, name, before):
    fields = {field for text in map(tree.text.get, tree.of(".c", ".h"))
              if name in text     # which is much faster than the search
              for field in re.findall(rf"(?:\.|->)(\w+) = &?{name}\b", text)}
    return any(re.search(rf"\b(?:{'|'.join([name, *fields])})\b",
                         tree.text[path]) for path in before)


# --- tests that show something

def _shown(tree, path):
    """A table whose last column is "shown by": each name there must be a test
    in the file before it."""
    within = False
    for i, line in tree.lines(path):
        cells = [c.strip() for c in line.strip("| ").split("|")]
        if not line.startswith("|"):
            within = False
        elif cells[-1] == "shown by":
            within = True
        elif within and not line.startswith("|--"):
            _shown_by(tree, path, i, cells[-1])


def _shown_by(tree, path, i, cell):
    text = ""
    for word in _words(cell):
        if PATH.fullmatch(word):
            text = tree.text.get(word, "")
            if not text:
                tree.say(path, i, f"{word} is not there")
        elif not re.search(rf"^(?:def )?{word}\(", text, re.M):
            tree.say(path, i, f"{word} is no test in that file")
