"""What travels from the wire to the cache: one change, or the mark of something larger.

client-go's delta vocabulary of its atomic FIFO: single changes, a whole new state, a resync, a
bookmark. ``wire`` makes them, ``delta_fifo`` keeps them in order, ``indexer`` applies them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from aioinformer._core.objects.kube_object import DeleteReason, KubeObject

__all__ = ["Bookmark", "Delta", "DeltaKind", "QueueEntry", "Replaced", "Resync"]

DeltaKind: TypeAlias = Literal["Added", "Updated", "Deleted"]
"""What the server called it. Whether a listener hears of an add or an update is decided by what
the cache holds, not by this (client-go's processDeltas)."""


class Delta(Struct, frozen=True, gc=False):
    """One object changed."""

    kind: DeltaKind
    obj: KubeObject


class Replaced(Struct, frozen=True):
    """A list was read: this is the whole state, as of ``resource_version``."""

    objects: Sequence[KubeObject]
    resource_version: str
    rewound: bool = False
    """Whether versions were given a second time, as by a server that was restored from a backup,
    or when the resource is read in another version of it: then equal versions say nothing, and
    objects are compared by what is in them."""
    reason: DeleteReason = "vanished"
    """Why what isn't in it any more is gone."""


class Resync(Struct, frozen=True, gc=False):
    """Tell the listeners once more what the cache holds."""


class Bookmark(Struct, frozen=True, gc=False):
    """Nothing of interest happened up to ``resource_version``."""

    resource_version: str
    ends_initial: bool = False
    """Whether it is the mark behind the initial state of a WatchList (KEP-3157)."""


QueueEntry: TypeAlias = Delta | Replaced | Resync | Bookmark
