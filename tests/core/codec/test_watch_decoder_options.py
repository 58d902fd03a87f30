"""The options of a watch's decoder, and the events that it ignores."""

from __future__ import annotations

from typing import Any

from aioinformer._core.codec.initial_list import InitialList
from aioinformer._core.codec.watch_decoder import WatchDecoder
from aioinformer._core.objects.deltas import Bookmark, Delta
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.stored import ExcludedObject
from aioinformer.errors import LineTooLong, ProtocolError, UnexpectedObject
from tests.core.builders import PODS, encode


def event(kind: str = "ADDED", *, of: str = "Pod", namespace: str = "web", **members: Any) -> bytes:
    """Return a line as a server writes those of built-in resources."""
    metadata = {
        "name": "web-0",
        "namespace": namespace,
        "uid": "u",
        "resourceVersion": "7",
        "managedFields": [{"manager": "x"}],
    }
    body = {"kind": of, "apiVersion": "v1", "metadata": metadata, **members}
    return encode({"type": kind, "object": body}) + b"\n"


BOOKMARK = encode(
    {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "9"}}}
)
INVALID_TAIL = event(spec={"a": 1}).replace(b'{"a":1}', b'{"a":!}')
"""An event that is no JSON behind its metadata."""


def read(decoder: WatchDecoder, *lines: bytes) -> list[KubeObject]:
    batch = decoder.feed(b"".join(lines))
    assert batch.error is None
    return [entry.obj for entry in batch.entries if isinstance(entry, Delta)]


def test_managed_fields_are_kept_on_request_alone() -> None:
    (without,) = read(WatchDecoder(PODS), event())
    (kept,) = read(WatchDecoder(PODS, managed_fields=True), event())
    assert b"managedFields" not in without.raw
    assert b"managedFields" in kept.raw


def test_a_converter_receives_each_object_and_no_bookmark() -> None:
    decoder = WatchDecoder(PODS, converter=lambda obj: ExcludedObject.of(obj))
    batch = decoder.feed(event() + event("DELETED") + BOOKMARK + b"\n")
    added, deleted, bookmark = batch.entries
    assert isinstance(added, Delta)
    assert isinstance(deleted, Delta)
    assert (added.kind, deleted.kind, bookmark) == ("Added", "Deleted", Bookmark("9"))
    assert type(added.obj) is type(deleted.obj) is ExcludedObject


def test_the_objects_of_an_initial_list_are_converted_too() -> None:
    decoder = WatchDecoder(
        PODS, initial=InitialList(lambda obj: obj), converter=lambda obj: ExcludedObject.of(obj)
    )
    mark = {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}
    end = encode({"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": mark}})
    batch = decoder.feed(event() + end + b"\n")
    assert batch.initial_list is not None
    assert [type(obj) for obj in batch.initial_list.objects()] == [ExcludedObject]


def test_a_body_that_no_converter_reads_is_checked_unless_the_check_is_switched_off() -> None:
    unchecked = WatchDecoder(PODS, validate=False)
    first = event(spec={"a": 1})
    assert len(read(unchecked, first, INVALID_TAIL)) == 2
    for decoder in (
        WatchDecoder(PODS),
        WatchDecoder(PODS, validate=False, converter=lambda obj: obj),
    ):
        batch = decoder.feed(first + INVALID_TAIL)
        assert len(batch.entries) == 1
        assert isinstance(batch.error, ProtocolError)


def test_the_first_of_several_unexpected_objects_is_reported() -> None:
    batch = WatchDecoder(PODS).feed(event(of="Service") + event() + event(of="Job"))
    assert (batch.ignored, len(batch.entries), batch.error) == (2, 1, None)
    assert isinstance(batch.unexpected, UnexpectedObject)
    assert "Service" in str(batch.unexpected)
    assert "Job" not in str(batch.unexpected)


def test_an_object_of_another_namespace_is_unexpected() -> None:
    decoder = WatchDecoder(PODS, namespace="web")
    batch = decoder.feed(event(namespace="shop") + event())
    assert (batch.ignored, len(batch.entries)) == (1, 1)
    assert "shop" in str(batch.unexpected)


def test_an_event_is_as_long_as_the_line_cap_allows() -> None:
    line = event()
    assert len(read(WatchDecoder(PODS, line_cap=len(line)), line)) == 1
    batch = WatchDecoder(PODS, line_cap=len(line) - 2).feed(line[:-1])
    assert isinstance(batch.error, LineTooLong)
