"""Scripts in separate processes, as a reader of the README runs them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aioinformer.testing import ApiServer
from tests.processes import send_signal


@dataclass(frozen=True, slots=True)
class CompletedScript:
    """A script that has ended."""

    status: int
    output: str
    stderr: str
    """The text that the script wrote to stderr."""


class RunningScript:
    """A running or ended script."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        self._process = process
        self._output = process.stdout
        self._signalled = False
        self.stderr = ""
        """The text that the script wrote to stderr, after its end."""

    async def read_line(self) -> bytes:
        """Read the next line of stdout."""
        return await self._output.readline()

    @property
    def status(self) -> int | None:
        """The exit status, or ``None`` while the script runs."""
        return self._process.returncode

    def send_signal(self, number: signal.Signals = signal.SIGINT) -> None:
        """End the script by one Ctrl-C; a second one would end a script that ignores the first."""
        if not self._signalled:
            self._signalled = True
            send_signal(self._process, number)


@asynccontextmanager
async def running_script(
    script: Path,
    server: ApiServer,
    tmp_path: Path,
    *arguments: str,
    end: signal.Signals = signal.SIGINT,
) -> AsyncGenerator[RunningScript]:
    """Run a script against the server until the block ends, then end it by Ctrl-C."""
    process = await _start(script, server.kubeconfig(tmp_path / "config"), arguments)
    run = RunningScript(process)
    try:
        async with asyncio.timeout(20):
            yield run
    finally:
        run.send_signal(end)
        _, complaints = await process.communicate()
        run.stderr = complaints.decode()


async def run_to_completion(script: Path, kubeconfig: Path, *arguments: str) -> CompletedScript:
    """Run a script to its end."""
    process = await _start(script, kubeconfig, arguments)
    async with asyncio.timeout(20):
        output, complaints = await process.communicate()
    assert process.returncode is not None
    return CompletedScript(process.returncode, output.decode(), complaints.decode())


async def _start(
    script: Path, kubeconfig: Path, arguments: Iterable[str]
) -> asyncio.subprocess.Process:
    environment = os.environ | {
        "KUBECONFIG": str(kubeconfig),
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "default",  # unclosed sockets write a warning to stderr
    }
    # A file that is no Python script is executable itself.
    command = (sys.executable, str(script)) if script.suffix == ".py" else (str(script),)
    return await asyncio.create_subprocess_exec(
        *command,
        *arguments,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
