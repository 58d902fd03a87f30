"""``LeaderElector``: of several replicas of a program, only one is active.

The guarantee rests on a margin: a leader stops ``lease_duration - renew_deadline`` seconds before
others may begin, and its body must end within that time. Pauses of the process, the time that a
cancelled body takes to end, and the difference in rate between clocks must together stay below the
margin. For a longer pause see ``check``, ``guarded`` and ``Fencing``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, TypeVar

from aioinformer._core.callables import is_async
from aioinformer._core.instrumentation import Metrics
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._runtime.reporting.problem import OnError
from aioinformer._runtime.reporting.safe_metrics import wrap_metrics
from aioinformer._runtime.tasks.event_loop import check_loop, running_loop
from aioinformer._runtime.writing.resource_writer import (
    CheckedClient,
    CheckedWriter,
    ResourceWriter,
    WriterSource,
)
from aioinformer.errors import LeadershipLost, UsageError
from aioinformer.errors.texts import one_line
from aioinformer.leaderelection.campaign import Campaign
from aioinformer.leaderelection.cancellation import GuardedAwaitable
from aioinformer.leaderelection.health import ElectionHealth, ElectionStatus
from aioinformer.leaderelection.reports import LeaseReporter
from aioinformer.leaderelection.state.election import Election, ElectionTimes
from aioinformer.leaderelection.state.lease import GROUP, Fencing, group_of_lease
from aioinformer.leaderelection.suspend_clock import SuspendAwareClock
from aioinformer.leaderelection.term import LeadershipTerm
from aioinformer.leaderelection.uses import LeaseUse

T = TypeVar("T")

log = logging.getLogger("aioinformer.election")


class LeaderElector:
    """One candidate, which may lead any number of terms, one after the other."""

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
        on_error: OnError | None = None,
    ) -> None:
        """Make a candidate. Nothing is sent before ``leading``. Call this in the event loop.

        Args:
            leases: reads and writes Leases: ``client.api("leases")``.
            key: the key of the Lease: ``namespace/name``, or a name if ``leases`` has a namespace.
                The Lease is created if it doesn't exist.
            identity: the candidate's identity, which no other candidate has: a pod's name, for
                example. Two candidates with the same identity don't lead together, but a program
                that was killed and returns under its old identity waits until its old lease has
                expired.
            lease_duration: seconds without a renewal after which others take over. The Lease
                contains the duration rounded up to whole seconds, and others use that value.
            renew_deadline: seconds after the last renewal after which leading ends.
            retry_period: seconds between two attempts. Candidates that wait add up to 1.2 times
                that at random.
            release_on_exit: True if the lease is released when a body has ended by itself, so that
                others don't wait until it expires. Leaving then takes up to ``renew_deadline`` if
                the server doesn't answer; a second cancellation ends that wait.
            on_new_leader: called in the event loop with the identity of each new leader, this
                candidate included. Must be quick. An exception from it is logged.
            metrics: receives the changes of leadership, under the name of the Lease, and the
                failed requests.
            on_error: called in the event loop with a ``Problem`` of the phase ``lease`` when
                requests begin to fail, and every 20 s while they do. Must be quick.

        Raises:
            ValueError: the times don't fit together (client-go's checks), or the key or identity is
                invalid.
            TypeError: ``on_new_leader`` or ``on_error`` is async.
            UsageError: ``leases`` writes another resource, or no event loop is running.
        """
        if (leases.resource.group, leases.resource.plural) != (GROUP, "leases"):
            raise UsageError(f"a LeaderElector needs leases.{GROUP}, not {leases.resource}")
        if is_async(on_new_leader):
            raise TypeError("on_new_leader is called, not awaited: it must not be async")
        key = ObjectKey.parse(key) if isinstance(key, str) else key
        times = ElectionTimes(
            lease_duration=lease_duration, renew_deadline=renew_deadline, retry_period=retry_period
        )
        self.key = key
        self._election = Election(key, identity=identity, times=times)
        self._loop = running_loop()
        self._clock = SuspendAwareClock(self._loop.time)
        self._campaign = Campaign(
            self._election,
            leases,
            key,
            self._clock,
            reporter=LeaseReporter(
                f"lease {key}", log, self._clock, metrics=metrics, on_error=on_error
            ),
            find_misuse=partial(_find_misuse, key),
        )
        self._use = LeaseUse(leases, str(key))
        self._status = ElectionStatus(self._campaign, self._clock)
        self._release_on_exit = release_on_exit
        self._on_new_leader = on_new_leader
        self._metrics = wrap_metrics(metrics)
        self._reported_leader = ""
        self._reported_leading = False
        self._metrics.leadership(str(key), False)
        self._term: LeadershipTerm | None = None

    # -- leading -------------------------------------------------------------------------------

    def leading(self) -> AbstractAsyncContextManager[Fencing, None]:
        """Wait for leadership, and lead while the block runs; entering gives the ``Fencing`` of the
        term.

        When leadership is lost, the block is cancelled as by an anyio scope: again and again until
        it has ended. Then ``LeadershipLost`` is raised. The block's own exceptions and a
        cancellation from outside pass through unchanged. After a pause of the process that was too
        long, the block is cancelled where it waits, in a shielded scope too, unless its next step
        was due before the pause began; see ``run`` and ``check``.

        Enter and leave the block in one task. The block must end the tasks that it starts, best
        with a task group inside the block.

        Raises:
            LeadershipLost: on leaving. The last error is its cause.
            UsageError: on entering: this candidate leads or waits already, the writer can't be
                used, or the Lease is one of a shard group of this program.
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
        """Wait for leadership, run a coroutine function under it, and return its result.

        The clock is read before each step of the coroutine. So after a pause of any length, at any
        point, the coroutine is cancelled before it takes another step.

        Raises:
            LeadershipLost: leadership was lost.
        """
        async with self.leading():
            return await GuardedAwaitable(body(), self._cancel_reason)

    def check(self) -> None:
        """Raise unless this candidate leads at this moment. Call it just before an action of the
        leader.

        The check reads the clock, so that the result is right after any pause. It may be called
        from any thread and takes 2 µs. If leadership was lost, the block that leads is cancelled
        too.

        Raises:
            LeadershipLost: this candidate doesn't lead.
        """
        if not self.is_leader:
            if self._term is not None and _is_running_loop(self._loop):
                self._term.check_leading()
            reason = self._election.lost_reason or "this candidate doesn't lead"
            raise LeadershipLost(f"leadership of {self.key}: {reason}") from self._campaign.error

    def guarded(self, writer: ResourceWriter) -> ResourceWriter:
        """Return a writer that calls ``check`` before each request, so that nothing is sent after a
        pause of the process of any length. A request that was sent in time may take effect later,
        and isn't undone: only the written side can reject it, by the term's number (``Fencing``) or
        by the resourceVersion in an update.
        """
        return CheckedWriter(writer, self.check)

    def guarded_client(self, client: WriterSource) -> WriterSource:
        """Return a source of ``guarded`` writers, as in ``Controller(foos, reconcile,
        client=elector.guarded_client(client))``.
        """
        return CheckedClient(client, self.check)

    def _cancel_reason(self) -> str:
        """Return why the body must end, or an empty string; a reason is returned once."""
        if self._term is None or self._term.ended or self._term.check_leading():
            return ""
        return f"leadership of {self.key} was lost"

    # -- how it stands -------------------------------------------------------------------------

    @property
    def identity(self) -> str:
        """The candidate's identity."""
        return self._election.identity

    @property
    def is_leader(self) -> bool:
        """True if this candidate leads at this moment. May be read from any thread."""
        term = self._term
        return term is not None and not term.ended and self._election.leads(self._clock.now)

    @property
    def leader(self) -> str:
        """The leader's identity when the Lease was last read; empty for none, and after this
        candidate has lost the lease, until another holds it.
        """
        return self._election.leader

    @property
    def fencing(self) -> Fencing | None:
        """The number of our term; ``None`` while this candidate doesn't lead."""
        return self._election.fencing if self.is_leader else None

    @property
    def health(self) -> ElectionHealth:
        """A snapshot of the state, with the last error."""
        return self._status.health

    def _on_change(self) -> None:
        """Update the state, the metrics and the program after a change."""
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
        self._use.begin()
        self._term = term

    def _on_term_exit(self) -> None:
        self._use.end()
        self._term = None
        self._on_change()

    def __repr__(self) -> str:
        return f"<LeaderElector {self.identity} for {self.key} {self._status.state}>"


def _find_misuse(key: ObjectKey, lease: Mapping[str, Any]) -> str:
    group = group_of_lease(lease)
    return f"{key} belongs to the shard group {group}" if group else ""


def _is_running_loop(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
