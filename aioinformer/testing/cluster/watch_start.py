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
from aioinformer.testing.cluster.watches import Schedule, Watch
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Form, error_line

__all__ = ["WatchOptions", "open_watch"]


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The query parameters of a watch, as text where the server reads text."""

    resource_version: str = ""
    match: str = ""
    bookmarks: bool = False
    watch_list: bool = True
    """Whether the storage can serve a WatchList."""
    send_initial_events: bool | None = None
    """``None`` is what an old client sends: yes, iff it has no resourceVersion to start from."""


def open_watch(
    storage: Storage,
    collection: Collection,
    selection: Selection,
    options: WatchOptions,
    *,
    form: Form,
    schedule: Schedule,
    buffer: int,
) -> Watch:
    """A watch with its first lines, attached to the storage.

    Raises:
        Invalid: options that exclude each other.
        ServerFailure: the resourceVersion is no number.
    """
    _check(options)
    version = parse_version(options.resource_version, watched=True)
    initial = options.send_initial_events
    if initial is None:
        initial = version == 0  # the server's SetListOptionsDefaults; recordings 35, 36 and 52
    watch = Watch(
        collection.encoding,
        selection,
        form=form,
        start=max(version, storage.version),
        schedule=schedule,
        buffer=buffer,
        current=lambda: storage.version,
        on_close=storage.detach,
    )
    refusal = _refusal(storage, version, initial=initial)
    if options.send_initial_events and not options.watch_list:
        refusal = statuses.watch_list_unserved()
    if refusal is not None:
        watch.open_with([error_line(statuses.document(refusal.status))])
        watch.finish()
        return watch
    storage.attach(watch)
    if initial:
        marked = options.bookmarks
        watch.open_with(_initial(storage, collection, selection, form, marked=marked))
    elif version:
        watch.open_with(_missed(storage, collection, selection, form, version))
    return watch


def _check(options: WatchOptions) -> None:
    """The combinations that ``ValidateListOptions`` of apimachinery forbids (recording 34)."""
    name, required = "resourceVersionMatch", "NotOlderThan"
    if options.match and options.send_initial_events is None:
        text = f"{name} is forbidden for watch unless sendInitialEvents is provided"
        raise statuses.invalid_option(name, text)
    if options.send_initial_events is not None and options.match != required:
        raise statuses.unmatched_watch_list(options.match)


def _refusal(storage: Storage, version: int, *, initial: bool) -> ServerError | None:
    """Why a watch ends with its first event."""
    if initial:
        newest = storage.version
        return statuses.too_large_version(version, newest) if version > newest else None
    oldest = storage.history.watchable
    return statuses.too_old_version(version, oldest) if 0 < version < oldest else None


def _initial(
    storage: Storage, collection: Collection, selection: Selection, form: Form, *, marked: bool
) -> Iterable[bytes]:
    """ADDED for all there is, in key order; the state is that of now, whenever it is read."""
    state = collection.view((), prefix=selection.prefix)
    there = [state[key] for key in state.keys]
    lines = (form.line("ADDED", stored) for stored in there if selection.matches(stored))
    end = form.bookmark(storage.version, initial_events_end=True)
    return chain(lines, [end] if marked else [])


def _missed(
    storage: Storage, collection: Collection, selection: Selection, form: Form, version: int
) -> Iterator[bytes]:
    """What happened since, as this selection sees it."""
    changes = list(storage.history.since(version, collection.encoding.resource))
    lines = (
        change.line(
            form,
            seen_before=selection.matches(change.old),
            seen_after=selection.matches(change.new),
        )
        for change in changes
    )
    return filter(None, lines)
