r"""A watch stream's bytes become deltas: the line splitter and the event decoder.

A watch is a stream of JSON objects, one a line. Lines end at ``\n`` and nowhere else: U+0085
and its kin are legal inside a JSON string, and splitters that follow Unicode cut there. Chunks
come as the network cut them. A line may be long (Go escapes ``<``, ``>`` and ``&`` to six bytes,
so that an object of 1.5 MiB can take 9), so there is no limit but a cap against nonsense.

The hot path of the library: a change event costs one pass over the line and one copy of the
object. Errors inside the stream are raised; what to do about them is ``cursor``'s.

One watch, from its bytes to what the queue takes: the initial state first, if there is one.

The initial state of a WatchList comes as single additions in no order, mixed with what changes
meanwhile. It means something only as a whole, so it is put together here, beside everything, up
to the mark behind it; a stream that ends before leaves nothing behind. The versions of what came
before the mark are no place to resume from (client-go's rule for synthetic events).

When to give a stream up is ``liveness``'; what to do about an error is ``rules``'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from io import BytesIO

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from aioinformer._core.codec.object_decoder import (
    DECODE_ERRORS,
    ObjectEnvelope,
    ObjectMetadata,
    decode_envelope,
    decode_object,
)
from aioinformer._core.codec.shape import Converter
from aioinformer._core.codec.status_decoder import decode_status, one_line
from aioinformer._core.objects.deltas import Bookmark, Delta, DeltaKind
from aioinformer._core.objects.json_depth import decode_nested
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import LineTooLong, ProtocolError, server_error

__all__ = ["LINE_CAP", "EventDecoder", "InitialList", "LineSplitter", "WatchDecoder"]


LINE_CAP = 64 * 1024 * 1024
"""Bytes: far above the largest event that a server with default limits sends (9 MiB)."""


class LineSplitter:
    """Cuts chunks into lines."""

    def __init__(self, *, cap: int = LINE_CAP) -> None:
        """Make a splitter.

        Args:
            cap: the longest line, in bytes, that is still put together.
        """
        self._cap = cap
        self._tail: list[bytes] = []
        self._tail_size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that ``chunk`` completes, with their ends; empty ones left out.

        Raises:
            LineTooLong: the line under way has passed the cap.
        """
        newline = chunk.find(b"\n")
        if newline < 0:
            self._buffer_tail(chunk)
            return []
        # One event a chunk, as the server flushes them: nothing to copy.
        alone = newline == len(chunk) - 1 and not self._tail
        return [line for line in ([chunk] if alone else self._split(chunk)) if line != b"\n"]

    def _split(self, chunk: bytes) -> list[bytes]:
        # Ten times as fast as ``split``, which looks at one byte after the other.
        lines = BytesIO(chunk).readlines()
        if self._tail:
            lines[0] = b"".join((*self._tail, lines[0]))
            self._tail.clear()
            self._tail_size = 0
        if not lines[-1].endswith(b"\n"):
            self._buffer_tail(lines.pop())
        return lines

    def _buffer_tail(self, part: bytes) -> None:
        if not part:
            return
        self._tail.append(part)
        self._tail_size += len(part)
        if self._tail_size > self._cap:
            raise LineTooLong(
                f"a watch event is longer than {self._cap} bytes; if objects of this size are "
                "meant to be, raise the cap on lines",
                phase="watch",
            )

    @property
    def buffered(self) -> int:
        """Bytes of the line under way. If the stream ends now they are dropped: half an event
        is no event, and the next watch starts before it.
        """
        return self._tail_size

    def __repr__(self) -> str:
        return f"<LineSplitter pending={self._tail_size} B>"


class _ChangeLine(Struct, forbid_unknown_fields=True, gc=False):
    """The line of a change, read in one pass. Exactly these keys: then the object is what stands
    between the known head of the line and its last brace.
    """

    type: str
    object: ObjectEnvelope


class _EventEnvelope(Struct, gc=False):
    """Any line."""

    type: str
    object: Raw


class _KindObject(Struct, gc=False):
    kind: str = ""


class _KindLine(Struct, gc=False):
    """What a change is a change of."""

    object: _KindObject


class _BookmarkMetadata(Struct, gc=False):
    resourceVersion: str = ""  # noqa: N815 - the key in the JSON
    annotations: Raw | UnsetType = UNSET


class _BookmarkBody(Struct, gc=False):
    metadata: _BookmarkMetadata


_END_ANNOTATION = "k8s.io/initial-events-end"
_END_ANNOTATION_BYTES = _END_ANNOTATION.encode()

_decode_change = Decoder(_ChangeLine).decode
_decode_kind = Decoder(_KindLine).decode
_decode_annotations = Decoder(dict[str, Raw]).decode
_decode_event_envelope = Decoder(_EventEnvelope).decode
_decode_bookmark_body = Decoder(_BookmarkBody).decode

_DELTA_KINDS: dict[str, DeltaKind] = {"ADDED": "Added", "MODIFIED": "Updated", "DELETED": "Deleted"}
_LINE_HEADS: dict[bytes, tuple[DeltaKind, bytes]] = {
    # The first letter of the type tells which head to expect.
    name[:1].encode(): (kind, f'{{"type":"{name}","object":{{'.encode())
    for name, kind in _DELTA_KINDS.items()
}
_LINE_ENDS = b"}}\n", b"}}"
_UNKNOWN_HEAD: tuple[DeltaKind, bytes] = "Updated", b"no line of JSON begins like this"


class EventDecoder:
    """Decodes the lines of one watch."""

    def __init__(self, resource: Resource, *, managed_fields: bool = False) -> None:
        """Make a decoder.

        Args:
            resource: what is watched.
            managed_fields: whether objects keep their managedFields.
        """
        self.bookmarks = 0
        """Bookmarks decoded so far."""
        self._resource = resource
        self._managed_fields = managed_fields
        self._kind_checked = False
        """Whether the kind of what comes was looked at. A stream brings one kind."""

    def decode(self, line: bytes) -> Delta | Bookmark:
        """The delta or bookmark on ``line``.

        Raises:
            ServerError: the line is an ERROR event, with the server's Status in it.
            ProtocolError: the line is no watch event.
        """
        kind, head = _LINE_HEADS.get(line[9:10], _UNKNOWN_HEAD)
        # Without these it has white space where servers write none, or it is something else.
        if not (line.startswith(head) and line.endswith(_LINE_ENDS)):
            return self._decode_envelope(line)
        try:
            metadata = _decode_change(line).object.metadata
        except RecursionError:
            metadata = self._decode_nested_metadata(line)
        except DECODE_ERRORS:
            return self._decode_envelope(line)
        if not self._kind_checked:
            self._check_kind(line)
        end = len(line) - (2 if line.endswith(b"\n") else 1)
        obj = decode_object(
            self._resource, metadata, line, len(head) - 1, end, managed_fields=self._managed_fields
        )
        return Delta(kind, obj)

    def _decode_nested_metadata(self, line: bytes) -> ObjectMetadata:
        try:
            return decode_nested(_decode_change, line).object.metadata
        except DECODE_ERRORS as error:
            raise self._protocol_error(line, error) from error

    def _check_kind(self, line: bytes) -> None:
        """Of another kind than the one watched nothing may be cached (client-go skips it)."""
        try:
            kind = decode_nested(_decode_kind, line).object.kind
        except DECODE_ERRORS as error:
            raise self._protocol_error(line, error) from error
        if kind not in ("", self._resource.kind, "PartialObjectMetadata"):
            said = f"the watch of {self._resource} brings objects of kind {one_line(kind, 80)}"
            raise ProtocolError(said, phase="watch")
        self._kind_checked = True

    def _decode_envelope(self, line: bytes) -> Delta | Bookmark:
        """Everything that isn't a change in the server's own spelling."""
        try:
            envelope = _decode_event_envelope(line)
            if envelope.type == "BOOKMARK":
                self.bookmarks += 1
                return _make_bookmark(_decode_bookmark_body(envelope.object).metadata)
            if envelope.type == "ERROR":
                raise server_error(decode_status(bytes(envelope.object)), phase="watch")
            return Delta(_DELTA_KINDS[envelope.type], self._decode_object(bytes(envelope.object)))
        except KeyError as error:
            said = f"a watch event of unknown type {one_line(str(error), 80)}"
            raise ProtocolError(said, phase="watch") from None
        except DECODE_ERRORS as error:
            raise self._protocol_error(line, error) from error

    def _protocol_error(self, line: bytes, error: Exception) -> ProtocolError:
        size = len(line.removesuffix(b"\n"))
        said = f"a line of {size} bytes in the watch of {self._resource} is no event: {error}"
        return ProtocolError(said, phase="watch")

    def _decode_object(self, raw: bytes) -> KubeObject:
        metadata = decode_envelope(raw).metadata
        return decode_object(
            self._resource, metadata, raw, 0, len(raw), managed_fields=self._managed_fields
        )


def _make_bookmark(metadata: _BookmarkMetadata) -> Bookmark:
    """The mark of a WatchList's end says exactly ``"true"``, as client-go asks of it. Whatever else
    is annotated means nothing.
    """
    said = metadata.annotations
    if said is UNSET or _END_ANNOTATION_BYTES not in bytes(said):
        return Bookmark(metadata.resourceVersion)
    try:
        annotations = _decode_annotations(said)
    except DECODE_ERRORS:
        return Bookmark(metadata.resourceVersion)
    return Bookmark(
        metadata.resourceVersion, bytes(annotations.get(_END_ANNOTATION, b"")) == b'"true"'
    )


SLICE_BYTES = 16384
"""Bytes to take between two looks at the clock where a program's code runs for each object: five
pods. A chunk may have hundreds of objects; to look after each would cost as much as a model does.
"""


class InitialList:
    """The objects that a WatchList has shown so far."""

    def __init__(self, deduplicate: Callable[[KubeObject], KubeObject]) -> None:
        """Nothing yet. ``deduplicate`` gives an equal object that is in memory already, if there is."""
        self._objects: dict[ObjectKey, KubeObject] = {}
        self._deduplicate = deduplicate

    def apply(self, delta: Delta) -> None:
        """One object was shown, changed or went."""
        obj = delta.obj
        if delta.kind == "Deleted":
            self._objects.pop(obj.key, None)
        else:
            self._objects[obj.key] = self._deduplicate(obj)

    def objects(self) -> Sequence[KubeObject]:
        """All of them."""
        return list(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def __repr__(self) -> str:
        return f"<InitialList objects={len(self)}>"


class WatchDecoder:
    """What one watch has brought."""

    def __init__(
        self,
        resource: Resource,
        *,
        initial: InitialList | None = None,
        managed_fields: bool = False,
        line_cap: int = LINE_CAP,
        converter: Converter | None = None,
    ) -> None:
        """A watch that has brought nothing yet.

        Args:
            resource: what is watched.
            initial: where its initial state is put together; ``None`` for a plain watch.
            managed_fields: whether objects keep their managedFields.
            line_cap: the longest event, in bytes, that is accepted.
            converter: what makes of an object what is kept of it; ``None`` for the object itself.
        """
        self.entries: list[Delta | Bookmark] = []
        """What came and wasn't taken yet; of a WatchList, what came behind the mark."""
        self._initial = initial
        self._end_bookmark: Bookmark | None = None
        self._bookmarks_taken = 0
        self._event_count = 0
        self._splitter = LineSplitter(cap=line_cap)
        self._decoder = EventDecoder(resource, managed_fields=managed_fields)
        self._decode = (
            self._decoder.decode if converter is None else self._with_converter(converter)
        )
        self._is_fast = converter is None

    def slices(self, chunk: bytes) -> Iterable[bytes]:
        """``chunk`` in pieces, each of which is quick to ``feed``: all of it, unless a model or a
        transform has to look at each object.
        """
        if self._is_fast:
            return (chunk,)
        return (chunk[at : at + SLICE_BYTES] for at in range(0, len(chunk), SLICE_BYTES))

    def feed(self, chunk: bytes) -> None:
        """Take a chunk.

        Raises:
            ServerError: it has an ERROR event. What came before it was taken.
            ProtocolError: it has something that is no event. The same.
        """
        lines = self._splitter.feed(chunk)
        self._event_count += len(lines)
        if self._initial is not None and self._end_bookmark is None:
            lines = self._feed_initial(self._initial, lines)
        decode, append = self._decode, self.entries.append
        for line in lines:
            append(decode(line))

    def _feed_initial(self, initial: InitialList, lines: list[bytes]) -> list[bytes]:
        """Put the initial state together; the lines behind the mark."""
        for number, line in enumerate(lines, 1):
            entry = self._decode(line)
            if isinstance(entry, Delta):
                initial.apply(entry)
                continue
            self._bookmarks_taken = self._decoder.bookmarks
            if entry.ends_initial:
                self._end_bookmark = entry
                return lines[number:]
        return []

    def _with_converter(self, converter: Converter) -> Callable[[bytes], Delta | Bookmark]:
        decode = self._decoder.decode

        def kept(line: bytes) -> Delta | Bookmark:
            entry = decode(line)
            return Delta(entry.kind, converter(entry.obj)) if isinstance(entry, Delta) else entry

        return kept

    def take_entries(self) -> tuple[list[Delta | Bookmark], int]:
        """What came live since it was asked last, and how many bookmarks are in it.

        The mark behind the initial state is no bookmark, and neither is any before it.
        """
        taken, self.entries = self.entries, []
        bookmarks, self._bookmarks_taken = (
            self._decoder.bookmarks - self._bookmarks_taken,
            self._decoder.bookmarks,
        )
        return taken, bookmarks

    def take_event_count(self) -> int:
        """How many events of any kind have come since it was asked last."""
        events, self._event_count = self._event_count, 0
        return events

    def take_initial_list(self) -> tuple[Sequence[KubeObject], str] | None:
        """The initial state and its version: once, when it is complete."""
        if self._initial is None or self._end_bookmark is None:
            return None
        state, self._initial = self._initial, None
        return state.objects(), self._end_bookmark.resource_version

    @property
    def buffered(self) -> int:
        """Bytes of half an event. If the stream ends now they are dropped."""
        return self._splitter.buffered

    def __repr__(self) -> str:
        state = f" {self._initial!r}" if self._initial is not None else ""
        return f"<WatchDecoder waiting={len(self.entries)}{state}>"
