"""The follower: feeds one scope's queue from a shared cache file, as a reflector does from a watch.

The follower queues the state that the leader has stored, and then each change in the leader's
order. The pump, the cache and the listeners don't know the difference. The follower ends when this
process becomes the leader, or when no leader reads the scope. The reflector of this process then
watches from the version that the follower has reached, without a list.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from aioinformer._core.cachefile.change_log import LogEntry, make_delta
from aioinformer._core.objects.deltas import Bookmark
from aioinformer._core.objects.identity import is_older
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.cachefile.file_access import FileAccess, FollowedState
from aioinformer._runtime.cachefile.stored_scope import StoredScope
from aioinformer._runtime.reflector.delta_queue import InformerQueue
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer._runtime.tasks.event_loop import TimeSlice
from aioinformer.errors import ServerRewound

if TYPE_CHECKING:  # it imports SQLite, which only programs with a cache file need
    from aioinformer._runtime.cachefile.leadership import Leadership

__all__ = ["FollowedVersion", "ScopeFollower"]

ANNOUNCE_SECONDS = 5.0
"""Seconds in which a new leader announces the scopes that it reads. A follower of another scope
watches on its own then."""

ENTRIES_PER_STEP = 512
"""Changes that are queued without a turn of the event loop in between: less than a millisecond."""

REREAD_SECONDS = 5.0
"""Seconds after which the file is read also without a signal, so that a lost one does no harm."""


class FollowedVersion(Struct, frozen=True):
    """The place from which this process watches on its own."""

    version: str
    """The version that was queued last; empty if there is no state to continue."""
    synced: bool
    """True if a leader had the state confirmed by the server."""
    reread: bool
    """True if newer versions of some objects were rejected, so that a list is needed."""


class ScopeFollower:
    """The follower of one scope."""

    def __init__(
        self,
        access: FileAccess,
        leadership: Leadership,
        identity: str,
        resource: Resource,
        queue: InformerQueue,
        reports: InformerReporter,
    ) -> None:
        """Follow a scope of an open file.

        Args:
            access: the file.
            leadership: the leadership of this process in the file.
            identity: the identity of the scope.
            resource: the resource of its objects.
            queue: the queue to feed.
            reports: receives the state and the freshness.
        """
        self._access = access
        self._leadership = leadership
        self._identity = identity
        self._resource = resource
        self._queue = queue
        self._reports = reports
        self._position: int | None = None
        self._stored: StoredScope | None = None
        self._synced = False
        self._unannounced_since: float | None = None
        """The time since which no leader is known to read the scope."""

    @property
    def reached(self) -> FollowedVersion:
        """The place that was reached."""
        stored = self._stored
        if stored is None:
            return FollowedVersion("", synced=False, reread=False)
        return FollowedVersion(stored.version, self._synced, stored.reread)

    async def run(self) -> bool:
        """Feed the queue. Return True once this process leads and has read everything.

        False if the file can't be used, or the leader doesn't read this scope.
        """
        loop = asyncio.get_running_loop()
        self._reports.start(loop.time)
        self._reports.status.set_state("following")
        self._unannounced_since = loop.time()
        while True:
            # Both are taken before the reading, so that no change meanwhile is missed.
            changed, leads = self._leadership.changed, self._leadership.leads
            found = await self._access.follow(self._identity, self._position, self._resource)
            if self._access.problem:
                return False
            if found is not None:
                await self._feed(found)
            if leads:
                return True
            wait = self._seconds_to_wait(found, loop.time())
            if wait <= 0:
                return False
            await _wait_for(changed, wait)

    def _seconds_to_wait(self, found: FollowedState | None, now: float) -> float:
        """Return the seconds to wait for the leader; 0 if it doesn't read this scope."""
        if self._is_announced(found):
            self._unannounced_since = None
            return REREAD_SECONDS
        if self._unannounced_since is None:
            self._unannounced_since = now
        begin = max(self._unannounced_since, self._leadership.leader_since)
        return min(REREAD_SECONDS, begin + ANNOUNCE_SECONDS - now)

    def _is_announced(self, found: FollowedState | None) -> bool:
        """Return True if the present leader reads the scope."""
        leader = self._leadership.leader
        return found is not None and leader is not None and found.state.led.term == leader.term

    async def _feed(self, found: FollowedState) -> None:
        """Queue the state or the changes that were read from the file."""
        led, stored, whole = found.state
        if stored is None:
            return
        confirmed = led.synced and self._is_announced(found)
        if whole:
            self._replace(found, stored, synced=self._synced or confirmed)
        else:
            await self._feed_changes(found.entries)
            self._queue.feed([Bookmark(stored.version)])
        self._position, self._stored = led.head, stored
        if confirmed:
            if not self._synced:
                self._synced = True
                self._queue.confirm()
            age = max(0.0, time.time() - led.fresh)
            self._reports.mark_fresh(asyncio.get_running_loop().time() - age)
        await self._queue.room()

    async def _feed_changes(self, entries: Sequence[LogEntry]) -> None:
        """Queue changes in steps: a follower that was stopped may find thousands."""
        pace = TimeSlice()
        for start in range(0, len(entries), ENTRIES_PER_STEP):
            step = entries[start : start + ENTRIES_PER_STEP]
            self._queue.feed([make_delta(each) for each in step])
            await self._queue.room()
            await pace.maybe_yield()

    def _replace(self, found: FollowedState, stored: StoredScope, *, synced: bool) -> None:
        """Queue the whole state. The first one is restored, and confirmed afterwards."""
        version = stored.version
        if self._stored is not None and is_older(version, self._stored.version):
            self._reports.server_rewound(ServerRewound(str(self._resource), version))
        if self._synced and synced:
            self._queue.replace(found.objects, version)
        else:
            self._queue.restore(found.objects, version)

    def __repr__(self) -> str:
        return f"<ScopeFollower position={self._position} {self.reached!r}>"


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    """Wait for ``event``, for ``seconds`` at most."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
