"""A task for each handler: calls in order, one at a time, whatever they raise."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import cast

import pytest

from aioinformer import Added, Deleted, DeleteReason, Event, Handler, KubeObject, Updated
from aioinformer._core.mailbox import Mailbox
from aioinformer._runtime.handlers import (
    Registration,
    adds_only,
    deletions_only,
    handler_name,
    updates_only,
)
from aioinformer._runtime.listeners import Gate
from aioinformer.errors import NotRunning, ObjectDecodeError, ShutdownIncomplete, UsageError
from tests.runtime.sources import pod, settle, until

A1, A2 = pod("a", 1), pod("a", 2)
STORY: list[Event] = [Added(A1), Updated(A1, A2), Deleted(A2)]


def registration(handler: Handler) -> Registration:
    mailbox = Mailbox(limit=100, holds=lambda _: True)
    return Registration(handler, handler_name(handler), mailbox, Gate())


@asynccontextmanager
async def started(handler: Handler) -> AsyncGenerator[Registration]:
    """A handler that is called until everything that it was told is dealt with."""
    async with asyncio.TaskGroup() as group:
        it = registration(handler)
        it.start(group)
        yield it
        await until(lambda: it.statistics().pending == 0)
        await settle()
        it.remove()


async def told(handler: Handler, *events: Event) -> Registration:
    async with started(handler) as it:
        it.put(events)
    return it


# -- the forms of a handler -------------------------------------------------------------------


class Diary:
    def __init__(self) -> None:
        self.lines: list[tuple[object, ...]] = []

    def on_add(self, obj: KubeObject, *, initial: bool) -> None:
        self.lines.append(("add", obj, initial))

    async def on_update(self, old: KubeObject, new: KubeObject, *, resync: bool) -> None:
        self.lines.append(("update", old, new, resync))

    def on_delete(self, obj: KubeObject, *, reason: DeleteReason) -> None:
        self.lines.append(("delete", obj, reason))


class OnlyAdds:
    def __init__(self) -> None:
        self.lines: list[KubeObject] = []

    async def on_add(self, obj: KubeObject, *, initial: bool) -> None:
        self.lines.append(obj)


class OnlyUpdates:
    def __init__(self) -> None:
        self.lines: list[KubeObject] = []

    def on_update(self, old: KubeObject, new: KubeObject, *, resync: bool) -> None:
        self.lines.append(new)


class OnlyDeletions:
    def __init__(self) -> None:
        self.lines: list[KubeObject] = []

    def on_delete(self, obj: KubeObject, *, reason: DeleteReason) -> None:
        self.lines.append(obj)


async def test_an_object_s_methods_are_called_with_exactly_their_arguments() -> None:
    diary = Diary()

    await told(
        diary, Added(A1, initial=True), Updated(A1, A1, resync=True), Deleted(A1, "vanished")
    )

    assert diary.lines == [("add", A1, True), ("update", A1, A1, True), ("delete", A1, "vanished")]


@pytest.mark.parametrize(
    ("handler", "lines"),
    [(OnlyAdds(), [A1]), (OnlyUpdates(), [A2]), (OnlyDeletions(), [A2])],
    ids=["add", "update", "delete"],
)
async def test_an_object_may_have_any_of_the_methods(
    handler: OnlyAdds | OnlyUpdates | OnlyDeletions, lines: list[KubeObject]
) -> None:
    it = await told(handler, *STORY)

    assert handler.lines == lines
    assert it.statistics().delivered == 3
    assert it.statistics().errors == 0


async def test_a_function_is_called_with_each_event() -> None:
    seen: list[Event] = []

    await told(seen.append, *STORY)

    assert seen == STORY


async def test_a_coroutine_function_is_awaited_before_the_next_event() -> None:
    log: list[str] = []

    async def handler(event: Event) -> None:
        log.append(f"begin {type(event).__name__}")
        await asyncio.sleep(0)
        log.append(f"end {type(event).__name__}")

    await told(handler, *STORY)

    assert log == [
        "begin Added",
        "end Added",
        "begin Updated",
        "end Updated",
        "begin Deleted",
        "end Deleted",
    ]


async def test_a_function_that_returns_an_awaitable_counts_as_asynchronous() -> None:
    done: list[Event] = []

    async def work(event: Event) -> None:
        done.append(event)

    await told(lambda event: work(event), *STORY)

    assert done == STORY


@pytest.mark.parametrize("wrong", [None, 7, "on_add", object()], ids=repr)
def test_what_is_no_handler_is_a_type_error(wrong: object) -> None:
    with pytest.raises(TypeError, match="on_add, on_update or on_delete, or is a function"):
        registration(cast("Handler", wrong))


async def test_functions_for_one_kind_of_event_hear_nothing_else() -> None:
    diary = Diary()

    for handler in (
        adds_only(diary.on_add),
        updates_only(diary.on_update),
        deletions_only(diary.on_delete),
    ):
        await told(handler, *STORY)

    assert diary.lines == [("add", A1, False), ("update", A1, A2, False), ("delete", A2, "deleted")]


def test_a_handler_is_called_what_its_author_calls_it() -> None:
    def inner(event: Event) -> None: ...

    assert handler_name(Diary()) == "Diary"
    assert handler_name(Diary().on_add) == "Diary.on_add"
    assert handler_name(adds_only(Diary().on_add)) == "Diary.on_add"
    assert handler_name(partial(inner)) == "partial"
    assert handler_name(inner) == "test_a_handler_is_called_what_its_author_calls_it.inner"


# -- what it raises ---------------------------------------------------------------------------


async def test_what_a_handler_raises_is_logged_under_its_name_and_the_next_event_follows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[Event] = []

    async def clumsy(event: Event) -> None:
        seen.append(event)
        if isinstance(event, Updated):
            raise ValueError("clumsy me")

    it = await told(clumsy, *STORY)

    assert seen == STORY
    assert (it.statistics().errors, it.statistics().delivered) == (1, 3)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("aioinformer.handlers", logging.ERROR)
    said = f"handler {it.name} raised at Updated of {A2!r}: ValueError: clumsy me"
    assert record.getMessage() == said
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "clumsy me"


async def test_a_plain_function_that_raises_is_no_different() -> None:
    def clumsy(event: Event) -> None:
        raise ValueError(event)

    assert (await told(clumsy, *STORY)).statistics().errors == 3


async def test_a_cancellation_that_a_handler_makes_itself_is_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def awaits_something_cancelled(event: Event) -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    def raises_it(event: Event) -> None:
        raise asyncio.CancelledError

    assert (await told(awaits_something_cancelled, *STORY)).statistics().errors == 3
    assert (await told(raises_it, *STORY)).statistics().errors == 3
    assert len(caplog.records) == 6


async def test_a_handler_that_raises_at_everything_shows_one_traceback_a_second(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def clumsy(event: Event) -> None:
        raise ValueError(event)

    many = [Added(pod("a", version)) for version in range(100)]

    assert (await told(clumsy, *many)).statistics().errors == 100
    assert len(caplog.records) == 100
    assert [bool(record.exc_info) for record in caplog.records].count(True) == 1
    assert all("ValueError" in record.getMessage() for record in caplog.records)


async def test_a_body_that_can_not_be_decoded_is_not_the_handlers_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def reader(event: Event) -> None:
        raise ObjectDecodeError("pods web/a: no JSON", key="web/a", resource_version="1")

    assert (await told(reader, *STORY)).statistics().errors == 0
    assert "pods web/a: no JSON" in caplog.text


async def test_it_can_not_be_removed_from_a_thread() -> None:
    async with started(lambda _event: None) as it:
        with pytest.raises(UsageError, match="not from a thread"):
            await asyncio.to_thread(it.remove)
        assert not it.closed


async def test_closing_may_be_given_a_time() -> None:
    finish = asyncio.Event()

    async def slow(event: Event) -> None:
        await finish.wait()

    async with started(slow) as it:
        it.put([Added(A1)])
        await settle()
        with pytest.raises(ShutdownIncomplete, match="slow"):
            await it.aclose(timeout=0.01)
        finish.set()


def test_a_class_is_no_handler() -> None:
    class Audit:
        def on_add(self, obj: KubeObject, *, initial: bool) -> None: ...

    with pytest.raises(TypeError, match=r"pass Audit\(\), not the class"):
        registration(cast("Handler", Audit))


async def test_a_time_out_inside_a_handler_is_its_own_business() -> None:
    async def impatient(event: Event) -> None:
        async with asyncio.timeout(0):
            await asyncio.sleep(60)

    async def relaxed(event: Event) -> None:
        try:
            await impatient(event)
        except TimeoutError:
            return

    assert (await told(impatient, *STORY)).statistics().errors == 3
    assert (await told(relaxed, *STORY)).statistics().errors == 0


async def test_a_handler_that_is_cancelled_hears_no_more() -> None:
    calls = 0

    async def handler(event: Event) -> None:
        nonlocal calls
        calls += 1
        await asyncio.sleep(60)

    async with asyncio.TaskGroup() as group:
        work = group.create_task(_run_until_cancelled(registration(handler)))
        await until(lambda: calls == 1)
        work.cancel()

    assert calls == 1


async def test_a_handler_that_swallows_its_cancellation_hears_no_more_either() -> None:
    """It would keep its informer from ending: a task group cancels only once."""
    calls = 0

    async def stubborn(event: Event) -> None:
        nonlocal calls
        calls += 1
        try:
            await asyncio.sleep(60 if calls == 1 else 0)
        except asyncio.CancelledError:
            return

    it = registration(stubborn)
    work = asyncio.create_task(_run_until_cancelled(it))
    await until(lambda: calls == 1)
    work.cancel()
    ended, _ = await asyncio.wait({work}, timeout=0.5)
    it.remove()
    await asyncio.wait({work})

    assert ended
    assert calls == 1


async def _run_until_cancelled(it: Registration) -> None:
    it.put(STORY)
    async with asyncio.TaskGroup() as group:
        it.start(group)


# -- the context ------------------------------------------------------------------------------

TENANT = ContextVar("TENANT", default="nobody")


async def test_it_runs_in_a_copy_of_the_context_in_which_it_was_registered() -> None:
    seen: list[str] = []

    async def handler(event: Event) -> None:
        seen.append(TENANT.get())
        TENANT.set("changed by the handler")

    token = TENANT.set("acme")
    it = registration(handler)
    TENANT.reset(token)
    async with asyncio.TaskGroup() as group:
        it.start(group)
        it.put(STORY[:2])
        await until(lambda: len(seen) == 2)
        it.remove()

    assert seen == ["acme", "changed by the handler"]
    assert TENANT.get() == "nobody"


# -- removal ----------------------------------------------------------------------------------


async def test_a_handler_that_is_removed_hears_no_more() -> None:
    seen: list[Event] = []
    async with started(seen.append) as it:
        it.put(STORY[:1])
        await until(lambda: seen == STORY[:1])
        it.put(STORY[1:])
        it.remove()
        it.remove()

    assert seen == STORY[:1]
    assert it.closed
    assert not it.running


async def test_a_handler_may_remove_itself() -> None:
    seen: list[Event] = []

    async def once(event: Event) -> None:
        seen.append(event)
        it.remove()
        await asyncio.sleep(0)

    async with started(once) as it:
        it.put(STORY)

    assert seen == STORY[:1]


async def test_a_handler_may_close_itself_and_is_not_waited_for() -> None:
    seen: list[Event] = []

    async def once(event: Event) -> None:
        await it.aclose()
        seen.append(event)

    async with started(once) as it:
        it.put(STORY)

    assert seen == STORY[:1]


async def test_closing_waits_for_the_call_in_flight() -> None:
    log: list[str] = []
    finish = asyncio.Event()

    async def handler(event: Event) -> None:
        log.append("begin")
        await finish.wait()
        log.append("end")

    async with started(handler) as it:
        it.put(STORY)
        await until(lambda: log == ["begin"])
        closing = asyncio.create_task(it.aclose())
        await settle()
        assert not closing.done()
        finish.set()
        await closing
        assert log == ["begin", "end"]
        assert not it.running


async def test_closing_a_handler_that_never_started_waits_for_nothing() -> None:
    it = registration(Diary())

    await it.aclose()

    assert it.closed
    assert not it.running


async def test_who_waits_for_a_handler_to_be_synced_is_told_of_its_removal() -> None:
    it = registration(Diary())
    waiting = asyncio.create_task(it.wait_synced())
    await settle()

    it.remove()

    with pytest.raises(NotRunning):
        await waiting


# -- giving way -------------------------------------------------------------------------------


async def test_a_handler_that_never_waits_leaves_the_loop_to_others() -> None:
    turns_at: list[int] = []
    it: Registration
    count = 50_000  # far more than 4 ms of work

    async with asyncio.TaskGroup() as group:
        seen: list[Event] = []
        it = registration(seen.append)
        it.start(group)
        it.put([Added(pod("a", n)) for n in range(count)])
        while len(seen) < count:
            turns_at.append(len(seen))
            await asyncio.sleep(0)
        it.remove()

    assert len([turn for turn in turns_at if 0 < turn < count]) >= 1


async def test_it_is_synced_when_the_call_for_the_last_initial_object_is_over() -> None:
    finish = asyncio.Event()

    async def handler(event: Event) -> None:
        await finish.wait()

    async with started(handler) as it:
        it.replay([A1])
        await settle()
        assert not it.statistics().synced
        finish.set()
        await it.wait_synced(timeout=1)
        assert it.statistics().synced
