"""The text of a problem, which programs log."""

from __future__ import annotations

from aioinformer import ObjectKey
from aioinformer._runtime.reporting.problem import Problem
from aioinformer.errors import ConnectionFailed


def test_the_text_names_the_informer_the_work_the_cause_and_the_error() -> None:
    problem = Problem(
        informer="pods", phase="list", cause="unreachable", error=ConnectionFailed("refused")
    )

    assert str(problem) == "pods: list unreachable: ConnectionFailed: refused"


def test_the_text_says_when_the_next_attempt_is_due_even_if_at_once() -> None:
    problem = Problem(
        informer="pods", phase="watch", cause="expired", error=ValueError("old"), retry_in=0.0
    )

    assert str(problem) == "pods: watch expired: ValueError: old; next attempt in 0.0 s"


def test_the_text_names_the_object_that_a_controller_failed_to_reconcile() -> None:
    problem = Problem(
        informer="foos",
        phase="reconcile",
        cause="foo-controller",
        error=ValueError("no spec"),
        retry_in=1.26,
        key=ObjectKey("web", "a"),
    )

    assert str(problem) == (
        "foos: reconcile of web/a foo-controller: ValueError: no spec; next attempt in 1.3 s"
    )
