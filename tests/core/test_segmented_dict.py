"""A dict in segments."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Literal, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.segmented_dict import SEGMENTS, SegmentedDict
from tests.core.builders import key, pod
from tests.garbage_collector import needs_untracked_dicts

KEYS = st.sampled_from([0, 1, 2, SEGMENTS, 2 * SEGMENTS, -1])
Operation: TypeAlias = tuple[Literal["put", "delete", "pop", "item", "copy"], int]
OPERATIONS: st.SearchStrategy[Operation] = st.tuples(
    st.sampled_from(["put", "put", "delete", "pop", "item", "copy"]), KEYS
)


@given(st.lists(OPERATIONS, max_size=30))
def test_entries_are_those_of_a_dict(operations: list[Operation]) -> None:
    found, expected = SegmentedDict[int, str](), dict[int, str]()
    for number, (what, at) in enumerate(operations):
        match what:
            case "put":
                found[at] = expected[at] = str(number)
            case "delete" if at in expected:
                del found[at], expected[at]
            case "delete":
                with pytest.raises(KeyError):
                    del found[at]
            case "pop":
                assert found.pop(at, "none") == expected.pop(at, "none")
            case "item" if expected:
                taken, value = found.popitem()
                assert expected.pop(taken) == value
            case "item":
                with pytest.raises(KeyError, match=r"^'popitem\(\): the dict is empty'$"):
                    found.popitem()
            case "copy":
                copied, before = found.copy(), dict(expected)
                found[at] = expected[at] = "changed"
                assert copied == before
                assert len(copied) == len(before)

        assert (len(found), at in found, found.get(at)) == (
            *(len(expected), at in expected, expected.get(at)),
        )
        assert found == expected
        assert sorted(found) == sorted(found.keys()) == sorted(expected)
        assert sorted(found.values()) == sorted(expected.values())
        assert sorted(found.items()) == sorted(expected.items())
        assert len(found.keys()) == len(found.values()) == len(found.items()) == len(expected)
        assert all(item in found.items() for item in expected.items())
        assert (99, "none") not in found.items()
    for at in expected:
        assert found[at] == expected[at]
    with pytest.raises(KeyError):
        found[99]
    assert found.get(99, "none") == "none"
    assert repr(found) == f"<SegmentedDict entries={len(expected)}>"


def test_items_are_removed_until_there_is_none() -> None:
    found, expected = SegmentedDict[int, str](), {at: str(at) for at in range(2 * SEGMENTS + 1)}
    found.update(expected)

    assert dict(found.popitem() for _ in expected) == expected
    assert len(found) == 0
    with pytest.raises(KeyError, match=r"^'popitem\(\): the dict is empty'$"):
        found.popitem()


def test_no_insertion_copies_a_tenth_of_a_large_dict() -> None:
    """One dict of 200,000 entries moves 174,762 of them in the insertion after these."""
    found, largest = SegmentedDict[int, None](), 0
    for number in range(200_000):
        segment = found.segments[hash(number) % SEGMENTS]
        before, entries = sys.getsizeof(segment), len(segment)
        found[number] = None
        if sys.getsizeof(segment) != before:
            largest = max(largest, entries)

    assert 0 < largest < 20_000
    assert sys.getsizeof(found) > 200_000 * 8


@needs_untracked_dicts
def test_segments_of_objects_are_not_tracked_by_the_collector() -> None:
    found, obj = SegmentedDict[object, object](), pod("a")
    for number in range(1000):
        found[key(str(number))] = obj
    assert not any(map(gc.is_tracked, found.segments))


def test_a_copy_of_the_keys_is_exact_while_another_thread_changes_them() -> None:
    """The thread adds a key before it removes another, so that there are 500 or 501 at all times.

    A copy that is made in several steps would miss keys, or end with a RuntimeError.
    """
    found = SegmentedDict[int, int]()
    for number in range(500):
        found[number] = number
    ended = threading.Event()

    def change() -> None:
        number = 500
        while not ended.is_set():
            found[number] = number
            del found[number - 500]
            number += 1

    thread, interval = threading.Thread(target=change), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(300):
            values = sorted(found.values())
            assert len(values) in (500, 501)
            assert values[-1] - values[0] == len(values) - 1
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(interval)
