"""Shards as a feature of an informer: ``shard=Shard(0, 4)``, or ``shard=group``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from msgspec import structs

from aioinformer._core.objects.deltas import Bookmark, Delta, Replaced, StateEntry
from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.informer.feature import (
    Feature,
    InformerParts,
    MakeReflectors,
    Selection,
    find_feature,
)
from aioinformer._runtime.informer.reflectors import RunReflector
from aioinformer._runtime.reflector.delta_queue import EntryQueue
from aioinformer.errors import UsageError
from aioinformer.sharding.group_reflectors import GroupReflectors
from aioinformer.sharding.group_shards import GroupShards, ShardGate
from aioinformer.sharding.state.assignment import ShardAssignment
from aioinformer.sharding.state.ranges import HashRanges
from aioinformer.sharding.state.shard import Shard
from aioinformer.sharding.state.shard_filter import ShardFilter
from aioinformer.sharding.stored_shards import KeepsShards, StoredShards


class ShardFeature(Feature):
    """One fixed shard of all objects."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._ranges = shard.ranges

    def select(self, resource: Resource, queue: EntryQueue) -> tuple[EntryQueue, ShardFilter]:
        return read_shard(self._shard, resource, queue)

    def exclusion(self, obj: KubeObject) -> str:
        held = self._ranges.has(obj.uid, obj.key.namespace)
        return "" if held else "another shard"

    def narrow(self, selection: Selection) -> Selection:
        return selection._replace(part=self._shard)

    @property
    def identity(self) -> Mapping[str, str]:
        return {"shard": str(self._shard)}


class GroupFeature(Feature):
    """The shards that a group has assigned to this member."""

    durable_refusal = (
        "the replica that holds a shard handles the shard's events, and the files of the other "
        "replicas don't have them; give each replica a fixed shard=Shard(index, count), or use a "
        "Controller"
    )

    shards: GroupShards
    """The shards that the informer reads, and the controllers that work on them."""

    def __init__(self, assignment: ShardAssignment) -> None:
        self.assignment = assignment
        self._stored: Mapping[str, StoredShards] = {}

    def record_list(self, batches: Sequence[Sequence[Event]], kind: Replaced) -> None:
        """Follow which shards the cache holds."""
        if (shards := self._stored.get(kind.scope or "")) is not None:
            shards.apply(kind)

    @property
    def name(self) -> str:
        return self.assignment.name

    def make_gate(self, stored: Callable[[ObjectKey], KubeObject | None]) -> ShardGate:
        """Return the gate of a controller; ``stored`` returns the cached object of a key."""
        gate = ShardGate(self.shards, stored)
        self.shards.add_user(gate)
        return gate

    def select(self, resource: Resource, queue: EntryQueue) -> tuple[EntryQueue, ShardFilter]:
        return read_shard(self.assignment, resource, queue)

    def wrap_reflectors(self, make: MakeReflectors, parts: InformerParts) -> MakeReflectors:
        return partial(self._make_reflectors, make, parts)

    def _make_reflectors(
        self, make: MakeReflectors, parts: InformerParts, run: RunReflector
    ) -> GroupReflectors:
        keeper = find_feature(parts.features, KeepsShards)
        reflectors = GroupReflectors(parts.name, self.assignment, make, keeper)
        self.shards, self._stored = reflectors.shards, reflectors.stored
        return reflectors

    def exclusion(self, obj: KubeObject) -> str:
        held = self.shards.shard_of_object(obj) in self.shards.held
        return "" if held else "another shard"

    def narrow(self, selection: Selection) -> Selection:
        return selection._replace(part=self.assignment)

    @property
    def identity(self) -> Mapping[str, str]:
        group = self.assignment
        return {"shard": f"group {group.name}: {group.count} shards by {group.by}"}


class GroupQueue:
    """The queue of a reflector of shards that come and go."""

    def __init__(self, queue: EntryQueue, shards: ShardFilter) -> None:
        self._queue = queue
        self._shards = shards

    def feed(self, entries: Sequence[Delta | Bookmark]) -> bool:
        return self._queue.feed(self._shards.drop_repeated(entries))

    def put(self, entry: StateEntry) -> None:
        if isinstance(entry, Replaced) and entry.reason == "vanished":
            entry = structs.replace(entry, initial=self._shards.complete_state())
        self._queue.put(entry)

    async def room(self) -> None:
        await self._queue.room()


def is_whole(shard: Shard | ShardAssignment) -> bool:
    """Return True if ``shard`` is the only one of its resource: ``Shard(0, 1)``."""
    return shard == Shard(0, 1)


def read_shard(
    shard: Shard | ShardAssignment, resource: Resource, queue: EntryQueue
) -> tuple[EntryQueue, ShardFilter]:
    """Return the queue and the filter of a reflector that reads a shard of ``resource``.

    ``queue`` is the informer's. The filter of a group has no shards yet.

    Raises:
        UsageError: the shards are by namespace, and the objects are in none.
    """
    if shard.by == "namespace" and not resource.namespaced:
        example = f"Shard({shard.index}, {shard.count})" if isinstance(shard, Shard) else "a group"
        raise UsageError(
            f"{resource} are in no namespace, so that all of them would be in one shard; pass "
            f"{example} that splits by uid"
        )
    if isinstance(shard, Shard):
        return queue, ShardFilter(shard.ranges)
    chosen = ShardFilter(HashRanges.of((), shard.count, shard.by))
    return GroupQueue(queue, chosen), chosen


def make_feature(shard: Shard | ShardAssignment) -> Feature | None:
    """Return the feature of a new informer; ``None`` for a shard that is all objects."""
    # A program without a type checker may pass anything.
    if isinstance(shard, type) or not isinstance(cast("object", shard), Shard | ShardAssignment):
        raise TypeError(f"shard must be a Shard such as Shard(0, 4), or a group, not {shard!r}")
    if is_whole(shard):
        return None
    return ShardFeature(shard) if isinstance(shard, Shard) else GroupFeature(shard)
