"""A registration: removal, closing, draining and ``synced``."""

from __future__ import annotations

import asyncio
import sys

import pytest

from aioinformer import Added, Event, Handler, Updated
from aioinformer._runtime.delivery.registration import Registration, drain_handlers
from aioinformer.errors import NotRunning, ShutdownIncomplete, UsageError
from aioinformer.testing.simulation import run
from tests.runtime.registrations import (
    A1,
    LIFECYCLE_EVENTS,
    RecordingHandler,
    make_registration,
    running_registration,
    started_registration,
)
from tests.runtime.scripted_source import pod, wait_until, yield_to_loop

# -- removal ----------------------------------------------------------------------------------


@pytest.mark.client_go(61, 66)
async def test_a_removed_handler_is_not_called_again() -> None:
    seen: list[Event] = []
    async with started_registration(seen.append) as it:
        it.listener.put(LIFECYCLE_EVENTS[:1])
        await wait_until(lambda: seen == LIFECYCLE_EVENTS[:1])
        it.listener.put(LIFECYCLE_EVENTS[1:])
        it.remove()
        it.remove()

    assert seen == LIFECYCLE_EVENTS[:1]
    assert it.closed
    assert not it.running


async def test_a_handler_may_remove_itself() -> None:
    seen: list[Event] = []

    async def once(event: Event) -> None:
        seen.append(event)
        it.remove()
        await asyncio.sleep(0)

    async with started_registration(once) as it:
        it.listener.put(LIFECYCLE_EVENTS)

    assert seen == LIFECYCLE_EVENTS[:1]


async def test_a_handler_may_close_itself_and_is_not_waited_for() -> None:
    seen: list[Event] = []

    async def once(event: Event) -> None:
        await it.aclose()
        seen.append(event)

    async with started_registration(once) as it:
        it.listener.put(LIFECYCLE_EVENTS)

    assert seen == LIFECYCLE_EVENTS[:1]


@pytest.mark.client_go(71)
async def test_closing_waits_for_the_call_in_flight() -> None:
    log: list[str] = []
    finish = asyncio.Event()

    async def handler(event: Event) -> None:
        log.append("begin")
        await finish.wait()
        log.append("end")

    async with started_registration(handler) as it:
        it.listener.put(LIFECYCLE_EVENTS)
        await wait_until(lambda: log == ["begin"])
        closing = asyncio.create_task(it.aclose())
        await yield_to_loop()
        assert not closing.done()
        finish.set()
        await closing
        assert log == ["begin", "end"]
        assert not it.running


@pytest.mark.client_go(72)
async def test_a_handler_that_never_started_is_closed_without_waiting() -> None:
    it = make_registration(RecordingHandler())

    await it.aclose()

    assert it.closed
    assert not it.running


async def test_a_handler_can_not_be_removed_from_a_thread() -> None:
    async with started_registration(lambda _event: None) as it:
        with pytest.raises(UsageError, match="not from a thread"):
            await asyncio.to_thread(it.remove)
        assert not it.closed


async def test_closing_may_be_given_a_time() -> None:
    finish = asyncio.Event()

    async def slow(event: Event) -> None:
        await finish.wait()

    async with started_registration(slow) as it:
        it.listener.put([Added(A1)])
        await yield_to_loop()
        with pytest.raises(ShutdownIncomplete, match="slow"):
            await it.aclose(timeout=0.01)
        finish.set()


async def test_aclose_in_a_task_that_the_handler_awaits_does_not_wait_for_the_handler() -> None:
    seen: list[Event] = []

    async def closes() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(it.aclose())

    async def once(event: Event) -> None:
        await asyncio.create_task(closes())
        seen.append(event)

    async with started_registration(once) as it:
        it.listener.put(LIFECYCLE_EVENTS)

    assert seen == LIFECYCLE_EVENTS[:1]


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_task_that_outlives_its_call_waits_when_it_closes_the_handler(concurrency: int) -> None:
    """It is no part of a call that is over."""
    left: list[asyncio.Task[None]] = []

    async def later() -> float:
        await asyncio.sleep(15)
        await it.aclose()
        return asyncio.get_running_loop().time()

    async def handler(event: Event) -> None:
        if not left:
            left.append(asyncio.create_task(note()))
        await asyncio.sleep(10)

    async def note() -> None:
        ended.append(await later())

    async def main() -> None:
        async with running_registration(it):
            it.listener.put(LIFECYCLE_EVENTS)
            await asyncio.sleep(60)

    it, ended = make_registration(handler, concurrency=concurrency), list[float]()
    run(main(), seed=0)

    assert ended == [20.0]


@pytest.mark.parametrize("count", [2, 3])
async def test_handlers_that_close_each_other_do_not_wait_for_ever(count: int) -> None:
    some: list[Registration] = []

    def handler(number: int) -> Handler:
        async def closes_the_next(event: Event) -> None:
            await asyncio.sleep(0)
            await some[(number + 1) % count].aclose()

        return closes_the_next

    some += [make_registration(handler(number)) for number in range(count)]
    async with asyncio.TaskGroup() as group, asyncio.timeout(5):
        for it in some:
            it.start(group)
            it.listener.put(LIFECYCLE_EVENTS)
        await wait_until(lambda: not any(it.running for it in some))

    assert all(it.closed for it in some)
    assert all(it.statistics().errors == 0 for it in some)


async def test_a_handler_whose_aclose_of_another_timed_out_can_be_closed_by_the_other() -> None:
    """The note that it waited is removed, though the wait ended with an error."""
    errors, finish, order = list[ShutdownIncomplete](), asyncio.Event(), list[str]()

    async def busy(event: Event) -> None:
        await wait_until(lambda: bool(errors))
        await it.aclose()
        order.append("closed")

    async def closes(event: Event) -> None:
        try:
            await other.aclose(timeout=0.001)
        except ShutdownIncomplete as error:
            errors.append(error)
        await finish.wait()
        order.append("over")

    other, it = make_registration(busy), make_registration(closes)
    async with asyncio.TaskGroup() as group:
        for each in (other, it):
            each.start(group)
            each.listener.put(LIFECYCLE_EVENTS[:1])
        await wait_until(lambda: it.closed)
        await yield_to_loop()
        finish.set()

    assert order == ["over", "closed"]


async def test_the_unfinished_work_mentions_a_pending_part_of_the_initial_state() -> None:
    it = make_registration(print)
    assert it.unfinished_work == it.name
    it.listener.replay([A1, pod("b", 1)])

    assert it.unfinished_work == f"{it.name} (part of a whole state pending)"


def test_aclose_with_drain_delivers_pending_events_first() -> None:
    assert _closed_with(drain=True, aclose=None) == 3
    assert _closed_with(drain=False, aclose=True) == 3
    assert _closed_with(drain=True, aclose=False) == 1
    assert _closed_with(drain=False, aclose=None) == 1


def _closed_with(*, drain: bool, aclose: bool | None) -> int:
    """Return the number of events that are handled if it is closed during the first of three."""
    seen: list[Event] = []

    async def slow(event: Event) -> None:
        await asyncio.sleep(10)
        seen.append(event)

    async def main() -> None:
        it = make_registration(slow, drain=drain)
        async with running_registration(it):
            it.listener.put(LIFECYCLE_EVENTS)
            await asyncio.sleep(1)
            await it.aclose(drain=aclose)
            assert not it.running

    run(main(), seed=0)
    return len(seen)


def test_a_drain_that_exceeds_its_timeout_drops_the_rest_and_names_the_handler() -> None:
    seen: list[Event] = []

    async def slow(event: Event) -> None:
        await asyncio.sleep(10)
        seen.append(event)

    async def main() -> None:
        it = make_registration(slow)
        async with running_registration(it):
            it.listener.put(LIFECYCLE_EVENTS)
            await asyncio.sleep(1)
            with pytest.raises(ShutdownIncomplete) as caught:
                await it.aclose(timeout=12, drain=True)
            assert caught.value.left == (f"{it.name} (at Updated of web/a for 3.0 s, 1 pending)",)
            await asyncio.sleep(60)
            assert not it.running

    run(main(), seed=0)

    assert seen == LIFECYCLE_EVENTS[:2]


# -- draining several --------------------------------------------------------------------------


def test_draining_handlers_finish_and_other_handlers_continue() -> None:
    async def main() -> None:
        its = [make_registration(_sleeper(10), drain=drain) for drain in (True, False)]
        async with running_registration(its[0]), running_registration(its[1]):
            for it in its:
                it.listener.put(LIFECYCLE_EVENTS)
            assert await drain_handlers(its, 60) == ()
            assert asyncio.get_running_loop().time() == 30
            assert [it.running for it in its] == [False, True]

    run(main(), seed=0, order="fifo")


def test_handlers_that_drain_too_slowly_are_named_and_drop_the_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        its = [make_registration(_sleeper(seconds), drain=True) for seconds in (1, 10)]
        async with running_registration(its[0]), running_registration(its[1]):
            for it in its:
                it.listener.put(LIFECYCLE_EVENTS)
            assert await drain_handlers(its, 15) == (
                f"{its[1].name} (at Updated of web/a for 5.0 s, 1 pending)",
            )
            assert its[1].statistics().pending == 0

    run(main(), seed=0)

    assert "was not done within 15 s of draining" in caplog.text


def _sleeper(seconds: float) -> Handler:
    async def sleeps(event: Event) -> None:
        await asyncio.sleep(seconds)

    return sleeps


# -- beginning ---------------------------------------------------------------------------------


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks are never eager before Python 3.12")
async def test_an_eager_task_does_not_call_the_handler_before_add_handler_returns() -> None:
    asyncio.get_running_loop().set_task_factory(getattr(asyncio, "eager_task_factory"))  # noqa: B009 - as of 3.12
    its: list[Registration] = []

    it = make_registration(lambda _: its[0].remove())
    it.listener.put(LIFECYCLE_EVENTS)
    async with asyncio.TaskGroup() as group:
        it.start(group)
        its.append(it)

    assert it.statistics().errors == 0


# -- synced -----------------------------------------------------------------------------------


async def test_waiting_for_a_handler_to_be_synced_ends_with_its_removal() -> None:
    it = make_registration(RecordingHandler())
    waiting = asyncio.create_task(it.wait_synced())
    await yield_to_loop()

    it.remove()

    with pytest.raises(NotRunning):
        await waiting


@pytest.mark.client_go(67, 120)
async def test_a_handler_is_synced_when_its_call_for_the_last_initial_object_returns() -> None:
    finish = asyncio.Event()

    async def handler(event: Event) -> None:
        await finish.wait()

    async with started_registration(handler) as it:
        it.listener.replay([A1])
        await yield_to_loop()
        assert not it.statistics().synced
        finish.set()
        await it.wait_synced(timeout=1)
        assert it.statistics().synced


@pytest.mark.client_go(121)
def test_a_handler_with_several_calls_at_once_is_synced_when_all_of_them_have_returned() -> None:
    async def slow(event: Event) -> None:
        await asyncio.sleep(float(event.obj.name))

    async def main() -> None:
        it = make_registration(slow, concurrency=3)
        async with running_registration(it):
            it.listener.replay([pod("30", 1), pod("1", 1), pod("20", 1)])
            it.listener.put([Added(pod("40", 1)), Updated(pod("1", 1), pod("1", 2))])
            await asyncio.sleep(5)
            assert (it.synced, it.statistics().synced) == (False, False)
            await it.wait_synced()
            assert asyncio.get_running_loop().time() == 30
            assert (it.synced, it.statistics().synced) == (True, True)

    run(main(), seed=0)


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_a_handler_can_not_wait_for_itself(concurrency: int) -> None:
    errors: list[Exception] = []

    async def waits(event: Event) -> None:
        await asyncio.create_task(it.wait_synced())

    it = make_registration(
        waits, concurrency=concurrency, on_error=lambda _, error: errors.append(error)
    )
    async with running_registration(it):
        it.listener.replay([A1])
        await wait_until(lambda: bool(errors))
        await it.wait_synced(timeout=1)
        it.listener.put([Added(A1)])  # once synced, there is nothing to wait for
        await wait_until(lambda: it.statistics().delivered == 2)
        await yield_to_loop()

    (error,) = errors
    assert isinstance(error, UsageError)
    assert "can't wait, inside a call, for its calls to be over" in str(error)
