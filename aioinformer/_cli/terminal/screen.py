"""Paints lines in place at the bottom of a terminal, with plain ANSI escapes.

No alternate screen: what was there before stays above, and the last picture stays when the
program ends. The cursor is hidden meanwhile and shown again whatever happens.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from aioinformer._cli.terminal.output import Output
from aioinformer._cli.terminal.style import Line, render

__all__ = ["Screen"]

_HIDE = "\x1b[?25l"
_SHOW = "\x1b[?25h"
_CLEAR = "\x1b[H\x1b[2J"
_ERASE_LINE = "\x1b[K"
_ERASE_BELOW = "\x1b[J"


class Screen:
    """A picture that is painted again and again. Use it in a ``with``."""

    def __init__(self, output: Output) -> None:
        """Paint on ``output``, which is a terminal."""
        self._output = output
        self._painted = 0
        self._size: os.terminal_size | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._painted:
            self._output.write_now(f"{_SHOW}\n")

    async def paint(
        self, lines: Sequence[Line], size: os.terminal_size, *, above: Sequence[str] = ()
    ) -> None:
        """Show ``lines`` where the last ones were.

        Args:
            lines: fewer than the terminal has.
            above: messages to leave above the picture; they scroll away as others come.
            size: of the terminal. After a change of it nobody knows where the last lines are, so
                that everything is painted anew.
        """
        self._painted, before = len(lines), self._painted
        start = f"\x1b[{before - 1}A" if before > 1 else ""
        if self._size not in (None, size):
            start = _CLEAR
        self._size = size
        # One column less: behind a full line, terminals differ on where the cursor is.
        shown = [render(line, size.columns - 1, colour=self._output.colour) for line in lines]
        messages = [text[: size.columns - 1] for text in above]
        picture = "\n".join(f"\r{_ERASE_LINE}{text}" for text in (*messages, *shown))
        await self._output.write(f"{_HIDE}{start}{picture}{_ERASE_BELOW}")
