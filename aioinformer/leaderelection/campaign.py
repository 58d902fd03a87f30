"""The requests and waits of an ``Election``.

One request at a time is sent, with a timeout that the election sets. Its result is passed to the
election, and the listener is notified, with no await in between. Errors of requests never end an
election, and are reported. Errors that no request raises (a closed client, a bug) end the campaign.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import random
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._runtime.writing.resource_writer import ResourceWriter
from aioinformer.errors import (
    FetchError,
    NotFound,
    ObjectDecodeError,
    ProtocolError,
    RequestTimedOut,
    ServerError,
)
from aioinformer.leaderelection.reports import LeaseReporter
from aioinformer.leaderelection.state.election import (
    CreateLease,
    Election,
    ElectionEnded,
    LeaseLost,
    ReadLease,
    SleepUntil,
    UpdateLease,
)
from aioinformer.leaderelection.suspend_clock import SuspendAwareClock

log = logging.getLogger("aioinformer.election")

_Action: TypeAlias = ReadLease | CreateLease | UpdateLease
_ACTIONS: tuple[type[_Action], ...] = (ReadLease, CreateLease, UpdateLease)


class Campaign:
    """The requests of one candidate."""

    def __init__(
        self,
        election: Election,
        leases: ResourceWriter,
        key: ObjectKey,
        clock: SuspendAwareClock,
        *,
        reporter: LeaseReporter | None = None,
        find_misuse: Callable[[Mapping[str, Any]], str] = lambda _: "",
        complete: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda body: body,
    ) -> None:
        """Prepare the requests. ``find_misuse`` returns which other user a Lease has, for
        ``misused``. ``complete`` returns the body of a Lease to send at once.
        """
        self.election = election
        self._reporter = reporter or LeaseReporter(f"lease {key}", log, clock)
        self._find_misuse = find_misuse
        self._complete = complete
        self._leases = leases
        self._key = key
        self._clock = clock
        self._woken = asyncio.Event()

    @property
    def error(self) -> Exception | None:
        """The last error; ``None`` once the request has succeeded, or isn't needed any more."""
        return self._reporter.error

    def wake(self) -> None:
        """End a wait, since the election may have another next action by now."""
        self._woken.set()

    async def run(self, on_change: Callable[[], None]) -> None:
        """Carry out the election's actions until the Lease is lost or the election has ended. Call
        ``on_change`` after each change. Raises ``UsageError`` if the writer can't be used.
        """
        while True:
            match self.election.step(self._clock.now, dt.datetime.now(dt.UTC)):
                case SleepUntil(until):
                    await self._sleep(until)
                case LeaseLost() | ElectionEnded():
                    on_change()
                    return
                case action:
                    await self._execute(action)
                    on_change()

    async def _sleep(self, until: float) -> None:
        self._woken.clear()
        try:
            async with asyncio.timeout(max(0.0, until - self._clock.now)):
                await self._woken.wait()
        except TimeoutError:
            pass  # the usual end of a wait

    async def _execute(self, action: _Action) -> None:
        timeout = self.election.request_timeout(self._clock.now)
        try:
            async with asyncio.timeout(timeout):
                lease = (await self._send(action)).to_dict()
        except NotFound as error:
            if isinstance(action, ReadLease):
                self._succeed(action, None)  # no Lease yet is a normal state
            else:
                self._fail(action, error)
        except FetchError as error:
            self._fail(action, error)
        except ObjectDecodeError as error:  # damaged on its way; the next answer may be sound
            damaged = ProtocolError(f"the answer is not a Lease: {error}", phase="write")
            damaged.__cause__ = error
            self._fail(action, damaged)
        except TimeoutError as error:
            late = RequestTimedOut(f"no answer within {timeout:.3g} s", phase="write")
            late.__cause__ = error
            self._fail(action, late)
        else:
            self._succeed(action, lease)

    async def _send(self, action: _Action) -> KubeObject:
        match action:
            case ReadLease():
                return await self._leases.get(str(self._key))
            case CreateLease(body):
                return await self._leases.create(self._complete(body))
            case UpdateLease(body):
                return await self._leases.update(self._complete(body))

    def _succeed(self, action: _Action, lease: dict[str, Any] | None) -> None:
        if lease is None or isinstance(action, ReadLease):
            self.election.record_read(lease, self._clock.now, random.random())
        else:
            self.election.record_write(lease, self._clock.now, random.random())
        # After a read, a write that has failed may be due again; after the read of a release it is
        # given up.
        failed = self.election.writes_next or self.election.phase == "ended"
        due = isinstance(action, ReadLease) and failed
        self._reporter.misused("" if lease is None else self._find_misuse(lease))
        self._reporter.succeeded(*map(_text_of, (ReadLease,) if due else _ACTIONS))

    def _fail(self, action: _Action, error: FetchError) -> None:
        minimum = (error.status.retry_after or 0.0) if isinstance(error, ServerError) else 0.0
        self.election.record_failure(self._clock.now, random.random(), minimum=minimum)
        self._reporter.failed(_text_of(type(action)), error, self.election.due_in(self._clock.now))

    def __repr__(self) -> str:
        return f"<Campaign {self.election!r} error={self.error!r}>"


def _text_of(action: type[_Action]) -> str:
    return f"{action.__name__} failed"
