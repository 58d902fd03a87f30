"""One term: the lease is acquired, the body runs while it is renewed, and the lease is released.

A separate task renews the lease, so that a body that waits doesn't prevent a renewal. A timer
checks the clock, so that a server that doesn't answer doesn't keep the body running.

    acquired ──▶ body runs ──▶ it returns, raises, or is cancelled from outside ──▶ released
                      └──▶ lost: it is cancelled ──▶ it ends ──▶ LeadershipLost, nothing is written
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType

import anyio

from aioinformer._runtime.reporting.error_texts import describe_error
from aioinformer.errors import LeadershipLost, UsageError
from aioinformer.leaderelection.campaign import Campaign
from aioinformer.leaderelection.cancellation import BodyCanceller
from aioinformer.leaderelection.state.lease import Fencing
from aioinformer.leaderelection.suspend_clock import SuspendAwareClock

log = logging.getLogger("aioinformer.election")

CLOCK_CHECKS = 10
"""Checks of the clock, to notice a suspension, in the time that a body has to end."""


class LeadershipTerm:
    """A context manager that leads while its block runs. Enter it once."""

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
        self._campaign = campaign
        self._election = campaign.election
        self._clock = clock
        times = self._election.times
        self._check_interval = (times.lease_duration - times.renew_deadline) / CLOCK_CHECKS
        """Seconds between two checks of the clock. A loss that is noticed later is late."""
        self._name = name
        self._release_on_exit = release_on_exit
        self._on_enter = on_enter
        self._on_change = on_change
        self._on_exit = on_exit
        self._acquired = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._canceller: BodyCanceller | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failure: BaseException | None = None
        self._lost: LeadershipLost | None = None
        self._stopping = False

    # -- acquiring -----------------------------------------------------------------------------

    async def __aenter__(self) -> Fencing:
        """Wait for leadership without a time limit. Exceptions of ``on_enter`` pass through."""
        if self._stopping:
            raise UsageError(
                f"this term for {self._name} is over; call leading() again for another one"
            )
        self._on_enter(self)
        try:
            # The lease may be lost between its acquisition and the next step of this task.
            while (fencing := self._current_fencing()) is None:
                await self._acquire()
        except BaseException:
            await self._stop_and_release()
            raise
        self._canceller = BodyCanceller()
        self._canceller.enter()  # no await from here to the body
        self._on_change()
        self._check_clock()  # starts the timer
        return fencing

    def _current_fencing(self) -> Fencing | None:
        leads = self._election.leads(self._clock.now)
        return self._election.fencing if leads else None

    async def _acquire(self) -> None:
        """Wait until the lease is acquired. The lease may be lost again before this task runs."""
        self._acquired.clear()
        if self._task is None or self._task.done():
            self._election.seek(self._clock.now)
            work = self._campaign.run(self._on_campaign_change)
            self._task = asyncio.create_task(work, name=f"election of {self._name}")
            self._task.add_done_callback(self._on_task_done)
        await self._acquired.wait()
        if self._failure is not None:
            raise self._failure

    def _on_campaign_change(self) -> None:
        self._on_change()
        if self._canceller is not None:
            self.check_leading()
        elif self._election.phase == "leading":
            self._acquired.set()

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        """Handle the end of the renewing task: leadership was lost, or an error occurred."""
        if self._stopping:
            return
        if task.cancelled():
            self._failure = RuntimeError(
                f"the {task.get_name()} was cancelled, but not by its elector"
            )
        else:
            self._failure = task.exception()
        self._acquired.set()  # _acquire() raises the failure
        if self._canceller is not None:
            self.check_leading()

    # -- leading -------------------------------------------------------------------------------

    def check_leading(self) -> bool:
        """Return True if this term still leads; otherwise cancel the body."""
        if self._canceller is None:
            return False
        if self._election.leads(self._clock.now) and self._failure is None:
            return True
        self._election.check_deadline(self._clock.now)
        if self._lost is None:
            self._lost = lost = self._make_lost_error()
            log.warning("%s", lost)
            late = self._clock.now > self._election.leads_until + self._check_interval
            self._canceller.cancel(str(lost), late=late)
            self._on_change()
        return False

    @property
    def ended(self) -> bool:
        """True if no body runs, or if the body was cancelled. May be read from any thread."""
        return self._canceller is None or self._lost is not None

    def _check_clock(self) -> None:
        """Check the clock, and schedule the next check. Called by the timer."""
        # After a long pause the body is cancelled by this check; it gets time until the next one.
        cancelled_before = self._lost is not None
        leads, now = self.check_leading(), self._clock.now
        if cancelled_before and now >= self._election.takeover_at:
            log.critical(
                "the body that led %s was cancelled and still runs, and another candidate may "
                "lead by now",
                self._name,
            )
            return
        wait = self._check_interval
        if leads:
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

    # -- releasing -----------------------------------------------------------------------------

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
        # The body's own errors and a cancellation from outside are not replaced.
        if error is None or (isinstance(error, asyncio.CancelledError) and not from_outside):
            raise self._lost from self._lost.__cause__

    def _exit_body(self) -> bool:
        """End the body. Return True if another source wants to cancel its task as well."""
        self.check_leading()  # a body that never waited was not cancelled yet
        canceller, self._canceller = self._canceller, None
        if self._timer is not None:
            self._timer.cancel()
        return canceller is not None and canceller.leave()

    async def _stop_and_release(self) -> None:
        """Stop renewing, then release the lease. A second cancellation ends the release at once."""
        try:
            # Shielded from anyio scopes: the lease must be released also after a cancellation.
            with anyio.CancelScope(shield=True):
                await self._stop()
                if self._release_on_exit:
                    await self._release()
        finally:
            self._election.end()
            self._on_exit()

    async def _release(self) -> None:
        self._election.release(self._clock.now)
        try:
            await self._campaign.run(self._on_change)
        except Exception:
            log.exception("the lease %s was not released", self._name)
            return
        if self._election.expires:
            log.warning("the lease %s was not released; it expires by itself", self._name)

    async def _stop(self) -> None:
        """End the renewing task, also if this is cancelled meanwhile."""
        self._stopping = True
        task, cancelled = self._task, None
        while task is not None and not task.done():
            task.cancel()
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error  # raised when no renewal can be sent any more
        if cancelled is not None:
            raise cancelled

    def __repr__(self) -> str:
        return f"<LeadershipTerm of {self._name} {self._election.phase} {self._canceller!r}>"
