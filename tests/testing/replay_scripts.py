"""What happened while the recorded watches were open, to be done again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from tests.testing.recorded_clusters import recorded_changes
from tests.testing.recorded_exchanges import WIDGETS
from tests.testing.replay_server import (
    ReplayServer,
    StreamReader,
    advance_to,
    recorded_events,
    replay_event,
)

ReplayScript: TypeAlias = Callable[[ReplayServer, StreamReader], Awaitable[None]]


async def do_nothing(_stage: ReplayServer, _viewer: StreamReader) -> None:
    """Nobody writes."""


def replay_writes(first: int, last: int) -> ReplayScript:
    """The recorder changes a pod; what it did is in recording 38."""

    async def script(stage: ReplayServer, _viewer: StreamReader) -> None:
        for event in recorded_changes(first, last):
            replay_event(stage.cluster, event)

    return script


def replay_writes_and_bookmarks(first: int, last: int, *, marked: int) -> ReplayScript:
    """The same, and time passes: bookmarks of version ``marked`` come before the end."""

    async def script(stage: ReplayServer, viewer: StreamReader) -> None:
        await replay_writes(first, last)(stage, viewer)
        advance_to(stage.cluster, marked)
        seen = len(recorded_changes(first, last))
        before = viewer.received.count(b"\n")
        await viewer.read_lines(before + seen)
        for number, remaining in enumerate((2, 1), start=1):
            stage.clock.advance(requested_timeout(viewer) - remaining - stage.clock.now)
            await viewer.read_lines(before + seen + number)

    return script


async def replay_widgets_and_bookmarks(stage: ReplayServer, viewer: StreamReader) -> None:
    """A widget changes, a bookmark comes, another one goes, the bookmark comes again."""
    for number, event in enumerate(recorded_events("51-cr-watch-list-streaming")[4:], start=5):
        if event["type"] == "BOOKMARK":
            stage.clock.advance(1)
        else:
            replay_event(stage.cluster, event, "widgets")
        await viewer.read_lines(number)


async def remove_definition(stage: ReplayServer, _viewer: StreamReader) -> None:
    """Nobody watches widgets any more after this."""
    advance_to(stage.cluster, 281)
    stage.cluster.remove_resource(WIDGETS)


def requested_timeout(viewer: StreamReader) -> float:
    """How many seconds the watch was asked to last."""
    return float(viewer.response.url.query["timeoutSeconds"])
