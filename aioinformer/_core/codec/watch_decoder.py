"""The decoder of a watch: bytes to deltas, bookmarks and the initial list.

The initial state of a WatchList arrives as single additions in no order, mixed with changes that
happen meanwhile. It is meaningful only as a whole, so the decoder collects the objects until the
end mark; a stream that ends before the mark leaves nothing behind. A watch can't be resumed from
the versions before the mark (client-go's rule for synthetic events).
"""

from __future__ import annotations

from collections.abc import Callable
from sys import maxsize

from msgspec import Struct

from aioinformer._core.codec.event_decoder import EXCLUDED, EventDecoder
from aioinformer._core.codec.initial_list import InitialList
from aioinformer._core.codec.line_splitter import LINE_CAP, Line, LineSplitter
from aioinformer._core.codec.shape import Converter
from aioinformer._core.objects.decode_errors import discard_input
from aioinformer._core.objects.deltas import Bookmark, Delta
from aioinformer._core.objects.object_key import Admit
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import FetchError, UnexpectedObject

SLICE_BYTES = 16384
"""Bytes to decode between two reads of the clock where a program's code runs for each object: five
pods. A read after each of hundreds of objects would cost as much as a model does."""


class WatchBatch(Struct):
    entries: list[Delta | Bookmark]
    """The changes and bookmarks for the queue; of a WatchList, those after its end mark."""
    bookmarks: int
    event_count: int
    """Events of any kind, in ``entries`` or not."""
    resource_version: str = ""
    initial_list: InitialList | None = None
    """The complete initial list, in the batch that contains its end mark."""
    unexpected: UnexpectedObject | None = None
    """The first event that was ignored, because its object is of another kind or namespace."""
    ignored: int = 0
    excluded: int = 0
    """Events of objects that aren't admitted. If the last event is such a one, the last entry is a
    bookmark with its version."""
    error: FetchError | None = None
    """The ERROR event or the malformed line at which decoding ended. The entries came before it."""


class WatchDecoder:
    def __init__(
        self,
        resource: Resource,
        *,
        initial: InitialList | None = None,
        managed_fields: bool = False,
        namespace: str | None = None,
        line_cap: int = LINE_CAP,
        converter: Converter | None = None,
        admit: Admit | None = None,
        validate: bool = True,
    ) -> None:
        """Create the decoder of a watch that has brought nothing yet.

        ``initial`` collects the initial list of a WatchList; ``line_cap`` is the longest event in
        bytes; ``converter`` converts an object to its stored form and needs a valid body. See
        ``EventDecoder`` for the other arguments.
        """
        self.slice_bytes = maxsize if converter is None else SLICE_BYTES
        """The most bytes to pass to ``feed`` at once, so that a call takes little time."""
        self._initial = initial
        self._splitter = LineSplitter(cap=line_cap)
        self._decoder = EventDecoder(
            resource,
            managed_fields=managed_fields,
            namespace=namespace,
            admit=admit,
            validate=validate or converter is not None,
        )
        self._decode = (
            self._decoder.decode if converter is None else self._with_converter(converter)
        )

    def feed(self, data: bytes) -> WatchBatch:
        """Decode the events that ``data`` completes.

        An error doesn't discard the events before it, so it is returned in the batch. An event of
        another kind or namespace is ignored, as in client-go, but an initial list with such an
        object is an error: the list isn't the one that was requested, and must replace nothing.
        """
        batch, decoder = WatchBatch([], 0, 0), self._decoder
        bookmarks, decoder.resource_version = decoder.bookmarks, ""
        excluded = decoder.excluded
        try:
            lines = self._splitter.find_lines(data)
            batch.event_count = len(lines)
            if self._initial is not None:
                lines = self._feed_initial(self._initial, lines, batch)
                # Bookmarks and versions up to the end mark don't count.
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
        if decoder.excluded > excluded:
            batch.excluded = decoder.excluded - excluded
            self._remove_excluded(batch)
        return batch

    def finish(self) -> FetchError | None:
        """Return the error of a watch that ended, if what it brought was a list; else ``None``."""
        rest = self._splitter.take_rest()
        return self._decoder.list_error(rest) if rest else None

    def _remove_excluded(self, batch: WatchBatch) -> None:
        """Remove the places of excluded changes, and keep the version of the last one.

        Only a change at the end would be missed: a later entry has a later version.
        """
        entries = batch.entries
        ends_excluded = bool(entries) and entries[-1] is EXCLUDED
        batch.entries = [entry for entry in entries if entry is not EXCLUDED]
        if ends_excluded:
            batch.entries.append(Bookmark(self._decoder.resource_version))

    def _feed_initial(
        self, initial: InitialList, lines: list[Line], batch: WatchBatch
    ) -> list[Line]:
        decode = self._decode
        for number, (source, start, end) in enumerate(lines, 1):
            entry = decode(source, start, end)
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
        """Bytes of the event under way, discarded if the stream ends now."""
        return self._splitter.buffered

    def __repr__(self) -> str:
        state = f" {self._initial!r}" if self._initial is not None else ""
        return f"<WatchDecoder buffered={self.buffered} B{state}>"
