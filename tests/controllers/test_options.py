"""The options of a controller."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import BackoffPolicy
from aioinformer.controllers.options import ControllerOptions


def test_the_backoff_of_an_informer_is_not_the_backoff_of_keys() -> None:
    with pytest.raises(TypeError, match=r"must be a RateLimiter such as ItemExponential"):
        ControllerOptions(name="it", backoff=BackoffPolicy())  # type: ignore[arg-type] # on purpose


@pytest.mark.parametrize("name", ["timeout", "shutdown_timeout"])
def test_seconds_are_a_number(name: str) -> None:
    options: dict[str, Any] = {name: "30s"}
    with pytest.raises(TypeError, match=f"{name} must be seconds, or .*, not '30s'"):
        ControllerOptions(name="it", **options)
