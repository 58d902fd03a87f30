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

from aioinformer._client.auth.off_loop import off_loop
from aioinformer._client.auth.token_refresh import Grant
from aioinformer.errors import FetchError

__all__ = ["TokenFile", "bearer"]

logger = logging.getLogger(__name__)

MINUTE = 60.0
"""Seconds that a token is used before the file is read again: client-go's period."""

LATER = 10.0
"""The same when the file could not be read, and the token of before is used on."""

CAP = 1024 * 1024
"""Bytes read of it. Tokens have some kilobytes; a path may name a device without an end."""


@dataclass(slots=True)
class TokenFile:
    """Reads the token; call it for a ``Grant``."""

    path: Path
    where: str
    """What named it, for messages."""
    _last: str = field(default="", init=False, repr=False)
    _told: str = field(default="", init=False)

    async def __call__(self) -> Grant:
        """The token that is in the file now.

        One that can't be read now, while it is being replaced for example, leaves the last one
        in use, with a warning.

        Raises:
            FetchError: the file can't be read, or has no usable token, and never had one.
        """
        try:
            self._last = bearer(await off_loop(partial(_content, self.path)))
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            said = f"{self.where}: the token file {self.path} can't be used: {reason}"
            if not self._last:
                raise FetchError(said, phase="credentials") from error
            if said != self._told:
                self._told = said
                logger.warning("%s; the token of before is used on", said)
            return Grant(self._last, valid=LATER)
        self._told = ""
        return Grant(self._last, valid=MINUTE)


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(CAP + 1)
    if len(content) > CAP:
        raise ValueError(f"it has more than {CAP} bytes")
    return content


def bearer(token: bytes) -> str:
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
