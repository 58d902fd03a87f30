"""The guide that compares operators: its numbers, and the two programs that run here."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from aioinformer import Client
from aioinformer.testing import ApiServer, Cluster
from tests.examples.site_operator import Purges, Sites
from tests.markdown_pages import MarkdownPage, find_blocks

ROOT = Path(__file__).parents[2]
GUIDE = MarkdownPage(ROOT / "examples" / "guides" / "operators.md")
SECTIONS = ("With Operator", "Without Operator", "kopf", "controller-runtime", "kube-rs")
COMMENT = re.compile(r"\s*(#(?!\[).*|//.*)?$")


def blocks_of(heading: str) -> list[str]:
    section = GUIDE.section(heading)
    return [each for name in ("python", "go", "rust") for each in find_blocks(section, name)]


def count_lines(block: str, *, python: bool) -> int:
    """Return the number of lines without blank lines, comments and docstrings."""
    if python:
        module = ast.parse(block)
        docstring = ast.get_docstring(module, clean=False)
        block = block.replace(f'"""{docstring}"""', "") if docstring else block
    return sum(not COMMENT.fullmatch(line) for line in block.splitlines())


@pytest.mark.parametrize("heading", SECTIONS)
def test_the_table_has_the_lines_of_each_program(heading: str) -> None:
    anchor = heading.lower().replace(" ", "-")
    (shown,) = re.findall(rf"\(#{anchor}\) \| (\d+) \|", GUIDE.text)
    python = heading not in ("controller-runtime", "kube-rs")
    assert sum(count_lines(each, python=python) for each in blocks_of(heading)) == int(shown)


def test_the_operator_is_that_of_the_example() -> None:
    app, main = blocks_of("With Operator")
    folder = ROOT / "examples" / "operator_app"
    assert (folder / "app.py").read_text() == app
    assert (folder / "__main__.py").read_text().endswith(main)


async def test_the_program_without_an_operator_works() -> None:
    (program,) = blocks_of("Without Operator")
    names: dict[str, Any] = {}
    exec(compile(program, "guide", "exec"), names)  # noqa: S102 - the guide's own code
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
