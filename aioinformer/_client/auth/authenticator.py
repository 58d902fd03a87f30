"""``Access``: with what a request goes out, and with what it goes out again when that failed.

A server that answers 401 has stopped to know a token, or a certificate, before its time: it was
revoked, or the server's keys were changed. Whoever yields credentials is then asked for others,
once an outage, and the request is sent once more. A handshake that fails has the certificates
looked at again. All of this takes bounded time: a file system that hangs must not leave an
informer waiting for ever.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aioinformer._client.auth.credentials import Credentials
from aioinformer.errors import RequestTimedOut

__all__ = ["Access", "Identity"]

OUTAGE = 30.0
"""Seconds after a renewal was forced in which 401 doesn't force another one, unless a request has
worked meanwhile: a server that refuses everything must not have a plugin run for every request."""


@dataclass(frozen=True, slots=True)
class Identity:
    """With what a request goes out."""

    header: str = field(repr=False)
    """The ``Authorization`` header; empty for none."""
    tls: ssl.SSLContext | None
    """The context for its connection; ``None`` for plain HTTP."""


class Access:
    """Who asks, now and after a failure."""

    def __init__(self, credentials: Credentials, *, patience: float) -> None:
        """Make one.

        Args:
            credentials: where it comes from.
            patience: the seconds that a request waits for it at most.
        """
        self._credentials = credentials
        self._patience = patience
        self._barred = 0.0
        self._lock = asyncio.Lock()

    async def identity(self) -> Identity:
        """What a request goes out with.

        Raises:
            FetchError: credentials can't be renewed, or took too long (phase ``credentials``).
        """
        async with self._in_time():
            return await self._identity()

    async def instead_of(self, refused: Identity) -> Identity | None:
        """What to send a request with once more that was answered 401; ``None`` for nothing.

        Raises:
            FetchError: as for ``identity``.
        """
        async with self._in_time(), self._lock:
            current = await self._identity()
            if current != refused:  # renewed by somebody else meanwhile
                return current
            now = asyncio.get_running_loop().time()
            if now < self._barred:
                return None
            self._barred = now + OUTAGE
            other = await self._identity(refused=refused)
            return other if other != refused else None

    async def after_handshake(self, failed: Identity) -> Identity | None:
        """What to send a request with once more whose handshake failed; ``None`` for nothing.

        Raises:
            FetchError: as for ``identity``.
        """
        tls = self._credentials.tls
        if tls is None:
            return None
        async with self._in_time():
            context = await tls.context(failed=failed.tls)
        return Identity(failed.header, context) if context is not failed.tls else None

    def worked(self) -> None:
        """A request was answered with something other than 401: what outage there was is over."""
        self._barred = 0.0

    async def aclose(self) -> None:
        """End what keeps the credentials fresh."""
        await self._credentials.aclose()

    async def _identity(self, *, refused: Identity | None = None) -> Identity:
        authorization, tls = self._credentials.authorization, self._credentials.tls
        # In this order: the certificate may come from the run of a plugin that the header needed.
        header = await authorization.header(refused=refused.header if refused else None)
        if tls is None:
            return Identity(header, None)
        # A client certificate that has expired is answered with 401, not with an alert.
        return Identity(header, await tls.context(failed=refused.tls if refused else None))

    @asynccontextmanager
    async def _in_time(self) -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(self._patience):
                yield
        except TimeoutError as error:
            said = f"{self._credentials.server}: the credentials were not renewed in "
            said += f"{self._patience:g} s"
            raise RequestTimedOut(said, phase="credentials") from error

    def __repr__(self) -> str:
        return f"<Access to {self._credentials.server}>"
