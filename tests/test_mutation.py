"""The list of equivalent changes belongs to the sources as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.equivalent import EQUIVALENT, find_reason

CORE = Path(__file__).parents[1] / "aioinformer" / "_core"


@pytest.mark.parametrize("module", EQUIVALENT)
def test_each_equivalent_change_removes_a_line_that_the_module_has(module: str) -> None:
    source = CORE.joinpath(*module.split(".")).with_suffix(".py").read_text()
    starts = tuple(f"- {line.strip()} " for line in source.splitlines() if line.strip())
    changes = [change for each in EQUIVALENT[module] for change in each.changes]
    assert [change for change in changes if not change.startswith(starts)] == []


def test_a_change_of_the_type_of_a_cast_is_equivalent() -> None:
    assert find_reason("cache.store", '- x = cast("int", y) + x = cast(None, y)')
    assert find_reason("cache.store", '- x = cast("int", y) + x = cast("int", None)') is None


def test_none_in_the_place_of_another_false_value_is_left_to_the_type_check() -> None:
    assert find_reason("cache.store", "- self.closed = False + self.closed = None")
    assert find_reason("cache.store", '- self.name = "" + self.name = None')
    assert find_reason("cache.store", "- run(key, again=False) + run(key, again=None)")
    assert find_reason("cache.store", "- self.closed = False + self.closed = True") is None
    assert find_reason("cache.store", "- self.limit = 8 + self.limit = None") is None
