"""Instrumentation: interfaces by which informers, queues and controllers are measured and traced.

Counts are reported as they happen; gauges are read when a metrics system collects them. A span is
reported before its work begins, and can make itself current, so that what happens meanwhile (a
database query of a handler) belongs to it.

All label values are few and fixed: an informer's label (its resource and scope, without selector
values), verbs, causes, phases, names of exception classes, and the names that the program gave to
its listeners, queues and controllers. Object names, URLs and server messages are never passed,
because the number of their values is unbounded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

from msgspec import Struct

from aioinformer._core.listwatch.reflector_requests import Verb


class Levels(Struct, frozen=True, kw_only=True):
    """The gauges of an informer at one moment."""

    resource_version: int
    """The applied version; 0 before the initial list, and where versions are no numbers."""
    freshness_seconds: float
    """Seconds since the last proof that the cache is up to date: an event, a bookmark, a list;
    ``inf`` before the first. Alert on this number, which grows with every kind of failure."""
    queue_entries: int
    """Deltas received and not applied yet."""
    queue_bytes: int
    """Bytes of these deltas."""
    objects: int
    """Cached objects."""
    json_bytes: int
    """Bytes of JSON of the cached objects. A cache takes about 400 bytes an object besides."""
    rejected: int
    """Objects whose newest version was rejected, or could not be read."""
    pending: int
    """Live events that wait in the mailboxes of all listeners."""
    blocking: int
    """Listeners with ``overflow="block"`` that keep the watch from being read."""
    synced: bool
    """True once the initial list was applied."""


ReadLevels: TypeAlias = Callable[[], Levels]
"""Returns an informer's gauges, in any thread and at any time between ``informer_started`` and
``informer_ended``. Two of its numbers may be of different moments."""


class QueueStatistics(Struct, frozen=True, kw_only=True):
    """Statistics of a work queue. Times are in seconds; counts are since the queue was made."""

    normal: int
    """Keys that wait at normal priority."""
    low: int
    """Keys that wait at low priority."""
    delayed: int
    """Keys that wait for their time."""
    processing: int
    """Keys that are being processed."""
    adds: int
    """Runs that were requested. An add of a key that waits already requests no run."""
    merged: int
    """Adds that requested no run, since the key waited already."""
    retries: int
    """Rate-limited adds. client-go counts every delayed add, periodic ones included."""
    dropped: int
    """Runs that were discarded by a shutdown: of keys added afterwards or delayed at the time, and,
    with ``drop=True``, of keys that waited."""
    done: int
    """Runs that have ended."""
    waited_mean: float
    """Mean time that the keys which were handed out had waited since their first add, delays not
    counted. The rerun of a key waits from the end of the run before it."""
    waited_max: float
    """The maximum of these times."""
    waiting_longest: float
    """Seconds that the next key of either priority has waited by now; 0 if none waits. A key behind
    it may have waited longer if its priority was raised or if it is a rerun."""
    worked_mean: float
    """Mean duration of a run."""
    worked_max: float
    """The maximum of these times."""
    running_longest: float
    """Duration by now of the longest run under way. The duration grows if a run is stuck."""
    unfinished_seconds: float
    """The sum of the durations by now of all runs under way."""

    @property
    def depth(self) -> int:
        """Keys that wait to be handed out: client-go's depth."""
        return self.normal + self.low


ReadQueue: TypeAlias = Callable[[], QueueStatistics]
"""Reads a queue's statistics, in any thread. Two numbers may be of different moments."""


class Metrics:
    """Receives the numbers of informers, queues and controllers; override the methods you need.

    Every method of this class does nothing. Each is called in the event loop, in the middle of
    other work: it must return at once and must not raise. Times are in seconds, sizes in bytes.
    ``informer`` is the informer's label; several informers may have the same label, because their
    selectors are no part of it.
    """

    def request_started(self, informer: str, verb: Verb) -> None:
        """Count a list, watch or freshness check that starts. The request may have to wait."""

    def request_ended(self, informer: str, verb: Verb, cause: str, seconds: float) -> None:
        """Count a request that has ended, ``seconds`` after it was requested.

        ``cause`` is ``cancelled`` or the name of its outcome in lower case, such as ``complete``,
        ``ended`` or ``unreachable``; about two dozen values in all.
        """

    def received(self, informer: str, verb: Verb, size: int, events: int) -> None:
        """Count a chunk of an answer and the objects or events that it completed: keep it cheap."""

    def other_shards(self, informer: str, count: int) -> None:
        """Count dropped objects and events of other shards, for each chunk that has some."""

    def failed(self, informer: str, phase: str, error: str) -> None:
        """Count an abnormal end in a phase; ``error`` is the name of the exception class."""

    def handled(self, informer: str, listener: str, seconds: float, calls: int) -> None:
        """Record how long the handler ``listener`` took for its last ``calls`` calls, of which
        there may be several if the handler isn't async.
        """

    def handler_failed(self, informer: str, listener: str, error: str) -> None:
        """Count a handler that raised, timed out or was ended; ``error`` as for ``failed``."""

    def handler_blocked(self, informer: str, listener: str, seconds: float) -> None:
        """Count a call of a handler that has held the event loop for more than 250 ms.

        Called after each such step of a call, with its seconds.
        """

    def informer_started(self, informer: str, levels: ReadLevels) -> None:
        """Add an informer, whose gauges ``levels`` returns from now on."""

    def informer_ended(self, informer: str, levels: ReadLevels) -> None:
        """Remove an informer. ``levels`` is equal to the one that it started with."""

    def queue_started(self, queue: str, read: ReadQueue) -> None:
        """Add a work queue, whose numbers ``read`` returns from now on."""

    def queue_ended(self, queue: str, read: ReadQueue) -> None:
        """Remove a work queue that is shut down and empty.

        ``read`` is equal to the one that the queue started with; now it returns the last numbers.
        """

    def worked(self, queue: str, waited: float, seconds: float) -> None:
        """Record how long a finished key had waited in the queue, and how long its work took."""

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """Count a run of a reconciler.

        ``result`` is one of a handful of words, such as ``success``, ``requeue``,
        ``requeue_after``, ``error``, ``permanent_error``, ``temporary_error`` or ``timeout``.
        """

    def reconcile_blocked(self, controller: str, seconds: float) -> None:
        """Count a run of a reconciler that has held the event loop, as for ``handler_blocked``."""

    def leadership(self, lease: str, leads: bool) -> None:
        """Record that a candidate for the Lease ``lease`` leads from now on, or no longer does."""

    def shards_held(self, group: str, shards: int) -> None:
        """Record the number of shards of a group on which this member works from now on."""

    def shard_moved(self, group: str, kind: str) -> None:
        """Count a shard that was ``acquired``, ``released`` or ``lost``, or is ``stopping``."""

    def shard_unowned(self, group: str, seconds: float) -> None:
        """Record for how long a shard that this member acquired had no owner."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class Span(Protocol):
    """The span of a piece of a program's own work: one call of a handler, or one reconcile."""

    def current(self) -> AbstractContextManager[object]:
        """Return a context in which this span is current, entered twice for a function that is
        called and then awaited, perhaps in another task.
        """
        ...

    def ended(self, error: BaseException | None) -> None:
        """End the span; the program's ``error`` may contain any text, but its class is safe."""


BeginSpan: TypeAlias = Callable[[str], Span]
"""Begins the span of a handler's call for a kind of event: ``added``, ``updated``, ``deleted``."""


class InformerTrace:
    """Receives the requests of one informer, one after the other, in one task; does nothing."""

    def asked(self, verb: Verb) -> None:
        """Begin the span of a request, which is current until ``ended``.

        ``list`` and ``watchlist`` also begin the read of a whole state, unless one is under way:
        the pages of a list, and a request that is repeated, belong to one state.
        """

    def received(self, size: int, events: int) -> None:
        """Record a chunk of the answer. Called for each chunk: keep it cheap."""

    def complete(self) -> None:
        """Record that the whole state was read, or that a watch has opened. The request has ended
        just before, or goes on, as the watch of a WatchList does.
        """

    def ended(self, cause: str, error: Exception | None) -> None:
        """End the span; ``cause`` is that of ``Metrics.request_ended``, ``error`` has no secret."""

    def closed(self) -> None:
        """End everything that has not ended: the informer has. Called in any task."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class Tracing(Protocol):
    """Makes spans.

    Every method is called in the event loop, in the middle of other work: it must return at once
    and must not raise. The spans of handlers that run in threads are used in these threads.
    """

    def informer(self, informer: str, resource: str) -> InformerTrace:
        """Return the trace of an informer with that label, which reads that resource."""
        ...

    def handler(self, informer: str, listener: str) -> BeginSpan | None:
        """Return what begins the spans of a handler's calls; ``None`` for no spans, at no cost."""
        ...

    def reconcile(self, controller: str) -> Span:
        """Return the span of one run of a controller's reconciler, which begins now."""
        ...
