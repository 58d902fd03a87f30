"""What informers, work queues and controllers tell those who measure them: a protocol, and the
silence that is its default.

Counts are told as they happen; what goes up and down is asked for when somebody looks. The words
in them are few and fixed: an informer's label (its resource and scope, without selector values),
verbs, causes, phases, names of exception classes, and the names that the program gave to its
listeners, queues and controllers. Never an object's name or a server's sentence, of which there
is no end. How they are shown is an adapter's business (``aioinformer.adapters.prometheus``).

What informers and controllers tell those who make spans of what they do: three protocols.

Metrics count; a trace shows which request led to what, and how long each part took. So it is told
of the beginning as well, before anything happens, and may make itself current, so that what is
done meanwhile (an HTTP request, a query of the handler's) belongs to it. What a span looks like
and where it goes is an adapter's business (``aioinformer.adapters.opentelemetry``).

The words are those of ``metrics``: never an object's name, a selector or a URL.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from aioinformer._core.listwatch.requests import Verb

if TYPE_CHECKING:
    from aioinformer._core.controllers.queue_items import ReadQueue

__all__ = [
    "BeginSpan",
    "InformerTrace",
    "Levels",
    "Metrics",
    "NoMetrics",
    "ReadLevels",
    "Span",
    "Tracing",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """How an informer stands at one moment."""

    resource_version: int
    """Up to where the cache has applied everything; 0 before the first full state, and for a
    server whose versions are no numbers."""
    freshness_seconds: float
    """Seconds since the last proof that the cache is up to date: an event, a bookmark, a list.
    ``inf`` before the first. What to alert on: it grows whatever it is that went wrong."""
    queue_entries: int
    """Deltas received and not applied yet."""
    queue_bytes: int
    """Bytes of these."""
    objects: int
    """Cached objects."""
    rejected: int
    """Objects whose newest version was rejected, or could not be read."""
    pending: int
    """Live events that wait in the mailboxes of all listeners."""
    blocking: int
    """Listeners with ``overflow="block"`` that keep the watch from being read."""
    synced: bool
    """Whether the cache has held a full state."""


ReadLevels: TypeAlias = Callable[[], Levels]
"""Reads an informer's levels. It may be called in any thread and at any time between
``informer_started`` and ``informer_ended``: so it does nothing but read plain attributes and
lengths, never iterates over what the event loop may be changing, and tolerates that two of its
numbers are of different moments."""


class Metrics(Protocol):
    """Told what informers, queues and controllers do. Implement it to measure them in your own way.

    Every method is called in the event loop, in the middle of work: it must return at once and
    must not raise. Times are in seconds, sizes in bytes. ``informer`` is the informer's label;
    several informers may have the same (they differ in their selectors).
    """

    def request_started(self, informer: str, verb: Verb) -> None:
        """A list, a watch or a probe is asked for. It may have to wait for its turn first."""
        ...

    def request_ended(self, informer: str, verb: Verb, cause: str, seconds: float) -> None:
        """A request ended, ``seconds`` after it was asked for.

        ``cause`` is the name of its outcome in lower case, such as ``complete``, ``ended`` or
        ``unreachable``, or ``cancelled``; a dozen or two in all.
        """
        ...

    def received(self, informer: str, verb: Verb, size: int, events: int) -> None:
        """A chunk of an answer was read and understood: its bytes, and the objects or events
        that were complete with it. Called for each chunk: keep it cheap.
        """
        ...

    def failed(self, informer: str, phase: str, error: str) -> None:
        """Something ended abnormally in a phase; ``error`` is the name of its exception class."""
        ...

    def handled(self, informer: str, listener: str, seconds: float, calls: int) -> None:
        """A handler's last calls took so long together; several if it isn't async. ``listener`` is
        the name that the program gave it.
        """
        ...

    def handler_failed(self, informer: str, listener: str, error: str) -> None:
        """A handler raised, ran out of time or was ended; ``error`` as for ``failed``."""
        ...

    def informer_started(self, informer: str, levels: ReadLevels) -> None:
        """An informer is at work; its levels may be read from now on."""
        ...

    def informer_ended(self, informer: str, levels: ReadLevels) -> None:
        """It is no more. ``levels`` is equal to what it started with."""
        ...

    def queue_started(self, queue: str, read: ReadQueue) -> None:
        """A work queue of that name is in use; its numbers may be read from now on."""
        ...

    def queue_ended(self, queue: str, read: ReadQueue) -> None:
        """It is shut down and empty. ``read`` is equal to what it started with, and may be asked
        for the last numbers now.
        """
        ...

    def worked(self, queue: str, waited: float, seconds: float) -> None:
        """A key was done: how long it had waited in line, and how long it was worked on."""
        ...

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """A reconciler has returned or was ended.

        ``result`` is one of a handful of words, such as ``success``, ``requeue``,
        ``requeue_after``, ``error`` or ``timeout``; ``controller`` is the controller's name.
        """
        ...

    def leadership(self, lease: str, leads: bool) -> None:
        """A candidate for a Lease came to lead, or leads no more; ``lease`` is the name of the
        Lease that the program has given it.
        """
        ...


class NoMetrics:
    """Nobody measures."""

    __slots__ = ()

    def request_started(self, informer: str, verb: Verb) -> None:
        """Nobody listens."""

    def request_ended(self, informer: str, verb: Verb, cause: str, seconds: float) -> None:
        """Nobody listens."""

    def received(self, informer: str, verb: Verb, size: int, events: int) -> None:
        """Nobody listens."""

    def failed(self, informer: str, phase: str, error: str) -> None:
        """Nobody listens."""

    def handled(self, informer: str, listener: str, seconds: float, calls: int) -> None:
        """Nobody listens."""

    def handler_failed(self, informer: str, listener: str, error: str) -> None:
        """Nobody listens."""

    def informer_started(self, informer: str, levels: ReadLevels) -> None:
        """Nobody listens."""

    def informer_ended(self, informer: str, levels: ReadLevels) -> None:
        """Nobody listens."""

    def queue_started(self, queue: str, read: ReadQueue) -> None:
        """Nobody listens."""

    def queue_ended(self, queue: str, read: ReadQueue) -> None:
        """Nobody listens."""

    def worked(self, queue: str, waited: float, seconds: float) -> None:
        """Nobody listens."""

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """Nobody listens."""

    def leadership(self, lease: str, leads: bool) -> None:
        """Nobody listens."""

    def __repr__(self) -> str:
        return "<NoMetrics>"


class Span(Protocol):
    """A piece of a program's own work: one call of a handler, one reconcile."""

    def current(self) -> AbstractContextManager[object]:
        """What runs inside belongs to it. Entered twice, one after the other, where a function
        is called and then awaited, perhaps in another task.
        """
        ...

    def ended(self, error: BaseException | None) -> None:
        """It is over; ``error`` is what it raised. What that says is the program's, and may hold
        anything: its class is safe to show.
        """
        ...


BeginSpan: TypeAlias = Callable[[str], Span]
"""Begins one for a call of a handler, given the kind of the event: ``added``, ``updated`` or
``deleted``."""


class InformerTrace(Protocol):
    """The requests of one informer, one after the other. All is told in one task."""

    def asked(self, verb: Verb) -> None:
        """A request is asked for; it is current until it has ended. With ``list`` or
        ``watchlist`` a whole state begins to be read, unless one is being read: several pages, and
        what is asked again, are one state.
        """
        ...

    def received(self, size: int, events: int) -> None:
        """A chunk of its answer was read. Called for each chunk: keep it cheap."""
        ...

    def complete(self) -> None:
        """The whole state was read. The request has ended just before, or goes on, as the watch
        of a WatchList does. Told of every watch that opens as well.
        """
        ...

    def ended(self, cause: str, error: Exception | None) -> None:
        """The request has ended. ``cause`` is as for ``Metrics.request_ended``; ``error`` is the
        library's own, whose text holds no secret.
        """
        ...

    def closed(self) -> None:
        """The informer is no more, in whatever task: what has not ended ends."""
        ...


class Tracing(Protocol):
    """Makes spans. Every method is called in the event loop, in the middle of work: it must return
    at once and must not raise. Handlers that run in threads call theirs there.
    """

    def informer(self, informer: str, resource: str) -> InformerTrace:
        """Of the requests of an informer with that label, which reads that resource."""
        ...

    def handler(self, informer: str, listener: str) -> BeginSpan | None:
        """Of the calls of a handler; ``None`` for no spans, which then cost nothing."""
        ...

    def reconcile(self, controller: str) -> Span:
        """Of one run of a controller's reconciler, which begins now."""
        ...
