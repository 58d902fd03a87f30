"""Failing cases become as small as they can."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.testing.simulation.shrink import shrink


@given(st.sets(st.integers(0, 99), max_size=5))
def test_shrink_keeps_only_the_items_that_the_failure_needs(needed: set[int]) -> None:
    def fails(items: Sequence[int]) -> bool:
        return needed <= set(items)

    assert shrink(range(100), fails) == sorted(needed)


@given(st.integers(0, 60))
def test_shrink_keeps_to_its_budget_and_its_result_still_fails(budget: int) -> None:
    tried: list[Sequence[int]] = []

    def fails(items: Sequence[int]) -> bool:
        tried.append(items)
        return {3, 47, 91} <= set(items)

    left = shrink(range(100), fails, budget=budget)
    assert len(tried) <= budget
    assert {3, 47, 91} <= set(left)


@pytest.mark.parametrize("size", [1, 2, 3, 64])
def test_a_failure_that_needs_everything_keeps_everything(size: int) -> None:
    assert shrink(range(size), lambda items: len(items) == size) == list(range(size))
