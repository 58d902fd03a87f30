"""``ExternalClient``: what is asked of a client of another library, and a ``Client`` made of it.

Where the server is, who asks, which certificates are used, through which proxy: nothing of how
that library sends requests, which changes from one release to the next. Fit another library to
the protocol, and ``client_of`` does the rest.

What the clients of kubernetes_asyncio and ``kubernetes.aio`` have in common.

The same generator made both: an ``ApiClient`` holds a ``Configuration``, whose attributes have
the same names. That is all that is used here. ``auth_settings()`` is their way to a header; it
runs the program's ``refresh_api_key_hook``, for every request that asks, so the runs are shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from aioinformer._client.auth.credentials import Credentials, parse_proxy_url, parse_server_url
from aioinformer._client.auth.tls import RotatingTls, TlsMaterial
from aioinformer._client.auth.token_refresh import (
    CertificatePair,
    RefreshingAuthorization,
    TokenGrant,
)
from aioinformer._client.client import Client
from aioinformer._client.http.transport import Timeouts
from aioinformer._core.listwatch.rate_limit import Limits
from aioinformer.errors import ConfigurationError, FetchError

__all__ = ["ExternalClient", "GeneratedClient", "TlsFiles", "client_of"]


EMPTY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Which certificates are trusted, and which one is shown. Paths are read again as they
    change.
    """

    authority: str | None = None
    """The path of the trusted certificates; the system's by default."""
    authority_data: str | bytes | None = field(default=None, repr=False)
    """The same as PEM, in place of a path."""
    certificate: str | None = None
    """The path of the client's certificate, if it has one."""
    key: str | None = None
    """The path of its key; by default it is in the same file."""
    verify: bool = True
    """Whether the server's certificate is checked."""

    def read_material(self) -> TlsMaterial:
        """What they are now. Reads files.

        Raises:
            OSError: one can't be read.
        """
        data = self.authority_data
        authority = data.encode() if isinstance(data, str) else data
        if authority is None and self.authority is not None:
            authority = Path(self.authority).read_bytes()
        if self.certificate is None:
            return TlsMaterial(authority, verify=self.verify)
        key = Path(self.key).read_bytes() if self.key is not None else b""
        return TlsMaterial(
            authority, CertificatePair(Path(self.certificate).read_bytes(), key), self.verify
        )


class ExternalClient(Protocol):
    """A client of another library, as far as its settings go."""

    @property
    def host(self) -> str:
        """The URL of the API server."""
        ...

    @property
    def tls(self) -> TlsFiles:
        """Its certificates."""
        ...

    @property
    def tls_server_name(self) -> str | None:
        """The name to check the server's certificate for, if it is not the host's."""
        ...

    @property
    def proxy(self) -> str | None:
        """The URL of a proxy, if there is one; may have a user and password in it."""
        ...

    @property
    def proxy_headers(self) -> Mapping[str, str]:
        """The headers for the proxy. ``Proxy-Authorization`` is the one that can be sent."""
        ...

    async def header(self) -> str:
        """The ``Authorization`` header for a request now; empty for none.

        Asked before every request, once for all those that wait for it, and once more when the
        server answered 401. May raise anything.
        """
        ...


def client_of(
    ready: ExternalClient,
    *,
    headers: Mapping[str, str] = EMPTY,
    timeouts: Timeouts | None = None,
    limits: Limits | None = None,
) -> Client:
    """A client with the settings of a ready-made one. Enter it with ``async with``.

    Args:
        ready: the ready-made client; it stays the program's to close.
        headers: as for ``Client``.
        timeouts: as for ``Client``.
        limits: as for ``Client``.

    Raises:
        ValueError: a header has a control character in it.
    """
    return Client.of(
        _ExternalCredentialSource(ready), headers=headers, timeouts=timeouts, limits=limits
    )


@dataclass(frozen=True, slots=True)
class _ExternalCredentialSource:
    """Finds the credentials of a ready-made client."""

    external: ExternalClient

    async def load(self) -> Credentials:
        """Read its settings and certificates; its header is asked for with the first request.

        Raises:
            ConfigurationError: they can't be used.
        """
        ready = self.external
        server = parse_server_url(ready.host)
        proxy, proxy_authorization = parse_proxy_url(ready.proxy) if ready.proxy else (None, "")
        for name, value in ready.proxy_headers.items():
            if name.lower() != "proxy-authorization":
                said = f"the header {name} for the proxy can't be sent, Proxy-Authorization alone"
                raise ConfigurationError(f"{server.host}: {said}")
            proxy_authorization = value
        tls = None
        if server.scheme == "https":
            where = f"the ready-made client of {server.host}"
            tls = RotatingTls(lambda: ready.tls.read_material(), origin=where)
            await tls.context()
        return Credentials(
            server,
            RefreshingAuthorization(self._renew),
            tls,
            ready.tls_server_name,
            proxy,
            proxy_authorization,
        )

    async def _renew(self) -> TokenGrant:
        where = f"the ready-made client of {self.external.host}"
        try:
            value = (await self.external.header()).strip()  # a token file may end in a newline
        except Exception as error:  # of a hook that the program wrote
            # Not its text: nobody knows what a program puts into that.
            said = f"{where}: its credentials can't be renewed ({type(error).__name__})"
            raise FetchError(said, phase="credentials") from error
        if not value.isprintable():
            said = f"{where}: its token has a newline or control character in it"
            raise FetchError(said, phase="credentials")
        return TokenGrant(value, valid_for=0.0)


EXCLUDED_HEADERS = frozenset(
    {"user-agent", "accept", "accept-encoding", "content-type", "authorization"}
)
"""Default headers of a generated client that are not taken over."""


@dataclass(frozen=True, slots=True)
class GeneratedClient:
    """An ``ApiClient`` of either library, fitted to ``ExternalClient``."""

    api: Any
    """It. Untyped, since neither library is imported."""

    @property
    def host(self) -> str:
        """The URL of the API server."""
        return str(self.api.configuration.host)

    @property
    def tls(self) -> TlsFiles:
        """Its certificates. Its ``disable_strict_ssl_verification`` plays no part: certificates
        are checked here as kubectl does, which is less strict than Python 3.13.
        """
        settings = self.api.configuration
        return TlsFiles(
            authority=settings.ssl_ca_cert,
            authority_data=getattr(settings, "ca_cert_data", None),  # kubernetes.aio's alone
            certificate=settings.cert_file,
            key=settings.key_file,
            verify=bool(settings.verify_ssl),
        )

    @property
    def tls_server_name(self) -> str | None:
        """The name to check the server's certificate for, if it is not the host's."""
        return self.api.configuration.tls_server_name or None

    @property
    def proxy(self) -> str | None:
        """The URL of its proxy. Those of the environment are not looked up."""
        return self.api.configuration.proxy or None

    @property
    def proxy_headers(self) -> Mapping[str, str]:
        """The headers for its proxy."""
        return self.api.configuration.proxy_headers or {}

    @property
    def headers(self) -> Mapping[str, str]:
        """Its default headers, such as ``Impersonate-User``, and its cookie."""
        headers = {
            k: v for k, v in self._default_headers.items() if k.lower() not in EXCLUDED_HEADERS
        }
        cookie = getattr(self.api, "cookie", None)
        return {**headers, "Cookie": cookie} if cookie else headers

    @property
    def _default_headers(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.api.default_headers
        return found

    async def header(self) -> str:
        """The ``Authorization`` header: its token, else a default header of that name."""
        settings: Mapping[str, Mapping[str, Any]] = await self.api.configuration.auth_settings()
        value = settings.get("BearerToken", {}).get("value")
        named = (v for k, v in self._default_headers.items() if k.lower() == "authorization")
        return str(value) if value else next(named, "")

    def __repr__(self) -> str:
        return f"<GeneratedClient client of {self.host}>"
