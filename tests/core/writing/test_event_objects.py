"""The body of an Event."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer._core.writing.event_objects import (
    EventRecord,
    EventType,
    ObjectReference,
    ReportingController,
    event_name,
    format_stamp,
)
from aioinformer.errors import UsageError
from tests.core.builders import pod

STAMP = 1_767_225_600_123_456_789
REPORTER = ReportingController("example.com/foo", "foo-1")
POD = ObjectReference("v1", "Pod", "web", "web-0", "u")
NODE = ObjectReference("v1", "Node", "", "node-1", "u")


def test_an_event_has_what_the_api_asks_for() -> None:
    event = EventRecord(POD, "Normal", "Created", "made it", "Create", NODE)
    assert event.to_dict("web-0.1", STAMP, REPORTER) == {
        "metadata": {"name": "web-0.1", "namespace": "web"},
        "eventTime": "2026-01-01T00:00:00.123456Z",
        "reportingController": "example.com/foo",
        "reportingInstance": "foo-1",
        "action": "Create",
        "reason": "Created",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "web",
            "name": "web-0",
            "uid": "u",
        },
        "related": {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "u"},
        "note": "made it",
        "type": "Normal",
    }


def test_events_of_cluster_scoped_objects_are_in_the_default_namespace() -> None:
    assert EventRecord(NODE, "Normal", "Seen").namespace == "default"


def test_the_action_is_the_reason_if_nothing_is_said() -> None:
    assert EventRecord(POD, "Normal", "Seen").to_dict("x", STAMP, REPORTER)["action"] == "Seen"


def test_texts_that_are_too_long_are_cut() -> None:
    event = EventRecord(POD, "Normal", "R" * 200, "é" * 600, "A" * 200)
    body = event.to_dict("x", STAMP, ReportingController("c", "i" * 200))
    assert (len(body["reason"]), len(body["action"])) == (128, 128)
    assert len(body["reportingInstance"]) == 128
    assert body["note"].endswith("é...")
    assert 1022 <= len(body["note"].encode()) <= 1024


def test_words_are_counted_in_bytes_as_the_server_does() -> None:
    event = EventRecord(POD, "Normal", "é" * 100, "", "ü" * 100)
    body = event.to_dict("x", STAMP, ReportingController("c", "ä" * 100))
    for name in ("reason", "action", "reportingInstance"):
        assert len(body[name].encode()) == 128


def test_characters_that_can_not_be_encoded_become_question_marks() -> None:
    body = EventRecord(POD, "Warning", "Unreadable", "no \udcff.txt").to_dict("x", STAMP, REPORTER)
    assert body["note"] == "no ?.txt"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"reason": 5}, "the reason of an event is text, not int"),
        ({"reason": "Seen", "note": None}, "the note of an event is text, not NoneType"),
        ({"reason": "Seen", "action": ["x"]}, "the action of an event is text, not list"),
    ],
    ids=["reason", "note", "action"],
)
def test_values_that_are_not_text_are_rejected(words: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        EventRecord(POD, "Normal", **words)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("system:node-proxier", "system-node-proxier"),
        ("Upper_Case", "upper-case"),
        (f"{'a' * 300}:b", "a" * 236),
        ("::", "event"),
        ("web.shop-1", "web.shop-1"),
    ],
)
def test_objects_that_are_called_as_no_event_may_be_have_events(name: str, start: str) -> None:
    assert event_name(name, STAMP) == f"{start}.{STAMP:x}"


def test_the_note_is_no_part_of_what_makes_two_events_the_same() -> None:
    one, other = (EventRecord(POD, "Normal", "Seen", note) for note in ("a", "b"))
    assert one.key == other.key
    assert one.key != EventRecord(POD, "Warning", "Seen", "a").key


def test_an_event_is_named_for_its_object_and_its_time() -> None:
    assert event_name("web-0", STAMP) == f"web-0.{STAMP:x}"
    assert len(event_name("n" * 253, STAMP)) == 253
    assert ".." not in event_name("n" * 235 + "." * 18, STAMP)


def test_a_time_has_microseconds() -> None:
    assert format_stamp(5_000) == "1970-01-01T00:00:00.000005Z"


def test_a_cached_object_and_a_dict_are_referred_to_alike() -> None:
    cached = pod("web-0")
    assert ObjectReference.of(cached) == ObjectReference.of(cached.to_dict())
    assert str(POD) == "Pod web/web-0"
    assert str(NODE) == "Node node-1"


@pytest.mark.parametrize(
    "obj", [{}, {"kind": "Pod", "apiVersion": "v1", "metadata": {}}, {"metadata": 1}]
)
def test_an_object_that_does_not_say_what_it_is_has_no_events(obj: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"apiVersion, kind and metadata\.name"):
        ObjectReference.of(obj)


@pytest.mark.parametrize(("kind", "reason"), [("Error", "Seen"), ("Normal", "")])
def test_an_event_of_another_type_or_without_a_reason_is_rejected(
    kind: EventType, reason: str
) -> None:
    with pytest.raises(UsageError, match="event"):
        EventRecord(POD, kind, reason)
