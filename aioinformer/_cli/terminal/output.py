"""Standard output for a program that runs in an event loop.

``print`` blocks the event loop while the reader of a pipe pauses, or while the user holds the
terminal with Ctrl-S. Therefore ``Output`` waits in the event loop until the file descriptor is
writable. ``Output`` has no buffer, so each line is written when ``write`` returns, and a broken
pipe can't raise at exit. POSIX only, like the rest of the command line.
"""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal, TypeAlias

Colour: TypeAlias = Literal["auto", "always", "never"]
"""``auto`` means colours in a terminal, unless ``NO_COLOR`` is set."""

WRITE_SIZE = 4096
"""Bytes written at a time. A pipe that ``poll`` reports as writable has room for one page
(``PIPE_BUF``, Linux ``pipe(7)``), so a write of this size does not block."""


class Output:
    """A file descriptor that text is written to: a terminal, a pipe or a file."""

    def __init__(
        self,
        fd: int,
        environment: Mapping[str, str],
        *,
        encoding: str = "utf-8",
        colour: Colour = "auto",
    ) -> None:
        """Write to ``fd``, which stays open.

        ``NO_COLOR`` and ``TERM`` of the ``environment`` are read. Characters outside of
        ``encoding`` are written as ``?``.
        """
        self.fd = fd
        self.is_pipe = stat.S_ISFIFO(os.fstat(fd).st_mode)
        """A pipe has a reader, which may close it."""
        self.is_terminal = os.isatty(fd) and environment.get("TERM") != "dumb"
        """True if the descriptor is a terminal that understands escape sequences."""
        wanted = self.is_terminal and not environment.get("NO_COLOR")
        self.colour = colour == "always" or (colour == "auto" and wanted)
        """See https://no-color.org."""
        self._encoding = encoding
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    @property
    def size(self) -> os.terminal_size:
        return shutil.get_terminal_size()

    @property
    def supports_unicode(self) -> bool:
        return self._encoding.lower().replace("-", "") == "utf8"

    @property
    def writable(self) -> bool:
        """True if a write would not block; the write may still raise an error."""
        return bool(self._poll.poll(0))

    async def write(self, text: str | bytes) -> None:
        """Write all of ``text``; bytes, such as JSON, are written unchanged.

        Raises:
            BrokenPipeError: the reader has closed the pipe.
            OSError: the write failed, for example because the disk is full.
        """
        data = text if isinstance(text, bytes) else text.encode(self._encoding, "replace")
        done = 0
        while done < len(data):
            if not self.writable:
                await self._wait_writable()
            done += os.write(self.fd, data[done : done + WRITE_SIZE])

    def write_now(self, text: str) -> None:
        """Write a short ``text`` if that does not block; for the end, when no task may wait."""
        with suppress(OSError):  # a closed terminal needs no clean-up
            if self.writable:
                os.write(self.fd, text.encode(self._encoding, "replace"))

    async def _wait_writable(self) -> None:
        loop = asyncio.get_running_loop()
        writable = asyncio.Event()
        loop.add_writer(self.fd, writable.set)
        try:
            await writable.wait()
        finally:
            loop.remove_writer(self.fd)

    def __repr__(self) -> str:
        kind = "terminal" if self.is_terminal else "pipe" if self.is_pipe else "file"
        return f"<Output {self.fd} {kind}>"
