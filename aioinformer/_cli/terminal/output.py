"""Standard output for a program that runs in an event loop.

``print`` blocks while the reader of a pipe pauses, or while the user holds the terminal with
Ctrl-S. Then the whole event loop would stop: no signal would be handled and no watch read.
Therefore ``Output`` first polls the file descriptor, and waits in the event loop until the
descriptor is writable. ``Output`` has no buffer, so each line is written when ``write`` returns,
and a broken pipe can't raise at exit.

POSIX only, like the rest of the command line (``poll``, signal handlers in the event loop).
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

__all__ = ["Colour", "Output"]

Colour: TypeAlias = Literal["auto", "always", "never"]
"""The use of colours; ``auto`` means colours in a terminal, unless ``NO_COLOR`` is set."""

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
        """Write to ``fd``.

        Args:
            fd: an open file descriptor; it stays open.
            environment: the environment variables; ``NO_COLOR`` and ``TERM`` are read.
            encoding: the encoding of the text; characters outside it are written as ``?``.
            colour: when to use colours.

        Raises:
            OSError: ``fd`` is not open.
        """
        self.fd = fd
        self.is_pipe = stat.S_ISFIFO(os.fstat(fd).st_mode)
        """True if the descriptor is a pipe, whose reader may close it."""
        self.is_terminal = os.isatty(fd) and environment.get("TERM") != "dumb"
        """True if the descriptor is a terminal that understands escape sequences."""
        wanted = self.is_terminal and not environment.get("NO_COLOR")
        self.colour = colour == "always" or (colour == "auto" and wanted)
        """True if text is written with colours; see https://no-color.org."""
        self._encoding = encoding
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    @property
    def size(self) -> os.terminal_size:
        """The current number of columns and lines."""
        return shutil.get_terminal_size()

    @property
    def supports_unicode(self) -> bool:
        """True if the encoding has characters beyond ASCII."""
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
