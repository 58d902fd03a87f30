"""The guide that compares operators: its numbers, its quotations, and one of the programs."""

from __future__ import annotations

import ast
import asyncio
import re
import runpy
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from aioinformer import Client
from aioinformer.testing import ApiServer, Cluster
from tests.examples.site_operator import Purges, Sites
from tests.markdown_pages import MarkdownPage, find_blocks

ROOT = Path(__file__).parents[2]
GUIDE = MarkdownPage(ROOT / "examples" / "guides" / "operators.md")
APP = ROOT / "examples" / "operator_app"
COMPARED = ROOT / "examples" / "operators_compared"
PROGRAMS = {
    "With Operator": (APP / "app.py", APP / "__main__.py"),
    "Without Operator": (COMPARED / "without_operator.py",),
    "kopf": (COMPARED / "with_kopf.py",),
    "controller-runtime": (COMPARED / "controller_runtime" / "main.go",),
    "kube-rs": (COMPARED / "kube_rs" / "src" / "main.rs",),
}
COMMENT = re.compile(r"\s*(#(?!\[).*|//.*)?$")


def quotations_of(heading: str) -> list[str]:
    section = GUIDE.section(heading)
    return [each for name in ("python", "go", "rust") for each in find_blocks(section, name)]


def count_lines(path: Path) -> int:
    """Return the number of lines without blank lines, comments and docstrings."""
    text = path.read_text()
    if path.suffix == ".py":
        docstring = ast.get_docstring(ast.parse(text), clean=False)
        text = text.replace(f'"""{docstring}"""', "") if docstring else text
    return sum(not COMMENT.fullmatch(line) for line in text.splitlines())


@pytest.mark.parametrize("heading", PROGRAMS)
def test_the_table_has_the_lines_of_each_program(heading: str) -> None:
    program, *others = PROGRAMS[heading]
    link = program.relative_to(ROOT / "examples")
    (shown,) = re.findall(rf"\(\.\./{re.escape(str(link))}\) \| (\d+) \|", GUIDE.text)
    assert count_lines(program) + sum(map(count_lines, others)) == int(shown)


def test_the_table_has_the_lines_of_the_types_in_go() -> None:
    ((types, generated),) = re.findall(r"(\d+) lines, (\d+) more generated", GUIDE.text)
    folder = COMPARED / "controller_runtime"
    assert count_lines(folder / "types.go") == int(types)
    assert count_lines(folder / "deepcopy.go") == int(generated)


@pytest.mark.parametrize("heading", PROGRAMS)
def test_the_quoted_lines_are_those_of_the_program(heading: str) -> None:
    program = PROGRAMS[heading][0].read_text()
    quotations = quotations_of(heading)
    assert quotations
    for each in quotations:
        assert is_quotation(each, program), each


def is_quotation(quoted: str, program: str) -> bool:
    """Return True if a program has these lines, at any indentation and with any blank lines."""
    wanted, lines = filled_lines(quoted), filled_lines(program)
    parts = (lines[start : start + len(wanted)] for start in range(len(lines)))
    return any(dedent("\n".join(part)).splitlines() == wanted for part in parts)


def filled_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


async def test_the_program_without_an_operator_works() -> None:
    names: dict[str, Any] = runpy.run_path(str(PROGRAMS["Without Operator"][0]))
    cluster, purges, controllers = Cluster(), Purges(), list[Any]()
    sites = Sites(cluster)

    def is_ready() -> bool:
        site = sites.get("tea")
        return bool(site and site.get("status")) and sites.ready("tea")["status"] == "True"

    async with ApiServer(cluster) as server, Client(server.url) as client:
        lead = names["lead"](client, purges, "one", None, controllers)
        task = asyncio.create_task(lead)
        sites.create("tea", page="hot", pods=2)
        await until(lambda: sites.deployment("tea") is not None)
        sites.report_available("tea")
        await until(is_ready)
        sites.delete("tea")
        await until(lambda: sites.get("tea") is None)
        assert purges.names == ["tea"]
        controllers[0].stop()
        await task


async def until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)
