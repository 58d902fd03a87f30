"""Carries out what an ``Election`` asks for: requests, and waits.

One request at a time, each for no longer than the election has patience. What comes of it is told
to the election, and whoever listens hears of it, with no await in between. Errors are part of an
election: they are kept and logged, the first of a kind as a warning (that somebody was faster is
none), and never end it. What is no
error of a request (a client that was closed, a bug) does.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import random
from collections.abc import Callable

from aioinformer._core.leaderelection.election import (
    CreateLease,
    Election,
    ElectionEnded,
    LeaseLost,
    ReadLease,
    SleepUntil,
    UpdateLease,
)
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._runtime.leaderelection.clock import SuspendAwareClock
from aioinformer._runtime.reporting.health import describe_error
from aioinformer._runtime.writing.resource_writer import ResourceWriter
from aioinformer.errors import Conflict, FetchError, NotFound, RequestTimedOut, ServerError

__all__ = ["Campaign"]

log = logging.getLogger("aioinformer.election")


class Campaign:
    """One candidate's requests."""

    def __init__(
        self, election: Election, leases: ResourceWriter, key: ObjectKey, clock: SuspendAwareClock
    ) -> None:
        """Make it; nothing has been asked yet.

        Args:
            election: says what to do.
            leases: what to do it with.
            key: of the Lease.
            clock: the election's time.
        """
        self.election = election
        self.error: FetchError | None = None
        """What went wrong last; ``None`` once a request has worked again."""
        self._leases = leases
        self._key = key
        self._clock = clock

    async def run(self, on_change: Callable[[], None]) -> None:
        """Do what is asked for until it is lost or has ended.

        Args:
            on_change: called when there is something new.

        Raises:
            UsageError: the writer can't be used.
        """
        while True:
            match self.election.step(self._clock.now, dt.datetime.now(dt.UTC)):
                case SleepUntil(until):
                    await asyncio.sleep(max(0.0, until - self._clock.now))
                case LeaseLost() | ElectionEnded():
                    on_change()
                    return
                case action:
                    await self._execute(action)
                    on_change()

    async def _execute(self, action: ReadLease | CreateLease | UpdateLease) -> None:
        patience = self.election.request_timeout(self._clock.now)
        try:
            async with asyncio.timeout(patience):
                lease = await self._send(action)
        except NotFound as error:
            if isinstance(action, ReadLease):
                self.error = None
                self.election.record_read(None, self._clock.now, random.random())
            else:
                self._fail(action, error)
        except FetchError as error:
            self._fail(action, error)
        except TimeoutError as error:
            late = RequestTimedOut(f"no answer within {patience:.3g} s", phase="write")
            late.__cause__ = error
            self._fail(action, late)
        else:
            self._succeed(action, lease)

    async def _send(self, action: ReadLease | CreateLease | UpdateLease) -> KubeObject:
        match action:
            case ReadLease():
                return await self._leases.get(str(self._key))
            case CreateLease(body):
                return await self._leases.create(body)
            case UpdateLease(body):
                return await self._leases.update(body)

    def _succeed(self, action: ReadLease | CreateLease | UpdateLease, lease: KubeObject) -> None:
        told = (
            self.election.record_read
            if isinstance(action, ReadLease)
            else self.election.record_write
        )
        told(lease.to_dict(), self._clock.now, random.random())
        self.error = None

    def _fail(self, action: ReadLease | CreateLease | UpdateLease, error: FetchError) -> None:
        again = self.error is not None and type(error) is type(self.error)
        self.error = error
        asked = type(action).__name__.lower()
        first = logging.INFO if isinstance(error, Conflict) else logging.WARNING
        level = logging.DEBUG if again else first
        log.log(level, "lease %s: %s failed: %s", self._key, asked, describe_error(error))
        least = (error.status.retry_after or 0.0) if isinstance(error, ServerError) else 0.0
        self.election.record_failure(self._clock.now, random.random(), minimum=least)

    def __repr__(self) -> str:
        return f"<Campaign {self.election!r} error={self.error!r}>"
