"""Shards as a feature of an informer: ``shard=Shard(0, 4)``, or ``shard=group``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol, runtime_checkable

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.informer.feature import (
    Feature,
    InformerParts,
    MakeReflectors,
    Selection,
)
from aioinformer._runtime.informer.reflectors import RunReflector
from aioinformer._runtime.reflector.delta_queue import EntryQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer.sharding.group_reflectors import GroupReflectors
from aioinformer.sharding.group_shards import GroupShards, ShardGate
from aioinformer.sharding.shard_source import DURABLE_REFUSAL, is_whole, read_shard
from aioinformer.sharding.state.assignment import ShardAssignment
from aioinformer.sharding.state.shard import Shard
from aioinformer.sharding.state.shard_filter import ShardFilter
from aioinformer.sharding.stored_shards import StoredShards, StoredState


@runtime_checkable
class KeepsShards(Protocol):
    """A feature that keeps the state of shards from one run to the next."""

    async def open_parts(
        self, source: ListerWatcher, scope: str, parts: StoredShards
    ) -> StoredState | None:
        """See ``OpenShards``."""
        ...


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

    durable_refusal = DURABLE_REFUSAL

    def __init__(self, assignment: ShardAssignment) -> None:
        self.assignment = assignment
        self._shards: GroupShards | None = None

    @property
    def name(self) -> str:
        return self.assignment.name

    def make_gate(self, stored: Callable[[ObjectKey], KubeObject | None]) -> ShardGate:
        """Return the gate of a controller; ``stored`` returns the cached object of a key."""
        return self.shards.make_gate(stored)

    @property
    def shards(self) -> GroupShards:
        """The shards that the informer reads, and the controllers that work on them."""
        if self._shards is None:
            raise AssertionError("a feature is attached before it is used")
        return self._shards

    def select(self, resource: Resource, queue: EntryQueue) -> tuple[EntryQueue, ShardFilter]:
        return read_shard(self.assignment, resource, queue)

    def wrap_reflectors(self, make: MakeReflectors, parts: InformerParts) -> MakeReflectors:
        return partial(self._make_reflectors, make, parts)

    def _make_reflectors(
        self, make: MakeReflectors, parts: InformerParts, run: RunReflector
    ) -> GroupReflectors:
        keeper = parts.find(KeepsShards)
        reflectors = GroupReflectors(
            parts.name, self.assignment, make, None if keeper is None else keeper.open_parts
        )
        self._shards = reflectors.shards
        parts.observers.append(reflectors.cached)
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


def check_option(value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is a shard or a group."""
    if isinstance(value, type) or not isinstance(value, Shard | ShardAssignment):
        raise TypeError(f"shard must be a Shard such as Shard(0, 4), or a group, not {value!r}")


def make_feature(shard: Shard | ShardAssignment) -> Feature | None:
    """Return the feature of a new informer; ``None`` for a shard that is all objects."""
    if is_whole(shard):
        return None
    return ShardFeature(shard) if isinstance(shard, Shard) else GroupFeature(shard)
