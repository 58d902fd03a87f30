"""The ranges of a reflector, the changes that repeat, and what a list proves."""

from __future__ import annotations

import pytest

from aioinformer._core.objects.deltas import Bookmark, Delta
from aioinformer.errors import ProtocolError
from aioinformer.sharding.state.hashing import HASH_END, hash_value
from aioinformer.sharding.state.ranges import HashRanges, shard_of
from aioinformer.sharding.state.shard_filter import MAX_RANGES, ShardFilter
from tests.core.builders import encode, pod

LOWER, UPPER = HashRanges.of([0], 2, "uid"), HashRanges.of([1], 2, "uid")
IN_LOWER = next(uid for uid in map(str, range(100)) if shard_of(uid, 2) == 0)
IN_UPPER = next(f"{number}-x" for number in range(100) if shard_of(f"{number}-x", 2) == 1)


def change(uid: str, version: str) -> Delta:
    return Delta("Updated", pod("a", uid=uid, rv=version))


def drops(shard: ShardFilter, uid: str, version: str) -> bool:
    """Return True if a change of an object is dropped, and its version is kept."""
    (entry,) = shard.drop_repeated([change(uid, version)])
    return entry == Bookmark(version)


@pytest.mark.parametrize(
    ("version", "repeats"),
    [("9", True), ("11", True), ("12", True), ("13", False), ("100", False), ("x", False)],
)
def test_a_change_repeats_up_to_the_version_of_its_shard(version: str, *, repeats: bool) -> None:
    shard = ShardFilter(LOWER)
    both = HashRanges.of([0, 1], 2, "uid")
    shard.extend(both, UPPER, "12")

    assert (shard.ranges, shard.gained) == (both, None)
    assert drops(shard, IN_UPPER, version) is repeats
    assert shard.read_ahead == ([(UPPER, "12")] if repeats else [])


def test_a_change_of_another_shard_does_not_repeat() -> None:
    shard = ShardFilter(LOWER)
    shard.extend(HashRanges.of([0, 1], 2, "uid"), UPPER, "12")

    assert not drops(shard, IN_LOWER, "11")
    assert drops(shard, IN_UPPER, "11")
    assert drops(shard, IN_UPPER, "12")


def test_the_entries_that_do_not_repeat_stay_in_order() -> None:
    shard = ShardFilter(LOWER)
    shard.extend(HashRanges.of([0, 1], 2, "uid"), UPPER, "12")
    own, repeated = change(IN_LOWER, "10"), change(IN_UPPER, "11")

    assert shard.drop_repeated([repeated, own]) == [own]
    assert shard.drop_repeated([own, repeated]) == [own, Bookmark("11")]
    assert shard.drop_repeated([repeated, Bookmark("11")]) == [Bookmark("11")]


def test_each_gained_shard_has_a_version_of_its_own() -> None:
    quarters = [HashRanges.of([index], 4, "uid") for index in range(4)]
    shard = ShardFilter(quarters[0])
    shard.extend(HashRanges.of([0, 2], 4, "uid"), quarters[2], "20")
    shard.extend(HashRanges.of([0, 2, 3], 4, "uid"), quarters[3], "10")
    assert len(shard.read_ahead) == 2

    shard.drop_repeated([change("", "15")])
    assert shard.read_ahead == [(quarters[2], "20")]
    shard.complete_state()
    assert shard.read_ahead == []


def test_gained_shards_are_taken_once() -> None:
    shard = ShardFilter(LOWER)
    assert shard.complete_state() is None
    shard.narrow(UPPER, LOWER)
    assert (shard.ranges, shard.gained) == (UPPER, LOWER)
    assert repr(shard) == "<ShardFilter ranges=1>"

    assert (shard.complete_state(), shard.complete_state()) == (LOWER, None)


@pytest.mark.parametrize("count", [MAX_RANGES, MAX_RANGES + 1])
def test_the_number_of_requested_ranges_has_a_limit(count: int) -> None:
    step = HASH_END // (2 * count)
    ranges = HashRanges("uid", tuple(step * number for number in range(2 * count)))
    shard = ShardFilter(ranges)

    assert shard.requested.count == MAX_RANGES
    assert (shard.requested == ranges) is (count == MAX_RANGES)
    inside = hash_value(IN_LOWER)
    assert shard.requested.has_hash(inside) or not ranges.has_hash(inside)


def proves(ranges: HashRanges, selector: str) -> bool:
    metadata = encode({"shardInfo": {"selector": selector}})
    return ShardFilter(ranges).check_list(b'{"metadata":%b,"items":[]}' % metadata)


def test_a_list_proves_its_selection_in_any_spelling() -> None:
    assert proves(LOWER, LOWER.selector)
    assert proves(LOWER, LOWER.selector.replace("'", '"').replace(", ", ","))
    assert not proves(LOWER, "")
    assert not proves(LOWER, "nonsense")
    assert not proves(HashRanges.of([], 2, "uid"), "")
    assert not ShardFilter(LOWER).check_list(b'{"metadata":{"shardInfo":7},"items":[]}')
    with pytest.raises(ProtocolError, match="another shard selector"):
        proves(LOWER, UPPER.selector)
