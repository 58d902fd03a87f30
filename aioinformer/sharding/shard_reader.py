"""The reading of the shards that a member of a group holds, in one scope.

One watch reads all shards; its selector joins the ranges of adjacent shards. A shard that moves
away is dropped from the watch under way by the check of each event, without a request. The state of
shards that move in is read beside the watch, by a request for these shards alone. Then the watch is
replaced by one of all shards, which resumes where the old one was; changes of the new shards that
their state contains already are dropped. If the watch can't be resumed, because its state is being
read for example, the whole state is read again.

A cache file may have the state of shards that an earlier run held. A watch of these shards alone
brings the changes since, and they count as read once the server has confirmed that state.

The states are consistent reads: they contain the last writes of the shards' former owner.

``ShardReads`` decides which request is made for which shards. Here are the tasks of these requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import replace

from aioinformer._core.listwatch.reflector_requests import Start
from aioinformer._core.objects.deltas import Replaced
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.object_key import is_numeric, is_older
from aioinformer._core.quantities import quantity
from aioinformer._runtime.reflector.delta_queue import EntryQueue
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.health import Health
from aioinformer._runtime.tasks.task_group import StrictTaskGroup
from aioinformer.sharding.gained_state import GainedState
from aioinformer.sharding.group_shards import GroupShards
from aioinformer.sharding.state.ranges import HashRanges
from aioinformer.sharding.state.shard_filter import ShardFilter
from aioinformer.sharding.state.shard_reads import (
    GainedRead,
    MainRead,
    ReadStep,
    ShardReads,
    StateAge,
    StateUse,
)
from aioinformer.sharding.stored_shards import KeepsShards, StoredShards, StoredState

log = logging.getLogger("aioinformer.scopes")


class ShardReader:
    def __init__(
        self,
        name: str,
        reflector: Reflector,
        queue: EntryQueue,
        shards: GroupShards,
        group: StrictTaskGroup,
        *,
        scope: str = "",
        keeper: KeepsShards | None = None,
    ) -> None:
        """Read nothing yet. ``reflector`` reads the shards into ``queue`` and has a filter;
        ``group`` runs the requests.
        """
        if not isinstance(reflector.filter, ShardFilter):
            raise AssertionError("the reflector of a group has a filter")
        self._name = name
        self._reflector = reflector
        self._filter = reflector.filter
        self._queue = queue
        self._shards = shards
        self._group = group
        self._scope = scope
        self._keeper = keeper
        self.stored = StoredShards(shards)
        self._filter.cached = self.stored.cached_ranges
        self._reads = ShardReads()
        self._main: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        """The tasks of the reflector that were cancelled and have not ended."""
        self._gain: asyncio.Task[None] | None = None
        self._gained_reflector: Reflector | None = None
        self._catch_up: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        self._reflector.reporter.start(asyncio.get_running_loop().time)
        try:
            if self._keeper is not None:
                source = self._reflector.unfiltered_source
                await self.stored.open(self._keeper, source, self._scope)
            shards = self._shards
            self._make(self._observe().open(shards.held, assigned_once=shards.assigned_once))
            await asyncio.get_running_loop().create_future()
        finally:
            self._stop_gain()
            self._stop_main()

    # -- events --------------------------------------------------------------------------------

    def publish_empty(self) -> None:
        """Count the scope as complete: without a shard there is nothing to read."""
        self._make(self._observe().publish_empty())

    def gain(self, gained: frozenset[int]) -> None:
        self._make(self._observe().gain(gained))

    def lose(self, lost: frozenset[int]) -> None:
        """Remove the objects of shards, and read their changes no longer."""
        self._make(self._observe().lose(lost))

    def _publish_gained(
        self, objects: Collection[KubeObject], version: str, *, follows: bool
    ) -> bool:
        """Queue the state of the gained shards, and read their changes from that version on."""
        known, now = self._reflector.resource_version, asyncio.get_running_loop().time()
        gained = self._shards.ranges_of(self._reads.gaining)
        step = self._observe().receive(_age_of(version, known, follows=follows), now)
        watched = self._shards.ranges_of(self._reads.watched)
        if step.use is StateUse.EXTEND:
            self._queue.put(Replaced(list(objects), version, initial=gained, extends=True))
            self._filter.extend(watched, gained, version)
        elif step.use is StateUse.REPLACE:
            self._queue.put(Replaced(list(objects), version, initial=gained))
            self._filter.narrow(watched, None)
            self._reflector.reporter.mark_fresh(now)
        elif step.use is StateUse.DISCARD:
            self._log_reread()
        self._make(step, resume_from=known if step.use is StateUse.EXTEND else version)
        return step.use is not StateUse.AWAIT_NEXT

    def _expire(self) -> None:
        self._log_reread()
        self._make(self._observe().expire())

    def _log_reread(self) -> None:
        log.info("%s: the watch can't be resumed; the whole state is read again", self._name)

    # -- requests ------------------------------------------------------------------------------

    def _observe(self) -> ShardReads:
        """Return the state of the requests, which knows the facts of this moment then."""
        self._reads.observe(
            reads_state=self._reflector.reads_state,
            has_unread=self._filter.gained is not None,
            restorable=self.stored.find(self._shards.held),
        )
        return self._reads

    def _make(self, step: ReadStep, *, resume_from: str = "") -> None:
        """End and begin requests. From now on, nothing of an ended one is queued.

        ``resume_from`` is the version from which a watch begins.
        """
        if step.gained is not None:
            self._stop_gain()
        if step.main is not None:
            self._stop_main()
        self._queue_removals(step)
        if step.main is MainRead.STATE:
            self._start_main()
        elif step.main is MainRead.WATCH:
            self._start_main(resume_from)
        if step.gained is GainedRead.LIST or step.gained is GainedRead.RESTORE:
            self._start_gain(step.gained)
        if step.deadline is not None:
            loop = asyncio.get_running_loop()
            self._catch_up = loop.call_at(step.deadline, self._expire)

    def _queue_removals(self, step: ReadStep) -> None:
        if step.retained is not None or step.main is MainRead.STATE:
            reads, ranges_of = self._reads, self._shards.ranges_of
            unread = ranges_of(reads.unread) if reads.unread else None
            self._filter.narrow(ranges_of(reads.watched), unread)
        if step.retained is not None:
            # Behind all that was read of the lost shards, whose changes the filter drops from now.
            kept = self._shards.ranges_of(step.retained)
            self._queue.put(Replaced((), "", "scope_removed", kept=kept))
        if step.is_empty:
            self._queue.put(Replaced((), self._reflector.resource_version))
            self._reflector.reporter.status.set_state("watching")

    def _start_main(self, resume_from: str | None = None) -> None:
        """Let the reflector read the watched shards, by a watch or beginning with their state."""
        self.stored.discard(self._reads.watched)
        request = self._run_main(resume_from)
        self._main = self._group.start(request, name=f"reflector of {self._name}")

    async def _run_main(self, resume_from: str | None) -> None:
        if self._ending:
            await asyncio.wait(self._ending)
        self._reads.main_began()
        if resume_from is None:
            start = Start(not_older_than=self._reflector.resource_version, newest=True)
        else:
            start = Start(resume_from=resume_from, newest=True)
        await self._reflector.run(start)

    def _stop_main(self) -> None:
        task, self._main = self._main, None
        if task is not None:
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            self._group.cancel(task)

    def _start_gain(self, kind: GainedRead) -> None:
        shards = self._reads.gaining
        reporter = self._reflector.reporter.make_part(f"gained {quantity(len(shards), 'shard')}")
        queue, ranges = GainedState(self._publish_gained), self._shards.ranges_of(shards)
        gained = self._reflector.with_filter(ShardFilter(ranges), queue, reporter)
        self._gained_reflector = gained
        stored = self.stored.state if kind is GainedRead.RESTORE else None
        name = f"reflector of gained shards of {self._name}"
        self._gain = self._group.start(_run_gain(gained, queue, ranges, stored), name=name)

    def _stop_gain(self) -> None:
        task, self._gain = self._gain, None
        timer, self._catch_up = self._catch_up, None
        if timer is not None:
            timer.cancel()
        reflector, self._gained_reflector = self._gained_reflector, None
        if reflector is not None:
            self._reflector.status.excluded += reflector.status.excluded
        if task is not None:
            self._group.cancel(task)

    # -- status --------------------------------------------------------------------------------

    @property
    def watches(self) -> int:
        return (self._main is not None) + (self._gain is not None)

    def summarize(self, health: Health) -> Health:
        """Return ``health`` with the request for gained shards, until their state is complete."""
        gained = self._gained_reflector
        if gained is None or health.state != "watching":
            return health
        status = gained.status
        return replace(
            health,
            state=status.state,
            since=status.since,
            error=status.error or health.error,
            retry_in=status.retry_in,
        )

    def __repr__(self) -> str:
        reads = self._reads
        return f"<ShardReader of {self._name} {len(reads.watched)} + {len(reads.gaining)} shards>"


def _age_of(version: str, watched: str, *, follows: bool) -> StateAge:
    """Return the age of a state of ``version``, beside a watch that has reached ``watched``.

    If the state ``follows``, a later one comes with the next change.
    """
    if not (is_numeric(version) and is_numeric(watched)):
        return StateAge.UNKNOWN
    if not is_older(version, watched):
        return StateAge.CURRENT
    return StateAge.BEHIND if follows else StateAge.OUTDATED


async def _run_gain(
    reflector: Reflector, queue: GainedState, ranges: HashRanges, stored: StoredState | None
) -> None:
    """Read the state of gained shards. ``queue`` passes the state on, which ends this.

    ``stored`` is the cache file to begin with; ``None`` to list.
    """
    try:
        if stored is not None:
            await queue.restore_from(stored, ranges)
        if stored is None or stored.problem:
            await reflector.run(Start(newest=True))
        else:
            await reflector.run(Start(resume_from=stored.version, restored=True, newest=True))
    finally:
        reflector.reporter.trace.closed()
        reflector.reporter.status.set_state("stopped")
