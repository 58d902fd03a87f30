"""The hashes of shards, and the selectors that ask a server for them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.sharding.state import ranges as ranges_module
from aioinformer.sharding.state.hashing import HASH_END, hash_value
from aioinformer.sharding.state.ranges import HashRanges, ShardKey, shard_of, shard_start
from aioinformer.testing.wire.selection import ShardSelector
from tests.client.recordings import FOLDER, read_recording

KEYS = st.sampled_from(["uid", "namespace"])
HASHES = st.integers(0, HASH_END - 1)


@st.composite
def chosen_shards(draw: st.DrawFn) -> tuple[frozenset[int], int]:
    """Return some of several shards, and the number of all."""
    count = draw(st.integers(1, 70))
    return draw(st.frozensets(st.integers(0, count - 1))), count


def served_list(recording: str) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(read_recording(recording).body)
    return body


@pytest.mark.parametrize(
    ("recording", "index"), [("65-list-shard-lower", 0), ("65-list-shard-upper", 1)]
)
def test_the_selector_of_a_half_is_the_recorded_one(recording: str, index: int) -> None:
    ranges = HashRanges.of([index], 2, "uid")
    request = (FOLDER / f"{recording}.request.http").read_text()
    requested = parse_qs(urlsplit(request.split()[1]).query)["shardSelector"]
    assert requested == [ranges.selector]
    echoed = served_list(recording)["metadata"]["shardInfo"]["selector"]
    assert echoed == ranges.selector
    assert HashRanges.parse(echoed) == ranges


def test_the_recorded_server_selects_objects_by_the_same_hash() -> None:
    """Recordings 65: the same list in two halves."""
    for recording, index in (("65-list-shard-lower", 0), ("65-list-shard-upper", 1)):
        for item in served_list(recording)["items"]:
            uid = item["metadata"]["uid"]
            assert HashRanges.of([index], 2, "uid").has(uid, "")
            assert not HashRanges.of([1 - index], 2, "uid").has(uid, "")
    assert served_list("65-list-shard-upper")["items"]


@given(chosen_shards(), KEYS, st.text(max_size=8), st.text(max_size=8))
def test_an_object_is_in_the_shards_that_a_server_selects(
    chosen: tuple[frozenset[int], int], by: ShardKey, uid: str, namespace: str
) -> None:
    indexes, count = chosen
    ranges = HashRanges.of(indexes, count, by)
    value = uid if by == "uid" else namespace
    selector = ShardSelector.parse(ranges.selector)
    hashed = hash_value(value)
    selected = any(start <= hashed < end for start, end in selector.ranges)
    assert ranges.has(uid, namespace) == selected
    assert ranges.has(uid, namespace) == selected  # the answer for a namespace is kept


@given(chosen_shards(), HASHES)
def test_the_shards_are_disjoint_and_complete(
    chosen: tuple[frozenset[int], int], hashed: int
) -> None:
    indexes, count = chosen
    others = frozenset(range(count)) - indexes
    assert HashRanges.of(indexes, count, "uid").has_hash(hashed) != HashRanges.of(
        others, count, "uid"
    ).has_hash(hashed)


def test_adjacent_shards_are_one_range() -> None:
    assert HashRanges.of([3, 1, 2, 5], 64, "uid").count == 2
    assert HashRanges.of(range(64), 64, "uid").limits == (0, HASH_END)
    assert not HashRanges.of([], 64, "uid")


@given(chosen_shards(), KEYS)
def test_a_selector_is_read_as_it_was_written(
    chosen: tuple[frozenset[int], int], by: ShardKey
) -> None:
    indexes, count = chosen
    ranges = HashRanges.of(indexes, count, by)
    assert HashRanges.parse(ranges.selector) == (ranges or None)


@given(chosen_shards(), st.integers(1, 12), HASHES)
def test_a_limited_number_of_ranges_contains_all_hashes(
    chosen: tuple[frozenset[int], int], limit: int, hashed: int
) -> None:
    ranges = HashRanges.of(*chosen, "uid")
    wider = ranges.covering(limit)
    assert wider.count == min(limit, ranges.count)
    assert wider.has_hash(hashed) or not ranges.has_hash(hashed)
    assert (wider == ranges) == (ranges.count <= limit)


def test_the_smallest_gaps_are_closed() -> None:
    assert HashRanges.of([0, 2, 6], 8, "uid").covering(2) == HashRanges.of([0, 1, 2, 6], 8, "uid")
    assert HashRanges.of([0, 4, 6], 8, "uid").covering(2) == HashRanges.of([0, 4, 5, 6], 8, "uid")


def test_a_selector_in_another_spelling_has_the_same_ranges() -> None:
    lower, upper = (HashRanges.of([index], 2, "uid").selector for index in (0, 1))
    assert HashRanges.parse(f"{upper}||{lower}".replace("'", '"')) == HashRanges.of([0], 1, "uid")


@pytest.mark.parametrize("text", ["", "nonsense", "shardRange(object.metadata.name, '0x0', '0x1')"])
def test_another_text_has_no_ranges(text: str) -> None:
    assert HashRanges.parse(text) is None


def test_ranges_of_two_fields_are_no_ranges() -> None:
    lower = HashRanges.of([0], 2, "uid").selector
    assert HashRanges.parse(f"{lower} || {lower.replace('uid', 'namespace')}") is None


@given(st.text(max_size=8), st.integers(1, 70))
def test_the_shard_of_a_value_has_its_hash(value: str, count: int) -> None:
    index = shard_of(value, count)

    assert 0 <= index < count
    assert shard_start(index, count) <= hash_value(value) < shard_start(index + 1, count)


@pytest.mark.parametrize("count", [1, 2, 3, 64, 70])
def test_a_shard_reaches_from_its_first_hash_to_that_of_the_next_one(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges_module, "hash_value", int)
    for index in range(count):
        first, after = shard_start(index, count), shard_start(index + 1, count)

        assert [shard_of(str(hashed), count) for hashed in (first, after - 1)] == [index] * 2


def test_ranges_that_overlap_are_one_range() -> None:
    texts = [
        f"shardRange(object.metadata.uid, '0x{start:x}', '0x{end:x}')"
        for start, end in ((16, 64), (0, 8), (32, 48), (8, 12), (80, 96))
    ]
    found = HashRanges.parse(" || ".join(texts))

    assert found == HashRanges("uid", (0, 12, 16, 64, 80, 96))


def test_the_text_of_ranges_is_their_selector() -> None:
    ranges = HashRanges("uid", (0, 255))
    assert str(ranges) == ranges.selector
    assert ranges.selector == (
        "shardRange(object.metadata.uid, '0x0000000000000000', '0x00000000000000ff')"
    )


def test_the_kept_answers_of_namespaces_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges_module, "MAX_KNOWN", 4)
    ranges = HashRanges.of([0], 2, "namespace")
    expected = [ranges.has_hash(hash_value(f"{number}-shop")) for number in range(20)]

    for number in [*range(20)] * 2:
        assert ranges.has("", f"{number}-shop") is expected[number]
        assert len(asdict(ranges)["_known"]) == number % 4 + 1
    assert {True, False} == set(expected)


def test_the_hash_of_a_namespace_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = HashRanges.of([0], 2, "namespace")
    found = {name: ranges.has("", name) for name in ("web", "shop", "cart", "blog")}
    monkeypatch.setattr(ranges_module, "hash_value", None)

    assert {name: ranges.has("", name) for name in found} == found
