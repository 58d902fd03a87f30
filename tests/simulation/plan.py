"""A plan: everything that will happen in one history, as plain values.

A plan has informers and steps: listeners that join and leave, writes, and faults. ``generator``
draws a plan from a seed, ``world`` carries it out, and ``runner`` leaves out steps to make a
failing plan smaller. Each step means the same without the others, so that any part of a plan is a
plan: to put an object creates or replaces it, and to remove an object that isn't there, or to
restore without a backup, does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from aioinformer._core.delivery.overflow import OverflowName
from aioinformer._core.objects.resources import Resource, find_built_in

PODS = find_built_in("pods")
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
"""A custom resource, whose lists have their items before their metadata."""

NAMESPACES = ("web", "db", "ops")
"""The namespaces of all objects."""

FOLLOWED_TEAM = "shop"
"""An informer that ``follows`` reads the namespaces with this value of the label ``team``."""
NAMESPACE_INFORMER = "namespaces"
"""The name, also that of its connections, of the informer that caches the namespaces."""

DROPPED = "node-3"
"""A transform that ``cuts`` drops the objects on this node."""
REJECTED = "node-x"
"""A transform that ``refuses`` and a raising index function raise at objects on this node."""
SHIFT = 7_000_000
"""A transform that ``cuts`` adds this to the value of the other objects. It is a multiple of 7,
since filters that raise look at the remainder of a value divided by 7."""

SPAN = 1200.0
"""Virtual seconds over which things happen: watches last 300 to 600, bookmarks come every 60."""
SHORT_PAGE = 7
"""Objects on a page of a list that certainly has several pages."""

REDEFINED = 70_000_000
"""``redefine`` adds this to the values of all objects: a multiple of 7 as well."""

Transforms: TypeAlias = Literal["", "cuts", "refuses"]
"""The transform of an informer, if any: ``cuts`` drops some objects and changes the others;
``refuses`` raises at objects on the node ``node-x``."""


@dataclass(frozen=True, slots=True)
class ScopeSpec:
    """One of several namespaces of an informer."""

    namespace: str
    app: str = ""
    """The value of the label ``app`` that is selected there; empty for no selector."""
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerSpec:
    """One informer."""

    name: str
    namespace: str | None = None
    app: str = ""
    """The value of the label ``app`` that the informer selects; empty for no selector."""
    resync: float = 0.0
    page_size: int = 0
    high_mark: int = 10_000
    """Entries at which the queue is full."""
    raising_index: bool = False
    """True if the index function raises at objects on the node ``node-x``."""
    watch_list: bool = True
    """True if the informer asks for WatchLists rather than lists."""
    transform: Transforms = ""
    scopes: tuple[ScopeSpec, ...] = ()
    """The namespaces that the informer reads at first; empty for an informer of one scope."""
    follows: bool = False
    """True if the informer reads the namespaces whose label ``team`` is ``FOLLOWED_TEAM``."""

    @property
    def scoped(self) -> bool:
        """True if the informer reads several namespaces, which come and go."""
        return self.follows or bool(self.scopes)


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
    """Seconds that the listener sleeps at each event."""
    concurrency: int = 1
    timeout: float | None = None
    """Seconds that a call may take."""
    resync: float | None = None
    """The listener's own resync period; ``None`` for that of the informer."""
    passing: str = ""
    """The ``app=`` or ``node=`` of the objects that pass the filter; empty for no filter. A filter
    with a ``!`` at the end raises at some of the other objects."""
    changes: str = ""
    """The part, ``app`` or ``node``, whose changes pass the filter; empty for all changes."""
    plain: bool = False
    """True if the handler is a function that isn't async."""

    @property
    def streams(self) -> bool:
        """True if the listener reads a stream, False if it is a handler."""
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
class ServerStep:
    """Change the server as a whole.

    ``redefine`` changes the values of all objects without a write, as new defaults do.
    ``withdraw`` deletes all objects and their resource, which ``serve`` brings back; no object is
    written in between. ``restore`` brings back the objects and the resourceVersion of the last
    ``back_up``.
    """

    at: float
    action: Literal["redefine", "withdraw", "serve", "back_up", "restore"]


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
    "watch_refused",
    "endless",
    "endless_pages",
    "no_bookmarks",
    "duplicate_bookmarks",
]
"""The kinds of faults, which ``network`` describes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Begin a fault."""

    at: float
    kind: FaultKind
    lasting: float = 0.0
    """Seconds."""
    amount: int = 0
    """Bytes of a reset, stall, drip or corruption; milliseconds of latency; the code of a status or
    error event; seconds of a brief or endless watch; the form of ``version_too_large``."""
    retry_after: int = 0
    """The seconds in the ``Retry-After`` of a status."""
    share: float = 1.0
    """The share of new requests that the fault concerns while it lasts."""
    target: str = ""
    """The informer whose connections the fault concerns; empty for all."""


@dataclass(frozen=True, slots=True)
class Join:
    """Let a listener join."""

    at: float
    listener: ListenerSpec


@dataclass(frozen=True, slots=True)
class Merge:
    """Let two listeners join whose streams are read as one."""

    at: float
    listeners: tuple[ListenerSpec, ListenerSpec]


@dataclass(frozen=True, slots=True)
class Leave:
    """Remove a listener."""

    at: float
    listener: str


@dataclass(frozen=True, slots=True)
class AddScope:
    """Let an informer read a namespace, unless the informer does."""

    at: float
    informer: str
    scope: ScopeSpec


@dataclass(frozen=True, slots=True)
class RemoveScope:
    """Let an informer read a namespace no longer, if the informer does."""

    at: float
    informer: str
    namespace: str


@dataclass(frozen=True, slots=True)
class NamespaceStep:
    """Create a namespace or label it anew, or delete it with all its objects."""

    at: float
    namespace: str
    team: str | None
    """The value of the label ``team``; ``None`` to delete the namespace."""


@dataclass(frozen=True, slots=True)
class Visit:
    """Enter a factory, use one informer for a while, and leave."""

    at: float
    name: str
    lasting: float
    drains: bool = False
    """True if the handler must finish what is pending when the factory is left."""
    delay: float = 0.0
    """Seconds that the handler sleeps at each event."""
    fails: int = 0
    """The number of the event at which the handler raises to end the factory; 0 for none."""
    concurrency: int = 1
    leaves_with_event: bool = False
    """True to leave the factory at the first change after ``lasting``, as its event arrives."""


Step: TypeAlias = (
    Put
    | Remove
    | ServerStep
    | Fault
    | Join
    | Merge
    | Leave
    | AddScope
    | RemoveScope
    | NamespaceStep
    | Visit
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that will happen in one history."""

    seed: int
    """Decides what the plan doesn't: the order of callbacks, the cuts between bytes, jitter."""
    informers: tuple[InformerSpec, ...]
    steps: tuple[Step, ...]
    """In the order of time."""
    custom: bool = False
    """True if the objects are of a custom resource."""
    window: int = 1000
    """Changes that the server remembers."""
    watch_buffer: int = 1000
    """Events that the server keeps for a client that doesn't read."""
    watch_list: bool = True
    """True if the server's storage can serve a WatchList."""
    cost: float = 0.0
    """The most seconds between two looks at the clock."""
    settle: float = 800.0
    """Seconds after the last step: a watch that fell silent lasts 600 s and 30 s of grace; then
    there is a wait of at most 60 s, and time for slow listeners."""

    @property
    def resource(self) -> Resource:
        """The resource of the objects."""
        return WIDGETS if self.custom else PODS

    @property
    def faults(self) -> int:
        """The number of faults."""
        return sum(isinstance(step, Fault) for step in self.steps)

    @property
    def ends(self) -> float:
        """The time at which everything is judged."""
        return max((_end(step) for step in self.steps), default=0.0) + self.settle

    def keep(self, kept: Iterable[int]) -> Plan:
        """Return the plan with the steps at these indexes alone."""
        return replace(self, steps=tuple(self.steps[index] for index in sorted(kept)))


def _end(step: Step) -> float:
    return step.at + (step.lasting if isinstance(step, Fault | Visit) else 0.0)
