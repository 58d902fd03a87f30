"""Reports of failed handler calls: to the log, the statistics and the program's error hook."""

from __future__ import annotations

import asyncio
import logging

import pytest

from aioinformer import Added
from aioinformer._core.objects.resources import find_built_in
from aioinformer._runtime.delivery.handler_errors import SLOW_WARNING_INTERVAL, HandlerErrors
from aioinformer.errors import HandlerCancelled, HandlerTimeout, ModelMismatch, ObjectDecodeError
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


def test_an_exception_of_the_handler_is_logged_counted_and_passed_to_the_hook(
    caplog: pytest.LogCaptureFixture,
) -> None:
    report, error = Report(), ValueError("no address")

    assert report.errors.report_exception(EVENT, error) is error

    assert report.calls == [("mail", error)]
    assert repr(report.errors) == "<HandlerErrors of mail: 1>"
    assert caplog.messages == [
        f"handler mail raised at Added of {EVENT.obj!r}: ValueError: no address"
    ]


@pytest.mark.parametrize("kind", [ObjectDecodeError, ModelMismatch])
def test_an_object_that_can_not_be_read_is_no_failure_of_the_handler(
    kind: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    report = Report()
    error = kind.__new__(kind)
    error.args = ("the object a",)
    report.errors.report_exception(EVENT, error)
    report.errors.report_filter_exception(EVENT.obj, ValueError("a filter"))

    assert report.errors.count == 1  # the filter's
    assert len(report.calls) == 2
    assert caplog.messages[0] == f"handler mail: {kind.__name__}: the object a"


def test_a_base_exception_is_reported_to_the_hook_as_a_cancelled_handler() -> None:
    report, error = Report(), SystemExit(3)

    reported = report.errors.report_exception(EVENT, error)

    assert isinstance(reported, HandlerCancelled)
    assert str(reported) == "mail raised a SystemExit of its own"
    assert reported.__cause__ is error
    assert report.calls == [("mail", reported)]


def test_a_call_that_took_too_long_says_at_which_object_and_what_follows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    report = Report()

    error = report.errors.report_timeout(EVENT, 2.5, consequence="the next event follows")

    assert isinstance(error, HandlerTimeout)
    text = f"mail took longer than 2.5 s at Added of {EVENT.obj!r}; the next event follows"
    assert (str(error), report.errors.count) == (text, 1)
    assert report.calls == [("mail", error)]
    assert caplog.messages == [f"handler {text}"]


def test_every_other_end_of_a_call_counts_and_reaches_the_hook() -> None:
    report = Report()
    report.errors.report_self_cancel()
    report.errors.report_filter_exception(EVENT.obj, KeyError("spec"))
    report.errors.report_end(RuntimeError("closed"))

    assert report.errors.count == 3
    assert [type(error) for _, error in report.calls] == [HandlerCancelled, KeyError, RuntimeError]


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


def test_a_hook_that_raises_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(name: str, error: Exception) -> None:
        raise LookupError("no such hook")

    HandlerErrors("mail", fail).report_end(RuntimeError("closed"))

    assert "the error hook raised when it was called with mail" in caplog.messages


def test_failures_that_repeat_are_counted_and_logged_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        report = Report()
        for number in range(5):
            report.errors.report_exception(EVENT, ValueError(f"number {number}"))
        assert (report.errors.count, len(report.calls)) == (5, 5)
        assert len(caplog.messages) == 1
        report.errors.flush()

    run(main(), seed=1)
    assert len(caplog.messages) == 2
    assert caplog.messages[1].startswith("4 further failures with ValueError, the last of them: ")
    assert caplog.messages[1].endswith("ValueError: number 4")


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
