"""The shards of a cache whose objects are the state of its version, and those of a file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import hypothesis.strategies as st
from hypothesis import given

from aioinformer import KubeObject
from aioinformer._core.objects.deltas import Replaced
from aioinformer._core.objects.object_key import Admit
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer.sharding.group_shards import GroupShards
from aioinformer.sharding.state.ranges import HashRanges, shard_of
from aioinformer.sharding.stored_shards import RESTORABLE_SECONDS, StoredShards
from aioinformer.testing.simulation import run
from tests.runtime.scripted_source import scripted_lister_watcher
from tests.sharding.memory_assignment import MemoryAssignment

COUNT = 8
SHARDS = st.frozensets(st.integers(0, COUNT - 1))


def ranges(shards: frozenset[int]) -> HashRanges:
    return HashRanges.of(shards, COUNT, "uid")


def stored_shards() -> StoredShards:
    return StoredShards(GroupShards(MemoryAssignment(COUNT)))


def test_shards_ahead_of_the_watch_belong_to_the_state_once_it_has_reached_them() -> None:
    shards = stored_shards()
    assert shards.seal("") == (frozenset(), frozenset())
    shards.apply(Replaced((), "5", initial=ranges(frozenset({0, 1}))))
    assert shards.seal("5") == (frozenset({0, 1}), frozenset({0, 1}))
    shards.apply(Replaced((), "12", initial=ranges(frozenset({7})), extends=True))
    assert shards.seal("9") == (frozenset({0, 1, 7}), frozenset({0, 1}))
    shards.apply(Replaced((), "", "scope_removed", kept=ranges(frozenset({1, 7}))))
    assert shards.seal("11") == (frozenset({1, 7}), frozenset({1}))
    assert shards.seal("12") == (frozenset({1, 7}), frozenset({1, 7}))
    shards.apply(Replaced((), "20"))  # a relist of the same shards
    assert shards.seal("20") == (frozenset({1, 7}), frozenset({1, 7}))


def test_a_whole_state_is_of_one_version() -> None:
    shards = stored_shards()
    shards.apply(Replaced((), "5", initial=ranges(frozenset({0}))))
    shards.apply(Replaced((), "12", initial=ranges(frozenset({7})), extends=True))
    shards.apply(Replaced((), "11"))
    assert shards.seal("11") == (frozenset({0, 7}), frozenset({0, 7}))


@given(st.lists(st.tuples(st.sampled_from(["whole", "extend", "retain", "event"]), SHARDS)))
def test_no_shard_is_complete_before_the_watch_has_reached_its_state(
    steps: list[tuple[str, frozenset[int]]],
) -> None:
    shards = stored_shards()
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
        held, complete = shards.seal(str(version))
        assert held == known.keys()
        assert complete == {shard for shard, at in known.items() if at <= version}


class State:
    """The state of an earlier run, without a file."""

    version = "5"
    problem = ""

    def __init__(self, parts: str) -> None:
        self.parts = parts

    async def read(self, admit: Admit) -> AsyncIterator[list[KubeObject]]:
        yield []

    async def open_parts(self, source: ListerWatcher, scope: str, parts: StoredShards) -> State:
        return self


async def opened(parts: str) -> StoredShards:
    shards = stored_shards()
    await shards.open(State(parts), scripted_lister_watcher(), "")
    return shards


def shards_in(admit: Admit | None) -> set[int]:
    """Return the shards of admitted objects."""
    uids = [f"uid-{number}-of-web" for number in range(200)]
    return {shard_of(uid, COUNT) for uid in uids if admit is not None and admit(uid, "web")}


async def test_the_first_write_keeps_the_rows_that_may_still_be_restored() -> None:
    shards = await opened("1-2")
    held = frozenset({0, 1})
    text, outdated = shards.promise((held, frozenset({0})), None)
    assert text == "0"
    assert shards_in(outdated) == {0, 1, 3, 4, 5, 6, 7}, "rows of 1 are among the changes"
    assert shards.find(frozenset({1, 3})) == {1}


async def test_later_writes_remove_the_rows_of_shards_that_have_moved_in() -> None:
    shards, first = await opened("2"), frozenset({0, 1})
    later = frozenset({0, 2})
    assert shards_in(shards.promise((later, later), (first, first))[1]) == {2}
    assert shards.promise((later, later), (later, first)) == ("0,2", None)


def test_shards_are_restored_only_within_ten_minutes_and_without_a_later_state() -> None:
    async def main() -> None:
        shards = await opened("0-3")
        shards.discard(frozenset({3}))
        assert shards.find(frozenset({1, 3, 7})) == {1}
        await asyncio.sleep(RESTORABLE_SECONDS - 1)
        assert shards.find(frozenset({1})) == {1}
        await asyncio.sleep(2)
        assert not shards.find(frozenset({1}))

    run(main(), seed=0)


async def test_the_repr_counts_the_shards_and_the_states_that_are_ahead() -> None:
    shards = await opened("4-6")
    shards.apply(Replaced((), "5", initial=ranges(frozenset({0, 1}))))
    shards.apply(Replaced((), "12", initial=ranges(frozenset({7})), extends=True))

    assert repr(shards) == "<StoredShards 3 held, 1 groups ahead, 4-6 restorable>"
