"""Where the API server is, and how to be known there: ``Credentials``, and where they come from.

A source finds credentials once, when a client is entered; an ``Authorization`` and a ``Tls`` are
asked before every request, since tokens and certificates rotate. Here are the forms of them that
never change, and ``ExplicitServer``, what a program says itself. ``renewals`` and
``certificates`` have the forms that do; files are ``kubeconfig``'s work. Nothing here shows a
secret in its repr.
"""

from __future__ import annotations

import base64
import ssl
from dataclasses import dataclass, field
from typing import Protocol

from yarl import URL

from aioinformer._client.auth.off_loop import run_in_thread
from aioinformer.errors import ConfigurationError

__all__ = [
    "Authorization",
    "CredentialSource",
    "Credentials",
    "ExplicitServer",
    "FixedAuthorization",
    "FixedTls",
    "Tls",
    "create_ssl_context",
    "parse_proxy_url",
    "parse_server_url",
]


class Authorization(Protocol):
    """Says who is asking."""

    async def header(self, *, refused: str | None = None) -> str:
        """The value of the ``Authorization`` header for a request now; empty for none.

        Args:
            refused: the value that the server has just answered 401 to. The source is asked for
                another one, whatever its age; the same again means that there is none.

        Raises:
            FetchError: it can't be renewed now (phase ``credentials``).
        """
        ...

    async def aclose(self) -> None:
        """End what renews it."""
        ...


class Tls(Protocol):
    """Says which certificates are trusted, and which one is shown."""

    async def context(self, *, failed: ssl.SSLContext | None = None) -> ssl.SSLContext:
        """The context for a new connection now.

        Args:
            failed: the one with which a handshake has just failed. Whatever it was made of is
                looked at again; the same context again means that nothing has changed.

        Raises:
            ConfigurationError: there is none yet, and none can be made.
        """
        ...

    async def aclose(self) -> None:
        """End what renews it."""
        ...


@dataclass(frozen=True, slots=True)
class Credentials:
    """All that is needed to speak with one API server."""

    server: URL
    """Where it is; may have a path, behind which a proxy serves the API."""
    authorization: Authorization = field(repr=False)
    tls: Tls | None = field(default=None, repr=False)
    """Which certificates are trusted, and which is shown; ``None`` for plain HTTP."""
    tls_server_name: str | None = None
    """The name to check the server's certificate for, if it is not the host's."""
    proxy: URL | None = None
    """An HTTP proxy, without user and password."""
    proxy_authorization: str = field(default="", repr=False)
    """The ``Proxy-Authorization`` header; empty for none. Kept out of the URL, since aiohttp
    shows that in the repr of its exceptions."""
    namespace: str = ""
    """The namespace that goes with them: a kubeconfig context's, or the pod's own."""
    origin: str = ""
    """Which file and context they are from, for messages; empty if the program gave them."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """More headers that go with them: whom a kubeconfig's user acts as."""

    @property
    def description(self) -> str:
        """The server, and which file and context named it, for messages."""
        server = str(self.server.with_query(None)).rstrip("/")  # some put a token there
        return f"{server} ({self.origin})" if self.origin else server

    async def aclose(self) -> None:
        """End what keeps them fresh."""
        await self.authorization.aclose()
        if self.tls is not None:
            await self.tls.aclose()


class CredentialSource(Protocol):
    """Finds credentials."""

    async def load(self) -> Credentials:
        """Find them, without blocking the loop.

        Raises:
            ConfigurationError: there are none, or they can't be used. Says what was tried.
        """
        ...


# -- what never changes ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FixedAuthorization:
    """The same header for ever; empty for none."""

    value: str = field(default="", repr=False)

    async def header(self, *, refused: str | None = None) -> str:
        """The header, refused or not."""
        return self.value

    async def aclose(self) -> None:
        """Nothing renews it."""


@dataclass(frozen=True, slots=True)
class FixedTls:
    """The same context for ever."""

    value: ssl.SSLContext

    async def context(self, *, failed: ssl.SSLContext | None = None) -> ssl.SSLContext:
        """The context, failed or not."""
        return self.value

    async def aclose(self) -> None:
        """Nothing renews it."""


# -- an explicit server ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExplicitServer:
    """What the program said itself.

    Args:
        server: the URL of the API server.
        token: a bearer token.
        tls: trusted certificates and one's own; the system's trusted ones by default.

    Raises:
        ValueError: the token has a space or a control character in it.
    """

    server: URL
    token: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if " " in self.token or not self.token.isprintable():
            raise ValueError(
                "a token is one word; the one given has a space or a control character in it"
            )

    async def load(self) -> Credentials:
        """Nothing to find; the system's certificates are read in a thread."""
        tls = self.tls
        if self.server.scheme == "https" and tls is None:
            tls = await run_in_thread(create_ssl_context)
        authorization = FixedAuthorization(f"Bearer {self.token}" if self.token else "")
        return Credentials(self.server, authorization, FixedTls(tls) if tls else None)


def parse_server_url(text: str) -> URL:
    """The URL of an API server.

    Raises:
        ConfigurationError: not the URL of an HTTP server, or one with a password in it.
    """
    try:
        url = URL(text.rstrip("/"))
    except ValueError as error:
        if "port" in str(error).lower():  # "Port out of range 0-65535", or no number at all
            said = f"the port of {_displayable_url(text, URL())} is no number from 1 to 65535"
            raise ConfigurationError(said) from None  # the cause may quote what is a secret
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        said = f"a server is a URL such as https://10.0.0.1:6443, not {_displayable_url(text, url)}"
        raise ConfigurationError(said)
    if url.user is not None or url.password is not None:
        raise ConfigurationError(f"the URL of server {url.host} has a user or password in it")
    return url


def _displayable_url(text: str, url: URL) -> str:
    """What was given for a URL, as far as it may be shown: its host alone, if there is more in
    it. A user comes before an ``@``, and some put a token into the query.
    """
    if "@" not in text and "?" not in text:
        return repr(text)
    return f"what was given for {url.host}" if url.host else "what was given"


def parse_proxy_url(text: str) -> tuple[URL, str]:
    """The URL of a proxy without user and password, and the header that carries those.

    Raises:
        ConfigurationError: not the URL of an HTTP proxy.
    """
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigurationError("a proxy is a URL such as http://10.0.0.1:3128")
    if url.user is None:
        return url, ""
    pair = f"{url.user}:{url.password or ''}".encode()
    return url.with_user(None), f"Basic {base64.b64encode(pair).decode()}"


def create_ssl_context(authority: bytes | None = None) -> ssl.SSLContext:
    """A TLS context that trusts the certificates in ``authority`` (PEM), or the system's.

    The latter are read from files: call it in a thread.

    Raises:
        ssl.SSLError: there is no certificate in ``authority``.
    """
    # What isn't ASCII in a PEM file is a comment. And ssl takes an empty text for none, which
    # would trust the system's certificates instead of nobody's.
    trusted = None if authority is None else authority.decode("ascii", "ignore") or "\n"
    context = ssl.create_default_context(cadata=trusted)
    if authority is not None:
        # Python 3.13 asks more of a certificate than Go does, for whose checks clusters make
        # theirs: many lack the key identifiers that this flag insists on.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])  # all that aiohttp speaks
    return context
