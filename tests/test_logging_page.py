"""The page about logging lists every line that the library logs, and no other."""

from __future__ import annotations

import re

import pytest

from tests.log_calls import ANY, ROOT, find_lines

PAGE = (ROOT / "examples" / "guides" / "logging.md").read_text()
LINES = find_lines()
ROW = re.compile(r"\| ([A-Z, ]+) \| `(.+?)` \| (.+) \|")
OWN_LINES = "aioinformer.reconcile"
"""The logger of ``ctx.log``, whose lines are the program's."""


def rows(logger: str) -> dict[str, set[str]]:
    """Return the levels of each line that the page lists for a logger."""
    heading = "Any of these loggers" if logger == ANY else f"`{logger}`"
    _, _, section = PAGE.partition(f"\n### {heading}\n")
    found = ROW.findall(section.partition("\n### ")[0])
    assert all(meaning[0].isupper() or meaning[0] in "`[" for _, _, meaning in found)
    return {line: set(levels.split(", ")) for levels, line, _ in found}


@pytest.mark.parametrize("logger", sorted(LINES))
def test_the_page_lists_each_line_of_a_logger_with_its_levels(logger: str) -> None:
    listed = rows(logger)
    assert sorted(listed) == sorted(LINES[logger])
    for line, levels in LINES[logger].items():
        known = levels - {""}
        assert listed[line] >= known, line
        assert listed[line] == known or "" in levels, line


def test_the_page_lists_each_logger_and_no_other() -> None:
    named = set(re.findall(r'getLogger\(\s*"([\w.]+)"', _source()))
    listed = set(re.findall(r"^### `([\w.]+)`$", PAGE, re.MULTILINE))
    assert listed == named - {OWN_LINES, "aioinformer"}
    assert f"`{OWN_LINES}`" in PAGE


def test_no_logger_has_the_name_of_a_private_module() -> None:
    assert "getLogger(__name__)" not in _source()


def _source() -> str:
    package = ROOT / "aioinformer"
    skipped = {package / "_cli", package / "testing"}
    paths = [each for each in package.rglob("*.py") if not skipped & set(each.parents)]
    return "\n".join(each.read_text() for each in paths)
