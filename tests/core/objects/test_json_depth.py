"""JSON that is nested too deep: its metadata is decoded, and other objects are not affected."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given

from aioinformer._core.codec.event_decoder import EventDecoder
from aioinformer._core.codec.list_decoder import ListDecoder
from aioinformer._core.objects.deltas import Bookmark, Delta
from aioinformer._core.objects.json_depth import (
    MAX_DEPTH,
    decode_nested,
    iter_containers,
    truncate_depth,
)
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer.errors import ObjectDecodeError, ProtocolError, UnexpectedObject
from tests.core import strategies
from tests.core.builders import PODS
from tests.core.strategies import JsonStyle

# Deeper than msgspec can decode: a thousand levels, or ten thousand from Python 3.13 on.
DEEP_VALUE = b"[" * 50_000 + b"]" * 50_000
DEEP = (
    b'{"metadata":{"name":"deep","uid":"u","resourceVersion":"5","labels":{"app":"x"}%b},'
    b'"spec":' + DEEP_VALUE + b',"status":{"phase":"Running"}}'
)
MANAGED = b',"managedFields":[{"manager":"kubectl"}]'


def watched(raw: bytes) -> KubeObject:
    """Return the object of a watch event."""
    delta = EventDecoder(PODS).decode(b'{"type":"ADDED","object":%b}\n' % raw)
    assert isinstance(delta, Delta)
    return delta.obj


def listed(*items: bytes) -> list[KubeObject]:
    """Return the objects of a list."""
    decoder = ListDecoder(PODS)
    head = b'{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":['
    objects = decoder.feed(head + b",".join(items) + b"]}")
    return [*objects, *decoder.close()[0]]


@given(strategies.objects(), strategies.json_styles)
def test_a_body_that_is_not_deep_stays_unchanged(body: dict[str, Any], spelling: JsonStyle) -> None:
    assert truncate_depth(spelling(body)) == spelling(body)


def nested(levels: int, inside: object) -> object:
    """Wrap ``inside`` in lists and objects in turns."""
    for level in range(levels):
        inside = [inside, "]}"] if level % 2 else {'"[{': inside}
    return inside


@pytest.mark.parametrize("levels", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, MAX_DEPTH + 50])
def test_a_part_that_is_too_deep_becomes_a_zero(levels: int) -> None:
    whole: dict[str, Any] = {"before": 1, "deep": nested(levels, "x"), "behind": [{}]}

    found = json.loads(truncate_depth(json.dumps(whole).encode()))

    expected = whole["deep"] if levels < MAX_DEPTH else _cut(whole["deep"], MAX_DEPTH - 1)
    assert found == {"before": 1, "deep": expected, "behind": [{}]}


def _cut(value: Any, levels: int) -> Any:
    if isinstance(value, str):
        return value
    if not levels:
        return 0
    if isinstance(value, list):
        return [_cut(value[0], levels - 1), *value[1:]]
    return {key: _cut(inner, levels - 1) for key, inner in value.items()}


@pytest.mark.parametrize("data", [b"", b"[" * 200, b"]" * 200, b'{"a":"' + b"[" * 200])
def test_text_that_is_no_json_stays_invalid(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_nested(msgspec.json.decode, truncate_depth(data))


@pytest.mark.parametrize("managed", [b"", MANAGED], ids=["plain", "managed"])
def test_a_deep_object_is_cached_and_raises_an_error_when_it_is_opened(
    managed: bytes,
) -> None:
    others = b'{"metadata":{"name":"a"}}', b'{"metadata":{"name":"b"}}'
    before, deep, behind = listed(others[0], DEEP % managed, others[1])
    assert (before.name, behind.name) == ("a", "b")

    for obj in (deep, watched(DEEP % managed)):
        assert (obj.name, obj.uid, obj.resource_version) == ("deep", "u", "5")
        assert obj.raw.endswith((DEEP % b"")[1:])
        assert obj.labels == {"app": "x"}, "a selector must not fail for it"
        with pytest.raises(ObjectDecodeError, match="pods deep at resourceVersion 5"):
            obj["status"]


@pytest.mark.parametrize(
    "spelled",
    [
        b'{"metadata": {"name":"deep","managedFields": [{}]},"x":%b}',
        b'{"metadata":{"managedFields":[{}],"name":"deep"},"x":%b}',
        b'{"data":%b,"metadata":{"name":"deep","managedFields":[{}]}}',
        b'{"data":{"managedFields":[{}]},"x":%b,"metadata":{"name":"deep","managedFields":[{}]}}',
    ],
    ids=["with spaces", "at the beginning of metadata", "behind the rest", "twice"],
)
def test_the_managed_fields_of_a_deep_object_are_cut_wherever_they_stand(spelled: bytes) -> None:
    raw = spelled % DEEP_VALUE
    others = b'{"metadata":{"name":"a"}}', b'{"metadata":{"name":"b"}}'
    for obj in (listed(others[0], raw, others[1])[1], watched(raw)):
        assert obj.name == "deep"
        assert obj.raw.count(b"managedFields") == raw.count(b"managedFields") - 1
        assert DEEP_VALUE in obj.raw


@pytest.mark.parametrize(
    "line",
    [
        b'{"type": "ADDED", "object": %b}',
        b'{"object":%b,"type":"ADDED"}\n',
        b'{"x":"\\"{[","type":"ADDED","object":%b }\n',
    ],
    ids=["with spaces", "the type last", "with another member"],
)
def test_a_deep_object_is_read_from_a_line_in_any_spelling(line: bytes) -> None:
    delta = EventDecoder(PODS).decode(line % (DEEP % MANAGED))
    assert isinstance(delta, Delta)
    assert (delta.kind, delta.obj.uid, delta.obj.raw) == ("Added", "u", DEEP % b"")


@pytest.mark.parametrize(
    "line",
    [
        b'{"type": "ADDED", "object": %b, "other": {}}',
        b'{"type": "ADDED", "other": %b}',
        b'{"type": "ADDED", "object": "a", "other": %b}',
        b'{"type": "ADDED", "object": %b',
        b'{"type": "BOOKMARK", "object": %b, "other": {}}',
    ],
    ids=["another object", "no object", "a text", "no end", "another object in a bookmark"],
)
def test_a_deep_line_whose_object_is_uncertain_is_no_event(line: bytes) -> None:
    with pytest.raises(ProtocolError, match="is no event"):
        EventDecoder(PODS).decode(line % (DEEP % MANAGED))


def test_a_deep_object_of_another_kind_is_unexpected_in_any_spelling() -> None:
    raw = b'{"kind":"Service","apiVersion":"v1","metadata":{"name":"a"},"x":%b}' % DEEP_VALUE
    with pytest.raises(UnexpectedObject, match="of another kind: Service of v1"):
        EventDecoder(PODS).decode(b'{"type": "ADDED", "object": %b}' % raw)


def test_a_bookmark_with_a_deep_member_is_a_bookmark() -> None:
    raw = b'{"kind":"Pod","metadata":{"resourceVersion":"7"},"x":%b}' % DEEP_VALUE
    found = EventDecoder(PODS).decode(b'{"type":"BOOKMARK","object":%b}' % raw)
    assert found == Bookmark("7")


def test_the_members_of_an_object_that_are_containers_are_found() -> None:
    data = b'{"a":[{}], "b":"[{", "c":1, "d":{"e":{}}}'

    found = [data[start:end] for start, end in iter_containers(data)]

    assert found == [b"[{}]", b'{"e":{}}']


def test_the_managed_fields_of_a_deep_object_stay_if_they_are_too_deep_themselves() -> None:
    raw = b'{"metadata": {"name":"deep","managedFields": [%b]},"x":%b}' % (DEEP_VALUE, DEEP_VALUE)
    for obj in (*listed(raw), watched(raw)):
        assert (obj.name, obj.raw[-100:]) == ("deep", raw[-100:])
        assert b"managedFields" in obj.raw


def test_deep_bytes_that_are_no_event_are_no_event() -> None:
    with pytest.raises(ProtocolError, match="is no event"):
        watched(b'{"metadata":7,"spec":' + DEEP_VALUE + b"}")
    with pytest.raises(ProtocolError, match="is malformed"):
        listed(b'{"metadata":7,"spec":' + DEEP_VALUE + b"}")


def test_each_of_several_deep_parts_becomes_a_zero() -> None:
    deep = b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1)
    cut = b"[" * (MAX_DEPTH - 1) + b"0" + b"]" * (MAX_DEPTH - 1)

    assert truncate_depth(b'{"a":%b,"b":1,"c":%b}' % (deep, deep)) == (
        b'{"a":%b,"b":1,"c":%b}' % (cut, cut)
    )


@pytest.mark.parametrize("levels", [MAX_DEPTH, MAX_DEPTH + 1])
def test_json_that_does_not_end_stays_unchanged(levels: int) -> None:
    unended = b"[" * levels
    assert truncate_depth(unended) == unended
    behind = b"[" * (MAX_DEPTH + 1) + b"]"
    assert truncate_depth(behind) == b"[" * MAX_DEPTH + b"0"
