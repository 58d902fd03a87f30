"""Child processes of asyncio: start and signals, on machines that are busy."""

from __future__ import annotations

import asyncio
import math
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

__all__ = ["send_signal", "start_process"]


async def start_process(
    *command: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | IO[bytes] | None = None,
) -> Process:
    """Start a process as ``asyncio.create_subprocess_exec`` does.

    The step that starts the process blocks the loop until the child process executes its program.
    On a busy machine the child waits for a CPU first, so that this step has no limit here.
    """
    loop = asyncio.get_running_loop()
    limit, loop.slow_callback_duration = loop.slow_callback_duration, math.inf
    try:
        return await asyncio.create_subprocess_exec(
            *command, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr
        )
    finally:
        loop.slow_callback_duration = limit


def send_signal(process: Process, number: signal.Signals) -> None:
    """Send a signal to a process, and do nothing if the process has ended.

    ``Process.send_signal``, ``kill`` and ``terminate`` of Python 3.11 call ``Popen.poll`` first.
    For a process that has just ended, ``poll`` collects the exit status before the thread of
    asyncio's child watcher does. The watcher then finds no child, logs "Unknown child process"
    and reports the status 255. ``os.kill`` leaves the status to the watcher.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
