"""``RefreshingAuthorization``: a header that is renewed in time, and at once when it is refused.

Where a token comes from is a source's to know: a file, an exec plugin, a kubeconfig that somebody
rewrites. It yields a ``TokenGrant``, which says for how long it may be used. Here is decided when the
source is asked again:

    the grant is fresh      it is used
    no longer fresh         it is used, and renewed in the background
    no longer valid         requests wait for the renewal
    refused by the server   requests wait for the renewal, whatever its age

``SingleFlight``: one run at a time of something slow, shared by all who ask for it meanwhile.

Three requests that need a token at once are one run of an exec plugin, not three. A run outlives
those who wait for it: a plugin that takes twelve seconds would never come to its end if a request
that waits for ten took it along. So a run is a task of its own, ended by ``aclose``.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from aioinformer.errors import FetchError, NotRunning

__all__ = ["CertificatePair", "RefreshingAuthorization", "SingleFlight", "TokenGrant"]


T = TypeVar("T")

CLOSED_MESSAGE = (
    "the client was closed before the request was sent: its credentials were being renewed"
)


class SingleFlight(Generic[T]):
    """Runs something, once at a time."""

    def __init__(self, run: Callable[[], Coroutine[Any, Any, T]], *, name: str) -> None:
        """Make one; nothing runs yet.

        Args:
            run: what to run.
            name: what its task is called.
        """
        self._run = run
        self._name = name
        self._task: asyncio.Task[T] | None = None
        self._closed = False

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self._task is not None and not self._task.done()

    def start(self) -> asyncio.Task[T]:
        """The run under way, or a new one. Needs no one to wait for it.

        Raises:
            NotRunning: it was closed.
        """
        if self._closed:
            raise NotRunning(CLOSED_MESSAGE)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name=self._name)
            self._task.add_done_callback(_retrieve_exception)
        return self._task

    async def __call__(self) -> T:
        """What the run under way yields, or a new one.

        A cancellation ends the wait and not the run.

        Raises:
            NotRunning: it was closed meanwhile, or before.
        """
        task = self.start()
        await asyncio.wait({task})
        if task.cancelled():
            raise NotRunning(CLOSED_MESSAGE)
        return task.result()

    async def aclose(self) -> None:
        """Cancel what runs and wait for its end. Nothing can be started after that."""
        self._closed = True
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    def __repr__(self) -> str:
        return f"<SingleFlight {self._name} {'running' if self.running else 'idle'}>"


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Look at a failure: whoever waited has it, and if nobody did, asyncio would complain."""
    if not task.cancelled():
        task.exception()


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A client certificate and its key, in PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """What a source of credentials yields."""

    header: str = field(default="", repr=False)
    """The ``Authorization`` header; empty for none."""
    pair: CertificatePair | None = field(default=None, repr=False)
    """A certificate to show, beside the header or in place of it."""
    fresh_for: float = math.inf
    """Seconds until it should be renewed; by default only when it is refused."""
    valid_for: float = math.inf
    """Seconds until it can't be used any more."""


class RefreshingAuthorization:
    """A header that is renewed in time, with one renewal at a time."""

    def __init__(self, renew: Callable[[], Coroutine[Any, Any, TokenGrant]]) -> None:
        """Make one; nothing is asked of the source yet.

        Args:
            renew: asks the source. Raises ``FetchError`` if there is nothing to be had now.
        """
        self._renew = renew
        self._refresh = SingleFlight(self._renew_grant, name="renewal of credentials")
        self._grant: TokenGrant | None = None
        self._granted_at = 0.0
        self._last_warning = ""

    @property
    def pair(self) -> CertificatePair | None:
        """The certificate of the last grant."""
        return self._grant.pair if self._grant else None

    async def header(self, *, refused: str | None = None) -> str:
        """The header; see ``Authorization``.

        Requests that ask while a renewal is under way share it. One that is cancelled leaves it
        running for the next.

        Raises:
            FetchError: there is no valid header, and none can be had now (phase
                ``credentials``).
            NotRunning: the client was closed meanwhile.
        """
        grant, now = self._grant, asyncio.get_running_loop().time()
        if (
            grant is not None
            and grant.header != refused
            and now < self._granted_at + grant.valid_for
        ):
            if now >= self._granted_at + grant.fresh_for:
                self._refresh.start()
            return grant.header
        try:
            return (await self._refresh()).header
        except FetchError as error:  # shared with others who wait: each gets one of its own
            raise FetchError(str(error), phase="credentials") from error.__cause__

    async def _renew_grant(self) -> TokenGrant:
        try:
            grant = await self._renew()
        except FetchError as error:
            if self._grant is not None and str(error) != self._last_warning:
                self._last_warning = str(
                    error
                )  # once: every request may be the reason for another try
                logger.warning("%s", error)
            raise
        self._last_warning = ""
        self._grant, self._granted_at = grant, asyncio.get_running_loop().time()
        return grant

    async def aclose(self) -> None:
        """End a renewal that is under way."""
        await self._refresh.aclose()

    def __repr__(self) -> str:
        state = "renewing" if self._refresh.running else "granted" if self._grant else "new"
        return f"<RefreshingAuthorization {state}>"
