"""``TokenFile``: a bearer token in a file that somebody else rewrites.

A kubelet renews the token of a service account when 80 % of its time is over; the file then has
another content, at the same path. client-go reads it again every minute, and so do we, in a
thread; and at once when the server refuses the token.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from aioinformer._client.auth.off_loop import run_in_thread
from aioinformer._client.auth.token_refresh import TokenGrant
from aioinformer.errors import FetchError

__all__ = ["TokenFile", "bearer_header"]

logger = logging.getLogger(__name__)

REREAD_INTERVAL = 60.0
"""Seconds that a token is used before the file is read again: client-go's period."""

RETRY_INTERVAL = 10.0
"""The same when the file could not be read, and the token of before is used on."""

MAX_TOKEN_BYTES = 1024 * 1024
"""Bytes read of it. Tokens have some kilobytes; a path may name a device without an end."""


@dataclass(slots=True)
class TokenFile:
    """Reads the token; call it for a ``TokenGrant``."""

    path: Path
    origin: str
    """What named it, for messages."""
    _last_header: str = field(default="", init=False, repr=False)
    _last_warning: str = field(default="", init=False)

    async def __call__(self) -> TokenGrant:
        """The token that is in the file now.

        One that can't be read now, while it is being replaced for example, leaves the last one
        in use, with a warning.

        Raises:
            FetchError: the file can't be read, or has no usable token, and never had one.
        """
        try:
            self._last_header = bearer_header(await run_in_thread(partial(_read_file, self.path)))
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            said = f"{self.origin}: the token file {self.path} can't be used: {reason}"
            if not self._last_header:
                raise FetchError(said, phase="credentials") from error
            if said != self._last_warning:
                self._last_warning = said
                logger.warning("%s; the token of before is used on", said)
            return TokenGrant(self._last_header, valid_for=RETRY_INTERVAL)
        self._last_warning = ""
        return TokenGrant(self._last_header, valid_for=REREAD_INTERVAL)


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MAX_TOKEN_BYTES + 1)
    if len(content) > MAX_TOKEN_BYTES:
        raise ValueError(f"it has more than {MAX_TOKEN_BYTES} bytes")
    return content


def bearer_header(token: bytes) -> str:
    """The header for a token, without the space around it.

    Raises:
        ValueError: there is none, or no header may have it. Doesn't show it.
    """
    word = token.strip()
    if not word:
        raise ValueError("it is empty")
    if not all(0x20 < byte < 0x7F for byte in word):
        raise ValueError("it has a space, newline or control character in it")
    return f"Bearer {word.decode('ascii')}"
