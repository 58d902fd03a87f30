"""The entries of the DeltaFIFO."""

from __future__ import annotations

import pytest

from aioinformer._core.objects.deltas import CorrectionGuard, Replaced
from tests.core.builders import key, pod


def admit(uid: str, namespace: str) -> bool:
    return uid == "1"


@pytest.mark.parametrize(
    ("state", "whole"),
    [
        (Replaced((), "7"), True),
        (Replaced((), "7", initial=admit, restored=True), True),
        (Replaced((), "", kept=admit), False),
        (Replaced((), "7", initial=admit, extends=True), False),
    ],
)
def test_a_state_that_keeps_cached_objects_is_not_whole(state: Replaced, *, whole: bool) -> None:
    assert state.is_whole is whole


def test_a_copy_without_objects_has_all_else() -> None:
    state = Replaced([pod("a")], "7", "filtered", "web", admit, None, extends=True)

    assert state.without_objects() == Replaced((), "7", "filtered", "web", admit, extends=True)
    assert len(state.objects) == 1


def test_the_collections_of_two_guards_are_separate() -> None:
    first, second = CorrectionGuard(), CorrectionGuard()
    first.removed.add(key("a"))

    assert (second.removed, second.valid, second.pending, second.applied) == (set(), True, 0, 0)
