"""The guide page of the comparison with client-go, made of the checklist, the tests' markers and
the differences.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path

from tests.conformance.checklist import CHECKLIST, SECTIONS
from tests.conformance.differences import DIFFERENCES

__all__ = ["PAGE", "marked_tests", "render"]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "examples" / "guides" / "conformance.md"

HEAD = f"""\
# Conformance with client-go

client-go's `tools/cache`, its work queue and its leader election are the reference for behaviour.
Their own tests prove {len(CHECKLIST)} behaviours, which are listed below. A test of this project
proves the same behaviour, or the behaviour differs deliberately. `tests/conformance` checks that no
item is without either. `python -m tests.conformance` writes this page.

## Deliberate differences

| Items | Here | Consequence |
|---|---|---|
"""

TestName = tuple[str, str]
"""A path below ``tests/``, and a function."""


@cache
def marked_tests() -> dict[int, list[TestName]]:
    """Return the tests of each item, by the ``client_go`` markers in the sources of the tests."""
    found: defaultdict[int, list[TestName]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        source = path.read_text()
        if "client_go(" not in source:
            continue  # Parsing all test modules would take seconds.
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for number in _numbers(node):
                    found[number].append((str(path.relative_to(ROOT / "tests")), node.name))
    return found


def _numbers(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[int]:
    for each in node.decorator_list:
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "pytest.mark.client_go":
            yield from (ast.literal_eval(number) for number in each.args)


def render() -> str:
    """Return the page."""
    rows = [
        f"| {', '.join(map(str, each.items))} | {_code(each.here)} | {_code(each.consequence)} |\n"
        for each in DIFFERENCES
    ]
    return "".join([HEAD, *rows, *_sections()])


def _sections() -> Iterator[str]:
    tests = marked_tests()
    differing = {number for each in DIFFERENCES for number in each.items}
    numbers = count(1)
    for title, texts in SECTIONS.items():
        yield f"\n## {title}\n\n| Item | Behaviour of client-go | Tests here |\n|---|---|---|\n"
        for text in texts:
            number = next(numbers)
            links = [_link(*test) for test in tests[number]]
            if number in differing:
                links.append("differs, see above")
            yield f"| {number} | {text} | {'<br>'.join(links)} |\n"


def _link(path: str, name: str) -> str:
    return f"[{name.removeprefix('test_').replace('_', ' ')}](../../tests/{path})"


def _code(text: str) -> str:
    return text.replace("``", "`")
