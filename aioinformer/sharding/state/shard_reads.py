"""The requests that read the shards of a member in one scope: a state machine.

The reflector reads the shards of ``watched`` by one request. The shards of ``gaining`` are read
beside it, since their state alone is missing, and are watched then. The shards of ``waiting`` are
read once the state of others is restored.

    gain ──▶ waiting ──┬── listed or restored beside the watch ──▶ gaining ──┬──▶ watched
                       └── read with the whole state ────────────────────────┘

The tables name what follows from an event while certain requests are under way. ``ShardReader``
makes the requests.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TypeAlias

from msgspec import Struct

CATCH_UP_SECONDS = 5.0
"""Seconds for which a restored state may be older than the watch of the other shards. Then the
whole state is read again."""

_NO_SHARDS = frozenset[int]()


class MainRead(Enum):
    """The request of the reflector, which reads the watched shards."""

    NONE = auto()
    """No request: no shard is watched."""
    STATE = auto()
    """A read of the whole state, by a WatchList or a list."""
    WATCH = auto()


class GainedRead(Enum):
    """The request for shards that have moved in, beside that of the reflector."""

    NONE = auto()
    LIST = auto()
    """A read of their state, by a WatchList or a list."""
    RESTORE = auto()
    """A watch of their changes since the state that the cache file has."""


Reads: TypeAlias = tuple[MainRead, GainedRead]


# -- shards that move in -----------------------------------------------------------------------


class GainAction(Enum):
    WAIT = auto()
    """They are read once the state of others is restored."""
    RESTORE = auto()
    """Those that the cache file has are restored; the others wait."""
    LIST = auto()
    """Their state is listed beside the watch, with the shards that are being listed."""
    READ_ALL = auto()


GAIN_ACTIONS: dict[Reads, tuple[GainAction, GainAction]] = {
    (MainRead.NONE, GainedRead.NONE): (GainAction.RESTORE, GainAction.READ_ALL),
    (MainRead.NONE, GainedRead.RESTORE): (GainAction.WAIT, GainAction.WAIT),
    # The state under way lacks the shards. It is read anew with them, and with the gained ones.
    (MainRead.STATE, GainedRead.NONE): (GainAction.READ_ALL, GainAction.READ_ALL),
    (MainRead.STATE, GainedRead.LIST): (GainAction.READ_ALL, GainAction.READ_ALL),
    (MainRead.STATE, GainedRead.RESTORE): (GainAction.READ_ALL, GainAction.READ_ALL),
    (MainRead.WATCH, GainedRead.NONE): (GainAction.RESTORE, GainAction.LIST),
    (MainRead.WATCH, GainedRead.LIST): (GainAction.LIST, GainAction.LIST),
    (MainRead.WATCH, GainedRead.RESTORE): (GainAction.WAIT, GainAction.WAIT),
}
"""The action for shards that move in: if shards of them may be restored, and if none may."""


# -- shards that move away ---------------------------------------------------------------------


class LossAction(Enum):
    GO_ON = auto()
    """The watch goes on: each of its events is checked. The request for gained shards begins anew
    without the lost ones."""
    READ_ALL = auto()
    EMPTY = auto()
    """The cache is complete without objects."""


LOSS_ACTIONS: dict[MainRead, LossAction] = {
    # The state under way may have objects of the lost shards.
    MainRead.STATE: LossAction.READ_ALL,
    MainRead.WATCH: LossAction.GO_ON,
}
"""The action if watched shards are left, by the request of the reflector."""

LAST_LOSS_ACTIONS: dict[Reads, LossAction] = {
    (MainRead.NONE, GainedRead.NONE): LossAction.EMPTY,
    (MainRead.NONE, GainedRead.RESTORE): LossAction.GO_ON,
    (MainRead.STATE, GainedRead.NONE): LossAction.EMPTY,
    (MainRead.STATE, GainedRead.LIST): LossAction.READ_ALL,
    (MainRead.STATE, GainedRead.RESTORE): LossAction.READ_ALL,
    (MainRead.WATCH, GainedRead.NONE): LossAction.EMPTY,
    # Without a watch to add the listed state to, the reflector reads the whole one.
    (MainRead.WATCH, GainedRead.LIST): LossAction.READ_ALL,
    (MainRead.WATCH, GainedRead.RESTORE): LossAction.GO_ON,
}
"""The action if no watched shard is left, by the request of the reflector and the one for the
gained shards that are left."""


# -- the state of gained shards ----------------------------------------------------------------


class StateAge(Enum):
    """The age of the state of gained shards, compared with the watch of the others."""

    CURRENT = auto()
    BEHIND = auto()
    """The state is older. A later one follows with the next change."""
    OUTDATED = auto()
    """The state is older, and the last one."""
    UNKNOWN = auto()
    """The versions can't be ordered, or there is no version of the watch."""


class StateUse(Enum):
    REPLACE = auto()
    """It becomes the whole state, and a watch follows from its version on."""
    EXTEND = auto()
    """It is added to the state of the others, and the watch is resumed with all shards."""
    AWAIT_NEXT = auto()
    """It is ignored, and a later one is waited for."""
    DISCARD = auto()
    """It is ignored, and the whole state is read again."""


STATE_USES: dict[MainRead, dict[StateAge, StateUse]] = {
    # There is no other state.
    MainRead.NONE: dict.fromkeys(StateAge, StateUse.REPLACE),
    # The state that is being read has no version yet, and no watch that could be resumed.
    MainRead.STATE: dict.fromkeys(StateAge, StateUse.DISCARD),
    MainRead.WATCH: {
        StateAge.CURRENT: StateUse.EXTEND,
        StateAge.BEHIND: StateUse.AWAIT_NEXT,
        StateAge.OUTDATED: StateUse.DISCARD,
        StateAge.UNKNOWN: StateUse.DISCARD,
    },
}


# -- the state machine -------------------------------------------------------------------------


class ReadStep(Struct):
    """Everything to do after an event. Requests end before others begin."""

    main: MainRead | None = None
    """The request that replaces the reflector's; ``None`` leaves it as it is."""
    gained: GainedRead | None = None
    """The request that replaces that for gained shards; ``None`` leaves it as it is."""
    retained: frozenset[int] | None = None
    """The shards whose objects stay in the cache; ``None`` for all."""
    is_empty: bool = False
    """True if the cache counts as complete without objects."""
    use: StateUse | None = None
    deadline: float | None = None
    """The time for ``ShardReads.expire``."""


class ShardReads:
    """The requests under way for the shards of one scope, and those that follow from events."""

    def __init__(self) -> None:
        self.main = MainRead.NONE
        self.gained = GainedRead.NONE
        self.watched: frozenset[int] = _NO_SHARDS
        self.unread: frozenset[int] = _NO_SHARDS
        """Those of them whose first state the reflector reads."""
        self.gaining: frozenset[int] = _NO_SHARDS
        self.waiting: frozenset[int] = _NO_SHARDS
        self._opened = False
        self._begun = False
        """True once the reflector has begun the last request that was decided."""
        self._restorable: frozenset[int] = _NO_SHARDS
        self._has_state = False
        """True once a state of the scope was queued, or is to be before any other one."""
        self._deadline: float | None = None

    # -- the reflector -------------------------------------------------------------------------

    def main_began(self) -> None:
        """Record that the reflector begins the request that was decided last."""
        self._begun = True

    def observe(
        self, *, reads_state: bool, has_unread: bool, restorable: frozenset[int] = _NO_SHARDS
    ) -> None:
        """Record the facts of this moment, before an event.

        ``reads_state`` says that the reflector reads the whole state, or does so next: it turns
        from a watch to a state by itself, when its version has expired for example. ``has_unread``
        is False once the first state of all watched shards was read. ``restorable`` are the shards
        that the cache file has.
        """
        if self._begun and self.main is not MainRead.NONE:
            self.main = MainRead.STATE if reads_state else MainRead.WATCH
        if not has_unread:
            self.unread = _NO_SHARDS
        self._restorable = restorable

    # -- events --------------------------------------------------------------------------------

    def open(self, held: frozenset[int], *, assigned_once: bool) -> ReadStep:
        """Begin to read the shards ``held``: the cache file is open, or can't be.

        ``assigned_once`` says that this member knows its first assignment, which may be empty.
        """
        self._opened = True
        return self.publish_empty() if assigned_once and not held else self.gain(held)

    def publish_empty(self) -> ReadStep:
        """Count the cache as complete: this member was assigned no shard."""
        step = ReadStep()
        if self._opened:
            self._empty(step)
        return step

    def gain(self, shards: frozenset[int]) -> ReadStep:
        step = ReadStep()
        if self._opened:
            self.waiting |= shards
            self._read_waiting(step)
        return step

    def lose(self, lost: frozenset[int]) -> ReadStep:
        step = ReadStep()
        if self._opened:
            self.waiting -= lost
            self.watched -= lost
            self.unread -= lost
            step.retained = self.watched
            self._read_rest(self.gaining - lost, step)
            self._read_waiting(step)
        return step

    def receive(self, age: StateAge, now: float) -> ReadStep:
        """Use the state of the gained shards, which is complete."""
        step = ReadStep(use=STATE_USES[self.main][age])
        if step.use is StateUse.AWAIT_NEXT:
            if self._deadline is None:
                self._deadline = step.deadline = now + CATCH_UP_SECONDS
        elif step.use is StateUse.DISCARD:
            self._read_all(step)
        else:
            self.watched |= self.gaining
            self._has_state = True
            self._begin_gained(GainedRead.NONE, _NO_SHARDS, step)
            self._begin_main(MainRead.WATCH, step)
            self._read_waiting(step)
        return step

    def expire(self) -> ReadStep:
        """Read the whole state: no later state of the gained shards has come in time."""
        step = ReadStep()
        self._read_all(step)
        return step

    # -- actions -------------------------------------------------------------------------------

    def _read_waiting(self, step: ReadStep) -> None:
        waiting = self.waiting
        if not waiting:
            return
        stored = waiting & self._restorable
        # Before the first state, all shards are shown at once: the informer is synced then.
        restores = stored and (self._has_state or stored == waiting)
        match GAIN_ACTIONS[self.main, self.gained][0 if restores else 1]:
            case GainAction.WAIT:
                pass
            case GainAction.RESTORE:
                self.waiting = waiting - stored
                self._begin_gained(GainedRead.RESTORE, stored, step)
            case GainAction.LIST:
                self.waiting = _NO_SHARDS
                self._begin_gained(GainedRead.LIST, self.gaining | waiting, step)
            case GainAction.READ_ALL:
                self._read_all(step)

    def _read_rest(self, gaining: frozenset[int], step: ReadStep) -> None:
        gained = self.gained if gaining else GainedRead.NONE
        if self.watched:
            action = LOSS_ACTIONS[self.main]
        else:
            action = LAST_LOSS_ACTIONS[self.main, gained]
            self._begin_main(MainRead.NONE, step)
        if gaining != self.gaining:
            self._begin_gained(gained, gaining, step)
        if action is LossAction.READ_ALL:
            self._read_all(step)
        elif action is LossAction.EMPTY:
            self._empty(step)

    def _read_all(self, step: ReadStep) -> None:
        added, self.waiting = self.gaining | self.waiting, _NO_SHARDS
        self.watched |= added
        self.unread |= added
        self._has_state = True
        self._begin_gained(GainedRead.NONE, _NO_SHARDS, step)
        self._begin_main(MainRead.STATE, step)

    def _empty(self, step: ReadStep) -> None:
        self._has_state = step.is_empty = True

    def _begin_main(self, main: MainRead, step: ReadStep) -> None:
        self.main = step.main = main
        self._begun = False

    def _begin_gained(self, gained: GainedRead, shards: frozenset[int], step: ReadStep) -> None:
        self.gained = step.gained = gained
        self.gaining, self._deadline = shards, None

    def __repr__(self) -> str:
        watched = f"{self.main.name} of {len(self.watched)}"
        gained = f"{self.gained.name} of {len(self.gaining)}"
        return f"<ShardReads {watched}, {gained}, {len(self.waiting)} waiting>"
