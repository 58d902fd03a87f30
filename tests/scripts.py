"""Scripts in processes of their own, as a reader of the README runs them."""

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


@dataclass(frozen=True, slots=True)
class Ended:
    """A script that has ended."""

    status: int
    output: str
    complaints: str
    """What it wrote to stderr."""


class Script:
    """A script that runs, or has."""

    def __init__(self, output: asyncio.StreamReader) -> None:
        self._output = output
        self.complaints = ""
        """What it wrote to stderr; known when it has ended."""

    async def line(self) -> bytes:
        """Its next line on stdout."""
        return await self._output.readline()


@asynccontextmanager
async def running(
    script: Path, server: ApiServer, tmp_path: Path, *arguments: str
) -> AsyncGenerator[Script]:
    """A script that runs against the server until the block ends, by Ctrl-C."""
    process = await _start(script, server.kubeconfig(tmp_path / "config"), arguments)
    assert process.stdout is not None
    run = Script(process.stdout)
    try:
        async with asyncio.timeout(20):
            yield run
    finally:
        process.send_signal(signal.SIGINT)
        _, complaints = await process.communicate()
        run.complaints = complaints.decode()


async def ended(script: Path, kubeconfig: Path, *arguments: str) -> Ended:
    """Run a script to its end."""
    process = await _start(script, kubeconfig, arguments)
    async with asyncio.timeout(20):
        output, complaints = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, output.decode(), complaints.decode())


async def _start(
    script: Path, kubeconfig: Path, arguments: Iterable[str]
) -> asyncio.subprocess.Process:
    environment = os.environ | {"KUBECONFIG": str(kubeconfig), "PYTHONUNBUFFERED": "1"}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(script),
        *arguments,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
