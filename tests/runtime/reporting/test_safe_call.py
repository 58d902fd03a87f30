"""Calls of the program's instrumentation that may raise."""

from __future__ import annotations

import asyncio
import logging
from contextlib import nullcontext

import pytest

from aioinformer._runtime.reporting.safe_call import SafeCall

log = logging.getLogger("tests.safe_call")


class Clock:
    """An interface of two methods."""

    def start(self) -> str:
        return "idle"

    def stop(self) -> str:
        return "idle"


class HalfAClock:
    def start(self, at: int = 0) -> str:
        return f"started at {at}"


def test_a_safe_call_returns_the_result_or_none_after_an_exception(
    caplog: pytest.LogCaptureFixture,
) -> None:
    safe_call = SafeCall(log, "%s raised", "the clock")
    assert safe_call(int, "7") == 7
    assert safe_call(int, "x") is None
    assert safe_call(int, "y") is None
    assert caplog.messages == ["the clock raised"], "the first exception alone"
    assert repr(safe_call) == "<SafeCall the clock>"


@pytest.mark.parametrize(
    ("error", "caught"),
    [
        *((asyncio.CancelledError, True), (GeneratorExit, True), (BaseException, True)),
        *((KeyboardInterrupt, False), (SystemExit, False)),
    ],
)
def test_an_exception_is_caught_unless_it_ends_the_program(
    error: type[BaseException], caught: bool
) -> None:
    with nullcontext() if caught else pytest.raises(error):
        assert SafeCall(log, "%s raised", "the clock")(_raise, error) is None


def _raise(error: type[BaseException]) -> None:
    raise error


def test_the_existing_methods_of_an_interface_are_wrapped() -> None:
    wrapper = Clock()
    SafeCall(log, "%s raised", "the clock").wrap(HalfAClock(), Clock, wrapper)
    assert wrapper.start() == "started at 0"
    assert wrapper.stop() == "idle"
