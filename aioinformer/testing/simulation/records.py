"""What is written down of a history: one class for each kind of thing that happens.

Every record carries a number: the order in which things happened, which virtual time doesn't
give, since much happens at one moment. Objects are written down as ``(uid, version, value)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.requests import Verb
from aioinformer._core.listwatch.transitions import Phase
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer.testing.simulation.plan import Fault, ListenerSpec

__all__ = [
    "NEVER",
    "Broke",
    "Closed",
    "Ending",
    "Joined",
    "Kept",
    "Latch",
    "Left",
    "Logged",
    "Record",
    "Request",
    "Restored",
    "Sample",
    "State",
    "Taken",
    "Told",
    "Trouble",
    "Version",
    "Write",
]


NEVER = float("inf")


class Version(NamedTuple):
    """Which object, and which state of it."""

    uid: str
    number: int
    """The resourceVersion."""
    value: int = 0
    """What was written. A server that is restored from a backup gives versions a second time."""

    def __str__(self) -> str:
        return f"{self.uid[:8]}@{self.number}"


State: TypeAlias = Mapping[ObjectKey, Version]


@dataclass(slots=True)
class Record:
    """Something happened."""

    order: int
    time: float


@dataclass(slots=True)
class Write(Record):
    """The server stored or removed an object; its log."""

    version: int
    key: ObjectKey
    uid: str
    app: str
    node: str
    gone: bool
    value: int = 0

    def __str__(self) -> str:
        if self.gone:
            return f"server removes {self.key} {self.uid[:8]}@{self.version}"
        return f"server stores {self.key} {self.uid[:8]}@{self.version} {self.app} {self.node}"


@dataclass(slots=True)
class Kept(Record):
    """A backup was made."""

    version: int

    def __str__(self) -> str:
        return f"backup of rv={self.version}"


@dataclass(slots=True)
class Restored(Record):
    """The server has gone back to a backup."""

    kept: Kept
    version: int
    """The newest resourceVersion before."""

    def __str__(self) -> str:
        return f"server goes back from rv={self.version} to rv={self.kept.version}"


@dataclass(slots=True)
class Broke(Record):
    """A fault began."""

    fault: Fault

    def __str__(self) -> str:
        fault = self.fault
        on = fault.target or "all"
        return (
            f"fault {fault.kind} lasting={fault.lasting:g} amount={fault.amount} "
            f"retry_after={fault.retry_after} share={fault.share:g} on {on}"
        )


@dataclass(slots=True)
class Request(Record):
    """An informer asked the server for something."""

    informer: str
    kind: Verb
    query: str
    length: float = 0.0
    """Seconds that a watch was asked to last."""
    since: int = 0
    """The version after which it was asked to start."""
    ended: float | None = None
    """When its context was left."""
    failure: str = ""
    """The error that ended it, as ``Type: text``."""
    expired: bool = False
    """Whether that was a 410, or 'too large': the first of an outage needs no wait."""
    retry_after: float = 0.0
    changes: int = 0
    """Events that were sent, but for bookmarks."""
    answered: float = NEVER
    """When the head of the answer came."""
    settled: int = 0
    """The number of the moment when a whole state was through; 0 if none was."""
    bookmarks: list[float] = field(default_factory=list[float])
    """When bookmarks were through, the mark behind an initial state left out."""
    heard: float = 0.0
    """When its client was last through with something, and ready for more."""
    silent: float | None = None
    """Since when nothing comes, and nothing will."""

    def __str__(self) -> str:
        return f"{self.informer} asks: {self.kind} {self.query}"


@dataclass(slots=True)
class Closed(Record):
    """A request ended."""

    request: Request

    def __str__(self) -> str:
        asked = self.request
        how = asked.failure or "in order"
        return f"{asked.informer} {asked.kind} of {asked.time:.6f} ended: {how}"


@dataclass(slots=True)
class Taken(Record):
    """A reflector looked up what follows: a row of its table."""

    informer: str
    phase: Phase
    outcome: Outcome
    delay: float
    request: Request
    """The one that has ended."""
    version: str
    """The last version that the reflector knew then."""
    cadence: float | None
    """How far apart it took bookmarks to be."""

    @property
    def row(self) -> tuple[Phase, Outcome]:
        """Where it is in the table."""
        return self.phase, self.outcome

    def __str__(self) -> str:
        row = f"{self.phase.name} {self.outcome.name}"
        return f"{self.informer} finds: {row}, knows rv={self.version}, waits {self.delay:.6f} s"


@dataclass(slots=True)
class Trouble(Record):
    """The error hook was told of something."""

    informer: str
    phase: str
    cause: str
    error: str

    def __str__(self) -> str:
        return f"{self.informer} reports: {self.phase} {self.cause}: {self.error}"


@dataclass(slots=True)
class Told(Record):
    """A listener was told of an event."""

    listener: str
    what: Literal["added", "updated", "deleted"]
    key: ObjectKey
    version: Version
    old: Version | None
    note: str
    """``initial``, ``resync``, or the reason of a deletion."""
    cached: Version | None
    """What the cache held under that key at that moment."""
    returned: int = 0
    """The number of the moment when the handler was through with it; 0 if it never was."""
    until: float = NEVER
    """When that was."""
    raised: str = ""
    merged: bool = False
    """Whether it may have taken in others, in a mailbox that was too full."""

    def __str__(self) -> str:
        since = f" from {self.old}" if self.old else ""
        note = f" ({self.note})" if self.note else ""
        return f"{self.listener} hears: {self.what} {self.key} {self.version}{since}{note}"


@dataclass(slots=True)
class Clumsy(Record):
    """A listener's filter raised."""

    listener: str

    def __str__(self) -> str:
        return f"the filter of {self.listener} raises"


@dataclass(slots=True)
class Joined(Record):
    """A listener joined."""

    listener: ListenerSpec
    cached: State | None
    """What was cached then; ``None`` before the first full state."""

    def __str__(self) -> str:
        there = "nothing yet" if self.cached is None else f"{len(self.cached)} objects"
        return f"{self.listener.name} joins {self.listener.informer}, which has {there}"


@dataclass(slots=True)
class Left(Record):
    """A listener was removed; nothing may be told to it from here on."""

    listener: str
    waited: bool = False
    """Whether the calls in flight were waited for."""

    def __str__(self) -> str:
        return f"{self.listener} leaves"


class Latch(NamedTuple):
    """A listener at the moment of a sample."""

    listener: str
    synced: bool
    pending: int
    limit: int
    batches: int
    """Undelivered batches of its mailbox beside the live events: replays, diffs, resyncs."""
    dropping: bool
    """Whether some of the live events will be dropped, as of objects that went."""
    errors: int


@dataclass(slots=True)
class Sample(Record):
    """What an informer showed at one moment."""

    informer: str
    synced: bool
    version: str
    state: State
    index: Mapping[str, frozenset[ObjectKey]] | None
    """What each value of its index led to; not in every sample."""
    rejected: frozenset[str]
    condition: str
    error: str
    retry_in: float | None
    blocked_by: tuple[str, ...]
    rewinds: int
    queued: int
    """Entries in its queue."""
    latches: tuple[Latch, ...]

    def __str__(self) -> str:
        return (
            f"{self.informer} shows: {self.condition} synced={self.synced} rv={self.version} "
            f"objects={len(self.state)} queued={self.queued} error={self.error or 'none'}"
        )


@dataclass(slots=True)
class Logged(Record):
    """The library logged a warning, or worse."""

    level: str
    message: str

    def __str__(self) -> str:
        return f"log {self.level}: {self.message}"


@dataclass(slots=True)
class Ending(Record):
    """What was left when everything had been asked to end."""

    tasks: tuple[str, ...] = ()
    requests: int = 0
    """Contexts of lists and watches that were not left."""
    waits: tuple[str, ...] = ()
    """Waits that did not end."""
    complaints: tuple[str, ...] = ()
    """What the event loop's exception handler was called with."""
    failures: tuple[str, ...] = ()
    """With what informers ended, if not by cancellation."""

    def __str__(self) -> str:
        return f"end: {len(self.tasks)} tasks, {self.requests} requests, {len(self.waits)} waits"
