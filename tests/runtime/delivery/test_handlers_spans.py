"""Spans around the calls of a handler."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Generator
from contextlib import contextmanager

import pytest

from aioinformer import Added, Deleted, Event, KubeObject, Updated
from aioinformer._runtime.delivery.handlers import (
    CompiledHandler,
    Handler,
    compile_handler,
    compile_method,
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


def traced(handler: Handler, diary: Diary) -> CompiledHandler:
    return with_span(compile_handler(handler), diary.begin)


async def call(handler: CompiledHandler, event: Event) -> None:
    called: Awaitable[None] | None = handler.call(event)
    if called is not None:
        await called


async def test_a_plain_handler_is_called_in_its_span() -> None:
    diary = Diary()
    handler = traced(lambda event: diary.notes.append("call"), diary)
    assert not handler.is_async
    await call(handler, EVENTS[0])
    assert diary.notes == ["begin added", "in", "call", "out", "end NoneType"]


async def test_an_async_handler_remains_async_and_is_awaited_in_its_span() -> None:
    diary = Diary()

    async def store(event: Event) -> None:
        diary.notes.append("call")
        await asyncio.sleep(0)
        diary.notes.append("done")

    handler = traced(store, diary)
    assert handler.is_async
    await call(handler, EVENTS[1])
    inside = ["in", "call", "done", "out"]
    assert diary.notes == ["begin updated", "in", "out", *inside, "end NoneType"]


@pytest.mark.parametrize("waits", [False, True])
async def test_the_exception_of_a_handler_ends_its_span_and_is_raised(waits: bool) -> None:
    diary = Diary()

    async def store(event: Event) -> None:
        raise KeyError

    def plain(event: Event) -> None:
        raise KeyError

    with pytest.raises(KeyError):
        await call(traced(store if waits else plain, diary), EVENTS[2])
    assert diary.notes[-1] == "end KeyError"


def ignored(event: Event) -> None:
    """Nothing to do."""


class DeletionsOnly:
    def on_delete(self, obj: KubeObject, *, reason: str) -> None:
        """Nothing to do."""


class Methods(DeletionsOnly):
    def on_add(self, obj: KubeObject, *, initial: bool) -> None:
        """Nothing to do."""

    def on_update(self, old: KubeObject, new: KubeObject, *, resync: bool) -> None:
        """Nothing to do."""


@pytest.mark.parametrize(
    ("handler", "kinds"),
    [
        pytest.param(compile_method("on_add", Methods().on_add), ["added"], id="on_add"),
        pytest.param(compile_method("on_update", Methods().on_update), ["updated"], id="on_update"),
        pytest.param(compile_method("on_delete", Methods().on_delete), ["deleted"], id="on_delete"),
        pytest.param(compile_handler(DeletionsOnly()), ["deleted"], id="object"),
        pytest.param(compile_handler(ignored), ["added", "updated", "deleted"], id="function"),
    ],
)
async def test_only_events_with_a_method_of_the_handler_have_spans(
    handler: CompiledHandler, kinds: list[str]
) -> None:
    diary = Diary()
    for event in EVENTS:
        await call(with_span(handler, diary.begin), event)
    assert [each[6:] for each in diary.notes if each.startswith("begin")] == kinds
    assert len(handler.kinds) == len(kinds)
