"""Runs a notebook as Jupyter does, without it: one loop, one namespace, cells that may await."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Iterator
from inspect import CO_COROUTINE
from pathlib import Path
from types import CodeType
from typing import Any

__all__ = ["Notebook"]


class Notebook:
    """Its cells of code, to be run in order."""

    def __init__(self, path: Path) -> None:
        cells = json.loads(path.read_text())["cells"]
        self._cells = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        self._names: dict[str, Any] = {}

    async def run(self) -> list[object]:
        """Run all cells, each in a task of its own; what Jupyter would show of each."""
        return [await asyncio.create_task(self._run(cell)) for cell in self._cells]

    async def _run(self, cell: str) -> object:
        shown: Any = None
        for code in _parts(cell):
            shown = eval(code, self._names)  # noqa: S307 - what it is for
            if code.co_flags & CO_COROUTINE:
                shown = await shown
        return shown


def _parts(cell: str) -> Iterator[CodeType]:
    """All statements, and the expression at the end whose value is shown."""
    tree, flags = ast.parse(cell), ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        yield compile(tree, "cell", "exec", flags)
        return
    yield compile(ast.Module(tree.body[:-1], []), "cell", "exec", flags)
    yield compile(ast.Expression(last.value), "cell", "eval", flags)
