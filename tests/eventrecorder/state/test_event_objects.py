"""The body of an Event."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer._core.writing.write_requests import EventType
from aioinformer.errors import UsageError
from aioinformer.eventrecorder.state.event_objects import (
    EventRecord,
    ObjectReference,
    ReportingController,
    event_name,
    format_stamp,
)
from tests.core.builders import pod

STAMP = 1_767_225_600_123_456_789
REPORTER = ReportingController("example.com/foo", "foo-1")
POD = ObjectReference("v1", "Pod", "web", "web-0", "u")
NODE = ObjectReference("v1", "Node", "", "node-1", "u")


def test_an_event_has_the_fields_that_the_api_requires() -> None:
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


def test_the_action_is_the_reason_by_default() -> None:
    assert EventRecord(POD, "Normal", "Seen").to_dict("x", STAMP, REPORTER)["action"] == "Seen"


def test_texts_that_are_too_long_are_cut() -> None:
    event = EventRecord(POD, "Normal", "R" * 200, "é" * 600, "A" * 200)
    body = event.to_dict("x", STAMP, ReportingController("c", "i" * 200))
    assert (body["reason"], body["action"]) == ("R" * 128, "A" * 128)
    assert body["reportingInstance"] == "i" * 128
    assert body["note"].endswith("é...")
    assert 1022 <= len(body["note"].encode()) <= 1024


def test_texts_of_the_greatest_length_are_whole() -> None:
    event = EventRecord(POD, "Normal", "R" * 128, "n" * 1024, "A" * 128)
    body = event.to_dict("x", STAMP, ReportingController("c", "i" * 128))
    assert (body["reason"], body["action"]) == ("R" * 128, "A" * 128)
    assert (body["note"], body["reportingInstance"]) == ("n" * 1024, "i" * 128)


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
    with pytest.raises(UsageError, match=f"^{message}$"):
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
def test_objects_with_names_that_are_invalid_for_events_have_events(name: str, start: str) -> None:
    assert event_name(name, STAMP) == f"{start}.{STAMP:x}"


def test_events_that_differ_only_in_the_note_are_the_same() -> None:
    one, other = (EventRecord(POD, "Normal", "Seen", note) for note in ("a", "b"))
    assert one.key == other.key
    assert one.key != EventRecord(POD, "Warning", "Seen", "a").key


def test_an_event_is_named_for_its_object_and_its_time() -> None:
    assert event_name("web-0", STAMP) == f"web-0.{STAMP:x}"
    assert len(event_name("n" * 253, STAMP)) == 253
    assert ".." not in event_name("n" * 235 + "." * 18, STAMP)
    assert event_name("w." * 126 + "w", STAMP) == f"{'w.' * 117}w.{STAMP:x}"


def test_a_time_has_microseconds() -> None:
    assert format_stamp(5_000) == "1970-01-01T00:00:00.000005Z"


@pytest.mark.usefixtures("zone_before_utc")
def test_a_time_is_written_in_utc_whatever_the_zone_of_the_machine_is() -> None:
    assert format_stamp(STAMP) == "2026-01-01T00:00:00.123456Z"


def test_a_cached_object_and_a_dict_are_referred_to_alike() -> None:
    cached = pod("web-0")
    assert ObjectReference.of(cached) == ObjectReference.of(cached.to_dict())
    assert str(POD) == "Pod web/web-0"
    assert str(NODE) == "Node node-1"


def test_a_reference_without_namespace_and_uid_has_empty_ones() -> None:
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "uid": None}}
    assert ObjectReference.of(body) == ObjectReference("v1", "Node", "", "node-1", "")


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"kind": "Pod", "apiVersion": "v1", "metadata": {}},
        {"kind": "Pod", "metadata": {"name": "web-0"}},
        {"apiVersion": "v1", "metadata": {"name": "web-0"}},
        {"kind": 5, "apiVersion": "v1", "metadata": {"name": "web-0"}},
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web-0", "namespace": 5}},
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web-0", "uid": 5}},
        {"metadata": 1},
    ],
)
def test_a_reference_to_an_object_without_a_kind_or_a_name_is_an_error(obj: dict[str, Any]) -> None:
    message = (
        r"^an event needs an object with apiVersion, kind and metadata\.name, such as one from a "
        r"cache or a writer$"
    )
    with pytest.raises(UsageError, match=message):
        ObjectReference.of(obj)


@pytest.mark.parametrize(
    ("kind", "reason", "message"),
    [
        ("Error", "Seen", "the type of an event is Normal or Warning, not 'Error'"),
        ("Normal", "", "an event needs a reason: one word in CamelCase, such as 'Created'"),
    ],
    ids=["type", "reason"],
)
def test_an_event_of_another_type_or_without_a_reason_is_rejected(
    kind: EventType, reason: str, message: str
) -> None:
    with pytest.raises(UsageError, match=f"^{message}$"):
        EventRecord(POD, kind, reason)


def test_an_event_is_shown_with_its_type_its_reason_and_its_object() -> None:
    assert str(EventRecord(POD, "Warning", "Failed", "a note")) == "Warning Failed of Pod web/web-0"
