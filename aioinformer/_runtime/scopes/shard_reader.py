"""The reading of the shards that a member of a group holds, in one scope.

One watch reads all shards; its selector joins the ranges of adjacent shards. A shard that moves
away is dropped from the watch under way by the check of each event, so that this needs no request.
The state of shards that move in is read beside the watch, by a request for these shards alone. Then
the watch is replaced by one of all shards, which resumes where the old one was; changes of the new
shards that their state contains already are dropped. If the watch can't be resumed, because its
state is being read for example, the whole state is read again.

The states are consistent reads: they contain the last writes of the shards' former owner.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from aioinformer._core.cache.delta_fifo import DeltaFIFO
from aioinformer._core.objects.deltas import Bookmark, Delta
from aioinformer._core.objects.identity import is_numeric, is_older
from aioinformer._core.objects.kube_object import DeleteReason, KubeObject
from aioinformer._core.quantities import quantity
from aioinformer._core.sharding.ranges import HashRanges
from aioinformer._core.sharding.shard_filter import ShardFilter
from aioinformer._runtime.reflector.delta_queue import InformerQueue
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.health import Health
from aioinformer._runtime.scopes.group_shards import GroupShards
from aioinformer._runtime.tasks.task_group import StrictTaskGroup

__all__ = ["ShardReader"]

log = logging.getLogger("aioinformer.scopes")


class ShardReader:
    """Reads the shards of one member of a group in one scope."""

    def __init__(
        self,
        name: str,
        reflector: Reflector,
        queue: InformerQueue,
        shards: GroupShards,
        group: StrictTaskGroup,
    ) -> None:
        """Read nothing yet.

        Args:
            name: the name of informer and scope, for logs.
            reflector: reads the shards into ``queue``; it has a filter.
            queue: the queue of the scope.
            shards: the shards that are held.
            group: runs the requests.
        """
        if reflector.shard is None:
            raise AssertionError("the reflector of a group has a filter")
        self._name = name
        self._reflector = reflector
        self._filter: ShardFilter = reflector.shard
        self._queue = queue
        self._shards = shards
        self._group = group
        self._watched: frozenset[int] = frozenset()
        """The shards that the reflector reads."""
        self._unread: frozenset[int] = frozenset()
        """Those of them whose first state the reflector reads, until the filter's ``gained`` is
        ``None``."""
        self._gaining: frozenset[int] = frozenset()
        """The shards whose state is read beside the watch."""
        self._gained_reflector: Reflector | None = None
        self._gain: asyncio.Task[None] | None = None
        self._main: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        """The tasks of the reflector that were cancelled and have not ended."""
        self._started = False
        self._whole_is_due = False
        """True from the decision to read the whole state until the reflector begins with that."""

    async def run(self) -> None:
        """Read the shards that are held, until cancelled."""
        self._reflector.reports.start(asyncio.get_running_loop().time)
        try:
            if self._shards.held:
                self.gain(self._shards.held)
            elif self._shards.assigned_once:
                self.publish_empty()
            await asyncio.get_running_loop().create_future()
        finally:
            self._stop_gain()
            self._stop_main()

    # -- changes of the shards -----------------------------------------------------------------

    def publish_empty(self) -> None:
        """Count the scope as complete: without a shard there is nothing to read."""
        self._queue.replace((), self._reflector.resource_version)
        self._reflector.reports.status.set_state("watching")

    def gain(self, gained: frozenset[int]) -> None:
        """Read further shards."""
        if self._main is None or self._reads_state:
            self._read_whole(gained)
        else:
            self._start_gain(self._gaining | gained)

    def lose(self, lost: frozenset[int]) -> None:
        """Remove the objects of shards, and read their changes no longer."""
        gaining = self._gaining - lost
        was_reading = self._main is not None and self._reads_state
        self._watched -= lost
        self._narrow(self._pending - lost)
        # Behind all that was read of the lost shards, and from now on no change of them is queued.
        self._queue.retain(self._filter.ranges)
        if not self._watched:
            self._stop_main()
        if not self._watched and not gaining:
            self._stop_gain()
            self.publish_empty()
        elif not self._watched or was_reading:  # a state under way may have objects of lost shards
            self._stop_gain()
            self._read_whole(gaining)
        elif gaining != self._gaining:
            self._start_gain(gaining)

    @property
    def _reads_state(self) -> bool:
        """True if the reflector reads the whole state, or will do so as its next request."""
        return self._whole_is_due or self._reflector.reads_state

    @property
    def _pending(self) -> frozenset[int]:
        """The shards of the reflector whose first state has not been read."""
        return self._unread if self._filter.gained is not None else frozenset()

    def _narrow(self, unread: frozenset[int]) -> None:
        self._unread = unread
        ranges_of = self._shards.ranges_of
        self._filter.narrow(ranges_of(self._watched), ranges_of(unread) if unread else None)

    # -- the whole state, and the watch --------------------------------------------------------

    def _read_whole(self, gained: frozenset[int]) -> None:
        """Read the whole state again, with these shards and those that are being gained."""
        gained |= self._gaining
        self._stop_gain()
        self._watched |= gained
        self._narrow(self._pending | gained)
        self._start_main(read_again=self._started, newest=True)
        self._whole_is_due = True

    def _start_main(self, **how: Any) -> None:
        self._stop_main()
        self._started = True
        name = f"reflector of {self._name}"
        self._main = self._group.start(self._run_main(how), name=name)

    async def _run_main(self, how: dict[str, Any]) -> None:
        if self._ending:
            await asyncio.wait(self._ending)
        self._whole_is_due = False
        await self._reflector.run(**how)

    def _stop_main(self) -> None:
        """Cancel the request of the reflector. From now on, nothing of it is queued."""
        task, self._main = self._main, None
        if task is not None:
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            self._group.cancel(task)

    # -- the state of gained shards ------------------------------------------------------------

    def _start_gain(self, shards: frozenset[int]) -> None:
        """Read the state of these shards beside the watch; of no shard, end the reading."""
        self._stop_gain()
        self._gaining = shards
        if shards:
            reports = self._reflector.reports.make_part(f"gained {quantity(len(shards), 'shard')}")
            queue = _GainedState(self._publish_gained)
            gained = self._reflector.with_shards(queue, self._shards.ranges_of(shards), reports)
            self._gained_reflector = gained
            name = f"reflector of gained shards of {self._name}"
            self._gain = self._group.start(_run_gain(gained), name=name)

    def _stop_gain(self) -> None:
        task, self._gain, self._gaining = self._gain, None, frozenset()
        reflector, self._gained_reflector = self._gained_reflector, None
        if reflector is not None and reflector.shard is not None:
            self._filter.count_excluded(reflector.shard.excluded)
        if task is not None:
            self._group.cancel(task)

    def _publish_gained(self, objects: Sequence[KubeObject], version: str) -> None:
        """Queue the state of the gained shards, and read their changes from that version on."""
        known, gained = self._reflector.resource_version, self._gaining
        comparable = is_numeric(known) and is_numeric(version)
        if self._reads_state or not comparable or is_older(version, known):
            log.info("%s: the watch can't be resumed; the whole state is read again", self._name)
            self._read_whole(gained)
            return
        self._stop_gain()
        self._stop_main()
        self._watched |= gained
        ranges_of = self._shards.ranges_of
        self._queue.extend_state(objects, version, ranges_of(gained))
        self._filter.extend(ranges_of(self._watched), ranges_of(gained), version)
        self._start_main(resume_from=known, newest=True)

    # -- status --------------------------------------------------------------------------------

    @property
    def watches(self) -> int:
        """The number of watches and lists under way."""
        return (self._main is not None) + (self._gain is not None)

    def summarize(self, health: Health) -> Health:
        """Return ``health`` with the request for gained shards, until their state is complete."""
        gained = self._gained_reflector
        if gained is None or health.state != "watching":
            return health
        status = gained.condition
        return replace(
            health,
            state=status.state,
            since=status.since,
            error=status.error or health.error,
            retry_in=status.retry_in,
        )

    def __repr__(self) -> str:
        return f"<ShardReader of {self._name} {len(self._watched)} + {len(self._gaining)} shards>"


async def _run_gain(reflector: Reflector) -> None:
    """Read the state of gained shards. ``_GainedState`` receives the state, which ends this."""
    try:
        await reflector.run(newest=True)
    finally:
        reflector.reports.trace.closed()
        reflector.reports.status.set_state("stopped")


class _GainedState:
    """An ``EntryQueue`` that passes a whole state on, and drops what follows."""

    def __init__(self, publish: Callable[[Sequence[KubeObject], str], None]) -> None:
        """Pass the state to ``publish``, which ends the reflector that feeds this queue."""
        self.fifo = DeltaFIFO()
        self._publish: Callable[[Sequence[KubeObject], str], None] | None = publish

    def feed(self, entries: Sequence[Delta | Bookmark]) -> None:
        """Drop the changes after the state: the watch of all shards repeats them."""

    def replace(
        self,
        objects: Sequence[KubeObject],
        resource_version: str,
        *,
        reason: DeleteReason = "vanished",
        gained: HashRanges | None = None,
    ) -> None:
        """Pass the first state on."""
        publish, self._publish = self._publish, None
        if publish is not None:
            publish(objects, resource_version)

    def confirm(self) -> None:
        """See ``EntryQueue``: nothing is restored."""

    async def room(self) -> None:
        """Return at once."""
