"""The parsers that are fuzzed, each with an oracle that knows a second way to read the input.

A parser may reject an input with its named errors and with nothing else. What a parser accepts
must be what the oracle finds. ``json.loads`` is the oracle of JSON, since it has another author and
shares no code with the decoders.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from aioinformer import FieldSelector, KubeObject, LabelSelector
from aioinformer._client.discovery import documents
from aioinformer._client.kubeconfig.files import KubeconfigFiles
from aioinformer._core.codec.initial_list import InitialList
from aioinformer._core.codec.list_decoder import ListDecoder
from aioinformer._core.codec.status_decoder import decode_status
from aioinformer._core.codec.watch_decoder import WatchBatch, WatchDecoder
from aioinformer._core.objects.deltas import Delta
from aioinformer.errors import (
    ConfigurationError,
    InvalidSelector,
    ObjectDecodeError,
    ProtocolError,
)
from aioinformer.errors.texts import MAX_TEXT_LENGTH
from tests.core.builders import WIDGETS

__all__ = ["CORPUS", "TARGETS", "FuzzTarget"]

CORPUS = Path(__file__).parent / "corpus"
"""Inputs that failed once, in a folder for each target."""

WIDGET = {"apiVersion": WIDGETS.api_version, "kind": WIDGETS.kind}
METADATA = {"name": "a", "namespace": "b", "uid": "c", "resourceVersion": "7"}


@dataclass(frozen=True, slots=True)
class FuzzTarget:
    """A parser of hostile bytes."""

    read: Callable[[bytes], object]
    """Parses the bytes, or returns the named error of the parser. Anything else is a finding."""
    check: Callable[[bytes], None]
    """Parses the bytes and compares the result with the oracle's."""
    seeds: tuple[bytes, ...]
    """Inputs that the parser accepts, to begin with."""
    tokens: tuple[bytes, ...]
    """Pieces that lead to other paths through the parser."""
    milliseconds: float | None = 10
    """Milliseconds of CPU that 64 KiB may take; ``None`` if a thread beside the loop parses."""


JSON_TOKENS = (
    *(b'{"}', b"{}", b"[]", b"null", b"\\u0069", b'"items":[', b'"metadata":{', b'"kind":', b"\n"),
    *(b'"managedFields":[{}],', b'"resourceVersion":"9"', b"\r\n", b"\\", b'"', b"\xff", b"[" * 50),
    *(b',"', b"1e999", b"NaN", b"-0", b'"name":"a"', b'"type":"DELETED"', b"\xe2\x80\xa8", b"\x00"),
)


def _pieces(data: bytes) -> Iterator[bytes]:
    """Cut the bytes into pieces whose sizes depend on the bytes."""
    start = 0
    while start < len(data):
        size = 1 + data[start] % 17
        yield data[start : start + size]
        start += size


# -- a watch ----------------------------------------------------------------------------------


def read_watch(data: bytes) -> list[WatchBatch]:
    """Decode a watch that arrives at once. Errors are in the batches."""
    return _decode_watch([data])


_LAYOUT = (
    b'{"type":"ADDED","object":{"kind":"Widget","apiVersion":"example.com/v1","metadata":{'
    b'"name":"a","uid":"u","resourceVersion":"1","managedFields":[{}]},"spec":{}}}\n'
)
"""A line after which a watch that doesn't validate reads lines up to their managed fields."""


def _decode_watch(
    chunks: list[bytes], *, initial: bool = False, validate: bool = True
) -> list[WatchBatch]:
    found = InitialList(lambda obj: obj) if initial else None
    decoder = WatchDecoder(WIDGETS, initial=found, validate=validate)
    batches: list[WatchBatch] = []
    for chunk in chunks:
        batches.append(decoder.feed(chunk))
        if batches[-1].error is not None:
            break
    return batches


def check_watch(data: bytes) -> None:
    """Compare a watch in pieces with the whole, and each line with what ``json.loads`` finds."""
    whole, pieces = read_watch(data), _decode_watch([*_pieces(data)])
    assert _entries(whole) == _entries(pieces)
    assert type(whole[-1].error) is type(pieces[-1].error) if whole and pieces else True
    _decode_watch([*_pieces(data)], initial=True)
    for line in data.split(b"\n"):
        entries = _entries(_decode_watch([line + b"\n"]))
        entries += _entries(_decode_watch([_LAYOUT, line + b"\n"], validate=False))[1:]
        for entry in entries:
            if isinstance(entry, Delta) and (event := _loads(line)) is not None:
                check_object(entry.obj, event["object"])


def _entries(batches: list[WatchBatch]) -> list[object]:
    return [entry for batch in batches for entry in batch.entries]


def check_object(obj: KubeObject, expected: dict[str, Any]) -> None:
    """Compare an object with its JSON, apart from the managed fields, which are cut."""
    metadata = expected["metadata"]
    assert obj.name == metadata["name"]
    assert obj.namespace == (metadata.get("namespace") or "")
    assert obj.resource_version == (metadata.get("resourceVersion") or "")
    try:
        found = obj.to_dict()
    except ObjectDecodeError:
        return  # for example a number that msgspec does not accept; shown where it is opened
    for body in (found, expected):
        body.get("metadata", {}).pop("managedFields", None)
    assert WIDGET | found == WIDGET | expected


def _loads(text: bytes) -> Any:
    """Return the JSON, or ``None`` where Python's reader accepts less than servers may send."""
    try:
        return json.loads(text)
    except (UnicodeDecodeError, RecursionError, ValueError):
        return None


# -- a list -----------------------------------------------------------------------------------


def read_list(data: bytes) -> list[KubeObject] | ProtocolError:
    """Decode a list that arrives at once."""
    return _decode_list([data])


def _decode_list(chunks: list[bytes]) -> list[KubeObject] | ProtocolError:
    decoder, objects = ListDecoder(WIDGETS), list[KubeObject]()
    try:
        for chunk in chunks:
            objects += decoder.feed(chunk)
        return objects + decoder.close()[0]
    except ProtocolError as error:
        return error


def check_list(data: bytes) -> None:
    """Compare a list in pieces with the whole, and the items with what ``json.loads`` finds."""
    whole, pieces = read_list(data), _decode_list([*_pieces(data)])
    assert isinstance(whole, list) == isinstance(pieces, list)
    if isinstance(whole, list):
        assert whole == pieces
        body = _loads(data)
        if body is not None:
            assert len(body["items"] or ()) == len(whole)
            for obj, item in zip(whole, body["items"] or (), strict=True):
                check_object(obj, item)


# -- selectors --------------------------------------------------------------------------------


def read_labels(data: bytes) -> LabelSelector | InvalidSelector:
    """Parse a label selector."""
    try:
        return LabelSelector.parse(data.decode(errors="replace"))
    except InvalidSelector as error:
        return error


def check_labels(data: bytes) -> None:
    """Parse a label selector as the text of its own meaning."""
    found = read_labels(data)
    if isinstance(found, LabelSelector):
        assert LabelSelector.parse(str(found)) == found


def read_fields(data: bytes) -> FieldSelector | InvalidSelector:
    """Parse a field selector."""
    try:
        return FieldSelector.parse(data.decode(errors="replace"))
    except InvalidSelector as error:
        return error


def check_fields(data: bytes) -> None:
    """Parse a field selector as the text of its own meaning."""
    found = read_fields(data)
    if isinstance(found, FieldSelector):
        assert FieldSelector.parse(str(found)) == found


# -- a kubeconfig -----------------------------------------------------------------------------

KUBECONFIG = b"""\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u, namespace: web}}]
clusters: [{name: k, cluster: {server: "https://host:6443", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: t0ken}}]
"""


def read_kubeconfig(data: bytes) -> str | ConfigurationError:
    """Read a kubeconfig file and its current context. Return the server."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "config"
        path.write_bytes(data)
        try:
            files = KubeconfigFiles.read([path])
            return str(files.read_context(files.choose_context(None)).cluster["server"])
        except ConfigurationError as error:
            return error


def check_kubeconfig(data: bytes) -> None:
    """Read a kubeconfig. An error must not quote the token."""
    found = read_kubeconfig(data)
    assert b"t0ken" in data or "t0ken" not in str(found)
    assert isinstance(found, str) or "t0ken" not in str(found)


# -- discovery --------------------------------------------------------------------------------

AGGREGATED = b"""{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"example.com"},
"versions":[{"version":"v1","freshness":"Current","resources":[{"resource":"widgets","scope":
"Namespaced","singularResource":"widget","shortNames":["w"],"categories":["all"],"verbs":["list",
"watch"],"responseKind":{"group":"example.com","version":"v1","kind":"Widget"}}]}]}]}"""
LEGACY = b"""{"kind":"APIResourceList","groupVersion":"example.com/v1","resources":[{"name":
"widgets","singularName":"widget","namespaced":true,"kind":"Widget","verbs":["list","watch"]}]}"""
GROUPS = b"""{"kind":"APIGroupList","groups":[{"name":"example.com","versions":[{"groupVersion":
"example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.com/v1"}}]}"""


def read_discovery(data: bytes) -> list[object]:
    """Read a document as each of the five kinds. Return the results and the errors."""
    readers: tuple[Callable[[], object], ...] = (
        lambda: documents.parse_aggregated_resources(data, "/apis"),
        lambda: documents.parse_legacy_resources(data, "/apis/example.com/v1", "example.com/v1"),
        lambda: [*documents.parse_core_versions(data)],
        lambda: [*documents.parse_legacy_groups(data, "/apis")],
        lambda: [*documents.parse_group_versions(data, "/apis/example.com")],
    )
    return [_or_error(each) for each in readers]


def _or_error(reader: Callable[[], object]) -> object:
    try:
        return reader()
    except ProtocolError as error:
        return error


def check_discovery(data: bytes) -> None:
    """Read a document. A document that is no JSON object is none of any kind."""
    found = read_discovery(data)
    if not isinstance(_loads(data), dict):
        assert all(isinstance(each, ProtocolError) for each in found) or _loads(data) is None


# -- a Status ---------------------------------------------------------------------------------

STATUS = b"""{"kind":"Status","apiVersion":"v1","metadata":{"continue":"t"},"status":"Failure",
"message":"too old","reason":"Expired","details":{"retryAfterSeconds":3,"causes":[]},"code":410}"""


def read_status(data: bytes) -> object:
    """Decode a Status."""
    try:
        return decode_status(data, code=500)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return error


def check_status(data: bytes) -> None:
    """Decode a Status. Its texts are short and cannot forge a line of a log."""
    found = read_status(data)
    if not isinstance(found, Exception):
        for text in (getattr(found, "reason", ""), getattr(found, "message", "")):
            assert len(text) <= MAX_TEXT_LENGTH + 1
            assert text.isprintable()


def _event(kind: str, body: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": body}, separators=(",", ":")).encode() + b"\n"


_OBJECT = WIDGET | {"metadata": METADATA, "spec": {"size": 1, "text": "é\n\u2028"}}
_MANAGED = WIDGET | {"metadata": METADATA | {"managedFields": [{"manager": "m"}]}, "spec": {}}
_MARK = {"k8s.io/initial-events-end": "true"}
WATCH_SEEDS = (
    _event("ADDED", _OBJECT) + _event("MODIFIED", _MANAGED) + _event("DELETED", _OBJECT),
    _event("BOOKMARK", WIDGET | {"metadata": {"resourceVersion": "9", "annotations": _MARK}}),
    _event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "old"}),
)
LIST_SEEDS = tuple(
    json.dumps(
        {"kind": "WidgetList", "metadata": {"resourceVersion": "9", "continue": ""}, "items": items}
    ).encode()
    for items in ([], [_OBJECT], [_OBJECT, _MANAGED, {"metadata": METADATA}])
)
SELECTOR_TOKENS = (
    b" in (",
    b")",
    b",",
    b"!",
    b"!=",
    b"==",
    b"notin",
    b"\\",
    b" ",
    b"/",
    b">",
    b"=",
)

TARGETS: dict[str, FuzzTarget] = {
    "watch": FuzzTarget(read_watch, check_watch, WATCH_SEEDS, JSON_TOKENS),
    # The runtime feeds the head of a list in slices of 16 KiB, each of which is a step of its own.
    "list": FuzzTarget(read_list, check_list, LIST_SEEDS, JSON_TOKENS, milliseconds=40),
    "labels": FuzzTarget(
        read_labels,
        check_labels,
        (b"app=web,tier in (a, b),!canary", b"x/y notin (a),z>3", b"a!=b,c,d==e"),
        SELECTOR_TOKENS,
    ),
    "fields": FuzzTarget(
        read_fields,
        check_fields,
        (rb"metadata.name=a,spec.x!=b\,c", rb"status.phase==Running,a=\=b\\"),
        SELECTOR_TOKENS,
    ),
    "kubeconfig": FuzzTarget(
        read_kubeconfig,
        check_kubeconfig,
        (KUBECONFIG,),
        (
            b"&a ",
            b"*a",
            b"[",
            b"{",
            b"}",
            b": ",
            b"\n- ",
            b"!!python/none ",
            b"null",
            b"\t",
            b"<<: ",
        ),
        milliseconds=None,
    ),
    "discovery": FuzzTarget(
        read_discovery, check_discovery, (AGGREGATED, LEGACY, GROUPS), JSON_TOKENS
    ),
    "status": FuzzTarget(read_status, check_status, (STATUS,), JSON_TOKENS),
}
"""The targets by name."""
