"""Tracing that raises, and no tracing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest

from aioinformer import Event, SharedInformer
from aioinformer._core.instrumentation import InformerTrace, Span, Tracing
from aioinformer._runtime.reporting.safe_tracing import make_informer_trace
from tests.runtime.informers import FAST_BACKOFF, running_informer
from tests.runtime.scripted_source import (
    added,
    body,
    error_response,
    list_response,
    scripted_lister_watcher,
    wait_until,
    watch_response,
)


class BrokenTrace(InformerTrace):
    """A trace whose methods raise."""

    def __init__(self, reported: list[str]) -> None:
        self.reported = reported

    def fail(self, method: str) -> None:
        self.reported.append(method)
        raise ValueError(f"no {method}")

    def asked(self, verb: str) -> None:
        self.fail("asked")

    def received(self, size: int, events: int) -> None:
        self.fail("received")

    def complete(self) -> None:
        self.fail("complete")

    def ended(self, cause: str, error: Exception | None) -> None:
        self.fail("ended")

    def closed(self) -> None:
        self.fail("closed")


class BrokenSpan:
    """A span whose methods raise."""

    def __init__(self, reported: list[str]) -> None:
        self.reported = reported

    def ended(self, error: BaseException | None) -> None:
        self.reported.append("ended")
        raise ValueError("no ended")

    def current(self) -> AbstractContextManager[object]:
        self.reported.append("current")
        raise ValueError("no current")


class BrokenTracing:
    """Tracing that makes broken spans and traces, or raises itself."""

    def __init__(self, *, at_once: bool = False) -> None:
        self.reported: list[str] = []
        self.at_once = at_once

    def _may_fail(self, method: str) -> None:
        if self.at_once:
            BrokenTrace(self.reported).fail(method)

    def informer(self, informer: str, resource: str) -> InformerTrace:
        self._may_fail("informer")
        return BrokenTrace(self.reported)

    def handler(self, informer: str, listener: str) -> Callable[[str], Span] | None:
        return self._begin

    def _begin(self, kind: str) -> Span:
        self._may_fail(kind)
        return BrokenSpan(self.reported)

    def reconcile(self, controller: str) -> Span:
        self._may_fail("reconcile")
        return BrokenSpan(self.reported)


def is_tracing(tracing: Tracing) -> Tracing:
    """``tracing``: type checkers see here that it is one."""
    return tracing


@pytest.mark.parametrize("at_once", [False, True])
async def test_an_informer_continues_although_its_tracing_raises_and_logs_it_once(
    at_once: bool, caplog: pytest.LogCaptureFixture
) -> None:
    tracing = BrokenTracing(at_once=at_once)
    source = scripted_lister_watcher(
        error_response(503, "x"),
        list_response(body("a", 1)),
        watch_response(added("b", 11), never_ends=True),
    )
    informer = SharedInformer(source, tracing=is_tracing(tracing), backoff=FAST_BACKOFF)
    reported: list[str] = []

    async def store(event: Event) -> None:
        reported.append(event.obj.name)

    informer.add_handler(store)
    informer.add_handler(lambda event: reported.append(f"plain {event.obj.name}"))
    async with running_informer(informer):
        await wait_until(lambda: len(reported) == 4)
    assert sorted(reported) == ["a", "b", "plain a", "plain b"]
    expected = {"informer", "added"} if at_once else {"asked", "received", "complete", "closed"}
    assert expected <= set(tracing.reported)
    raised = [each.getMessage() for each in caplog.records if "tracing" in each.getMessage()]
    assert len(raised) == len(set(raised)) == 3, "the informer's, and each handler's"


async def test_a_span_that_swallows_an_exception_does_not_hide_the_failure() -> None:
    """A context manager may swallow what is raised inside; a handler's failures are counted."""

    class Swallowing(BrokenTracing):
        def informer(self, informer: str, resource: str) -> InformerTrace:
            return InformerTrace()

        def handler(self, informer: str, listener: str) -> Callable[[str], Span] | None:
            return lambda kind: Swallowed()

    class Swallowed:
        def current(self) -> AbstractContextManager[object]:
            return SwallowAll()

        def ended(self, error: BaseException | None) -> None:
            ended.append(error)

    class SwallowAll(nullcontext[None]):
        def __exit__(self, *_: object) -> bool:  # type: ignore[override] # it swallows
            return True

    async def clumsy(event: Event) -> None:
        raise ValueError("mine")

    ended: list[BaseException | None] = []
    informer = SharedInformer(
        scripted_lister_watcher(list_response(body("a", 1))),
        tracing=Swallowing(),
        backoff=FAST_BACKOFF,
    )
    registration = informer.add_handler(clumsy)
    async with running_informer(informer):
        await registration.wait_synced(timeout=30)
    assert registration.statistics().errors == 1
    assert [str(each) for each in ended] == ["mine"]


def test_an_informer_without_tracing_has_a_trace_without_spans() -> None:
    assert type(make_informer_trace(None, "pods", "pods")) is InformerTrace
