"""Time limits must be finite."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import pytest

from aioinformer._client.http.request import Timeouts

NAMES = [each.name for each in fields(Timeouts)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seconds", [0, -1, -0.5, math.nan, math.inf, None, "5", True])
def test_a_wait_that_never_begins_or_ends_is_refused(name: str, seconds: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} is a number of seconds above 0, not"):
        Timeouts(**{name: seconds})


@pytest.mark.parametrize("name", NAMES)
def test_any_other_number_is_taken(name: str) -> None:
    assert getattr(Timeouts(**{name: 7}), name) == 7
    assert getattr(Timeouts(**{name: 0.001}), name) == 0.001
