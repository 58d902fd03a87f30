"""The list of equivalent changes."""

from __future__ import annotations

import re
from pathlib import Path

from tests.mutation.equivalent import EQUIVALENT, find_outdated, find_reason

CORE = Path(__file__).parents[1] / "aioinformer" / "_core"


def test_each_equivalent_change_belongs_to_a_module_and_has_a_reason() -> None:
    for module, listed in EQUIVALENT.items():
        assert CORE.joinpath(*module.split(".")).with_suffix(".py").is_file(), module
        assert all(each.reason and each.changes for each in listed)


def test_a_change_of_a_line_that_was_rewritten_is_outdated() -> None:
    (change,) = EQUIVALENT["cache.store"][0].changes
    line = change.removeprefix("- ").partition(" + ")[0]
    assert find_outdated("cache.store", f"x = 1\n    {line}\n") == []
    assert find_outdated("cache.store", "x = 1\n") == [change]


def test_a_change_of_the_type_of_a_cast_is_equivalent() -> None:
    assert find_reason("cache.store", '- x = cast("int", y) + x = cast(None, y)')
    assert find_reason("cache.store", '- x = cast("int", y) + x = cast("int", None)') is None


def test_a_change_of_a_false_value_to_none_is_equivalent() -> None:
    assert find_reason("cache.store", "- self.closed = False + self.closed = None")
    assert find_reason("cache.store", '- self.name = "" + self.name = None')
    assert find_reason("cache.store", "- run(key, again=False) + run(key, again=None)")
    assert find_reason("cache.store", "- self.closed = False + self.closed = True") is None
    assert find_reason("cache.store", "- self.limit = 8 + self.limit = None") is None


def test_the_guide_names_modules_of_the_core_once() -> None:
    guide = CORE.parents[1].joinpath("examples", "guides", "contributing.md").read_text()
    section = guide.split("## Mutation tests")[1].split("\n## ")[0]
    table = section.partition("|---|")[2]
    named = [words.split()[-1] for words in re.findall(r"`([^`\n]+)`", table)]
    modules = {
        ".".join(path.relative_to(CORE).with_suffix("").parts)
        for path in CORE.rglob("*.py")
        if path.stem != "__init__"
    }

    assert set(named) <= modules
    assert len(named) == len(set(named))
