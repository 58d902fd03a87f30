"""A long list that no step walks as a whole."""

from __future__ import annotations

import gc
import weakref

from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.chunked_list import (
    CHUNK_SIZE,
    Chunked,
    ChunkedList,
    chunks_of,
    drain_chunks,
    iter_chunks,
)
from tests.core.builders import pod

LENGTHS = st.sampled_from([0, 1, 3, CHUNK_SIZE - 1, CHUNK_SIZE, CHUNK_SIZE + 1, 3 * CHUNK_SIZE])
ADDITIONS = st.lists(
    st.one_of(
        st.none(),
        st.tuples(LENGTHS, st.booleans()),
    ),
    max_size=6,
)


@given(ADDITIONS)
def test_items_are_those_of_a_list_and_no_chunk_is_long_or_empty(
    additions: list[tuple[int, bool] | None],
) -> None:
    found, expected = ChunkedList[int](), list[int]()
    for each in additions:
        if each is None:
            found.append(len(expected))
            expected.append(len(expected))
            continue
        count, shared = each
        items = range(len(expected), len(expected) + count)
        found.extend(ChunkedList(items) if shared else items)
        expected.extend(items)

    assert (list(found), len(found), bool(found)) == (expected, len(expected), bool(expected))
    assert [item for chunk in found.chunks for item in chunk] == expected
    assert all(0 < len(chunk) <= CHUNK_SIZE for chunk in found.chunks)
    assert found == expected
    assert found != [*expected, 0]
    if expected:
        assert (found[-1], found[1:3]) == (expected[-1], expected[1:3])


def test_the_chunks_of_another_list_are_shared() -> None:
    page, found = ChunkedList(range(1000)), ChunkedList[int]()
    found.extend(page)

    assert [*map(id, found.chunks)] == [*map(id, page.chunks)]
    page.append(1000)
    assert len(found) == 1000
    assert repr(found) == "<ChunkedList items=1000>"


def test_chunks_of_objects_are_untracked_after_a_garbage_collection() -> None:
    objects = ChunkedList(pod(str(number)) for number in range(3 * CHUNK_SIZE))
    gc.collect()
    assert not any(map(gc.is_tracked, objects.chunks))


def test_any_items_have_chunks() -> None:
    assert chunks_of(range(300)) == [tuple(range(256)), tuple(range(256, 300))]
    assert list(iter_chunks(())) == []
    chunked = ChunkedList("abc")
    assert isinstance(chunked, Chunked)
    assert chunks_of(chunked) == [("a", "b", "c")]
    assert chunks_of(chunked)[0] is chunks_of(chunked)[0], "the chunk is shared"


def test_items_that_are_appended_one_by_one_make_full_chunks() -> None:
    found = ChunkedList[int]()
    for number in range(2 * CHUNK_SIZE + 3):
        found.append(number)
        assert len(found) == number + 1
    assert [*map(len, found.chunks)] == [CHUNK_SIZE, CHUNK_SIZE, 3]


def test_the_items_of_chunks_are_drained_in_order() -> None:
    assert list(drain_chunks([(1, 2), (3,), ()])) == [1, 2, 3]


class Thing:
    """Something that can be seen to have been freed."""


def test_shared_chunks_are_freed_one_by_one_when_the_last_reader_has_passed_them() -> None:
    things = [Thing() for _ in range(3)]
    seen = [weakref.ref(thing) for thing in things]
    chunks = [(thing,) for thing in things]
    readers = [drain_chunks(chunks), drain_chunks(chunks)]
    del things, chunks

    for read, left in enumerate([3, 2, 1, 0]):
        for reader in readers:
            next(reader, None)
        gc.collect()
        assert sum(each() is not None for each in seen) == left, read


def test_a_list_differs_from_whatever_is_no_sequence() -> None:
    assert ChunkedList([1]) != {1}
    assert ChunkedList([1]) != 1
    assert ChunkedList([1]) == (1,)
