"""What ``tests.deletion`` declares about the imports between packages is true."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.deletion import PARTS, ROOT, STANDS_ON, imported_names

PACKAGE = ROOT / "aioinformer"


def run_time_imports(node: ast.AST, *, in_functions: bool) -> Iterator[str]:
    """Yield what a module imports, except for types alone."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                pass
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not in_functions:
                pass
            case _:
                yield from imported_names(child)
                yield from run_time_imports(child, in_functions=in_functions)


def imported_features(paths: Iterable[Path], *, in_functions: bool) -> set[str]:
    """Return the features that some modules import at run time."""
    trees = [ast.parse(path.read_text()) for path in paths]
    names = [name for each in trees for name in run_time_imports(each, in_functions=in_functions)]
    return {name.split(".")[1] for name in names if name.startswith("aioinformer.")} & {*STANDS_ON}


@pytest.mark.parametrize("feature", STANDS_ON)
def test_a_feature_imports_those_features_that_it_stands_on_and_no_others(feature: str) -> None:
    found = imported_features((PACKAGE / feature).rglob("*.py"), in_functions=True)
    assert found - {feature} == set(STANDS_ON[feature])


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_another_package_imports_those_features_that_it_stands_on(part: str) -> None:
    found = imported_features((PACKAGE / part).rglob("*.py"), in_functions=True)
    assert found == set(PARTS[part])


def test_all_other_modules_can_be_imported_without_the_features() -> None:
    """They may import a feature in a function: for the programs that ask for it."""
    alone = [PACKAGE / each for each in (*STANDS_ON, *PARTS)]
    others = [
        path for path in PACKAGE.rglob("*.py") if not {path, *path.parents}.intersection(alone)
    ]
    assert not imported_features(others, in_functions=False)
