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

from aioinformer._core.codec.object_decoder import UNREADABLE, Body, Metadata, build, read_body
from aioinformer._core.codec.shape import Keep
from aioinformer._core.codec.status_decoder import one_line, read_status
from aioinformer._core.objects.deltas import Bookmark, Delta, DeltaKind
from aioinformer._core.objects.json_depth import read_nested
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import LineTooLong, ProtocolError, server_error

__all__ = ["LINE_CAP", "EventDecoder", "InitialState", "Intake", "LineSplitter"]


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
            self._keep(chunk)
            return []
        # One event a chunk, as the server flushes them: nothing to copy.
        alone = newline == len(chunk) - 1 and not self._tail
        return [line for line in ([chunk] if alone else self._cut(chunk)) if line != b"\n"]

    def _cut(self, chunk: bytes) -> list[bytes]:
        # Ten times as fast as ``split``, which looks at one byte after the other.
        lines = BytesIO(chunk).readlines()
        if self._tail:
            lines[0] = b"".join((*self._tail, lines[0]))
            self._tail.clear()
            self._tail_size = 0
        if not lines[-1].endswith(b"\n"):
            self._keep(lines.pop())
        return lines

    def _keep(self, part: bytes) -> None:
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
    def pending(self) -> int:
        """Bytes of the line under way. If the stream ends now they are dropped: half an event
        is no event, and the next watch starts before it.
        """
        return self._tail_size

    def __repr__(self) -> str:
        return f"<LineSplitter pending={self._tail_size} B>"


class _Change(Struct, forbid_unknown_fields=True, gc=False):
    """The line of a change, read in one pass. Exactly these keys: then the object is what stands
    between the known head of the line and its last brace.
    """

    type: str
    object: Body


class _Envelope(Struct, gc=False):
    """Any line."""

    type: str
    object: Raw


class _KindedObject(Struct, gc=False):
    kind: str = ""


class _Kinded(Struct, gc=False):
    """What a change is a change of."""

    object: _KindedObject


class _BookmarkMetadata(Struct, gc=False):
    resourceVersion: str = ""  # noqa: N815 - the key in the JSON
    annotations: Raw | UnsetType = UNSET


class _BookmarkBody(Struct, gc=False):
    metadata: _BookmarkMetadata


_END = "k8s.io/initial-events-end"
_END_MARK = _END.encode()

_read_change = Decoder(_Change).decode
_read_kind = Decoder(_Kinded).decode
_read_annotations = Decoder(dict[str, Raw]).decode
_read_envelope = Decoder(_Envelope).decode
_read_bookmark = Decoder(_BookmarkBody).decode

_KINDS: dict[str, DeltaKind] = {"ADDED": "Added", "MODIFIED": "Updated", "DELETED": "Deleted"}
_HEADS: dict[bytes, tuple[DeltaKind, bytes]] = {
    # The first letter of the type tells which head to expect.
    name[:1].encode(): (kind, f'{{"type":"{name}","object":{{'.encode())
    for name, kind in _KINDS.items()
}
_ENDS = b"}}\n", b"}}"
_NO_HEAD: tuple[DeltaKind, bytes] = "Updated", b"no line of JSON begins like this"


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
        self._keep = managed_fields
        self._known = False
        """Whether the kind of what comes was looked at. A stream brings one kind."""

    def decode(self, line: bytes) -> Delta | Bookmark:
        """The delta or bookmark on ``line``.

        Raises:
            ServerError: the line is an ERROR event, with the server's Status in it.
            ProtocolError: the line is no watch event.
        """
        kind, head = _HEADS.get(line[9:10], _NO_HEAD)
        # Without these it has white space where servers write none, or it is something else.
        if not (line.startswith(head) and line.endswith(_ENDS)):
            return self._decode_envelope(line)
        try:
            metadata = _read_change(line).object.metadata
        except RecursionError:
            metadata = self._metadata_of_nested(line)
        except UNREADABLE:
            return self._decode_envelope(line)
        if not self._known:
            self._check_kind(line)
        end = len(line) - (2 if line.endswith(b"\n") else 1)
        obj = build(self._resource, metadata, line, len(head) - 1, end, keep=self._keep)
        return Delta(kind, obj)

    def _metadata_of_nested(self, line: bytes) -> Metadata:
        try:
            return read_nested(_read_change, line).object.metadata
        except UNREADABLE as error:
            raise self._no_event(line, error) from error

    def _check_kind(self, line: bytes) -> None:
        """Of another kind than the one watched nothing may be cached (client-go skips it)."""
        try:
            kind = read_nested(_read_kind, line).object.kind
        except UNREADABLE as error:
            raise self._no_event(line, error) from error
        if kind not in ("", self._resource.kind, "PartialObjectMetadata"):
            said = f"the watch of {self._resource} brings objects of kind {one_line(kind, 80)}"
            raise ProtocolError(said, phase="watch")
        self._known = True

    def _decode_envelope(self, line: bytes) -> Delta | Bookmark:
        """Everything that isn't a change in the server's own spelling."""
        try:
            envelope = _read_envelope(line)
            if envelope.type == "BOOKMARK":
                self.bookmarks += 1
                return _bookmark(_read_bookmark(envelope.object).metadata)
            if envelope.type == "ERROR":
                raise server_error(read_status(bytes(envelope.object)), phase="watch")
            return Delta(_KINDS[envelope.type], self._build(bytes(envelope.object)))
        except KeyError as error:
            said = f"a watch event of unknown type {one_line(str(error), 80)}"
            raise ProtocolError(said, phase="watch") from None
        except UNREADABLE as error:
            raise self._no_event(line, error) from error

    def _no_event(self, line: bytes, error: Exception) -> ProtocolError:
        size = len(line.removesuffix(b"\n"))
        said = f"a line of {size} bytes in the watch of {self._resource} is no event: {error}"
        return ProtocolError(said, phase="watch")

    def _build(self, raw: bytes) -> KubeObject:
        metadata = read_body(raw).metadata
        return build(self._resource, metadata, raw, 0, len(raw), keep=self._keep)


def _bookmark(metadata: _BookmarkMetadata) -> Bookmark:
    """The mark of a WatchList's end says exactly ``"true"``, as client-go asks of it. Whatever else
    is annotated means nothing.
    """
    said = metadata.annotations
    if said is UNSET or _END_MARK not in bytes(said):
        return Bookmark(metadata.resourceVersion)
    try:
        annotations = _read_annotations(said)
    except UNREADABLE:
        return Bookmark(metadata.resourceVersion)
    return Bookmark(metadata.resourceVersion, bytes(annotations.get(_END, b"")) == b'"true"')


PORTION = 16384
"""Bytes to take between two looks at the clock where a program's code runs for each object: five
pods. A chunk may have hundreds of objects; to look after each would cost as much as a model does.
"""


class InitialState:
    """The objects that a WatchList has shown so far."""

    def __init__(self, reuse: Callable[[KubeObject], KubeObject]) -> None:
        """Nothing yet. ``reuse`` gives an equal object that is in memory already, if there is."""
        self._objects: dict[ObjectKey, KubeObject] = {}
        self._reuse = reuse

    def apply(self, delta: Delta) -> None:
        """One object was shown, changed or went."""
        obj = delta.obj
        if delta.kind == "Deleted":
            self._objects.pop(obj.key, None)
        else:
            self._objects[obj.key] = self._reuse(obj)

    def objects(self) -> Sequence[KubeObject]:
        """All of them."""
        return list(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def __repr__(self) -> str:
        return f"<InitialState objects={len(self)}>"


class Intake:
    """What one watch has brought."""

    def __init__(
        self,
        resource: Resource,
        *,
        initial: InitialState | None = None,
        managed_fields: bool = False,
        line_cap: int = LINE_CAP,
        keep: Keep | None = None,
    ) -> None:
        """A watch that has brought nothing yet.

        Args:
            resource: what is watched.
            initial: where its initial state is put together; ``None`` for a plain watch.
            managed_fields: whether objects keep their managedFields.
            line_cap: the longest event, in bytes, that is accepted.
            keep: what makes of an object what is kept of it; ``None`` for the object itself.
        """
        self.live: list[Delta | Bookmark] = []
        """What came and wasn't taken yet; of a WatchList, what came behind the mark."""
        self._initial = initial
        self._mark: Bookmark | None = None
        self._ignored = 0
        self._received = 0
        self._splitter = LineSplitter(cap=line_cap)
        self._decoder = EventDecoder(resource, managed_fields=managed_fields)
        self._decode = self._decoder.decode if keep is None else self._keeping(keep)
        self._quick = keep is None

    def portions(self, chunk: bytes) -> Iterable[bytes]:
        """``chunk`` in pieces, each of which is quick to ``feed``: all of it, unless a model or a
        transform has to look at each object.
        """
        if self._quick:
            return (chunk,)
        return (chunk[at : at + PORTION] for at in range(0, len(chunk), PORTION))

    def feed(self, chunk: bytes) -> None:
        """Take a chunk.

        Raises:
            ServerError: it has an ERROR event. What came before it was taken.
            ProtocolError: it has something that is no event. The same.
        """
        lines = self._splitter.feed(chunk)
        self._received += len(lines)
        if self._initial is not None and self._mark is None:
            lines = self._feed_initial(self._initial, lines)
        decode, append = self._decode, self.live.append
        for line in lines:
            append(decode(line))

    def _feed_initial(self, initial: InitialState, lines: list[bytes]) -> list[bytes]:
        """Put the initial state together; the lines behind the mark."""
        for number, line in enumerate(lines, 1):
            entry = self._decode(line)
            if isinstance(entry, Delta):
                initial.apply(entry)
                continue
            self._ignored = self._decoder.bookmarks
            if entry.ends_initial:
                self._mark = entry
                return lines[number:]
        return []

    def _keeping(self, keep: Keep) -> Callable[[bytes], Delta | Bookmark]:
        decode = self._decoder.decode

        def kept(line: bytes) -> Delta | Bookmark:
            entry = decode(line)
            return Delta(entry.kind, keep(entry.obj)) if isinstance(entry, Delta) else entry

        return kept

    def take(self) -> tuple[list[Delta | Bookmark], int]:
        """What came live since it was asked last, and how many bookmarks are in it.

        The mark behind the initial state is no bookmark, and neither is any before it.
        """
        taken, self.live = self.live, []
        bookmarks, self._ignored = self._decoder.bookmarks - self._ignored, self._decoder.bookmarks
        return taken, bookmarks

    def events(self) -> int:
        """How many events of any kind have come since it was asked last."""
        events, self._received = self._received, 0
        return events

    def take_state(self) -> tuple[Sequence[KubeObject], str] | None:
        """The initial state and its version: once, when it is complete."""
        if self._initial is None or self._mark is None:
            return None
        state, self._initial = self._initial, None
        return state.objects(), self._mark.resource_version

    @property
    def pending(self) -> int:
        """Bytes of half an event. If the stream ends now they are dropped."""
        return self._splitter.pending

    def __repr__(self) -> str:
        state = f" {self._initial!r}" if self._initial is not None else ""
        return f"<Intake waiting={len(self.live)}{state}>"
