"""Tests of the start of watches, and of the bytes that they send."""

from __future__ import annotations

import msgspec
import pytest

from aioinformer.errors import BadRequest, Invalid, NotFound, ServerFailure
from aioinformer.testing import Cluster
from tests.testing.recorded_exchanges import WIDGETS, as_submitted, normalize, recorded_lines
from tests.testing.watch_events import (
    INITIAL_EVENTS_END,
    create,
    decode_events,
    newest_version,
    set_labels,
    take_events,
    take_lines,
)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    for name in ("b", "a"):
        create(cluster, name)
    return cluster


# -- the bytes ---------------------------------------------------------------------------------


def test_the_events_of_a_pod_are_written_as_a_real_server_writes_them() -> None:
    """Recording 30, up to the graceful deletion, which a kubelet does and the model doesn't."""
    expected = recorded_lines("30-watch-from-rv")
    objects = [msgspec.json.decode(line)["object"] for line in expected[:3]]
    cluster = Cluster()
    watch = cluster.watch(
        "pods", now=0, resource_version=newest_version(cluster), bookmarks=True, timeout=5
    )
    cluster.create("pods", as_submitted(objects[0]))
    for changed in objects[1:]:
        cluster.update("pods", as_submitted(changed))
    assert [normalize(line) for line in take_lines(watch)] == expected[:3]
    assert [normalize(line) for line in take_lines(watch, now=3.0)] == expected[-1:]


def test_an_object_that_leaves_the_selection_is_written_as_a_real_server_writes_it() -> None:
    """Recording 31: DELETED with the last state that was selected, at the new version."""
    expected = recorded_lines("31-watch-label-selector-leaves")[:3]
    objects = [msgspec.json.decode(line)["object"] for line in expected[:2]]
    cluster = Cluster()
    watch = cluster.watch("pods", now=0, resource_version="1", labels="app=web-2")
    cluster.create("pods", as_submitted(objects[0]))
    cluster.update("pods", as_submitted(objects[1]))
    set_labels(cluster, "web-50", app="other")
    lines = take_lines(watch)
    assert [normalize(line) for line in lines] == expected
    assert decode_events(lines)[-1]["object"]["metadata"]["resourceVersion"] == newest_version(
        cluster
    )


def test_a_removed_resource_ends_its_watches_as_a_real_server_does() -> None:
    """Recording 52: the initial state, its end, a DELETED each, a bookmark, the end."""
    cluster = Cluster()
    cluster.add_resource(WIDGETS)
    expected = recorded_lines("52-cr-watch-while-crd-is-deleted")
    untouched, changed = (msgspec.json.decode(line)["object"] for line in expected[:2])
    cluster.create(WIDGETS, as_submitted(untouched))
    cluster.create(WIDGETS, as_submitted(changed) | {"spec": {}})
    cluster.merge_patch(WIDGETS, "w1", {"spec": changed["spec"]})
    watch = cluster.watch(WIDGETS, now=0, namespace="default", resource_version="0", bookmarks=True)
    cluster.remove_resource(WIDGETS)
    assert [normalize(line) for line in take_lines(watch)] == expected
    assert watch.ended
    with pytest.raises(NotFound):
        cluster.watch(WIDGETS, now=0)


def test_a_watch_list_without_objects_is_its_end_bookmark() -> None:
    """Recording 42."""
    watch = Cluster().watch(
        "pods",
        now=0,
        namespace="kube-public",
        send_initial_events=True,
        match="NotOlderThan",
        bookmarks=True,
    )
    expected = recorded_lines("42-watch-empty-namespace-list-streaming")
    assert [normalize(line) for line in take_lines(watch)] == expected


def test_a_watch_from_a_compacted_version_sends_one_error() -> None:
    """Recordings 61 and 64: the status is 200, the first event is 410."""
    cluster = Cluster()
    create(cluster, "a")
    cluster.compact()
    watch = cluster.watch("pods", now=0, resource_version="1")
    assert [normalize(line) for line in take_lines(watch)] == recorded_lines("61-watch-expired-rv")
    assert watch.ended


# -- how a watch starts ------------------------------------------------------------------------


def test_a_watch_from_a_version_before_the_start_of_a_cluster_sends_one_error() -> None:
    cluster = Cluster(start=1_000)
    create(cluster, "a")
    assert cluster.resource_version == 1_001
    watch = cluster.watch("pods", now=0, resource_version="900")
    (line,) = take_lines(watch)
    assert msgspec.json.decode(line)["object"]["code"] == 410


def test_a_watch_from_a_version_sends_the_later_changes(cluster: Cluster) -> None:
    """Recording 38."""
    set_labels(cluster, "a", x="y")
    cluster.delete("pods", "a")
    watch = cluster.watch("pods", now=0, resource_version="2")
    assert take_events(watch) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


@pytest.mark.parametrize("version", ["", "0"])
def test_a_watch_without_a_version_starts_with_all_objects(cluster: Cluster, version: str) -> None:
    """Recordings 35 and 36: key order, not the order of writes, and no end bookmark."""
    watch = cluster.watch("pods", now=0, resource_version=version)
    assert take_events(watch) == [("ADDED", "a"), ("ADDED", "b")]


@pytest.mark.parametrize("version", ["", "0", "2"])
def test_a_watch_list_marks_the_end_of_the_initial_state(cluster: Cluster, version: str) -> None:
    """Recordings 33 and 51."""
    watch = cluster.watch(
        "pods",
        now=0,
        resource_version=version,
        match="NotOlderThan",
        send_initial_events=True,
        bookmarks=True,
    )
    create(cluster, "c")
    events = decode_events(take_lines(watch))
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "BOOKMARK", "ADDED"]
    mark = events[2]["object"]["metadata"]
    assert mark == {"resourceVersion": "3", "annotations": INITIAL_EVENTS_END}


def test_initial_events_show_the_state_at_the_start_however_late_they_are_read(
    cluster: Cluster,
) -> None:
    watch = cluster.watch("pods", now=0)
    cluster.delete("pods", "a")
    assert take_events(watch) == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]


def test_a_watch_without_initial_events_starts_empty(cluster: Cluster) -> None:
    watch = cluster.watch("pods", now=0, match="NotOlderThan", send_initial_events=False)
    assert take_events(watch) == []
    create(cluster, "c")
    assert take_events(watch) == [("ADDED", "c")]


def test_a_watch_from_a_future_version_sends_nothing_until_it_is_passed(cluster: Cluster) -> None:
    """Recording 37."""
    watch = cluster.watch("pods", now=0, resource_version="5", bookmarks=True, timeout=100)
    create(cluster, "c")
    assert take_events(watch, now=60.0) == []
    create(cluster, "d")
    create(cluster, "e")
    assert take_events(watch, now=61.0) == [("ADDED", "e")]


def test_a_watch_list_from_the_future_is_an_error_in_the_stream(cluster: Cluster) -> None:
    watch = cluster.watch(
        "pods", now=0, resource_version="9", match="NotOlderThan", send_initial_events=True
    )
    [event] = decode_events(take_lines(watch))
    assert event["type"] == "ERROR"
    assert event["object"]["code"] == 504
    assert watch.ended


def test_a_watch_can_start_from_the_oldest_version_in_the_window() -> None:
    cluster = Cluster(window=1)
    for name in "abc":
        create(cluster, name)
    assert take_events(cluster.watch("pods", now=0, resource_version="3")) == [("ADDED", "c")]
    assert take_events(cluster.watch("pods", now=0, resource_version="2")) == [("ERROR", "")]


def test_compaction_does_not_touch_an_open_watch(cluster: Cluster) -> None:
    watch = cluster.watch("pods", now=0, resource_version=newest_version(cluster))
    create(cluster, "c")
    cluster.compact()
    create(cluster, "d")
    assert take_events(watch) == [("ADDED", "c"), ("ADDED", "d")]


def test_sending_initial_events_requires_a_match(cluster: Cluster) -> None:
    """Recording 34."""
    with pytest.raises(Invalid, match="sendInitialEvents requires setting") as caught:
        cluster.watch("pods", now=0, send_initial_events=True)
    assert caught.value.phase == "watch"


def test_a_match_requires_initial_events(cluster: Cluster) -> None:
    with pytest.raises(Invalid, match="forbidden for watch unless sendInitialEvents"):
        cluster.watch("pods", now=0, match="NotOlderThan", resource_version="1")


def test_a_malformed_version_is_a_failure_of_the_server(cluster: Cluster) -> None:
    """Recording 41."""
    with pytest.raises(ServerFailure, match=r'strconv\.ParseUint: parsing "abc"'):
        cluster.watch("pods", now=0, resource_version="abc")


def test_a_bad_selector_is_an_error_before_the_watch(cluster: Cluster) -> None:
    with pytest.raises(BadRequest):
        cluster.watch("pods", now=0, fields="spec.nope=1")


def test_metadata_alone_has_bookmarks_of_its_own_kind(cluster: Cluster) -> None:
    watch = cluster.watch(
        "pods",
        now=0,
        match="NotOlderThan",
        send_initial_events=True,
        bookmarks=True,
        form="metadata",
    )
    *initial, mark = decode_events(take_lines(watch))
    assert [set(event["object"]) for event in initial] == [{"kind", "apiVersion", "metadata"}] * 2
    assert mark["object"]["kind"] == "PartialObjectMetadata"
    assert mark["object"]["metadata"]["annotations"] == INITIAL_EVENTS_END
