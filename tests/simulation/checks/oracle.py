"""What the server held of one selection, at each resourceVersion: the oracle.

Worked out from the log of writes alone, with a selector of its own, so that it shares no code with
what it judges. A server that goes back to a backup gives versions a second time: then there is one
more timeline, which has its past up to the backup from the one that the backup was made in.

What one informer can know of a server that went back to a backup, and what it can't.

It is promised that this is noticed and announced, and that from then on everything holds again.
There are two things that no client can notice. A server that has given out its new versions up to
the one that the informer knows, before the informer could ask: every answer looks like progress
then. And silence, where the informer has never seen a bookmark: nothing says then that silence
means something. What follows one of these is not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.objects.kube_object import ObjectKey
from tests.simulation.checks.violation import Violation
from tests.simulation.plan import DROPPED, SHIFT, InformerSpec
from tests.simulation.records import (
    NEVER,
    History,
    ProblemReported,
    Record,
    Request,
    Restored,
    State,
    Transition,
    Version,
    Write,
)


class TimelineCursor:
    """The states of one timeline, from the first one on."""

    def __init__(
        self, changes: Sequence[tuple[int, ObjectKey, Version | None]], backup_version: int = 0
    ) -> None:
        """Begin before everything."""
        self.version = 0
        self.backup_version = backup_version
        """The version of the backup that it began with; 0 for none."""
        self._changes = changes
        self._next = 0
        self._state: dict[ObjectKey, Version] = {}

    def to(self, version: int) -> State:
        """The state at a version, no earlier one than before. Good until the next call."""
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
    """The number of the moment."""
    backup_version: int = 0
    changes: list[tuple[int, ObjectKey, Version | None]] = field(
        default_factory=list[tuple[int, ObjectKey, Version | None]]
    )


class Oracle:
    """The states of one selection."""

    def __init__(
        self, writes: Sequence[Write], spec: InformerSpec, restores: Sequence[Restored] = ()
    ) -> None:
        """Work out what ``spec`` selects of everything that was written."""
        self._app = spec.app
        self._cuts = spec.transform == "cuts"
        self.stored: dict[tuple[ObjectKey, Version], Write] = {}
        """Every state that was ever selected."""
        self.states: dict[tuple[ObjectKey, str], list[Write]] = {}
        """The same of each object, by key and uid."""
        self.exits: dict[tuple[ObjectKey, str], list[Record]] = {}
        """Where an object, by key and uid, went or left the selection."""
        self.final: dict[ObjectKey, Version] = {}
        """What is selected at the end."""
        self._made: dict[tuple[ObjectKey, Version], int] = {}
        self._timelines = [_Timeline()]
        records: list[Write | Restored] = [*writes, *restores]
        for record in sorted(records, key=lambda each: each.order):
            if isinstance(record, Restored):
                self._go_back(record)
            elif spec.namespace in (None, record.key.namespace):
                self._follow(record, selected=not record.deleted and self._selects(record))

    def _selects(self, write: Write) -> bool:
        """Whether it is to be cached: what a transform drops is as good as not selected."""
        dropped = self._cuts and write.node == DROPPED
        return self._app in ("", write.app) and not dropped

    def _follow(self, write: Write, *, selected: bool) -> None:
        changes = self._timelines[-1].changes
        before = self.final.pop(write.key, None)
        if selected:
            shown = write.value + SHIFT if self._cuts else write.value
            version = Version(write.uid, write.version, shown)
            self.final[write.key] = version
            self.stored[write.key, version] = write
            self.states.setdefault((write.key, write.uid), []).append(write)
            self._made[write.key, version] = write.order
            changes.append((write.version, write.key, version))
        elif before is not None:
            last = Version(before.uid, write.version, before.value)  # what its DELETED shows
            self._made[write.key, last] = write.order
            self.exits.setdefault((write.key, before.uid), []).append(write)
            changes.append((write.version, write.key, None))

    def _go_back(self, restored: Restored) -> None:
        """The state is that of a backup, and so is everything before it."""
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
        """A walk through each timeline that began before a moment."""
        return [
            TimelineCursor(each.changes, each.backup_version)
            for each in self._timelines
            if each.began <= until
        ]

    def made(self, key: ObjectKey, version: Version) -> int:
        """The number of the moment when an object got into this state; 0 if it never did."""
        return self._made.get((key, version), 0)

    def left(self, key: ObjectKey, version: Version, *, before: float = float("inf")) -> bool:
        """Whether an object went after it was in some state, and before a moment."""
        exits = self.exits.get((key, version.uid), ())
        since = self.made(key, version)
        return any(since < each.order < before for each in exits)

    def __repr__(self) -> str:
        return f"<Truth timelines={len(self._timelines)} final={len(self.final)}>"


class Rewinds:
    """One informer's part in them."""

    def __init__(self, history: History, informer: str) -> None:
        """Find out what it announced, and what it could not know."""
        self.announced = [
            each.order
            for each in history.of(ProblemReported)
            if each.informer == informer and each.phase == "rewind"
        ]
        """When."""
        self.moved = [
            each.order
            for each in history.of(ProblemReported)
            if each.informer == informer and each.cause == "api_version_changed"
        ]
        """When the resource was found in another version: then all objects are told once more."""
        self._history = history
        self._informer = informer
        self._transitions = [each for each in history.of(Transition) if each.informer == informer]
        self.lost = min((self._lost_from(each) for each in history.of(Restored)), default=NEVER)
        """From when on its state is not judged: the number of a moment, or ``inf``."""

    def by(self, order: int) -> int:
        """How often versions may have come again before a moment."""
        return sum(1 for each in (*self.announced, *self.moved) if each < order)

    def undone(self, made: int, order: int) -> bool:
        """Whether what was made at one moment had been undone, and announced so, at another."""
        restores = (each.order for each in self._history.of(Restored) if each.order > made)
        return any(since < said < order for since in restores for said in self.announced)

    def not_served(self, order: int) -> bool:
        """Whether discovery had said, before a moment, that the resource isn't served."""
        looked = (each for each in self._transitions if each.outcome is Outcome.NOT_SERVED)
        return any(each.order < order for each in looked)

    def judge(self) -> None:
        """Whether what was announced had happened.

        Raises:
            Violation: it had not.
        """
        for number, order in enumerate(self.announced, 1):
            if number > sum(1 for each in self._history.of(Restored) if each.order < order):
                raise Violation(10, "a rewind is announced that wasn't there", time=0.0)

    # -- what can't be known ------------------------------------------------------------------

    def _lost_from(self, restored: Restored) -> float:
        """When it was too late to notice; ``inf`` if it was not."""
        known = self._known_at(restored)
        if known <= restored.backup.version:
            return NEVER  # it had seen nothing of what was undone
        said = min((each for each in self.announced if each > restored.order), default=NEVER)
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
        if said < NEVER or passed < NEVER:
            return NEVER if said < passed else passed
        blind = all(each.bookmark_interval is None for each in self._transitions)
        return restored.order if blind else NEVER

    def _known_at(self, restored: Restored) -> int:
        """The last version that it had when it asked for the first time after that."""
        asked = min(
            (
                each.order
                for each in self._history.of(Request)
                if each.informer == self._informer and each.order > restored.order
            ),
            default=NEVER,
        )
        before: list[Transition] = [each for each in self._transitions if each.order < asked]
        return int(before[-1].version or 0) if before else 0

    def __repr__(self) -> str:
        return f"<Rewinds of {self._informer} announced={len(self.announced)} lost={self.lost}>"
