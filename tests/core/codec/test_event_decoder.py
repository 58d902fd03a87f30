"""A watch stream's bytes become deltas."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.codec.event_decoder import EventDecoder
from aioinformer._core.codec.initial_list import InitialList
from aioinformer._core.codec.line_splitter import LineSplitter
from aioinformer._core.codec.watch_decoder import WatchDecoder
from aioinformer._core.objects.deltas import Bookmark, Delta
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import (
    Expired,
    ProtocolError,
    ServerError,
    ServerFailure,
    UnexpectedObject,
)
from tests.client.recordings import read_recording
from tests.core import strategies
from tests.core.builders import PODS, WIDGETS, EventType, encode, line, pod_body
from tests.core.strategies import JsonStyle

KINDS = {"ADDED": "Added", "MODIFIED": "Updated", "DELETED": "Deleted"}

STREAMS: dict[str, tuple[Resource, int, int]] = {
    # recording: what is watched, changes, bookmarks
    "30-watch-from-rv": (PODS, 5, 2),
    "31-watch-label-selector-leaves": (PODS, 6, 0),
    "33-watch-list-streaming": (PODS, 13, 2),
    "35-watch-rv0-synthetic-added": (PODS, 8, 0),
    "38-watch-too-old-rv": (PODS, 28, 0),
    "39-watch-bookmark-at-timeout": (PODS, 20, 2),
    "51-cr-watch-list-streaming": (WIDGETS, 5, 3),
    "52-cr-watch-while-crd-is-deleted": (WIDGETS, 4, 2),
}

ALL_STREAMS = pytest.mark.parametrize("name", STREAMS)


def decoded(
    pieces: list[bytes], resource: Resource = PODS, *, managed_fields: bool = False
) -> list[Delta | Bookmark]:
    """Decode a stream that arrives in ``pieces``."""
    splitter, decoder = LineSplitter(), EventDecoder(resource, managed_fields=managed_fields)
    return [decoder.decode(each) for piece in pieces for each in splitter.feed(piece)]


def expected(event: dict[str, Any], *, managed_fields: bool = False) -> object:
    """Return the content of a line of JSON, in the form of ``shown``."""
    body = copy.deepcopy(event["object"])
    metadata = body["metadata"]
    if event["type"] == "BOOKMARK":
        return metadata["resourceVersion"]
    if not managed_fields:
        metadata.pop("managedFields", None)
    key = ObjectKey(metadata.get("namespace", ""), metadata["name"])
    return KINDS[event["type"]], key, metadata["uid"], metadata["resourceVersion"], body


def shown(entry: Delta | Bookmark) -> object:
    """Return an entry as plain values; the body as its bytes say."""
    if isinstance(entry, Bookmark):
        return entry.resource_version
    obj = entry.obj
    return entry.kind, obj.key, obj.uid, obj.resource_version, json.loads(obj.raw)


# -- recorded streams ----------------------------------------------------------------------------


@ALL_STREAMS
def test_a_recorded_stream_is_decoded(name: str) -> None:
    resource, changes, bookmarks = STREAMS[name]
    body = read_recording(name).body

    entries = decoded([body], resource)

    assert [shown(entry) for entry in entries] == [
        expected(json.loads(each)) for each in body.splitlines()
    ]
    assert sum(isinstance(entry, Delta) for entry in entries) == changes
    assert sum(isinstance(entry, Bookmark) for entry in entries) == bookmarks


@ALL_STREAMS
def test_a_recorded_stream_keeps_managed_fields_on_request(name: str) -> None:
    resource = STREAMS[name][0]
    body = read_recording(name).body

    entries = decoded([body], resource, managed_fields=True)

    for entry, each in zip(entries, body.splitlines(), strict=True):
        assert shown(entry) == expected(json.loads(each), managed_fields=True)
        if isinstance(entry, Delta):
            assert entry.obj.raw in each, "the very bytes"


@ALL_STREAMS
@given(data=st.data())
def test_a_recorded_stream_is_decoded_the_same_in_any_chunks(
    name: str, data: st.DataObject
) -> None:
    resource = STREAMS[name][0]
    body = read_recording(name).body

    assert decoded(data.draw(strategies.chunks(body)), resource) == decoded([body], resource)


@ALL_STREAMS
def test_a_line_inside_a_chunk_is_decoded_as_a_chunk_of_its_own(name: str) -> None:
    resource, body = STREAMS[name][0], read_recording(name).body
    splitter, decoder = LineSplitter(), EventDecoder(resource)

    entries = [decoder.decode(*each) for each in splitter.find_lines(b"\n" + body)]

    assert entries == decoded([each + b"\n" for each in body.split(b"\n")[:-1]], resource)


@given(data=st.data())
def test_an_incomplete_line_at_the_end_of_a_stream_is_no_event(data: st.DataObject) -> None:
    body = read_recording("30-watch-from-rv").body
    end = data.draw(st.integers(0, len(body)))
    splitter, decoder = LineSplitter(), EventDecoder(PODS)

    entries = [decoder.decode(each) for each in splitter.feed(body[:end])]

    assert entries == decoded([body])[: body[:end].count(b"\n")]
    assert splitter.buffered == end - (body.rfind(b"\n", 0, end) + 1)


@pytest.mark.parametrize(
    ("name", "kind", "code", "words"),
    [
        ("61-watch-expired-rv", Expired, 410, "too old resource version"),
        ("64-watch-rv-compacted", Expired, 410, "too old resource version"),
        ("43-watch-list-storage-cannot-serve-it", ServerFailure, 500, "RequestWatchProgress"),
    ],
)
def test_a_recorded_error_event_is_raised_with_the_servers_status(
    name: str, kind: type[ServerError], code: int, words: str
) -> None:
    body = read_recording(name).body

    with pytest.raises(kind, match=words) as caught:
        decoded([body])
    sent = json.loads(body)["object"]
    status = caught.value.status
    assert (status.code, status.message) == (code, sent["message"])
    assert status.reason == sent.get("reason", "")
    assert caught.value.phase == "watch"


def test_the_events_before_an_error_event_are_decoded() -> None:
    body = read_recording("30-watch-from-rv").body + read_recording("61-watch-expired-rv").body
    splitter, decoder = LineSplitter(), EventDecoder(PODS)
    lines = splitter.feed(body)

    assert len([decoder.decode(each) for each in lines[:-1]]) == 7
    with pytest.raises(Expired):
        decoder.decode(lines[-1])


# -- one event -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("sent", "kind"), list(KINDS.items()))
def test_each_event_type_of_the_server_becomes_a_delta(sent: str, kind: str) -> None:
    delta = EventDecoder(PODS).decode(line(sent, pod_body("web-0", rv="7")))

    assert isinstance(delta, Delta)
    assert (delta.kind, delta.obj.resource_version) == (kind, "7")
    assert delta.obj.raw == encode(pod_body("web-0", rv="7"))
    assert delta.obj.resource is PODS


@given(strategies.objects_full_of_managed_fields(), st.sampled_from(list(KINDS)), st.booleans())
def test_a_decoded_object_equals_the_sent_one(
    body: dict[str, Any], sent: str, managed_fields: bool
) -> None:
    text = line(sent, body) + b"\n"

    entries = decoded([text], managed_fields=managed_fields)

    event = {"type": sent, "object": body}
    assert [shown(entry) for entry in entries] == [expected(event, managed_fields=managed_fields)]


@pytest.mark.parametrize("sent", [*KINDS, "BOOKMARK"])
@given(body=strategies.objects(managed=[{"manager": "x"}]), spelling=strategies.json_styles)
def test_another_spelling_of_the_envelope_is_decoded_the_same(
    sent: str, body: dict[str, Any], spelling: JsonStyle
) -> None:
    """Whitespace, the other key order, further keys: none of this is ruled out by the API."""
    event: dict[str, Any] = {"type": sent, "object": body}
    decoder = EventDecoder(PODS)
    more: list[Any] = [1, {}]

    envelopes: list[dict[str, Any]] = [
        event,
        {"object": body, "type": sent},
        {"extra": {"type": "ERROR"}, **event},
        {**event, "extra": more},
        {"type": sent, "extra": None, "object": body},
    ]
    for envelope in envelopes:
        written = spelling(envelope).replace(b"\n", b" ")
        assert shown(decoder.decode(written)) == expected(event)


@pytest.mark.parametrize("tail", [b"", b"\n"], ids=["without", "with"])
def test_a_line_may_come_with_or_without_its_end(tail: bytes) -> None:
    delta = EventDecoder(PODS).decode(line("ADDED", pod_body("web-0")) + tail)

    assert isinstance(delta, Delta)
    assert delta.obj.raw == encode(pod_body("web-0"))


@pytest.mark.parametrize("text", ["a\u0085b", "a\u2028b\u2029", "\u0085" * 100, "\r", "é😀"])
def test_unicode_line_separators_inside_a_string_are_preserved(text: str) -> None:
    body = pod_body("web-0") | {"note": text}

    (entry,) = decoded([line("MODIFIED", body) + b"\n"])

    assert isinstance(entry, Delta)
    assert entry.obj["note"] == text


def test_an_object_of_several_megabytes_is_decoded() -> None:
    """Go writes ``<`` as six bytes: an object of 1.5 MiB may be a line of 9 MiB."""
    data = "\\u003c" * (1024 * 1024)
    text = b'{"type":"ADDED","object":{"metadata":{"name":"a"},"data":"%s"}}\n' % data.encode()
    pieces = [text[at : at + 65_536] for at in range(0, len(text), 65_536)]

    (entry,) = decoded(pieces)

    assert isinstance(entry, Delta)
    assert entry.obj["data"] == "<" * (1024 * 1024)


def test_an_object_keeps_only_its_own_bytes() -> None:
    text = line("ADDED", pod_body("web-0"))

    delta = EventDecoder(PODS).decode(text)

    assert isinstance(delta, Delta)
    assert type(delta.obj.raw) is bytes
    assert len(delta.obj.raw) < len(text)


def test_a_bookmark_needs_nothing_but_metadata() -> None:
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "42"}}}

    assert EventDecoder(PODS).decode(encode(bookmark)) == Bookmark("42")


def test_a_bookmark_without_a_version_has_an_empty_one() -> None:
    assert EventDecoder(PODS).decode(line("BOOKMARK", {"metadata": {}})) == Bookmark("")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ({"code": 410, "reason": "Expired"}, Expired),
        ({"code": 410, "reason": "Gone"}, Expired),
        ({"code": 410}, Expired),
        ({"code": 500, "reason": "InternalError"}, ServerFailure),
        ({}, ServerFailure),
        (pod_body("web-0"), ServerFailure),
    ],
    ids=["expired", "gone", "code alone", "internal", "empty", "no status"],
)
def test_an_error_event_is_raised_as_the_error_of_its_status(
    status: dict[str, Any], kind: type[ServerError]
) -> None:
    with pytest.raises(kind) as caught:
        EventDecoder(PODS).decode(line("ERROR", status))
    assert caught.value.phase == "watch"


def test_an_error_event_in_another_spelling_is_raised() -> None:
    with pytest.raises(Expired, match="too old"):
        EventDecoder(PODS).decode(
            b'{ "object": {"code": 410, "message": "too old"}, "type": "ERROR" }'
        )


@pytest.mark.parametrize("kind", ["SYNCED", "", "added", "ADDEDX"])
def test_an_unknown_event_type_is_a_protocol_error(kind: str) -> None:
    with pytest.raises(ProtocolError, match="unknown type") as caught:
        EventDecoder(PODS).decode(line(kind, pod_body("web-0")))
    named = repr(kind) if kind.isupper() else f"of {len(kind)} characters"
    assert named in str(caught.value)
    assert caught.value.phase == "watch"


@pytest.mark.parametrize(
    "garbage",
    [
        b"404 page not found",
        b"<html>",
        b"[]",
        b"{}",
        b"null",
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":null}',
        b'{"type":"ADDED","object":{}}',
        b'{"type":"ADDED","object":{"metadata":{"name":7}}}',
        b'{"type":"ADDED","object":{"metadata":{"uid":"u"}}}',
        b'{"type":"ADDED","object":{"metadata":{"name":"a"}}',
        b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}}',
        b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}{}',
        b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}',
        b'{"type":"BOOKMARK","object":{}}',
        b'{"type":"ERROR","object":"boom"}',
        b'{"type":"ERROR","object":{"kind":"Pod","metadata":{"name":"a"}}}',
        b'{"type":7,"object":{"metadata":{"name":"a"}}}',
        b'{"kind":"Status","code":500}',
    ],
)
def test_a_line_that_is_no_event_is_a_protocol_error(garbage: bytes) -> None:
    with pytest.raises(ProtocolError, match=f"a line of {len(garbage)} bytes") as caught:
        EventDecoder(PODS).decode(garbage)
    assert caught.value.phase == "watch"
    assert caught.value.__cause__ is not None


def test_an_error_does_not_quote_the_line() -> None:
    """It may be a Secret's."""
    with pytest.raises(ProtocolError) as caught:
        EventDecoder(PODS).decode(b'{"type":"ADDED","object":{"data":{"password":"hunter2"}}}')
    assert "hunter2" not in str(caught.value)


def test_invalid_utf_8_outside_the_metadata_does_not_stop_the_watch() -> None:
    """One broken object must not keep all the others from arriving; opening it is the error."""
    text = b'{"type":"ADDED","object":{"metadata":{"name":"a"},"data":"\xff"}}'

    delta = EventDecoder(PODS).decode(text)

    assert isinstance(delta, Delta)
    assert delta.obj.name == "a"


def test_the_fast_and_the_slow_path_agree_for_every_type() -> None:
    types: list[EventType] = ["ADDED", "MODIFIED", "DELETED"]
    decoder = EventDecoder(WIDGETS)

    for kind in types:
        fast = line(kind, pod_body("web-0"))
        assert decoder.decode(fast) == decoder.decode(b" " + fast)


@pytest.mark.parametrize("end", [b"\n", b"", b"\r\n", b"\r", b" \n", b" "])
def test_white_space_at_the_end_of_a_line_is_no_part_of_the_object(end: bytes) -> None:
    body = b'{"metadata":{"name":"a"}}'
    found = EventDecoder(PODS).decode(b'{"type":"ADDED","object":' + body + b"}" + end)
    assert isinstance(found, Delta)
    assert found.obj.raw == body


def test_white_space_behind_the_object_is_no_part_of_it() -> None:
    found = EventDecoder(PODS).decode(b'{"type":"ADDED","object":{"metadata":{"name":"a"}} }\n')
    assert isinstance(found, Delta)
    assert found.obj.raw == b'{"metadata":{"name":"a"}}'


def test_an_object_too_deep_to_decode_is_one_all_the_same() -> None:
    """A writer of custom resources must not be able to stop their readers."""
    deep = b"[" * 100_000 + b"]" * 100_000
    raw = b'{"metadata":{"name":"a"},"spec":' + deep + b"}"
    found = EventDecoder(PODS).decode(b'{"type":"ADDED","object":' + raw + b"}\n")
    assert isinstance(found, Delta)
    assert (found.obj.name, found.obj.raw) == ("a", raw)


@pytest.mark.parametrize("kind", [b"null", b"7", b"{}"])
def test_an_object_with_an_invalid_kind_is_a_protocol_error(kind: bytes) -> None:
    raw = b'{"type":"ADDED","object":{"kind":' + kind + b',"metadata":{"name":"a"}}}\n'
    with pytest.raises(ProtocolError, match="is no event"):
        EventDecoder(PODS).decode(raw)


# -- what no server should send ------------------------------------------------------------------


SPELLINGS = [
    '{"kind":"%s","apiVersion":"%s","metadata":{"name":"a","namespace":"web"}}',
    '{"apiVersion":"%s","kind":"%s","metadata":{"name":"a","namespace":"web"}}',
    '{"metadata":{"name":"a","namespace":"web"},"kind":"%s","apiVersion":"%s"}',
    ' {"kind":"%s", "apiVersion":"%s","metadata":{"name":"a","namespace":"web"}}',
]


def typed_line(spelling: str, kind: str, api_version: str, event: str = "MODIFIED") -> bytes:
    types = (api_version, kind) if spelling.startswith('{"api') else (kind, api_version)
    return f'{{"type":"{event}","object":{spelling % types}}}\n'.encode()


@pytest.mark.parametrize("event", ["ADDED", "MODIFIED", "DELETED"])
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("before", SPELLINGS)
def test_an_object_of_another_kind_is_rejected_anywhere_in_a_watch(
    before: str, spelling: str, event: str
) -> None:
    decoder = EventDecoder(PODS)
    assert isinstance(decoder.decode(typed_line(before, "Pod", "v1")), Delta)

    for kind, api_version in (("Service", "v1"), ("Pod", "metrics.k8s.io/v1"), ("Pods", "v1")):
        with pytest.raises(UnexpectedObject, match=f"of another kind: {kind} of {api_version}"):
            decoder.decode(typed_line(spelling, kind, api_version, event))
    assert isinstance(decoder.decode(typed_line(spelling, "Pod", "v1", event)), Delta)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_an_object_in_another_namespace_is_rejected(spelling: str) -> None:
    line = typed_line(spelling, "Pod", "v1")

    assert isinstance(EventDecoder(PODS, namespace="web").decode(line), Delta)
    with pytest.raises(UnexpectedObject, match="in another namespace: web"):
        EventDecoder(PODS, namespace="shop").decode(line)


def test_an_event_of_another_kind_is_ignored_and_the_watch_goes_on() -> None:
    decoder = WatchDecoder(PODS, namespace="web")
    lines = [typed_line(SPELLINGS[0], kind, "v1") for kind in ("Pod", "Service", "Job", "Pod")]
    batch = decoder.feed(b"".join(lines))

    assert [type(entry) for entry in batch.entries] == [Delta, Delta]
    assert (batch.ignored, batch.event_count, batch.error) == (2, 4, None)
    assert "Service" in str(batch.unexpected)


def test_an_initial_list_with_an_object_of_another_kind_is_rejected_as_a_whole() -> None:
    """The list isn't the one that was requested: without these objects it would seem empty."""
    decoder = WatchDecoder(PODS, initial=InitialList(lambda obj: obj))
    batch = decoder.feed(typed_line(SPELLINGS[0], "Service", "v1", "ADDED"))

    assert isinstance(batch.error, UnexpectedObject)
    assert batch.initial_list is None


@pytest.mark.parametrize("kind", ["Pod", "PartialObjectMetadata"])
def test_a_watch_accepts_its_own_kind_and_partial_object_metadata(kind: str) -> None:
    line = f'{{"type":"ADDED","object":{{"kind":"{kind}","metadata":{{"name":"a"}}}}}}\n'

    assert isinstance(EventDecoder(PODS).decode(line.encode()), Delta)


@pytest.mark.parametrize(
    ("annotations", "ends"),
    [
        ('{"k8s.io/initial-events-end":"true"}', True),
        ('{"k8s.io/initial-events-end":"false"}', False),
        ('{"k8s.io/initial-events-end":true}', False),
        ('{"k8s.io/initial-events-end":["true"]}', False),
        ('["k8s.io/initial-events-end"]', False),
        ('"k8s.io/initial-events-end"', False),
        ("null", False),
        ('{"another":1}', False),
    ],
)
def test_only_an_annotation_with_the_string_true_marks_the_end_of_the_initial_list(
    annotations: str, ends: bool
) -> None:
    metadata = f'{{"resourceVersion":"7","annotations":{annotations}}}'
    line = f'{{"type":"BOOKMARK","object":{{"metadata":{metadata}}}}}\n'

    assert EventDecoder(PODS).decode(line.encode()) == Bookmark("7", ends)


def test_an_unknown_event_type_is_shown_in_one_short_line() -> None:
    line = b'{"type":"' + b"X" * 1000 + b'\\u001b[2J\\n","object":{"metadata":{"name":"a"}}}\n'

    with pytest.raises(ProtocolError) as caught:
        EventDecoder(PODS).decode(line)
    assert len(str(caught.value)) < 200
    assert str(caught.value).isprintable()
