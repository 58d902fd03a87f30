"""``RotatingTls``: TLS contexts of certificates that are replaced from time to time.

A thread in the background reads the certificates again at most once a minute, and at once after a
failed handshake. Changed certificates result in a new context, which new connections use. The
transport decides about the existing connections.

``ssl`` loads a client certificate only from a file, and a key must not stay on a disk. So the
certificate is written to a file in memory, or, on systems without such files, to a file in a
directory that only this user can read and that is deleted at once.
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
from aioinformer._runtime.reporting.error_hook import Outage
from aioinformer.errors import ConfigurationError

logger = logging.getLogger("aioinformer.credentials")

REREAD_INTERVAL = 60.0
"""Seconds between two reads of the certificates, which are replaced hours before they expire."""

RETRY_INTERVAL = 10.0
"""Seconds before the next read if the certificates could not be used: of two files, only one may
have been replaced yet."""

PEM_HINT = (
    "authority, client certificate and key must each be complete PEM (-----BEGIN ...), and the key "
    "must belong to the certificate: get a fresh kubeconfig, or check the files that it names"
)
"""Hint if OpenSSL doesn't accept the certificates. OpenSSL doesn't say which of them."""

FD_DIRECTORY = Path("/proc/self/fd")
"""The directory in which Linux shows open files without a name."""


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    authority: bytes | None = None
    """The trusted certificates, in PEM; ``None`` for the system's."""
    pair: CertificatePair | None = None
    """The client's certificate and key; ``None`` for none."""
    verify: bool = True

    def make_context(self) -> ssl.SSLContext:
        """Create a TLS context. This method blocks.

        Raises:
            OSError: a certificate or key is not valid PEM, or the key doesn't belong to the
                certificate.
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
    """A source of TLS contexts that creates a new context when the certificates have changed."""

    def __init__(
        self,
        read: Callable[[], TlsMaterial],
        *,
        origin: str,
        plugin_pair: Callable[[], CertificatePair | None] = lambda: None,
        interval: float = REREAD_INTERVAL,
    ) -> None:
        """Create the source without reading certificates.

        Args:
            read: returns the current certificates. The function may block, and raise ``OSError`` or
                ``ValueError``.
            origin: the file and context that name the certificates, for messages.
            plugin_pair: returns the client certificate of an exec plugin, or ``None``. As in
                client-go, it is used if ``read`` returns no client certificate.
            interval: the minimum seconds between two reads.
        """
        self._read = read
        self._origin = origin
        self._plugin_pair = plugin_pair
        self._interval = interval
        self._refresh = SingleFlight(self._update_context, name="refresh of certificates")
        self._context: ssl.SSLContext | None = None
        self._material: TlsMaterial | None = None
        self._outage = Outage(logger)
        self._used_plugin_pair: CertificatePair | None = None
        self._next_read_at = 0.0
        self.changes = 0

    async def context(self, *, failed: ssl.SSLContext | None = None) -> ssl.SSLContext:
        """Return the context; see ``Tls``.

        Raises:
            ConfigurationError: no context can be created, and none was created before.
            NotRunning: the client was closed meanwhile.
        """
        context = self._context
        if context is None or context is failed or self._plugin_pair() != self._used_plugin_pair:
            return await self._refresh()
        if asyncio.get_running_loop().time() >= self._next_read_at:
            self._refresh.start()
        return context

    async def look(self) -> None:
        """Read the certificates again; raise ``NotRunning`` if the client was closed."""
        if self._context is not None:
            await self._refresh()

    async def _update_context(self) -> ssl.SSLContext:
        now = asyncio.get_running_loop().time()
        pair = self._plugin_pair()
        try:
            found = await run_in_thread(self._read)
            material = TlsMaterial(found.authority, found.pair or pair, found.verify)
            if self._context is None or material != self._material:
                self._context = await run_in_thread(material.make_context)
                self.changes += 1
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            text = f"{self._origin}: a certificate or its key can't be used: {_error_reason(error)}"
            if self._context is None:
                raise ConfigurationError(text) from error
            self._used_plugin_pair, self._next_read_at = pair, now + RETRY_INTERVAL
            self._outage.warn("%s; the last certificates stay in use", text)
            return self._context
        self._material = material
        self._outage.end("%s: the certificates can be used again", self._origin)
        self._used_plugin_pair, self._next_read_at = pair, now + self._interval
        return self._context

    async def aclose(self) -> None:
        await self._refresh.aclose()

    def __repr__(self) -> str:
        return f"<RotatingTls of {self._origin}>"


def _error_reason(error: OSError | ValueError) -> object:
    if isinstance(error, ssl.SSLError):
        return f"{error.reason or error.strerror or 'not valid PEM'}; {PEM_HINT}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return error


def _no_password() -> str:
    # Without this callback, OpenSSL would prompt for a password on the terminal.
    raise ValueError("the client key is encrypted, which is not supported")


# -- keys as files -----------------------------------------------------------------------------


@contextmanager
def open_certificate_file(pair: CertificatePair) -> Generator[Path]:
    """Yield the path of a file with a certificate and its key, which exists within the context."""
    content = pair.certificate + b"\n" + pair.key
    with ExitStack() as stack:
        try:
            path = stack.enter_context(open_memory_file(content))
        except OSError:  # the system has no files in memory, or a sandbox forbids them
            path = stack.enter_context(open_private_file(content))
        yield path


@contextmanager
def open_memory_file(content: bytes) -> Generator[Path]:
    """Yield the path of a file in memory; raise ``OSError`` if the system has no such files."""
    if sys.platform != "linux" or not FD_DIRECTORY.is_dir():
        raise OSError("the system has no files in memory")
    descriptor = os.memfd_create("client certificate", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        yield FD_DIRECTORY / str(descriptor)


@contextmanager
def open_private_file(content: bytes) -> Generator[Path]:
    """Yield the path of a file with this content, in a temporary directory of mode 0700."""
    with TemporaryDirectory(prefix="aioinformer-") as folder:  # 0700
        path = Path(folder, "client.pem")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield path
