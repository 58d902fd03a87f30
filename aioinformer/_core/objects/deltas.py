"""The entries of the DeltaFIFO, by the names of client-go's atomic FIFO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, field, structs

from aioinformer._core.objects.kube_object import DeleteReason, KubeObject, ObjectKey

if TYPE_CHECKING:  # for informers of shards
    from aioinformer.sharding.state.ranges import HashRanges

DeltaKind: TypeAlias = Literal["Added", "Updated", "Deleted"]
"""The server's name of the change. Listeners get an add or an update depending on what the cache
holds, not on this name (client-go's processDeltas)."""


class Delta(Struct, frozen=True, gc=False):
    kind: DeltaKind
    obj: KubeObject


class Replaced(Struct, frozen=True):
    """The whole state as of ``resource_version``, as a list has shown it."""

    objects: Sequence[KubeObject]
    resource_version: str
    reason: DeleteReason = "vanished"
    """The reason of the ``Deleted`` events for objects that the state doesn't contain."""
    scope: str | None = None
    """The namespace whose state this is, in a cache of several scopes; ``None`` in any other."""
    gained: HashRanges | None = None
    """The shards that the cache holds for the first time with this state: their objects are
    delivered as initial ones."""
    retained: HashRanges | None = None
    """The shards whose objects stay. ``objects`` and ``resource_version`` are empty then, and the
    state is the cached one without the objects of other shards."""
    extends: bool = False
    """True if the state is that of shards which were gained: the cached objects stay, and so does
    the cache's version, which may be older than ``resource_version``."""
    restored: bool = False
    """True if a cache file, and not the server, has shown this state."""

    @property
    def is_whole(self) -> bool:
        """True if the state takes the place of all cached objects of its scope."""
        return self.retained is None and not self.extends

    def without_objects(self) -> Replaced:
        return structs.replace(self, objects=())


class RepairGuard(Struct, eq=False, gc=False):
    """The shared part of the corrections of one verification: their validity and progress."""

    removed: set[ObjectKey] = field(default_factory=set[ObjectKey])
    valid: bool = True
    """False once a whole new state was applied, which shows everything that was missing."""
    pending: int = 0
    repaired: int = 0


class Correction(Struct, frozen=True, gc=False):
    """The server's state of one object that the cache shows differently.

    It is applied only if the cache still holds the compared state: any later change of the object
    is newer than the comparison.
    """

    key: ObjectKey
    cached: KubeObject | None
    obj: KubeObject | None
    guard: RepairGuard


class Resync(Struct, frozen=True, gc=False): ...


class Bookmark(Struct, frozen=True, gc=False):
    """A mark: there are no further changes up to ``resource_version``."""

    resource_version: str
    ends_initial: bool = False
    """True for the end mark of a WatchList's initial state (KEP-3157)."""
    scope: str | None = None
    """The namespace that was watched, in a cache of several scopes."""


class Confirmed(Struct, frozen=True, gc=False):
    """A mark: the restored state, with the changes before this mark, is at least as new as the
    state that the server had when the informer started.
    """

    scope: str | None = None


StateEntry: TypeAlias = Replaced | Confirmed | Correction
QueueEntry: TypeAlias = Delta | Bookmark | Resync | StateEntry
