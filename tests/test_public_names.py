"""Every public name can be imported, is documented on one page, and is known to type checkers."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import aioinformer
from docs.__main__ import PAGES
from tests.typing import public_names, star_import

STUB = Path(aioinformer.__file__).with_suffix(".pyi")


def page_names(page: str) -> list[str]:
    names: list[str] = vars(import_module(f"aioinformer.{page}"))["__all__"]
    return names


def test_every_public_name_can_be_imported() -> None:
    for name in public_names.__all__:
        assert getattr(aioinformer, name) is getattr(public_names, name)


def test_the_package_documents_the_names_that_a_star_import_gives() -> None:
    assert aioinformer.__all__ == sorted(star_import.__all__)


def test_each_other_name_is_on_one_page() -> None:
    on_pages = sorted(name for page in PAGES for name in page_names(page))
    assert on_pages == sorted(set(public_names.__all__) - set(aioinformer.__all__))


@pytest.mark.parametrize("page", PAGES)
def test_the_names_of_a_page_are_those_of_the_package(page: str) -> None:
    module = import_module(f"aioinformer.{page}")
    assert module.__doc__
    assert len(page_names(page)) == len(set(page_names(page)))
    for name in page_names(page):
        assert getattr(module, name) is getattr(aioinformer, name)


def test_type_checkers_see_the_names_that_the_package_loads() -> None:
    plain: dict[str, object] = {}
    pages: list[str] = []
    documented: list[str] = []
    for statement in ast.parse(STUB.read_text()).body:
        match statement:
            case ast.ImportFrom(module=str(module), names=[ast.alias(name="*")]):
                pages.append(module.removeprefix("aioinformer."))
            case ast.ImportFrom(module=str(module), names=names):
                plain |= {alias.name: getattr(import_module(module), alias.name) for alias in names}
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                documented = ast.literal_eval(value)
            case _:
                pytest.fail(f"unexpected statement in {STUB.name}: {ast.unparse(statement)}")
    assert sorted(documented) == aioinformer.__all__
    assert plain == {name: getattr(aioinformer, name) for name in documented}
    assert pages == list(PAGES)


def test_names_are_listed_before_they_are_loaded() -> None:
    code = "import aioinformer, sys; print(*dir(aioinformer)); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, modules = (set(line.split()) for line in done.stdout.splitlines())
    assert set(public_names.__all__) <= names
    ours = {module for module in modules if module.partition(".")[0] == "aioinformer"}
    assert ours == {"aioinformer"}
    assert not modules & {"asyncio", "dataclasses", "inspect", "logging", "msgspec", "typing"}


def test_the_errors_are_loaded_by_their_first_use() -> None:
    code = "import aioinformer; print(aioinformer.errors.UsageError.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "UsageError\n"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'aioinformer' has no attribute 'Infromer'"):
        getattr(aioinformer, "Infromer")  # noqa: B009  # type checkers reject the plain form
