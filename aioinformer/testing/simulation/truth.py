"""What the server held of one selection, at each resourceVersion: the oracle.

Worked out from the log of writes alone, with a selector of its own, so that it shares no code with
what it judges. A server that goes back to a backup gives versions a second time: then there is one
more timeline, which has its past up to the backup from the one that the backup was made in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer.testing.simulation.plan import DROPPED, SHIFT, InformerSpec
from aioinformer.testing.simulation.records import Record, Restored, State, Version, Write

__all__ = ["Truth", "Walk"]


class Walk:
    """The states of one timeline, from the first one on."""

    def __init__(
        self, changes: Sequence[tuple[int, ObjectKey, Version | None]], kept: int = 0
    ) -> None:
        """Begin before everything."""
        self.version = 0
        self.kept = kept
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
    kept: int = 0
    changes: list[tuple[int, ObjectKey, Version | None]] = field(
        default_factory=list[tuple[int, ObjectKey, Version | None]]
    )


class Truth:
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
                self._follow(record, selected=not record.gone and self._selects(record))

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
        kept = restored.kept
        source = [line for line in self._timelines if line.began <= kept.order][-1]
        shared = [change for change in source.changes if change[0] <= kept.version]
        self._timelines.append(_Timeline(restored.order, kept.version, shared))
        state = Walk(shared).to(kept.version)
        for key, version in self.final.items():
            if key not in state or state[key].uid != version.uid:
                self.exits.setdefault((key, version.uid), []).append(restored)
        self.final = dict(state)

    def walks(self, *, until: int) -> list[Walk]:
        """A walk through each timeline that began before a moment."""
        return [Walk(each.changes, each.kept) for each in self._timelines if each.began <= until]

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
