"""Standard output that never blocks the event loop."""

from __future__ import annotations

import asyncio
import os
import pty
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from aioinformer._cli.terminal.output import Output


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Provide the two ends of a pipe; the test may close the reading end."""
    reading, writing = os.pipe()
    yield reading, writing
    os.close(writing)
    try:
        os.close(reading)
    except OSError:
        return  # the test did


async def test_written_text_can_be_read_at_once(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    await Output(writing, {}).write("pods ×\n")

    assert os.read(reading, 100) == "pods ×\n".encode()


async def test_a_full_pipe_holds_the_writer_and_not_the_loop(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    text = "x" * 300_000  # a pipe takes 64 KiB
    task = asyncio.create_task(Output(writing, {}).write(text))
    await asyncio.sleep(0.01)
    assert not task.done()

    os.set_blocking(reading, False)
    received = 0
    while received < len(text):
        with suppress(BlockingIOError):  # the writer had no turn yet
            received += len(os.read(reading, 65_536))
        await asyncio.sleep(0.001)
    await task


async def test_waiting_for_room_can_be_cancelled(pipe: tuple[int, int]) -> None:
    task = asyncio.create_task(Output(pipe[1], {}).write("x" * 300_000))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_write_without_a_reader_raises_broken_pipe_error(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])

    with pytest.raises(BrokenPipeError):
        await Output(pipe[1], {}).write("x")


async def test_characters_that_the_terminal_lacks_become_question_marks(
    pipe: tuple[int, int],
) -> None:
    output = Output(pipe[1], {}, encoding="ascii")
    await output.write("×\n")

    assert os.read(pipe[0], 10) == b"?\n"
    assert not output.supports_unicode


async def test_bytes_are_written_as_they_are(pipe: tuple[int, int]) -> None:
    """JSON is UTF-8, whatever the locale."""
    await Output(pipe[1], {}, encoding="ascii").write("×\n".encode())

    assert os.read(pipe[0], 10) == "×\n".encode()


def test_a_pipe_is_no_terminal_and_has_no_colours(pipe: tuple[int, int]) -> None:
    output = Output(pipe[1], {"TERM": "xterm"})

    assert (output.is_pipe, output.is_terminal, output.colour) == (True, False, False)
    assert repr(output) == f"<Output {pipe[1]} pipe>"


async def test_a_file_is_written_without_waiting(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        output = Output(file.fileno(), {})
        await output.write("a\n")

    assert (tmp_path / "out").read_bytes() == b"a\n"
    assert not output.is_pipe


@pytest.mark.parametrize(
    ("environment", "terminal", "colour"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_a_terminal_has_colours_unless_they_are_switched_off(
    environment: dict[str, str], terminal: bool, colour: bool
) -> None:
    """https://no-color.org: set and not empty."""
    master, slave = pty.openpty()
    try:
        output = Output(slave, environment)
        assert (output.is_terminal, output.colour) == (terminal, colour)
    finally:
        os.close(master)
        os.close(slave)


def test_colours_can_be_switched_on_and_off(pipe: tuple[int, int]) -> None:
    environment = {"TERM": "dumb", "NO_COLOR": "1"}

    assert Output(pipe[1], environment, colour="always").colour
    assert not Output(pipe[1], {"TERM": "xterm"}, colour="never").colour


def test_a_closed_descriptor_is_an_error_at_once(pipe: tuple[int, int]) -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        Output(1_000_000, {})


def test_write_now_does_not_wait_for_room_in_a_full_pipe(pipe: tuple[int, int]) -> None:
    output = Output(pipe[1], {})
    os.set_blocking(pipe[1], False)
    while output.writable:
        os.write(pipe[1], b"x" * 4096)
    os.set_blocking(pipe[1], True)

    output.write_now("bye")

    assert b"bye" not in os.read(pipe[0], 1_000_000)
