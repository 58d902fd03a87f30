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

from aioinformer._client.auth.credentials import secure_context
from aioinformer._client.auth.off_loop import off_loop
from aioinformer._client.auth.token_refresh import Pair, SingleFlight
from aioinformer.errors import ConfigurationError

__all__ = ["Material", "RotatingTls", "certificate_pair", "in_memory", "in_private_folder"]

logger = logging.getLogger(__name__)

MINUTE = 60.0
"""Seconds between two looks at the certificates: they are renewed hours before they expire."""

LATER = 10.0
"""The same when they could not be used: one file of two may have been written already."""

CHECK_PEM = (
    "authority, client certificate and key must each be whole, in PEM (-----BEGIN ...), and the "
    "key that of the certificate: get a fresh kubeconfig, or look at the files that it names"
)
"""What to do when OpenSSL doesn't accept them; which one it was it doesn't say."""

DESCRIPTORS = Path("/proc/self/fd")
"""Where Linux shows files that have no name."""


@dataclass(frozen=True, slots=True)
class Material:
    """What a context is made of."""

    authority: bytes | None = None
    """The trusted certificates, in PEM; the system's if there are none."""
    pair: Pair | None = None
    """The client's certificate and key, if it has them."""
    verify: bool = True
    """Whether the server's certificate is checked."""

    def context(self) -> ssl.SSLContext:
        """A context of it. Blocks.

        Raises:
            OSError: something is no certificate, or no key, or one doesn't fit the other.
            ValueError: the key is encrypted.
        """
        context = secure_context(self.authority)
        if self.pair is not None:
            with certificate_pair(self.pair) as path:
                context.load_cert_chain(path, password=_no_password)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


class RotatingTls:
    """A context that is made anew when what it is made of has changed."""

    def __init__(
        self,
        read: Callable[[], Material],
        *,
        where: str,
        granted: Callable[[], Pair | None] = lambda: None,
        every: float = MINUTE,
    ) -> None:
        """Make one; nothing is read yet.

        Args:
            read: yields what there is now. Blocks; raises ``OSError`` or ``ValueError``.
            where: what names the certificates, for messages.
            granted: the certificate of an exec plugin, if it has yielded one. Used when ``read``
                has none, as client-go does.
            every: the seconds between two looks at them, at least.
        """
        self._read = read
        self._where = where
        self._granted = granted
        self._every = every
        self._flight = SingleFlight(self._renew, name="renewal of certificates")
        self._context: ssl.SSLContext | None = None
        self._material: Material | None = None
        self._pair: Pair | None = None
        self._due = 0.0
        self._told = ""

    async def context(self, *, failed: ssl.SSLContext | None = None) -> ssl.SSLContext:
        """The context now; see ``Tls``.

        Raises:
            ConfigurationError: no context can be made, and there is none of before.
            NotRunning: the client was closed meanwhile.
        """
        context = self._context
        if context is None or context is failed or self._granted() != self._pair:
            return await self._flight()
        if asyncio.get_running_loop().time() >= self._due:
            self._flight.start()
        return context

    async def _renew(self) -> ssl.SSLContext:
        now = asyncio.get_running_loop().time()
        pair = self._granted()
        try:
            found = await off_loop(self._read)
            material = Material(found.authority, found.pair or pair, found.verify)
            if self._context is None or material != self._material:
                self._context = await off_loop(material.context)
        except (OSError, ValueError) as error:  # an ssl.SSLError is the former
            said = f"{self._where}: a certificate or its key can't be used: {_reason(error)}"
            if self._context is None:
                raise ConfigurationError(said) from error
            self._pair, self._due = pair, now + LATER
            if said != self._told:
                self._told = said
                logger.warning("%s; those of before are used on", said)
            return self._context
        self._told = ""
        self._material, self._pair, self._due = material, pair, now + self._every
        return self._context

    async def aclose(self) -> None:
        """End a look at the certificates that is under way."""
        await self._flight.aclose()

    def __repr__(self) -> str:
        return f"<RotatingTls of {self._where}>"


def _reason(error: OSError | ValueError) -> object:
    if isinstance(error, ssl.SSLError):
        return f"{error.reason or error.strerror or 'it is none'}; {CHECK_PEM}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return error


def _no_password() -> str:
    # Without this, OpenSSL would ask for one on the terminal.
    raise ValueError("the client key is encrypted, which is not supported")


# -- keys as files -----------------------------------------------------------------------------


@contextmanager
def certificate_pair(pair: Pair) -> Generator[Path]:
    """A file with a certificate and its key, while the context lasts."""
    content = pair.certificate + b"\n" + pair.key
    with ExitStack() as stack:
        try:
            path = stack.enter_context(in_memory(content))
        except OSError:  # no such system, or a sandbox that doesn't allow it
            path = stack.enter_context(in_private_folder(content))
        yield path


@contextmanager
def in_memory(content: bytes) -> Generator[Path]:
    """A file with this content that lies on no disk.

    Raises:
        OSError: the system has no such files.
    """
    if sys.platform != "linux" or not DESCRIPTORS.is_dir():
        raise OSError("there are no files in memory here")
    descriptor = os.memfd_create("client certificate", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        yield DESCRIPTORS / str(descriptor)


@contextmanager
def in_private_folder(content: bytes) -> Generator[Path]:
    """A file with this content that nobody else can read, in a folder that goes with it."""
    with TemporaryDirectory(prefix="aioinformer-") as folder:  # 0700
        path = Path(folder, "client.pem")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield path
