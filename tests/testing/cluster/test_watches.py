"""Tests of watches: their events, bookmarks and end."""

from __future__ import annotations

import pytest

from aioinformer.testing import Cluster
from aioinformer.testing.cluster.watches import MAX_BATCH_LINES
from tests.testing.recorded_exchanges import WIDGETS
from tests.testing.watch_events import (
    create,
    decode_events,
    newest_version,
    set_labels,
    take_events,
)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    for name in ("b", "a"):
        create(cluster, name)
    return cluster


# -- events ------------------------------------------------------------------------------------


def test_entering_and_leaving_a_selection_are_added_and_deleted(cluster: Cluster) -> None:
    watch = cluster.watch("pods", now=0, resource_version=newest_version(cluster), labels="on=yes")
    create(cluster, "c", on="yes")
    set_labels(cluster, "a", on="yes")
    set_labels(cluster, "a", more="x")
    set_labels(cluster, "a", on="no")
    set_labels(cluster, "a", more="y")
    cluster.delete("pods", "a")
    cluster.delete("pods", "c")
    assert take_events(watch) == [
        ("ADDED", "c"),
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
        ("DELETED", "c"),
    ]


def test_a_watch_from_the_past_sees_its_selection_as_it_was_then(cluster: Cluster) -> None:
    set_labels(cluster, "a", on="yes")
    set_labels(cluster, "a", on="no")
    watch = cluster.watch("pods", now=0, resource_version="3", labels="on=yes")
    assert take_events(watch) == [("ADDED", "a"), ("DELETED", "a")]


def test_a_watch_shows_its_resource_and_namespace_alone(cluster: Cluster) -> None:
    watch = cluster.watch("pods", now=0, namespace="web", resource_version=newest_version(cluster))
    create(cluster, "c")
    cluster.create("services", {"metadata": {"name": "d"}}, namespace="web")
    cluster.create("pods", {"metadata": {"name": "e"}}, namespace="web")
    assert take_events(watch) == [("ADDED", "e")]


def test_an_event_is_encoded_once_for_all_watches(cluster: Cluster) -> None:
    watches = [cluster.watch("pods", now=0, resource_version="3") for _ in range(3)]
    create(cluster, "c")
    first, *others = [watch.take(0) for watch in watches]
    assert all(lines[0] is first[0] for lines in others)


# -- time --------------------------------------------------------------------------------------


def test_bookmarks_come_every_minute_and_two_seconds_before_the_end(cluster: Cluster) -> None:
    """Recording 39, which has the last one twice."""
    watch = cluster.watch("pods", now=100.0, resource_version="3", bookmarks=True, timeout=150)
    create(cluster, "c")
    assert len(watch.take(100.0)) == 1
    due: list[tuple[float, int]] = []
    while not watch.ended:
        now = watch.next_deadline
        due.append((now, len(watch.take(now))))
    assert due == [(160.0, 1), (220.0, 1), (248.0, 1), (249.0, 1), (250.0, 0)]


def test_no_bookmark_is_sent_while_the_version_is_unchanged(cluster: Cluster) -> None:
    """Recording 42."""
    watch = cluster.watch("pods", now=0, resource_version="3", bookmarks=True)
    assert watch.take(60.0) == []
    cluster.create("services", {"metadata": {"name": "s"}})  # of any resource
    assert len(watch.take(120.0)) == 1


def test_a_bookmark_carries_the_newest_version_and_nothing_else(cluster: Cluster) -> None:
    watch = cluster.watch("services", now=0, resource_version="3", bookmarks=True)
    create(cluster, "c")
    [event] = decode_events(watch.take(60.0))
    assert event == {
        "type": "BOOKMARK",
        "object": {
            "kind": "Service",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": newest_version(cluster)},
        },
    }


def test_no_bookmarks_are_sent_unless_requested(cluster: Cluster) -> None:
    watch = cluster.watch("pods", now=0, resource_version="3", timeout=100)
    assert watch.next_deadline == 100.0
    assert watch.take(99.0) == []


def test_a_watch_ends_at_its_deadline_after_all_waiting_lines_were_taken(cluster: Cluster) -> None:
    watch = cluster.watch("pods", now=0, resource_version="3", timeout=10)
    for number in range(MAX_BATCH_LINES):
        create(cluster, f"web-{number}")
    assert len(watch.take(10.0)) == MAX_BATCH_LINES
    assert not watch.ended
    assert watch.take(10.0) == []
    assert watch.ended


# -- reading -----------------------------------------------------------------------------------


def test_a_long_initial_state_is_taken_in_batches(cluster: Cluster) -> None:
    for number in range(MAX_BATCH_LINES):
        create(cluster, f"web-{number}")
    watch = cluster.watch("pods", now=0)
    assert [len(watch.take(0)) for _ in range(3)] == [MAX_BATCH_LINES, 2, 0]


def test_on_ready_is_called_when_the_first_line_is_available(cluster: Cluster) -> None:
    watch = cluster.watch("pods", now=0, resource_version="3")
    calls: list[int] = []
    watch.on_ready = lambda: calls.append(watch.waiting)
    create(cluster, "c")
    create(cluster, "d")
    assert calls == [1]
    watch.take(0)
    create(cluster, "e")
    assert calls == [1, 1]


def test_on_ready_is_called_at_the_end(cluster: Cluster) -> None:
    cluster.add_resource(WIDGETS)
    watch = cluster.watch(WIDGETS, now=0)
    calls: list[bool] = []
    watch.on_ready = lambda: calls.append(True)
    cluster.remove_resource(WIDGETS)
    assert calls == [True]
    assert not watch.ended
    assert watch.take(0) == []
    assert watch.ended


def test_a_watch_without_a_reader_is_dropped() -> None:
    cluster = Cluster(watch_buffer=3)
    watch = cluster.watch("pods", now=0, resource_version="1")
    for name in "abcd":
        create(cluster, name)
    assert watch.ended
    assert watch.waiting == 0
    assert watch.take(0) == []
    assert "0 watches" in repr(cluster)


def test_the_initial_state_does_not_count_against_the_buffer() -> None:
    cluster = Cluster(watch_buffer=1)
    for name in "abcd":
        create(cluster, name)
    watch = cluster.watch("pods", now=0)
    create(cluster, "e")
    assert len(take_events(watch)) == 5


def test_a_closed_watch_sends_nothing_more(cluster: Cluster) -> None:
    watch = cluster.watch("pods", now=0)
    create(cluster, "c")
    watch.close()
    watch.close()
    assert watch.ended
    assert watch.take(0) == []
    assert "0 watches" in repr(cluster)


def test_the_repr_shows_the_state(cluster: Cluster) -> None:
    watch = cluster.watch("pods", now=0, resource_version="3")
    create(cluster, "c")
    assert repr(watch) == "<Watch pods after rv=3 open 1 waiting>"
    watch.close()
    assert repr(watch) == "<Watch pods after rv=3 ended 0 waiting>"


def test_a_requested_bookmark_is_sent_at_once_to_watches_that_take_bookmarks() -> None:
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "a"}})
    taking = cluster.watch("configmaps", now=0, resource_version="1", bookmarks=True)
    plain = cluster.watch("configmaps", now=0, resource_version="1")
    assert taking.take(1) == []
    cluster.send_bookmarks()
    (line,) = taking.take(1)
    assert b'"BOOKMARK"' in line
    assert f'"resourceVersion":"{cluster.resource_version}"'.encode() in line
    assert taking.take(1) == []
    assert plain.take(1) == []
