"""The promises, held through hours of faults: 200 histories here, 1,000 under their own mark.

What fails says its seed, the few steps that are enough, and the line that repeats it.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from aioinformer.testing.simulation import draw, examine, explain

BLOCK = 10
"""Histories in one test."""
TRIES = 100
"""Histories to make a failure smaller: they have to fit into the time that a test may take."""


def hold_in(seeds: Iterable[int]) -> None:
    """Fail with how to repeat the first history in which a promise was broken."""
    for seed in seeds:
        plan = draw(seed)
        violation = examine(plan)
        if violation is not None:
            pytest.fail(explain(plan, violation, budget=TRIES), pytrace=False)


@pytest.mark.parametrize("first", range(0, 200, BLOCK))
def test_the_promises_hold_in_histories_from(first: int) -> None:
    hold_in(range(first, first + BLOCK))


@pytest.mark.simulation
@pytest.mark.parametrize("first", range(1000, 2000, BLOCK))
def test_the_promises_hold_in_many_more_histories_from(first: int) -> None:
    hold_in(range(first, first + BLOCK))
