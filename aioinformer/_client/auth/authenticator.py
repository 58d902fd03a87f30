"""``Authenticator``: with what a request goes out, and with what it goes out again when that failed.

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

__all__ = ["Authenticator", "RequestCredentials"]

REFRESH_COOLDOWN = 30.0
"""Seconds after a renewal was forced in which 401 doesn't force another one, unless a request has
worked meanwhile: a server that refuses everything must not have a plugin run for every request."""


@dataclass(frozen=True, slots=True)
class RequestCredentials:
    """With what a request goes out."""

    header: str = field(repr=False)
    """The ``Authorization`` header; empty for none."""
    tls: ssl.SSLContext | None
    """The context for its connection; ``None`` for plain HTTP."""


class Authenticator:
    """Who asks, now and after a failure."""

    def __init__(self, credentials: Credentials, *, timeout: float) -> None:
        """Make one.

        Args:
            credentials: where it comes from.
            timeout: the seconds that a request waits for it at most.
        """
        self._credentials = credentials
        self._timeout = timeout
        self._refresh_allowed_at = 0.0
        self._lock = asyncio.Lock()

    async def current_credentials(self) -> RequestCredentials:
        """What a request goes out with.

        Raises:
            FetchError: credentials can't be renewed, or took too long (phase ``credentials``).
        """
        async with self._enforce_timeout():
            return await self._request_credentials()

    async def refresh_after_401(self, refused: RequestCredentials) -> RequestCredentials | None:
        """What to send a request with once more that was answered 401; ``None`` for nothing.

        Raises:
            FetchError: as for ``current_credentials``.
        """
        async with self._enforce_timeout(), self._lock:
            current = await self._request_credentials()
            if current != refused:  # renewed by somebody else meanwhile
                return current
            now = asyncio.get_running_loop().time()
            if now < self._refresh_allowed_at:
                return None
            self._refresh_allowed_at = now + REFRESH_COOLDOWN
            other = await self._request_credentials(refused=refused)
            return other if other != refused else None

    async def refresh_after_tls_failure(
        self, failed: RequestCredentials
    ) -> RequestCredentials | None:
        """What to send a request with once more whose handshake failed; ``None`` for nothing.

        Raises:
            FetchError: as for ``current_credentials``.
        """
        tls = self._credentials.tls
        if tls is None:
            return None
        async with self._enforce_timeout():
            context = await tls.context(failed=failed.tls)
        return RequestCredentials(failed.header, context) if context is not failed.tls else None

    def record_success(self) -> None:
        """A request was answered with something other than 401: what outage there was is over."""
        self._refresh_allowed_at = 0.0

    async def aclose(self) -> None:
        """End what keeps the credentials fresh."""
        await self._credentials.aclose()

    async def _request_credentials(
        self, *, refused: RequestCredentials | None = None
    ) -> RequestCredentials:
        authorization, tls = self._credentials.authorization, self._credentials.tls
        # In this order: the certificate may come from the run of a plugin that the header needed.
        header = await authorization.header(refused=refused.header if refused else None)
        if tls is None:
            return RequestCredentials(header, None)
        # A client certificate that has expired is answered with 401, not with an alert.
        return RequestCredentials(
            header, await tls.context(failed=refused.tls if refused else None)
        )

    @asynccontextmanager
    async def _enforce_timeout(self) -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(self._timeout):
                yield
        except TimeoutError as error:
            said = f"{self._credentials.server}: the credentials were not renewed in "
            said += f"{self._timeout:g} s"
            raise RequestTimedOut(said, phase="credentials") from error

    def __repr__(self) -> str:
        return f"<Authenticator to {self._credentials.server}>"
