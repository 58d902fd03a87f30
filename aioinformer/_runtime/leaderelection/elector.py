"""``LeaderElector``: of several replicas of a program, one acts.

    elector = LeaderElector(client.api(leases), "web/shop-controller", identity=pod_name)
    async with elector.leading() as fencing:
        ...  # nobody else is in here

The rules are ``_core.elections``', one term is ``leadership``'s. What makes the promise: a leader
stops ``lease_duration - renew_deadline`` seconds before others may begin, and within that time its
body has to end. Pauses of the process, the time that the body takes to end once it is cancelled,
and what clocks differ in *rate* must stay below that together. What takes longer can't be undone
from here: see ``check``, ``guarded`` and ``Fencing``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from inspect import iscoroutinefunction
from typing import Any, TypeVar

from aioinformer._core.codec.status_decoder import one_line
from aioinformer._core.instrumentation import Metrics
from aioinformer._core.leaderelection.election import Election, ElectionTimes
from aioinformer._core.leaderelection.lease import GROUP, Fencing
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._runtime.leaderelection.campaign import Campaign
from aioinformer._runtime.leaderelection.cancellation import GuardedAwaitable
from aioinformer._runtime.leaderelection.clock import SuspendAwareClock
from aioinformer._runtime.leaderelection.guarded_writer import GuardedWriter
from aioinformer._runtime.leaderelection.health import ElectionHealth, ElectionStatus
from aioinformer._runtime.leaderelection.term import LeadershipTerm
from aioinformer._runtime.reporting.safe_metrics import wrap_metrics as guarded_metrics
from aioinformer._runtime.tasks.event_loop import check_loop, running_loop
from aioinformer._runtime.writing.resource_writer import ResourceWriter
from aioinformer.errors import LeadershipLost, UsageError

__all__ = ["ElectionHealth", "LeaderElector"]

T = TypeVar("T")

log = logging.getLogger("aioinformer.election")


class LeaderElector:
    """One candidate. It may lead any number of terms, one after the other."""

    def __init__(
        self,
        leases: ResourceWriter,
        key: ObjectKey | str,
        *,
        identity: str,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        release_on_exit: bool = True,
        on_new_leader: Callable[[str], None] | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """Make a candidate; nothing is asked for before ``leading``. Call it in the event loop.

        Args:
            leases: reads and writes Leases: ``client.api(await client.resource("leases"))``.
            key: of the Lease: ``namespace/name``, or a name if ``leases`` has a namespace. It is
                created if it isn't there.
            identity: this candidate's own, and no other's: a pod's name, for example. Two that are
                given the same don't lead together all the same, but a program that was killed and
                comes back under its old name waits until its old lease is over.
            lease_duration: seconds without a renewal after which others take over. Written into
                the Lease rounded up to whole seconds, and others go by what is written.
            renew_deadline: seconds after the last renewal after which leading ends.
            retry_period: seconds between two tries; others' are stretched by up to 1.2 times that.
            release_on_exit: whether to release the lease when a body has ended by itself, so that
                others needn't wait until it runs out. Leaving then takes up to ``renew_deadline``
                if the server is silent; a second cancellation ends that.
            on_new_leader: called in the event loop with the identity of each new leader that is
                seen, our own included. It must be quick and not wait; what it raises is logged.
            metrics: told of leading, under the name of the Lease.

        Raises:
            ValueError: numbers that don't fit (client-go's checks), a key or identity that can't
                be.
            TypeError: ``on_new_leader`` is async: nobody would await it.
            UsageError: ``leases`` are something else; or this is no event loop.
        """
        if (leases.resource.group, leases.resource.plural) != (GROUP, "leases"):
            raise UsageError(f"a LeaderElector needs leases.{GROUP}, not {leases.resource}")
        if iscoroutinefunction(on_new_leader):
            raise TypeError("on_new_leader must be a plain function: nobody would await it")
        key = ObjectKey.parse(key) if isinstance(key, str) else key
        times = ElectionTimes(
            lease_duration=lease_duration, renew_deadline=renew_deadline, retry_period=retry_period
        )
        self.key = key
        """Of the Lease."""
        self._election = Election(key, identity=identity, times=times)
        self._loop = running_loop()
        self._clock = SuspendAwareClock(self._loop.time)
        self._campaign = Campaign(self._election, leases, key, self._clock)
        self._status = ElectionStatus(self._campaign, self._clock)
        self._release_on_exit = release_on_exit
        self._on_new_leader = on_new_leader
        self._metrics = guarded_metrics(metrics)
        self._reported_leader = ""
        self._reported_leading = False
        self._metrics.leadership(str(key), False)
        self._term: LeadershipTerm | None = None

    # -- leading -------------------------------------------------------------------------------

    def leading(self) -> AbstractAsyncContextManager[Fencing, None]:
        """Wait for leadership, and lead for as long as the block lasts.

        When leadership is lost, the block is cancelled, as by an anyio scope: again and again until
        it has ended. Then ``LeadershipLost`` is raised. The block's own exceptions pass through as
        they are, and so does a cancellation from outside. After a pause of the process that was too
        long, what the block waits for brings it no more: it is cancelled where it waits, unless its
        next step was due before the pause began; see ``run``, and ``check``.

        Enter and leave it in one task. Tasks that the block has started are its own to end, best in
        a task group within it.

        Returns:
            A context; entering it gives the number of the term.

        Raises:
            LeadershipLost: on leaving; its cause is what failed last.
            UsageError: on entering: it leads or waits already, or the writer can't be used.
        """
        return LeadershipTerm(
            self._campaign,
            self._clock,
            name=str(self.key),
            release_on_exit=self._release_on_exit,
            on_enter=self._on_term_enter,
            on_change=self._on_change,
            on_exit=self._on_term_exit,
        )

    async def run(self, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Wait for leadership, and run a coroutine function under it; what it returns.

        As ``leading``, and more: the clock is read before each step of the coroutine, so that after
        a pause of any length, at any point, it is cancelled before it does anything.

        Raises:
            LeadershipLost: leadership was lost.
        """
        async with self.leading():
            return await GuardedAwaitable(body(), self._cancel_reason)

    def check(self) -> None:
        """Raise unless this leads at this moment; for what is about to act in the leader's name.

        It reads the clock, so that it is right after any pause. May be called from any thread, and
        costs two microseconds. The block that leads is cancelled, too, if it wasn't.

        Raises:
            LeadershipLost: it doesn't.
        """
        if not self.is_leader:
            if self._term is not None and _is_running_loop(self._loop):
                self._term.check_leading()
            reason = self._election.lost_reason or "it isn't led from here"
            raise LeadershipLost(f"leadership of {self.key}: {reason}") from self._campaign.error

    def guarded(self, writer: ResourceWriter) -> GuardedWriter:
        """A writer that writes only while this leads: it checks before each request.

        A request that was sent in time may be carried out later, and isn't taken back.
        """
        return GuardedWriter(writer, self.check)

    def _cancel_reason(self) -> str:
        """Why the body may not go on, when that is new."""
        if self._term is None or self._term.ended or self._term.check_leading():
            return ""
        return f"leadership of {self.key} was lost"

    # -- how it stands -------------------------------------------------------------------------

    @property
    def identity(self) -> str:
        """The candidate's own."""
        return self._election.identity

    @property
    def is_leader(self) -> bool:
        """Whether this leads at this moment. May be read from any thread."""
        term = self._term
        return term is not None and not term.ended and self._election.leads(self._clock.now)

    @property
    def leader(self) -> str:
        """Who leads, as far as was seen when the Lease was read last; empty for nobody."""
        return self._election.leader

    @property
    def fencing(self) -> Fencing | None:
        """The number of our term; ``None`` while this doesn't lead."""
        return self._election.fencing if self.is_leader else None

    @property
    def health(self) -> ElectionHealth:
        """How it stands, with what went wrong last."""
        return self._status.health

    def _on_change(self) -> None:
        """There is something new."""
        self._status.update()
        if (leads := self.is_leader) != self._reported_leading:
            self._reported_leading = leads
            self._metrics.leadership(str(self.key), leads)
        if (leader := self.leader) != self._reported_leader:
            self._reported_leader = leader
            if leader:
                self._report_new_leader(leader)

    def _report_new_leader(self, leader: str) -> None:
        log.info("the leader of %s is %s", self.key, one_line(leader))
        if self._on_new_leader is not None:
            try:
                self._on_new_leader(leader)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException:
                log.exception("on_new_leader raised for %s", self.key)

    def _on_term_enter(self, term: LeadershipTerm) -> None:
        check_loop(self._loop, f"the candidate for {self.key}")
        if self._term is not None:
            raise UsageError(f"this candidate for {self.key} leads or waits already")
        self._term = term

    def _on_term_exit(self) -> None:
        self._term = None
        self._on_change()

    def __repr__(self) -> str:
        return f"<LeaderElector {self.identity} for {self.key} {self._status.state}>"


def _is_running_loop(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
