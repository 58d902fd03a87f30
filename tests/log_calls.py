"""The lines that the library can log, read from its source."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
SKIPPED = ("_cli", "testing")
"""Packages that log for their own users: the command line prints, and a test shows what it logs."""

LEVELS = {
    **{each: each.upper() for each in ("debug", "info", "warning", "error", "critical")},
    "failed": "ERROR",
    "SafeCall": "ERROR",
    "exception": "ERROR",
    "warn": "WARNING",
    "end": "INFO",
    "log": "",
}
"""The level of each method that logs; empty for ``log``, whose level the caller chooses."""

PLACEHOLDER = re.compile(r"%[.\d]*[a-z]")
LOGS = re.compile(r"(^|\.)_?(log|logger|failures|hook_failures|outage|refusal|rejections)$")
"""The objects with these methods: loggers, and what limits or ends the lines of others."""

ANY = "any"
"""Stands for the logger of a function that logs for several."""

Lines = Mapping[str, Mapping[str, set[str]]]


def find_lines() -> Lines:
    """Return the levels of each line by its logger. Three dots stand for what varies."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    trees = {path: ast.parse(path.read_text()) for path in _sources()}
    named = {path: name for path, tree in trees.items() if (name := _logger_of(tree))}
    for path, tree in trees.items():
        logger = named.get(path) or _imported_logger(tree, named) or ANY
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for level, line in _lines_of(function):
                    found[logger][line].add(level)
    return found


def _sources() -> Iterator[Path]:
    package = ROOT / "aioinformer"
    for path in package.rglob("*.py"):
        if path.relative_to(package).parts[0] not in SKIPPED:
            yield path


def _logger_of(tree: ast.AST) -> str:
    """Return the name of a module's logger."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "logging.getLogger":
            return ast.unparse(call.args[0]).strip("'")
    return ""


def _imported_logger(tree: ast.AST, named: Mapping[Path, str]) -> str:
    for each in ast.walk(tree):
        if isinstance(each, ast.ImportFrom) and any(name.name == "log" for name in each.names):
            return named[ROOT / f"{str(each.module).replace('.', '/')}.py"]
    return ""


def _lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str]]:
    """Yield the level and the text of each line that a function logs."""
    for call in ast.walk(function):
        if not isinstance(call, ast.Call):
            continue
        owner, _, method = ast.unparse(call.func).rpartition(".")
        if method != "SafeCall" and not (method in LEVELS and LOGS.search(owner)):
            continue
        suffix = ", %.1f s after the first warning" if method == "end" else ""
        arguments = call.args[1:] if method in ("failed", "log", "SafeCall") else call.args
        for text in _texts(arguments[0], function):
            line = PLACEHOLDER.sub("...", text + suffix).replace("\n", " ")
            yield LEVELS[method], re.sub(r"\.{4,}", "...", line)


def _texts(argument: ast.expr, function: ast.AST) -> Iterator[str]:
    """Yield the text of an argument, or of each assignment to its name in the function."""
    if isinstance(argument, ast.Constant):
        yield str(argument.value)
    elif isinstance(argument, ast.Name):
        for each in ast.walk(function):
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == argument.id:
                yield from _texts(each.value, function)
