"""Messages on stderr: one line for each message, the library's log warnings included.

A terminal also has a status line at the bottom, which the next message overwrites.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TextIO

from aioinformer._cli.terminal.style import printable, replace_controls

_ERASE_LINE = "\r\x1b[K"


class Messages:
    def __init__(self, stream: TextIO) -> None:
        self.is_terminal = stream.isatty()
        self._stream = stream
        self._status = ""
        self._redirect_target: Callable[[str], None] | None = None

    def show(self, text: str) -> None:
        """Write ``text`` as one line, without its control characters and line breaks."""
        if self._redirect_target is not None:
            self._redirect_target(printable(text))
            return
        self._write(f"{self._erase_sequence()}aioinformer: {printable(text)}\n{self._status}")

    def show_status(self, text: str) -> None:
        """Replace the status line by ``text``; an empty text removes the line."""
        if self.is_terminal and (text or self._status):
            erase = self._erase_sequence()
            width = shutil.get_terminal_size().columns - 1
            self._status = printable(text)[:width]
            self._write(erase + self._status)

    @contextmanager
    def redirect(self, target: Callable[[str], None]) -> Generator[None]:
        """Pass messages to ``target`` while a ``Screen`` owns the terminal."""
        self._redirect_target = target
        try:
            yield
        finally:
            self._redirect_target = None

    def show_record(self, text: str) -> None:
        """Write a formatted log record in full. Further lines, as of a traceback, are indented, so
        that none looks like another record.
        """
        text = "\n    ".join(map(replace_controls, text.split("\n")))
        if self._redirect_target is not None:
            self._redirect_target(text)
            return
        self._write(f"{self._erase_sequence()}{text}\n{self._status}")

    def _erase_sequence(self) -> str:
        return _ERASE_LINE if self._status else ""

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # stderr is closed, so no error can be shown
            self._stream.write(text)
            self._stream.flush()

    @contextmanager
    def handle_logging(self, *, verbose: bool) -> Generator[None]:
        """Show log records: warnings as one line each, or every record in full if verbose."""
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


REPEAT_INTERVAL = 10.0
"""Seconds within which an equal warning is discarded: the first retries of a rejected request."""


class _WarningHandler(logging.Handler):
    """Shows an exception as its class and message, without a traceback."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(logging.WARNING)
        self._messages = messages
        self._last = ("", 0.0)

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        error = record.exc_info[1] if record.exc_info else None
        line = f"{text}: {type(error).__name__}: {error}" if error else text
        last_line, shown_at = self._last
        if line != last_line or record.created - shown_at >= REPEAT_INTERVAL:
            self._last = (line, record.created)
            self._messages.show(line)


class _VerboseHandler(logging.Handler):
    def __init__(self, messages: Messages) -> None:
        super().__init__(logging.DEBUG)
        self._messages = messages
        layout = "%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s"
        self.setFormatter(logging.Formatter(layout, datefmt="%H:%M:%S"))

    def emit(self, record: logging.LogRecord) -> None:
        self._messages.show_record(self.format(record))
