"""A shard as a program names it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from aioinformer.sharding.state.ranges import HashRanges
from aioinformer.sharding.state.shard import MAX_SHARDS, Shard


def test_a_shard_has_its_part_of_the_hashes() -> None:
    assert Shard(1, 4).ranges == HashRanges.of([1], 4, "uid")
    assert Shard(1, 4, by="namespace").ranges == HashRanges.of([1], 4, "namespace")


def test_the_only_shard_has_all_hashes() -> None:
    assert Shard(0, 1).ranges.has("any uid", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((4, 4), r"index of a Shard must be 0 to 3 \(count - 1\), not 4"),
        ((-1, 4), "must be 0 to 3"),
        ((0, 0), "count of a Shard must be 1 to 65536, not 0"),
        ((0, MAX_SHARDS + 1), "must be 1 to 65536"),
        ((0, 2, "name"), "by of a Shard must be 'uid' or 'namespace'.*not 'name'"),
    ],
)
def test_numbers_out_of_range_are_rejected(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Shard(*arguments)


@pytest.mark.parametrize("number", ["1", 1.0, None, True])
def test_other_types_are_rejected(number: object) -> None:
    with pytest.raises(TypeError, match="index of a Shard must be a whole number"):
        Shard(cast("int", number), 4)
    with pytest.raises(TypeError, match="count of a Shard must be a whole number"):
        Shard(0, cast("int", number))


def test_equal_shards_are_equal_keys() -> None:
    assert len({Shard(0, 4), Shard(0, 4), Shard(0, 4, by="namespace")}) == 2
    assert str(Shard(2, 4)) == "shard 2 of 4"
    assert str(Shard(2, 4, by="namespace")) == "shard 2 of 4 by namespace"


def test_the_greatest_numbers_are_valid() -> None:
    assert Shard(MAX_SHARDS - 1, MAX_SHARDS).index == 65535


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0), "count of a Shard must be 1 to 65536, not 0"),
        ((2, 2), "index of a Shard must be 0 to 1 (count - 1), not 2"),
        (
            (0, 2, "name"),
            "by of a Shard must be 'uid' or 'namespace', the fields that servers hash, not 'name'",
        ),
    ],
)
def test_an_error_names_the_limits_and_the_value(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Shard(*arguments)
    assert str(caught.value) == message
