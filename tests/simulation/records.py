"""Records of everything that happens in a history, in order: the evidence for the checks.

Every record has a number, the order in which things happened. Virtual time doesn't give the order,
since much happens at one moment. An object is recorded as a ``Version``. Nothing is judged here,
and nothing is formatted until the trace is wanted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, field, fields
from enum import Enum
from itertools import chain
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.reflector_requests import Verb
from aioinformer._core.listwatch.transitions import Phase
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from tests.simulation.plan import Fault, InformerSpec, ListenerSpec, Plan

NEVER = float("inf")
_VALUE = re.compile(rb'"value":(\d+)')


class Version(NamedTuple):
    """One state of one object."""

    uid: str
    number: int
    """The resourceVersion."""
    value: int = 0
    """The written value. A server that is restored from a backup assigns versions a second time,
    so that the version alone does not identify a state."""

    def __str__(self) -> str:
        return f"{self.uid[:8]}@{self.number}"


State: TypeAlias = Mapping[ObjectKey, Version]


@dataclass(slots=True)
class Record:
    """Something that happened."""

    order: int
    time: float

    def __str__(self) -> str:
        values = ((each.name, getattr(self, each.name)) for each in fields(self)[2:])
        shown = (f"{name}={_show(value)}" for name, value in values if value)
        return f"{type(self).__name__} {' '.join(shown)}"


def _show(value: object) -> str:
    """Return a value of a record as a part of a line."""
    match value:
        case Record():
            return f"{type(value).__name__}@{value.time:.6f}"
        case Enum():
            return value.name
        case float():
            return f"{value:.6f}"
        case Sized() if not isinstance(value, str | tuple | list):
            return f"{len(value)} objects"
        case _:
            return str(value)


@dataclass(slots=True)
class InformerRecord(Record):
    """Something that an informer did."""

    informer: str


@dataclass(slots=True)
class ListenerRecord(Record):
    """Something that a listener did, or that happened to it."""

    listener: str


# -- the server --------------------------------------------------------------------------------


@dataclass(slots=True)
class Write(Record):
    """The server stored or removed an object."""

    version: int
    key: ObjectKey
    uid: str
    app: str
    node: str
    deleted: bool
    value: int = 0
    number: int = 0
    """The object's resourceVersion if that is an earlier one: its content changed without a write;
    0 otherwise."""


@dataclass(slots=True)
class NamespaceWritten(Record):
    """A namespace was created, labelled anew, or deleted."""

    namespace: str
    uid: str
    matches: bool
    """True if an informer that follows namespaces must read this one."""


@dataclass(slots=True)
class BackupMade(Record):
    """A backup of the server was made."""

    version: int


@dataclass(slots=True)
class Restored(Record):
    """The server was restored from a backup."""

    backup: BackupMade
    version: int
    """The newest resourceVersion before."""


@dataclass(slots=True)
class FaultStarted(Record):
    """A fault began."""

    fault: Fault


# -- requests ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Request(InformerRecord):
    """An informer sent a request."""

    kind: Verb
    query: str
    length: float = 0.0
    """The seconds that the informer asked a watch to last."""
    since: int = 0
    """The version after which the informer asked a watch to start."""
    ended: float | None = None
    """The time at which the request's context was left."""
    failure: str = ""
    """The error that ended the request, as ``Type: text``."""
    expired: bool = False
    """True if that was a 410 or 'too large': the first of an outage needs no wait."""
    retry_after: float = 0.0
    changes: int = 0
    """Events that were sent, without bookmarks."""
    answered: float = NEVER
    """The time at which the head of the answer arrived."""
    initial_list_complete: int = 0
    """The number of the moment at which a whole state had arrived; 0 for never."""
    bookmarks: list[float] = field(default_factory=list[float])
    """The times at which bookmarks had arrived, without the one that ends an initial state."""
    last_read: float = 0.0
    """The last time at which the client had read something and was ready for more."""
    awaited: bool = False
    """True while the client waits for bytes, and at the end if it did so then."""


@dataclass(slots=True)
class Transition(InformerRecord):
    """A reflector took a row of its transition table."""

    phase: Phase
    outcome: Outcome
    delay: float
    request: Request
    """The request that has ended."""
    version: str
    """The last version that the reflector knew then."""
    bookmark_interval: float | None
    """The reflector's estimate of the time between bookmarks."""
    silence_is_normal: bool = False
    """True if the reflector expected no bookmark then."""

    @property
    def row(self) -> tuple[Phase, Outcome]:
        """The place in the table."""
        return self.phase, self.outcome


@dataclass(slots=True)
class ScopeOpened(InformerRecord):
    """An informer of several namespaces began to read one, under a name of its own."""

    spec: InformerSpec
    """The selection in the namespace, as if an informer read nothing else."""


@dataclass(slots=True)
class ScopeClosed(InformerRecord):
    """An informer of several namespaces was asked to read one no longer."""

    spec: InformerSpec


# -- reports -----------------------------------------------------------------------------------


@dataclass(slots=True)
class ProblemReported(InformerRecord):
    """The error hook was called."""

    phase: str
    cause: str
    error: str


@dataclass(slots=True)
class Logged(Record):
    """The library logged a warning or an error."""

    level: str
    message: str


# -- listeners ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Joined(Record):
    """A listener joined."""

    listener: ListenerSpec
    cached: State | None
    """The cache at that moment; ``None`` before the first full state."""


@dataclass(slots=True)
class EventDelivered(ListenerRecord):
    """A listener received an event."""

    what: Literal["added", "updated", "deleted"]
    key: ObjectKey
    version: Version
    old: Version | None
    note: str
    """``initial``, ``resync``, or the reason of a deletion."""
    cached: Version | None
    """The version in the cache under that key at that moment."""
    returned: int = 0
    """The number of the moment at which the handler returned; 0 for never."""
    until: float = NEVER
    """The time of that moment."""
    raised: str = ""
    merged: bool = False
    """True if other events may have been merged into this one in a full mailbox."""


@dataclass(slots=True)
class FilterRaised(ListenerRecord):
    """The filter of a listener raised."""


@dataclass(slots=True)
class Left(ListenerRecord):
    """A listener was removed. No event may be delivered to it from here on."""

    waited: bool = False
    """True if the calls in flight were waited for."""


@dataclass(slots=True)
class Overflowed(Record):
    """The mailbox of a listener with ``overflow="error"`` received too many events."""

    listener: str
    limit: int
    high: int
    """The largest number of events that were ever pending."""
    twice: bool
    """True if the mailbox received the changes of a list while it had those of another."""
    raised: list[str]
    """The errors with which the listener's stream ended."""


@dataclass(slots=True)
class Visited(Record):
    """A factory was left. Its handler had to finish what was pending."""

    name: str
    cached: State
    """The cache at the end of the factory's body."""
    held: State
    """The objects that the handler knows from its events."""
    late: int
    """Events that were delivered after the factory was left."""
    lasted: float
    """The seconds that leaving took."""
    incomplete: str
    """The text of ``ShutdownIncomplete``; empty if it was not raised."""
    broke: str = ""
    """The error that the handler raised in order to end the factory; empty for none."""
    raised: str = ""
    """The error with which the factory ended; empty for none."""


# -- samples -----------------------------------------------------------------------------------


class ListenerSample(NamedTuple):
    """A listener at the moment of a sample."""

    listener: str
    synced: bool
    pending: int
    limit: int
    batches: int
    """Pending batches beside the live events: replays, diffs, resyncs."""
    dropping: bool
    """True if some of the live events will be discarded, because their objects are deleted."""
    errors: int


@dataclass(slots=True)
class Sample(InformerRecord):
    """The state that an informer showed at one moment."""

    synced: bool
    version: str
    state: State
    index: Mapping[str, frozenset[ObjectKey]] | None
    """The keys under each value of the index; ``None`` in most samples."""
    rejected: frozenset[str]
    condition: str
    error: str
    retry_in: float | None
    blocked_by: tuple[str, ...]
    rewinds: int
    queued: int = 0
    """Entries in the queue."""
    listeners: tuple[ListenerSample, ...] = ()


@dataclass(slots=True)
class Ending(Record):
    """The remains after everything was asked to end."""

    tasks: tuple[str, ...] = ()
    requests: int = 0
    """Contexts of lists and watches that were not left."""
    waits: tuple[str, ...] = ()
    """Waits that did not end."""
    complaints: tuple[str, ...] = ()
    """The messages that the event loop's exception handler received."""
    failures: tuple[str, ...] = ()
    """The errors with which informers ended, other than cancellation."""


# -- all of them -------------------------------------------------------------------------------

P = ParamSpec("P")
R = TypeVar("R", bound=Record)
OfInformer = TypeVar("OfInformer", bound=InformerRecord)


@dataclass(slots=True)
class History:
    """All records of one history. Records are only added."""

    plan: Plan
    clock: Callable[[], float] = float
    """Returns the virtual seconds; replaced when the loop runs."""
    ending: Ending = field(default_factory=lambda: Ending(0, 0.0))
    over: bool = False
    """True while everything is being ended: samples mean nothing then."""
    counted: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    """Failures that metrics received: informer, phase, name of the exception."""
    _records: dict[type[Record], list[Any]] = field(default_factory=dict[type[Record], list[Any]])
    _last_order: int = 0
    _versions: dict[bytes, Version] = field(default_factory=dict[bytes, Version])

    def stamp(self) -> tuple[int, float]:
        """Return the number and the time of something that happens now."""
        self._last_order += 1
        return self._last_order, self.clock()

    def add(
        self, kind: Callable[Concatenate[int, float, P], R], *fields: P.args, **named: P.kwargs
    ) -> R:
        """Record that something happens now; return the record."""
        order, time = self.stamp()
        record = kind(order, time, *fields, **named)
        self.of(type(record)).append(record)
        return record

    def of(self, kind: type[R]) -> list[R]:
        """Return all records of one kind, in order."""
        return cast("list[R]", self._records.setdefault(kind, []))

    def of_informer(self, kind: type[OfInformer], name: str) -> list[OfInformer]:
        """Return the records of one kind that concern one informer, in order."""
        return [each for each in self.of(kind) if each.informer == name]

    def joined(self, informer: InformerSpec) -> list[Joined]:
        """Return the listeners of an informer, in the order in which they joined."""
        return [each for each in self.of(Joined) if each.listener.informer == informer.name]

    def readers(self) -> list[InformerSpec]:
        """Return the informers of one scope, and the scopes of the others."""
        single = [each for each in self.plan.informers if not each.scoped]
        return [*single, *(each.spec for each in self.of(ScopeOpened))]

    def readers_of(self, informer: InformerSpec) -> list[str]:
        """Return the names under which the requests of an informer are recorded."""
        if not informer.scoped:
            return [informer.name]
        begin = f"{informer.name} ("
        return [each.name for each in self.readers() if each.name.startswith(begin)]

    def version_of(self, obj: KubeObject) -> Version:
        """Return the version of an object; the same tuple for the same state."""
        known = self._versions.get(obj.raw)
        if known is None:
            value = _VALUE.search(obj.raw)
            number = int(obj.resource_version)
            known = Version(obj.uid, number, int(value[1]) if value else 0)
            self._versions[obj.raw] = known
        return known

    def records(self) -> list[Record]:
        """Return all records, in order."""
        everything = chain(*self._records.values(), [self.ending])
        return sorted(everything, key=lambda record: record.order)

    def trace(self) -> str:
        """Return one line for each record. The same seed gives the same bytes."""
        return "".join(f"{each.time:14.6f} {each}\n" for each in self.records())

    def __repr__(self) -> str:
        return (
            f"<History seed={self.plan.seed} writes={len(self.of(Write))} "
            f"faults={len(self.of(FaultStarted))} requests={len(self.of(Request))} "
            f"delivered={len(self.of(EventDelivered))} samples={len(self.of(Sample))}>"
        )
