"""The reflector of an informer on a group: it reads the shards that this member holds.

All shards are read by one watch, whose selector joins the ranges of adjacent shards. A shard that
moves away is dropped from the watch under way by the check of each event, so that this needs no
request. A shard that moves in needs its state: the whole state is read again, of all shards that
are held then, and only the differences are delivered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.quantities import quantity
from aioinformer._core.sharding.assignment import ShardAssignment
from aioinformer._core.sharding.shard_filter import ShardFilter
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.health import Health
from aioinformer._runtime.scopes.group_shards import GroupShards
from aioinformer._runtime.scopes.reflectors import with_shards
from aioinformer._runtime.tasks.task_group import StrictTaskGroup

__all__ = ["GroupReflector"]

log = logging.getLogger("aioinformer.scopes")


class GroupReflector:
    """Reads the shards of one member of a group into one cache."""

    def __init__(
        self,
        name: str,
        reflector: Reflector,
        queue: DeltaQueue,
        indexer: Indexer,
        assignment: ShardAssignment,
    ) -> None:
        """Read nothing yet.

        Args:
            name: the informer's name.
            reflector: reads the shards into ``queue``; it has a filter.
            queue: the informer's queue.
            indexer: the cache.
            assignment: the group.
        """
        if reflector.shard is None:
            raise AssertionError("the reflector of a group has a filter")
        self._name = name
        self._reflector = reflector
        self._filter: ShardFilter = reflector.shard
        self._queue = queue
        self._indexer = indexer
        self.shards = GroupShards(assignment)
        """The shards that are read."""
        self._gained: frozenset[int] = frozenset()
        """The shards whose first state has not been read, if the filter has gained ones."""
        self._task: asyncio.Task[None] | None = None
        self._started = False

    def start(self, group: StrictTaskGroup) -> None:
        """Start the task that follows the assignment in ``group``."""
        group.start(self._follow(group), name=f"shards of {self._name}")

    async def _follow(self, group: StrictTaskGroup) -> NoReturn:
        """Read the shards that are assigned, until cancelled."""
        clock = asyncio.get_running_loop().time
        self._reflector.reports.start(clock)
        subscription = self.shards.assignment.subscribe(self._name)
        try:
            if not subscription.assigned:
                self._publish_empty()
            while True:
                held = self.shards.held
                assigned = await subscription.wait_changed(held)
                if lost := held - assigned:
                    await self.shards.release(lost)
                    await self._read_fewer(group)
                    subscription.acknowledge(self.shards.held)
                    log.info("%s: %s moved away: %s", self._name, _shards(lost), _list(lost))
                else:
                    gained = assigned - held
                    # Acknowledged before the work begins, so that the group never believes that
                    # this member doesn't work on a shard that it works on.
                    subscription.acknowledge(assigned)
                    self.shards.take(gained)
                    await self._read_more(gained, group)
                    log.info("%s: %s moved in: %s", self._name, _shards(gained), _list(gained))
        finally:
            subscription.close()

    def _publish_empty(self) -> None:
        """Count the cache as complete: without a shard there is nothing to read."""
        self._queue.replace((), self._reflector.resource_version, reason="scope_removed")
        self._reflector.reports.status.set_state("watching")

    async def _read_fewer(self, group: StrictTaskGroup) -> None:
        """Remove the objects of the shards that are no longer held."""
        held = self.shards.held
        self._gained &= held
        was_reading = self._reflector.reads_state
        pending = self._pending
        self._filter.narrow(
            self.shards.ranges_of(held), self.shards.ranges_of(pending) if pending else None
        )
        # Behind all that was read of the lost shards, and from now on no change of them is queued.
        self._queue.retain(self._filter.ranges)
        if not held or was_reading:  # a state under way may have objects of the lost shards
            await self._restart(group)

    @property
    def _pending(self) -> frozenset[int]:
        """The shards whose first state has not been read."""
        return self._gained if self._filter.gained is not None else frozenset()

    async def _read_more(self, gained: frozenset[int], group: StrictTaskGroup) -> None:
        """Read the whole state again, with the shards that were gained."""
        self._gained = self._pending | gained
        self._filter.narrow(
            self.shards.ranges_of(self.shards.held), self.shards.ranges_of(self._gained)
        )
        await self._restart(group)

    async def _restart(self, group: StrictTaskGroup) -> None:
        """End the request under way, and read the whole state if a shard is held."""
        task, self._task = self._task, None
        if task is not None:
            group.cancel(task)
            await asyncio.wait({task})
        if not self.shards.held:
            self._publish_empty()
            return
        self._task = group.start(
            self._reflector.run(read_again=self._started), name=f"reflector of {self._name}"
        )
        self._started = True

    # -- status --------------------------------------------------------------------------------

    def summarize(self, health: Health) -> Health:
        """Return the informer's health with the shards that are held."""
        health = with_shards(replace(health, strategy=self._reflector.strategy), [self._reflector])
        return replace(health, shards=tuple(sorted(self.shards.held)))

    @property
    def fresh(self) -> float | None:
        """Seconds since the server last proved that the cache is up to date."""
        return self._reflector.condition.fresh

    def parts(self) -> Sequence[tuple[ListerWatcher, Indexer]]:
        """Return the only source and the whole cache."""
        return [(self._reflector.source, self._indexer)]

    def __repr__(self) -> str:
        return f"<GroupReflector of {self._name} {self.shards!r}>"


def _shards(shards: frozenset[int]) -> str:
    return quantity(len(shards), "shard")


def _list(shards: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(shards)))
