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

from aioinformer._core.objects import KubeObject, ObjectKey
from aioinformer._core.resources import Resource

__all__ = ["UNREADABLE", "Body", "Metadata", "build", "read_body", "without_managed_fields"]

UNREADABLE = (DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that are no JSON of the form expected. A thousand arrays inside
each other are a ``RecursionError``."""

_MANAGED = b'"managedFields"'
_COMPACT = _MANAGED + b":"
_METADATA = b'"metadata":{'
_SPACE = b" \t\r\n"
_COMMA = ord(",")
_BEFORE_KEY = b"{,"  # anything else and the quote is an escaped one, inside a longer key


class Metadata(Struct, gc=False):
    """What the cache needs of an object, and the part to cut."""

    name: str
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 - the key in the JSON
    managedFields: Raw | UnsetType = UNSET  # noqa: N815 - the key in the JSON


class Body(Struct, gc=False):
    """An object, with everything but its metadata skipped."""

    metadata: Metadata


read_body = Decoder(Body).decode
"""The metadata pass; raises ``msgspec.DecodeError`` unless it is given exactly one object."""


def build(
    resource: Resource, metadata: Metadata, source: bytes, start: int, end: int, *, keep: bool
) -> KubeObject:
    """The object whose bytes are ``source[start:end]``.

    Args:
        resource: through which it was read.
        metadata: what the metadata pass found in those bytes.
        source: a line or a stretch of a list. Nothing of the result refers to it: a view kept
            for one object would keep every other one in the buffer alive.
        start: offset of the object's opening brace.
        end: offset behind its closing brace.
        keep: whether managedFields stay.
    """
    raw = source[start:end]
    if not keep and metadata.managedFields is not UNSET:
        raw = without_managed_fields(raw, bytes(metadata.managedFields))
    # Namespaces repeat in every object; one string each is enough.
    key = ObjectKey(intern(metadata.namespace), metadata.name)
    return KubeObject(key, metadata.uid, metadata.resourceVersion, raw, resource)


def without_managed_fields(raw: bytes, value: bytes) -> bytes:
    """``raw`` without the ``metadata.managedFields`` whose value is ``value``.

    A key of that name elsewhere stays, with the same value even; if the right one can't be
    told, nothing is cut.
    """
    start = raw.find(_COMPACT)
    begin = start + len(_COMPACT)
    if start > 0 and raw.startswith(value, begin) and _metadata_leads(raw, start):
        end = begin + len(value)
        # As servers write it there is no space, and seldom no comma behind.
        return raw[:start] + raw[end + 1 :] if raw[end] == _COMMA else _cut(raw, start, end)
    for start, end in _occurrences(raw, value):
        shorter = _cut(raw, start, end)
        if read_body(shorter).metadata.managedFields is UNSET:
            return shorter
    return raw  # an escaped spelling of the key: leave the object as it is


def _metadata_leads(raw: bytes, managed_at: int) -> bool:
    """Whether the first brace inside the object is the one of its own metadata.

    Then the first match is the right one: inside metadata only labels and annotations have free
    keys, and their values are strings, so that no other match can come before.
    """
    opened = raw.find(b"{", 1)
    metadata_at = opened + 1 - len(_METADATA)
    return (
        opened < managed_at
        and raw.startswith(_METADATA, metadata_at)
        and raw[metadata_at - 1] in _BEFORE_KEY
        and raw[managed_at - 1] in _BEFORE_KEY
    )


def _occurrences(raw: bytes, value: bytes) -> Iterator[tuple[int, int]]:
    """Where ``"managedFields": value`` stands. A quote inside a string is escaped, so text that
    looks like this key never matches; a key that ends in it after an escaped quote is told apart.
    """
    at = raw.find(_MANAGED)
    while at >= 0:
        colon = _skip_space(raw, at + len(_MANAGED))
        begin = _skip_space(raw, colon + 1)
        whole = not raw.startswith(b"\\", at - 1)  # not the end of a longer key
        if whole and raw.startswith(b":", colon) and raw.startswith(value, begin):
            yield at, begin + len(value)
        at = raw.find(_MANAGED, at + 1)


def _skip_space(raw: bytes, at: int) -> int:
    while at < len(raw) and raw[at] in _SPACE:
        at += 1
    return at


def _cut(raw: bytes, start: int, end: int) -> bytes:
    """``raw`` without the member at ``start:end`` and without one comma beside it."""
    after = _skip_space(raw, end)
    if raw.startswith(b",", after):
        return raw[:start] + raw[after + 1 :]
    before = len(raw[:start].rstrip(_SPACE))
    if raw.startswith(b",", before - 1):
        return raw[: before - 1] + raw[end:]
    return raw[:start] + raw[end:]
