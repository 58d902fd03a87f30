"""Objects that are shown before the initial list is complete."""

from __future__ import annotations

from aioinformer import Added, Deleted, KubeObject, Updated
from aioinformer._cli.watch.first_objects import MAX_OBJECTS, FirstObjects
from tests.cli.pods import pod


def shown(*objects: KubeObject) -> FirstObjects:
    first = FirstObjects()
    first.collect(objects)
    assert first.take() == list(objects)
    return first


def test_each_object_is_shown_once_also_if_the_list_begins_again() -> None:
    first = shown(pod("a"), pod("b"))
    first.collect([pod("a"), pod("c")])
    assert [obj.name for obj in first.take()] == ["c"]


def test_at_most_one_page_of_objects_is_kept() -> None:
    first = FirstObjects()
    first.collect([pod(f"pod-{number}") for number in range(MAX_OBJECTS + 10)])
    assert len(first.take()) == MAX_OBJECTS
    first.collect([pod("later")])
    assert first.take() == []


def test_an_unchanged_object_is_not_shown_again() -> None:
    first = shown(pod("a"))
    assert first.change_since(Added(pod("a"), initial=True)) is None


def test_later_events_of_a_shown_object_are_not_changed() -> None:
    first = shown(pod("a"))
    first.change_since(Added(pod("a"), initial=True))
    later = Updated(pod("a"), pod("a", version="8"))
    assert first.change_since(later) is later


def test_an_object_that_has_changed_since_is_an_update() -> None:
    first = shown(pod("a"))
    change = first.change_since(Added(pod("a", version="8"), initial=True))
    assert isinstance(change, Updated)
    assert (change.old.resource_version, change.new.resource_version) == ("7", "8")


def test_an_object_that_was_not_shown_is_added() -> None:
    event = Added(pod("b"), initial=True)
    assert shown(pod("a")).change_since(event) is event


def test_an_object_that_vanished_before_the_list_was_complete_is_deleted() -> None:
    first = shown(pod("a"), pod("b"))
    (deletion,) = first.deletions(lambda key: key.name == "b")
    assert isinstance(deletion, Deleted)
    assert (deletion.obj.name, deletion.reason) == ("a", "vanished")
    assert first.change_since(Added(pod("a"), initial=False)) is not None
