"""The error hook, and the limits on what is logged."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable
from contextvars import ContextVar
from typing import ClassVar
from weakref import ref

import pytest

from aioinformer import ObjectKey, Problem
from aioinformer._runtime.reporting.error_hook import (
    FAILURE_INTERVAL,
    FailureLog,
    LogThrottle,
    call_hook,
    check_hook,
)
from aioinformer.testing.simulation import run

log = logging.getLogger("tests.error_hook")


def test_a_problem_describes_a_failure_in_one_line() -> None:
    problem = Problem(
        informer="pods",
        phase="reconcile",
        cause="web",
        error=ValueError("odd"),
        retry_in=1.25,
        key=ObjectKey("web", "web-0"),
    )
    assert str(problem) == (
        "pods: reconcile of web/web-0 web: ValueError: odd; next attempt in 1.2 s"
    )


def test_a_hook_receives_all_arguments_and_may_be_none() -> None:
    calls = list[tuple[str, int]]()

    def hook(name: str, number: int) -> None:
        calls.append((name, number))

    hooks: list[Callable[[str, int], None] | None] = [hook, None]
    for each in hooks:
        call_hook(each, log, "a", 1)
    assert calls == [("a", 1)]


@pytest.mark.parametrize("error", [ValueError("odd"), asyncio.CancelledError()])
def test_an_exception_of_a_hook_is_logged(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def hook(subject: str) -> None:
        raise error

    call_hook(hook, log, "the pods")
    assert caplog.messages == ["the error hook raised when it was called with the pods"]


def test_a_system_exit_of_a_hook_is_raised() -> None:
    def hook(subject: str) -> None:
        raise SystemExit(2)

    with pytest.raises(SystemExit):
        call_hook(hook, log, "the pods")


@pytest.mark.parametrize("hook", [ValueError, "print"])
def test_a_hook_that_is_not_a_function_is_a_type_error(hook: object) -> None:
    with pytest.raises(TypeError, match="on_error is a function of a Problem"):
        check_hook(hook)


def test_a_throttle_allows_one_record_per_interval() -> None:
    async def main() -> list[bool]:
        throttle, allowed = LogThrottle(1.0), list[bool]()
        for _ in range(5):
            allowed.append(throttle.allows())
            await asyncio.sleep(0.4)
        return allowed

    assert run(main(), seed=0) == [True, False, False, True, False]
    assert repr(LogThrottle(10.0)) == "<LogThrottle interval=10>"


# -- failures that repeat ----------------------------------------------------------------------


def fail(failures: FailureLog, error: Exception, name: str) -> None:
    """Raise an error, and log it as the caller of a program's function does."""
    try:
        raise error
    except Exception as raised:  # noqa: BLE001 - any
        failures.failed(raised, "%s raised: %s", name, raised)


def test_the_first_failure_is_logged_at_once_and_the_others_in_one_line_at_the_end_of_the_interval(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        failures = FailureLog(log)
        for number in range(100_000):
            fail(failures, ValueError("odd"), f"pod-{number}")
        assert caplog.messages == ["pod-0 raised: odd"]
        assert caplog.records[0].exc_info is not None
        await asyncio.sleep(FAILURE_INTERVAL - 0.1)
        assert len(caplog.messages) == 1
        await asyncio.sleep(0.2)

    run(main(), seed=0)
    assert caplog.messages[1:] == [
        "99999 further failures with ValueError, the last of them: pod-99999 raised: odd"
    ]
    assert {record.levelno for record in caplog.records} == {logging.ERROR}


def test_the_first_failure_of_the_next_interval_is_logged_in_full_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        failures = FailureLog(log, 1.0)
        for number in range(6):
            fail(failures, ValueError("odd"), str(number))
            await asyncio.sleep(0.4)
        await asyncio.sleep(1)

    run(main(), seed=0)
    further = "2 further failures with ValueError, the last of them: "
    assert caplog.messages == [
        "0 raised: odd",
        f"{further}2 raised: odd",
        "3 raised: odd",
        f"{further}5 raised: odd",
    ]


def test_a_failure_of_another_type_is_logged_at_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        failures = FailureLog(log)
        for error in (ValueError("a"), KeyError("b"), ValueError("c"), KeyError("d")):
            fail(failures, error, "it")
        failures.flush()
        failures.flush()

    run(main(), seed=0)
    assert caplog.messages == [
        "it raised: a",
        "it raised: 'b'",
        "1 further failure with ValueError, the last of them: it raised: c",
        "1 further failure with KeyError, the last of them: it raised: 'd'",
    ]


def test_an_error_that_was_never_raised_is_logged_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        FailureLog(log).failed(ValueError("late"), "it is %s", "late")

    run(main(), seed=0)
    assert caplog.messages == ["it is late"]
    assert caplog.records[0].exc_info is None


def test_the_exceptions_of_an_error_hook_are_counted_after_the_first_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls = list[int]()

    def hook(number: int) -> None:
        calls.append(number)
        raise ValueError("odd")

    async def main() -> None:
        failures = FailureLog(log)
        for number in range(50):
            call_hook(hook, failures, number)
        failures.flush()

    run(main(), seed=0)
    assert len(calls) == 50
    assert caplog.messages == [
        "the error hook raised when it was called with 0",
        "49 further failures with ValueError, the last of them: "
        "the error hook raised when it was called with 49",
    ]
    assert [record.exc_info is not None for record in caplog.records] == [True, False]


def test_outside_of_an_event_loop_every_failure_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    failures = FailureLog(log)
    for number in range(2):
        fail(failures, ValueError("odd"), str(number))
    assert caplog.messages == ["0 raised: odd", "1 raised: odd"]


def test_a_counted_failure_keeps_neither_its_error_nor_the_context_of_its_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    variable: ContextVar[str] = ContextVar("variable", default="no call")

    class OddError(Exception):
        """An error that a weak reference can refer to."""

    class SeenContexts(logging.Handler):
        """Records the value of a context variable at each record."""

        seen: ClassVar[list[str]] = []

        def emit(self, record: logging.LogRecord) -> None:
            self.seen.append(variable.get())

    async def main() -> BaseException | None:
        failures = FailureLog(log)

        async def call() -> ref[BaseException]:
            variable.set("a call")
            error = OddError("second")
            failures.failed(OddError("first"), "it")  # the captured record keeps no frame
            fail(failures, error, "it")
            return ref(error)

        alive = await asyncio.create_task(call())
        assert repr(failures) == "<FailureLog tests.error_hook interval=10 counted=1>"
        gc.collect()
        found = alive()
        await asyncio.sleep(FAILURE_INTERVAL)
        return found

    handler = SeenContexts()
    log.addHandler(handler)
    try:
        assert run(main(), seed=0) is None
    finally:
        log.removeHandler(handler)
    assert handler.seen == ["a call", "no call"]
