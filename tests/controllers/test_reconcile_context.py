"""The context of a reconciler."""

from __future__ import annotations

import pytest

from aioinformer import Priority, Reason, ReconcileContext
from aioinformer.errors import UsageError

CONTEXT = ReconcileContext(
    controller="foos",
    reasons=(Reason("updated", "pods"), Reason("retry")),
    retries=2,
    priority=Priority.LOW,
)


def test_a_context_shows_the_reasons_of_its_run() -> None:
    assert (CONTEXT.controller, CONTEXT.retries, CONTEXT.priority) == ("foos", 2, Priority.LOW)
    assert CONTEXT.reasons == (Reason("updated", "pods"), Reason("retry"))
    assert CONTEXT.because("updated", "deleted")
    assert CONTEXT.because("updated", informer="pods")
    assert not CONTEXT.because("updated", informer="nodes")
    assert not CONTEXT.because("retry", informer="pods")
    assert not CONTEXT.because("added")
    assert str(CONTEXT) == "foos: updated in pods, retry, after 2 failures"
    assert repr(CONTEXT) == "<ReconcileContext foos: updated in pods, retry, after 2 failures>"


def test_a_context_without_failures_names_the_reasons_alone() -> None:
    context = ReconcileContext(controller="foos", reasons=(Reason("retry"),))
    assert (context.retries, context.priority) == (0, Priority.NORMAL)
    assert str(context) == "foos: retry"


async def test_a_context_without_a_controller_can_not_write() -> None:
    with pytest.raises(UsageError, match="foos was not made by a controller"):
        await CONTEXT.patch_status({})
