"""``Credentials`` of one API server, and the protocols of their sources.

A ``CredentialSource`` finds the credentials once, when a client is entered. ``Authorization`` and
``Tls`` are called before every request, since tokens and certificates rotate. No repr of this
module shows a secret.
"""

from __future__ import annotations

import binascii
import logging
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from yarl import URL

from aioinformer._client.auth.off_loop import run_in_thread
from aioinformer._client.auth.proxies import (
    Proxy,
    bracket_hint,
    find_environment_proxy,
    is_loopback,
)
from aioinformer._core.quantities import quantity
from aioinformer.errors import ConfigurationError

logger = logging.getLogger("aioinformer.credentials")

CERTIFICATE_HEAD = b"-----BEGIN CERTIFICATE-----"
CERTIFICATE = re.compile(CERTIFICATE_HEAD + rb"([^-]*)-----END CERTIFICATE-----")


class Authorization(Protocol):
    """The source of the ``Authorization`` header."""

    async def header(self, *, rejected: str | None = None) -> str:
        """Return the ``Authorization`` header for a request that is sent now; empty for none.

        Args:
            rejected: the header that the server has just rejected with 401. The header is then
                refreshed whatever its age; the same header as a result means that there is none.

        Raises:
            FetchError: the header can't be refreshed now (phase ``credentials``).
        """
        ...

    async def aclose(self) -> None:
        """End the background refresh."""
        ...


class Tls(Protocol):
    """The source of TLS contexts, which hold the trusted certificates and the client's."""

    async def context(self, *, failed: ssl.SSLContext | None = None) -> ssl.SSLContext:
        """Return the context for a connection that is opened now.

        Args:
            failed: the context whose handshake has just failed. The certificates are then read
                again; the same context as a result means that they haven't changed.

        Raises:
            ConfigurationError: there is no context yet, and none can be created.
        """
        ...

    async def aclose(self) -> None:
        """End the background refresh."""
        ...


@dataclass(frozen=True, slots=True)
class Credentials:
    """The address of one API server, and the credentials for its requests."""

    server: URL
    """The URL of the server; may have a path under which a proxy serves the API. A query and a
    fragment, which no request has, are removed: they may hold a token."""
    authorization: Authorization = field(repr=False)
    tls: Tls | None = field(default=None, repr=False)
    """The source of TLS contexts; ``None`` for plain HTTP."""
    tls_server_name: str | None = None
    """The name that the server's certificate must have, if this is not the host name."""
    proxy: Proxy | None = None
    """The proxy in front of the server; ``None`` for none."""
    namespace: str = ""
    """The namespace of the kubeconfig context or of the pod; empty if there is none."""
    origin: str = ""
    """The file and context of the credentials, for messages; empty if the program gave them."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The impersonation headers of a kubeconfig's user, for every request."""
    compression: bool = True
    """False if requests ask for no compression (``disable-compression`` of a kubeconfig)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "server", self.server.with_query(None).with_fragment(None))

    @property
    def description(self) -> str:
        """The server's URL, and the file and context that name it, for messages."""
        server = str(self.server).rstrip("/")
        return f"{server} ({self.origin})" if self.origin else server

    @property
    def are_exposed(self) -> bool:
        """True if requests leave this machine without TLS, directly or through a proxy."""
        hops = [self.server] if self.proxy is None else [self.server, self.proxy.url]
        hosts = ((hop.raw_host or "").lower() for hop in hops)
        return self.server.scheme == "http" and not all(map(is_loopback, hosts))

    async def aclose(self) -> None:
        await self.authorization.aclose()
        if self.tls is not None:
            await self.tls.aclose()


class CredentialSource(Protocol):
    """A finder of credentials, for ``Client.of``."""

    async def load(self) -> Credentials:
        """Find the credentials without blocking the loop.

        Raises:
            ConfigurationError: there are no credentials, or they can't be used. The message says
                where they were looked for.
        """
        ...


# -- fixed credentials --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FixedAuthorization:
    """A header that never changes; empty for none."""

    value: str = field(default="", repr=False)

    async def header(self, *, rejected: str | None = None) -> str:
        return self.value

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class FixedTls:
    value: ssl.SSLContext

    async def context(self, *, failed: ssl.SSLContext | None = None) -> ssl.SSLContext:
        return self.value

    async def aclose(self) -> None: ...


# -- an explicit server ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExplicitServer:
    """A server and credentials that the program names.

    By default there is no token and no client certificate, and the system's certificates are
    trusted. ``environment`` may name a proxy.

    Raises:
        TypeError: the token is not text.
        ValueError: the token contains a space or a control character.
    """

    server: URL
    token: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    def __post_init__(self) -> None:
        _check_token(self.token)

    async def load(self) -> Credentials:
        """Return the credentials. The system's certificates are read in a thread.

        Raises:
            ConfigurationError: the environment names a proxy that can't be used.
        """
        tls, proxy = self.tls, find_environment_proxy(self.server, self.environment)
        if self.server.scheme == "https" and tls is None:
            tls = await run_in_thread(create_ssl_context)
        authorization = FixedAuthorization(f"Bearer {self.token}" if self.token else "")
        return Credentials(self.server, authorization, FixedTls(tls) if tls else None, proxy=proxy)


def _check_token(token: object) -> None:
    if not isinstance(token, str):
        raise TypeError(f"token must be a str, not {type(token).__name__}")
    if " " in token or not token.isprintable():
        raise ValueError(
            "a token is one word; the given token contains a space or a control character, such as "
            "the line break at the end of a file: pass token.strip()"
        )


def parse_server_url(text: str) -> URL:
    """Parse the URL of an API server.

    Raises:
        ConfigurationError: the text is not the URL of an HTTP server, or has a password or query.
    """
    hint = bracket_hint(text, "https://[fd00::1]:6443")
    try:
        url = URL(text.rstrip("/"))
        has_host = bool(url.host)
    except ValueError as error:
        has_host, url = False, URL()
        # "Port out of range 0-65535", or not a number
        if "port" in str(error).lower() and not hint:
            message = f"the port of {_displayable_url(text, url)} is not a number from 1 to 65535"
            raise ConfigurationError(message) from None  # the cause may quote a secret
    if url.scheme not in ("http", "https") or not has_host:
        shown = _displayable_url(text, url)
        text = f"a server is a URL such as https://10.0.0.1:6443, not {shown}{hint}"
        raise ConfigurationError(text)
    if url.user is not None or url.password is not None:
        raise ConfigurationError(
            f"the URL of server {url.host} contains a user or password: remove them, and give "
            f"credentials in a kubeconfig, or as token="
        )
    if url.query_string or url.fragment:
        raise ConfigurationError(
            f"the URL of server {url.host} contains a query or a fragment (the part after '?' or "
            f"'#'), which would not be sent: remove it; a token is not a part of the URL"
        )
    return url


def _displayable_url(text: str, url: URL) -> str:
    """Return a URL for a message: only its host if it may contain a password or query."""
    if "@" not in text and "?" not in text:
        return repr(text)
    return f"the given URL of {url.host}" if url.host else "the given text"


def create_ssl_context(authority: bytes | None = None) -> ssl.SSLContext:
    """Return a TLS context that trusts the certificates in ``authority`` (PEM), or the system's.

    As in client-go, a certificate of ``authority`` may be that of an intermediate authority or of
    the server itself, and one that can't be parsed is left out, with a warning in the log. The
    system's certificates are read from files, so call this function in a thread.

    Raises:
        ValueError: ``authority`` contains no certificate that can be used.
    """
    if authority is None:
        context = ssl.create_default_context()
    else:
        context = _create_context_of(authority)
        # Python 3.13 is stricter than Go, for whose checks clusters create their certificates: many
        # lack the key identifiers that this flag requires.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the default since Python 3.13
    context.set_alpn_protocols(["http/1.1"])  # aiohttp has no HTTP/2
    return context


def _create_context_of(authority: bytes) -> ssl.SSLContext:
    """Return a TLS context that trusts the certificates in ``authority`` that can be parsed.

    OpenSSL itself would refuse all of them for a broken one, or leave out those behind it.
    """
    context, usable = None, 0
    for block in CERTIFICATE.findall(authority):
        try:
            certificate = binascii.a2b_base64(block)
            if context is not None:
                context.load_verify_locations(cadata=certificate)
            elif certificate:  # without data, ``ssl`` would trust the system's certificates
                context = ssl.create_default_context(cadata=certificate)
            else:
                continue
        except (ssl.SSLError, ValueError):
            continue
        usable += 1
    if context is None:
        raise ValueError(
            "the certificate authority contains no certificate that can be used: it must be "
            "complete PEM (-----BEGIN CERTIFICATE-----): get a fresh kubeconfig, or check the file "
            "that it names"
        )
    if broken := authority.count(CERTIFICATE_HEAD) - usable:
        text = quantity(broken, "certificate")
        logger.warning("%s of a certificate authority can't be used", text)
    return context
