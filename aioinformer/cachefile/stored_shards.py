"""The shards of a group in a cache file: restored when the member receives them, and written.

A member that restarts receives its shards one after the other. Their rows stay in the file until
the shard returns, or until the server's history has passed their version.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.resources import Resource
from aioinformer.cachefile.file_access import FileAccess
from aioinformer.cachefile.state.recorded_shards import SealedShards, outdated_shards
from aioinformer.cachefile.stored_scope import ShardsWrite, StoredScope
from aioinformer.sharding.state.assignment import ShardAssignment
from aioinformer.sharding.state.ranges import HashRanges
from aioinformer.sharding.state.shard_sets import format_shards, parse_shards

RESTORABLE_SECONDS = 600.0
"""Seconds after the start for which shards are restored: a server usually keeps the changes of five
to ten minutes, and lists the objects of an older state anyway."""


class StoredShards:
    """The shards of one scope that the file has of an earlier run."""

    def __init__(
        self, access: FileAccess, stored: StoredScope, resource: Resource, group: ShardAssignment
    ) -> None:
        self.version = stored.version
        """The resourceVersion of their state."""
        self._access = access
        self._stored = stored
        self._resource = resource
        self._until = asyncio.get_running_loop().time() + RESTORABLE_SECONDS
        # A state with rejected objects lacks their newest versions, so that a list is needed.
        known = "" if stored.reread else stored.shards
        self._shards = parse_shards(known, group.count)

    def find(self, shards: frozenset[int]) -> frozenset[int]:
        """Return those of the shards that can be restored."""
        if self._access.problem or asyncio.get_running_loop().time() > self._until:
            self._shards = frozenset[int]()
        return shards & self._shards

    def discard(self, shards: frozenset[int]) -> None:
        """Restore these shards no more: the cache holds a later state of them."""
        self._shards -= shards

    def read(self, ranges: HashRanges) -> AsyncIterator[list[KubeObject]]:
        """Return the objects of shards in lists. After a problem the iterator ends early."""
        return self._access.read_objects(self._stored, self._resource, ranges)

    @property
    def problem(self) -> str:
        """The reason why the file is no longer used; empty while the file is used."""
        return self._access.problem

    def __repr__(self) -> str:
        return f"<StoredShards {format_shards(self._shards)} of version {self.version}>"


def shards_to_write(
    written: SealedShards | None,
    sealed: SealedShards,
    stored: StoredShards | None,
    group: ShardAssignment,
) -> ShardsWrite:
    """Return the part of a write that is about shards; ``written`` is the last one of this run."""
    every = frozenset(range(group.count))
    outdated = outdated_shards(
        written,
        sealed,
        restorable=frozenset() if stored is None else stored.find(every),
        count=group.count,
    )
    return ShardsWrite(
        format_shards(sealed.complete), HashRanges.of(outdated, group.count, group.by)
    )
