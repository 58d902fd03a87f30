"""The newest entries of blocks, against a simple model."""

from __future__ import annotations

import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer.cachefile.state import block_index
from aioinformer.cachefile.state.block_index import BlockEntry, BlockIndex, make_entry
from tests.core.builders import pod


class Blocks:
    """The blocks of a file, and the state that they are to hold."""

    def __init__(self) -> None:
        self.index = BlockIndex()
        self.blocks: dict[int, list[BlockEntry]] = {}
        self.state: dict[ObjectKey, str] = {}
        self.version = 0
        self.reclaimed = 0

    def append(self, entries: list[BlockEntry]) -> None:
        number = max(self.blocks, default=0) + 1
        self.blocks[number] = entries
        self.index.add(number, [(each.key, each.size) for each in entries])

    def write(self, names: dict[str, bool]) -> None:
        entries: list[BlockEntry] = []
        for name, exists in names.items():
            self.version += 1
            obj = pod(name, rv=str(self.version))
            if exists:
                self.state[obj.key] = obj.resource_version
                entries.append(make_entry(obj.key, obj, 10))
            elif self.index.has(obj.key):
                del self.state[obj.key]
                entries.append(make_entry(obj.key, None, 0))
        self.append(entries)

    def reclaim(self) -> None:
        entries = self.blocks.pop(self.index.numbers[0])
        self.reclaimed += len(entries)
        self.append([entries[place] for _, place in self.index.reclaim(entries)])

    def read(self) -> dict[ObjectKey, str]:
        found = [
            (key, self.blocks[number][place].version)
            for number in self.index.numbers
            for key, place in self.index.find(number, self.blocks[number])
        ]
        assert len(dict(found)) == len(found) == len(self.index)
        return dict(found)

    def read_again(self) -> BlockIndex:
        """Return the index that another process makes of the same blocks."""
        index, found = BlockIndex(), dict[ObjectKey, str]()
        for number in sorted(self.blocks, reverse=True):
            for key, place in index.add_older(number, self.blocks[number]):
                found[key] = self.blocks[number][place].version
        assert found == self.state
        return index


@given(
    st.lists(
        st.one_of(st.dictionaries(st.sampled_from("abcde"), st.booleans()), st.none()),
        max_size=20,
    )
)
def test_the_newest_entries_are_the_state_in_any_mix_of_writes_and_reclaimed_blocks(
    steps: list[dict[str, bool] | None],
) -> None:
    blocks = Blocks()
    for step in steps:
        if step is not None:
            blocks.write(step)
        elif blocks.blocks:
            blocks.reclaim()
        assert blocks.read() == blocks.state
        assert repr(blocks.read_again()) == repr(blocks.index)
        for name in "abcde":
            key = ObjectKey("web", name)
            assert blocks.index.has(key) == (key in blocks.state)
    for _ in tuple(blocks.blocks):
        blocks.reclaim()
        assert blocks.read() == blocks.state


def test_a_file_of_removed_objects_has_no_entry_after_all_blocks_were_reclaimed() -> None:
    blocks = Blocks()
    blocks.write(dict.fromkeys("abc", True))
    blocks.write(dict.fromkeys("abc", False))
    blocks.reclaim()
    blocks.reclaim()
    assert blocks.read() == {}
    assert repr(blocks.index).startswith("<BlockIndex objects=0 entries=0 ")


def test_reclaiming_bounds_the_entries_and_writes_few_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(block_index, "SPARE_ENTRIES", 20)
    blocks, random = Blocks(), Random(1)
    blocks.write({f"p{number}": True for number in range(200)})
    written = 0
    for _ in range(1000):
        names = {f"p{random.randrange(200)}": random.random() < 0.9 for _ in range(5)}
        blocks.write(names)
        written += len(names)
        while blocks.index.excess:
            blocks.reclaim()
        entries = sum(map(len, blocks.blocks.values()))
        assert entries <= 2 * len(blocks.state) + 20
    assert blocks.read() == blocks.state
    assert blocks.reclaimed < 2 * written


def test_an_index_keeps_the_key_that_was_added_last() -> None:
    index = BlockIndex()
    first, second = ObjectKey("web", "a"), ObjectKey("web", "a")
    index.add(1, [(first, 1)])
    index.add(2, [(second, 1)])
    kept = list(index._newest)  # pyright: ignore[reportPrivateUsage]
    assert kept[0] is second
    assert len(kept) == 1


def test_an_entry_has_the_metadata_of_its_object() -> None:
    obj: KubeObject = pod("a", rv="7")
    entry = make_entry(obj.key, obj, 5)
    assert (entry.key, entry.uid, entry.version, entry.size) == (obj.key, "uid-a", "7", 5)


def test_the_oldest_block_is_reclaimed_once_most_entries_and_the_spare_ones_are_outdated() -> None:
    index = BlockIndex()
    keys = [ObjectKey("web", f"p{number}") for number in range(4)]
    index.add(1, [(key, 1) for key in keys])
    for number in range(2, 2 + block_index.SPARE_ENTRIES // 4 + 1):
        assert not index.excess
        index.add(number, [(key, 1) for key in keys])
    assert not index.excess, "two entries for each object and the spare ones"
    index.add(1000, [(keys[0], 1)])
    assert index.excess


def test_an_object_without_bytes_is_an_object() -> None:
    index, key = BlockIndex(), ObjectKey("web", "a")
    index.add(1, [(key, 0)])
    assert (index.has(key), len(index)) == (True, 1)
    entry = make_entry(key, pod("a"), 0)
    assert index.find(1, [entry]) == [(key, 0)]
    read = BlockIndex()
    assert read.add_older(1, [entry]) == [(key, 0)]
    assert repr(read) == "<BlockIndex objects=1 entries=1 blocks=1>"


def test_the_entry_of_a_removal_has_the_key_alone() -> None:
    entry = make_entry(ObjectKey("web", "a"), None, 5)
    assert (entry.namespace, entry.name, entry.uid, entry.version) == ("web", "a", "", "")
    assert entry.size == block_index.REMOVED


def test_the_keys_of_one_namespace_share_its_text() -> None:
    index = BlockIndex()
    entries = [make_entry(ObjectKey("".join(["w", "eb"]), name), pod(name), 5) for name in "ab"]
    assert entries[0].namespace is not entries[1].namespace
    (first, _), (second, _) = index.add_older(1, entries)
    assert first.namespace is second.namespace


def test_a_removal_in_an_older_block_does_not_hide_a_newer_state() -> None:
    index, key = BlockIndex(), ObjectKey("web", "a")
    newer, removal, older = (make_entry(key, obj, 5) for obj in (pod("a"), None, pod("a")))
    assert index.add_older(3, [newer]) == [(key, 0)]
    assert index.add_older(2, [removal]) == []
    assert index.add_older(1, [older]) == []
    assert (len(index), list(index.numbers)) == (1, [1, 2, 3])
    assert index.reclaim([older]) == []
    assert index.reclaim([removal]) == []
    assert index.has(key), "the removal is older than the object"
    assert repr(index) == "<BlockIndex objects=1 entries=1 blocks=1>"


def test_objects_behind_an_outdated_entry_of_a_block_are_found() -> None:
    index = BlockIndex()
    a, b = (make_entry(ObjectKey("web", name), pod(name), 5) for name in "ab")
    assert index.add_older(2, [a]) == [(a.key, 0)]
    assert index.add_older(1, [a, b]) == [(b.key, 1)]
    assert len(index) == 2


def test_objects_of_one_name_in_two_namespaces_are_two() -> None:
    index = BlockIndex()
    keys = [ObjectKey("web", "a"), ObjectKey("shop", "a")]
    entries = [make_entry(key, pod("a"), 5) for key in keys]
    assert index.add_older(1, entries) == [(keys[0], 0), (keys[1], 1)]
    assert all(map(index.has, keys))


def test_a_removed_object_is_not_revived_by_an_older_block() -> None:
    index, key = BlockIndex(), ObjectKey("web", "a")
    assert index.add_older(2, [make_entry(key, None, 0)]) == []
    assert not index.has(key)
    assert index.add_older(1, [make_entry(key, pod("a"), 5)]) == []
    assert (index.has(key), len(index)) == (False, 0)


def test_the_key_of_a_removal_is_released_with_its_block() -> None:
    index, key = BlockIndex(), ObjectKey("web", "a")
    entry, before = make_entry(key, None, 0), sys.getrefcount(key)
    index.add(1, [(key, entry.size)])
    assert sys.getrefcount(key) > before
    assert index.reclaim([entry]) == []
    assert sys.getrefcount(key) == before
