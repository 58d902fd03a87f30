"""One object's JSON bytes become a ``KubeObject``: the metadata pass and the managedFields cut.

Both wires, watch and list, end here, so that an object looks the same however it came. The
metadata pass reads four fields and skips over the rest without building it; ``managedFields``,
a third of a typical object and of no use to a reader, is cut out of the bytes. Finding where an
object begins and ends is left to ``wire`` and ``list_wire``.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import intern

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType
from msgspec.json import Decoder

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource

__all__ = [
    "DECODE_ERRORS",
    "ObjectEnvelope",
    "ObjectMetadata",
    "decode_envelope",
    "decode_object",
    "remove_managed_fields",
]

DECODE_ERRORS = (DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that are no JSON of the form expected. A thousand arrays inside
each other are a ``RecursionError``."""

_MANAGED_FIELDS = b'"managedFields"'
_COMMA, _COLON = b",:"
_METADATA = b'{"metadata":{', b',"metadata":{'
_OPENING = len(_METADATA[0]) - 1
"""Where in these metadata's own brace is."""
_SPACE = b" \t\r\n"


class ObjectMetadata(Struct, gc=False):
    """What the cache needs of an object, and the part to cut."""

    name: str
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 - the key in the JSON
    managedFields: Raw | UnsetType = UNSET  # noqa: N815 - the key in the JSON


class ObjectEnvelope(Struct, gc=False):
    """An object, with everything but its metadata skipped."""

    metadata: ObjectMetadata


decode_envelope = Decoder(ObjectEnvelope).decode
"""The metadata pass; raises ``msgspec.DecodeError`` unless it is given exactly one object."""


def decode_object(
    resource: Resource,
    metadata: ObjectMetadata,
    source: bytes,
    start: int,
    end: int,
    *,
    managed_fields: bool,
) -> KubeObject:
    """The object whose bytes are ``source[start:end]``.

    Args:
        resource: through which it was read.
        metadata: what the metadata pass found in those bytes.
        source: a line or a stretch of a list. Nothing of the result refers to it: a view kept
            for one object would keep every other one in the buffer alive.
        start: offset of the object's opening brace.
        end: offset behind its closing brace.
        managed_fields: whether managedFields stay.
    """
    if managed_fields or metadata.managedFields is UNSET:
        raw = source[start:end]
    else:
        value = bytes(metadata.managedFields)
        raw = _cut_managed_fields(source, start, end, value) or remove_managed_fields(
            source[start:end], value
        )
    # Namespaces repeat in every object; one string each is enough.
    key = ObjectKey(intern(metadata.namespace), metadata.name)
    return KubeObject(key, metadata.uid, metadata.resourceVersion, raw, resource)


def _cut_managed_fields(source: bytes, start: int, end: int, value: bytes) -> bytes | None:
    """The object without its managedFields, if they stand where servers write them.

    The first brace inside the object must be the one of its own metadata. Then the first match is
    the right one: inside metadata only labels and annotations have free keys, and their values
    are strings, so that no other match can come before.
    """
    at = source.find(_MANAGED_FIELDS, start, end)
    begin = at + len(_MANAGED_FIELDS) + 1
    # A comma before: else the quote is an escaped one, inside a longer key, or it is metadata's
    # first key, which no server writes.
    if at < 0 or source[at - 1] != _COMMA or source[begin - 1] != _COLON:
        return None
    opened = source.find(b"{", start + 1, at) - _OPENING
    # If there is no brace between, or one too near to the start, nothing matches.
    if not (
        opened >= start and source.startswith(_METADATA, opened) and source.startswith(value, begin)
    ):
        return None
    return source[start : at - 1] + source[begin + len(value) : end]


def remove_managed_fields(raw: bytes, value: bytes) -> bytes:
    """``raw`` without the ``metadata.managedFields`` whose value is ``value``.

    A key of that name elsewhere stays, with the same value even; if the right one can't be
    told, nothing is cut.
    """
    for start, end in _find_managed_fields(raw, value):
        shorter = _remove_member(raw, start, end)
        if decode_envelope(shorter).metadata.managedFields is UNSET:
            return shorter
    return raw  # an escaped spelling of the key: leave the object as it is


def _find_managed_fields(raw: bytes, value: bytes) -> Iterator[tuple[int, int]]:
    """Where ``"managedFields": value`` stands. A quote inside a string is escaped, so text that
    looks like this key never matches; a key that ends in it after an escaped quote is told apart.
    """
    at = raw.find(_MANAGED_FIELDS)
    while at >= 0:
        colon = _skip_space(raw, at + len(_MANAGED_FIELDS))
        begin = _skip_space(raw, colon + 1)
        whole = not raw.startswith(b"\\", at - 1)  # not the end of a longer key
        if whole and raw.startswith(b":", colon) and raw.startswith(value, begin):
            yield at, begin + len(value)
        at = raw.find(_MANAGED_FIELDS, at + 1)


def _skip_space(raw: bytes, at: int) -> int:
    while at < len(raw) and raw[at] in _SPACE:
        at += 1
    return at


def _remove_member(raw: bytes, start: int, end: int) -> bytes:
    """``raw`` without the member at ``start:end`` and without one comma beside it."""
    after = _skip_space(raw, end)
    if raw.startswith(b",", after):
        return raw[:start] + raw[after + 1 :]
    before = len(raw[:start].rstrip(_SPACE))
    if raw.startswith(b",", before - 1):
        return raw[: before - 1] + raw[end:]
    return raw[:start] + raw[end:]
