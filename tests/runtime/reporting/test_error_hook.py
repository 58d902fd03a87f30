"""The error hook, and the limit on logged tracebacks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from aioinformer import ObjectKey, Problem
from aioinformer._runtime.reporting.error_hook import LogThrottle, call_hook, check_hook
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
