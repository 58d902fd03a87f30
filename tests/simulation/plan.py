"""A plan: everything that will happen in one history, as plain values.

Who listens to what, what is written when, what breaks when. ``workload`` draws one from a seed,
``run`` carries it out, ``shrink`` leaves parts of it out. A step means something whatever the
other steps are, so that any part of a plan is a plan: putting an object creates or replaces it,
removing one that isn't there does nothing, and neither does restoring without a backup.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from aioinformer._core.delivery.mailbox import OverflowName
from aioinformer._core.objects.resources import Resource, find_built_in

PODS = find_built_in("pods")
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
"""A custom resource: its lists have their items before their metadata."""


DROPPED = "node-3"
"""Objects on this node are dropped by a transform that ``cuts``."""
SHIFT = 7_000_000
"""What such a transform adds to the value of the others. Filters that raise look at what is left of
a value divided by 7."""

Transforms: TypeAlias = Literal["", "cuts", "refuses"]
"""What the transform of an informer does, if it has one: ``cuts`` drops some objects and changes
the others, ``refuses`` raises at objects on the node ``node-x``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerSpec:
    """One informer."""

    name: str
    namespace: str | None = None
    app: str = ""
    """It selects the objects whose label ``app`` is this; empty for no selector."""
    resync: float = 0.0
    page_size: int = 0
    high_mark: int = 10_000
    """Entries at which its queue is full."""
    raising_index: bool = False
    """Whether its index function raises at objects on the node ``node-x``."""
    watch_list: bool = True
    """Whether it asks for WatchLists rather than lists."""
    transform: Transforms = ""


Behaviour: TypeAlias = Literal[
    "quick",
    "slow",
    "raising",
    "cancelling",
    "parallel",
    "timed",
    "adds_listeners",
    "stuck",
    "leaves_early",
    "stream",
    "interrupted",
    "merged",
]
"""``slow`` sleeps at each event. ``raising`` raises at some. ``cancelling`` raises a
CancelledError or cancels its own task. ``parallel`` is called for several keys at once. ``timed``
exceeds its timeout at some events. ``adds_listeners`` adds other listeners and removes them.
``stuck`` doesn't return from its first event within the history. ``leaves_early`` removes itself
while it handles its twentieth event. ``stream`` is an ``async for`` loop, ``interrupted`` one
whose waits are cancelled now and then, ``merged`` one half of a loop over two streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSpec:
    """One listener of an informer."""

    name: str
    informer: str
    behaviour: Behaviour = "quick"
    limit: int = 1024
    overflow: OverflowName = "block"
    delay: float = 0.0
    """Seconds that it sleeps at each event."""
    concurrency: int = 1
    timeout: float | None = None
    """Seconds that a call may take."""
    resync: float | None = None
    """Its own period; ``None`` for that of its informer."""
    passing: str = ""
    """It hears only of objects with this ``app=`` or ``node=``; empty for all. With a ``!`` at the
    end its filter raises at some of the others.
    """
    changes: str = ""
    """It hears only of updates in which this has changed, ``app`` or ``node``; empty for all."""
    plain: bool = False
    """Whether its handler is a function that isn't async."""

    @property
    def streams(self) -> bool:
        """Whether it reads rather than being called."""
        return self.behaviour in ("stream", "interrupted", "merged")


# -- steps -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Put:
    """Write an object."""

    at: float
    namespace: str
    name: str
    app: str
    node: str
    value: int


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete an object."""

    at: float
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Delete all objects, and serve their resource no longer."""

    at: float


@dataclass(frozen=True, slots=True)
class Serve:
    """Serve it again. Nothing is written in between."""

    at: float


@dataclass(frozen=True, slots=True)
class Backup:
    """Keep a copy of all that the server holds."""

    at: float


@dataclass(frozen=True, slots=True)
class Restore:
    """Bring the last copy back: objects and the resourceVersion are those of then."""

    at: float


FaultKind: TypeAlias = Literal[
    "refuse",
    "outage",
    "reset",
    "stall",
    "hang",
    "drip",
    "latency",
    "corrupt",
    "html_page",
    "status",
    "version_too_large",
    "stale_list",
    "absent",
    "moved",
    "error_event",
    "compact",
    "end",
    "unserved",
    "brief",
    "empty_watch",
    "no_watchlist",
    "endless",
    "no_bookmarks",
    "duplicate_bookmarks",
]
"""What breaks; ``network`` says what each does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something breaks."""

    at: float
    kind: FaultKind
    lasting: float = 0.0
    """Seconds."""
    amount: int = 0
    """Bytes of a reset, stall or drip, milliseconds of latency, code of a status or error event,
    seconds of a brief or endless watch, dialect of a server that lags."""
    retry_after: int = 0
    """Seconds that a status asks for."""
    share: float = 1.0
    """The share of new requests that it hits while it lasts."""
    target: str = ""
    """The informer whose connections it hits; empty for all."""


@dataclass(frozen=True, slots=True)
class Join:
    """A listener joins."""

    at: float
    listener: ListenerSpec


@dataclass(frozen=True, slots=True)
class Merge:
    """Two listeners join, whose streams are read as one."""

    at: float
    listeners: tuple[ListenerSpec, ListenerSpec]


@dataclass(frozen=True, slots=True)
class Leave:
    """A listener leaves."""

    at: float
    listener: str


@dataclass(frozen=True, slots=True)
class Visit:
    """A factory is entered, has one informer for a while, and is left."""

    at: float
    name: str
    lasting: float
    drains: bool = False
    """Whether its handler is to finish what is pending when the factory is left."""
    delay: float = 0.0
    """Seconds that its handler sleeps at each event."""
    fails: int = 0
    """At which event its handler raises, which is to end the factory; 0 for none."""


Step: TypeAlias = (
    Put | Remove | Withdraw | Serve | Backup | Restore | Fault | Join | Merge | Leave | Visit
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One history to be."""

    seed: int
    """Decides what the plan doesn't: the order of callbacks, how bytes are cut, jitter."""
    informers: tuple[InformerSpec, ...]
    steps: tuple[Step, ...]
    """In order of time."""
    custom: bool = False
    """Whether the objects are of a custom resource."""
    window: int = 1000
    """Changes that the server remembers."""
    watch_buffer: int = 1000
    """Events that the server keeps for a client that doesn't read."""
    watch_list: bool = True
    """Whether the server's storage can serve a WatchList."""
    cost: float = 0.0
    """Seconds between two looks at the clock, at most."""
    settle: float = 800.0
    """Seconds after the last step: a watch that fell silent lasts 600 s and 30 s of grace, then
    comes a wait of 60 s at most, and time for the slow."""

    @property
    def resource(self) -> Resource:
        """Of what the objects are."""
        return WIDGETS if self.custom else PODS

    @property
    def faults(self) -> int:
        """How many faults it has."""
        return sum(isinstance(step, Fault) for step in self.steps)

    @property
    def ends(self) -> float:
        """When everything is judged."""
        return max((_end(step) for step in self.steps), default=0.0) + self.settle

    def keep(self, kept: Iterable[int]) -> Plan:
        """The plan with these of its steps alone."""
        return replace(self, steps=tuple(self.steps[index] for index in sorted(kept)))


def _end(step: Step) -> float:
    return step.at + (step.lasting if isinstance(step, Fault | Visit) else 0.0)
