"""Time limits must be finite."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import pytest

from aioinformer import Timeouts

NAMES = [each.name for each in fields(Timeouts)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seconds", [0, -1, -0.5, math.nan, math.inf, None, "5", True])
def test_a_timeout_that_is_not_positive_and_finite_is_rejected(name: str, seconds: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} is a number of seconds above 0, not"):
        Timeouts(**{name: seconds})


@pytest.mark.parametrize("name", NAMES)
def test_a_positive_number_is_accepted(name: str) -> None:
    assert getattr(Timeouts(**{name: 7}), name) == 7
    assert getattr(Timeouts(**{name: 0.001}), name) == 0.001
