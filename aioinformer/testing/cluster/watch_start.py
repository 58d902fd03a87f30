"""How a watch starts: with all there is, with what it missed, with an error, or with nothing.

The counterpart of ``pages`` for watches; recordings 30 to 43, 61 and 64. What can't be served is
said in the stream, after a head that says 200.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from aioinformer.errors import ServerError
from aioinformer.testing.cluster.pages import parse_version
from aioinformer.testing.cluster.selection import Selection
from aioinformer.testing.cluster.storage import Collection, Storage
from aioinformer.testing.cluster.watches import Watch, WatchSchedule
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import ObjectEncoder, encode_error_event

__all__ = ["WatchQuery", "open_watch"]


@dataclass(frozen=True, slots=True)
class WatchQuery:
    """The query parameters of a watch, as text where the server reads text."""

    resource_version: str = ""
    match: str = ""
    bookmarks: bool = False
    watch_list_supported: bool = True
    """Whether the storage can serve a WatchList."""
    send_initial_events: bool | None = None
    """``None`` is what an old client sends: yes, iff it has no resourceVersion to start from."""


def open_watch(
    storage: Storage,
    collection: Collection,
    selection: Selection,
    query: WatchQuery,
    *,
    encoder: ObjectEncoder,
    schedule: WatchSchedule,
    buffer: int,
) -> Watch:
    """A watch with its first lines, attached to the storage.

    Raises:
        Invalid: options that exclude each other.
        ServerFailure: the resourceVersion is no number.
    """
    _check_query(query)
    version = parse_version(query.resource_version, for_watch=True)
    initial = query.send_initial_events
    if initial is None:
        initial = version == 0  # the server's SetListOptionsDefaults; recordings 35, 36 and 52
    watch = Watch(
        collection.encoding,
        selection,
        encoder=encoder,
        start_version=max(version, storage.version),
        schedule=schedule,
        buffer=buffer,
        current_version=lambda: storage.version,
        on_close=storage.detach,
    )
    refusal = _start_error(storage, version, initial=initial)
    if query.send_initial_events and not query.watch_list_supported:
        refusal = statuses.unsupported_watch_list()
    if refusal is not None:
        watch.set_initial_lines([encode_error_event(statuses.status_document(refusal.status))])
        watch.finish()
        return watch
    storage.attach(watch)
    if initial:
        marked = query.bookmarks
        watch.set_initial_lines(
            _encode_initial_events(storage, collection, selection, encoder, end_bookmark=marked)
        )
    elif version:
        watch.set_initial_lines(
            _encode_missed_events(storage, collection, selection, encoder, version)
        )
    return watch


def _check_query(query: WatchQuery) -> None:
    """The combinations that ``ValidateListOptions`` of apimachinery forbids (recording 34)."""
    name, required = "resourceVersionMatch", "NotOlderThan"
    if query.match and query.send_initial_events is None:
        text = f"{name} is forbidden for watch unless sendInitialEvents is provided"
        raise statuses.invalid_option(name, text)
    if query.send_initial_events is not None and query.match != required:
        raise statuses.invalid_watch_list_match(query.match)


def _start_error(storage: Storage, version: int, *, initial: bool) -> ServerError | None:
    """Why a watch ends with its first event."""
    if initial:
        newest = storage.version
        return statuses.too_large_version(version, newest) if version > newest else None
    oldest = storage.change_log.oldest_watchable
    return statuses.too_old_version(version, oldest) if 0 < version < oldest else None


def _encode_initial_events(
    storage: Storage,
    collection: Collection,
    selection: Selection,
    encoder: ObjectEncoder,
    *,
    end_bookmark: bool,
) -> Iterable[bytes]:
    """ADDED for all there is, in key order; the state is that of now, whenever it is read."""
    state = collection.snapshot_before((), prefix=selection.prefix)
    there = [state[key] for key in state.keys]
    lines = (encoder.encode_event("ADDED", stored) for stored in there if selection.matches(stored))
    end = encoder.encode_bookmark(storage.version, initial_events_end=True)
    return chain(lines, [end] if end_bookmark else [])


def _encode_missed_events(
    storage: Storage,
    collection: Collection,
    selection: Selection,
    encoder: ObjectEncoder,
    version: int,
) -> Iterator[bytes]:
    """What happened since, as this selection sees it."""
    changes = list(storage.change_log.changes_since(version, collection.encoding.resource))
    lines = (
        change.encode_event(
            encoder,
            selected_before=selection.matches(change.old),
            selected_after=selection.matches(change.new),
        )
        for change in changes
    )
    return filter(None, lines)
