"""The ranges of a reflector, and the counts of what a server has sent of other shards."""

from __future__ import annotations

import pytest

from aioinformer.sharding.state.hashing import HASH_END, hash_value
from aioinformer.sharding.state.ranges import HashRanges, shard_of
from aioinformer.sharding.state.shard_filter import MAX_RANGES, FilteredBy, ShardFilter

LOWER, UPPER = HashRanges.of([0], 2, "uid"), HashRanges.of([1], 2, "uid")
IN_LOWER = next(uid for uid in map(str, range(100)) if shard_of(uid, 2) == 0)
IN_UPPER = next(f"{number}-x" for number in range(100) if shard_of(f"{number}-x", 2) == 1)


def test_objects_of_other_shards_are_counted() -> None:
    shard = ShardFilter(LOWER)

    assert [shard.excludes(uid, "web") for uid in (IN_LOWER, IN_UPPER, IN_UPPER)] == [
        False,
        True,
        True,
    ]
    shard.count_excluded(3)
    assert (shard.excluded, shard.repeated, shard.dropped) == (5, 0, 5)
    assert repr(shard) == "<ShardFilter ranges=1 excluded=5>"


def test_the_filtering_side_is_determined_again_at_the_beginning_of_each_state() -> None:
    shard = ShardFilter(LOWER)
    seen: list[FilteredBy] = [shard.filtered_by]
    shard.excludes(IN_UPPER, "")
    seen.append(shard.filtered_by)
    shard.begin_state()
    for uid in (IN_LOWER, IN_UPPER):
        seen.append(shard.filtered_by)
        shard.excludes(uid, "")
    seen.append(shard.filtered_by)

    assert seen == ["server", "client", "server", "server", "client"]


@pytest.mark.parametrize(
    ("version", "repeats"),
    [("9", True), ("11", True), ("12", True), ("13", False), ("100", False), ("x", False)],
)
def test_a_change_repeats_up_to_the_version_of_its_shard(version: str, *, repeats: bool) -> None:
    shard = ShardFilter(LOWER)
    both = HashRanges.of([0, 1], 2, "uid")
    shard.extend(both, UPPER, "12")

    assert (shard.ranges, shard.gained) == (both, None)
    assert shard.repeats(IN_UPPER, "", version) is repeats
    assert (shard.repeated, shard.dropped) == (int(repeats), int(repeats))
    assert shard.read_ahead == ([(UPPER, "12")] if repeats else [])


def test_a_change_of_another_shard_does_not_repeat() -> None:
    shard = ShardFilter(LOWER)
    shard.extend(HashRanges.of([0, 1], 2, "uid"), UPPER, "12")

    assert not shard.repeats(IN_LOWER, "", "11")
    assert shard.repeats(IN_UPPER, "", "11")
    assert shard.repeats(IN_UPPER, "", "12")
    assert shard.repeated == 2


def test_each_gained_shard_has_a_version_of_its_own() -> None:
    quarters = [HashRanges.of([index], 4, "uid") for index in range(4)]
    shard = ShardFilter(quarters[0])
    shard.extend(HashRanges.of([0, 2], 4, "uid"), quarters[2], "20")
    shard.extend(HashRanges.of([0, 2, 3], 4, "uid"), quarters[3], "10")
    assert len(shard.read_ahead) == 2

    shard.repeats("", "", "15")
    assert shard.read_ahead == [(quarters[2], "20")]
    shard.begin_state()
    assert shard.read_ahead == []


def test_gained_shards_are_taken_once() -> None:
    shard = ShardFilter(LOWER)
    assert shard.take_gained() is None
    shard.narrow(UPPER, LOWER)
    assert (shard.ranges, shard.gained) == (UPPER, LOWER)

    assert (shard.take_gained(), shard.take_gained()) == (LOWER, None)


@pytest.mark.parametrize("count", [MAX_RANGES, MAX_RANGES + 1])
def test_the_number_of_requested_ranges_has_a_limit(count: int) -> None:
    step = HASH_END // (2 * count)
    ranges = HashRanges("uid", tuple(step * number for number in range(2 * count)))
    shard = ShardFilter(ranges)

    assert shard.requested.count == MAX_RANGES
    assert (shard.requested == ranges) is (count == MAX_RANGES)
    inside = hash_value(IN_LOWER)
    assert shard.requested.has_hash(inside) or not ranges.has_hash(inside)


def test_a_selector_is_the_own_one_in_any_spelling() -> None:
    shard = ShardFilter(LOWER)

    assert shard.is_selector(LOWER.selector)
    assert shard.is_selector(LOWER.selector.replace("'", '"').replace(", ", ","))
    assert not shard.is_selector(UPPER.selector)
    assert not shard.is_selector("")
    assert not shard.is_selector("nonsense")
    assert not ShardFilter(HashRanges.of([], 2, "uid")).is_selector("")
