"""Credentials that expire: one refresh at a time, shared by all waiting requests.

A token source (a file, an exec plugin, a kubeconfig that is rewritten) returns a ``TokenGrant``,
which says how long the token may be used. ``RefreshingAuthorization`` decides about the next call:

    the grant is fresh          the token is used
    the grant is not fresh      the token is used, and refreshed in the background
    the grant is not valid      requests wait for the refresh
    the server answered 401     requests wait for the refresh, whatever the grant's age

The refresh is a task of its own (``SingleFlight``): a plugin that takes twelve seconds would never
finish if it ended together with a request that waits for ten.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from aioinformer._runtime.reporting.error_hook import Outage
from aioinformer.errors import FetchError, NotRunning

logger = logging.getLogger("aioinformer.credentials")

T = TypeVar("T")

CLOSED_MESSAGE = "the client was closed before the request was sent"


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A client certificate and its key, in PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """The credentials that a token source returns, with their lifetime."""

    header: str = field(default="", repr=False)
    """The ``Authorization`` header; empty for none."""
    pair: CertificatePair | None = field(default=None, repr=False)
    """A client certificate, in addition to the header or instead of it."""
    fresh_for: float = math.inf
    """Seconds until the credentials should be refreshed; by default only after a rejection."""
    valid_for: float = math.inf
    """Seconds until the credentials can't be used any more."""


class RefreshingAuthorization:
    """An ``Authorization`` whose header is refreshed in time and after a rejection."""

    def __init__(
        self, source: Callable[[], Coroutine[Any, Any, TokenGrant]], *, is_file: bool = False
    ) -> None:
        """Create the authorization. ``source`` raises ``FetchError`` if it has no grant."""
        self._source = source
        self._is_file = is_file
        self._refresh = SingleFlight(self._fetch_grant, name="refresh of credentials")
        self._grant: TokenGrant | None = None
        self._granted_at = 0.0
        self.changes = 0
        """The number of times that the credentials have changed."""
        self._outage = Outage(logger)

    @property
    def pair(self) -> CertificatePair | None:
        return self._grant.pair if self._grant else None

    async def header(self, *, rejected: str | None = None) -> str:
        """Return the header; see ``Authorization``.

        Requests that call this method during a refresh share it. It continues if one is cancelled.

        Raises:
            FetchError: there is no valid header, and none can be obtained now (phase
                ``credentials``).
            NotRunning: the client was closed meanwhile.
        """
        grant, now = self._grant, asyncio.get_running_loop().time()
        if (
            grant is not None
            and grant.header != rejected
            and now < self._granted_at + grant.valid_for
        ):
            if now >= self._granted_at + grant.fresh_for:
                self._refresh.start()
            return grant.header
        try:
            return (await self._refresh()).header
        except FetchError as error:
            # All waiting requests share the error of the task, but each must raise its own.
            raise FetchError(str(error), phase="credentials") from error.__cause__

    async def look(self) -> None:
        """Read a file again; an exec plugin is not run, because it may ask the user to log in.

        Raises:
            FetchError: the file can't be read.
            NotRunning: the client was closed.
        """
        if self._is_file:
            await self._refresh()

    async def _fetch_grant(self) -> TokenGrant:
        try:
            grant = await self._source()
        except FetchError as error:
            if self._grant is not None:  # every request may start another attempt
                self._outage.warn("%s", error)
            raise
        self._outage.end("the credentials are refreshed again")
        last = self._grant
        if last is not None and (last.header, last.pair) != (grant.header, grant.pair):
            self.changes += 1
        self._grant, self._granted_at = grant, asyncio.get_running_loop().time()
        return grant

    async def aclose(self) -> None:
        await self._refresh.aclose()

    def __repr__(self) -> str:
        state = "refreshing" if self._refresh.running else "granted" if self._grant else "new"
        return f"<RefreshingAuthorization {state}>"


class SingleFlight(Generic[T]):
    """A slow function of which at most one call runs at a time; all callers share its result."""

    def __init__(self, run: Callable[[], Coroutine[Any, Any, T]], *, name: str) -> None:
        self._run = run
        self._name = name
        self._task: asyncio.Task[T] | None = None
        self._closed = False

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> asyncio.Task[T]:
        """Return the running call's task, or start one; raise ``NotRunning`` once closed."""
        if self._closed:
            raise NotRunning(CLOSED_MESSAGE)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name=self._name)
            self._task.add_done_callback(_retrieve_exception)
        return self._task

    async def __call__(self) -> T:
        """Return the result of the running call, or of a new one.

        A cancellation ends the waiting, not the call.

        Raises:
            NotRunning: ``aclose`` was called, before or meanwhile.
        """
        task = self.start()
        await asyncio.wait({task})
        if task.cancelled():
            if self._closed:
                raise NotRunning(CLOSED_MESSAGE)
            raise FetchError(f"the {self._name} was cancelled, but not by this client")
        return task.result()

    async def aclose(self) -> None:
        """Cancel a running call and wait for its end. No call can be started afterwards."""
        self._closed = True
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    def __repr__(self) -> str:
        return f"<SingleFlight {self._name} {'running' if self.running else 'idle'}>"


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    # asyncio logs an exception that nothing has retrieved. Here a task may have no waiter.
    if not task.cancelled():
        task.exception()
