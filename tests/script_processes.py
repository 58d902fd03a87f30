"""Scripts in separate processes, as a reader of the README runs them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from aioinformer.testing import ApiServer
from tests.processes import send_signal, start_process


@dataclass(frozen=True, slots=True)
class CompletedScript:
    """A script that has ended."""

    status: int
    output: str
    stderr: str
    """The text that the script wrote to stderr."""


class RunningScript:
    """A running or ended script."""

    def __init__(self, process: Process) -> None:
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


RUN_SECONDS = 35.0
"""Seconds that a script may run. On a busy machine, most of them are its imports."""

END_SECONDS = 8.0
"""Seconds in which a script must end after its signal. A ``KeyboardInterrupt`` during an import can
be lost: Python ignores exceptions in the weak references of its import locks. So the end of a
script that was interrupted too early must not be awaited for ever."""


@asynccontextmanager
async def running_script(
    script: Path,
    server: ApiServer,
    tmp_path: Path,
    *arguments: str,
    end: signal.Signals = signal.SIGINT,
    user: str = "",
    seconds: float = RUN_SECONDS,
) -> AsyncGenerator[RunningScript]:
    """Run a script against the server until the block ends, then end it by Ctrl-C.

    With ``user``, the script sends the token of that user.

    Raises:
        ScriptHangs: the script did not end after the signal.
    """
    kubeconfig = server.kubeconfig(tmp_path / "config", user=user)
    command, environment = _describe(script, kubeconfig, arguments)
    process = await start_process(*command, env=environment, stdout=PIPE, stderr=PIPE)
    run = RunningScript(process)
    try:
        async with asyncio.timeout(seconds):
            yield run
    finally:
        run.send_signal(end)
        run.stderr = await _read_to_end(process, script)


class ScriptHangs(Exception):
    """A script did not end after its signal. The message contains the stacks of its threads."""


async def _read_to_end(process: Process, script: Path) -> str:
    """Return what the script wrote to stderr, after its end."""
    reading = asyncio.create_task(process.communicate())
    await asyncio.wait({reading}, timeout=END_SECONDS)
    if hangs := not reading.done():
        send_signal(process, signal.SIGABRT)  # faulthandler writes the stacks to stderr
    _, stderr = await reading
    if hangs:
        raise ScriptHangs(f"{script.name} did not end in {END_SECONDS:g} s\n{stderr.decode()}")
    return stderr.decode()


async def run_to_completion(script: Path, kubeconfig: Path, *arguments: str) -> CompletedScript:
    """Run a script to its end, in a thread, because starting a process blocks."""
    command, environment = _describe(script, kubeconfig, arguments)
    run = partial(subprocess.run, capture_output=True, text=True, check=False, timeout=RUN_SECONDS)
    done = await asyncio.to_thread(run, command, env=environment)
    return CompletedScript(done.returncode, done.stdout, done.stderr)


def _describe(
    script: Path, kubeconfig: Path, arguments: Iterable[str]
) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment of a script."""
    environment = os.environ | {
        "KUBECONFIG": str(kubeconfig),
        "PYTHONFAULTHANDLER": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "default",  # unclosed sockets write a warning to stderr
    }
    # A file that is no Python script is executable itself.
    command = [sys.executable, str(script)] if script.suffix == ".py" else [str(script)]
    return [*command, *arguments], environment
