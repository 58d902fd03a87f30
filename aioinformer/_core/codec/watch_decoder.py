"""The decoder of a watch: bytes to deltas, bookmarks and the initial list.

This is the hot path of the library: a change costs one pass over its line and one copy of the
object.

The initial state of a WatchList arrives as single additions in no order, mixed with changes that
happen meanwhile. It is meaningful only as a whole, so the objects are collected here until the end
mark; a stream that ends before the mark leaves nothing behind. The versions before the mark can't
be resumed from (client-go's rule for synthetic events).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from sys import maxsize

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from aioinformer._core.codec.initial_list import InitialList
from aioinformer._core.codec.line_splitter import LINE_CAP, Line, LineSplitter
from aioinformer._core.codec.object_decoder import (
    DECODE_ERRORS,
    ObjectEnvelope,
    ObjectMetadata,
    decode_envelope,
    decode_object,
)
from aioinformer._core.codec.shape import Converter
from aioinformer._core.codec.status_decoder import decode_status
from aioinformer._core.codec.type_check import (
    LINE_ENDS,
    PLAIN_HEADS,
    find_other_namespace,
    iter_line_heads,
    read_other_type,
)
from aioinformer._core.objects.decode_errors import discard_input
from aioinformer._core.objects.deltas import Bookmark, Delta, DeltaKind
from aioinformer._core.objects.identity import VersionText
from aioinformer._core.objects.json_depth import decode_nested
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.resources import Resource
from aioinformer._core.quantities import quantity
from aioinformer._core.sharding.shard_filter import ShardFilter
from aioinformer.errors import (
    FetchError,
    ProtocolError,
    UnexpectedObject,
    server_error,
)

__all__ = ["EventDecoder", "InitialList", "WatchBatch", "WatchDecoder"]


class _ChangeLine(Struct, forbid_unknown_fields=True, gc=False):
    """The line of a change, read in one pass.

    The line has exactly these keys, so that the object is everything between the known head of the
    line and its last brace.
    """

    type: str
    object: ObjectEnvelope


class _EventEnvelope(Struct, gc=False):
    """Any line of a watch."""

    type: str
    object: Raw


class _BookmarkMetadata(Struct, rename="camel", gc=False):
    resource_version: VersionText = ""
    annotations: Raw | UnsetType = UNSET


class _BookmarkBody(Struct, gc=False):
    metadata: _BookmarkMetadata


_END_ANNOTATION = "k8s.io/initial-events-end"
_END_ANNOTATION_BYTES = _END_ANNOTATION.encode()

_decode_change = Decoder(_ChangeLine).decode
_decode_annotations = Decoder(dict[str, Raw]).decode
_decode_event_envelope = Decoder(_EventEnvelope).decode
_decode_bookmark_body = Decoder(_BookmarkBody).decode

_DELTA_KINDS: dict[str, DeltaKind] = {"ADDED": "Added", "MODIFIED": "Updated", "DELETED": "Deleted"}
_UNKNOWN_HEAD: tuple[DeltaKind, bytes, int] = "Updated", b"no line of JSON begins like this", 0


_NEWLINE = 0x0A

_OTHER_SHARD = Bookmark("")
"""The result for a change of an object of another shard: exactly this bookmark, which the batch
doesn't contain."""

_EVENT_TYPE = re.compile(r"[A-Z]{1,20}")
"""Types of events that an error quotes. Any other text may be a part of a Secret."""


class EventDecoder:
    """A decoder of the lines of one watch."""

    def __init__(
        self,
        resource: Resource,
        *,
        managed_fields: bool = False,
        namespace: str | None = None,
        shard: ShardFilter | None = None,
    ) -> None:
        """Create a decoder.

        Args:
            resource: the resource that is watched.
            managed_fields: True keeps ``metadata.managedFields`` in the objects.
            namespace: the namespace that is watched; ``None`` for all.
            shard: excludes changes of objects of other shards; ``None`` to return all changes.
        """
        self._shard = shard
        self.resource_version = ""
        """The version of the last change or bookmark that had one. May be reset."""
        self.bookmarks = 0
        """The number of bookmarks decoded so far."""
        self._resource = resource
        self._managed_fields = managed_fields
        self._namespace = namespace
        self._spellings = tuple(iter_line_heads(resource))
        self._heads = self._spellings[0]
        """The heads of this watch's lines, kind and apiVersion included: a line that begins with
        one of them has an object of the watched kind, at no cost."""

    def decode(self, source: bytes, start: int = 0, end: int | None = None) -> Delta | Bookmark:
        """Return the delta or bookmark on a line; ``_OTHER_SHARD`` for an excluded change.

        Args:
            source: the bytes that contain the line. The result doesn't refer to them.
            start: the offset of the line.
            end: the offset after the line; ``None`` for the end of ``source``.

        Raises:
            ServerError: the line is an ERROR event; the error has the server's Status.
            UnexpectedObject: the object is of another kind, or in another namespace.
            ProtocolError: the line is no watch event.
        """
        size = len(source)
        if end is None:
            end = size
        kind, head, at = self._heads.get(source[start + 9 : start + 10], _UNKNOWN_HEAD)
        # Otherwise the line has another spelling or kind, or it is no change.
        if not (source.startswith(head, start) and source.endswith(LINE_ENDS, start, end)):
            line = source[start:end]
            plain = self._learn_spelling(line)
            if plain is None:
                return self._decode_envelope(line)
            kind, at = plain
        try:
            # A view, not a copy of the line: most chunks have many lines.
            line_view = source if end - start == size else memoryview(source)[start:end]
            metadata = _decode_change(line_view).object.metadata
        except RecursionError:
            metadata = self._decode_nested_metadata(source[start:end])
        except DECODE_ERRORS:
            return self._decode_envelope(source[start:end])
        if metadata.namespace != self._namespace and self._namespace is not None:
            self._check_namespace(metadata.namespace)
        self.resource_version = metadata.resource_version or self.resource_version
        if self._shard is not None and self._drops(self._shard, metadata):
            return _OTHER_SHARD
        obj = decode_object(
            self._resource,
            metadata,
            source,
            start + at,
            end - (2 if source[end - 1] == _NEWLINE else 1),
            managed_fields=self._managed_fields,
        )
        return Delta(kind, obj)

    @staticmethod
    def _drops(shard: ShardFilter, metadata: ObjectMetadata) -> bool:
        """Return True if an object is of another shard, or if the state of its shard contains the
        change already.
        """
        uid, namespace = metadata.uid, metadata.namespace
        return shard.excludes(uid, namespace) or (
            bool(shard.read_ahead) and shard.repeats(uid, namespace, metadata.resource_version)
        )

    def _learn_spelling(self, line: bytes) -> tuple[DeltaKind, int] | None:
        """Return the change on ``line`` and the offset of its object, after a check of its kind.

        Returns:
            ``None`` if the line isn't a change in the server's usual spelling.

        Raises:
            UnexpectedObject: the object is of another kind.
            ProtocolError: kind or apiVersion is no text.
        """
        kind, head, start = PLAIN_HEADS.get(line[9:10], _UNKNOWN_HEAD)
        if not (line.startswith(head) and line.endswith(LINE_ENDS)):
            return None
        for heads in self._spellings:
            if line.startswith(heads[line[9:10]][1]):
                self._heads = heads  # the further lines of this watch are spelled alike
                return kind, start
        try:
            self._check_kind(line[start:].rstrip()[:-1])
        except DECODE_ERRORS as error:
            raise self._protocol_error(line, error) from error
        return kind, start

    def _decode_nested_metadata(self, line: bytes) -> ObjectMetadata:
        try:
            return decode_nested(_decode_change, line).object.metadata
        except DECODE_ERRORS as error:
            raise self._protocol_error(line, error) from error

    def _check_kind(self, raw: bytes) -> None:
        """Raise ``UnexpectedObject`` if ``raw`` is an object of another kind."""
        self._reject(read_other_type(self._resource, raw))

    def _check_namespace(self, namespace: str) -> None:
        """Raise ``UnexpectedObject`` if an object is in another namespace."""
        self._reject(find_other_namespace(self._namespace, namespace))

    def _reject(self, difference: str) -> None:
        if difference:
            message = f"the watch of {self._resource} sent an object {difference}"
            raise UnexpectedObject(message, phase="watch")

    def _decode_envelope(self, line: bytes) -> Delta | Bookmark:
        """Decode a line that isn't a change in the server's usual spelling."""
        try:
            envelope = _decode_event_envelope(line)
            if envelope.type == "BOOKMARK":
                bookmark = _make_bookmark(_decode_bookmark_body(envelope.object).metadata)
                self.bookmarks += 1
                self.resource_version = bookmark.resource_version or self.resource_version
                return bookmark
            if envelope.type == "ERROR":
                raise server_error(decode_status(bytes(envelope.object)), phase="watch")
            kind = _DELTA_KINDS.get(envelope.type)
            if kind is None:
                raise _unknown_type(envelope.type)
            obj = self._decode_object(bytes(envelope.object))
            return _OTHER_SHARD if obj is None else Delta(kind, obj)
        except DECODE_ERRORS as error:
            raise self._protocol_error(line, error) from error

    def _protocol_error(self, line: bytes, error: Exception) -> ProtocolError:
        size = quantity(len(line.removesuffix(b"\n")), "byte")
        reason = discard_input(error)
        message = f"a line of {size} in the watch of {self._resource} is no event: {reason}"
        return ProtocolError(message, phase="watch")

    def _decode_object(self, raw: bytes) -> KubeObject | None:
        """Return the object; ``None`` if it is of another shard."""
        metadata = decode_envelope(raw).metadata
        self._check_kind(raw)
        self._check_namespace(metadata.namespace)
        self.resource_version = metadata.resource_version or self.resource_version
        if self._shard is not None and self._drops(self._shard, metadata):
            return None
        return decode_object(
            self._resource, metadata, raw, 0, len(raw), managed_fields=self._managed_fields
        )


def _unknown_type(found: str) -> ProtocolError:
    named = (
        repr(found) if _EVENT_TYPE.fullmatch(found) else f"of {quantity(len(found), 'character')}"
    )
    return ProtocolError(f"a watch event of unknown type {named}", phase="watch")


def _make_bookmark(metadata: _BookmarkMetadata) -> Bookmark:
    """Return the bookmark; an end mark if the annotation is exactly ``"true"`` (client-go)."""
    raw = metadata.annotations
    if raw is UNSET or _END_ANNOTATION_BYTES not in bytes(raw):
        return Bookmark(metadata.resource_version)
    try:
        annotations = _decode_annotations(raw)
    except DECODE_ERRORS:
        return Bookmark(metadata.resource_version)
    return Bookmark(
        metadata.resource_version, bytes(annotations.get(_END_ANNOTATION, b"")) == b'"true"'
    )


SLICE_BYTES = 16384
"""Bytes to decode between two reads of the clock where a program's code runs for each object: five
pods. A chunk may contain hundreds of objects; a read after each would cost as much as a model does.
"""


class WatchBatch(Struct):
    """The contents of one piece of a watch."""

    entries: list[Delta | Bookmark]
    """The changes and bookmarks for the queue; of a WatchList, those after its end mark."""
    bookmarks: int
    """Bookmarks among the entries."""
    event_count: int
    """Events of any kind, in ``entries`` or not."""
    resource_version: str = ""
    """The last version in the entries; empty if there is none."""
    initial_list: InitialList | None = None
    """The complete initial list, in the batch that contains its end mark."""
    unexpected: UnexpectedObject | None = None
    """The first event that was ignored, because its object is of another kind or namespace."""
    ignored: int = 0
    """The number of such events."""
    excluded: int = 0
    """The number of events of objects of other shards. If the last event is such a one, the last
    entry is a bookmark with its version."""
    error: FetchError | None = None
    """The ERROR event or the malformed line at which decoding ended. The entries came before it."""


class WatchDecoder:
    """The decoder of one watch: bytes to batches."""

    def __init__(
        self,
        resource: Resource,
        *,
        initial: InitialList | None = None,
        managed_fields: bool = False,
        namespace: str | None = None,
        line_cap: int = LINE_CAP,
        converter: Converter | None = None,
        shard: ShardFilter | None = None,
    ) -> None:
        """Create the decoder of a watch that has brought nothing yet.

        Args:
            resource: the resource that is watched.
            initial: collects the initial list of a WatchList; ``None`` for a plain watch.
            managed_fields: True keeps ``metadata.managedFields`` in the objects.
            namespace: the namespace that is watched; ``None`` for all.
            line_cap: the longest event, in bytes, that is accepted.
            converter: converts an object to its stored form; ``None`` stores objects unchanged.
            shard: excludes the objects of other shards; ``None`` to return all objects.
        """
        self._shard = shard
        self.slice_bytes = maxsize if converter is None else SLICE_BYTES
        """The most bytes to pass to ``feed`` at once, so that a call takes little time."""
        self._initial = initial
        self._splitter = LineSplitter(cap=line_cap)
        self._decoder = EventDecoder(
            resource, managed_fields=managed_fields, namespace=namespace, shard=shard
        )
        self._decode = (
            self._decoder.decode if converter is None else self._with_converter(converter)
        )

    def feed(self, data: bytes) -> WatchBatch:
        """Decode the events that ``data`` completes.

        An error doesn't discard the events before it, so it is returned in the batch. An event of
        another kind or namespace is ignored, as in client-go, but an initial list with such an
        object is an error: the list isn't the one that was requested, and must not replace the
        cached state.
        """
        batch, decoder, shard = WatchBatch([], 0, 0), self._decoder, self._shard
        bookmarks, decoder.resource_version = decoder.bookmarks, ""
        excluded, dropped = (0, 0) if shard is None else (shard.excluded, shard.dropped)
        try:
            lines = self._splitter.find_lines(data)
            batch.event_count = len(lines)
            if self._initial is not None:
                lines = self._feed_initial(self._initial, lines, batch)
                # Neither the end mark counts nor anything before it.
                bookmarks, decoder.resource_version = decoder.bookmarks, ""
            decode, append = self._decode, batch.entries.append
            for source, start, end in lines:
                try:
                    append(decode(source, start, end))
                except UnexpectedObject as error:
                    batch.unexpected = batch.unexpected or discard_input(error)
                    batch.ignored += 1
        except FetchError as error:
            batch.error = discard_input(error)
        if self._initial is None:
            batch.bookmarks = decoder.bookmarks - bookmarks
            batch.resource_version = decoder.resource_version
        if shard is not None and shard.dropped > dropped:
            batch.excluded = shard.excluded - excluded
            self._remove_excluded(batch)
        return batch

    def _remove_excluded(self, batch: WatchBatch) -> None:
        """Remove the places of excluded changes, and keep the version of the last one.

        A later entry has a later version, so that only a change at the end is missed otherwise.
        """
        entries = batch.entries
        ends_excluded = bool(entries) and entries[-1] is _OTHER_SHARD
        batch.entries = [entry for entry in entries if entry is not _OTHER_SHARD]
        if ends_excluded:
            batch.entries.append(Bookmark(self._decoder.resource_version))

    def _feed_initial(
        self, initial: InitialList, lines: list[Line], batch: WatchBatch
    ) -> list[Line]:
        """Collect the initial list. Return the lines after its end mark."""
        for number, line in enumerate(lines, 1):
            entry = self._decode(*line)
            if isinstance(entry, Delta):
                initial.apply(entry)
            elif entry.ends_initial:
                initial.resource_version = entry.resource_version
                batch.initial_list, self._initial = initial, None
                return lines[number:]
        return []

    def _with_converter(
        self, converter: Converter
    ) -> Callable[[bytes, int, int], Delta | Bookmark]:
        decode = self._decoder.decode

        def decode_and_convert(source: bytes, start: int, end: int) -> Delta | Bookmark:
            entry = decode(source, start, end)
            return Delta(entry.kind, converter(entry.obj)) if isinstance(entry, Delta) else entry

        return decode_and_convert

    @property
    def buffered(self) -> int:
        """Bytes of the event under way. If the stream ends now, they are discarded."""
        return self._splitter.buffered

    def __repr__(self) -> str:
        state = f" {self._initial!r}" if self._initial is not None else ""
        return f"<WatchDecoder buffered={self.buffered} B{state}>"
