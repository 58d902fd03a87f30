"""Failures of a controller are reported to the log, the metrics and the hook."""

from __future__ import annotations

import logging

import pytest

from aioinformer import Problem
from aioinformer.controllers.health import ReconcileErrors
from aioinformer.controllers.options import ControllerOptions
from aioinformer.errors import ConnectionLost, ReconcileTimeout
from tests.controllers.reconcilers import key


async def test_a_failure_is_logged_counted_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    problems = list[Problem]()
    errors = ReconcileErrors("foos", ControllerOptions(name="it", on_error=problems.append))
    error = ValueError("no")

    errors.report_failure(key("a"), error, failures=3, delay=0.02)

    assert problems == [
        Problem(
            informer="foos", phase="reconcile", cause="it", error=error, retry_in=0.02, key=key("a")
        )
    ]
    (record,) = caplog.records
    said = "controller it: default/a failed (3 in a row), retried in 0.02 s: ValueError: no"
    assert record.message == said
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert (errors.count, repr(errors)) == (1, "<ReconcileErrors of it: 1>")


@pytest.mark.parametrize("error", [ConnectionLost("lost"), ReconcileTimeout("late")])
async def test_a_failed_request_is_logged_without_a_traceback(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    ReconcileErrors("foos", ControllerOptions(name="it")).report_failure(
        key("a"), error, failures=1, delay=1
    )
    (record,) = caplog.records
    assert (record.levelno, record.exc_info) == (logging.WARNING, None)


async def test_an_interruption_in_the_hook_is_not_swallowed() -> None:
    def hook(problem: Problem) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ReconcileErrors("foos", ControllerOptions(name="it", on_error=hook)).report_trigger_failure(
            "bars", ValueError("no")
        )


def test_an_async_hook_is_rejected() -> None:
    async def later(problem: Problem) -> None:
        return None

    with pytest.raises(TypeError, match="must not be async"):
        ReconcileErrors("foos", ControllerOptions(name="it", on_error=later))  # type: ignore[arg-type] # on purpose
