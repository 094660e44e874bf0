"""Python: it compiles, no import is unused, no test hides another.

pytest imports test files by their names alone, so two of one name are an error
when both are collected.
"""

import ast
import re

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def check(tree):
    tests = {}
    for path in tree.of(".py"):
        first = tests.setdefault(re.sub(r"^t/.*/test_", "test_", path), path)
        if first != path:
            tree.say(path, 1, f"the name of {first}")
        try:
            parsed = ast.parse(tree.text[path], path)
        except SyntaxError as e:
            tree.say(path, e.lineno or 1, f"syntax: {e.msg}")
            continue
        for scope in ast.walk(parsed):
            if isinstance(scope, (ast.Module, ast.ClassDef)):
                _names_twice(tree, path, scope)
        _imports(tree, path, parsed)
        if re.match(r"t/(e2e/\w+|lint)/test_\w+\.py$", path) and not any(
                isinstance(n, FUNCTIONS) and n.name.startswith("test_")
                for n in parsed.body):
            tree.say(path, 1, "a test file without a test")


def _names_twice(tree, path, scope):
    seen = {}
    for node in scope.body:
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        if node.name in seen and not node.decorator_list:
            tree.say(path, node.lineno, f"{node.name} hides the one of line"
                                        f" {seen[node.name]}")
        seen[node.name] = node.lineno


def _imports(tree, path, parsed):
    used = {n.id for n in ast.walk(parsed) if isinstance(n, ast.Name)}
    for node in ast.walk(parsed):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                name = (alias.asname or alias.name).split(".")[0]
                if name not in used:
                    tree.say(path, node.lineno, f"imports {name} in vain")
