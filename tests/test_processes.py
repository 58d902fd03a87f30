"""Signals to processes that end at the same moment."""

from __future__ import annotations

import signal
import sys
from asyncio.subprocess import PIPE, Process

import pytest

from tests.processes import send_signal, start_process


async def start(code: str) -> Process:
    return await start_process(sys.executable, "-Sc", code, stdout=PIPE)


async def test_a_signal_leaves_the_status_of_a_process_that_is_ending_to_asyncio(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # The closed stdout announces the end, so that the signals meet the process as it ends.
    processes = [await start("raise SystemExit(3)") for _ in range(5)]
    for process in processes:
        assert process.stdout is not None
        await process.stdout.read()
        for _ in range(1000):
            send_signal(process, signal.SIGCONT)
    assert [await process.wait() for process in processes] == [3] * len(processes)
    assert caplog.text == ""


async def test_a_signal_ends_a_running_process() -> None:
    process = await start("import signal; signal.pause()")
    send_signal(process, signal.SIGKILL)
    assert await process.wait() == -signal.SIGKILL
    send_signal(process, signal.SIGKILL)
