"""``RenewedAuthorization``: a header that is renewed in time, and at once when it is refused.

Where a token comes from is a source's to know: a file, an exec plugin, a kubeconfig that somebody
rewrites. It yields a ``Grant``, which says for how long it may be used. Here is decided when the
source is asked again:

    the grant is fresh      it is used
    no longer fresh         it is used, and renewed in the background
    no longer valid         requests wait for the renewal
    refused by the server   requests wait for the renewal, whatever its age
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from aioinformer._client.flights import SingleFlight
from aioinformer.errors import FetchError

__all__ = ["Grant", "Pair", "RenewedAuthorization"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pair:
    """A client certificate and its key, in PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a source of credentials yields."""

    header: str = field(default="", repr=False)
    """The ``Authorization`` header; empty for none."""
    pair: Pair | None = field(default=None, repr=False)
    """A certificate to show, beside the header or in place of it."""
    fresh: float = math.inf
    """Seconds until it should be renewed; by default only when it is refused."""
    valid: float = math.inf
    """Seconds until it can't be used any more."""


class RenewedAuthorization:
    """A header that is renewed in time, with one renewal at a time."""

    def __init__(self, renew: Callable[[], Coroutine[Any, Any, Grant]]) -> None:
        """Make one; nothing is asked of the source yet.

        Args:
            renew: asks the source. Raises ``FetchError`` if there is nothing to be had now.
        """
        self._renew = renew
        self._flight = SingleFlight(self._run, name="renewal of credentials")
        self._grant: Grant | None = None
        self._since = 0.0
        self._told = ""

    @property
    def pair(self) -> Pair | None:
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
        if grant is not None and grant.header != refused and now < self._since + grant.valid:
            if now >= self._since + grant.fresh:
                self._flight.start()
            return grant.header
        try:
            return (await self._flight()).header
        except FetchError as error:  # shared with others who wait: each gets one of its own
            raise FetchError(str(error), phase="credentials") from error.__cause__

    async def _run(self) -> Grant:
        try:
            grant = await self._renew()
        except FetchError as error:
            if self._grant is not None and str(error) != self._told:
                self._told = str(error)  # once: every request may be the reason for another try
                logger.warning("%s", error)
            raise
        self._told = ""
        self._grant, self._since = grant, asyncio.get_running_loop().time()
        return grant

    async def aclose(self) -> None:
        """End a renewal that is under way."""
        await self._flight.aclose()

    def __repr__(self) -> str:
        state = "renewing" if self._flight.running else "granted" if self._grant else "new"
        return f"<RenewedAuthorization {state}>"
