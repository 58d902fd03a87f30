"""The hash of a field's value is the server's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.sharding.state.hashing import HASH_END, hash_value
from aioinformer.sharding.state.ranges import shard_of, shard_start

# From the reference implementation of FNV (Landon Curt Noll's test vectors for fnv1a_64).
VECTORS = {
    "": 0xCBF29CE484222325,
    "a": 0xAF63DC4C8601EC8C,
    "foobar": 0x85944171F73967E8,
}


@pytest.mark.parametrize("text", VECTORS)
def test_the_hash_is_64_bit_fnv_1a(text: str) -> None:
    assert hash_value(text) == VECTORS[text]


@given(st.text())
def test_a_hash_has_64_bits(text: str) -> None:
    assert 0 <= hash_value(text) < HASH_END


@given(st.text(), st.integers(1, 65536))
def test_the_shard_of_a_value_has_its_hash(text: str, count: int) -> None:
    index = shard_of(text, count)
    assert 0 <= index < count
    assert shard_start(index, count) <= hash_value(text) < shard_start(index + 1, count)
