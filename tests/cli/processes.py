"""The command line as a process: on pipes, and in a terminal."""

from __future__ import annotations

import asyncio
import codecs
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aioinformer
from tests.processes import send_signal, start_process

ROOT = Path(aioinformer.__file__).parents[1]
COMMAND = (sys.executable, "-m", "aioinformer")

WAIT_TIMEOUT = 40.0
"""Seconds to wait for a line, long enough for a busy machine."""


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a process, without variables that name a cluster."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TERM": "xterm",
        "LC_ALL": "C.UTF-8",
        "PYTHONWARNINGS": "error::ResourceWarning",
    }


@dataclass(slots=True)
class CliProcess:
    """A running or ended process."""

    process: Process

    async def read_line(self) -> str:
        """Read the next line of stdout."""
        assert self.process.stdout is not None
        async with asyncio.timeout(WAIT_TIMEOUT):
            return (await self.process.stdout.readline()).decode()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        send_signal(self.process, number)

    async def wait(self) -> tuple[int, str, str]:
        """Wait for the end; return the exit code and the rest of stdout and stderr."""
        async with asyncio.timeout(WAIT_TIMEOUT):
            out, err = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, (out or b"").decode(), err.decode()


@asynccontextmanager
async def started_cli(*argv: str, env: Mapping[str, str]) -> AsyncGenerator[CliProcess]:
    """Run ``aioinformer`` with arguments, and kill it at the end of the block."""
    process = await start_process(*COMMAND, *argv, env=env, cwd=ROOT, stdout=PIPE, stderr=PIPE)
    try:
        yield CliProcess(process)
    finally:
        send_signal(process, signal.SIGKILL)
        await process.communicate()


@dataclass(slots=True)
class TerminalProcess:
    """A process in its own terminal."""

    process: Process
    master: int
    _output: asyncio.Queue[str]
    written: str = ""

    async def wait_for_text(self, text: str) -> str:
        """Wait until the process has written ``text``; return all of its output."""
        async with asyncio.timeout(WAIT_TIMEOUT):
            while text not in self.written:
                self.written += await self._output.get()
        return self.written

    async def wait(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and all of the output."""
        async with asyncio.timeout(WAIT_TIMEOUT):
            while more := await self._output.get():
                self.written += more
            return await self.process.wait(), self.written

    def type_keys(self, keys: bytes) -> None:
        """Type a text."""
        os.write(self.master, keys)


@asynccontextmanager
async def started_in_terminal(
    *argv: str, env: dict[str, str], columns: int = 80, lines: int = 24
) -> AsyncGenerator[TerminalProcess]:
    """Run ``aioinformer`` with arguments in a terminal of a given size."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    loop, received = asyncio.get_running_loop(), asyncio.Queue[str]()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    # Ctrl-C makes a terminal drop its pending output, which may cut a character.

    def read() -> None:
        try:
            text = decoder.decode(os.read(master, 65_536))
        except OSError:  # the process has ended and closed its side
            loop.remove_reader(master)
            received.put_nowait("")
            return
        if text:
            received.put_nowait(text)

    loop.add_reader(master, read)
    process = await start_process(
        *_controlling_terminal_command(),
        *COMMAND,
        *argv,
        env=env,
        cwd=ROOT,
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    try:
        yield TerminalProcess(process, master, received)
    finally:
        send_signal(process, signal.SIGKILL)
        await process.wait()
        loop.remove_reader(master)
        os.close(master)


def _controlling_terminal_command() -> tuple[str, ...]:
    """Make the terminal the process's controlling one, so that Ctrl-C sends a signal."""
    take = "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    return sys.executable, "-c", f"{take}os.execv(sys.argv[1], sys.argv[1:])"


def imported_modules(module: str) -> set[str]:
    """Return the names of the modules that importing ``module`` loads."""
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return set(done.stdout.split())
