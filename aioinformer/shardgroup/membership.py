"""The tasks of a member: it renews its Lease, follows the group's Leases, and writes assignments.

Everything that changes calls ``react``, which passes the cached Leases to the ``GroupMember``, in
one step without an await, and carries out its decisions. So a wake-up that comes twice or late
changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from aioinformer._core.instrumentation import Metrics
from aioinformer._informers.informer import SharedInformer
from aioinformer._runtime.reporting.problem import OnError
from aioinformer._runtime.writing.resource_writer import ResourceWriter
from aioinformer.errors import AlreadyExists, FetchError, NotFound, ObjectDecodeError
from aioinformer.errors.texts import one_line
from aioinformer.leaderelection.campaign import Campaign
from aioinformer.leaderelection.reports import LeaseReporter
from aioinformer.leaderelection.state.lease import LeaseRecord, group_of_lease
from aioinformer.leaderelection.suspend_clock import SuspendAwareClock
from aioinformer.shardgroup.state.member import GroupMember, MoveKind, ShardMove
from aioinformer.shardgroup.state.planner import AssignmentWrite, StaleLease
from aioinformer.shardgroup.subscriptions import GroupSubscriptions
from aioinformer.sharding.state.shard_sets import format_shards

log = logging.getLogger("aioinformer.shards")
lease_log = logging.getLogger("aioinformer.election")

CACHE_DELAY = 0.02
"""Seconds for which changes in the cache are gathered: 100 members renew 50 Leases a second."""

_NOT_WRITTEN = "the assignment was not written"
_OTHER_USER = "of the shard group has another user"

LONGEST_WAIT = 1.0
"""Seconds after which the clock is read at the latest, to notice that the machine was suspended."""


class GroupMembership:
    """One member at work."""

    def __init__(
        self,
        member: GroupMember,
        leases: ResourceWriter,
        cache: SharedInformer,
        *,
        name: str,
        clock: SuspendAwareClock,
        metrics: Metrics,
        on_error: OnError | None = None,
    ) -> None:
        self.member = member
        self.subscriptions = GroupSubscriptions(self._read_held, self.react)
        self.failure: BaseException | None = None
        report = partial(LeaseReporter, clock=clock, metrics=metrics, on_error=on_error)
        self._reporter = report(f"group {name}", log)
        self.campaign = Campaign(
            member.election,
            leases,
            member.key,
            clock,
            reporter=report(f"lease {member.key}", lease_log),
            find_misuse=self._find_holder,
            complete=lambda body: member.stamp(body, clock.now),
        )
        self._leases = leases
        self._cache = cache
        self._name = name
        self._clock = clock
        self._metrics = metrics
        self._versions: dict[str, str] = {}
        self._drained = asyncio.Event()
        self._may_plan = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._cache_timer: asyncio.TimerHandle | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stopped = False
        """True if no timer may be started any more."""
        self._held_before: frozenset[int] = frozenset()
        self._epoch_before = 0
        self._renewed = ""
        """The time of the last renewal in the group's Lease, which nobody renews but an election.
        """

    @property
    def error(self) -> Exception | None:
        """The last error of a request that has not succeeded since."""
        return self.campaign.error or self._reporter.error or self._cache.health.error

    # -- life ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start to acquire the member's Lease."""
        self._cache.add_handler(self._on_cache_change, name="shard group")
        for work, purpose in ((self._renew(), "renewal"), (self._assign(), "assignment")):
            task = asyncio.create_task(work, name=f"{purpose} of {self.member.key}")
            task.add_done_callback(self._on_task_done)
            self._tasks.append(task)
        self._metrics.shards_held(self._name, 0)

    async def leave(self, timeout: float) -> bool:
        """Give all shards away within ``timeout`` seconds, and release the Lease. Return True if it
        was released.
        """
        self.member.leaving = True
        self.react()
        try:
            async with asyncio.timeout(timeout):
                while self.member.claims and self.failure is None:
                    self._drained.clear()
                    await self._drained.wait()
        except TimeoutError:
            log.warning(
                "group %s: work on shards %s has not ended within %g s, so that the Lease of %s "
                "expires instead of being released",
                self._name,
                format_shards(self.member.claims),
                timeout,
                self.member.identity,
            )
        await self.stop()
        return await self._release()

    async def stop(self) -> None:
        """End the tasks and timers. Later changes start no timer again."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for timer in (self._timer, self._cache_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._cache_timer = None

    async def _release(self) -> bool:
        election = self.member.election
        if self.member.claims:
            election.end()
        else:
            election.release(self._clock.now)
            try:
                await self.campaign.run(lambda: None)
            except Exception:
                log.exception("the Lease %s was not released; it expires", self.member.key)
        self._carry_out(self.member.decide(self._clock.now, self.subscriptions.working))
        return election.released

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or self.failure is not None:
            return
        self.failure = task.exception() or RuntimeError(f"the {task.get_name()} ended by itself")
        log.error("group %s: this member failed", self._name, exc_info=self.failure)
        self.member.election.end()  # no work without renewals
        self.react()
        self._drained.set()
        self.subscriptions.notify()

    # -- tasks ---------------------------------------------------------------------------------

    async def _renew(self) -> None:
        election = self.member.election
        while True:
            election.seek(self._clock.now)
            await self.campaign.run(self.react)
            if self.failure is not None:
                return
            # The lease was lost: it is acquired again when all work has ended.
            while self.member.claims:
                self._drained.clear()
                await self._drained.wait()

    async def _assign(self) -> None:
        while True:
            await self._may_plan.wait()
            self._may_plan.clear()
            write = self.member.plan(self._clock.now)
            self._arrange_timer()
            if write is not None:
                await self._send(write)
            elif (stale := self.member.find_stale(self._clock.now)) is not None:
                await self._clean_up(stale)

    async def _send(self, write: AssignmentWrite) -> None:
        try:
            async with asyncio.timeout(self.member.election.times.retry_period):
                await (self._leases.create if write.creates else self._leases.update)(write.body)
        except (FetchError, ObjectDecodeError, TimeoutError) as error:
            self._reporter.failed(_NOT_WRITTEN, error)
            if isinstance(error, AlreadyExists):
                await self._check_label()
        else:
            self._reporter.succeeded(_NOT_WRITTEN)

    async def _check_label(self) -> None:
        """Report that the group's Lease exists and is another program's, if it is."""
        with suppress(FetchError, ObjectDecodeError, TimeoutError):
            async with asyncio.timeout(self.member.election.times.retry_period):
                lease = await self._leases.get(str(self.member.group))
            if group_of_lease(lease) != self._name:
                self._reporter.misused(
                    f"{self.member.group} {_OTHER_USER}: it lacks the label of the group"
                )

    def _find_holder(self, lease: Mapping[str, Any]) -> str:
        """Return who else holds the member's own Lease, for ``misused``."""
        holder = LeaseRecord.of(lease).holder
        if holder in ("", self.member.identity):
            return ""
        return f"{self.member.key} {_OTHER_USER}: {one_line(holder)} holds it"

    async def _clean_up(self, stale: StaleLease) -> None:
        key = f"{self.member.key.namespace}/{stale.name}"
        action = "deleted" if stale.release is None else "released"
        failure = f"the old Lease {key} was not {action}"
        try:
            async with asyncio.timeout(self.member.election.times.retry_period):
                if stale.release is None:
                    await self._leases.delete(key, uid=stale.uid, resource_version=stale.version)
                else:
                    await self._leases.update(stale.release)
        except NotFound:
            self._reporter.succeeded(failure)  # another member was faster
        except (FetchError, ObjectDecodeError, TimeoutError) as error:
            self._reporter.failed(failure, error)
        else:
            self._reporter.succeeded(failure)
            log.info("group %s: %s the Lease %s, which had expired", self._name, action, key)

    # -- reactions -----------------------------------------------------------------------------

    def _on_cache_change(self, event: object) -> None:
        if self._cache_timer is None and not self._stopped:
            loop = asyncio.get_running_loop()
            self._cache_timer = loop.call_later(CACHE_DELAY, self._on_cache_timer)

    def _on_cache_timer(self) -> None:
        self._cache_timer = None
        self.react()

    def _on_timer(self) -> None:
        self._timer = None
        self.react()

    def react(self) -> None:
        """Pass what has changed to the member, and carry out its decisions."""
        now = self._clock.now
        self._observe_cache(now)
        self._carry_out(self.member.decide(now, self.subscriptions.working))
        if not self.member.claims:
            self._drained.set()
        self.campaign.wake()
        self._may_plan.set()
        self._arrange_timer()

    def _observe_cache(self, now: float) -> None:
        """Pass the Leases that have changed in the cache, as they are at this moment."""
        if not self._cache.synced:
            return
        before, self._versions = self._versions, {}
        for lease in self._cache.lister.list():
            version = lease.resource_version
            self._versions[lease.name] = version
            if before.pop(lease.name, None) != version:
                body = lease.to_dict()
                self.member.observe(lease.name, body, now)
                if lease.name == self.member.group.name:
                    self._check_renewals(body)
        for name in before:
            self.member.observe(name, None, now)

    def _check_renewals(self, lease: Mapping[str, Any]) -> None:
        """Report that an election uses the group's Lease, if one does."""
        before, self._renewed = self._renewed, LeaseRecord.of(lease).renewed
        if before and self._renewed not in ("", before):
            self._reporter.misused(f"{self.member.group} {_OTHER_USER}: an election renews it")

    def _carry_out(self, moves: Sequence[ShardMove]) -> None:
        for move in moves:
            self._metrics.shard_moved(self._name, move.kind)
            if move.unowned_seconds is not None:
                self._metrics.shard_unowned(self._name, move.unowned_seconds)
        _log_moves(self._name, self.member, moves)
        assignment = self.member.view.assignment
        epoch = 0 if assignment is None else assignment.epoch
        held = self._read_held()
        if held != self._held_before:
            self._metrics.shards_held(self._name, len(held))
        if held != self._held_before or epoch != self._epoch_before:
            self._held_before, self._epoch_before = held, epoch
            self.subscriptions.notify()

    def _read_held(self) -> frozenset[int]:
        return self.member.held(self._clock.now)

    def _arrange_timer(self) -> None:
        if self._stopped:
            return
        if self._timer is not None:
            self._timer.cancel()
        wait = self.member.wake_at - self._clock.now
        # An assignment that is due while a request is under way is looked at again soon.
        wait = min(wait, LONGEST_WAIT) if wait > 0 else CACHE_DELAY
        self._timer = asyncio.get_running_loop().call_later(wait, self._on_timer)

    def __repr__(self) -> str:
        return f"<GroupMembership of {self.member!r}>"


_MOVE_TEXTS: dict[MoveKind, str] = {
    "acquired": "begins with",
    "stopping": "ends its work on",
    "released": "has given away",
    "lost": "lost, as its Lease was not renewed in time,",
}


def _log_moves(group: str, member: GroupMember, moves: Sequence[ShardMove]) -> None:
    """Log the moves of each kind in one line, which names the shards."""
    epoch = 0 if member.view.assignment is None else member.view.assignment.epoch
    numbers: Counter[MoveKind] = Counter(move.kind for move in moves)
    for kind, number in numbers.items():
        log.log(
            logging.WARNING if kind == "lost" else logging.INFO,
            "group %s: %s %s %d shards in epoch %d: %s",
            group,
            member.identity,
            _MOVE_TEXTS[kind],
            number,
            epoch,
            format_shards(move.shard for move in moves if move.kind == kind),
        )
