"""Signals to child processes of asyncio that may just have ended."""

from __future__ import annotations

import os
import signal
from asyncio.subprocess import Process
from contextlib import suppress


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
