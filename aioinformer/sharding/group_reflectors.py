"""The reflectors of an informer on a group: they read the shards that this member holds.

One task follows the assignment of the group, ends the work on shards that move away, and passes
each change to the readers, one for each scope of the informer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, NoReturn
from weakref import WeakMethod

from aioinformer._core.quantities import quantity
from aioinformer._runtime.informer.reflectors import Reflectors, RunReflector, ScopePart
from aioinformer._runtime.reflector.delta_queue import EntryQueue
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.health import Health
from aioinformer._runtime.tasks.task_group import StrictTaskGroup
from aioinformer.sharding.group_shards import GroupShards
from aioinformer.sharding.shard_reader import ShardReader
from aioinformer.sharding.state.assignment import ShardAssignment
from aioinformer.sharding.stored_shards import KeepsShards, StoredShards

log = logging.getLogger("aioinformer.scopes")


class GroupReflectors:
    def __init__(
        self,
        name: str,
        assignment: ShardAssignment,
        make_scopes: Callable[[RunReflector], Reflectors],
        keeper: KeepsShards | None = None,
    ) -> None:
        """Read nothing yet. ``make_scopes`` makes the reflectors that its argument runs."""
        self._name = name
        self.shards = GroupShards(assignment)
        self.stored: dict[str, StoredShards] = {}
        """The shards of each scope that the cache holds."""
        self._readers: list[ShardReader] = []
        self._group: StrictTaskGroup | None = None
        self._keeper = keeper
        # By a weak reference: the scopes keep the function, and this object keeps the scopes.
        weak = WeakMethod(self._run)

        def run(reflector: Reflector, queue: EntryQueue, scope: str) -> Coroutine[Any, Any, None]:
            method = weak()
            if method is None:
                raise AssertionError("the scopes of an informer start with their informer")
            return method(reflector, queue, scope)

        self.scopes = make_scopes(run)

    def start(self, group: StrictTaskGroup) -> None:
        self._group = group
        self.scopes.start(group)
        group.start(self._follow(), name=f"shards of {self._name}")

    def close(self) -> None:
        self._group = None
        self.scopes.close()

    async def _run(self, reflector: Reflector, queue: EntryQueue, scope: str) -> None:
        if self._group is None:
            raise AssertionError("a scope starts with the informer")
        name = f"{self._name} in {scope}" if scope else self._name
        reader = ShardReader(
            *(name, reflector, queue, self.shards, self._group), scope=scope, keeper=self._keeper
        )
        self._readers.append(reader)
        scopes = self.stored
        scopes[scope] = reader.stored
        try:
            await reader.run()
        finally:
            self._readers.remove(reader)
            if scopes.get(scope) is reader.stored:  # else the scope has returned
                del scopes[scope]

    async def _follow(self) -> NoReturn:
        subscription = self.shards.assignment.subscribe(self._name)
        try:
            if not subscription.assigned:
                self.shards.assigned_once = True
                for reader in self._readers:
                    reader.publish_empty()
            while True:
                held = self.shards.held
                assigned = await subscription.wait_changed(held)
                if lost := held - assigned:
                    await self.shards.release(lost)
                    for reader in self._readers:
                        reader.lose(lost)
                    subscription.acknowledge(self.shards.held)
                    log.info("%s: %s moved away: %s", self._name, _shards(lost), _list(lost))
                else:
                    gained = assigned - held
                    # Acknowledged before the work begins, so that the group never believes that
                    # this member doesn't work on a shard that it works on.
                    subscription.acknowledge(assigned)
                    self.shards.take(gained)
                    for reader in self._readers:
                        reader.gain(gained)
                    log.info("%s: %s moved in: %s", self._name, _shards(gained), _list(gained))
                self.shards.assigned_once = True
        finally:
            subscription.close()

    # -- status --------------------------------------------------------------------------------

    def summarize(self, health: Health) -> Health:
        """Return the informer's health with the shards that are held, and how they are read."""
        health = replace(
            self.scopes.summarize(health),
            shards=tuple(sorted(self.shards.held)),
            shard_watches=sum(reader.watches for reader in self._readers),
        )
        for reader in self._readers:
            health = reader.summarize(health)
        return health

    @property
    def fresh(self) -> float | None:
        return self.scopes.fresh

    def parts(self) -> Sequence[ScopePart]:
        if not self.shards.held:
            return ()
        # A scope whose first shards are being read has no version yet.
        return [each for each in self.scopes.parts() if each.indexer.state.resource_version]

    def find(self, namespace: str) -> Reflector | None:
        return self.scopes.find(namespace)

    def __repr__(self) -> str:
        return f"<GroupReflectors of {self._name} {self.shards!r}>"


def _shards(shards: frozenset[int]) -> str:
    return quantity(len(shards), "shard")


def _list(shards: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(shards)))
