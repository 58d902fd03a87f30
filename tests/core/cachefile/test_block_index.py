"""The newest entries of blocks, against a simple model."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.cachefile import block_index
from aioinformer._core.cachefile.block_index import BlockEntry, BlockIndex, make_entry
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
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
