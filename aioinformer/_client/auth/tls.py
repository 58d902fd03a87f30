"""``RotatingTls``: TLS contexts made of certificates that somebody else rewrites.

Authorities and client certificates are renewed in their files, in a kubeconfig, or by an exec
plugin. What they are is read again at most once a minute, in a thread and beside the requests,
which go on with the context that there is; and at once when a handshake fails. Other content
makes another context, which new connections use; what becomes of the old ones is ``transport``'s
to decide.

``ssl`` takes a client certificate from a file only, and no key may be left on a disk: it gets a
file that lies in memory, or, where the system has none, one in a folder that nobody else can read
and that goes at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from aioinformer._client.auth.credentials import create_ssl_context
from aioinformer._client.auth.off_loop import run_in_thread
from aioinformer._client.auth.token_refresh import CertificatePair, SingleFlight
from aioinformer.errors import ConfigurationError

__all__ = [
    "RotatingTls",
    "TlsMaterial",
    "open_certificate_file",
    "open_memory_file",
    "open_private_file",
]

logger = logging.getLogger(__name__)

REREAD_INTERVAL = 60.0
"""Seconds between two looks at the certificates: they are renewed hours before they expire."""

RETRY_INTERVAL = 10.0
"""The same when they could not be used: one file of two may have been written already."""

PEM_HINT = (
    "authority, client certificate and key must each be whole, in PEM (-----BEGIN ...), and the "
    "key that of the certificate: get a fresh kubeconfig, or look at the files that it names"
)
"""What to do when OpenSSL doesn't accept them; which one it was it doesn't say."""

FD_DIRECTORY = Path("/proc/self/fd")
"""Where Linux shows files that have no name."""


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """What a context is made of."""

    authority: bytes | None = None
    """The trusted certificates, in PEM; the system's if there are none."""
    pair: CertificatePair | None = None
    """The client's certificate and key, if it has them."""
    verify: bool = True
    """Whether the server's certificate is checked."""

    def make_context(self) -> ssl.SSLContext:
        """A context of it. Blocks.

        Raises:
            OSError: something is no certificate, or no key, or one doesn't fit the other.
            ValueError: the key is encrypted.
        """
        context = create_ssl_context(self.authority)
        if self.pair is not None:
            with open_certificate_file(self.pair) as path:
                context.load_cert_chain(path, password=_no_password)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


class RotatingTls:
    """A context that is made anew when what it is made of has changed."""

    def __init__(
        self,
        read: Callable[[], TlsMaterial],
        *,
        origin: str,
        plugin_pair: Callable[[], CertificatePair | None] = lambda: None,
        interval: float = REREAD_INTERVAL,
    ) -> None:
        """Make one; nothing is read yet.

        Args:
            read: yields what there is now. Blocks; raises ``OSError`` or ``ValueError``.
            origin: what names the certificates, for messages.
            plugin_pair: the certificate of an exec plugin, if it has yielded one. Used when ``read``
                has none, as client-go does.
            interval: the seconds between two looks at them, at least.
        """
        self._read = read
        self._origin = origin
        self._plugin_pair = plugin_pair
        self._interval = interval
        self._refresh = SingleFlight(self._renew, name="renewal of certificates")
        self._context: ssl.SSLContext | None = None
        self._material: TlsMaterial | None = None
        self._used_plugin_pair: CertificatePair | None = None
        self._next_read_at = 0.0
        self._last_warning = ""

    async def context(self, *, failed: ssl.SSLContext | None = None) -> ssl.SSLContext:
        """The context now; see ``Tls``.

        Raises:
            ConfigurationError: no context can be made, and there is none of before.
            NotRunning: the client was closed meanwhile.
        """
        context = self._context
        if context is None or context is failed or self._plugin_pair() != self._used_plugin_pair:
            return await self._refresh()
        if asyncio.get_running_loop().time() >= self._next_read_at:
            self._refresh.start()
        return context

    async def _renew(self) -> ssl.SSLContext:
        now = asyncio.get_running_loop().time()
        pair = self._plugin_pair()
        try:
            found = await run_in_thread(self._read)
            material = TlsMaterial(found.authority, found.pair or pair, found.verify)
            if self._context is None or material != self._material:
                self._context = await run_in_thread(material.make_context)
        except (OSError, ValueError) as error:  # an ssl.SSLError is the former
            said = f"{self._origin}: a certificate or its key can't be used: {_error_reason(error)}"
            if self._context is None:
                raise ConfigurationError(said) from error
            self._used_plugin_pair, self._next_read_at = pair, now + RETRY_INTERVAL
            if said != self._last_warning:
                self._last_warning = said
                logger.warning("%s; those of before are used on", said)
            return self._context
        self._last_warning = ""
        self._material, self._used_plugin_pair, self._next_read_at = (
            material,
            pair,
            now + self._interval,
        )
        return self._context

    async def aclose(self) -> None:
        """End a look at the certificates that is under way."""
        await self._refresh.aclose()

    def __repr__(self) -> str:
        return f"<RotatingTls of {self._origin}>"


def _error_reason(error: OSError | ValueError) -> object:
    if isinstance(error, ssl.SSLError):
        return f"{error.reason or error.strerror or 'it is none'}; {PEM_HINT}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return error


def _no_password() -> str:
    # Without this, OpenSSL would ask for one on the terminal.
    raise ValueError("the client key is encrypted, which is not supported")


# -- keys as files -----------------------------------------------------------------------------


@contextmanager
def open_certificate_file(pair: CertificatePair) -> Generator[Path]:
    """A file with a certificate and its key, while the context lasts."""
    content = pair.certificate + b"\n" + pair.key
    with ExitStack() as stack:
        try:
            path = stack.enter_context(open_memory_file(content))
        except OSError:  # no such system, or a sandbox that doesn't allow it
            path = stack.enter_context(open_private_file(content))
        yield path


@contextmanager
def open_memory_file(content: bytes) -> Generator[Path]:
    """A file with this content that lies on no disk.

    Raises:
        OSError: the system has no such files.
    """
    if sys.platform != "linux" or not FD_DIRECTORY.is_dir():
        raise OSError("there are no files in memory here")
    descriptor = os.memfd_create("client certificate", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        yield FD_DIRECTORY / str(descriptor)


@contextmanager
def open_private_file(content: bytes) -> Generator[Path]:
    """A file with this content that nobody else can read, in a folder that goes with it."""
    with TemporaryDirectory(prefix="aioinformer-") as folder:  # 0700
        path = Path(folder, "client.pem")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield path
