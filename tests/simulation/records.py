"""What is written down of a history: one class for each kind of thing that happens.

Every record carries a number: the order in which things happened, which virtual time doesn't
give, since much happens at one moment. Objects are written down as ``(uid, version, value)``.

How listeners end when nobody has removed them: too slow, or with their factory.

Records like those of ``records``; ``endings`` judges them.

What happened in one run, written down in order: the evidence that the promises are judged by.

The records are ``records``'. Nothing is judged here, and nothing is formatted until somebody wants
the trace.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Literal, NamedTuple, TypeAlias

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.requests import Verb
from aioinformer._core.listwatch.transitions import Phase
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from tests.simulation.plan import Fault, ListenerSpec, Plan

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
    deleted: bool
    value: int = 0

    def __str__(self) -> str:
        if self.deleted:
            return f"server removes {self.key} {self.uid[:8]}@{self.version}"
        return f"server stores {self.key} {self.uid[:8]}@{self.version} {self.app} {self.node}"


@dataclass(slots=True)
class BackupMade(Record):
    """A backup was made."""

    version: int

    def __str__(self) -> str:
        return f"backup of rv={self.version}"


@dataclass(slots=True)
class Restored(Record):
    """The server has gone back to a backup."""

    backup: BackupMade
    version: int
    """The newest resourceVersion before."""

    def __str__(self) -> str:
        return f"server goes back from rv={self.version} to rv={self.backup.version}"


@dataclass(slots=True)
class FaultStarted(Record):
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
    initial_list_complete: int = 0
    """The number of the moment when a whole state was through; 0 if none was."""
    bookmarks: list[float] = field(default_factory=list[float])
    """When bookmarks were through, the mark behind an initial state left out."""
    last_read: float = 0.0
    """When its client was last through with something, and ready for more."""
    silent_since: float | None = None
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
class Transition(Record):
    """A reflector looked up what follows: a row of its table."""

    informer: str
    phase: Phase
    outcome: Outcome
    delay: float
    request: Request
    """The one that has ended."""
    version: str
    """The last version that the reflector knew then."""
    bookmark_interval: float | None
    """How far apart it took bookmarks to be."""

    @property
    def row(self) -> tuple[Phase, Outcome]:
        """Where it is in the table."""
        return self.phase, self.outcome

    def __str__(self) -> str:
        row = f"{self.phase.name} {self.outcome.name}"
        return f"{self.informer} finds: {row}, knows rv={self.version}, waits {self.delay:.6f} s"


@dataclass(slots=True)
class ProblemReported(Record):
    """The error hook was told of something."""

    informer: str
    phase: str
    cause: str
    error: str

    def __str__(self) -> str:
        return f"{self.informer} reports: {self.phase} {self.cause}: {self.error}"


@dataclass(slots=True)
class EventDelivered(Record):
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
class FilterRaised(Record):
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


class ListenerSample(NamedTuple):
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
    listeners: tuple[ListenerSample, ...]

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
class Overflowed(Record):
    """The mailbox of a listener with ``overflow="error"`` was given too much."""

    listener: str
    limit: int
    high: int
    """The most events that it ever held."""
    twice: bool
    """Whether it was given the changes of a list while it had those of another."""
    raised: list[str]
    """With what its stream has ended, each time that it was told so."""

    def __str__(self) -> str:
        return f"{self.listener} is ended: {self.high} of {self.limit} events were pending"


@dataclass(slots=True)
class Visited(Record):
    """A factory was left, whose handler was to finish what was pending."""

    name: str
    cached: State
    """What the cache held when the body of the factory was through."""
    held: State
    """What the handler holds, after what it was told."""
    late: int
    """Events that came after the factory was left."""
    lasted: float
    """Seconds that leaving took."""
    incomplete: str
    """What ``ShutdownIncomplete`` said; empty if it was not raised."""
    broke: str = ""
    """What its handler raised, which was to end the factory; empty if it didn't."""
    raised: str = ""
    """With what the factory has ended; empty for an end in order."""

    def __str__(self) -> str:
        how = self.incomplete or "in order"
        return f"{self.name} is left with {len(self.held)} of {len(self.cached)} objects: {how}"


_VALUE = re.compile(rb'"value":(\d+)')


@dataclass(slots=True)
class History:
    """All that happened, in order."""

    plan: Plan
    clock: Callable[[], float] = float
    """Virtual seconds; set when the loop runs."""
    over: bool = False
    """Whether everything is being ended: from here on what informers show means nothing."""
    writes: list[Write] = field(default_factory=list[Write])
    backups: list[BackupMade] = field(default_factory=list[BackupMade])
    restores: list[Restored] = field(default_factory=list[Restored])
    faults: list[FaultStarted] = field(default_factory=list[FaultStarted])
    requests: list[Request] = field(default_factory=list[Request])
    closings: list[Closed] = field(default_factory=list[Closed])
    transitions: list[Transition] = field(default_factory=list[Transition])
    problems: list[ProblemReported] = field(default_factory=list[ProblemReported])
    counted: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    """What metrics were told of failures: informer, phase, name of the exception."""
    delivered: list[EventDelivered] = field(default_factory=list[EventDelivered])
    joined: list[Joined] = field(default_factory=list[Joined])
    filter_errors: list[FilterRaised] = field(default_factory=list[FilterRaised])
    left: list[Left] = field(default_factory=list[Left])
    overflowed: list[Overflowed] = field(default_factory=list[Overflowed])
    visited: list[Visited] = field(default_factory=list[Visited])
    samples: list[Sample] = field(default_factory=list[Sample])
    logs: list[Logged] = field(default_factory=list[Logged])
    ending: Ending = field(default_factory=lambda: Ending(0, 0.0))
    _orders: Iterator[int] = field(default_factory=lambda: count(1))
    _versions: dict[bytes, Version] = field(default_factory=dict[bytes, Version])

    def version_of(self, obj: KubeObject) -> Version:
        """What is written down of an object; one tuple a state, however often it is seen."""
        known = self._versions.get(obj.raw)
        if known is None:
            value = _VALUE.search(obj.raw)
            number = int(obj.resource_version)
            known = Version(obj.uid, number, int(value[1]) if value else 0)
            self._versions[obj.raw] = known
        return known

    def stamp(self) -> tuple[int, float]:
        """The number and time of something that happens now."""
        return next(self._orders), self.clock()

    def records(self) -> list[Record]:
        """Everything, in order."""
        everything: list[Record] = [
            *self.writes,
            *self.backups,
            *self.restores,
            *self.faults,
            *self.requests,
            *self.closings,
            *self.transitions,
            *self.problems,
            *self.delivered,
            *self.joined,
            *self.filter_errors,
            *self.left,
            *self.overflowed,
            *self.visited,
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
            f"requests={len(self.requests)} told={len(self.delivered)} samples={len(self.samples)}>"
        )
