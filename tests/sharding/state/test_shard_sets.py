"""Sets of shards as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.sharding.state.shard_sets import format_shards, parse_shards


@given(st.frozensets(st.integers(0, 199)))
def test_a_set_is_read_as_it_was_written(shards: frozenset[int]) -> None:
    assert parse_shards(format_shards(shards), 200) == shards


def test_adjacent_shards_are_one_range() -> None:
    assert format_shards({7, 0, 1, 2, 9, 10}) == "0-2,7,9-10"
    assert format_shards(range(1024)) == "0-1023"
    assert format_shards(()) == ""


@pytest.mark.parametrize("text", ["x", "0-8", "8", "3-1", "0,,1", "-1", "1-", " 1", "0-9999999999"])
def test_a_text_of_another_form_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is no range of the shards 0 to 7"):
        parse_shards(text, 8)
