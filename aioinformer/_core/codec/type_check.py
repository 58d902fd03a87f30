"""The check that an object is of the kind and in the namespace that an informer reads.

A proxy or a broken server may send objects of another resource, which must never be cached. The
decoder of a watch compares kind and apiVersion, the first bytes of an object, together with the
rest of a line's head. Only an unknown head needs the checks of this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder, encode

from aioinformer._core.codec.status_decoder import quote_kind
from aioinformer._core.objects.decode_errors import DECODE_ERRORS
from aioinformer._core.objects.deltas import DeltaKind
from aioinformer._core.objects.json_depth import decode_nested
from aioinformer._core.objects.resources import BUILT_IN, Resource
from aioinformer.errors.texts import one_line

LineHeads: TypeAlias = dict[bytes, tuple[DeltaKind, bytes, int]]
"""The heads of lines by the first letter of the event's type: the kind of the change, the bytes,
and the offset of the object's opening brace."""

LINE_ENDS = b"}}\n", b"}}"

DELTA_KINDS: dict[str, DeltaKind] = {"ADDED": "Added", "MODIFIED": "Updated", "DELETED": "Deleted"}
_METADATA_ONLY = "PartialObjectMetadata", "meta.k8s.io/v1"


def _make_heads(type_meta: bytes) -> LineHeads:
    heads: LineHeads = {}
    for name, kind in DELTA_KINDS.items():
        before = f'{{"type":"{name}","object":'.encode()
        heads[name[:1].encode()] = kind, before + type_meta, len(before)
    return heads


PLAIN_HEADS = _make_heads(b"{")
"""The heads of lines in the server's usual spelling, up to the object."""


def iter_line_heads(resource: Resource) -> Iterator[LineHeads]:
    """Yield the heads of the lines that have objects of ``resource``, in each usual spelling.

    Built-in types begin with the kind, custom resources with the apiVersion.
    """
    for kind, api_version in ((resource.kind, resource.api_version), _METADATA_ONLY):
        members = {"kind": kind, "apiVersion": api_version}
        for ordered in (members, dict(reversed(members.items()))):
            yield _make_heads(encode(ordered)[:-1] + b",")


class _TypeMeta(Struct, rename="camel", gc=False):
    kind: str = ""
    api_version: str = ""


class _ListMeta(_TypeMeta, rename="camel", gc=False):
    items: Raw | UnsetType = UNSET


_decode_type_meta = Decoder(_TypeMeta).decode
_decode_list_meta = Decoder(_ListMeta).decode


def find_other_type(resource: Resource, kind: str, api_version: str) -> str:
    """Return a description of this type if it isn't that of ``resource``, else an empty text.

    An object without a kind or apiVersion is one of the resource that was requested, as the items
    of a list are. Metadata alone is accepted of any resource.
    """
    if kind == _METADATA_ONLY[0] or not resource.kind:
        return ""
    if kind in ("", resource.kind) and api_version in ("", resource.api_version):
        return ""
    expected = f"{resource.kind} of {resource.api_version}"
    shown = _describe_type(kind, api_version)
    hint = ""
    if api_version == resource.api_version and resource not in BUILT_IN:
        hint = "; is the kind= of the Resource right?"
    return f"of another kind: {shown}, where {expected} was expected{hint}"


def _describe_type(kind: str, api_version: str) -> str:
    return f"{quote_kind(kind) or 'no kind'} of {one_line(api_version, 80) or 'no apiVersion'}"


def describe_list(raw: bytes) -> str:
    """Return the description of a list, with which a server answers that ignores ``watch=true``;
    empty if ``raw`` is none.
    """
    try:
        meta = decode_nested(_decode_list_meta, raw)
    except DECODE_ERRORS:
        return ""
    if meta.items is UNSET:
        return ""
    shown = _describe_type(meta.kind, meta.api_version)
    return f"a list came ({shown}): the server, or a proxy before it, ignores watch=true"


def read_other_type(resource: Resource, raw: bytes) -> str:
    """Return the same for ``raw``; raise ``msgspec.DecodeError`` if its type is no text."""
    meta = decode_nested(_decode_type_meta, raw)
    return find_other_type(resource, meta.kind, meta.api_version)


def find_other_namespace(expected: str | None, namespace: str) -> str:
    """Return a description of ``namespace`` if it isn't the expected one, else an empty text."""
    if expected is None or namespace == expected:
        return ""
    return f"in another namespace: {one_line(namespace, 80) or 'none'}"
