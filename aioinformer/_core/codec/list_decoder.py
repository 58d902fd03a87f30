"""The decoder of a list: bytes to objects, one by one, as the bytes arrive.

The body is never held whole: a list from the server's cache ignores the page size, and 100,000 pods
are 300 MB. The end of the first item is found by counting braces. The bytes between that item and
the next one are this server's separator, and the following items are cut where the separator occurs
again. The JSON decoder has the last word: bytes that decode as one object without a rest are
exactly one item, even if the separator also occurs inside it. If an item misleads the cutting
several times, its braces are counted too, so that an object full of separators costs time in
proportion to its size.

Keys may come in any order: custom resources have ``items`` before ``metadata`` (recording 50). A
list may also be pretty-printed (recording 44).
"""

from __future__ import annotations

import re

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from aioinformer._core.codec.object_decoder import (
    DECODE_ERRORS,
    ObjectMetadata,
    decode_envelope,
    decode_object,
    encode_type_meta,
)
from aioinformer._core.codec.status_decoder import one_line
from aioinformer._core.objects.json_depth import decode_nested
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.resources import BUILT_IN, Resource
from aioinformer.errors import ProtocolError

__all__ = ["ITEM_CAP", "ListDecoder", "ListEnvelope"]

ITEM_CAP = 64 * 1024 * 1024
"""The longest item in bytes; the same as the cap on the line of a watch, for the same reason. An
item that never ends must not fill the memory."""

MAX_FALSE_SPLITS = 4
"""Cuts tried on one item before its braces are counted. Nested objects that begin as items do are
rare."""
MAX_UNSPLIT_BYTES = 256 * 1024
"""Bytes of an item after which its braces are counted although no cut was found: the next item may
not begin as the others do, and the buffer must not grow to hold the rest of the list. Counting in
so many bytes takes about 5 ms, in one step."""
HEAD_CAP = 1024 * 1024
"""The most bytes before the items of a list, and after them. A real list has some hundred."""
OPENING_BYTES = 12
"""Bytes of the next item that belong to the separator: ``{"metadata":`` or ``{"apiVersion``."""

_ITEMS = re.compile(rb'"items"\s*:\s*\[')
_SEPARATOR = re.compile(rb"[\s,]*")
_OUTSIDE_STRING = re.compile(rb'"[^"\\]*"|["{}]')  # a string without escapes is one match
_INSIDE_STRING = re.compile(rb'[\\"]')


class _ListMetadata(Struct, rename={"continue_token": "continue"}):
    resourceVersion: str = ""  # noqa: N815 - the key in the JSON
    continue_token: str = ""
    remainingItemCount: int | None = None  # noqa: N815 - the key in the JSON


class ListEnvelope(Struct):
    """A list without its items."""

    metadata: _ListMetadata
    kind: str = ""
    items: list[Raw] | UnsetType | None = UNSET

    @property
    def resource_version(self) -> str:
        """The version of the state that the list shows; the same on every page."""
        return self.metadata.resourceVersion

    @property
    def continue_token(self) -> str:
        """The token for the next page; empty on the last page."""
        return self.metadata.continue_token

    @property
    def remaining(self) -> int | None:
        """The number of items on later pages, if the server sends it."""
        return self.metadata.remainingItemCount


class _ListHead(Struct):
    """A list up to its items, as a check that the items aren't a nested object's."""

    items: list[Raw]


_decode_envelope = Decoder(ListEnvelope).decode
_decode_head = Decoder(_ListHead).decode


class ListDecoder:
    """A decoder of one response to a list request."""

    def __init__(
        self, resource: Resource, *, managed_fields: bool = False, cap: int = ITEM_CAP
    ) -> None:
        """Create a decoder.

        Args:
            resource: the resource that is listed.
            managed_fields: True keeps ``metadata.managedFields`` in the objects.
            cap: the longest item, in bytes, that is accepted.
        """
        self._resource = resource
        self._cap = cap
        self._managed_fields = managed_fields
        self._type_meta = encode_type_meta(resource)
        self._buffer = b""
        self._offset = 0  # of the current item in the buffer
        self._head = b""
        self._in_items = False
        self._separator = b""
        self._scanner: _BraceScanner | None = None
        self.count = 0
        """The number of items decoded so far."""

    def feed(self, chunk: bytes) -> list[KubeObject]:
        """Return the objects that ``chunk`` completes. ``close`` returns the last one of the list.

        Raises:
            ProtocolError: the bytes are not a list, or an item is longer than the cap.
        """
        self._buffer += chunk
        if not self._head:
            self._find_items()
        objects = self._take_items(final=False) if self._in_items else []
        self._check_size()
        return objects

    def close(self) -> tuple[list[KubeObject], ListEnvelope]:
        """End the decoding. Return the remaining objects, and the list without its items.

        Raises:
            ProtocolError: the response ended in the middle, or is not a list.
        """
        rest = self._take_items(final=True) if self._in_items else []
        if self._in_items:
            raise self._protocol_error("the response broke off")
        try:
            frame = _decode_envelope(self._head + self._buffer)
        except DECODE_ERRORS as error:
            raise self._protocol_error(str(error)) from error
        kind = one_line(frame.kind, 80)
        if frame.items is UNSET or frame.kind == "Table":
            raise self._protocol_error(f"the response is a {kind or 'JSON object'} without items")
        if self._resource in BUILT_IN and frame.kind not in self._list_kinds:
            raise self._protocol_error(f"the response is a {kind}, not a {self._resource.kind}List")
        return rest, frame

    @property
    def _list_kinds(self) -> tuple[str, ...]:
        """The allowed kinds of a built-in resource's list. A custom resource's may be anything."""
        return "", "List", f"{self._resource.kind}List", "PartialObjectMetadataList"

    def _find_items(self) -> None:
        """Look for the list's own ``items``. The bytes up to them become the head."""
        for match in _ITEMS.finditer(self._buffer):
            head = self._buffer[: match.end()]
            try:
                _decode_head(head + b"]}")
            except DECODE_ERRORS:
                continue  # the items of a nested object
            self._head, self._buffer = head, self._buffer[match.end() :]
            self._in_items = True
            return

    def _check_size(self) -> None:
        """Raise if the undecoded bytes are more than any real list has at this place."""
        held = len(self._buffer)
        if self._in_items and held > self._cap:
            raise self._protocol_error(f"item {self.count + 1} is longer than {self._cap} bytes")
        if not self._in_items and held > HEAD_CAP:
            after = f"there are more than {HEAD_CAP} bytes after its items"
            before = f"there are no items in its first {HEAD_CAP} bytes"
            raise self._protocol_error(after if self._head else before)

    def _take_items(self, *, final: bool) -> list[KubeObject]:
        objects: list[KubeObject] = []
        while self._seek_item():
            item = self._split_item() or self._scan_item(final=final)
            if item is None:
                break
            end, metadata = item
            objects.append(
                decode_object(
                    self._resource,
                    metadata,
                    self._buffer,
                    self._offset,
                    end,
                    managed_fields=self._managed_fields,
                    type_meta=self._type_meta,
                )
            )
            self._offset = end
        self.count += len(objects)
        self._buffer = self._buffer[self._offset :]
        self._offset = 0
        return objects

    def _seek_item(self) -> bool:
        """Go to the next item. Return True if its first byte has arrived."""
        self._offset = _skip_separator(self._buffer, self._offset)
        first = self._buffer[self._offset : self._offset + 1]
        if first == b"]":
            self._in_items = False
        elif first not in (b"{", b""):
            raise self._protocol_error(f"an item begins with {first!r}")
        return first == b"{"

    def _split_item(self) -> tuple[int, ObjectMetadata] | None:
        """Return the end of the current item at the next separator, if the decoder accepts it."""
        if not self._separator or self._scanner:
            return None
        end = self._offset
        for _ in range(MAX_FALSE_SPLITS):
            end = self._buffer.find(self._separator, end) + 1
            if not end:
                return None  # the separator may not have arrived yet
            try:
                return end, decode_envelope(memoryview(self._buffer)[self._offset : end]).metadata
            except DECODE_ERRORS:
                continue
        self._scanner = _BraceScanner()
        return None

    def _scan_item(self, *, final: bool) -> tuple[int, ObjectMetadata] | None:
        """Return the end of the current item by counting braces, where cutting isn't possible."""
        if self._scanner is None:
            if (
                self._separator
                and not final
                and len(self._buffer) - self._offset < MAX_UNSPLIT_BYTES
            ):
                return None
            self._scanner = _BraceScanner()
        end = self._scanner.find_end(self._buffer, self._offset)
        if end is None:
            return None
        self._scanner = None
        try:
            metadata = decode_nested(
                decode_envelope, memoryview(self._buffer)[self._offset : end]
            ).metadata
        except DECODE_ERRORS as error:
            raise self._protocol_error(str(error)) from error
        self._remember_separator(end)
        return end, metadata

    def _remember_separator(self, end: int) -> None:
        """Remember the bytes between this item and the next one, if they have arrived."""
        begin = _skip_separator(self._buffer, end)
        opening = self._buffer[begin : begin + OPENING_BYTES]
        if len(opening) == OPENING_BYTES and opening.startswith(b"{"):
            self._separator = self._buffer[end - 1 : begin] + opening

    def _protocol_error(self, why: str) -> ProtocolError:
        return ProtocolError(
            f"the list of {self._resource} is malformed after {self.count} items: {why}",
            phase="list",
        )

    def __repr__(self) -> str:
        return f"<ListDecoder {self._resource} items={self.count} held={len(self._buffer)} B>"


def _skip_separator(buffer: bytes, at: int) -> int:
    found = _SEPARATOR.match(buffer, at)
    return found.end() if found else at


class _BraceScanner:
    """A search for the closing brace of one item, which continues when more bytes have arrived."""

    def __init__(self) -> None:
        self._scanned = 0
        self._depth = 0
        self._in_string = False

    def find_end(self, buffer: bytes, begin: int) -> int | None:
        """Return the offset after the item that begins at ``begin``, if its end has arrived."""
        at = begin + self._scanned
        while match := (_INSIDE_STRING if self._in_string else _OUTSIDE_STRING).search(buffer, at):
            at = match.end()
            token = match[0]
            if token == b"\\":
                if at == len(buffer):  # the escaped character has yet to arrive
                    at -= 1
                    break
                at += 1
            elif token == b'"':
                self._in_string = not self._in_string
            elif token in (b"{", b"}"):
                self._depth += 1 if token == b"{" else -1
                if not self._depth:
                    return at
        else:
            at = len(buffer)
        self._scanned = at - begin
        return None
