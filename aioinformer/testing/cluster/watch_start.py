"""The start of a watch: from the present state, from a past version, or with an error.

A watch without a resourceVersion begins with an ADDED event for each object. A watch from a past
version begins with the changes since then. A watch that can't be served is answered with 200 all
the same, and its first event is an ERROR with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from aioinformer.errors import ServerError
from aioinformer.testing.cluster.pages import parse_version
from aioinformer.testing.cluster.storage import Collection, Storage
from aioinformer.testing.cluster.watches import Watch, WatchSchedule, WatchView
from aioinformer.testing.wire import statuses, version_statuses
from aioinformer.testing.wire.encoding import encode_error_event
from aioinformer.testing.wire.selection import SelectorQuery
from aioinformer.testing.wire.tables import Include, ObjectForm

DEFAULT_WATCH_TIMEOUT = 1800.0
"""Seconds (``--min-request-timeout``). A real server adds up to as much again at random."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchQuery:
    """The options of a watch request, as ``WatchRequestOptions`` documents them."""

    selectors: SelectorQuery = field(default_factory=SelectorQuery)
    resource_version: str = ""
    match: str = ""
    bookmarks: bool = False
    send_initial_events: bool | None = None
    """``None`` if the client doesn't send the parameter: then initial events are sent if it names
    no resourceVersion."""
    timeout: float | None = None
    form: ObjectForm = "whole"
    include: Include = "Metadata"

    def schedule(self, now: float) -> WatchSchedule:
        """Return the schedule of this watch if it starts at ``now``."""
        lasting = DEFAULT_WATCH_TIMEOUT if self.timeout is None else self.timeout
        return WatchSchedule.start(now, lasting, bookmarks=self.bookmarks)


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """The limits that a cluster sets to each of its watches."""

    buffer: int
    """Lines that can wait to be taken; with one more the watch is dropped."""
    watch_lists: bool
    """True if the storage can serve a WatchList."""


def open_watch(
    storage: Storage,
    collection: Collection,
    view: WatchView,
    query: WatchQuery,
    *,
    now: float,
    limits: WatchLimits,
) -> Watch:
    """Return a watch with its first lines, attached to the storage.

    Raises:
        Invalid: options that exclude each other.
        ServerFailure: the resourceVersion is not a number.
    """
    _check_query(query)
    version = parse_version(query.resource_version, for_watch=True)
    watch = Watch(
        view,
        start_version=max(version, storage.version),
        schedule=query.schedule(now),
        buffer=limits.buffer,
        current_version=lambda: storage.version,
        on_close=storage.detach,
    )
    initial = query.send_initial_events
    if initial is None:
        initial = version == 0  # the server's SetListOptionsDefaults
    error = _find_start_error(storage, view, version, initial=initial)
    if query.send_initial_events and not limits.watch_lists:
        error = version_statuses.unsupported_watch_list()
    if error is not None:
        watch.set_initial_lines([encode_error_event(statuses.status_document(error.status))])
        watch.finish()
        return watch
    # The initial lines show the state of this call, and the attached watch every later change.
    storage.attach(watch)
    if initial:
        watch.set_initial_lines(
            _encode_initial_events(storage, collection, view, end_bookmark=query.bookmarks)
        )
    elif version:
        watch.set_initial_lines(_encode_missed_events(storage, view, version))
    return watch


def _check_query(query: WatchQuery) -> None:
    """Check for the combinations that ``ValidateListOptions`` of apimachinery forbids."""
    name, required = "resourceVersionMatch", "NotOlderThan"
    if query.match and query.send_initial_events is None:
        text = f"{name} is forbidden for watch unless sendInitialEvents is provided"
        raise statuses.invalid_option(name, text)
    if query.send_initial_events is not None and query.match != required:
        raise statuses.invalid_watch_list_match(query.match)


def _find_start_error(
    storage: Storage, view: WatchView, version: int, *, initial: bool
) -> ServerError | None:
    """Return the error that is the only event of a watch, or ``None`` if the watch can start."""
    if initial:
        newest = storage.version
        return version_statuses.too_large_version(version, newest) if version > newest else None
    # A version that is not reached yet is no error here: the watch waits for it without events.
    oldest = storage.change_log.oldest_watchable(view.resource)
    return version_statuses.too_old_version(version, oldest) if 0 < version < oldest else None


def _encode_initial_events(
    storage: Storage, collection: Collection, view: WatchView, *, end_bookmark: bool
) -> Iterable[bytes]:
    """Return an ADDED event for each object, in key order.

    Lines are encoded as the watch takes them, but always show the state of this call.
    """
    state = collection.snapshot_before((), prefix=view.selection.prefix)
    # The list holds the states of now: ``state`` reads the collection, which later writes change.
    present = [state[key] for key in state.keys]
    lines = (
        view.encoder.encode_event("ADDED", stored)
        for stored in present
        if view.selection.matches(stored)
    )
    end = view.encoder.encode_bookmark(storage.version, initial_events_end=True)
    return chain(lines, [end] if end_bookmark else [])


def _encode_missed_events(storage: Storage, view: WatchView, version: int) -> Iterator[bytes]:
    changes = list(storage.change_log.changes_since(version, view.resource))
    return filter(None, map(view.encode_change, changes))
