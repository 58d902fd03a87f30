"""``Authenticator``: the credentials of each request, and new ones after a rejection.

After a 401 the source of the credentials is called once per outage, whatever their age, and the
request is sent a second time. After a failed TLS handshake the certificates are read again. Each
step has a time limit, because a hung file system must not keep an informer waiting for ever.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

from aioinformer._client.auth.credentials import Credentials
from aioinformer._client.auth.redaction import describe_place
from aioinformer._client.auth.tls import RotatingTls
from aioinformer._client.auth.token_refresh import RefreshingAuthorization
from aioinformer.errors import FetchError, InformerError, NotRunning, RequestTimedOut

T = TypeVar("T")

REFRESH_COOLDOWN = 30.0
"""Seconds after a refresh for a 401 in which another 401 causes no refresh, unless a request has
succeeded in between. A server that answers 401 to everything must not cause one run of an exec
plugin per request."""

LOOK_INTERVAL = 1.0
"""Seconds between two looks at the sources of credentials that the server has rejected."""


@dataclass(frozen=True, slots=True)
class RequestCredentials:
    header: str = field(repr=False)
    """The ``Authorization`` header; empty for none."""
    tls: ssl.SSLContext | None
    """The TLS context of the connection; ``None`` for plain HTTP."""


class Authenticator:
    def __init__(self, credentials: Credentials, *, timeout: float) -> None:
        """Create the authenticator. A request waits ``timeout`` seconds for credentials."""
        self._credentials = credentials
        self._timeout = timeout
        self._refresh_allowed_at = 0.0
        self._looked_at = float("-inf")
        self._lock = asyncio.Lock()

    async def current_credentials(self) -> RequestCredentials:
        """Return the credentials for a request that is sent now.

        Raises:
            FetchError: the credentials can't be refreshed, or not within the time limit (phase
                ``credentials``).
        """
        async with self._enforce_timeout():
            return await self._request_credentials()

    async def refresh_after_401(self, rejected: RequestCredentials) -> RequestCredentials | None:
        """Return new credentials, or ``None`` for none; raise as ``current_credentials``."""
        async with self._enforce_timeout(), self._lock:
            current = await self._request_credentials()
            if current != rejected:  # another request has caused a refresh meanwhile
                return current
            now = asyncio.get_running_loop().time()
            if now < self._refresh_allowed_at:
                return None
            self._refresh_allowed_at = now + REFRESH_COOLDOWN
            refreshed = await self._request_credentials(rejected=rejected)
            return refreshed if refreshed != rejected else None

    async def refresh_after_tls_failure(
        self, failed: RequestCredentials
    ) -> RequestCredentials | None:
        """Return new credentials, or ``None`` for none; raise as ``current_credentials``."""
        tls = self._credentials.tls
        if tls is None:
            return None
        async with self._enforce_timeout():
            context = await _isolated(tls.context(failed=failed.tls))
        return RequestCredentials(failed.header, context) if context is not failed.tls else None

    def record_success(self) -> None:
        """Allow the next refresh, because a response other than 401 has ended the outage."""
        self._refresh_allowed_at = 0.0

    async def wait_for_change(self, timeout: float) -> bool:
        """Wait until there are other credentials; return False if ``timeout`` seconds pass.

        All that wait share one look a second at the sources.
        """
        both = (self._credentials.authorization, self._credentials.tls)
        parts = [each for each in both if isinstance(each, RefreshingAuthorization | RotatingTls)]
        seen, loop = sum(each.changes for each in parts), asyncio.get_running_loop()
        with suppress(TimeoutError, NotRunning):  # NotRunning: the next request raises it
            async with asyncio.timeout(timeout):
                while sum(each.changes for each in parts) == seen:
                    if loop.time() - self._looked_at >= LOOK_INTERVAL:
                        self._looked_at = loop.time()
                        for each in parts:
                            with suppress(FetchError):
                                await _isolated(each.look())
                    await asyncio.sleep(LOOK_INTERVAL / 2)
                return True
        return False

    async def aclose(self) -> None:
        """End the background refresh of the credentials."""
        await self._credentials.aclose()

    async def _request_credentials(
        self, *, rejected: RequestCredentials | None = None
    ) -> RequestCredentials:
        authorization, tls = self._credentials.authorization, self._credentials.tls
        # The header first: an exec plugin that yields it may yield the certificate as well.
        refused, failed = (rejected.header, rejected.tls) if rejected else (None, None)
        header = await _isolated(authorization.header(rejected=refused))
        # The server answers 401 to an expired client certificate, not with a TLS alert.
        context = None if tls is None else await _isolated(tls.context(failed=failed))
        return RequestCredentials(header, context)

    @asynccontextmanager
    async def _enforce_timeout(self) -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(self._timeout):
                yield
        except TimeoutError:
            text = f"{self._credentials.server}: the credentials were not refreshed in "
            raise RequestTimedOut(f"{text}{self._timeout:g} s", phase="credentials") from None

    def __repr__(self) -> str:
        return f"<Authenticator to {self._credentials.server}>"


async def _isolated(answer: Awaitable[T]) -> T:
    """Await an answer of a source of credentials, which may be a program's.

    Raises:
        FetchError: it raised another error than the library's, or a CancelledError of its own,
            which would end an informer's task. The text has no secret.
    """
    try:
        return await answer
    except (InformerError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        place = describe_place(error, without=__file__)
        fault = f"{type(error).__name__}{f' (raised {place})' if place else ''}"
    raise FetchError(f"the source of the credentials failed with {fault}", phase="credentials")
