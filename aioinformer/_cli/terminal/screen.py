"""A region at the bottom of a terminal that is redrawn in place, with plain ANSI escapes.

The terminal's alternate screen is not used, so the earlier output stays above the region, and the
last picture stays at the end. The cursor is hidden meanwhile, and shown again on every exit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Self

from aioinformer._cli.terminal.output import Output
from aioinformer._cli.terminal.style import Line, render

_HIDE = "\x1b[?25l"
_SHOW = "\x1b[?25h"
_CLEAR = "\x1b[H\x1b[2J"
_ERASE_LINE = "\x1b[K"
_ERASE_BELOW = "\x1b[J"


class Screen:
    """Draws on ``output``, which must be a terminal."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._painted = 0
        self._size: os.terminal_size | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._painted:
            self._output.write_now(f"{_SHOW}\n")

    async def paint(
        self, lines: Sequence[Line], size: os.terminal_size, *, above: Sequence[str] = ()
    ) -> None:
        """Replace the lines that were painted last; ``above`` the region, messages scroll away.

        After a change of ``size``, the position of the last lines is unknown, so the whole terminal
        is cleared.
        """
        self._painted, before = len(lines), self._painted
        start = f"\x1b[{before - 1}A" if before > 1 else ""
        if self._size not in (None, size):
            start = _CLEAR
        self._size = size
        # One column stays empty: terminals differ in the cursor position after a full line.
        shown = [render(line, size.columns - 1, colour=self._output.colour) for line in lines]
        messages = [text[: size.columns - 1] for text in above]
        picture = "\n".join(f"\r{_ERASE_LINE}{text}" for text in (*messages, *shown))
        await self._output.write(f"{_HIDE}{start}{picture}{_ERASE_BELOW}")
