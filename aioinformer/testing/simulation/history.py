"""What happened in one run, written down in order: the evidence that the promises are judged by.

Every record carries a number: the order in which things happened, which virtual time doesn't
give, since much happens at one moment. Objects are written down as ``(uid, version)``. Nothing is
judged here, and nothing is formatted until somebody wants the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Literal, NamedTuple, TypeAlias

from aioinformer._core.objects import KubeObject, ObjectKey
from aioinformer.testing.simulation.plan import Fault, ListenerSpec, Plan

__all__ = [
    "Broke",
    "Closed",
    "Ending",
    "History",
    "Joined",
    "Latch",
    "Left",
    "Logged",
    "Record",
    "Request",
    "RequestKind",
    "Sample",
    "State",
    "Told",
    "Version",
    "Write",
]


class Version(NamedTuple):
    """Which object, and which state of it."""

    uid: str
    number: int
    """The resourceVersion."""

    def __str__(self) -> str:
        return f"{self.uid[:8]}@{self.number}"


RequestKind: TypeAlias = Literal["list", "watch"]
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

    def __str__(self) -> str:
        if self.gone:
            return f"server removes {self.key} {self.uid[:8]}@{self.version}"
        return f"server stores {self.key} {self.uid[:8]}@{self.version} {self.app} {self.node}"


@dataclass(slots=True)
class Broke(Record):
    """A fault began."""

    fault: Fault

    def __str__(self) -> str:
        fault = self.fault
        on = fault.target or "all"
        return (
            f"fault {fault.kind} lasting={fault.lasting:g} amount={fault.amount} "
            f"retry_after={fault.retry_after} on {on}"
        )


@dataclass(slots=True)
class Request(Record):
    """An informer asked the server for something."""

    informer: str
    kind: RequestKind
    query: str
    ended: float | None = None
    """When its context was left."""
    failure: str = ""
    """The error that ended it, as ``Type: text``."""
    expired: bool = False
    """Whether that was a 410, or 'too large': the first of an outage needs no wait."""
    retry_after: float = 0.0
    changes: int = 0
    """Events that were sent, but for bookmarks."""

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
    raised: str = ""

    def __str__(self) -> str:
        since = f" from {self.old}" if self.old else ""
        note = f" ({self.note})" if self.note else ""
        return f"{self.listener} hears: {self.what} {self.key} {self.version}{since}{note}"


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


@dataclass(slots=True)
class History:
    """All that happened, in order."""

    plan: Plan
    clock: Callable[[], float] = float
    """Virtual seconds; set when the loop runs."""
    over: bool = False
    """Whether everything is being ended: from here on what informers show means nothing."""
    writes: list[Write] = field(default_factory=list[Write])
    faults: list[Broke] = field(default_factory=list[Broke])
    requests: list[Request] = field(default_factory=list[Request])
    closings: list[Closed] = field(default_factory=list[Closed])
    told: list[Told] = field(default_factory=list[Told])
    joined: list[Joined] = field(default_factory=list[Joined])
    left: list[Left] = field(default_factory=list[Left])
    samples: list[Sample] = field(default_factory=list[Sample])
    logs: list[Logged] = field(default_factory=list[Logged])
    ending: Ending = field(default_factory=lambda: Ending(0, 0.0))
    _orders: Iterator[int] = field(default_factory=lambda: count(1))
    _versions: dict[str, Version] = field(default_factory=dict[str, Version])

    def version_of(self, obj: KubeObject) -> Version:
        """What is written down of an object; one tuple a state, however often it is seen."""
        known = self._versions.get(obj.resource_version)
        if known is None or known.uid != obj.uid:
            known = self._versions[obj.resource_version] = Version(
                obj.uid, int(obj.resource_version)
            )
        return known

    def stamp(self) -> tuple[int, float]:
        """The number and time of something that happens now."""
        return next(self._orders), self.clock()

    def records(self) -> list[Record]:
        """Everything, in order."""
        everything: list[Record] = [
            *self.writes,
            *self.faults,
            *self.requests,
            *self.closings,
            *self.told,
            *self.joined,
            *self.left,
            *self.samples,
            *self.logs,
            self.ending,
        ]
        return sorted(everything, key=lambda record: record.order)

    def trace(self) -> str:
        """One line an event. The same seed gives the same bytes."""
        return "".join(f"{each.time:14.6f} {each}\n" for each in self.records())

    def __repr__(self) -> str:
        return (
            f"<History seed={self.plan.seed} writes={len(self.writes)} faults={len(self.faults)} "
            f"requests={len(self.requests)} told={len(self.told)} samples={len(self.samples)}>"
        )
