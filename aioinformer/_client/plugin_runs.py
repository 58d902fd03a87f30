"""Runs a program and takes its output: a process that can't block the loop or outlive its deadline.

Both outputs are read as they come, so that a program which fills one of them goes on; of the
diagnostics the end alone is kept. The program gets a session of its own: what it starts is killed
with it, and neither has a terminal to ask questions on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast

__all__ = ["Outcome", "run"]

OUTPUT_CAP = 1024 * 1024
"""Bytes of output: an ExecCredential with a chain of certificates has some kilobytes."""

TAIL = 2048
"""Bytes kept of the diagnostics: the last line says what went wrong."""

STDOUT = 1
"""The number of the pipe that carries the output."""

LINGERING = 0.5
"""Seconds that the pipes of a program that has ended may stay open: it may have left something
running that holds them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program left behind."""

    code: int
    """Its exit code; negative for the signal that ended it."""
    output: bytes = field(repr=False)
    """Its standard output, cut off at one byte more than ``OUTPUT_CAP``."""
    complaint: bytes = field(repr=False)
    """The end of its standard error."""


async def run(command: tuple[str, ...], environment: Mapping[str, str], seconds: float) -> Outcome:
    """Run a program to its end, without input.

    A cancellation kills it.

    Args:
        command: the program and its arguments.
        environment: all its variables.
        seconds: after how many it is killed.

    Raises:
        OSError: it can't be started.
        TimeoutError: it was killed.
    """
    async with asyncio.timeout(seconds):
        starting = asyncio.create_task(_started(command, environment), name="start of a plugin")
        try:
            await asyncio.wait({starting})
            transport, listening = starting.result()
            await asyncio.wait({listening.ended})
        finally:
            # A few milliseconds, if at all: what is half started can't be killed properly.
            await asyncio.wait({starting})
            if starting.exception() is None:
                await _end(*starting.result())
    code = cast("int", transport.get_returncode())
    return Outcome(code, bytes(listening.output), bytes(listening.complaint))


async def _started(
    command: tuple[str, ...], environment: Mapping[str, str]
) -> tuple[asyncio.SubprocessTransport, _Listening]:
    return await asyncio.get_running_loop().subprocess_exec(
        _Listening,
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),  # uvloop takes no other mapping
        start_new_session=True,
    )


async def _end(transport: asyncio.SubprocessTransport, listening: _Listening) -> None:
    """Kill what still runs, and return when the system has said that it has ended."""
    if transport.get_returncode() is None:
        # Else it is gone already, or runs as somebody else.
        with suppress(ProcessLookupError, PermissionError):
            _kill(transport)
    # Not close() at once: that reaps the child behind the back of asyncio's own watcher. And not
    # without waiting: its end would be reported to a loop that may be closed by then.
    await asyncio.wait({listening.ended}, timeout=2 * LINGERING)
    transport.close()


def _kill(transport: asyncio.SubprocessTransport) -> None:
    if sys.platform == "win32":
        transport.kill()  # there are no sessions: what it started lives on
    else:
        os.killpg(transport.get_pid(), signal.SIGKILL)


class _Listening(asyncio.SubprocessProtocol):
    """Takes what a program writes."""

    def __init__(self) -> None:
        self.output = bytearray()
        self.complaint = bytearray()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the program has ended and its pipes are closed."""
        self._transport: asyncio.SubprocessTransport | None = None
        self._closing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        content = cast("bytes", data)
        if fd == STDOUT:
            self.output += content[: OUTPUT_CAP + 1 - len(self.output)]
        else:
            self.complaint = (self.complaint + content)[-TAIL:]

    def process_exited(self) -> None:
        if self._transport is not None:
            loop = asyncio.get_running_loop()
            self._closing = loop.call_later(LINGERING, self._transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._closing is not None:
            self._closing.cancel()
        if not self.ended.done():
            self.ended.set_result(None)
