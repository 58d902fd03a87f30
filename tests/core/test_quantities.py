"""Numbers with their nouns."""

from __future__ import annotations

import pytest

from aioinformer._core.quantities import quantity


@pytest.mark.parametrize(("number", "text"), [(0, "0 keys"), (1, "1 key"), (2, "2 keys")])
def test_only_the_number_one_has_the_singular(number: int, text: str) -> None:
    assert quantity(number, "key") == text
