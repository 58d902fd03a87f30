"""One watch, from its bytes to what the queue takes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer import BUILT_IN, Bookmark, Delta, KubeObject, ObjectKey, Resource
from aioinformer._core.codec.watch_decoder import InitialList, WatchDecoder
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import ProtocolError, ServerError
from tests.client.recordings import read_recording
from tests.core import strategies
from tests.runtime.scripted_source import (
    added,
    bookmark,
    deleted,
    error_event,
    event_line,
    modified,
    pod,
)

PODS = find_built_in("pods")
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


def mark(version: int, said: str = "true") -> bytes:
    """The mark behind an initial state."""
    annotations = f'{{"k8s.io/initial-events-end":"{said}"}}'
    metadata = f'{{"resourceVersion":"{version}","annotations":{annotations}}}'
    return event_line("BOOKMARK", f'{{"metadata":{metadata}}}')


def itself(obj: KubeObject) -> KubeObject:
    return obj


def watch_list() -> WatchDecoder:
    return WatchDecoder(PODS, initial=InitialList(itself))


def shown(entries: list[Delta | Bookmark]) -> list[str]:
    return [
        f"bookmark {each.resource_version}"
        if isinstance(each, Bookmark)
        else f"{each.kind} {each.obj.name} {each.obj.resource_version}"
        for each in entries
    ]


def state(intake: WatchDecoder) -> tuple[list[str], str] | None:
    """The names and versions of the initial state, and its own version."""
    taken = intake.take_initial_list()
    if taken is None:
        return None
    objects, version = taken
    return sorted(f"{each.name} {each.resource_version}" for each in objects), version


# -- plain watches -------------------------------------------------------------------------------


def test_what_came_is_taken_once() -> None:
    intake = WatchDecoder(PODS)
    intake.feed(added("a", 1) + modified("a", 2) + bookmark(3))

    entries, bookmarks = intake.take_entries()

    assert shown(entries) == ["Added a 1", "Updated a 2", "bookmark 3"]
    assert bookmarks == 1
    assert intake.take_event_count() == 3
    assert intake.take_entries() == ([], 0)
    assert intake.take_event_count() == 0


@pytest.mark.parametrize("bad", [error_event(500, "InternalError"), b"no event\n"])
def test_what_came_before_something_bad_counts(bad: bytes) -> None:
    intake = WatchDecoder(PODS)

    with pytest.raises((ServerError, ProtocolError)):
        intake.feed(added("a", 1) + bad + added("b", 2))

    assert shown(intake.take_entries()[0]) == ["Added a 1"]


def test_half_an_event_is_none() -> None:
    intake = WatchDecoder(PODS)
    intake.feed(added("a", 1)[:-5])

    assert intake.take_entries() == ([], 0)
    assert intake.buffered > 0


def test_a_plain_watch_has_no_initial_state() -> None:
    intake = WatchDecoder(PODS)
    intake.feed(added("a", 1) + mark(5))

    assert intake.take_initial_list() is None
    assert shown(intake.take_entries()[0]) == ["Added a 1", "bookmark 5"]


# -- WatchLists ----------------------------------------------------------------------------------


def test_the_initial_state_is_what_is_there_at_the_mark() -> None:
    intake = watch_list()
    intake.feed(added("a", 7) + added("b", 3) + added("c", 5))
    intake.feed(modified("a", 8) + deleted("b", 9))
    assert state(intake) is None

    intake.feed(mark(9))

    assert state(intake) == (["a 8", "c 5"], "9")
    assert intake.take_entries() == ([], 0), "none of it is live, and neither is the mark"
    assert state(intake) is None, "once"


def test_what_follows_the_mark_is_live() -> None:
    intake = watch_list()
    intake.feed(added("a", 1) + mark(5) + modified("a", 6) + bookmark(7))

    assert state(intake) == (["a 1"], "5")
    entries, bookmarks = intake.take_entries()
    assert shown(entries) == ["Updated a 6", "bookmark 7"]
    assert bookmarks == 1


def test_an_empty_collection_is_a_state_too() -> None:
    intake = watch_list()
    intake.feed(mark(4))

    assert state(intake) == ([], "4")


@pytest.mark.parametrize("said", ["false", "True", "", "yes"])
def test_a_bookmark_that_says_anything_but_true_is_no_end(said: str) -> None:
    intake = watch_list()
    intake.feed(added("a", 1) + mark(5, said))
    assert state(intake) is None

    intake.feed(mark(6))

    assert state(intake) == (["a 1"], "6")


def test_bookmarks_before_the_mark_say_nothing() -> None:
    intake = watch_list()
    intake.feed(bookmark(3) + added("a", 1) + bookmark(4))
    assert intake.take_entries() == ([], 0)
    intake.feed(mark(5))

    assert state(intake) == (["a 1"], "5")
    assert intake.take_entries() == ([], 0)


def test_something_bad_before_the_mark_leaves_no_state() -> None:
    intake = watch_list()
    with pytest.raises(ServerError):
        intake.feed(added("a", 1) + error_event(500, "InternalError"))

    assert state(intake) is None
    assert intake.take_entries() == ([], 0)


def test_something_bad_behind_the_mark_leaves_the_state() -> None:
    intake = watch_list()
    with pytest.raises(ServerError):
        intake.feed(added("a", 1) + mark(2) + added("b", 3) + error_event(410, "Expired"))

    assert state(intake) == (["a 1"], "2")
    assert shown(intake.take_entries()[0]) == ["Added b 3"]


def test_an_object_that_is_in_memory_already_is_not_held_twice() -> None:
    held = pod("a", 1)
    known = {(held.key, held.resource_version): held}
    initial = InitialList(lambda obj: known.get((obj.key, obj.resource_version), obj))
    intake = WatchDecoder(PODS, initial=initial)
    intake.feed(added("a", 1) + added("b", 2) + mark(3))

    taken = intake.take_initial_list()

    assert taken is not None
    assert next(obj for obj in taken[0] if obj.key == ObjectKey("web", "a")) is held


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_the_state_is_the_same_however_its_bytes_are_cut(data: st.DataObject) -> None:
    whole = added("a", 7) + added("b", 3) + modified("a", 8) + bookmark(8) + deleted("b", 9)
    whole += mark(9) + modified("a", 10) + mark(11)
    intake = watch_list()
    for chunk in data.draw(strategies.chunks(whole)):
        intake.feed(chunk)

    assert state(intake) == (["a 8"], "9")
    assert shown(intake.take_entries()[0]) == ["Updated a 10", "bookmark 11"]


@pytest.mark.parametrize(
    ("name", "resource", "objects", "live"),
    [
        ("33-watch-list-streaming", PODS, 8, 6),
        ("51-cr-watch-list-streaming", WIDGETS, 3, 4),
        ("42-watch-empty-namespace-list-streaming", PODS, 0, 0),
    ],
)
def test_a_recorded_watch_list_is_read(
    name: str, resource: Resource, objects: int, live: int
) -> None:
    intake = WatchDecoder(resource, initial=InitialList(itself))
    intake.feed(read_recording(name).body)

    taken = intake.take_initial_list()

    assert taken is not None
    assert (len(taken[0]), len(intake.take_entries()[0])) == (objects, live)


def test_the_reprs_say_how_far_it_is() -> None:
    intake = watch_list()
    intake.feed(added("a", 1))
    assert repr(intake) == "<WatchDecoder waiting=0 <InitialList objects=1>>"
    assert PODS in BUILT_IN
