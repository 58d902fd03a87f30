"""One watch, from its bytes to what the queue takes: the initial state first, if there is one.

The initial state of a WatchList comes as single additions in no order, mixed with what changes
meanwhile. It means something only as a whole, so it is put together here, beside everything, up
to the mark behind it; a stream that ends before leaves nothing behind. The versions of what came
before the mark are no place to resume from (client-go's rule for synthetic events).

When to give a stream up is ``liveness``'; what to do about an error is ``rules``'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from aioinformer._core.deltas import Bookmark, Delta
from aioinformer._core.objects import KubeObject, ObjectKey
from aioinformer._core.resources import Resource
from aioinformer._core.shapes import Keep
from aioinformer._core.wire import LINE_CAP, EventDecoder, LineSplitter

__all__ = ["InitialState", "Intake"]

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
