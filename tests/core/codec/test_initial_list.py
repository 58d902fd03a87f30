"""The initial list of a WatchList, in segments."""

from __future__ import annotations

import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer import Delta, KubeObject, ObjectKey
from aioinformer._core.codec import initial_list
from aioinformer._core.codec.initial_list import SEGMENT_SIZE, InitialList
from aioinformer._core.objects.deltas import DeltaKind
from tests.core import strategies
from tests.core.builders import key, pod
from tests.garbage_collector import DICTS_ARE_UNTRACKED

KINDS: st.SearchStrategy[DeltaKind] = st.sampled_from(["Added", "Updated", "Deleted"])


def itself(obj: KubeObject) -> KubeObject:
    return obj


@given(st.lists(st.tuples(KINDS, strategies.few_names), max_size=40), st.integers(1, 4))
@settings(deadline=None)
def test_the_last_version_of_each_object_is_the_last_in_the_list(
    changes: list[tuple[DeltaKind, str]], size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(initial_list, "SEGMENT_SIZE", size)
        found, expected = InitialList(itself), dict[ObjectKey, KubeObject]()
        for number, (kind, name) in enumerate(changes):
            obj = pod(name, rv=str(number + 1))
            found.apply(Delta(kind, obj))
            if kind == "Deleted":
                expected.pop(obj.key, None)
            else:
                expected[obj.key] = obj

    objects = found.objects()
    assert {obj.key: obj for obj in objects} == expected
    assert [obj for chunk in objects.chunks for obj in chunk] == list(objects)
    assert len(objects) == len(found) == len(list(objects))
    assert all(len(chunk) <= size for chunk in objects.chunks)


def test_objects_keep_their_order_and_a_change_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(initial_list, "SEGMENT_SIZE", 2)
    found = InitialList(itself)
    for name in "abcde":
        found.apply(Delta("Added", pod(name, rv="1")))
    found.apply(Delta("Updated", pod("b", rv="2")))
    found.apply(Delta("Deleted", pod("d", rv="3")))
    objects = found.objects()

    assert [f"{obj.name} {obj.resource_version}" for obj in objects] == ["a 1", "b 2", "c 1", "e 1"]
    assert (objects[-1].key, [obj.name for obj in objects[1:3]]) == (key("e"), ["b", "c"])
    assert repr(objects) == "<InitialObjects objects=4>"
    assert repr(found) == "<InitialList objects=4>"
    assert found.resource_version == ""


def test_a_repeated_object_is_the_cached_one_and_has_its_identity_in_its_bytes() -> None:
    cached = pod("a", rv="1")
    found = InitialList(lambda obj: cached if obj.name == "a" else obj)
    found.apply(Delta("Added", pod("a", rv="1")))
    found.apply(Delta("Updated", pod("b", rv="1")))

    assert found.objects()[0] is cached
    assert [obj.name for obj in found.objects()] == ["a", "b"]


def test_no_step_with_a_long_list_handles_a_long_container() -> None:
    """The growth of a dict copies all of its entries, and a collection walks over tracked ones."""
    deltas = [Delta("Added", pod(str(number))) for number in range(2 * SEGMENT_SIZE + 1)]
    before, found = {id(each) for each in gc.get_objects()}, InitialList(itself)
    for each in deltas:
        found.apply(each)
    objects = found.objects()
    kinds = (list, dict, tuple) if DICTS_ARE_UNTRACKED else (list, tuple)
    tracked = [each for each in gc.get_objects() if type(each) in kinds]

    assert [len(chunk) for chunk in objects.chunks] == [SEGMENT_SIZE, SEGMENT_SIZE, 1]
    assert not [each for each in tracked if id(each) not in before and len(each) > 1000]
