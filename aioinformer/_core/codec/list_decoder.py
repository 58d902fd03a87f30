"""The decoder of a list: bytes to objects, one by one, as the bytes arrive.

The body is never held whole: a list from the server's cache ignores the page size, and 100,000 pods
are 300 MB. The end of the first item is found by counting braces. The bytes between that item and
the next one are this server's separator, and the following items are cut where the separator occurs
again. The JSON decoder has the last word: bytes that decode as one object without a rest are
exactly one item. If an item misleads the cutting several times, its braces are counted too, so that
an object full of separators costs time in proportion to its size.

Keys may come in any order: custom resources have ``items`` before ``metadata``. A list may also be
pretty-printed. A list that has the key ``items`` twice is rejected: JSON parsers disagree about the
meaning, and a wrong guess would empty the cache.
"""

from __future__ import annotations

import re
from sys import maxsize
from typing import TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from aioinformer._core.codec.json_scanner import BraceScanner, ItemsScanner
from aioinformer._core.codec.object_decoder import (
    ItemEnvelope,
    ObjectMetadata,
    decode_item,
    decode_object,
    encode_type_meta,
)
from aioinformer._core.codec.status_decoder import quote_kind
from aioinformer._core.codec.type_check import find_other_namespace, find_other_type
from aioinformer._core.objects.decode_errors import DECODE_ERRORS, discard_input
from aioinformer._core.objects.json_depth import decode_nested
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.object_key import Admit, ObjectFilter, VersionText
from aioinformer._core.objects.resources import BUILT_IN, Resource
from aioinformer._core.quantities import quantity
from aioinformer.errors import ProtocolError, UnexpectedObject

ITEM_CAP = 64 * 1024 * 1024
"""The longest item in bytes, as ``LINE_CAP``. An item that never ends must not fill the memory. The
braces of a long item are counted in steps, but its decoding is one step."""

MAX_FALSE_SPLITS = 4
"""Cuts tried on one item before its braces are counted. Few nested objects begin as items do."""
MAX_UNSPLIT_BYTES = 64 * 1024
"""Bytes of an item after which its braces are counted although no cut was found: the next item may
not begin as the others do, and the buffer must not grow to hold the rest of the list. Counting in
so many bytes takes about 1 ms in one step, and 8 ms if they are nothing but braces."""
SCAN_BYTES = 16 * 1024
"""Bytes to pass to ``feed`` at once while every brace is counted, for at most 2 ms a call."""
PART_BYTES = 16 * 1024
"""The least size of the pieces in which a long item is collected. Pieces of a few bytes would take
many times as much memory as the item."""
HEAD_CAP = 1024 * 1024
"""The most bytes before the items of a list, and after them. A real list has some hundred."""
OPENING_BYTES = 12
"""Bytes of the next item that belong to the separator: ``{"metadata":`` or ``{"apiVersion``."""

_SEPARATOR = re.compile(rb"[\s,]*")


class _ListMetadata(
    Struct,
    rename={
        "resource_version": "resourceVersion",
        "continue_token": "continue",
        "remaining": "remainingItemCount",
    },
):
    resource_version: VersionText = ""
    continue_token: str = ""
    remaining: int | None = None


class ListEnvelope(Struct):
    """A list without its items."""

    metadata: _ListMetadata
    kind: str = ""
    items: list[Raw] | UnsetType | None = UNSET

    @property
    def resource_version(self) -> str:
        """The version of the state that the list shows; the same on every page."""
        return self.metadata.resource_version

    @property
    def continue_token(self) -> str:
        """The token for the next page; empty on the last page."""
        return self.metadata.continue_token

    @property
    def remaining(self) -> int | None:
        """The number of items on later pages, if the server sends it."""
        return self.metadata.remaining


_Item: TypeAlias = tuple[ObjectMetadata, bytes, int, int]
"""An item: its metadata, and the bytes that contain it from one offset to another."""

_decode_envelope = Decoder(ListEnvelope).decode


class ListDecoder:
    def __init__(
        self,
        resource: Resource,
        *,
        managed_fields: bool = False,
        namespace: str | None = None,
        cap: int = ITEM_CAP,
        filter: ObjectFilter | None = None,
    ) -> None:
        """Create a decoder.

        ``namespace`` is the listed one, ``None`` for all; ``cap`` the longest item in bytes;
        ``filter`` excludes items.
        """
        self._filter = filter
        self._admit: Admit | None = None if filter is None else filter.admits
        """``None`` as well if the list proves that the server has selected its items."""
        self.excluded = 0
        self._resource = resource
        self._cap = cap
        self._managed_fields = managed_fields
        self._namespace = namespace
        self._type_meta = encode_type_meta(resource)
        self._buffer = b""
        self._offset = 0  # of the current item in the buffer
        self._head = b""
        self._in_items = False
        self._separator = b""
        self._at_item = False
        """True if the current item was found by the separator before it, so that it is there."""
        self._items_scanner = ItemsScanner()
        self._scanner: BraceScanner | None = None
        """Counts the braces of a long item; ``None`` while items are cut at the separator."""
        self._scan_at = 0
        """The offset in the buffer up to which ``_scanner`` has counted."""
        self._parts: list[bytes] = []
        self._parts_size = 0
        self.count = 0
        """The number of items so far, with the excluded ones."""

    def feed(self, chunk: bytes) -> list[KubeObject]:
        """Return the objects that ``chunk`` completes. ``close`` returns the last one of the list.

        Raises:
            ProtocolError: the bytes are not a list, or an item is longer than the cap.
        """
        if self._scanner is None:
            self._buffer += chunk
        else:
            self._continue_long_item(chunk)
        if not self._in_items:
            self._find_items()
        objects = self._take_items(final=False) if self._in_items else []
        self._check_size()
        return objects

    @property
    def slice_bytes(self) -> int:
        """The most bytes to pass to the next ``feed`` at once, so that a call takes little time."""
        fast = self._in_items and self._scanner is None and self._separator
        return maxsize if fast else SCAN_BYTES

    @property
    def _held(self) -> int:
        return self._parts_size + len(self._buffer)

    def close(self) -> tuple[list[KubeObject], ListEnvelope]:
        """End the decoding. Return the remaining objects, and the list without its items.

        Raises:
            ProtocolError: the response ended in the middle, or is not a list.
        """
        rest = self._take_items(final=True) if self._in_items else []
        if self._in_items:
            raise self._protocol_error("the response broke off")
        raw = self._head + self._buffer
        try:
            envelope = _decode_envelope(raw)
        except DECODE_ERRORS as error:
            raise self._protocol_error(str(discard_input(error))) from error
        kind = quote_kind(envelope.kind)
        if envelope.items is UNSET or envelope.kind == "Table":
            raise self._protocol_error(f"the response is a {kind or 'JSON object'} without items")
        if self._filter is not None:
            self._filter.check_list(raw)
        # If the scanner and the JSON decoder disagree, no guess may empty the cache.
        if envelope.items:
            raise self._protocol_error("its items are not where they were found")
        if self._resource in BUILT_IN and envelope.kind not in self._list_kinds:
            raise self._protocol_error(f"the response is a {kind}, not a {self._resource.kind}List")
        return rest, envelope

    @property
    def _list_kinds(self) -> tuple[str, ...]:
        """The allowed kinds of a built-in resource's list. A custom resource's may be anything."""
        return "", "List", f"{self._resource.kind}List", "PartialObjectMetadataList"

    def _find_items(self) -> None:
        end = self._items_scanner.find_array(self._buffer)
        if self._items_scanner.occurrences > 1:
            raise self._protocol_error("the key 'items' occurs more than once")
        if end is not None:
            self._head, self._buffer = self._buffer[:end], self._buffer[end:]
            self._items_scanner.rebase()
            self._in_items = True
            # The metadata may also follow the items, which are all checked then.
            if self._filter is not None and self._filter.check_list(self._head + b"]}"):
                self._admit = None

    def _continue_long_item(self, chunk: bytes) -> None:
        """Put the buffer, which was scanned, aside, and ``chunk`` in its place.

        An item that is collected in one buffer would be copied with every chunk.
        """
        if self._parts and len(self._parts[-1]) < PART_BYTES:
            self._parts[-1] += self._buffer
        else:
            self._parts.append(self._buffer)
        self._parts_size += len(self._buffer)
        self._buffer, self._scan_at = chunk, 0

    def _check_size(self) -> None:
        held = self._held
        if self._in_items and held > self._cap:
            raise self._protocol_error(
                f"item {self.count + 1} is longer than {self._cap} bytes; if the cluster has "
                "objects of this size, raise line_cap"
            )
        if not self._in_items and held > HEAD_CAP:
            after = f"there are more than {HEAD_CAP} bytes after its items"
            before = f"there are no items in its first {HEAD_CAP} bytes"
            raise self._protocol_error(after if self._head else before)

    def _take_items(self, *, final: bool) -> list[KubeObject]:
        objects: list[KubeObject] = []
        admit, excluded = self._admit, 0
        while self._at_item or self._scanner is not None or self._seek_item():
            item = self._split_item() or self._scan_item(final=final)
            if item is None:
                break
            if admit is not None and not admit(item[0].uid, item[0].namespace):
                excluded += 1
                continue
            obj = decode_object(
                self._resource,
                *item,
                managed_fields=self._managed_fields,
                type_meta=self._type_meta,
                packed=True,  # here, so that the next objects take the memory of the strings
            )
            objects.append(obj)
        self.count += len(objects) + excluded
        self.excluded += excluded
        self._buffer = self._buffer[self._offset :]
        self._scan_at -= self._offset
        self._offset = 0
        if not self._in_items:
            self._find_items()  # in the tail: a list has its items once
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

    def _split_item(self) -> _Item | None:
        """Go to the end of the current item at the next separator, if the decoder accepts it."""
        self._at_item = False
        if not self._separator or self._scanner:
            return None
        start = end = self._offset
        for _ in range(MAX_FALSE_SPLITS):
            end = self._buffer.find(self._separator, end) + 1
            if not end:
                return None  # the separator may not have arrived yet
            try:
                envelope = decode_item(memoryview(self._buffer)[start:end])
            except DECODE_ERRORS:
                continue
            # The separator ends with the first bytes of the next item.
            self._offset = end + len(self._separator) - 1 - OPENING_BYTES
            self._at_item = True
            metadata = envelope.metadata
            if envelope.kind or envelope.api_version or self._namespace is not None:
                metadata = self._check_item(envelope)
            return metadata, self._buffer, start, end
        self._scanner, self._scan_at = BraceScanner(), self._offset
        return None

    def _scan_item(self, *, final: bool) -> _Item | None:
        """Go to the end of the current item by counting braces, where cutting isn't possible."""
        start, source = self._offset, self._buffer
        if self._scanner is None:
            if self._separator and not final and len(source) - start < MAX_UNSPLIT_BYTES:
                return None
            self._scanner, self._scan_at = BraceScanner(), start
        end = self._scanner.find_end(source, self._scan_at)
        if end is None:
            self._scan_at = len(source)
            return None
        self._scanner, self._offset = None, end
        self._remember_separator(end)
        if self._parts:
            source = b"".join((*self._parts, source[:end]))
            self._parts, self._parts_size = [], 0
            start, end = 0, len(source)
        try:
            envelope = decode_nested(decode_item, memoryview(source)[start:end])
        except DECODE_ERRORS as error:
            raise self._protocol_error(str(discard_input(error))) from error
        return self._check_item(envelope), source, start, end

    def _check_item(self, item: ItemEnvelope) -> ObjectMetadata:
        """Return the metadata of an item of the requested kind and namespace.

        Raises:
            UnexpectedObject: the item is another object. The whole list is rejected then: without
                its items, the cache would be emptied.
        """
        metadata, difference = item.metadata, ""
        if item.kind or item.api_version:
            difference = find_other_type(self._resource, item.kind, item.api_version)
        if self._namespace is not None and metadata.namespace != self._namespace:
            difference = difference or find_other_namespace(self._namespace, metadata.namespace)
        if difference:
            message = f"the list of {self._resource} has an object {difference}"
            raise UnexpectedObject(message, phase="list")
        return metadata

    def _remember_separator(self, end: int) -> None:
        """Remember the bytes between this item and the next one, if they have arrived."""
        begin = _skip_separator(self._buffer, end)
        opening = self._buffer[begin : begin + OPENING_BYTES]
        if len(opening) == OPENING_BYTES and opening.startswith(b"{"):
            self._separator = self._buffer[end - 1 : begin] + opening

    def _protocol_error(self, why: str) -> ProtocolError:
        items = quantity(self.count, "item")
        return ProtocolError(
            f"the list of {self._resource} is malformed after {items}: {why}", phase="list"
        )

    def __repr__(self) -> str:
        return f"<ListDecoder {self._resource} items={self.count} held={self._held} B>"


def _skip_separator(buffer: bytes, at: int) -> int:
    found = _SEPARATOR.match(buffer, at)
    return found.end() if found else at
