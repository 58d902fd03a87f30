"""Scripts that repeat the writes during the recorded watches."""

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


async def do_nothing(_stage: ReplayServer, _reader: StreamReader) -> None:
    """Write nothing."""


def replay_writes(first: int, last: int) -> ReplayScript:
    """Return a script with the changes of a pod between two versions."""

    async def script(replay: ReplayServer, _reader: StreamReader) -> None:
        for event in recorded_changes(first, last):
            replay_event(replay.cluster, event)

    return script


def replay_writes_and_bookmarks(first: int, last: int, *, marked: int) -> ReplayScript:
    """Return a script of ``replay_writes`` that then lets the last two bookmarks come.

    Args:
        first: the version of the first change.
        last: the version of the last change.
        marked: the version of the bookmarks.
    """

    async def script(replay: ReplayServer, reader: StreamReader) -> None:
        await replay_writes(first, last)(replay, reader)
        advance_to(replay.cluster, marked)
        changes = len(recorded_changes(first, last))
        before = reader.received.count(b"\n")
        await reader.read_lines(before + changes)
        for number, remaining in enumerate((2, 1), start=1):
            replay.clock.advance(requested_timeout(reader) - remaining - replay.clock.now)
            await reader.read_lines(before + changes + number)

    return script


async def replay_widgets_and_bookmarks(replay: ReplayServer, reader: StreamReader) -> None:
    """Change a widget and delete another, with a bookmark after each."""
    for number, event in enumerate(recorded_events("51-cr-watch-list-streaming")[4:], start=5):
        if event["type"] == "BOOKMARK":
            replay.clock.advance(1)
        else:
            replay_event(replay.cluster, event, "widgets")
        await reader.read_lines(number)


async def remove_definition(replay: ReplayServer, _reader: StreamReader) -> None:
    """Stop serving widgets, at version 281."""
    advance_to(replay.cluster, 281)
    replay.cluster.remove_resource(WIDGETS)


def requested_timeout(reader: StreamReader) -> float:
    """Return the ``timeoutSeconds`` of the watch."""
    return float(reader.response.url.query["timeoutSeconds"])
