"""``Oracle``: the server's state of one selection at each resourceVersion.

The oracle works from the log of writes alone, with a selector of its own, so that it shares no code
with the library. A server that is restored from a backup assigns versions a second time. Then there
is one more timeline, which shares the past up to the backup with the timeline of the backup.

``Rewinds`` decides what one informer can know of a restored server. The informer must notice and
announce the rewind, and from then on everything holds again. No client can notice a server that has
assigned its new versions up to the one that the informer knows, before the informer sent a request,
because every answer looks like progress then. An informer that has never seen a bookmark notices
the rewind of a silent server when a watch ends, which may be after the end of the history. The
state that follows one of these cases is not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.objects.kube_object import ObjectKey
from tests.simulation.checks.violation import Violation
from tests.simulation.plan import DROPPED, REJECTED, SHIFT, InformerSpec
from tests.simulation.records import (
    NEVER,
    History,
    ProblemReported,
    Record,
    Request,
    Restored,
    ScopeClosed,
    ScopeOpened,
    State,
    Transition,
    Version,
    Write,
)


class TimelineCursor:
    """A cursor over the states of one timeline, from the first one on."""

    def __init__(
        self, changes: Sequence[tuple[int, ObjectKey, Version | None]], backup_version: int = 0
    ) -> None:
        """Begin before all changes."""
        self.version = 0
        self.backup_version = backup_version
        """The version of the backup with which the timeline began; 0 for none."""
        self._changes = changes
        self._next = 0
        self._state: dict[ObjectKey, Version] = {}

    def to(self, version: int) -> State:
        """Return the state at a version, not before the last one; valid until the next call."""
        self.version = version
        while self._next < len(self._changes) and self._changes[self._next][0] <= version:
            _, key, shown = self._changes[self._next]
            if shown is None:
                del self._state[key]
            else:
                self._state[key] = shown
            self._next += 1
        return self._state


@dataclass(slots=True)
class _Timeline:
    began: int = 0
    """The number of the moment of the restoration."""
    backup_version: int = 0
    changes: list[tuple[int, ObjectKey, Version | None]] = field(
        default_factory=list[tuple[int, ObjectKey, Version | None]]
    )


class Oracle:
    """The server's states of one selection."""

    def __init__(
        self,
        writes: Sequence[Write],
        spec: InformerSpec,
        restores: Sequence[Restored] = (),
        scopes: Sequence[ScopeOpened | ScopeClosed] = (),
    ) -> None:
        """Compute the states that ``spec`` selects from all writes.

        Args:
            writes: all writes.
            spec: an informer of one scope, or of several.
            restores: the restorations of the server.
            scopes: the namespaces that an informer of several read, and when.
        """
        opened = [each for each in scopes if isinstance(each, ScopeOpened)]
        # Until a namespace is read for the first time, it counts as read with that selector.
        self._apps = {each.spec.namespace: each.spec.app for each in reversed(opened)}
        self._newest: dict[ObjectKey, Write] = {}
        """The last write of each object."""
        self._opened = [(each.spec.namespace, each.order) for each in opened]
        """The namespaces that began to be read, and when."""
        if not spec.scoped:
            self._apps = {spec.namespace: spec.app}
        self._cuts = spec.transform == "cuts"
        self.stored: dict[tuple[ObjectKey, Version], Write] = {}
        """Every state that was ever selected."""
        self.states: dict[tuple[ObjectKey, str], list[Write]] = {}
        """The same for each object, by key and uid."""
        self.exits: dict[tuple[ObjectKey, str], list[Record]] = {}
        """The deletions of each object, by key and uid, and its departures from the selection."""
        self.final: dict[ObjectKey, Version] = {}
        """The selected state at the end."""
        self._made: dict[tuple[ObjectKey, Version], int] = {}
        self._timelines = [_Timeline()]
        self._read: set[str | None] = set()
        """The namespaces that are read at the end, of several."""
        self._closed: list[tuple[str | None, int]] = []
        """The namespaces that ceased to be read, and when."""
        records: list[Record] = [*writes, *restores, *scopes]
        for record in sorted(records, key=lambda each: each.order):
            match record:
                case Restored():
                    self._go_back(record)
                case Write():
                    if None in self._apps or record.key.namespace in self._apps:
                        self._newest[record.key] = record
                        self._follow(record, selected=self._selects(record))
                case ScopeOpened():
                    self._open(record)
                case ScopeClosed():
                    self._close(record)
                case _:
                    raise TypeError(record)
        if scopes:
            self.final = {key: v for key, v in self.final.items() if key.namespace in self._read}

    def _open(self, opened: ScopeOpened) -> None:
        """Read a namespace, with a selector that may differ from that of the last time."""
        namespace, app = opened.spec.namespace, opened.spec.app
        self._read.add(namespace)
        if self._apps[namespace] == app:
            return
        self._apps[namespace] = app
        for write in self._newest.values():
            if write.key.namespace == namespace:
                self._follow(write, selected=self._selects(write))

    def _close(self, closed: ScopeClosed) -> None:
        """Let all objects of a namespace leave."""
        namespace = closed.spec.namespace
        self._read.discard(namespace)
        self._closed.append((namespace, closed.order))
        for key, version in self.final.items():
            if key.namespace == namespace:
                self.exits.setdefault((key, version.uid), []).append(closed)

    def _selects(self, write: Write) -> bool:
        """Return True if the object must be cached: an object that a transform drops must not."""
        dropped = self._cuts and write.node == DROPPED
        app = self._apps.get(write.key.namespace, self._apps.get(None, ""))
        return app in ("", write.app) and not (dropped or write.deleted)

    def _follow(self, write: Write, *, selected: bool) -> None:
        changes = self._timelines[-1].changes
        before = self.final.pop(write.key, None)
        if selected:
            shown = write.value + SHIFT if self._cuts else write.value
            version = Version(write.uid, write.number or write.version, shown)
            self.final[write.key] = version
            self.stored[write.key, version] = write
            self.states.setdefault((write.key, write.uid), []).append(write)
            self._made[write.key, version] = write.order
            changes.append((write.version, write.key, version))
        elif before is not None:
            last = Version(
                before.uid, write.version, before.value
            )  # the version of the DELETED event
            self._made[write.key, last] = write.order
            self.exits.setdefault((write.key, before.uid), []).append(write)
            changes.append((write.version, write.key, None))

    def _go_back(self, restored: Restored) -> None:
        """Begin a timeline with the state of the backup and the past of that state."""
        backup = restored.backup
        source = [line for line in self._timelines if line.began <= backup.order][-1]
        shared = [change for change in source.changes if change[0] <= backup.version]
        self._timelines.append(_Timeline(restored.order, backup.version, shared))
        state = TimelineCursor(shared).to(backup.version)
        for key, version in self.final.items():
            if key not in state or state[key].uid != version.uid:
                self.exits.setdefault((key, version.uid), []).append(restored)
        self.final = dict(state)

    def cursors(self, *, until: int) -> list[TimelineCursor]:
        """Return a cursor over each timeline that began before a moment."""
        return [
            TimelineCursor(each.changes, each.backup_version)
            for each in self._timelines
            if each.began <= until
        ]

    def made(self, key: ObjectKey, version: Version) -> int:
        """Return the number of the moment at which an object got into this state; 0 for never."""
        return self._made.get((key, version), 0)

    def was_closed(self, namespace: str, *, since: int = 0, before: int) -> bool:
        """Return True if a namespace ceased to be read between two moments."""
        orders = (order for name, order in self._closed if name == namespace)
        return any(since < order < before for order in orders)

    def was_opened(self, namespace: str, *, since: int, before: int) -> bool:
        """Return True if the informer began to read a namespace between two moments."""
        orders = (order for name, order in self._opened if name == namespace)
        return any(since < order < before for order in orders)

    def was_sent(self, key: ObjectKey, version: Version, *, before: float) -> bool:
        """Return True if the server may have sent a deletion that is delivered with this state.

        The deletion was sent before a moment. Its state is that in the DELETED event, or the last
        good one if that state is rejected. A restore makes any earlier state the current one.
        """
        exits = self.exits.get((key, version.uid), ())
        writes = self.states[key, version.uid]
        rejected = any(each.node == REJECTED for each in writes if each.order < before)
        return any(
            isinstance(each, Write) and (rejected or each.version == version.number)
            for each in exits
            if each.order < before
        )

    def left(self, key: ObjectKey, version: Version, *, before: float = float("inf")) -> bool:
        """Return True if an object left after it was in some state, and before a moment."""
        exits = self.exits.get((key, version.uid), ())
        since = self.made(key, version)
        return any(since < each.order < before for each in exits)

    def __repr__(self) -> str:
        return f"<Oracle timelines={len(self._timelines)} final={len(self.final)}>"


class Rewinds:
    """The rewinds of the server, as one informer can know them."""

    def __init__(self, history: History, *readers: str) -> None:
        """Find the rewinds that an informer announced, and those that it could not know.

        Args:
            history: all records.
            *readers: the informer's name, or the names of its scopes.
        """
        problems = [each for each in history.of(ProblemReported) if each.informer in readers]
        self.announced = [each.order for each in problems if each.phase == "rewind"]
        """The numbers of the moments of the announcements."""
        self.moved = [each.order for each in problems if each.cause == "api_version_changed"]
        """The moments at which the resource was found in another version: all objects are delivered
        again then."""
        self._history = history
        self._readers = readers
        self._transitions = [each for each in history.of(Transition) if each.informer in readers]
        self.lost = min(
            (
                self._lost_from(restored, reader)
                for restored in history.of(Restored)
                for reader in readers
            ),
            default=NEVER,
        )
        """The number of the moment from which on the state is not judged; ``inf`` for none."""

    def by(self, order: int) -> int:
        """Return the number of times that versions may go back before a moment."""
        return sum(1 for each in (*self.announced, *self.moved) if each < order)

    def undone(self, made: int, order: int) -> bool:
        """Return True if the rewind of a state made at one moment was announced before another."""
        restores = (each.order for each in self._history.of(Restored) if each.order > made)
        return any(since < said < order for since in restores for said in self.announced)

    def not_served(self, order: int) -> bool:
        """Return True if discovery said, before a moment, that the resource isn't served."""
        looked = (each for each in self._transitions if each.outcome is Outcome.NOT_SERVED)
        return any(each.order < order for each in looked)

    def judge(self) -> None:
        """Check that each announced rewind happened.

        Raises:
            Violation: one did not.
        """
        for number, order in enumerate(self.announced, 1):
            happened = sum(1 for each in self._history.of(Restored) if each.order < order)
            if number > happened * len(self._readers):
                raise Violation(10, "a rewind is announced that did not happen", time=0.0)

    # -- what can't be known ------------------------------------------------------------------

    def _lost_from(self, restored: Restored, reader: str) -> float:
        """Return the moment at which it was too late to notice a restoration; ``inf`` for none."""
        closed = self._history.of_informer(ScopeClosed, reader)
        if any(each.order < restored.order for each in closed):
            return NEVER
        known = self.known_at(restored, reader)
        if known <= restored.backup.version:
            return NEVER  # the informer had seen nothing of what was undone
        announced = min(
            (
                each.order
                for each in self._history.of_informer(ProblemReported, reader)
                if each.phase == "rewind" and each.order > restored.order
            ),
            default=NEVER,
        )
        again = min(
            (each.order for each in self._history.of(Restored) if each.order > restored.order),
            default=NEVER,
        )
        passed = min(
            (
                each.order
                for each in self._history.of(Write)
                if restored.order < each.order < again and each.version >= known
            ),
            default=NEVER,
        )
        if announced < NEVER or passed < NEVER:
            return NEVER if announced < passed else passed
        transitions = self._history.of_informer(Transition, reader)
        blind = all(each.bookmark_interval is None for each in transitions)
        return restored.order if blind else NEVER

    def known_at(self, restored: Restored, reader: str) -> int:
        """Return the version that the informer knew at its first request after a restoration."""
        requests = self._history.of_informer(Request, reader)
        asked = next((each.order for each in requests if each.order > restored.order), NEVER)
        transitions = self._history.of_informer(Transition, reader)
        before = [each for each in transitions if each.order < asked]
        return int(before[-1].version or 0) if before else 0

    def __repr__(self) -> str:
        names = ", ".join(self._readers)
        return f"<Rewinds of {names} announced={len(self.announced)} lost={self.lost}>"
