"""Kubernetes Events: what they say, and whose they are."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import Added, Deleted, Event, ObjectKey, Resource, Updated
from aioinformer._cli.watch.kube_events import KubeEvent, RelatedEvents
from tests.cli.pods import PODS, pod

EVENTS = Resource("", "v1", "events", "Event")
ABOUT = {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web-0"}


def said(**body: Any) -> Any:
    whole: dict[str, Any] = {
        "involvedObject": ABOUT,
        "type": "Warning",
        "reason": "BackOff",
        "message": "again",
    }
    return pod("web-0.1", resource=EVENTS, **(whole | body))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({}, "BackOff: again"),
        ({"count": 1}, "BackOff: again"),
        ({"count": 3}, "BackOff: again (x3)"),
        ({"series": {"count": 4}}, "BackOff: again (x4)"),
        ({"count": "odd", "reason": None}, "-: again"),
    ],
)
def test_the_text_of_an_event_has_its_reason_message_and_count(
    body: dict[str, Any], text: str
) -> None:
    note = KubeEvent.from_object(said(**body))

    assert (note.type, note.namespace, note.name, note.text) == ("Warning", "shop", "web-0", text)
    assert note.is_warning


def test_an_event_without_a_type_is_not_a_warning() -> None:
    assert not KubeEvent.from_object(said(type=None)).is_warning


def test_an_event_without_an_involved_object_has_an_empty_name() -> None:
    assert KubeEvent.from_object(said(involvedObject="odd")).name == ""


BOOK = RelatedEvents(PODS, lambda key: key == ObjectKey("shop", "web-0"))


def test_the_field_selector_excludes_events_of_other_kinds() -> None:
    assert BOOK.selector == "involvedObject.kind=Pod"


@pytest.mark.parametrize(
    ("event", "taken"),
    [
        (Added(said()), True),
        (Updated(said(), said(count=2)), True),
        (Added(said(), initial=True), False),
        (Deleted(said()), False),
        (Added(said(involvedObject=ABOUT | {"name": "other"})), False),
        (Added(said(involvedObject=ABOUT | {"apiVersion": "example.com/v1"})), False),
    ],
)
def test_only_new_events_about_watched_objects_are_included(event: Event, taken: bool) -> None:
    assert BOOK.includes(event) is taken


def test_events_about_cluster_scoped_objects_are_included_although_they_have_a_namespace() -> None:
    nodes = Resource("", "v1", "nodes", "Node", namespaced=False)
    book = RelatedEvents(nodes, lambda key: key == ObjectKey("", "node-1"))
    about = {"kind": "Node", "name": "node-1", "namespace": "default"}

    assert book.includes(Added(said(involvedObject=about)))
