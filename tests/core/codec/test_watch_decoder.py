"""The batches of a watch, and the initial list of a WatchList."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import BUILT_IN, Bookmark, Delta, KubeObject, ObjectKey, Resource
from aioinformer._core.codec.initial_list import InitialList
from aioinformer._core.codec.watch_decoder import SLICE_BYTES, WatchBatch, WatchDecoder
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


def mark(version: int, value: str = "true") -> bytes:
    """Return the mark behind an initial state."""
    annotations = f'{{"k8s.io/initial-events-end":"{value}"}}'
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


def state(batch: WatchBatch) -> tuple[list[str], str] | None:
    """Return the names and versions of the initial list, and its own version."""
    initial = batch.initial_list
    if initial is None:
        return None
    names = sorted(f"{each.name} {each.resource_version}" for each in initial.objects())
    return names, initial.resource_version


# -- plain watches -------------------------------------------------------------------------------


def test_a_batch_has_the_events_of_its_bytes() -> None:
    decoder = WatchDecoder(PODS)
    batch = decoder.feed(added("a", 1) + modified("a", 2) + bookmark(3))

    assert shown(batch.entries) == ["Added a 1", "Updated a 2", "bookmark 3"]
    assert (batch.bookmarks, batch.event_count, batch.resource_version) == (1, 3, "3")
    assert batch.error is None
    assert decoder.feed(b"") == WatchBatch([], 0, 0)


def test_a_bookmark_without_a_version_has_none_for_the_batch() -> None:
    batch = WatchDecoder(PODS).feed(added("a", 1) + event_line("BOOKMARK", '{"metadata":{}}'))

    assert (batch.bookmarks, batch.resource_version) == (1, "1")


@pytest.mark.parametrize("bad", [error_event(500, "InternalError"), b"no event\n"])
def test_the_events_before_an_error_are_in_its_batch(bad: bytes) -> None:
    batch = WatchDecoder(PODS).feed(added("a", 1) + bad + added("b", 2))

    assert shown(batch.entries) == ["Added a 1"]
    assert isinstance(batch.error, ServerError | ProtocolError)


def test_an_incomplete_line_is_no_event() -> None:
    decoder = WatchDecoder(PODS)

    assert decoder.feed(added("a", 1)[:-5]).entries == []
    assert decoder.buffered > 0


def test_a_plain_watch_has_no_initial_list() -> None:
    batch = WatchDecoder(PODS).feed(added("a", 1) + mark(5))

    assert state(batch) is None
    assert shown(batch.entries) == ["Added a 1", "bookmark 5"]


# -- WatchLists ----------------------------------------------------------------------------------


@pytest.mark.client_go(41)
def test_the_initial_list_has_the_objects_that_exist_at_the_mark() -> None:
    decoder = watch_list()
    assert state(decoder.feed(added("a", 7) + added("b", 3) + added("c", 5))) is None
    assert state(decoder.feed(modified("a", 8) + deleted("b", 9))) is None

    batch = decoder.feed(mark(9))

    assert state(batch) == (["a 8", "c 5"], "9")
    assert (batch.entries, batch.bookmarks) == ([], 0), (
        "none of it is live, and neither is the mark"
    )
    assert state(decoder.feed(modified("a", 10))) is None, "once"


def test_events_after_the_mark_are_live() -> None:
    batch = watch_list().feed(added("a", 1) + mark(5) + modified("a", 6) + bookmark(7))

    assert state(batch) == (["a 1"], "5")
    assert shown(batch.entries) == ["Updated a 6", "bookmark 7"]
    assert (batch.bookmarks, batch.event_count) == (1, 4)


def test_an_empty_collection_is_a_state_too() -> None:
    assert state(watch_list().feed(mark(4))) == ([], "4")


@pytest.mark.client_go(46)
@pytest.mark.parametrize("value", ["false", "True", "", "yes"])
def test_a_bookmark_whose_annotation_is_not_true_is_no_end_mark(value: str) -> None:
    decoder = watch_list()
    assert state(decoder.feed(added("a", 1) + mark(5, value))) is None

    assert state(decoder.feed(mark(6))) == (["a 1"], "6")


def test_bookmarks_before_the_end_mark_are_not_counted() -> None:
    decoder = watch_list()
    before = decoder.feed(bookmark(3) + added("a", 1) + bookmark(4))
    assert (before.entries, before.bookmarks) == ([], 0)

    batch = decoder.feed(mark(5))

    assert state(batch) == (["a 1"], "5")
    assert (batch.entries, batch.bookmarks) == ([], 0)


def test_an_error_before_the_mark_leaves_no_initial_list() -> None:
    batch = watch_list().feed(added("a", 1) + bookmark(2) + error_event(500, "InternalError"))

    assert isinstance(batch.error, ServerError)
    assert state(batch) is None
    assert (batch.entries, batch.bookmarks) == ([], 0)


def test_an_error_after_the_mark_leaves_the_initial_list() -> None:
    batch = watch_list().feed(added("a", 1) + mark(2) + added("b", 3) + error_event(410, "Expired"))

    assert isinstance(batch.error, ServerError)
    assert state(batch) == (["a 1"], "2")
    assert shown(batch.entries) == ["Added b 3"]


def test_a_cached_object_is_reused_in_the_initial_list() -> None:
    held = pod("a", 1)
    known = {(held.key, held.resource_version): held}
    initial = InitialList(lambda obj: known.get((obj.key, obj.resource_version), obj))
    batch = WatchDecoder(PODS, initial=initial).feed(added("a", 1) + added("b", 2) + mark(3))

    assert batch.initial_list is not None
    assert next(o for o in batch.initial_list.objects() if o.key == ObjectKey("web", "a")) is held


@given(st.data())
def test_the_initial_list_is_the_same_for_any_chunks(data: st.DataObject) -> None:
    whole = added("a", 7) + added("b", 3) + modified("a", 8) + bookmark(8) + deleted("b", 9)
    whole += mark(9) + modified("a", 10) + mark(11)
    decoder = watch_list()
    batches = [decoder.feed(chunk) for chunk in data.draw(strategies.chunks(whole))]

    assert [found for batch in batches if (found := state(batch))] == [(["a 8"], "9")]
    entries = [entry for batch in batches for entry in batch.entries]
    assert shown(entries) == ["Updated a 10", "bookmark 11"]


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
    batch = WatchDecoder(resource, initial=InitialList(itself)).feed(read_recording(name).body)

    assert batch.initial_list is not None
    assert (len(batch.initial_list), len(batch.entries)) == (objects, live)


# -- a program's code for each object ------------------------------------------------------------


def test_bytes_are_decoded_in_slices_only_where_a_converter_runs() -> None:
    assert WatchDecoder(PODS).slice_bytes > 2**40
    assert WatchDecoder(PODS, converter=itself).slice_bytes == SLICE_BYTES


def test_the_repr_shows_the_progress() -> None:
    decoder = watch_list()
    decoder.feed(added("a", 1) + b"half")
    assert repr(decoder) == "<WatchDecoder buffered=4 B <InitialList objects=1>>"
    assert PODS in BUILT_IN
