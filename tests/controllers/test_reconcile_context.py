"""The context of a reconciler."""

from __future__ import annotations

import pytest

from aioinformer import Priority, Reason, ReconcileContext
from aioinformer.errors import UsageError

CONTEXT = ReconcileContext(
    controller="foos",
    reasons=(Reason("updated", "pods"),),
    retries=2,
    priority=Priority.LOW,
)


def test_a_context_shows_the_reasons_of_its_run() -> None:
    assert (CONTEXT.controller, CONTEXT.retries, CONTEXT.priority) == ("foos", 2, Priority.LOW)
    assert CONTEXT.reasons == (Reason("updated", "pods"),)
    assert CONTEXT.because("updated", informer="pods")
    assert not CONTEXT.because("added")
    assert str(CONTEXT) == "foos: updated in pods, after 2 failures"
    assert repr(CONTEXT) == "<ReconcileContext foos: updated in pods, after 2 failures>"


async def test_a_context_without_a_controller_can_not_write() -> None:
    with pytest.raises(UsageError, match="foos was not made by a controller"):
        await CONTEXT.patch_status({})
