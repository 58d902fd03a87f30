"""Standard output for a program that lives in an event loop.

A pipe whose reader pauses and a terminal that is held with Ctrl-S make ``print`` wait, and with
it the whole loop: no signal would be handled, no watch read. ``Output`` looks first whether there
is room, and waits for it as the loop waits for a socket. Nothing is buffered here, so every line
is out when ``write`` returns, and no pipe can break later, at exit.

POSIX only, as the rest of the command line (``poll``, signals in the loop).
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
"""Whether to use colours; ``auto`` for in a terminal, unless ``NO_COLOR`` is set."""

WRITE_SIZE = 4096
"""Bytes written at a time. A pipe that ``poll`` calls writable takes a page (Linux ``is_pipe(7)``)."""


class Output:
    """A file descriptor to write text to: a terminal, a pipe, a file."""

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
            environment: where ``NO_COLOR`` and ``TERM`` are looked up.
            encoding: what characters it takes; others become ``?``.
            colour: whether to use colours.

        Raises:
            OSError: it isn't open.
        """
        self.fd = fd
        self.is_pipe = stat.S_ISFIFO(os.fstat(fd).st_mode)
        """Whether somebody else reads it, and may go."""
        self.is_terminal = os.isatty(fd) and environment.get("TERM") != "dumb"
        """Whether it can be painted on."""
        wanted = self.is_terminal and not environment.get("NO_COLOR")
        self.colour = colour == "always" or (colour == "auto" and wanted)
        """Whether colours are wanted; https://no-color.org."""
        self._encoding = encoding
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    @property
    def size(self) -> os.terminal_size:
        """Columns and lines, now."""
        return shutil.get_terminal_size()

    @property
    def supports_unicode(self) -> bool:
        """Whether it takes more than ASCII."""
        return self._encoding.lower().replace("-", "") == "utf8"

    @property
    def writable(self) -> bool:
        """Whether something can be written now without waiting, or with an error."""
        return bool(self._poll.poll(0))

    async def write(self, text: str | bytes) -> None:
        """Write all of it; bytes, such as JSON, as they are.

        Raises:
            BrokenPipeError: nobody reads it any more.
            OSError: it can't be written, for example to a full disk.
        """
        data = text if isinstance(text, bytes) else text.encode(self._encoding, "replace")
        done = 0
        while done < len(data):
            if not self.writable:
                await self._wait_writable()
            done += os.write(self.fd, data[done : done + WRITE_SIZE])

    def write_now(self, text: str) -> None:
        """Write something short, if there is room: for the very end, where nothing may wait."""
        with suppress(OSError):  # a terminal that has gone needs no tidying up
            if self.writable:
                os.write(self.fd, text.encode(self._encoding, "replace"))

    async def _wait_writable(self) -> None:
        loop = asyncio.get_running_loop()
        room = asyncio.Event()
        loop.add_writer(self.fd, room.set)
        try:
            await room.wait()
        finally:
            loop.remove_writer(self.fd)

    def __repr__(self) -> str:
        kind = "terminal" if self.is_terminal else "pipe" if self.is_pipe else "file"
        return f"<Output {self.fd} {kind}>"
