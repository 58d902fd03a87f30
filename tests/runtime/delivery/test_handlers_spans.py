"""A handler that is traced stays what it is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from inspect import iscoroutinefunction

import pytest

from aioinformer import Added, Deleted, Event, KubeObject, Updated
from aioinformer._runtime.delivery.handlers import (
    add_handler_from,
    compile_handler,
    delete_handler_from,
    event_kinds,
    is_async,
    update_handler_from,
    with_span,
)
from aioinformer._runtime.reporting.safe_call import SafeCall
from aioinformer._runtime.reporting.safe_tracing import SafeSpan
from tests.runtime.scripted_source import pod

EVENTS: tuple[Event, ...] = (
    Added(pod("a", 1), initial=True),
    Updated(pod("a", 1), pod("a", 2), resync=False),
    Deleted(pod("a", 2), reason="deleted"),
)


class Diary:
    """Notes when spans begin, are current, and end."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def begin(self, kind: str) -> SafeSpan:
        self.notes.append(f"begin {kind}")
        return SafeSpan(self, SafeCall(logging.getLogger(), "%s", "a test"))

    @contextmanager
    def current(self) -> Generator[None]:
        self.notes.append("in")
        yield
        self.notes.append("out")

    def ended(self, error: BaseException | None) -> None:
        self.notes.append(f"end {type(error).__name__}")


async def call(handler: object, event: Event) -> None:
    called: Awaitable[None] | None = compile_handler(handler)(event)  # type: ignore[arg-type] # any form
    if called is not None:
        await called


async def test_a_plain_handler_is_called_in_its_span() -> None:
    diary = Diary()
    handler = with_span(lambda event: diary.notes.append("call"), diary.begin)
    assert not is_async(handler)
    await call(handler, EVENTS[0])
    assert diary.notes == ["begin added", "in", "call", "out", "end NoneType"]


async def test_an_async_handler_stays_one_and_is_awaited_in_its_span() -> None:
    diary = Diary()

    async def store(event: Event) -> None:
        diary.notes.append("call")
        await asyncio.sleep(0)
        diary.notes.append("done")

    handler = with_span(store, diary.begin)
    assert iscoroutinefunction(handler)
    await call(handler, EVENTS[1])
    inside = ["in", "call", "done", "out"]
    assert diary.notes == ["begin updated", "in", "out", *inside, "end NoneType"]


@pytest.mark.parametrize("waits", [False, True])
async def test_what_a_handler_raises_ends_its_span_and_is_raised(waits: bool) -> None:
    diary = Diary()

    async def store(event: Event) -> None:
        raise KeyError

    def plain(event: Event) -> None:
        raise KeyError

    with pytest.raises(KeyError):
        await call(with_span(store if waits else plain, diary.begin), EVENTS[2])
    assert diary.notes[-1] == "end KeyError"


def ignored(event: Event) -> None:
    """Nothing to do."""


class DeletionsOnly:
    def on_delete(self, obj: KubeObject, *, reason: str) -> None:
        """Nothing to do."""


@pytest.mark.parametrize(
    ("handler", "kinds"),
    [
        pytest.param(add_handler_from(lambda obj, initial: None), ["added"], id="on_add"),
        pytest.param(
            update_handler_from(lambda old, new, resync: None), ["updated"], id="on_update"
        ),
        pytest.param(delete_handler_from(lambda obj, reason: None), ["deleted"], id="on_delete"),
        pytest.param(DeletionsOnly(), ["deleted"], id="object"),
        pytest.param(ignored, ["added", "updated", "deleted"], id="function"),
    ],
)
async def test_only_events_that_it_does_something_about_have_spans(
    handler: object, kinds: list[str]
) -> None:
    diary = Diary()
    for event in EVENTS:
        await call(with_span(handler, diary.begin), event)  # type: ignore[arg-type] # any form
    assert [each[6:] for each in diary.notes if each.startswith("begin")] == kinds
    assert len(event_kinds(handler)) == len(kinds)  # type: ignore[arg-type] # any form
