"""Includes: which room may include which, by path, and no circles.

The rules are the table in docs/ARCHITECTURE.md: its columns "room" and "may
include" are read here, so the document always says what is checked.  Its paths
begin at a root, like those of includes.  A room is a folder with everything
below it, or one file that may include more than its folder.  A room that
contains other rooms (agent/, the module) has only the files directly in it: a
new folder there needs its own row.
"""

import re

from tree import folder

MODULE = "ngx_http_llmgw_module"
CORE = MODULE + "/core"
TABLE = "docs/ARCHITECTURE.md"

# The roots where paths of includes begin.
ROOTS = ("", "agent/", MODULE + "/")

# Generated headers, and the rooms that they belong to.
GENERATED = {".pb-c.h": "proto", "dashboard.h": MODULE + "/pages",
             "comparison.h": "sim/report/compare"}


class Include:
    def __init__(self, path, line, quoted, header):
        self.path, self.line = path, line
        self.quoted, self.header = quoted, header
        self.target = None          # the file, if it is in this repository
        self.is_inner = header.endswith("_inner.h")

    @property
    def edge(self):
        return folder(self.path), folder(self.target)


def check(tree):
    rooms = Rooms(tree)
    includes = list(_includes(tree))
    for include in includes:
        rooms.judge(include)
    ours = [i for i in includes if i.target]
    _circles(tree, ours, "folders", lambda i: i.edge)
    _circles(tree, ours, "files", lambda i: (i.path, i.target))
    _objects(tree)


def _includes(tree):
    for path in tree.of(".c", ".h"):
        for i, line in tree.lines(path):
            got = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
            if got:
                include = Include(path, i, got.group(1) == '"', got.group(2))
                include.target = _target(tree, include)
                yield include


def _target(tree, include):
    if not include.quoted or include.header.endswith(tuple(GENERATED)):
        return None
    found = [root + include.header for root in ROOTS
             if root + include.header in tree.files]
    if not found:
        tree.say(include.path, include.line,
                 f"{include.header} is not a path from a root")
    elif len(found) > 1:
        tree.say(include.path, include.line,
                 f"{include.header} may be {' or '.join(found)}")
    return found[0] if found else None


def _is_inside(include):
    """Only in its folder, and in the one that mirrors it in t/unit."""
    at, inner = include.edge
    return at in (inner, "t/unit/" + inner.removeprefix(MODULE + "/"))


class Rooms:
    def __init__(self, tree):
        self.tree = tree
        self.may = {}               # room -> rooms, or None for all
        self.homeless = set()       # folders already reported
        for i, room, may in self._rows():
            allowed = None if may == "all" else self._paths(i, may)
            self.may |= {path: allowed for path in self._paths(i, room)}
        if not self.may:
            tree.say(TABLE, 1, "no table with the columns room, may include")

    def _rows(self):
        columns = None
        for i, line in self.tree.lines(TABLE):
            cells = [c.strip() for c in line.strip("| ").split("|")]
            if not line.startswith("|"):
                columns = None
            elif "room" in cells and "may include" in cells:
                columns = cells.index("room"), cells.index("may include")
            elif columns and not line.startswith("|--"):
                yield i, cells[columns[0]], cells[columns[1]]

    def _paths(self, i, cell):
        """The names in backticks in a cell, and the word nginx."""
        paths = {"nginx"} if "nginx" in re.sub(r"`[^`]*`", "", cell) else set()
        for name in re.findall(r"`([^`]+)`", cell):
            found = [root + name.rstrip("/") for root in ROOTS
                     if self.tree.has(root + name)]
            if len(found) != 1:
                self.tree.say(TABLE, i, f"{name} is not there" if not found
                              else f"{name} may be {' or '.join(found)}")
            paths |= set(found)
        return paths

    def home(self, path):
        """The room whose folder it is in; None: that folder has no row."""
        at = folder(path)
        while at and at not in self.may:
            at = folder(at)
        is_parted = any(room.startswith(at + "/") and room
                        not in self.tree.files for room in self.may)
        return at if at and (folder(path) == at or not is_parted) else None

    def allowed(self, path):
        """The rooms that a file may include; None: all."""
        home = self.home(path)
        may = self.may.get(path, self.may[home])
        return None if may is None else may | {home}

    def forbids(self, include):
        if not (include.target and self.home(include.path)
                and self.home(include.target)):
            return False
        allowed = self.allowed(include.path)
        if include.is_inner and not _is_inside(include):
            return True
        return (allowed is not None
                and self.home(include.target) not in allowed)

    def judge(self, include):
        home = self.home(include.path)
        if home is None:
            self._judge_homeless(include)
        elif self.forbids(include):
            self._say(include, f"{include.header} stays in its folder"
                      if include.is_inner
                      else f"{home}/ may not include {include.header}")
        elif not include.target:
            self._judge_outside(include, home)

    def _say(self, include, what):
        self.tree.say(include.path, include.line, what)

    def _judge_homeless(self, include):
        at = folder(include.path)
        if at not in self.homeless:
            self.homeless.add(at)
            self._say(include, f"{at}/ has no row in {TABLE}")

    def _judge_outside(self, include, home):
        """Includes of generated headers and of nginx's."""
        allowed = self.allowed(include.path)
        if allowed is None:
            return
        room = next((room for end, room in GENERATED.items()
                     if include.header.endswith(end)), home)
        if room not in allowed:
            self._say(include, f"{home}/ may not include {include.header}")
        if include.header.startswith("ngx_") and "nginx" not in allowed:
            self._say(include, f"{home}/ does not know nginx"
                               f" ({include.header})")


# --- circles

def _graph(edges):
    graph = {}
    for a, b in edges:
        graph.setdefault(a, set()).add(b)
        graph.setdefault(b, set())
    return graph


def _reached(graph, start):
    seen, todo = {start}, [start]
    while todo:
        for node in graph[todo.pop()] - seen:
            seen.add(node)
            todo.append(node)
    return seen


def _way(graph, start, end):
    """The nodes of a shortest path from start to end, both included."""
    came, todo = {start: None}, [start]
    for node in todo:
        for other in sorted(graph[node]):
            if other not in came:
                came[other] = node
                todo.append(other)
    way = [end]
    while came.get(way[-1]):
        way.append(came[way[-1]])
    return way[::-1]


def _circles(tree, includes, of_what, edge):
    """One finding for each set of nodes that reach each other."""
    graph = _graph(edge(i) for i in includes if edge(i)[0] != edge(i)[1])
    told = set()
    for include in includes:
        a, b = edge(include)
        if a in told or a == b or b not in graph.get(a, ()):
            continue
        if a in _reached(graph, b):
            told |= {n for n in _reached(graph, a)
                     if a in _reached(graph, n)}
            tree.say(include.path, include.line,
                     f"include circle of {of_what}: "
                     + " -> ".join([a, *_way(graph, b, a)]))


# --- objects

def _objects(tree):
    """nginx's build names the object of an addon by folder and file."""
    seen = {}
    for path in tree.of(".c"):
        if path.startswith((MODULE + "/", "proto/")):
            pair = "/".join(path.split("/")[-2:])
            if pair in seen:
                tree.say(path, 1, f"the same object as {seen[pair]}"
                                  f" in nginx's build: {pair}")
            seen[pair] = path
