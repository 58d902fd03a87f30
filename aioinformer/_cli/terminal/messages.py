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

__all__ = ["Messages"]

_ERASE_LINE = "\r\x1b[K"


class Messages:
    """Says things on a stream such as stderr."""

    def __init__(self, stream: TextIO) -> None:
        """Nothing said yet."""
        self.is_terminal = stream.isatty()
        """Whether somebody is looking."""
        self._stream = stream
        self._status = ""
        self._redirect_target: Callable[[str], None] | None = None

    def show(self, text: str) -> None:
        """Say one line, whatever is in ``text``."""
        if self._redirect_target is not None:
            self._redirect_target(printable(text))
            return
        self._write(f"{self._erase_sequence()}aioinformer: {printable(text)}\n{self._status}")

    def show_status(self, text: str) -> None:
        """Show ``text`` in the last line until something else is shown there; "" for nothing."""
        if self.is_terminal and (text or self._status):
            erase = self._erase_sequence()
            width = shutil.get_terminal_size().columns - 1
            self._status = printable(text)[:width]
            self._write(erase + self._status)

    @contextmanager
    def redirect(self, target: Callable[[str], None]) -> Generator[None]:
        """Give what is said to ``target`` instead, while the terminal is painted on."""
        self._redirect_target = target
        try:
            yield
        finally:
            self._redirect_target = None

    def show_record(self, text: str) -> None:
        """A log record in full, tracebacks included."""
        if self._redirect_target is not None:
            self._redirect_target(text)
            return
        self._write(f"{self._erase_sequence()}{text}\n{self._status}")

    def _erase_sequence(self) -> str:
        return _ERASE_LINE if self._status else ""

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # stderr is gone: there is nowhere to say so
            self._stream.write(text)
            self._stream.flush()

    @contextmanager
    def handle_logging(self, *, verbose: bool) -> Generator[None]:
        """Say what is logged: warnings in a line each, or everything in full."""
        handler = _VerboseHandler(self) if verbose else _WarningHandler(self)
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


REPEAT_INTERVAL = 0.5
"""Seconds in which a warning is not repeated: a server may refuse a list in two forms at once."""


class _WarningHandler(logging.Handler):
    """Warnings and worse; an exception by its name and message, not by its traceback."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(logging.WARNING)
        self._messages = messages
        self._last = ("", 0.0)

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        error = record.exc_info[1] if record.exc_info else None
        said = f"{text}: {type(error).__name__}: {error}" if error else text
        before, at = self._last
        if said != before or record.created - at >= REPEAT_INTERVAL:
            self._last = (said, record.created)
            self._messages.show(said)


class _VerboseHandler(logging.Handler):
    """Every record, with time, level, logger and traceback."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(logging.DEBUG)
        self._messages = messages
        layout = "%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s"
        self.setFormatter(logging.Formatter(layout, datefmt="%H:%M:%S"))

    def emit(self, record: logging.LogRecord) -> None:
        self._messages.show_record(self.format(record))
