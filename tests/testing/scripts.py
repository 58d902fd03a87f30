"""What happened while the recorded watches were open, to be done again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from tests.testing.exchanges import WIDGETS
from tests.testing.recipes import history
from tests.testing.stage import Stage, Viewer, reach, recorded_events, write

Script: TypeAlias = Callable[[Stage, Viewer], Awaitable[None]]


async def nothing(_stage: Stage, _viewer: Viewer) -> None:
    """Nobody writes."""


def writes(first: int, last: int) -> Script:
    """The recorder changes a pod; what it did is in recording 38."""

    async def script(stage: Stage, _viewer: Viewer) -> None:
        for event in history(first, last):
            write(stage.cluster, event)

    return script


def writes_and_bookmarks(first: int, last: int, *, marked: int) -> Script:
    """The same, and time passes: bookmarks of version ``marked`` come before the end."""

    async def script(stage: Stage, viewer: Viewer) -> None:
        await writes(first, last)(stage, viewer)
        reach(stage.cluster, marked)
        seen = len(history(first, last))
        before = viewer.read.count(b"\n")
        await viewer.lines(before + seen)
        for number, remaining in enumerate((2, 1), start=1):
            stage.clock.advance(deadline(viewer) - remaining - stage.clock.now)
            await viewer.lines(before + seen + number)

    return script


async def bookmarks_among_widgets(stage: Stage, viewer: Viewer) -> None:
    """A widget changes, a bookmark comes, another one goes, the bookmark comes again."""
    for number, event in enumerate(recorded_events("51-cr-watch-list-streaming")[4:], start=5):
        if event["type"] == "BOOKMARK":
            stage.clock.advance(1)
        else:
            write(stage.cluster, event, "widgets")
        await viewer.lines(number)


async def the_definition_goes(stage: Stage, _viewer: Viewer) -> None:
    """Nobody watches widgets any more after this."""
    reach(stage.cluster, 281)
    stage.cluster.remove_resource(WIDGETS)


def deadline(viewer: Viewer) -> float:
    """How many seconds the watch was asked to last."""
    return float(viewer.response.url.query["timeoutSeconds"])
