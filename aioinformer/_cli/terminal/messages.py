"""What is said on the side: one line each on stderr, and the library's warnings among them.

On a terminal there may be a status line at the bottom that is painted over; elsewhere it is left
out, since nobody waits there.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TextIO

from aioinformer._cli.terminal.style import printable

__all__ = ["Notices"]

_ERASE = "\r\x1b[K"


class Notices:
    """Says things on a stream such as stderr."""

    def __init__(self, stream: TextIO) -> None:
        """Nothing said yet."""
        self.terminal = stream.isatty()
        """Whether somebody is looking."""
        self._stream = stream
        self._status = ""
        self._listener: Callable[[str], None] | None = None

    def say(self, text: str) -> None:
        """Say one line, whatever is in ``text``."""
        if self._listener is not None:
            self._listener(printable(text))
            return
        self._write(f"{self._erase()}aioinformer: {printable(text)}\n{self._status}")

    def status(self, text: str) -> None:
        """Show ``text`` in the last line until something else is shown there; "" for nothing."""
        if self.terminal and (text or self._status):
            erase = self._erase()
            width = shutil.get_terminal_size().columns - 1
            self._status = printable(text)[:width]
            self._write(erase + self._status)

    @contextmanager
    def diverted(self, listener: Callable[[str], None]) -> Generator[None]:
        """Give what is said to ``listener`` instead, while the terminal is painted on."""
        self._listener = listener
        try:
            yield
        finally:
            self._listener = None

    def log(self, text: str) -> None:
        """A log record in full, tracebacks included."""
        if self._listener is not None:
            self._listener(text)
            return
        self._write(f"{self._erase()}{text}\n{self._status}")

    def _erase(self) -> str:
        return _ERASE if self._status else ""

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # stderr is gone: there is nowhere to say so
            self._stream.write(text)
            self._stream.flush()

    @contextmanager
    def logging(self, *, verbose: bool) -> Generator[None]:
        """Say what is logged: warnings in a line each, or everything in full."""
        handler = _Everything(self) if verbose else _Warnings(self)
        root, library = logging.getLogger(), logging.getLogger("aioinformer")
        level = library.level
        root.addHandler(handler)
        if verbose:
            library.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            library.setLevel(level)
            root.removeHandler(handler)


AGAIN = 0.5
"""Seconds in which a warning is not repeated: a server may refuse a list in two forms at once."""


class _Warnings(logging.Handler):
    """Warnings and worse; an exception by its name and message, not by its traceback."""

    def __init__(self, notices: Notices) -> None:
        super().__init__(logging.WARNING)
        self._notices = notices
        self._last = ("", 0.0)

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        error = record.exc_info[1] if record.exc_info else None
        said = f"{text}: {type(error).__name__}: {error}" if error else text
        before, at = self._last
        if said != before or record.created - at >= AGAIN:
            self._last = (said, record.created)
            self._notices.say(said)


class _Everything(logging.Handler):
    """Every record, with time, level, logger and traceback."""

    def __init__(self, notices: Notices) -> None:
        super().__init__(logging.DEBUG)
        self._notices = notices
        layout = "%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s"
        self.setFormatter(logging.Formatter(layout, datefmt="%H:%M:%S"))

    def emit(self, record: logging.LogRecord) -> None:
        self._notices.log(self.format(record))
