"""The reading of the shards that a member of a group holds, in one scope.

One watch reads all shards; its selector joins the ranges of adjacent shards. A shard that moves
away is dropped from the watch under way by the check of each event, so that this needs no request.
The state of shards that move in is read beside the watch, by a request for these shards alone. Then
the watch is replaced by one of all shards, which resumes where the old one was; changes of the new
shards that their state contains already are dropped. If the watch can't be resumed, because its
state is being read for example, the whole state is read again.

A cache file may have the state of shards that an earlier run held. Such a state is read from the
file, and a watch of these shards alone brings the changes since. The shards count as read once the
server has confirmed that state.

The states are consistent reads: they contain the last writes of the shards' former owner.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import replace
from typing import Any, Literal

from aioinformer._core.objects.identity import is_numeric, is_older
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.quantities import quantity
from aioinformer._core.sharding.shard_filter import ShardFilter
from aioinformer._runtime.reflector.delta_queue import InformerQueue
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.health import Health
from aioinformer._runtime.scopes.gained_state import GainedState, OpenShards, RestorableShards
from aioinformer._runtime.scopes.group_shards import GroupShards
from aioinformer._runtime.tasks.task_group import StrictTaskGroup

__all__ = ["ShardReader"]

log = logging.getLogger("aioinformer.scopes")

CATCH_UP_SECONDS = 5.0
"""Seconds for which a restored state may be older than the watch of the other shards. Then the
whole state is read again."""


class ShardReader:
    """Reads the shards of one member of a group in one scope."""

    def __init__(
        self,
        name: str,
        reflector: Reflector,
        queue: InformerQueue,
        shards: GroupShards,
        group: StrictTaskGroup,
        *,
        scope: str = "",
        open_shards: OpenShards | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            name: the name of informer and scope, for logs.
            reflector: reads the shards into ``queue``; it has a filter.
            queue: the queue of the scope.
            shards: the shards that are held.
            group: runs the requests.
            scope: the name of the scope.
            open_shards: opens the informer's cache file; ``None`` without one.
        """
        if reflector.shard is None:
            raise AssertionError("the reflector of a group has a filter")
        self._name = name
        self._reflector = reflector
        self._filter: ShardFilter = reflector.shard
        self._queue = queue
        self._shards = shards
        self._group = group
        self._scope = scope
        self._open_shards = open_shards
        self._stored: RestorableShards | None = None
        """The shards that can be restored."""
        self._opened = False
        """True once the cache file is open, or can't be. Nothing is read before."""
        self._has_state = False
        """True once a state of the scope was queued, so that the informer may be synced."""
        self._waiting: frozenset[int] = frozenset()
        """The shards that are read when the others are restored."""
        self._restores = False
        """True if the state of ``_gaining`` is restored, and not listed."""
        self._catch_up: asyncio.TimerHandle | None = None
        self._watched: frozenset[int] = frozenset()
        """The shards that the reflector reads."""
        self._unread: frozenset[int] = frozenset()
        """The watched shards whose first state the reflector still reads, until the filter's
        ``gained`` is ``None``."""
        self._gaining: frozenset[int] = frozenset()
        """The shards whose state is read beside the watch."""
        self._gained_reflector: Reflector | None = None
        self._gain: asyncio.Task[None] | None = None
        self._main: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        """The tasks of the reflector that were cancelled and have not ended."""
        self._started = False
        self._due: Literal["", "whole state", "watch"] = ""
        """The first request of the reflector, from the decision until the reflector begins."""

    async def run(self) -> None:
        """Read the shards that are held, until cancelled."""
        self._reflector.reporter.start(asyncio.get_running_loop().time)
        try:
            if self._open_shards is not None:
                source = self._reflector.unsharded_source
                self._stored = await self._open_shards(source, self._scope)
            self._opened = True
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
        if not self._opened:
            return
        self._has_state = True
        self._queue.replace((), self._reflector.resource_version)
        self._reflector.reporter.status.set_state("watching")

    def gain(self, gained: frozenset[int]) -> None:
        """Read further shards."""
        if self._opened:
            self._waiting |= gained
            self._read_waiting()

    def _read_waiting(self) -> None:
        """Read the shards that wait: restore those that the file has, and list the others."""
        waiting = self._waiting
        if not waiting or (self._restores and not self._reads_main_state):
            return
        kept = frozenset[int]() if self._stored is None else self._stored.find(waiting)
        # Before the first state, all shards are shown at once: the informer is synced then.
        restores = kept and not self._gaining and (self._has_state or kept == waiting)
        if restores and not self._reads_main_state:
            self._waiting = waiting - kept
            self._start_gain(kept, restores=True)
        elif self._main is None or self._reads_main_state:
            self._read_whole(waiting)
        else:
            self._waiting = frozenset()
            self._start_gain(self._gaining | waiting)

    def lose(self, lost: frozenset[int]) -> None:
        """Remove the objects of shards, and read their changes no longer."""
        if not self._opened:
            return
        self._waiting -= lost
        gaining = self._gaining - lost
        was_reading = self._reads_main_state
        self._watched -= lost
        self._narrow(self._pending - lost)
        # Behind all that was read of the lost shards, and from now on no change of them is queued.
        self._queue.retain(self._filter.ranges)
        if not self._watched:
            self._stop_main()
        if not self._watched and not gaining:
            self._stop_gain()
            self.publish_empty()
        elif self._restores and gaining and not was_reading:
            if gaining != self._gaining:
                self._start_gain(gaining, restores=True)
        elif not self._watched or was_reading:  # a state under way may have objects of lost shards
            self._stop_gain()
            self._read_whole(gaining)
        elif gaining != self._gaining:
            self._start_gain(gaining)
        self._read_waiting()

    @property
    def _reads_main_state(self) -> bool:
        """True if the reflector runs, and reads the whole state or is about to."""
        return self._main is not None and self._reads_state

    @property
    def _reads_state(self) -> bool:
        """True if the reflector reads the whole state, or will do so as its next request."""
        return self._due == "whole state" or (not self._due and self._reflector.reads_state)

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
        gained |= self._gaining | self._waiting
        self._waiting = frozenset()
        self._stop_gain()
        self._watch(gained)
        self._has_state = True  # as soon as the state is read, which precedes any other one
        self._narrow(self._pending | gained)
        self._start_main("whole state", read_again=self._started)

    def _watch(self, gained: frozenset[int]) -> None:
        """Let the reflector read these shards, too."""
        self._watched |= gained
        if self._stored is not None:
            self._stored.discard(gained)

    def _start_main(self, due: Literal["whole state", "watch"], **how: Any) -> None:
        self._stop_main()
        self._started, self._due = True, due
        name = f"reflector of {self._name}"
        self._main = self._group.start(self._run_main(how), name=name)

    async def _run_main(self, how: dict[str, Any]) -> None:
        if self._ending:
            await asyncio.wait(self._ending)
        self._due = ""
        await self._reflector.run(newest=True, **how)

    def _stop_main(self) -> None:
        """Cancel the request of the reflector. From now on, nothing of it is queued."""
        task, self._main = self._main, None
        if task is not None:
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            self._group.cancel(task)

    # -- the state of gained shards ------------------------------------------------------------

    def _start_gain(self, shards: frozenset[int], *, restores: bool = False) -> None:
        """Read the state of these shards beside the watch; of no shard, end the reading.

        Args:
            shards: the shards.
            restores: True to begin with the state of the cache file.
        """
        self._stop_gain()
        self._gaining = shards
        if shards:
            reporter = self._reflector.reporter.make_part(
                f"gained {quantity(len(shards), 'shard')}"
            )
            queue = GainedState(self._publish_gained)
            gained = self._reflector.with_shards(queue, self._shards.ranges_of(shards), reporter)
            self._gained_reflector, self._restores = gained, restores
            stored = self._stored if restores else None
            name = f"reflector of gained shards of {self._name}"
            self._gain = self._group.start(_run_gain(gained, queue, stored), name=name)

    def _stop_gain(self) -> None:
        task, self._gain, self._gaining = self._gain, None, frozenset()
        self._restores = False
        timer, self._catch_up = self._catch_up, None
        if timer is not None:
            timer.cancel()
        reflector, self._gained_reflector = self._gained_reflector, None
        if reflector is not None and reflector.shard is not None:
            self._filter.count_excluded(reflector.shard.excluded)
        if task is not None:
            self._group.cancel(task)

    def _publish_gained(
        self, objects: Collection[KubeObject], version: str, *, follows: bool
    ) -> bool:
        """Queue the state of the gained shards, and read their changes from that version on."""
        if self._main is None:
            self._publish_first(objects, version)
            return True
        known = self._reflector.resource_version
        comparable = is_numeric(known) and is_numeric(version)
        late = comparable and is_older(version, known)
        if late and follows and not self._reads_state:
            self._await_catch_up()
            return False
        if self._reads_state or not comparable or late:
            self._read_whole_instead()
            return True
        gained = self._end_gain()
        ranges_of = self._shards.ranges_of
        self._queue.extend_state(list(objects), version, ranges_of(gained))
        self._filter.extend(ranges_of(self._watched), ranges_of(gained), version)
        self._start_main("watch", resume_from=known)
        self._read_waiting()
        return True

    def _publish_first(self, objects: Collection[KubeObject], version: str) -> None:
        """Queue the state of the gained shards as the whole state, and watch from there."""
        gained = self._end_gain()
        ranges = self._shards.ranges_of(gained)
        self._has_state = True
        self._queue.replace(list(objects), version, gained=ranges)
        self._filter.narrow(ranges, None)
        self._reflector.reporter.mark_fresh(asyncio.get_running_loop().time())
        self._start_main("watch", resume_from=version)
        self._read_waiting()

    def _end_gain(self) -> frozenset[int]:
        """End both requests, and watch the gained shards with the others from now on."""
        gained = self._gaining
        self._stop_gain()
        self._stop_main()
        self._watch(gained)
        return gained

    def _await_catch_up(self) -> None:
        """Wait for a later state of the gained shards, for some seconds."""
        if self._catch_up is None:
            loop = asyncio.get_running_loop()
            self._catch_up = loop.call_later(CATCH_UP_SECONDS, self._read_whole_instead)

    def _read_whole_instead(self) -> None:
        """Read the whole state, since the gained one can't be added to the others."""
        log.info("%s: the watch can't be resumed; the whole state is read again", self._name)
        self._read_whole(self._gaining)

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
        status = gained.status
        return replace(
            health,
            state=status.state,
            since=status.since,
            error=status.error or health.error,
            retry_in=status.retry_in,
        )

    def __repr__(self) -> str:
        return f"<ShardReader of {self._name} {len(self._watched)} + {len(self._gaining)} shards>"


async def _run_gain(
    reflector: Reflector, queue: GainedState, stored: RestorableShards | None
) -> None:
    """Read the state of gained shards. ``queue`` passes the state on, which ends this.

    Args:
        reflector: reads the shards.
        queue: the queue that the reflector feeds.
        stored: the cache file, to begin with its state; ``None`` to list.
    """
    try:
        if stored is not None and reflector.ranges is not None:
            await queue.restore_from(stored, reflector.ranges)
        if stored is None or stored.problem:
            await reflector.run(newest=True)
        else:
            await reflector.run(resume_from=stored.version, restored=True, newest=True)
    finally:
        reflector.reporter.trace.closed()
        reflector.reporter.status.set_state("stopped")
