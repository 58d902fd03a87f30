"""Calls of a handler: order, failures, several keys at once, timeouts, cancellation."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
import warnings
from collections.abc import Awaitable
from contextlib import suppress
from contextvars import ContextVar
from random import Random
from typing import Any

import pytest

from aioinformer import Added, Deleted, Event, Statistics, Updated
from aioinformer._core.delivery.key_concurrency import LOOKAHEAD
from aioinformer._runtime.delivery.options import HandlerOptions
from aioinformer._runtime.delivery.registration import Registration
from aioinformer.errors import (
    HandlerCancelled,
    HandlerTimeout,
    ListenerOverflow,
    ObjectDecodeError,
)
from aioinformer.testing.simulation import run
from tests.runtime.registrations import (
    A2,
    LIFECYCLE_EVENTS,
    deliver_events,
    make_registration,
    running_registration,
)
from tests.runtime.scripted_source import pod, wait_until, yield_to_loop

# -- what it raises ---------------------------------------------------------------------------


@pytest.mark.client_go(69)
async def test_the_exception_of_a_handler_is_logged_and_the_next_event_is_delivered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[Event] = []

    async def clumsy(event: Event) -> None:
        seen.append(event)
        if isinstance(event, Updated):
            raise ValueError("clumsy me")

    it = await deliver_events(clumsy, *LIFECYCLE_EVENTS)

    assert seen == LIFECYCLE_EVENTS
    assert (it.statistics().errors, it.statistics().delivered) == (1, 3)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("aioinformer.handlers", logging.ERROR)
    said = f"handler {it.name} raised at Updated of {A2!r}: ValueError: clumsy me"
    assert record.getMessage() == said
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "clumsy me"


async def test_a_plain_function_that_raises_fails_like_an_async_one() -> None:
    def clumsy(event: Event) -> None:
        raise ValueError(event)

    assert (await deliver_events(clumsy, *LIFECYCLE_EVENTS)).statistics().errors == 3


async def test_a_cancellation_that_a_handler_makes_itself_is_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def awaits_something_cancelled(event: Event) -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    def raises_it(event: Event) -> None:
        raise asyncio.CancelledError

    assert (
        await deliver_events(awaits_something_cancelled, *LIFECYCLE_EVENTS)
    ).statistics().errors == 3
    assert (await deliver_events(raises_it, *LIFECYCLE_EVENTS)).statistics().errors == 3
    assert [record.getMessage().count("CancelledError") for record in caplog.records] == [1, 2] * 2
    assert caplog.text.count("2 further failures with CancelledError") == 2


@pytest.mark.client_go(69)
async def test_a_handler_that_raises_at_everything_is_logged_in_two_lines_with_one_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reported = list[tuple[str, Exception]]()

    def clumsy(event: Event) -> None:
        raise ValueError("odd")

    many: list[Event] = [Added(pod("a", version)) for version in range(100)]

    def on_error(name: str, error: Exception) -> None:
        reported.append((name, error))

    async with running_registration(make_registration(clumsy, on_error=on_error)) as registration:
        registration.listener.put(many)
        await wait_until(lambda: registration.statistics().pending == 0)
    assert registration.statistics().errors == len(reported) == 100
    assert [bool(record.exc_info) for record in caplog.records] == [True, False]
    first, further = caplog.messages
    assert "raised at Added of <Pod web/a rv=0 89 B>: ValueError: odd" in first
    assert further.startswith("99 further failures with ValueError, the last of them: handler ")
    assert further.endswith("raised at Added of <Pod web/a rv=99 90 B>: ValueError: odd")


async def test_a_body_that_can_not_be_decoded_is_no_failure_of_the_handler(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def reader(event: Event) -> None:
        raise ObjectDecodeError("pods web/a: no JSON", key="web/a", resource_version="1")

    assert (await deliver_events(reader, *LIFECYCLE_EVENTS)).statistics().errors == 0
    assert "pods web/a: no JSON" in caplog.text


async def test_a_timeout_error_inside_a_handler_is_an_ordinary_failure() -> None:
    async def impatient(event: Event) -> None:
        async with asyncio.timeout(0):
            await asyncio.sleep(60)

    async def relaxed(event: Event) -> None:
        try:
            await impatient(event)
        except TimeoutError:
            return

    assert (await deliver_events(impatient, *LIFECYCLE_EVENTS)).statistics().errors == 3
    assert (await deliver_events(relaxed, *LIFECYCLE_EVENTS)).statistics().errors == 0


class NoWords(Exception):
    """An exception that can't be shown."""

    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


class Stop(BaseException):
    """None that ``except Exception`` would catch."""


@pytest.mark.parametrize(
    "error",
    [
        NoWords(),
        GeneratorExit(),
        Stop(),
        BaseExceptionGroup("some", [asyncio.CancelledError()]),
    ],
    ids=["no words", "GeneratorExit", "BaseException", "group"],
)
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_any_exception_of_a_handler_counts_as_one_failure(
    error: BaseException, concurrency: int, caplog: pytest.LogCaptureFixture
) -> None:
    hook = Hook()

    async def clumsy(event: Event) -> None:
        raise error

    def plain(event: Event) -> None:
        raise error

    for it in (
        make_registration(clumsy, concurrency=concurrency, on_error=hook),
        make_registration(plain, concurrency=concurrency, on_error=hook),
    ):
        async with running_registration(it):
            it.listener.put(LIFECYCLE_EVENTS)
            await wait_until(lambda: it.statistics().errors == 3)  # noqa: B023 - called at once

    assert len(hook.errors) == 6
    for _, reported in hook.errors:
        assert reported is error or reported.__cause__ is error
    assert type(error).__name__ in caplog.text


async def test_a_hook_that_raises_a_cancellation_has_no_effect_either() -> None:
    def hook(name: str, error: Exception) -> None:
        raise asyncio.CancelledError

    def clumsy(event: Event) -> None:
        raise ValueError("mine")

    async with running_registration(make_registration(clumsy, on_error=hook)) as it:
        it.listener.put(LIFECYCLE_EVENTS)
        await wait_until(lambda: it.statistics().errors == 3)


class Hook:
    """An error hook."""

    def __init__(self) -> None:
        self.errors: list[tuple[str, Exception]] = []

    def __call__(self, name: str, error: Exception) -> None:
        self.errors.append((name, error))


async def fatal_error(it: Registration, *events: Event) -> Exception:
    """Return the one error that a handler ends its informer with. Its own task ends normally."""
    fatal: list[Exception] = []
    async with asyncio.TaskGroup() as group:
        it.start(group, lambda: False, fatal.append)
        it.listener.put(events)
    assert it.closed
    (error,) = fatal
    return error


async def test_each_failure_is_passed_to_the_hook() -> None:
    hook, mine = Hook(), ValueError("mine")

    async def clumsy(event: Event) -> None:
        if isinstance(event, Updated):
            raise asyncio.CancelledError
        if isinstance(event, Deleted):
            raise ObjectDecodeError("no JSON", key="web/a", resource_version="1")
        raise mine

    async with running_registration(make_registration(clumsy, on_error=hook)) as it:
        it.listener.put(LIFECYCLE_EVENTS)
        await wait_until(lambda: len(hook.errors) == 3)

    assert {name for name, _ in hook.errors} == {it.name}
    assert hook.errors[0][1] is mine
    assert isinstance(hook.errors[1][1], HandlerCancelled)
    assert isinstance(hook.errors[1][1].__cause__, asyncio.CancelledError)
    assert isinstance(hook.errors[2][1], ObjectDecodeError)


async def test_a_hook_that_raises_is_logged_and_has_no_effect(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def clumsy(event: Event) -> None:
        raise ValueError("clumsy me")

    def broken(name: str, error: Exception) -> None:
        raise RuntimeError("broken hook")

    async with running_registration(make_registration(clumsy, on_error=broken)) as it:
        it.listener.put(LIFECYCLE_EVENTS)
        await wait_until(lambda: it.statistics().errors == 3)

    assert "the error hook raised when it was called with" in caplog.text
    assert "broken hook" in caplog.text


@pytest.mark.client_go(111)
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_with_fail_fast_the_exception_of_the_handler_is_raised(concurrency: int) -> None:
    mine = ValueError("mine")
    seen: list[Event] = []

    async def clumsy(event: Event) -> None:
        seen.append(event)
        await asyncio.sleep(0)
        if isinstance(event, Updated):
            raise mine

    it = make_registration(clumsy, fail_fast=True, concurrency=concurrency)

    assert await fatal_error(it, *LIFECYCLE_EVENTS) is mine
    assert seen == LIFECYCLE_EVENTS[:2]


async def test_with_fail_fast_a_cancellation_of_its_own_is_fatal() -> None:
    def raises_it(event: Event) -> None:
        raise asyncio.CancelledError

    it = make_registration(raises_it, fail_fast=True)

    assert isinstance(await fatal_error(it, *LIFECYCLE_EVENTS), HandlerCancelled)


@pytest.mark.parametrize("fail_fast", [False, True])
async def test_a_mailbox_that_overflowed_is_reported_at_once(fail_fast: bool) -> None:
    """The call for which it was too slow may never return."""
    hook, finish, fatal = Hook(), asyncio.Event(), list[Exception]()

    async def stuck(event: Event) -> None:
        await finish.wait()

    it = make_registration(stuck, limit=2, overflow="error", on_error=hook, fail_fast=fail_fast)
    async with asyncio.TaskGroup() as group:
        it.start(group, on_fatal=fatal.append)
        for number in range(5):
            it.listener.put([Added(pod(f"pod-{number}", number))])
            await asyncio.sleep(0)
        assert len(hook.errors) == 1
        assert it.running
        finish.set()

    ((name, error),) = hook.errors
    assert name == it.name
    assert isinstance(error, ListenerOverflow)
    assert it.statistics().errors == 1
    assert fatal == ([error] if fail_fast else [])


# -- several keys at once ----------------------------------------------------------------------


class Juggler:
    """Deals with an object for as many seconds as its name says; objects called at once."""

    def __init__(self) -> None:
        self.at_work: set[str] = set()
        self.most = 0
        self.done: list[tuple[float, str, str]] = []

    async def __call__(self, event: Event) -> None:
        name = event.obj.name
        assert name not in self.at_work
        self.at_work.add(name)
        self.most = max(self.most, len(self.at_work))
        try:
            await asyncio.sleep(float(name.partition("-")[2]))
        finally:
            self.at_work.remove(name)
        self.done.append((now(), name, event.obj.resource_version))


def now() -> float:
    return asyncio.get_running_loop().time()


def of(*scenario: str) -> list[Event]:
    """``a-1`` is an object that takes a second."""
    return [Added(pod(name, number)) for number, name in enumerate(scenario)]


@pytest.mark.parametrize("seed", range(5))
def test_events_of_several_objects_are_handled_concurrently_but_one_at_a_time_per_object(
    seed: int,
) -> None:
    juggler = Juggler()

    async def main() -> None:
        async with running_registration(make_registration(juggler, concurrency=2)) as it:
            it.listener.put(of("a-3", "b-1", "a-3", "c-1", "c-1"))
            await asyncio.sleep(60)

    run(main(), seed=seed)

    assert juggler.most == 2
    assert sorted(juggler.done) == [
        (1.0, "b-1", "1"),
        (2.0, "c-1", "3"),
        (3.0, "a-3", "0"),
        (3.0, "c-1", "4"),
        (6.0, "a-3", "2"),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_each_object_is_kept(seed: int) -> None:
    juggler, chance = Juggler(), Random(seed)
    scenario = of(*(chance.choice(("a-0", "b-1", "c-2", "d-0.5")) for _ in range(60)))

    async def main() -> None:
        async with running_registration(make_registration(juggler, concurrency=3)) as it:
            for event in scenario:
                it.listener.put([event])
                await asyncio.sleep(chance.choice((0, 0.3)))
            await asyncio.sleep(1000)
            assert it.statistics().delivered == 60

    run(main(), seed=seed)

    assert juggler.most == 3
    for name in ("a-0", "b-1", "c-2", "d-0.5"):
        heard = [version for _, who, version in juggler.done if who == name]
        assert heard == [each.obj.resource_version for each in scenario if each.obj.name == name]


def test_events_wait_in_the_mailbox_where_they_are_merged() -> None:
    juggler = Juggler()

    async def main() -> None:
        async with running_registration(make_registration(juggler, concurrency=2, limit=100)) as it:
            it.listener.put(of("a-9", *(["b-9"] * 50), *(["c-1"] * 40)))
            await asyncio.sleep(1)
            assert it.statistics().pending >= 91 - 2 - 2 * LOOKAHEAD
            assert len(juggler.at_work) == 2

    run(main(), seed=0)


def test_plain_functions_may_be_called_by_key_too() -> None:
    seen: list[Event] = []
    scenario = of("a", "b", "a", "b", "c")

    async def main() -> None:
        async with running_registration(make_registration(seen.append, concurrency=4)) as it:
            it.listener.put(scenario)
            await asyncio.sleep(1)

    run(main(), seed=0)

    assert seen == scenario


def test_a_removed_handler_drops_events_that_wait_for_their_key() -> None:
    juggler = Juggler()

    async def main() -> None:
        async with running_registration(make_registration(juggler, concurrency=2)) as it:
            it.listener.put(of("a-3", "a-3", "b-1"))
            await asyncio.sleep(2)
            await it.aclose()
            assert now() == 3.0

    run(main(), seed=0)

    assert [name for _, name, _ in juggler.done] == ["b-1", "a-3"]


def test_all_calls_end_with_the_task() -> None:
    juggler = Juggler()

    async def main() -> None:
        it = make_registration(juggler, concurrency=3)
        async with asyncio.TaskGroup() as group:
            task = it.start(group)
            it.listener.put(of("a-3", "b-3", "a-3", "c-3"))
            await asyncio.sleep(1)
            assert len(juggler.at_work) == 3
            task.cancel()
        assert now() == 1.0

    run(main(), seed=0)

    assert not juggler.at_work
    assert not juggler.done


@pytest.mark.parametrize("seed", range(20))
def test_a_call_that_is_cancelled_before_its_first_step_leaves_no_warning(seed: int) -> None:
    """Python warns of a coroutine that was never awaited."""

    async def main() -> None:
        it = make_registration(Juggler(), concurrency=3)
        async with asyncio.TaskGroup() as group:
            task = it.start(group)
            await asyncio.sleep(1)  # until it waits for an event
            it.listener.put(of("a", "b", "c"))
            await yield_to_loop(2)  # then, in some orders, a call of three has a task and no step
            task.cancel()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(main(), seed=seed)
        gc.collect()
    assert [str(each.message) for each in caught] == []


def test_no_call_follows_one_that_swallows_its_cancellation() -> None:
    calls: list[str] = []

    async def stubborn(event: Event) -> None:
        calls.append(event.obj.name)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return

    async def main() -> None:
        it = make_registration(stubborn, concurrency=2)
        async with asyncio.TaskGroup() as group:
            task = it.start(group)
            it.listener.put(of("a", "a", "b", "b", "c"))
            await asyncio.sleep(1)
            task.cancel()
        assert now() == 1.0

    run(main(), seed=0)

    assert calls == ["a", "b"]


# -- in time -----------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_call_that_takes_too_long_is_cancelled_and_the_next_event_follows(
    concurrency: int,
) -> None:
    juggler, hook = Juggler(), Hook()

    async def main() -> None:
        it = make_registration(juggler, timeout=5, concurrency=concurrency, on_error=hook)
        async with running_registration(it):
            it.listener.put(of("a-1", "a-99", "a-4", "a-1"))
            await asyncio.sleep(60)
            assert it.statistics().errors == 1

    run(main(), seed=0)

    assert {version for _, _, version in juggler.done} == {"0", "2", "3"}
    ((_, error),) = hook.errors
    assert isinstance(error, HandlerTimeout)
    assert isinstance(error, TimeoutError)
    assert "took longer than 5 s at Added of" in str(error)
    assert str(error).endswith("cancelled")


def test_a_call_may_take_until_its_time_is_up() -> None:
    juggler, hook = Juggler(), Hook()

    async def main() -> None:
        async with running_registration(make_registration(juggler, timeout=5, on_error=hook)) as it:
            it.listener.put(of(*(["a-4.9"] * 10)))
            await asyncio.sleep(60)

    run(main(), seed=0)

    assert len(juggler.done) == 10
    assert not hook.errors


def test_only_the_call_that_is_late_is_cancelled() -> None:
    juggler, hook = Juggler(), Hook()

    async def main() -> None:
        async with running_registration(
            make_registration(juggler, timeout=5, concurrency=3, on_error=hook)
        ) as it:
            it.listener.put(of("a-99"))
            await asyncio.sleep(3)
            it.listener.put(of("b-4", "c-1"))
            await asyncio.sleep(60)

    run(main(), seed=0)

    assert [(at, name) for at, name, _ in juggler.done] == [(4.0, "c-1"), (7.0, "b-4")]
    assert len(hook.errors) == 1


def test_a_late_call_that_ignores_its_cancellation_is_one_failure() -> None:
    seen: list[float] = []
    hook = Hook()

    async def stubborn(event: Event) -> None:
        try:
            await asyncio.sleep(99)
        except asyncio.CancelledError:
            await asyncio.sleep(20)
        seen.append(now())

    async def main() -> None:
        async with running_registration(
            make_registration(stubborn, timeout=5, on_error=hook)
        ) as it:
            it.listener.put(LIFECYCLE_EVENTS[:2])
            await asyncio.sleep(200)

    run(main(), seed=0)

    assert seen == [25.0, 50.0]
    assert len(hook.errors) == 2


def test_an_exception_of_a_late_call_is_a_further_failure() -> None:
    hook = Hook()

    async def clumsy(event: Event) -> None:
        try:
            await asyncio.sleep(99)
        finally:
            raise ValueError("while cleaning up")

    async def main() -> None:
        async with running_registration(make_registration(clumsy, timeout=5, on_error=hook)) as it:
            it.listener.put(LIFECYCLE_EVENTS[:1])
            await asyncio.sleep(20)
            assert it.running

    run(main(), seed=0)

    assert [type(error) for _, error in hook.errors] == [HandlerTimeout, ValueError]


def test_with_fail_fast_a_late_call_is_fatal() -> None:
    async def main() -> BaseException:
        it = make_registration(Juggler(), timeout=5, fail_fast=True)
        error = await fatal_error(it, *of("a-99"))
        assert now() == 5.0
        return error

    assert isinstance(run(main(), seed=0), HandlerTimeout)


async def test_with_fail_fast_a_plain_function_that_took_too_long_is_fatal() -> None:
    def slow(event: Event) -> None:
        time.sleep(0.003)

    it = make_registration(slow, timeout=0.001, fail_fast=True)

    assert isinstance(await fatal_error(it, *LIFECYCLE_EVENTS), HandlerTimeout)
    assert it.statistics().errors == 1


@pytest.mark.parametrize("seed", range(10))
def test_a_cancellation_at_the_moment_of_a_timeout_ends_the_handler(seed: int) -> None:
    calls: list[Event] = []

    async def slow(event: Event) -> None:
        calls.append(event)
        await asyncio.sleep(99)

    async def main() -> None:
        it = make_registration(slow, timeout=5)
        async with asyncio.TaskGroup() as group:
            task = it.start(group)
            it.listener.put(LIFECYCLE_EVENTS)
            await asyncio.sleep(5)
            task.cancel()
        assert now() == 5.0

    run(main(), seed=seed)

    # Which of the two comes first is the seed's: the time-out may let one more call begin.
    assert len(calls) <= 2


async def test_a_plain_function_that_took_too_long_is_reported_afterwards() -> None:
    hook = Hook()

    def slow(event: Event) -> None:
        time.sleep(0.003)

    async with running_registration(make_registration(slow, timeout=0.001, on_error=hook)) as it:
        it.listener.put(LIFECYCLE_EVENTS)
        await wait_until(lambda: len(hook.errors) == 3)

    assert all(isinstance(error, HandlerTimeout) for _, error in hook.errors)
    assert "it isn't async" in str(hook.errors[0][1])


def test_a_call_that_does_not_return_is_warned_of_under_its_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> list[float]:
        async with running_registration(make_registration(Juggler())) as it:
            it.listener.put(of("a-9", "a-99", "a-1"))
            await asyncio.sleep(200)
        return [record.created for record in caplog.records]

    run(main(), seed=0)

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "handler Juggler has not returned after 10 s, at Added of <Pod web/a-99" in (
        record.getMessage()
    )


def test_many_slow_calls_at_once_are_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with running_registration(make_registration(Juggler(), concurrency=50)) as it:
            it.listener.put(of(*(f"{number}-60" for number in range(50))))
            await asyncio.sleep(100)

    run(main(), seed=0)

    assert len(caplog.records) == 1


def test_a_call_whose_timeout_is_shorter_than_the_warning_delay_causes_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        for timeout in (9, 20):
            async with running_registration(make_registration(Juggler(), timeout=timeout)) as it:
                it.listener.put(of("a-99"))
                await asyncio.sleep(30)

    run(main(), seed=0)

    levels = [record.levelname for record in caplog.records]
    assert levels == ["ERROR", "WARNING", "ERROR"]


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_plain_function_that_holds_the_loop_is_warned_of(
    concurrency: int, caplog: pytest.LogCaptureFixture
) -> None:
    seconds = list[float]()

    async def main() -> None:
        it = make_registration(lambda _: None, concurrency=concurrency, on_blocked=seconds.append)
        async with running_registration(it):
            it.listener.put(of(*(["a"] * 100)))
            await asyncio.sleep(1000)

    run(main(), seed=1, cost=5.0)  # a look at the clock finds it up to 5 s later

    assert f"held the event loop for {seconds[0]:.2f} s" in caplog.text
    assert "or pass run_in_thread=True" in caplog.text


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"concurrency": 0}, "concurrency must be at least 1, not 0"),
        ({"timeout": 0}, "timeout must be seconds, or None for no limit, not 0"),
        ({"timeout": -1.5}, "timeout must be seconds, or None for no limit, not -1.5"),
    ],
)
def test_contradictory_handler_options_are_an_error(terms: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        HandlerOptions(**terms)


# -- its numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 2])
def test_the_time_that_calls_take_is_counted(concurrency: int) -> None:
    async def main() -> Statistics:
        async with running_registration(
            make_registration(Juggler(), concurrency=concurrency)
        ) as it:
            it.listener.put(of("a-1", "a-4", "a-1"))
            await asyncio.sleep(60)
            return it.statistics()

    numbers = run(main(), seed=0)

    assert (numbers.spent_mean, numbers.spent_max) == (2.0, 4.0)
    assert numbers.spent_last == (1.0 if concurrency == 1 else 4.0)
    assert numbers.delivered == 3


# -- cancellation -----------------------------------------------------------------------------


async def test_a_cancelled_handler_is_not_called_again() -> None:
    calls = 0

    async def handler(event: Event) -> None:
        nonlocal calls
        calls += 1
        await asyncio.sleep(60)

    async with asyncio.TaskGroup() as group:
        work = group.create_task(_run_until_cancelled(make_registration(handler)))
        await wait_until(lambda: calls == 1)
        work.cancel()

    assert calls == 1


async def test_a_handler_that_swallows_its_cancellation_is_not_called_again() -> None:
    """It would keep its informer from ending: a task group cancels only once."""
    calls = 0

    async def stubborn(event: Event) -> None:
        nonlocal calls
        calls += 1
        try:
            await asyncio.sleep(60 if calls == 1 else 0)
        except asyncio.CancelledError:
            return

    it = make_registration(stubborn)
    work = asyncio.create_task(_run_until_cancelled(it))
    await wait_until(lambda: calls == 1)
    work.cancel()
    ended, _ = await asyncio.wait({work}, timeout=30)
    it.remove()
    await asyncio.wait({work})

    assert ended
    assert calls == 1


async def _run_until_cancelled(it: Registration) -> None:
    it.listener.put(LIFECYCLE_EVENTS)
    async with asyncio.TaskGroup() as group:
        it.start(group)


async def test_a_handler_that_calls_uncancel_still_ends_with_its_informer() -> None:
    calls, ending = 0, False

    async def stubborn(event: Event) -> None:
        nonlocal calls
        calls += 1
        task = asyncio.current_task()
        assert task is not None
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            task.uncancel()

    it = make_registration(stubborn)
    async with asyncio.TaskGroup() as group:
        task = it.start(group, lambda: ending)
        it.listener.put(LIFECYCLE_EVENTS)
        await wait_until(lambda: calls == 1)
        ending = True
        task.cancel()

    assert calls == 1


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("kind", ["plain", "async", "async that waits", "swallows", "takes back"])
async def test_a_handler_that_cancels_its_own_task_fails_and_receives_the_next_event(
    kind: str, concurrency: int
) -> None:
    hook, seen = Hook(), list[Event]()

    def cancel() -> asyncio.Task[Any]:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return task

    def plain(event: Event) -> None:
        seen.append(event)
        cancel()

    async def coroutine(event: Event) -> None:
        seen.append(event)
        task = cancel()
        if kind == "async that waits":
            await asyncio.sleep(0)
        elif kind != "async":
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
            if kind == "takes back":
                task.uncancel()

    it = make_registration(
        plain if kind == "plain" else coroutine, concurrency=concurrency, on_error=hook
    )
    async with asyncio.TaskGroup() as group:
        it.start(group, lambda: False)
        for _ in range(2):
            it.listener.put([*LIFECYCLE_EVENTS, Added(pod("b", 7))])
            await wait_until(lambda: it.listener.mailbox.empty)
            await yield_to_loop()
        assert it.running
        it.remove()

    assert len(seen) == 8
    assert bool(hook.errors) is (kind != "takes back")
    assert {type(error) for _, error in hook.errors} <= {HandlerCancelled}


@pytest.mark.parametrize("kind", ["plain", "async"])
@pytest.mark.parametrize("found", [True, False])
async def test_each_call_that_cancels_its_own_task_is_one_failure(kind: str, found: bool) -> None:
    """Also if it raises CancelledError as well, for initial objects and for live events."""
    calls = 0

    def plain(event: Event) -> None:
        nonlocal calls
        calls += 1
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if calls % 2:
            raise asyncio.CancelledError

    async def coroutine(event: Event) -> None:
        plain(event)

    it = make_registration(plain if kind == "plain" else coroutine)
    async with asyncio.TaskGroup() as group:
        it.start(group, lambda: False)
        await yield_to_loop()
        if found:
            it.listener.replay([pod(f"p-{number}", 1) for number in range(4)])
        else:
            it.listener.put([Added(pod(f"p-{number}", 1)) for number in range(4)])
        await wait_until(lambda: calls == 4)
        await yield_to_loop()
        assert it.running
        assert it.statistics().errors == 4
        it.remove()


async def test_with_fail_fast_a_handler_that_cancels_its_own_task_is_a_fatal_error() -> None:
    def cancel(event: Event) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    it = make_registration(cancel, fail_fast=True)

    assert isinstance(await fatal_error(it, *LIFECYCLE_EVENTS), HandlerCancelled)


async def test_a_cancellation_while_another_one_is_undone_ends_the_handler() -> None:
    calls, ending = 0, False

    def cancel(event: Event) -> Awaitable[None]:
        nonlocal calls
        calls += 1
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        asyncio.get_running_loop().call_soon(end, task)
        return asyncio.sleep(10)  # is to feel it

    def end(task: asyncio.Task[Any]) -> None:
        nonlocal ending
        ending = True
        task.cancel()

    it = make_registration(cancel)
    async with asyncio.TaskGroup() as group:
        task = it.start(group, lambda: ending)
        it.listener.put(LIFECYCLE_EVENTS)
        ended, _ = await asyncio.wait({task}, timeout=30)
        assert ended

    assert calls == 1


# -- the context ------------------------------------------------------------------------------

TENANT = ContextVar("TENANT", default="nobody")


async def test_a_handler_runs_in_a_copy_of_the_context_of_its_registration() -> None:
    seen: list[str] = []

    async def handler(event: Event) -> None:
        seen.append(TENANT.get())
        TENANT.set("changed by the handler")

    token = TENANT.set("acme")
    it = make_registration(handler)
    TENANT.reset(token)
    async with asyncio.TaskGroup() as group:
        it.start(group)
        it.listener.put(LIFECYCLE_EVENTS[:2])
        await wait_until(lambda: len(seen) == 2)
        it.remove()

    assert seen == ["acme", "changed by the handler"]
    assert TENANT.get() == "nobody"


# -- yielding to the loop -------------------------------------------------------------------------


async def test_the_runner_yields_to_the_loop_although_the_handler_never_awaits() -> None:
    turns_at: list[int] = []
    it: Registration
    count = 500_000  # far more than 4 ms of work

    async with asyncio.TaskGroup() as group:
        seen: list[Event] = []
        it = make_registration(seen.append, limit=count)
        it.start(group)
        it.listener.put((Added(pod("a", 1)),) * count)
        while len(seen) < count:
            turns_at.append(len(seen))
            await asyncio.sleep(0)
        it.remove()

    assert len([turn for turn in turns_at if 0 < turn < count]) >= 1
