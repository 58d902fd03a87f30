"""The entries of the DeltaFIFO: single changes, a whole new state, a resync, a bookmark.

The vocabulary is that of client-go's atomic FIFO.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from aioinformer._core.objects.kube_object import DeleteReason, KubeObject

__all__ = ["Bookmark", "Delta", "DeltaKind", "QueueEntry", "Replaced", "Resync"]

DeltaKind: TypeAlias = Literal["Added", "Updated", "Deleted"]
"""The server's name of the change. Listeners get an add or an update depending on what the cache
holds, not on this name (client-go's processDeltas)."""


class Delta(Struct, frozen=True, gc=False):
    """A change of one object."""

    kind: DeltaKind
    obj: KubeObject


class Replaced(Struct, frozen=True):
    """The whole state as of ``resource_version``, as a list has shown it."""

    objects: Sequence[KubeObject]
    resource_version: str
    reason: DeleteReason = "vanished"
    """The reason of the ``Deleted`` events for objects that the state doesn't contain."""


class Resync(Struct, frozen=True, gc=False):
    """A request to deliver the cached state to the listeners again."""


class Bookmark(Struct, frozen=True, gc=False):
    """A mark: there are no further changes up to ``resource_version``."""

    resource_version: str
    ends_initial: bool = False
    """True for the end mark of a WatchList's initial state (KEP-3157)."""


QueueEntry: TypeAlias = Delta | Replaced | Resync | Bookmark
