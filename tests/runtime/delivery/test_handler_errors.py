"""Reports of failed handler calls: to the log, the statistics and the program's error hook."""

from __future__ import annotations

import asyncio
import logging

import pytest

from aioinformer import Added
from aioinformer._core.objects.resources import find_built_in
from aioinformer._runtime.delivery.handler_errors import SLOW_WARNING_INTERVAL, HandlerErrors
from aioinformer.errors import HandlerCancelled, ModelMismatch
from aioinformer.testing.simulation import run
from tests.core.builders import make_object
from tests.runtime.scripted_source import pod

EVENT = Added(pod("a", 1))
SECRET = make_object({"metadata": {"name": "s"}}, resource=find_built_in("secrets"))


class Report:
    """The errors of one listener, and the calls of its hook."""

    def __init__(self) -> None:
        self.calls = list[tuple[str, Exception]]()
        self.errors = HandlerErrors("mail", lambda name, error: self.calls.append((name, error)))


def test_a_filter_that_quotes_a_secret_is_reported_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    report = Report()
    report.errors.report_filter_exception(SECRET, ValueError("invalid: hunter2"))

    assert "the filter of mail raised at " in caplog.text
    assert "hunter2" not in caplog.text + repr(report.calls)


def test_a_model_that_does_not_fit_in_a_filter_is_no_failure_of_the_filter() -> None:
    report = Report()
    mismatch = ModelMismatch.__new__(ModelMismatch)
    report.errors.report_filter_exception(EVENT.obj, mismatch)

    assert report.errors.count == 0
    assert len(report.calls) == 1


async def test_a_call_that_held_the_event_loop_is_counted_measured_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    measured = list[float]()
    errors = HandlerErrors("mail", on_blocked=measured.append)

    errors.report_blocking(0.3)
    errors.report_blocking(0.4)

    assert (errors.blocking_calls, errors.count, measured) == (2, 0, [0.3, 0.4])
    (message,) = caplog.messages
    assert message.startswith("handler mail held the event loop for 0.30 s")


def test_every_other_end_of_a_call_counts_and_reaches_the_hook() -> None:
    report = Report()
    report.errors.report_self_cancel()
    report.errors.report_filter_exception(EVENT.obj, KeyError("spec"))
    report.errors.report_end(RuntimeError("closed"))

    assert report.errors.count == 3
    assert [type(error) for _, error in report.calls] == [HandlerCancelled, KeyError, RuntimeError]


def test_a_slow_handler_is_warned_of_once_in_an_interval(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)

    async def main() -> None:
        errors = Report().errors
        for _ in range(3):
            errors.report_slow_call(EVENT, "takes 3 s")
        assert caplog.messages == [f"handler mail takes 3 s, at Added of {EVENT.obj!r}"]
        await asyncio.sleep(SLOW_WARNING_INTERVAL)
        errors.report_slow_call(EVENT, "takes 4 s")
        assert errors.count == 0

    run(main(), seed=1)
    assert len(caplog.messages) == 2
