"""Members of an election or a group, each in a process of its own."""

from __future__ import annotations

import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from tests.apiserver.server.server_process import ApiServerProcess
from tests.processes import send_signal, start_process

__all__ = ["running_member"]

ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def running_member(
    program: Literal["elector_process", "group_process"], server: ApiServerProcess, identity: str
) -> AsyncGenerator[Process]:
    """Run a program of this folder with that identity, and kill its process at the end."""
    arguments = ("-m", f"tests.apiserver.programs.{program}", str(server.kubeconfig), identity)
    process = await start_process(sys.executable, *arguments, stdout=PIPE, cwd=ROOT)
    try:
        yield process
    finally:
        send_signal(process, signal.SIGKILL)
        await process.communicate()
