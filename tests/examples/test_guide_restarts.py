"""The code of the guide on restarts, as a reader would run it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aioinformer import Client, Deleted, Event
from aioinformer.testing import ApiServer
from tests.markdown_pages import MarkdownPage, find_blocks

GUIDE = MarkdownPage(Path(__file__).parents[2] / "examples" / "guides" / "restarts.md")


class SlowReport:
    """A handler that returns long after the cache has the state."""

    def __init__(self) -> None:
        self.lines = set[str]()

    async def __call__(self, event: Event) -> None:
        await asyncio.sleep(0.05)
        self.lines.add(f"{'gone' if isinstance(event, Deleted) else 'there'} {event.obj.name}")


async def run_program(server: ApiServer) -> set[str]:
    """Run the program that ends by itself, and return what its handler had done at its end."""
    (code,) = [each for each in find_blocks(GUIDE.text, "python") if 'durable="report"' in each]
    lines = "".join(f"    {line}\n" for line in code.splitlines() if not line.startswith("from"))
    found, report = dict[str, Any](), SlowReport()
    imports = "from aioinformer import CacheFile, SharedInformerFactory\n"
    # What is handled while the factory is left doesn't count.
    note = "        done.update(handler.lines)\n"
    exec(f"{imports}async def go(client, handler, done):\n{lines}{note}", found)  # noqa: S102
    done = set[str]()
    async with Client(server.url) as client:
        await found["go"](client, report, done)
    return done


async def test_a_program_handles_the_changes_of_its_downtime_before_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with ApiServer() as server:
        for name in ("a", "b"):
            server.cluster.create("pods", {"metadata": {"name": name}})
        assert await run_program(server) == {"there a", "there b"}
        server.cluster.delete("pods", "b")
        for name in ("c", "d"):
            server.cluster.create("pods", {"metadata": {"name": name}})
        assert await run_program(server) == {"gone b", "there c", "there d"}
