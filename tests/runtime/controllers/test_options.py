"""The options of a controller, and the arguments that have two names."""

from __future__ import annotations

import pytest

from aioinformer import BackoffPolicy, Controller, ItemExponential, WorkQueue
from aioinformer._runtime.controllers.options import ControllerOptions, resolve_alias
from tests.runtime.controllers.reconcilers import (
    RecordingReconciler,
    foo_informer,
    make_cluster,
)


def test_an_argument_may_be_given_by_either_name() -> None:
    assert resolve_alias(4, concurrency=2, workers=None) == 2
    assert resolve_alias(4, concurrency=None, workers=0) == 0
    assert resolve_alias(4, concurrency=None, workers=None) == 4


async def test_an_argument_that_is_given_by_both_names_is_rejected() -> None:
    limiter = ItemExponential(1.0, 8.0)
    async with foo_informer(make_cluster()) as foos:
        with pytest.raises(TypeError, match="concurrency= and workers= are the same argument"):
            Controller(foos, RecordingReconciler(), concurrency=2, workers=2)
        with pytest.raises(TypeError, match="give backoff= only"):
            Controller(foos, RecordingReconciler(), backoff=limiter, limiter=limiter)
        Controller(foos, RecordingReconciler(), workers=2, limiter=limiter)
    with pytest.raises(TypeError, match="give backoff= only"):
        WorkQueue[str](backoff=limiter, limiter=limiter)


def test_the_backoff_of_an_informer_is_not_the_backoff_of_keys() -> None:
    with pytest.raises(TypeError, match=r"must be a RateLimiter such as ItemExponential"):
        ControllerOptions(name="it", backoff=BackoffPolicy())  # type: ignore[arg-type] # on purpose


async def test_a_queue_takes_its_backoff_by_either_name() -> None:
    for queue in (
        WorkQueue[str](backoff=ItemExponential(1.0, 8.0)),
        WorkQueue[str](limiter=ItemExponential(1.0, 8.0)),
    ):
        queue.add_rate_limited("a")
        assert queue.retries("a") == 1
