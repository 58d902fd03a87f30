"""The decoder of one object: its JSON bytes to a ``KubeObject``.

The metadata pass reads four fields and skips the rest without building it. ``managedFields``, a
third of a typical object and of no use to a reader, is cut out of the bytes.

The items of a built-in resource's list lack the kind and apiVersion that the same objects have in a
watch. The decoder inserts the bytes that a watch sends, so that unchanged objects have equal bytes
however they arrived.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import intern

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder, encode

from aioinformer._core.objects.decode_errors import DECODE_ERRORS
from aioinformer._core.objects.json_depth import decode_nested
from aioinformer._core.objects.kube_object import (
    KubeObject,
    ObjectKey,
    create_packed_object,
    make_struct,
)
from aioinformer._core.objects.object_body import IdentityText
from aioinformer._core.objects.object_key import VersionText
from aioinformer._core.objects.resources import Resource

_MANAGED_FIELDS = b'"managedFields"'
_COMMA, _COLON = b",:"
_METADATA = b'{"metadata":{', b',"metadata":{'
_UNTYPED = _METADATA[0]
"""The beginning of a list's item that has neither kind nor apiVersion."""
_OPENING = len(_METADATA[0]) - 1
_SPACE = b" \t\r\n"


class ObjectMetadata(Struct, rename="camel", gc=False):
    """The metadata that the cache needs, and the part to cut."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: VersionText = ""
    managed_fields: Raw | UnsetType = UNSET


class ObjectEnvelope(Struct, gc=False):
    metadata: ObjectMetadata


class ItemEnvelope(Struct, rename="camel", gc=False):
    metadata: ObjectMetadata
    kind: str = ""
    api_version: str = ""


decode_item = Decoder(ItemEnvelope).decode
"""The metadata pass over an item of a list, with the kind and apiVersion that some items have."""

decode_envelope = Decoder(ObjectEnvelope).decode
"""The metadata pass. Raises ``msgspec.DecodeError`` unless the bytes are exactly one object."""


def decode_object(
    resource: Resource,
    metadata: ObjectMetadata,
    source: bytes,
    start: int,
    end: int,
    *,
    managed_fields: bool,
    type_meta: bytes = b"",
    packed: bool = False,
) -> KubeObject:
    """Return the object whose bytes are ``source[start:end]``, with their ``metadata``.

    The object doesn't refer to ``source``: a view would keep all other objects in the buffer alive.
    ``type_meta`` (``encode_type_meta``) completes an item of a list that begins with its metadata;
    empty to leave it unchanged. ``packed`` leaves uid and version in the bytes (``object_body``).
    """
    if managed_fields or metadata.managed_fields is UNSET:
        raw = source[start:end]
    else:
        value = bytes(metadata.managed_fields)
        raw = _cut_managed_fields(source, start, end, value) or remove_managed_fields(
            source[start:end], value
        )
    if type_meta and raw.startswith(_UNTYPED):
        raw = type_meta + raw[1:]
    # Namespaces repeat in every object, so one string is shared.
    key = ObjectKey(intern(metadata.namespace), metadata.name)
    uid, version = metadata.uid, metadata.resource_version
    if packed:
        return create_packed_object(key, uid, version, raw, resource)
    return make_struct(key, raw, resource, IdentityText(uid, version))  # as ``create_object``


def encode_type_meta(resource: Resource) -> bytes:
    """Return the opening brace, kind and apiVersion, with which objects in a watch begin.

    Empty for a resource without a kind: its objects can't be completed.
    """
    if not resource.kind:
        return b""
    return encode({"kind": resource.kind, "apiVersion": resource.api_version})[:-1] + b","


def _cut_managed_fields(source: bytes, start: int, end: int, value: bytes) -> bytes | None:
    """Return the object without managedFields; ``None`` if they aren't where servers write them.

    The first brace inside the object must be that of its own metadata. Then the first match is the
    right one: inside metadata only labels and annotations have free keys, and their values are
    strings, so that no other match can come before.
    """
    at = source.find(_MANAGED_FIELDS, start, end)
    begin = at + len(_MANAGED_FIELDS) + 1
    # There must be a comma before. Otherwise the quote is an escaped one inside a longer key, or
    # the key is metadata's first one, which no server writes.
    if at < 0 or source[at - 1] != _COMMA or source[begin - 1] != _COLON:
        return None
    opened = source.find(b"{", start + 1, at) - _OPENING
    # If there is no brace in between, or one too near to the start, nothing matches.
    if not (
        opened >= start and source.startswith(_METADATA, opened) and source.startswith(value, begin)
    ):
        return None
    return source[start : at - 1] + source[begin + len(value) : end]


def remove_managed_fields(raw: bytes, value: bytes) -> bytes:
    """Return ``raw`` without the ``metadata.managedFields`` whose value is ``value``.

    A key of that name elsewhere stays, even with the same value. If the right one can't be
    determined, nothing is cut.
    """
    for start, end in _find_managed_fields(raw, value):
        shorter = _remove_member(raw, start, end)
        if not _has_managed_fields(shorter):
            return shorter
    return raw  # the key is spelled with escapes: leave the object unchanged


def _has_managed_fields(raw: bytes) -> bool:
    try:
        return decode_nested(decode_envelope, raw).metadata.managed_fields is not UNSET
    except DECODE_ERRORS:
        return True  # ``raw`` lacks the beginning of a longer number


def _find_managed_fields(raw: bytes, value: bytes) -> Iterator[tuple[int, int]]:
    """Yield the positions of ``"managedFields": value``.

    A quote inside a string is escaped, so text that looks like this key never matches. A longer key
    that ends like it after an escaped quote is excluded.
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
    after = _skip_space(raw, end)
    if raw.startswith(b",", after):
        return raw[:start] + raw[after + 1 :]
    before = len(raw[:start].rstrip(_SPACE))
    if raw.startswith(b",", before - 1):
        return raw[: before - 1] + raw[end:]
    return raw[:start] + raw[end:]
