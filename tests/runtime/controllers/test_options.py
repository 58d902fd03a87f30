"""The options of a controller."""

from __future__ import annotations

import pytest

from aioinformer import BackoffPolicy
from aioinformer._runtime.controllers.options import ControllerOptions


def test_the_backoff_of_an_informer_is_not_the_backoff_of_keys() -> None:
    with pytest.raises(TypeError, match=r"must be a RateLimiter such as ItemExponential"):
        ControllerOptions(name="it", backoff=BackoffPolicy())  # type: ignore[arg-type] # on purpose
