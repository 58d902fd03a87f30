"""The shards of a cache whose objects are the state of its version."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from aioinformer._core.objects.deltas import Replaced
from aioinformer.cachefile.state.recorded_shards import (
    RecordedShards,
    SealedShards,
    outdated_shards,
)
from aioinformer.sharding.state.ranges import HashRanges

COUNT = 8
SHARDS = st.frozensets(st.integers(0, COUNT - 1))


def ranges(shards: frozenset[int]) -> HashRanges:
    return HashRanges.of(shards, COUNT, "uid")


def test_shards_ahead_of_the_watch_belong_to_the_state_once_it_has_reached_them() -> None:
    shards = RecordedShards(COUNT)
    assert shards.seal("") == SealedShards(frozenset(), frozenset())
    shards.apply(Replaced((), "5", initial=ranges(frozenset({0, 1}))))
    assert shards.seal("5") == SealedShards(frozenset({0, 1}), frozenset({0, 1}))
    shards.apply(Replaced((), "12", initial=ranges(frozenset({7})), extends=True))
    assert shards.seal("9") == SealedShards(frozenset({0, 1, 7}), frozenset({0, 1}))
    shards.apply(Replaced((), "", "scope_removed", kept=ranges(frozenset({1, 7}))))
    assert shards.seal("11") == SealedShards(frozenset({1, 7}), frozenset({1}))
    assert shards.seal("12") == SealedShards(frozenset({1, 7}), frozenset({1, 7}))
    shards.apply(Replaced((), "20"))  # a relist of the same shards
    assert shards.seal("20") == SealedShards(frozenset({1, 7}), frozenset({1, 7}))


def test_a_whole_state_is_of_one_version() -> None:
    shards = RecordedShards(COUNT)
    shards.apply(Replaced((), "5", initial=ranges(frozenset({0}))))
    shards.apply(Replaced((), "12", initial=ranges(frozenset({7})), extends=True))
    shards.apply(Replaced((), "11"))
    assert shards.seal("11").complete == {0, 7}


@given(st.lists(st.tuples(st.sampled_from(["whole", "extend", "retain", "event"]), SHARDS)))
def test_no_shard_is_complete_before_the_watch_has_reached_its_state(
    steps: list[tuple[str, frozenset[int]]],
) -> None:
    shards = RecordedShards(COUNT)
    version, known = 1, dict[int, int]()
    for number, (step, chosen) in enumerate(steps):
        if step == "whole":
            version += number
            known = dict.fromkeys([*known, *chosen], version)
            shards.apply(Replaced((), str(version), initial=ranges(chosen)))
        elif step == "extend":
            gained = chosen - known.keys()
            known |= dict.fromkeys(gained, version + number)
            state = Replaced((), str(version + number), initial=ranges(gained), extends=True)
            shards.apply(state)
        elif step == "retain":
            known = {shard: at for shard, at in known.items() if shard in chosen}
            shards.apply(Replaced((), "", "scope_removed", kept=ranges(chosen)))
        else:
            version += len(chosen)
        sealed = shards.seal(str(version))
        assert sealed.held == known.keys()
        assert sealed.complete == {shard for shard, at in known.items() if at <= version}


def test_the_first_write_keeps_the_rows_that_may_still_be_restored() -> None:
    held = frozenset({0, 1})
    sealed = SealedShards(held, held)
    first = outdated_shards(None, sealed, restorable=frozenset({1, 2}), count=4)
    assert first == {0, 1, 3}, "rows of 2 may be restored; those of 1 are among the changes"
    later = SealedShards(frozenset({0, 2}), frozenset({0, 2}))
    assert outdated_shards(sealed, later, restorable=frozenset(), count=4) == {2}


def test_the_repr_counts_the_shards_and_the_states_that_are_ahead() -> None:
    shards = RecordedShards(COUNT)
    shards.apply(Replaced((), "5", initial=ranges(frozenset({0, 1}))))
    shards.apply(Replaced((), "12", initial=ranges(frozenset({7})), extends=True))

    assert repr(shards) == "<RecordedShards 3 held, 1 groups ahead>"
