"""``TokenFile``: a bearer token in a file whose content is replaced from time to time.

A kubelet replaces the token of a service account after 80 % of its lifetime, at the same path. Like
client-go, ``TokenFile`` reads the file again every minute, and at once when the server rejects the
token, in a thread.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from aioinformer._client.auth.off_loop import run_in_thread
from aioinformer._client.auth.token_refresh import TokenGrant
from aioinformer._runtime.reporting.error_hook import Outage
from aioinformer.errors import FetchError

logger = logging.getLogger("aioinformer.credentials")

REREAD_INTERVAL = 60.0
"""Seconds before the file is read again: client-go's period."""

RETRY_INTERVAL = 10.0
"""Seconds before the file is read again if it could not be read, and the last token is in use."""

MAX_TOKEN_BYTES = 1024 * 1024
"""Maximum size. A token has some kilobytes; the path may name a device that never ends."""


@dataclass(slots=True)
class TokenFile:
    path: Path
    origin: str
    """The file or directory that names the token file, for messages."""
    header: str = field(default="", repr=False)
    """The header with the last token, or with the one to use until the file can be read."""
    _outage: Outage = field(default_factory=lambda: Outage(logger), init=False, repr=False)

    async def __call__(self) -> TokenGrant:
        """Read the file and return its token.

        If the file can't be read, for example while it is being replaced, the last token stays in
        use and a warning is logged.

        Raises:
            FetchError: the file can't be read or contains no usable token, and no token was read
                before or given.
        """
        try:
            self.header = bearer_header(await run_in_thread(partial(_read_file, self.path)))
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            text = f"{self.origin}: the token file {self.path} can't be used: {reason}"
            if not self.header:
                raise FetchError(text, phase="credentials") from error
            self._outage.warn("%s; the last token stays in use", text)
            return TokenGrant(self.header, valid_for=RETRY_INTERVAL)
        self._outage.end("%s: the token file %s can be used again", self.origin, self.path)
        return TokenGrant(self.header, valid_for=REREAD_INTERVAL)


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MAX_TOKEN_BYTES + 1)
    if len(content) > MAX_TOKEN_BYTES:
        raise ValueError(f"it is longer than {MAX_TOKEN_BYTES} bytes")
    return content


def bearer_header(token: bytes) -> str:
    """Return the ``Authorization`` header for a token, without whitespace around the token.

    Raises:
        ValueError: the token is empty, or a header can't contain it. The message doesn't show it.
    """
    word = token.strip()
    if not word:
        raise ValueError("it is empty")
    if not all(0x20 < byte < 0x7F for byte in word):
        raise ValueError("it contains a space, newline or control character")
    return f"Bearer {word.decode('ascii')}"
