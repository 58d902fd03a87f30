"""The decoder of an event: a line of a watch to a delta, a bookmark or an error.

Decoding is the hot path of the library: a change costs one pass over its line, or over its metadata
(``metadata_head``), and one copy of the object.
"""

from __future__ import annotations

import re
from sys import intern

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType
from msgspec.json import Decoder

from aioinformer._core.codec.metadata_head import (
    BRACKET,
    MANAGED_FIELDS,
    METADATA,
    HeadMetadata,
    decode_head,
    find_end,
)
from aioinformer._core.codec.object_decoder import (
    ObjectEnvelope,
    ObjectMetadata,
    decode_envelope,
    decode_object,
)
from aioinformer._core.codec.status_decoder import decode_status
from aioinformer._core.codec.type_check import (
    DELTA_KINDS,
    LINE_ENDS,
    PLAIN_HEADS,
    LineHeads,
    describe_list,
    find_other_namespace,
    iter_line_heads,
    read_other_type,
)
from aioinformer._core.objects.decode_errors import DECODE_ERRORS, discard_input
from aioinformer._core.objects.deltas import Bookmark, Delta, DeltaKind
from aioinformer._core.objects.json_depth import decode_nested, iter_containers, truncate_depth
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey, create_object
from aioinformer._core.objects.object_key import Admit, VersionText
from aioinformer._core.objects.resources import Resource
from aioinformer._core.quantities import quantity
from aioinformer.errors import ProtocolError, UnexpectedObject, server_error


class _ChangeLine(Struct, forbid_unknown_fields=True, gc=False):
    """The line of a change, read in one pass.

    It has exactly these keys, so that the object is everything between the line's known head and
    its last brace.
    """

    type: str
    object: ObjectEnvelope


class _EventEnvelope(Struct, gc=False):
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

_UNKNOWN_HEAD: tuple[DeltaKind, bytes, int] = "Updated", b"no line of JSON begins like this", 0


_NEWLINE = 0x0A

EXCLUDED = Bookmark("")
"""The result for a change of an object that isn't admitted: exactly this bookmark."""

_LAYOUT_ATTEMPTS = 8
"""Changes of a watch whose layout is looked at. Custom resources never have the layout, and looking
at each of their lines would cost a search."""

_EVENT_TYPE = re.compile(r"[A-Z]{1,20}")
"""Types of events that an error quotes. Any other text may be a part of a Secret."""


class EventDecoder:
    def __init__(
        self,
        resource: Resource,
        *,
        managed_fields: bool = False,
        namespace: str | None = None,
        admit: Admit | None = None,
        validate: bool = True,
    ) -> None:
        """Create a decoder.

        ``namespace`` is the watched one, ``None`` for all; ``admit`` excludes changes of other
        objects. Without ``validate``, metadata alone are read where the watch has shown that they
        precede the rest; a broken body then raises ``ObjectDecodeError`` where it is opened.
        """
        self._admit = admit
        self.resource_version = ""
        """The version of the last change or bookmark that had one. May be reset."""
        self.bookmarks = 0
        self.excluded = 0
        self._resource = resource
        self._managed_fields = managed_fields
        self._namespace = namespace
        self._spellings = tuple(iter_line_heads(resource))
        self._heads: LineHeads = self._spellings[0]
        """The heads of this watch's lines, kind and apiVersion included: a line that begins with
        one of them has an object of the watched kind, at no cost."""
        self._layout_attempts = 0 if validate or managed_fields else _LAYOUT_ATTEMPTS
        self._metadata_end = b""
        """The end of metadata in the layout that this watch has shown (``metadata_head``), of which
        the heads contain the beginning of metadata then; empty to read whole lines."""

    def decode(self, source: bytes, start: int = 0, end: int | None = None) -> Delta | Bookmark:
        """Return the delta or bookmark on ``source[start:end]``; or ``EXCLUDED``.

        The result doesn't refer to ``source``.

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
        cut = after = -1
        if self._metadata_end:
            cut = source.find(MANAGED_FIELDS, start, end)
            after = source.find(BRACKET, cut, end)
            if not source.startswith(self._metadata_end, after, end):
                after = -1  # no managedFields, or another member follows
        metadata: ObjectMetadata | HeadMetadata
        try:
            if after > 0:
                metadata = decode_head(source[start + len(head) : cut] + b"}")
            else:
                # A view, not a copy of the line: most chunks have many lines.
                line_view = source if end - start == size else memoryview(source)[start:end]
                metadata = _decode_change(line_view).object.metadata
        except RecursionError:
            metadata = self._decode_nested_metadata(source[start:end])
        except DECODE_ERRORS:
            return self._decode_envelope(source[start:end])
        if self._namespace is not None and metadata.namespace != self._namespace:
            self._check_namespace(metadata.namespace)
        self.resource_version = metadata.resource_version or self.resource_version
        if self._admit is not None and not self._admit(metadata.uid, metadata.namespace):
            self.excluded += 1
            return EXCLUDED
        begin, stop = start + at, end - (2 if source[end - 1] == _NEWLINE else 1)
        if isinstance(metadata, HeadMetadata):
            key = ObjectKey(intern(metadata.namespace), metadata.name)
            raw = source[begin:cut] + source[after + 1 : stop]
            uid, version = metadata.uid, metadata.resource_version
            return Delta(kind, create_object(key, uid, version, raw, self._resource))
        if self._layout_attempts:
            self._learn_layout(source[start:end], len(head), metadata)
        obj = decode_object(
            self._resource, metadata, source, begin, stop, managed_fields=self._managed_fields
        )
        return Delta(kind, obj)

    def _learn_layout(self, line: bytes, start: int, metadata: ObjectMetadata) -> None:
        """Read further lines up to their managedFields if this line shows that this suffices."""
        self._layout_attempts -= 1
        self._metadata_end = find_end(line, start, metadata.managed_fields)
        if self._metadata_end:
            self._layout_attempts = 0
            self._heads = {
                letter: (kind, head + METADATA, start)
                for letter, (kind, head, start) in self._heads.items()
            }

    def _learn_spelling(self, line: bytes) -> tuple[DeltaKind, int] | None:
        """Return the change on ``line`` and the offset of its object, after a check of its kind.

        ``None`` means that the line isn't a change in the server's usual spelling.

        Raises:
            UnexpectedObject: the object is of another kind.
            ProtocolError: kind or apiVersion is no text.
        """
        kind, head, start = PLAIN_HEADS.get(line[9:10], _UNKNOWN_HEAD)
        if not (line.startswith(head) and line.endswith(LINE_ENDS)):
            return None
        self._metadata_end = b""  # the offsets are those of the previous spelling
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
        self._reject(read_other_type(self._resource, raw))

    def _check_namespace(self, namespace: str) -> None:
        self._reject(find_other_namespace(self._namespace, namespace))

    def _reject(self, difference: str) -> None:
        if difference:
            message = f"the watch of {self._resource} sent an object {difference}"
            raise UnexpectedObject(message, phase="watch")

    def _decode_envelope(self, line: bytes) -> Delta | Bookmark:
        """Decode a line that isn't a change in the server's usual spelling."""
        try:
            envelope = _decode_any_line(line)
            if envelope.type == "BOOKMARK":
                body = decode_nested(_decode_bookmark_body, bytes(envelope.object))
                bookmark = _make_bookmark(body.metadata)
                self.bookmarks += 1
                self.resource_version = bookmark.resource_version or self.resource_version
                return bookmark
            if envelope.type == "ERROR":
                raise server_error(decode_status(bytes(envelope.object)), phase="watch")
            kind = DELTA_KINDS.get(envelope.type)
            if kind is None:
                raise _unknown_type(envelope.type)
            obj = self._decode_object(bytes(envelope.object))
            return EXCLUDED if obj is None else Delta(kind, obj)
        except DECODE_ERRORS as error:
            raise self._protocol_error(line, error) from error

    def _protocol_error(self, line: bytes, error: Exception) -> ProtocolError:
        return self.list_error(line) or self._no_event_error(line, error)

    def list_error(self, raw: bytes) -> ProtocolError | None:
        """Return the error for a list in the place of a watch; ``None`` if ``raw`` is none."""
        found = describe_list(raw)
        message = f"the watch of {self._resource} brought no event: {found}"
        return ProtocolError(message, phase="watch") if found else None

    def _no_event_error(self, line: bytes, error: Exception) -> ProtocolError:
        size = quantity(len(line.removesuffix(b"\n")), "byte")
        reason = discard_input(error)
        message = f"a line of {size} in the watch of {self._resource} is no event: {reason}"
        return ProtocolError(message, phase="watch")

    def _decode_object(self, raw: bytes) -> KubeObject | None:
        metadata = decode_nested(decode_envelope, raw).metadata
        self._check_kind(raw)
        self._check_namespace(metadata.namespace)
        self.resource_version = metadata.resource_version or self.resource_version
        if self._admit is not None and not self._admit(metadata.uid, metadata.namespace):
            self.excluded += 1
            return None
        return decode_object(
            self._resource, metadata, raw, 0, len(raw), managed_fields=self._managed_fields
        )


def _decode_any_line(line: bytes) -> _EventEnvelope:
    """Return the type and the object of a line in any spelling, however deep the object is.

    Raises:
        msgspec.DecodeError: the line is no event, or, being nested too deeply to be decoded as a
            whole, has another member in which the object may be.
    """
    try:
        return _decode_event_envelope(line)
    except RecursionError:
        pass
    found = _decode_event_envelope(truncate_depth(line))
    containers = [line[start:end] for start, end in iter_containers(line)]
    if len(containers) != 1 or not bytes(found.object).startswith(b"{"):
        raise DecodeError("the line is nested too deeply and has other members than an event")
    return _EventEnvelope(found.type, Raw(containers[0]))


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
