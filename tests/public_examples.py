"""The executed examples of public names: in docstrings, on Markdown pages, in ``examples/``.

The example of a docstring is the indented block after a line ``Example::``;
``test_docstring_examples.py`` runs each of them. A block of a page counts if a test asks for the
block, by a text in it or by its heading. A module of ``examples/`` counts if a test names it.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from docs.__main__ import MODULES
from tests.markdown_pages import MarkdownPage, find_blocks

__all__ = [
    "DocstringExample",
    "PublicName",
    "docstring_examples",
    "find_example",
    "identifiers",
    "public_names",
]

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "examples").rglob("*.md"))]
EXAMPLE = re.compile(r"^( *)Example::\n((?:\n|\1 {4}.*\n?)+)", re.MULTILINE)


BLOCK_FUNCTIONS = ("block", "block_under", "write_script")
"""The functions of ``MarkdownPage`` by which tests ask for a block."""


class PublicName(NamedTuple):
    """A public name and the page of the reference that has it."""

    page: str
    name: str

    def __str__(self) -> str:
        return f"{self.page}.{self.name}"


class DocstringExample(NamedTuple):
    """An example in the docstring of a module, a class or a function."""

    path: Path
    line: int
    """The line of the docstring's owner."""
    owner: str
    code: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} {self.owner}"


# -- names ---------------------------------------------------------------------------------------


def public_names() -> list[PublicName]:
    """Return each name of each page once, without modules."""
    found: list[PublicName] = []
    for page in (*MODULES, "aioinformer.errors"):
        module = import_module(page)
        names: list[str] = vars(module).get("__all__", [])
        found += [
            PublicName(page, name)
            for name in names
            if not isinstance(getattr(module, name), ModuleType)
        ]
    return found


# -- examples in docstrings ----------------------------------------------------------------------


@cache
def docstring_examples() -> tuple[DocstringExample, ...]:
    """Return the examples of all docstrings of the library."""
    modules = sorted((ROOT / "aioinformer").rglob("*.py"))
    return tuple(example for path in modules for example in _examples_of_module(path))


def _examples_of_module(path: Path) -> Iterator[DocstringExample]:
    text = path.read_text()
    if "Example::" not in text:
        return
    for node, owner, docstring in _docstrings(ast.parse(text)):
        for match in EXAMPLE.finditer(docstring + "\n"):
            code = textwrap.dedent(match[2]).strip("\n") + "\n"
            yield DocstringExample(path, getattr(node, "lineno", 1), owner, code)


def _docstrings(tree: ast.Module) -> Iterator[tuple[ast.AST, str, str]]:
    """Yield the owners of docstrings; a variable's docstring is the string after it."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if (docstring := ast.get_docstring(node)) is not None:
            yield node, getattr(node, "name", "module"), docstring
        for before, after in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(before, ast.Assign | ast.AnnAssign)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            ):
                target = before.target if isinstance(before, ast.AnnAssign) else before.targets[0]
                yield before, ast.unparse(target), textwrap.dedent(after.value.value)


# -- any example ---------------------------------------------------------------------------------


def identifiers(code: str) -> frozenset[str]:
    """Return the names, attributes and imported names in a program."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.name)
        elif isinstance(node, ast.arg):  # fixtures of pytest
            found.add(node.arg)
    return frozenset(found)


@cache
def _executed_examples() -> dict[str, frozenset[str]]:
    """Return the identifiers of each executed example, by its place."""
    found: dict[str, frozenset[str]] = {}
    for example in docstring_examples():
        found[str(example)] = found.get(str(example), frozenset()) | identifiers(example.code)
    tests = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    asked_for = {text for test in tests for text in _texts_of_blocks(test)}
    for path in PAGES:
        page = MarkdownPage(path)
        for code in find_blocks(page.text, "python"):
            if any(each in code or _is_under(page, each, code) for each in asked_for):
                found[f"{path.relative_to(ROOT)}: {code[:40]!r}"] = identifiers(code)
    all_tests = "\n".join(tests)
    for path in sorted((ROOT / "examples").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if module in all_tests or path.name in all_tests or path.parent.name in all_tests:
            found[str(path.relative_to(ROOT))] = identifiers(path.read_text())
    return found


def _texts_of_blocks(test: str) -> Iterator[str]:
    """Yield the texts by which a test module asks for blocks of pages."""
    if not any(f"{each}(" in test for each in BLOCK_FUNCTIONS):
        return
    for node in ast.walk(ast.parse(test)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called, first = ast.unparse(node.func).rpartition(".")[2], node.args[0]
        if called in BLOCK_FUNCTIONS and isinstance(first, ast.Constant):
            yield str(first.value)


def _is_under(page: MarkdownPage, heading: str, code: str) -> bool:
    return f"# {heading}\n" in page.text and code in page.section(heading)


def find_example(name: str) -> str | None:
    """Return the place of an executed example that uses ``name``; ``None`` if there is none."""
    examples = _executed_examples().items()
    return next((place for place, names in examples if name in names), None)
