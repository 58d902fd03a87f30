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
from aioinformer._runtime.leaderelection.cancellation import Eviction
from aioinformer._runtime.leaderelection.clock import ElapsedClock
from aioinformer._runtime.reporting.health import shown
from aioinformer.errors import LeadershipLost, UsageError

__all__ = ["Leadership"]

log = logging.getLogger("aioinformer.election")

LOOKS = 10
"""Looks at the clock in the time that a body has to end. A machine that was asleep is seen to have
been so by one of them: a timer of the loop doesn't count that time."""


class Leadership:
    """Enter it to lead; what is inside ends when that does. Enter it once."""

    def __init__(
        self,
        campaign: Campaign,
        clock: ElapsedClock,
        *,
        name: str,
        releases: bool,
        begun: Callable[[Leadership], None],
        heard: Callable[[], None],
        left: Callable[[], None],
    ) -> None:
        """Made by ``LeaderElector.leading``.

        Args:
            campaign: for what.
            clock: the election's time.
            name: of the Lease, for errors and the task.
            releases: whether to release the lease at the end.
            begun: called on entering; it may raise.
            heard: called when there is something new.
            left: called when it is over.
        """
        self._campaign = campaign
        self._election = campaign.election
        self._clock = clock
        self._name = name
        self._releases = releases
        self._begun = begun
        self._heard = heard
        self._left = left
        self._won = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._eviction: Eviction | None = None
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
        self._begun(self)
        try:
            while (fencing := self._fencing()) is None:
                await self._campaign_for_it()
        except BaseException:
            await self._give_up()
            raise
        self._eviction = Eviction()
        self._eviction.enter()
        self._heard()
        self._look()
        return fencing

    def _fencing(self) -> Fencing | None:
        leads = self._election.leads(self._clock.now)
        return self._election.fencing if leads else None

    async def _campaign_for_it(self) -> None:
        """Until it was won; it may be lost again before this task gets to know."""
        self._won.clear()
        if self._task is None or self._task.done():
            self._election.seek(self._clock.now)
            work = self._campaign.run(self._on_news)
            self._task = asyncio.create_task(work, name=f"election of {self._name}")
            self._task.add_done_callback(self._ended)
        await self._won.wait()
        if self._failure is not None:
            raise self._failure

    def _on_news(self) -> None:
        self._heard()
        if self._eviction is not None:
            self.look()
        elif self._election.phase == "leading":
            self._won.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """The task that renews has ended: by a loss, or because something is wrong."""
        if self._stopping:
            return
        if task.cancelled():
            self._failure = RuntimeError(f"the {task.get_name()} was cancelled, but not by us")
        else:
            self._failure = task.exception()
        self._won.set()
        if self._eviction is not None:
            self.look()

    # -- lived under ---------------------------------------------------------------------------

    def look(self) -> bool:
        """Whether it goes on. If it doesn't, the body is told."""
        if self._eviction is None:
            return False
        if self._election.leads(self._clock.now) and self._failure is None:
            return True
        self._election.check(self._clock.now)
        if self._lost is None:
            self._lost = lost = self._loss()
            log.warning("%s", lost)
            self._eviction.evict(str(lost))
            self._heard()
        return False

    @property
    def over(self) -> bool:
        """Whether nothing runs under it, or what does was told to end. From any thread."""
        return self._eviction is None or self._lost is not None

    def _look(self) -> None:
        """Look at the clock, and again later; the timer's callback."""
        told = self._lost is not None  # before now: after a long pause it gets a moment to end
        goes_on, now, times = self.look(), self._clock.now, self._election.times
        if told and now >= self._election.open_to_others:
            log.critical(
                "what ran as the leader of %s was cancelled and still runs, and by now others "
                "may lead",
                self._name,
            )
            return
        wait = (times.lease_duration - times.renew_deadline) / LOOKS
        if goes_on:
            wait = min(wait, self._election.until - now)
        self._timer = asyncio.get_running_loop().call_later(max(0.0, wait), self._look)

    def _loss(self) -> LeadershipLost:
        cause = self._failure or self._campaign.error
        reason = self._election.loss or (shown(cause) if cause is not None else "its task ended")
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
            from_outside = self._leave()
        finally:
            await self._give_up()
        if self._lost is None:
            return
        if error is None or (isinstance(error, asyncio.CancelledError) and not from_outside):
            raise self._lost from self._lost.__cause__

    def _leave(self) -> bool:
        """The body has ended; whether somebody else wants its task to end as well."""
        self.look()  # a body that never waited has not heard of it either
        eviction, self._eviction = self._eviction, None
        if self._timer is not None:
            self._timer.cancel()
        return eviction is not None and eviction.leave()

    async def _give_up(self) -> None:
        """Stop renewing; then release what is held. A second cancellation ends that at once."""
        try:
            with anyio.CancelScope(shield=True):
                await self._stop()
                if self._releases:
                    await self._release()
        finally:
            self._election.end()
            self._left()

    async def _release(self) -> None:
        self._election.release(self._clock.now)
        held = self._election.phase == "releasing"
        try:
            await self._campaign.run(self._heard)
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
        return f"<Leadership of {self._name} {self._election.phase} {self._eviction!r}>"
