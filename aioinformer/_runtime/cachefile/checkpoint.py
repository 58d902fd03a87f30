"""A checkpoint: a state of a cache that is to be written. Protocols of the cache it is taken of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from aioinformer._core.cachefile.change_log import LogRecord
from aioinformer._core.cachefile.change_record import ChangeRecord
from aioinformer._core.objects.kube_object import ObjectKey

__all__ = ["Checkpoint", "CheckpointedCache", "CheckpointedScope"]


class CheckpointedScope(Protocol):
    """The state of one scope."""

    @property
    def resource_version(self) -> str:
        """The version up to which everything was applied."""
        ...

    @property
    def synced(self) -> bool:
        """True once a whole state of the server was applied."""
        ...

    @property
    def restored(self) -> bool:
        """True if the state comes from the file and was not confirmed."""
        ...


class CheckpointedCache(Protocol):
    """The cache of the informer."""

    @property
    def rejected(self) -> Mapping[ObjectKey, Exception]:
        """The objects whose newest version was rejected."""
        ...

    def scope_states(self) -> Mapping[str, CheckpointedScope]:
        """Return the state of each scope by its name."""
        ...


class Checkpoint(Struct, frozen=True):
    """A state of the cache that is to be written once the durable listeners have handled it."""

    versions: Mapping[str, str]
    """The resourceVersion of each scope."""
    rejecting: frozenset[str]
    """The scopes with rejected objects."""
    records: Sequence[ChangeRecord]
    """The changes that lead to the state; a later record has the newer ones."""
    log: LogRecord
    """The same changes in order, for the followers of a shared file."""
    synced: frozenset[str]
    """The scopes whose state is confirmed."""
    fresh: Mapping[str, float]
    """The times of the last proofs of freshness, by scope; empty if the file isn't shared."""
