"""Painting in place."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator

import pytest

from aioinformer._cli.terminal.output import Output
from aioinformer._cli.terminal.screen import Screen
from aioinformer._cli.terminal.style import StyledText

SIZE = os.terminal_size((10, 5))
FIRST, SECOND = (StyledText("pods", "bold"),), (StyledText("a line too long"),)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Provide the two ends of a terminal: to read its output, and to draw on."""
    master, slave = pty.openpty()
    yield master, slave
    os.close(master)
    os.close(slave)


def seen(master: int, end: str = "\x1b[J") -> str:
    """Read the output up to ``end``, which a terminal delivers in pieces."""
    text = ""
    while not text.endswith(end):
        text += os.read(master, 65_536).decode().replace("\r\n", "\n")
    return text


async def test_lines_are_cut_and_painted_over_the_last_ones(terminal: tuple[int, int]) -> None:
    master, slave = terminal
    with Screen(Output(slave, {"NO_COLOR": "1"})) as screen:
        await screen.paint([FIRST, SECOND], SIZE)
        assert seen(master) == "\x1b[?25l\r\x1b[Kpods\n\r\x1b[Ka line to\x1b[J"

        await screen.paint([SECOND, FIRST], SIZE)
        assert seen(master).startswith("\x1b[?25l\x1b[1A\r\x1b[Ka line to\n")

    assert seen(master, "\n") == "\x1b[?25h\n"


async def test_messages_stay_above_the_picture(terminal: tuple[int, int]) -> None:
    master, slave = terminal
    with Screen(Output(slave, {"NO_COLOR": "1"})) as screen:
        await screen.paint([FIRST, FIRST], SIZE)
        seen(master)
        await screen.paint([FIRST, FIRST], SIZE, above=["late"])
        assert seen(master) == ("\x1b[?25l\x1b[1A\r\x1b[Klate\n\r\x1b[Kpods\n\r\x1b[Kpods\x1b[J")
        await screen.paint([FIRST, FIRST], SIZE)
        assert seen(master).startswith("\x1b[?25l\x1b[1A\r")


async def test_a_change_of_the_terminal_size_repaints_everything(terminal: tuple[int, int]) -> None:
    master, slave = terminal
    with Screen(Output(slave, {})) as screen:
        await screen.paint([FIRST], SIZE)
        seen(master)
        await screen.paint([FIRST], os.terminal_size((20, 5)))
        assert seen(master) == "\x1b[?25l\x1b[H\x1b[2J\r\x1b[K\x1b[1mpods\x1b[0m\x1b[J"


async def test_the_cursor_is_restored_after_an_exception(terminal: tuple[int, int]) -> None:
    master, slave = terminal

    async def fail() -> None:
        with Screen(Output(slave, {})) as screen:
            await screen.paint([FIRST], SIZE)
            raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        await fail()

    assert seen(master, "\x1b[?25h\n")


def test_a_screen_that_never_paints_writes_nothing(terminal: tuple[int, int]) -> None:
    master, slave = terminal
    with Screen(Output(slave, {})):
        pass
    os.write(slave, b"$")

    assert seen(master, "$") == "$"
