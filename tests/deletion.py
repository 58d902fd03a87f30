"""Delete features, and run everything else: ``python -m tests.deletion [FEATURE ...]``.

In a copy of the project, the folder of a feature is deleted with its tests, and with what the tree
declares to stand on it. Every other module must be imported, and pass its tests. The heart imports
no feature (an import contract), so it is tested once, without all of them; then each feature is
deleted alone, and the tests of all others run.

Tests outside of a feature's folder use the feature as well. What names something of the feature is
cut: an import, a function, a constant, or a row of a table that names one of its modules, a public
name, a keyword, or what is cut itself.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

import aioinformer

ROOT = Path(__file__).parent.parent

STANDS_ON = {
    "cachefile": (),
    "controllers": (),
    "eventrecorder": (),
    "leaderelection": (),
    "namespaces": (),
    "operator": ("controllers", "eventrecorder", "leaderelection"),
    "shardgroup": ("leaderelection", "sharding"),
    "sharding": (),
    "verification": (),
}
"""The features, and for each one the features that it imports at run time."""

PARTS = {
    "_cli/shards": ("leaderelection", "shardgroup", "sharding"),
}
"""Folders of other packages that can't be imported without these features."""

KEYWORDS = {
    "cachefile": ("cache=", "durable="),
    "namespaces": ("namespaces=", ".add_namespace"),
    "sharding": ("shard=",),
    "shardgroup": ("shards=",),
    "verification": (".verify",),
}
"""What belongs to a feature, but to no module of it: options and methods of informers."""

OTHER_FOLDERS = (
    *("benchmarks", "conformance", "examples", "mutation", "simulation", "typing"),
    *("apiserver", "browser", "clients", "fuzzing"),
)
"""Folders of tests of the whole project, of its pages, or with a mark of their own."""

MAX_CUT = 0.2
"""The share of its tests that a run may cut."""


def closure(features: Iterable[str]) -> list[str]:
    """Return features, and those that stand on them."""
    found = set(features)
    while more := {each for each, base in STANDS_ON.items() if found & set(base)} - found:
        found |= more
    return sorted(found)


def module_name(path: Path) -> str:
    """Return the name of a module by its path below the project's root."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def module_of(name: str) -> str:
    """Return the module behind a public name of ``aioinformer``."""
    found: dict[str, str] = vars(aioinformer)["_MODULE_OF"]
    return found.get(name, f"aioinformer.{name}")


def imported_names(node: ast.AST) -> Iterator[str]:
    """Yield the modules, and their names, that an import statement names."""
    match node:
        case ast.Import(names=names):
            yield from (each.name for each in names)
        case ast.ImportFrom(module="aioinformer", names=names):
            yield from (module_of(each.name) for each in names)
        case ast.ImportFrom(module=str(module), names=names):
            yield module
            yield from (f"{module}.{each.name}" for each in names)
        case _:
            pass


# -- what tests use ----------------------------------------------------------------------------


def used_names(node: ast.AST, module: str) -> Iterator[str]:
    """Yield ``keyword=``, ``.attribute``, and the full names of all else that a node names."""
    has_informers = not module.startswith("tests.testing.")  # its ``shard=`` is the server's
    packages = [module.rsplit(".", count)[0] for count in range(1, module.count(".") + 1)]
    for each in ast.walk(node):
        match each:
            case ast.Name(id=name):
                yield f"{module}.{name}"
            case ast.arg(arg=name):
                yield f"{module}.{name}"
                yield from (f"{package}.conftest.{name}" for package in packages)
            case ast.Attribute(value=ast.Name(id="aioinformer"), attr=name):
                yield module_of(name)
            case ast.Attribute(attr=name):
                yield f".{name}"
            case ast.keyword(arg=str(name)) if has_informers:
                yield f"{name}="
            case ast.Dict(keys=keys) if has_informers:
                constants = [key.value for key in keys if isinstance(key, ast.Constant)]
                yield from (f"{key}=" for key in constants if isinstance(key, str))
            case ast.Constant(value=str(text)) if "aioinformer" in text:
                yield from re.findall(r"aioinformer[\w.]+\b", text)
                if "import " in text:  # a program for another process
                    yield from map(module_of, re.findall(r"\b[A-Z]\w+", text))
            case _:
                yield from imported_names(each)


def bound_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement of a module defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=[name]) | ast.ImportFrom(names=[name]):
            yield name.asname or name.name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case _:
            pass


class SplitImports(ast.NodeTransformer):
    """Makes an import statement of each imported name."""

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        return [ast.Import([each]) for each in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        return [ast.ImportFrom(node.module, [each], node.level) for each in node.names]


def is_test(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def count_tests(root: Path, folders: Iterable[str]) -> int:
    """Return how many test functions the test modules of some folders have."""
    paths = [path for each in folders for path in (root / "tests" / each).rglob("test_*.py")]
    return sum(is_test(node) for path in paths for node in ast.parse(path.read_text()).body)


# -- cutting -----------------------------------------------------------------------------------


def tables(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the tables of a statement: the value of a constant, the rows of ``parametrize``."""
    match statement:
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            yield value
        case ast.FunctionDef(decorator_list=found) | ast.AsyncFunctionDef(decorator_list=found):
            calls = [each for each in found if isinstance(each, ast.Call)]
            yield from (each.args[1] for each in calls if len(each.args) > 1)
        case _:
            pass


def cut_rows(table: ast.expr, is_gone: Callable[[ast.AST], bool]) -> bool:
    """Cut the rows that are gone, unless all are; return True if some were cut."""
    match table:
        case ast.Dict(keys=keys, values=values):
            rows = list(zip(keys, values, strict=True))
            left = [row for row in rows if not any(each and is_gone(each) for each in row)]
            if left:
                table.keys, table.values = [key for key, _ in left], [value for _, value in left]
            return 0 < len(left) < len(rows)
        case ast.List(elts=rows) | ast.Tuple(elts=rows) | ast.Set(elts=rows):
            kept = [each for each in rows if not is_gone(each)]
            if kept:
                table.elts = kept
            return 0 < len(kept) < len(rows)
        case _:
            return False


class Module:
    """A module of the tests."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self._source = path.read_text()
        self._body: list[ast.stmt] = SplitImports().visit(ast.parse(self._source)).body
        self._used: dict[ast.AST, frozenset[str]] = {}
        self._is_cut = False
        self._changed = set[ast.stmt]()

    def cut(self, gone: set[str]) -> None:
        """Cut what uses what is gone, and add its names to it."""
        self._body = self._left_of(self._body, gone)

    def write(self) -> None:
        if self._is_cut:
            self.path.write_text("\n".join(map(self._text_of, self._body)))

    def _text_of(self, statement: ast.stmt) -> str:
        """Return the source: as it was, if possible, since tests find texts of it in tracebacks."""
        if statement in self._changed or isinstance(statement, ast.Import | ast.ImportFrom):
            return ast.unparse(statement)
        decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(each.lineno for each in decorators)])
        return "\n".join(self._source.splitlines()[first - 1 : statement.end_lineno])

    def _left_of(self, body: Iterable[ast.stmt], gone: set[str]) -> list[ast.stmt]:
        return [left for each in body for left in self._left(each, gone)]

    def _left(self, statement: ast.stmt, gone: set[str]) -> list[ast.stmt]:
        def is_gone(node: ast.AST) -> bool:
            if node not in self._used:
                self._used[node] = frozenset(used_names(node, self.name))
            return not gone.isdisjoint(self._used[node])

        if not is_gone(statement):
            return [statement]
        self._is_cut = True
        if isinstance(statement, ast.If):  # TYPE_CHECKING
            statement.body = self._left_of(statement.body, gone)
            self._note_change(statement)
            return [statement] if statement.body else []
        if any(cut_rows(each, is_gone) for each in tables(statement)):
            self._note_change(statement)
            return self._left(statement, gone)
        gone.update(f"{self.name}.{each}" for each in bound_names(statement))
        return []

    def _note_change(self, statement: ast.stmt) -> None:
        self._changed.add(statement)
        self._used.pop(statement)


# -- runs --------------------------------------------------------------------------------------


def copy_project(target: Path) -> None:
    """Copy the files of the project, as they are now. The bytecode of the last run stays."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def delete_features(root: Path, features: Collection[str]) -> set[str]:
    """Delete features and what stands on them; return the names of the modules."""
    folders = [*features, *(part for part, base in PARTS.items() if set(base) & set(features))]
    parts = [root / "aioinformer" / each for each in folders]
    parts += [root / "tests" / each.removeprefix("_") for each in folders]
    gone = {module_name(path.relative_to(root)) for each in parts for path in each.rglob("*.py")}
    for each in parts:
        shutil.rmtree(each)
    return gone


def cut_tests(root: Path, gone: set[str]) -> None:
    """Cut what uses what is gone out of all tests."""
    paths = sorted((root / "tests").rglob("*.py"))
    modules = [Module(path, module_name(path.relative_to(root))) for path in paths]
    known = 0
    while known < len(gone):
        known = len(gone)
        for each in modules:
            each.cut(gone)
    for each in modules:
        each.write()


def run_python(root: Path, *arguments: str) -> str:
    """Run Python in a copy, and return what it prints; exit if it fails."""
    environment = os.environ | {"PYTHONPATH": str(root)}
    command = [sys.executable, "-P", *arguments]
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(done.stdout[-20_000:], done.stderr[-5_000:])
        raise SystemExit("what is left fails")
    return done.stdout


IMPORT_ALL = """
import pkgutil, importlib, aioinformer
for each in pkgutil.walk_packages(aioinformer.__path__, "aioinformer."):
    importlib.import_module(each.name)
"""


def run(root: Path, features: Collection[str], folders: Collection[str]) -> None:
    """Delete features in a copy, import the rest, and run the tests of these folders."""
    began = time.monotonic()
    print(f"without {', '.join(features)}: ", end="", flush=True)
    copy_project(root)
    gone = delete_features(root, features)
    run_python(root, "-c", IMPORT_ALL)
    before = count_tests(root, folders)
    cut_tests(root, gone.union(*(KEYWORDS.get(each, ()) for each in features)))
    cut = before - count_tests(root, folders)
    workers = len(os.sched_getaffinity(0))  # no more: a blocked event loop fails a test
    options = ("-q", "-p", "no:cacheprovider", "-n", str(workers))
    output = run_python(root, "-m", "pytest", *options, *(f"tests/{each}" for each in folders))
    seconds = time.monotonic() - began
    print(f"{output.splitlines()[-1]}; {cut} of {before} tests cut; {seconds:.0f} s")
    if cut > before * MAX_CUT:
        raise SystemExit("too few tests are left: what cuts so many?")


def main(chosen: Collection[str]) -> None:
    """Delete all features at once, and then each one; or those of ``chosen`` alone."""
    folders = {path.parent.name for path in ROOT.glob("tests/*/__init__.py")}
    with tempfile.TemporaryDirectory() as copy:
        if not chosen:
            run(Path(copy), list(STANDS_ON), sorted(folders.difference(STANDS_ON, OTHER_FOLDERS)))
        for feature in chosen or STANDS_ON:
            gone = closure([feature])
            run(Path(copy), gone, sorted({*STANDS_ON, "informers"}.difference(gone)))


if __name__ == "__main__":
    main(sys.argv[1:])
