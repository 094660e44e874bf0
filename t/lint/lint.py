#!/usr/bin/env python3
"""`make lint`: what a reader may rely on, checked in a few seconds.

C: widths, lengths of files and functions, the floors of the layout, purity of
the decisions.  Docs: every directive and variable in the code is documented,
and the other way round.  Python: it compiles, imports nothing in vain, and no
test hides another.  Standard library alone.
"""

import ast
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

LINE_COLUMNS = 80
PYTHON_COLUMNS = 80
FILE_LINES = 600
FUNCTION_LINES = 90
GLUE_FUNCTION_LINES = 120       # nginx's API asks for long functions
MEDIAN_LINES = 15
P90_LINES = 45

GLUE = "ngx_http_llmgw_module"
CORE = GLUE + "/core"

# Where an include's path begins; what is generated has no room.
ROOTS = ("", "agent/", GLUE + "/")
GENERATED = (".pb-c.h", "dashboard.h")

# What a floor may include besides itself.  Tests may include all of it.
FLOORS = {
    "proto": set(),
    CORE: set(),
    "common": {"proto", CORE},
    GLUE: {"proto", CORE},
    "agent": {"proto", CORE, "common"},
    "replica": {"proto", CORE, "common"},
    "client": {"proto", CORE, "common"},
}

# Time, randomness and memory come as arguments where decisions are made.
CLOCK = (r"\b(clock_gettime|gettimeofday|time|ev_now|ev_time|ngx_current_msec"
         r"|ngx_time|nanosleep|usleep|sleep)\b\s*[(;]")
CHANCE = r"\b(rand|random|srand|drand48|getrandom|randombytes_\w+)\s*\("
LOGS = (r"\b(printf|fprintf|puts|fputs|perror|syslog|log_write|ngx_log_\w+)"
        r"\s*\(")
MEMORY = (r"(?<![.>\w])(malloc|calloc|realloc|free|strdup|strndup|alloca)"
          r"\s*\(")
ALLOCATOR = re.compile(r"\w+_(malloc|free)$")   # what is passed by default
PURE = [(CORE + "/", (CLOCK, CHANCE, LOGS, MEMORY)),
        ("agent/swim/", (CLOCK, CHANCE, LOGS))]

UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
MACHINE = re.compile(r"(^|[\s\"'=(:])/wo" r"rk/")

# What a status says reaches the dashboard as text, and in no other way.
MARKUP = re.compile(r"\b(inner|outer)HTML\b|insertAdjacentHTML|\beval\("
                    r"|document\.write|createContextualFragment|\bFunction\(")

NOT_OURS = {"build", ".git", "__pycache__", ".pytest_cache"}


class Lint:
    def __init__(self):
        self.files = [p for p in self._tracked() if (ROOT / p).is_file()]
        self.text = {p: (ROOT / p).read_text(errors="replace")
                     for p in self.files
                     if not re.search(r"\.(png|pdf|bin)$", p)
                     and "corpus/" not in p}
        self.found = []
        self.functions = []     # (lines, path, line, name) of the product

    @staticmethod
    def _tracked():
        """What git has, and what it would take."""
        out = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
            capture_output=True, text=True)
        if out.returncode == 0:
            return sorted(set(out.stdout.splitlines()))
        return sorted(str(p.relative_to(ROOT)) for p in ROOT.rglob("*")
                      if p.is_file()
                      and not NOT_OURS & set(p.relative_to(ROOT).parts))

    def say(self, path, line, what):
        self.found.append(f"{path}:{line}: {what}")

    def of(self, *suffixes):
        return [p for p in self.text if p.endswith(suffixes)]

    def run(self):
        for check in (self.lines, self.c_functions, self.includes,
                      self.purity, self.docs, self.links, self.python):
            check()
        self.function_sizes()
        for line in sorted(self.found):
            print(line)
        print(f"lint: {len(self.text)} files, {len(self.found)} findings")
        return 1 if self.found else 0

    # --- lines

    def lines(self):
        for path, text in self.text.items():
            columns = (LINE_COLUMNS
                       if path.endswith((".c", ".h", ".js", ".css"))
                       else PYTHON_COLUMNS if path.endswith(".py") else None)
            for i, line in enumerate(text.splitlines(), 1):
                self._line(path, i, line, columns)
            if text and not text.endswith("\n"):
                self.say(path, text.count("\n") + 1, "no newline at the end")
            if path.endswith((".c", ".h", ".py", ".js", ".css")) \
                    and text.count("\n") > FILE_LINES:
                self.say(path, 1, f"{text.count(chr(10))} lines, the limit is"
                                  f" {FILE_LINES}")

    def _line(self, path, i, line, columns):
        if columns and len(line) > columns:
            self.say(path, i, f"{len(line)} columns, the limit is {columns}")
        if line != line.rstrip():
            self.say(path, i, "space at the end of the line")
        if "\t" in line and path.endswith((".c", ".h", ".py", ".proto")):
            self.say(path, i, "a tab")
        if UNFINISHED.search(line):
            self.say(path, i, "unfinished work: " + line.strip())
        if path.endswith(".js") and MARKUP.search(line):
            self.say(path, i, "text that would be taken for markup or code")
        if MACHINE.search(line):
            self.say(path, i, "a path of one machine")

    # --- C

    def c_functions(self):
        """In this style a function's braces stand alone at column 0."""
        for path in self.of(".c", ".h"):
            lines = self.text[path].splitlines()
            start = None
            for i, line in enumerate(lines, 1):
                if line == "{":
                    start = i
                elif line.startswith("}") and start:
                    self._function(path, lines, start, i)
                    start = None
                elif re.match(r"\w[\w\s*]*\w\([^;]*\)\s*\{$", line):
                    self.say(path, i, "the brace of a function stands alone")

    def _function(self, path, lines, start, end):
        name = self._name(lines, start - 1)
        size = end - start - 1
        limit = (GLUE_FUNCTION_LINES if path.startswith(GLUE + "/")
                 and not path.startswith(CORE) else FUNCTION_LINES)
        if size > limit:
            self.say(path, start, f"{name}() has {size} lines, the limit is"
                                  f" {limit}")
        if path.split("/")[0] not in ("t", "bench"):
            self.functions.append((size, path, start, name))

    @staticmethod
    def _name(lines, at):
        for line in reversed(lines[max(0, at - 12):at]):
            got = re.match(r"(\w+)\(", line)
            if got:
                return got.group(1)
        return "?"

    def function_sizes(self):
        sizes = sorted(f[0] for f in self.functions)
        if not sizes:
            return
        median = statistics.median(sizes)
        p90 = sizes[min(len(sizes) - 1, len(sizes) * 9 // 10)]
        print(f"functions: {len(sizes)}, median {median:g} lines, 90th"
              f" percentile {p90}, longest {sizes[-1]}")
        if median > MEDIAN_LINES:
            self.say(".", 0, f"median function of {median:g} lines, the limit"
                             f" is {MEDIAN_LINES}")
        if p90 > P90_LINES:
            self.say(".", 0, f"90th percentile function of {p90} lines, the"
                             f" limit is {P90_LINES}")
            for size, path, line, name in sorted(self.functions)[-10:]:
                print(f"  {size:4} {path}:{line} {name}()")

    @staticmethod
    def floor(path):
        for floor in (CORE, *FLOORS):
            if path.startswith(floor + "/"):
                return floor
        return None

    def includes(self):
        for path in self.of(".c", ".h"):
            mine = self.floor(path)
            if mine is None:
                continue
            for i, line in enumerate(self.text[path].splitlines(), 1):
                got = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
                if got:
                    self._include(path, i, mine, got.group(1) == '"',
                                  got.group(2))

    def _include(self, path, i, mine, quoted, header):
        if quoted and not header.endswith(GENERATED):
            theirs = next((root + header for root in ROOTS
                           if root + header in self.text), None)
            if theirs is None:
                self.say(path, i, f"{header} is not a path from a root")
                return
            theirs = self.floor(theirs)
        else:
            theirs = "proto" if header.endswith(".pb-c.h") else None
        if theirs and theirs != mine and theirs not in FLOORS[mine]:
            self.say(path, i, f"{mine} does not know {theirs} ({header})")
        if header.startswith("ngx_") and mine != GLUE:
            self.say(path, i, f"{mine} does not know nginx ({header})")

    def purity(self):
        for path in self.of(".c", ".h"):
            for prefix, patterns in PURE:
                if path.startswith(prefix):
                    self._pure(path, patterns)

    def _pure(self, path, patterns):
        code = re.sub(r"/\*.*?\*/|//[^\n]*|\"(\\.|[^\"\\])*\"",
                      lambda m: "\n" * m.group().count("\n"),
                      self.text[path], flags=re.S)
        function = ""
        for i, line in enumerate(code.splitlines(), 1):
            begins = re.match(r"(\w+)\(", line)
            function = begins.group(1) if begins else function
            for pattern in patterns:
                got = re.search(pattern, line)
                if got and not (pattern == MEMORY
                                and ALLOCATOR.match(function)):
                    self.say(path, i, f"{got.group().strip()} in what takes"
                                      " its surroundings as arguments")

    # --- docs

    def docs(self):
        directives, variables = set(), set()
        for path in self.of(".c"):
            if not path.startswith(GLUE + "/"):
                continue
            for name, after in re.findall(
                    r'ngx_string\("(llmgw_\w+)"\),\s*(\w+)', self.text[path]):
                (directives if after.startswith("NGX_") else variables) \
                    .add(name)
        self._both_ways("directive", directives, "docs/directives.md",
                        r"^## (llmgw_\w+)$")
        self._both_ways("variable", variables, "docs/variables.md",
                        r"^## \$(llmgw_\w+)$")
        self._both_ways("metric", self._metrics(), "docs/metrics.md",
                        r"^\| `(llmgw_\w+)`")

    def _metrics(self):
        """Names as they are scraped, from the X-macros and the few that
        pages/export.c and ctl/metrics.c write by themselves."""
        names = {"llmgw_requests_total", "llmgw_members"}
        text = self.text.get(GLUE + "/zone/metrics.h", "")
        for kind, body in re.findall(
                r"#define NGX_HTTP_LLMGW_(\w+)\(X\)(.*?[^\\])\n\n", text, re.S):
            suffix = "_total" if kind.endswith("COUNTERS") else ""
            names |= {f"llmgw_{name}{suffix}"
                      for name in re.findall(r"^\s+X\((\w+),", body, re.M)}
        names |= {f"llmgw_agent_{name}" for name in (
            "info", "uptime_seconds", "members", "dropped_total")}
        names |= {f"llmgw_agent_{name}" for name in re.findall(
            r'^    \{ "(\w+)", "', self.text.get("agent/ctl/metrics.c", ""),
            re.M)}
        names |= {f"llmgw_agent_{name}_total" for name in re.findall(
            r"^    X\((\w+),", self.text.get("common/swim_counters.h", ""),
            re.M)}
        return names

    def _both_ways(self, kind, code, path, heading):
        written = set(re.findall(heading, self.text.get(path, ""), re.M))
        for name in sorted(code - written):
            self.say(path, 1, f"{kind} {name} is not documented")
        for name in sorted(written - code):
            self.say(path, 1, f"{kind} {name} is not in the code")

    def links(self):
        """A link to a file in this repository leads to one."""
        for path in self.of(".md"):
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)",
                                     self.text[path]):
                if "://" not in target and not (
                        (ROOT / path).parent / target).exists():
                    self.say(path, 1, f"a link to {target}, which is not")

    # --- Python

    def python(self):
        for path in self.of(".py"):
            try:
                tree = ast.parse(self.text[path], path)
            except SyntaxError as e:
                self.say(path, e.lineno or 1, f"syntax: {e.msg}")
                continue
            self._names_twice(path, tree)
            self._imports(path, tree)

    def _names_twice(self, path, tree):
        for scope in ast.walk(tree):
            if not isinstance(scope, (ast.Module, ast.ClassDef)):
                continue
            seen = {}
            for node in scope.body:
                if not isinstance(node, (ast.FunctionDef, ast.ClassDef,
                                         ast.AsyncFunctionDef)):
                    continue
                if node.name in seen and not node.decorator_list:
                    self.say(path, node.lineno,
                             f"{node.name} hides the one of line"
                             f" {seen[node.name]}")
                seen[node.name] = node.lineno
        is_test = re.match(r"t/e2e/\w+/test_\w+\.py$", path)
        if is_test and not any(isinstance(n, ast.FunctionDef)
                               and n.name.startswith("test_")
                               for n in tree.body):
            self.say(path, 1, "a test file without a test")

    def _imports(self, path, tree):
        used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    name = (alias.asname or alias.name).split(".")[0]
                    if name not in used:
                        self.say(path, node.lineno,
                                 f"imports {name} in vain")


if __name__ == "__main__":
    sys.exit(Lint().run())
