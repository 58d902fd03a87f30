"""Settings of another library's client, and a ``Client`` that uses them.

To support another library, implement the protocol ``ExternalClient`` and call
``client_of_external``. The other library's way of sending requests, which changes from one release
to the next, plays no part.

``GeneratedClient`` implements the protocol for kubernetes_asyncio and ``kubernetes.aio``, which
were made by the same code generator: an ``ApiClient`` holds a ``Configuration`` whose attributes
have the same names in both. ``auth_settings()`` returns the header; it runs the program's
``refresh_api_key_hook`` each time, so one result is shared by all requests that wait for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from aioinformer._client.auth.credentials import Credentials, parse_server_url
from aioinformer._client.auth.proxies import find_environment_proxy, parse_proxy_url
from aioinformer._client.auth.redaction import describe_place
from aioinformer._client.auth.tls import RotatingTls, TlsMaterial
from aioinformer._client.auth.token_refresh import (
    CertificatePair,
    RefreshingAuthorization,
    TokenGrant,
)
from aioinformer._client.client import Client
from aioinformer._client.http.request import Timeouts
from aioinformer._core.listwatch.rate_limit import Limits
from aioinformer.errors import ConfigurationError, FetchError

EMPTY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The certificates to trust and to present. Files are read again when they change."""

    authority: str | None = None
    """The path of the trusted certificates; the system's certificates by default."""
    authority_data: str | bytes | None = field(default=None, repr=False)
    """The trusted certificates as PEM, instead of a path."""
    certificate: str | None = None
    """The path of the client certificate, if there is one."""
    key: str | None = None
    """The path of the client certificate's key; by default the key is in the certificate's file."""
    verify: bool = True

    def read_material(self) -> TlsMaterial:
        """Read the files; raise ``OSError`` if one can't be read."""
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
    """The settings of another library's client."""

    @property
    def host(self) -> str: ...

    @property
    def tls(self) -> TlsFiles: ...

    @property
    def tls_server_name(self) -> str | None:
        """The name that the server's certificate must have, if it is not the host's."""
        ...

    @property
    def proxy(self) -> str | None:
        """The URL of a proxy, maybe with a password; ``None`` for the environment's."""
        ...

    @property
    def proxy_headers(self) -> Mapping[str, str]:
        """The headers for the proxy. Only ``Proxy-Authorization`` can be sent."""
        ...

    async def header(self) -> str:
        """Return the ``Authorization`` header for a request now; empty for none.

        It is awaited before every request, once for all requests that wait for it, and once more
        after a 401. The method may raise any exception.
        """
        ...


def client_of_external(
    external: ExternalClient,
    *,
    headers: Mapping[str, str] = EMPTY,
    timeouts: Timeouts | None = None,
    limits: Limits | None = None,
    send_credentials_unencrypted: bool = False,
) -> Client:
    """Return a client with the settings of another library's client. Enter it with ``async with``.

    The program closes ``external``. The other arguments are those of ``Client``.

    Raises:
        ValueError: a header contains a control character.
    """
    return Client.of(
        _ExternalCredentialSource(external),
        headers=headers,
        timeouts=timeouts,
        limits=limits,
        send_credentials_unencrypted=send_credentials_unencrypted,
    )


@dataclass(frozen=True, slots=True)
class _ExternalCredentialSource:
    external: ExternalClient

    async def load(self) -> Credentials:
        """Read the settings and certificates. The header is requested with the first request.

        Raises:
            ConfigurationError: the settings can't be used.
        """
        external = self.external
        server = parse_server_url(external.host)
        proxy = (
            parse_proxy_url(external.proxy)
            if external.proxy
            else find_environment_proxy(server, os.environ)
        )
        for name, value in external.proxy_headers.items():
            if name.lower() != "proxy-authorization":
                raise ConfigurationError(
                    f"{server.host}: the header {name} can't be sent to the proxy; only "
                    "Proxy-Authorization can"
                )
            if proxy is not None:
                proxy = replace(proxy, authorization=value)
        tls = None
        if server.scheme == "https":
            where = f"the ready-made client of {server.host}"
            tls = RotatingTls(lambda: external.tls.read_material(), origin=where)
            await tls.context()
        return Credentials(
            server, RefreshingAuthorization(self._renew), tls, external.tls_server_name, proxy
        )

    async def _renew(self) -> TokenGrant:
        where = f"the ready-made client of {self.external.host}"
        try:
            value = (await self.external.header()).strip()  # a token file may end in a newline
        except Exception as error:  # noqa: BLE001 - the code of the program's hook
            # The text of the error is left out: a program may put a token into it.
            place = describe_place(error, without=__file__)
            fault = f"its credentials can't be renewed ({type(error).__name__}) {place}".rstrip()
        else:
            if value.isprintable():
                return TokenGrant(value, valid_for=0.0)
            fault = "its token contains a newline or control character"
        # Raised outside of the handler, so that the hook's exception is neither cause nor context.
        raise FetchError(f"{where}: {fault}", phase="credentials")


EXCLUDED_HEADERS = frozenset(
    {"user-agent", "accept", "accept-encoding", "content-type", "authorization"}
)
"""Default headers of a generated client that are not taken over."""


class ApiClient(Protocol):
    """The attributes of a generated ``ApiClient`` that are read here."""

    @property
    def configuration(self) -> Any:
        """The ``Configuration``. Untyped, since neither library is imported."""
        ...

    @property
    def default_headers(self) -> Mapping[str, str]: ...


def client_of(
    api: ApiClient,
    *,
    headers: Mapping[str, str] = EMPTY,
    timeouts: Timeouts | None = None,
    limits: Limits | None = None,
    send_credentials_unencrypted: bool = False,
) -> Client:
    """Return a client with the settings of ``api``. Enter it with ``async with``.

    ``api``, of kubernetes_asyncio or kubernetes.aio, stays the program's: it is neither closed nor
    used for requests. ``headers`` are added to its default ones. The other arguments are those of
    ``Client``.

    Raises:
        ValueError: a header contains a control character.
    """
    external = GeneratedClient(api)
    return client_of_external(
        external,
        headers={**external.headers, **headers},
        timeouts=timeouts,
        limits=limits,
        send_credentials_unencrypted=send_credentials_unencrypted,
    )


@dataclass(frozen=True, slots=True)
class GeneratedClient:
    api: ApiClient

    @property
    def host(self) -> str:
        return str(self.api.configuration.host)

    @property
    def tls(self) -> TlsFiles:
        """The certificates. ``disable_strict_ssl_verification`` is ignored: certificates are
        verified as
        kubectl does, which is less strict than Python 3.13.
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
        return self.api.configuration.tls_server_name or None

    @property
    def proxy(self) -> str | None:
        return self.api.configuration.proxy or None

    @property
    def proxy_headers(self) -> Mapping[str, str]:
        return self.api.configuration.proxy_headers or {}

    @property
    def headers(self) -> Mapping[str, str]:
        """The default headers, such as ``Impersonate-User``, and the cookie."""
        defaults = self.api.default_headers
        headers = {k: v for k, v in defaults.items() if k.lower() not in EXCLUDED_HEADERS}
        cookie = getattr(self.api, "cookie", None)
        return {**headers, "Cookie": cookie} if cookie else headers

    async def header(self) -> str:
        """Return the ``Authorization`` header: the token, else a default header of that name."""
        settings: Mapping[str, Mapping[str, Any]] = await self.api.configuration.auth_settings()
        value = settings.get("BearerToken", {}).get("value")
        named = (v for k, v in self.api.default_headers.items() if k.lower() == "authorization")
        return str(value) if value else next(named, "")

    def __repr__(self) -> str:
        return f"<GeneratedClient of {self.host}>"
