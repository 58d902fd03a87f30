"""The entries of the DeltaFIFO, by the names of client-go's atomic FIFO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, field, structs

from aioinformer._core.objects.kube_object import DeleteReason, KubeObject, ObjectKey
from aioinformer._core.objects.object_key import Admit

DeltaKind: TypeAlias = Literal["Added", "Updated", "Deleted"]
"""The server's name of the change. Listeners get an add or an update depending on what the cache
holds, not on this name (client-go's processDeltas)."""


class Delta(Struct, frozen=True, gc=False):
    kind: DeltaKind
    obj: KubeObject


class Replaced(Struct, frozen=True):
    """The state as of ``resource_version``: a whole one, as a list has shown it, or a part."""

    objects: Sequence[KubeObject]
    resource_version: str
    reason: DeleteReason = "vanished"
    """The reason of the ``Deleted`` events for objects that the state doesn't contain."""
    scope: str | None = None
    """The namespace whose state this is, in a cache of several scopes; ``None`` in any other."""
    initial: Admit | None = None
    """Admits the objects that are delivered as initial ones though the cache has a state."""
    kept: Admit | None = None
    """Admits the cached objects that stay. ``objects`` and ``resource_version`` are empty then, and
    the state is the cached one without its other objects."""
    extends: bool = False
    """True if ``objects`` are added to the cached ones. The cache's version stays, which may be
    older than ``resource_version``."""
    restored: bool = False
    """True if this state is of an earlier time and may be older than the server's: the cache isn't
    synced before it is ``Confirmed``, or another state follows."""

    @property
    def is_whole(self) -> bool:
        """True if the state takes the place of all cached objects of its scope."""
        return self.kept is None and not self.extends

    def without_objects(self) -> Replaced:
        return structs.replace(self, objects=())


class CorrectionGuard(Struct, eq=False, gc=False):
    """The shared part of the corrections of one comparison: their validity and progress."""

    removed: set[ObjectKey] = field(default_factory=set[ObjectKey])
    valid: bool = True
    """False once a whole new state was applied, which shows everything that was missing."""
    pending: int = 0
    applied: int = 0


class Correction(Struct, frozen=True, gc=False):
    """The server's state of one object that the cache shows differently.

    It is applied only if the cache still holds the compared state: any later change of the object
    is newer than the comparison.
    """

    key: ObjectKey
    cached: KubeObject | None
    obj: KubeObject | None
    guard: CorrectionGuard


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
