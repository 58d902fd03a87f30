"""The time limit of the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from tests.time_limit import TimeLimit

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]

HANGING_TEST = """
from threading import Event

def test_that_hangs():
    Event().wait()
"""


def test_a_limit_that_is_reached_calls_the_function_once() -> None:
    limit, calls = TimeLimit(), list[str]()
    later = Event()

    limit.set(0.0, _call_and_set(calls, "first", first := Event()))
    assert first.wait(30)
    limit.set(0.0, _call_and_set(calls, "later", later))

    assert later.wait(30)
    assert calls == ["first", "later"]


def test_a_limit_that_was_lifted_or_replaced_calls_nothing() -> None:
    limit, calls = TimeLimit(), list[str]()

    limit.set(600, lambda: calls.append("lifted"))
    limit.lift()
    limit.set(600, lambda: calls.append("replaced"))
    limit.set(0.0, _call_and_set(calls, "last", last := Event()))

    assert last.wait(30)
    assert calls == ["last"]


def test_a_shorter_limit_wakes_the_thread_that_sleeps_for_a_longer_one() -> None:
    limit, called = TimeLimit(), Event()

    limit.set(600, called.clear)
    limit.lift()
    limit.set(0.01, called.set)

    assert called.wait(30)


@pytest.mark.clients
def test_a_test_that_hangs_ends_the_run_with_the_stacks(pytester: pytest.Pytester) -> None:
    pytester.syspathinsert(ROOT)
    pytester.makepyfile(HANGING_TEST)

    run = pytester.runpytest_subprocess(
        "-p", "tests.conftest", "-p", "no:cacheprovider", "--timeout=0.5", "--timeout-method=thread"
    )

    assert run.ret == 1
    assert any("Event().wait()" in line for line in run.errlines + run.outlines)


def _call_and_set(calls: list[str], name: str, called: Event) -> Callable[[], None]:
    def call() -> None:
        calls.append(name)
        called.set()

    return call
