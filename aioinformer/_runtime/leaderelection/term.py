"""One term: won, lived under, and given up.

While the body runs, a task of its own renews the lease, so that a body that waits for something is
no hindrance; and a timer looks at the clock, so that a server that says nothing is none either.
The order at the end is what matters: first the body has ended, then the lease is released.

    won ──▶ body runs ──▶ it returns, raises, or is cancelled from outside ──▶ released
                 └──▶ lost: it is cancelled ──▶ it has ended ──▶ LeadershipLost; nothing is written
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType

import anyio

from aioinformer._core.leaderelection.lease import Fencing
from aioinformer._runtime.leaderelection.campaign import Campaign
from aioinformer._runtime.leaderelection.cancellation import BodyCanceller
from aioinformer._runtime.leaderelection.clock import SuspendAwareClock
from aioinformer._runtime.reporting.health import describe_error
from aioinformer.errors import LeadershipLost, UsageError

__all__ = ["LeadershipTerm"]

log = logging.getLogger("aioinformer.election")

CLOCK_CHECKS = 10
"""Looks at the clock in the time that a body has to end. A machine that was asleep is seen to have
been so by one of them: a timer of the loop doesn't count that time."""


class LeadershipTerm:
    """Enter it to lead; what is inside ends when that does. Enter it once."""

    def __init__(
        self,
        campaign: Campaign,
        clock: SuspendAwareClock,
        *,
        name: str,
        release_on_exit: bool,
        on_enter: Callable[[LeadershipTerm], None],
        on_change: Callable[[], None],
        on_exit: Callable[[], None],
    ) -> None:
        """Made by ``LeaderElector.leading``.

        Args:
            campaign: for what.
            clock: the election's time.
            name: of the Lease, for errors and the task.
            release_on_exit: whether to release the lease at the end.
            on_enter: called on entering; it may raise.
            on_change: called when there is something new.
            on_exit: called when it is over.
        """
        self._campaign = campaign
        self._election = campaign.election
        self._clock = clock
        self._name = name
        self._release_on_exit = release_on_exit
        self._on_enter = on_enter
        self._on_change = on_change
        self._on_exit = on_exit
        self._won = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._canceller: BodyCanceller | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failure: BaseException | None = None
        self._lost: LeadershipLost | None = None
        self._stopping = False

    # -- won -----------------------------------------------------------------------------------

    async def __aenter__(self) -> Fencing:
        """Wait for leadership, for as long as it takes.

        Raises:
            UsageError: it was entered before, or the writer can't be used; or whatever ``begun``
                raises.
        """
        if self._stopping:
            raise UsageError(f"this block for {self._name} is over; each term has its own")
        self._on_enter(self)
        try:
            while (fencing := self._current_fencing()) is None:
                await self._acquire()
        except BaseException:
            await self._stop_and_release()
            raise
        self._canceller = BodyCanceller()
        self._canceller.enter()
        self._on_change()
        self._check_clock()
        return fencing

    def _current_fencing(self) -> Fencing | None:
        leads = self._election.leads(self._clock.now)
        return self._election.fencing if leads else None

    async def _acquire(self) -> None:
        """Until it was won; it may be lost again before this task gets to know."""
        self._won.clear()
        if self._task is None or self._task.done():
            self._election.seek(self._clock.now)
            work = self._campaign.run(self._on_campaign_change)
            self._task = asyncio.create_task(work, name=f"election of {self._name}")
            self._task.add_done_callback(self._on_task_done)
        await self._won.wait()
        if self._failure is not None:
            raise self._failure

    def _on_campaign_change(self) -> None:
        self._on_change()
        if self._canceller is not None:
            self.check_leading()
        elif self._election.phase == "leading":
            self._won.set()

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        """The task that renews has ended: by a loss, or because something is wrong."""
        if self._stopping:
            return
        if task.cancelled():
            self._failure = RuntimeError(f"the {task.get_name()} was cancelled, but not by us")
        else:
            self._failure = task.exception()
        self._won.set()
        if self._canceller is not None:
            self.check_leading()

    # -- lived under ---------------------------------------------------------------------------

    def check_leading(self) -> bool:
        """Whether it goes on. If it doesn't, the body is told."""
        if self._canceller is None:
            return False
        if self._election.leads(self._clock.now) and self._failure is None:
            return True
        self._election.check_deadline(self._clock.now)
        if self._lost is None:
            self._lost = lost = self._make_lost_error()
            log.warning("%s", lost)
            self._canceller.cancel(str(lost))
            self._on_change()
        return False

    @property
    def ended(self) -> bool:
        """Whether nothing runs under it, or what does was told to end. From any thread."""
        return self._canceller is None or self._lost is not None

    def _check_clock(self) -> None:
        """Look at the clock, and again later; the timer's callback."""
        told = self._lost is not None  # before now: after a long pause it gets a moment to end
        goes_on, now, times = self.check_leading(), self._clock.now, self._election.times
        if told and now >= self._election.takeover_at:
            log.critical(
                "what ran as the leader of %s was cancelled and still runs, and by now others "
                "may lead",
                self._name,
            )
            return
        wait = (times.lease_duration - times.renew_deadline) / CLOCK_CHECKS
        if goes_on:
            wait = min(wait, self._election.leads_until - now)
        self._timer = asyncio.get_running_loop().call_later(max(0.0, wait), self._check_clock)

    def _make_lost_error(self) -> LeadershipLost:
        cause = self._failure or self._campaign.error
        reason = self._election.lost_reason or (
            describe_error(cause) if cause is not None else "its task ended"
        )
        lost = LeadershipLost(f"leadership of {self._name} was lost: {reason}")
        lost.__cause__ = cause
        return lost

    # -- given up ------------------------------------------------------------------------------

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            from_outside = self._exit_body()
        finally:
            await self._stop_and_release()
        if self._lost is None:
            return
        if error is None or (isinstance(error, asyncio.CancelledError) and not from_outside):
            raise self._lost from self._lost.__cause__

    def _exit_body(self) -> bool:
        """The body has ended; whether somebody else wants its task to end as well."""
        self.check_leading()  # a body that never waited has not heard of it either
        eviction, self._canceller = self._canceller, None
        if self._timer is not None:
            self._timer.cancel()
        return eviction is not None and eviction.leave()

    async def _stop_and_release(self) -> None:
        """Stop renewing; then release what is held. A second cancellation ends that at once."""
        try:
            with anyio.CancelScope(shield=True):
                await self._stop()
                if self._release_on_exit:
                    await self._release()
        finally:
            self._election.end()
            self._on_exit()

    async def _release(self) -> None:
        self._election.release(self._clock.now)
        held = self._election.phase == "releasing"
        try:
            await self._campaign.run(self._on_change)
        except Exception:
            log.exception("the lease %s was not released", self._name)
            return
        if held and not self._election.released:
            log.warning("the lease %s was not released; it runs out by itself", self._name)

    async def _stop(self) -> None:
        """End the task that renews, also when cancelled meanwhile."""
        self._stopping = True
        task, cancelled = self._task, None
        while task is not None and not task.done():
            task.cancel()
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def __repr__(self) -> str:
        return f"<LeadershipTerm of {self._name} {self._election.phase} {self._canceller!r}>"
