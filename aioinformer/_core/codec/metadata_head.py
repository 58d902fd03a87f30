"""The metadata of a changed object from the beginning of its line, without a pass over the rest.

API servers write the metadata of a built-in resource before its spec, and managedFields as the last
member of metadata. Everything that the cache needs stands before managedFields then, and the object
without managedFields consists of the bytes before and after them. So only a fifth of the bytes of a
pod is read. Custom resources are written in alphabetical order and never have this layout.

Valid JSON can't be mistaken for another layout: inside of a string each quote is escaped, so
``,"managedFields":[{`` is a member; the bytes before it, from metadata's brace on, are complete
with one more brace, so this member is metadata's own; and no managedFields contain an array, so the
first bracket behind their beginning closes them, unless it is in a string. The name of the next
member of the object must follow, whose quotes no string contains unescaped.
"""

from __future__ import annotations

import re

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from aioinformer._core.objects.decode_errors import DECODE_ERRORS
from aioinformer._core.objects.object_key import VersionText

METADATA = b'"metadata":'
MANAGED_FIELDS = b',"managedFields":[{'
"""The end of what is read."""
BRACKET = b"]"
"""The end of managedFields."""

_BEFORE_VALUE = len(MANAGED_FIELDS) - len("[{")
_END = re.compile(rb'\]\},"[A-Za-z]+":')


class HeadMetadata(Struct, rename="camel", gc=False):
    """The metadata that the cache needs. uid and version may stand behind managedFields."""

    name: str
    uid: str
    resource_version: VersionText
    namespace: str = ""


decode_head = Decoder(HeadMetadata).decode
"""Decode metadata up to its managedFields, with a closing brace. Raises ``msgspec.DecodeError``
unless the bytes are exactly one object with a name, a uid and a version."""


def find_end(line: bytes, start: int, managed_fields: Raw | UnsetType) -> bytes:
    """Return the end of metadata and the name of the next member: ``]},"spec":`` for a pod.

    ``start`` is the offset behind kind and apiVersion, ``managed_fields`` the value that a pass
    over the whole line has found. The result is empty if the line has another layout.
    """
    cut = line.find(MANAGED_FIELDS, start)
    end = _END.match(line, line.find(BRACKET, cut)) if cut > 0 else None
    if end is None or managed_fields is UNSET or not line.startswith(METADATA, start):
        return b""
    if line[cut + _BEFORE_VALUE : end.start() + 1] != bytes(managed_fields):
        return b""
    try:
        decode_head(line[start + len(METADATA) : cut] + b"}")
    except DECODE_ERRORS:
        return b""
    return end[0]
