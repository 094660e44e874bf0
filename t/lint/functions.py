"""C functions: how long they are, what the pure ones may call, that nginx calls
those of core, and that each name stands once."""

import collections
import re
import statistics

from rooms import CORE, MODULE

LINES = 90
GLUE_LINES = 120                # nginx's API asks for long functions
MEDIAN_LINES = 15
P90_LINES = 45

# Code that decides gets time, randomness and memory as arguments.
CLOCK = (r"\b(clock_gettime|gettimeofday|time|ev_now|ev_time|ngx_current_msec"
         r"|ngx_time|nanosleep|usleep|sleep)\b\s*[(;]")
CHANCE = r"\b(rand|random|srand|drand48|getrandom|randombytes_\w+)\s*\("
LOGS = (r"\b(printf|fprintf|puts|fputs|perror|syslog|log_write|ngx_log_\w+)"
        r"\s*\(")
MEMORY = (r"(?<![.>\w])(malloc|calloc|realloc|free|strdup|strndup|alloca)"
          r"\s*\(")
ALLOCATOR = re.compile(r"\w+_(malloc|free)$")   # the default for an argument
PURE = [(CORE + "/", (CLOCK, CHANCE, LOGS, MEMORY)),
        ("agent/swim/", (CLOCK, CHANCE, LOGS)),
        ("sim/model/", (CLOCK, CHANCE, LOGS)),
        ("replica/engine/dialect/", (CLOCK, CHANCE, LOGS))]

DEFINED = re.compile(r"^(?!static\b)\w[^\n;]*\n(\w+)\(", re.M)

# No archive has these, or another may stand in for it when a test is linked.
LINKED_APART = ("t/", "bench/", "replica/engine/llama/plugin/", "sim/swim/")


def check(tree):
    sizes = []
    for path in tree.of(".c", ".h"):
        for size, line, name in _functions(tree, path):
            limit = (GLUE_LINES if path.startswith(MODULE + "/")
                     and not path.startswith(CORE + "/") else LINES)
            if size > limit:
                tree.say(path, line, f"{name}() has {size} lines, the limit"
                                     f" is {limit}")
            if path.split("/")[0] not in ("t", "bench"):
                sizes.append((size, path, line, name))
        for prefix, patterns in PURE:
            if path.startswith(prefix):
                _pure(tree, path, patterns)
    _called(tree)
    _once(tree)
    return _summary(tree, sorted(sizes))


def _functions(tree, path):
    """In this style a function's braces are alone at column 0."""
    lines = tree.text[path].splitlines()
    start = None
    for i, line in enumerate(lines, 1):
        if line == "{":
            start = i
        elif line.startswith("}") and start:
            yield i - start - 1, start, _name(lines, start - 1)
            start = None
        elif re.match(r"\w[\w\s*]*\w\([^;]*\)\s*\{$", line):
            tree.say(path, i, "the brace of a function stands alone")


def _name(lines, at):
    for line in reversed(lines[max(0, at - 12):at]):
        got = re.match(r"(\w+)\(", line)
        if got:
            return got.group(1)
    return "?"


def _summary(tree, sizes):
    if not sizes:
        return "no functions"
    median = statistics.median(s[0] for s in sizes)
    p90 = sizes[min(len(sizes) - 1, len(sizes) * 9 // 10)][0]
    if median > MEDIAN_LINES:
        tree.say(".", 0, f"median function of {median:g} lines, the limit is"
                         f" {MEDIAN_LINES}")
    if p90 > P90_LINES:
        tree.say(".", 0, f"90th percentile function of {p90} lines, the limit"
                         f" is {P90_LINES}")
        for size, path, line, name in sizes[-10:]:
            print(f"  {size:4} {path}:{line} {name}()")
    return (f"{len(sizes)} functions, median {median:g} lines, 90th"
            f" percentile {p90}, longest {sizes[-1][0]}")


def _code(text):
    """Without comments and strings; the lines stay."""
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(\\.|[^\"\\])*\"",
                  lambda m: "\n" * m.group().count("\n"), text, flags=re.S)


def _called(tree):
    """Each function that core's files offer has a caller in the module, and in
    another file: what only the simulator or a test calls is not core's, what
    only its own file calls is static.  Of a header its functions and macros
    count, not what it declares."""
    code = {path: _code(tree.text[path]) for path in tree.of(".c", ".h")
            if path.startswith(MODULE + "/")}
    files = collections.Counter()
    for path, text in code.items():
        if path.endswith(".h"):
            text = " ".join(re.findall(
                r"^\{\n(?s:.*?)^\}|^#define(?:.*\\\n)*.*", text, re.M))
        files.update(set(re.findall(r"\w+", text)))
    for path, text in code.items():
        if not path.startswith(CORE + "/") or path.endswith(".h"):
            continue
        for got in DEFINED.finditer(text):
            if files[got.group(1)] < 2:
                tree.say(path, text.count("\n", 0, got.start(1)) + 1,
                         f"{got.group(1)}() has no caller in another file of"
                         " the module")


def _once(tree):
    """A test is linked with all archives: of two external functions with one
    name it would get the first."""
    first = {}
    for path in sorted(tree.of(".c")):
        if path.startswith(LINKED_APART):
            continue
        for got in DEFINED.finditer(tree.text[path]):
            name = got.group(1)
            other = first.setdefault(name, path)
            if name != "main" and other != path:
                line = tree.text[path].count("\n", 0, got.start(1)) + 1
                tree.say(path, line, f"{name}() stands in {other}, too")


def _pure(tree, path, patterns):
    function = ""
    for i, line in enumerate(_code(tree.text[path]).splitlines(), 1):
        begins = re.match(r"(\w+)\(", line)
        function = begins.group(1) if begins else function
        for pattern in patterns:
            got = re.search(pattern, line)
            if got and not (pattern == MEMORY and ALLOCATOR.match(function)):
                tree.say(path, i, f"{got.group().strip()} in what takes its"
                                  " surroundings as arguments")
