"""The entries of the DeltaFIFO."""

from __future__ import annotations

import pytest

from aioinformer._core.objects.deltas import RepairGuard, Replaced
from aioinformer.sharding.state.ranges import HashRanges
from tests.core.builders import key, pod

RANGES = HashRanges.of([1], 4, "uid")


@pytest.mark.parametrize(
    ("state", "whole"),
    [
        (Replaced((), "7"), True),
        (Replaced((), "7", gained=RANGES, restored=True), True),
        (Replaced((), "", retained=RANGES), False),
        (Replaced((), "7", gained=RANGES, extends=True), False),
    ],
)
def test_a_state_that_keeps_cached_objects_is_not_whole(state: Replaced, *, whole: bool) -> None:
    assert state.is_whole is whole


def test_a_copy_without_objects_has_all_else() -> None:
    state = Replaced([pod("a")], "7", "filtered", "web", RANGES, None, extends=True)

    assert state.without_objects() == Replaced((), "7", "filtered", "web", RANGES, extends=True)
    assert len(state.objects) == 1


def test_the_collections_of_two_guards_are_separate() -> None:
    first, second = RepairGuard(), RepairGuard()
    first.removed.add(key("a"))

    assert (second.removed, second.valid, second.pending, second.repaired) == (set(), True, 0, 0)
