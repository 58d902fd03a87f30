"""The delay that an error of a reconciler carries."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest

from aioinformer.errors import TemporaryError


@pytest.mark.parametrize("after", [120, 120.0, timedelta(minutes=2)])
def test_a_delay_is_seconds_or_a_timedelta(after: float | timedelta) -> None:
    error = TemporaryError("not yet", requeue_after=after)
    assert (str(error), error.requeue_after) == ("not yet", 120.0)


def test_an_error_without_a_delay_waits_for_the_backoff() -> None:
    assert TemporaryError("not yet").requeue_after is None


@pytest.mark.parametrize("after", ["30s", "30", True, [30]])
def test_another_type_is_rejected_where_it_is_written(after: Any) -> None:
    with pytest.raises(TypeError, match="requeue_after must be seconds or a timedelta, not"):
        TemporaryError("not yet", requeue_after=after)


@pytest.mark.parametrize("after", [-1, float("nan"), float("inf"), timedelta(seconds=-1)])
def test_a_negative_or_infinite_delay_is_rejected(after: Any) -> None:
    with pytest.raises(ValueError, match="requeue_after must be seconds from 0 on, or None"):
        TemporaryError("not yet", requeue_after=after)


def test_a_copy_of_the_error_keeps_its_delay() -> None:
    copied = pickle.loads(pickle.dumps(TemporaryError("not yet", requeue_after=3)))  # noqa: S301
    assert (str(copied), copied.requeue_after) == ("not yet", 3)
