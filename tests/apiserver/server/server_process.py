"""The process of the API server: start, kill and restart it from asyncio.

A test can treat its server as badly as production does: kill it with SIGKILL and start it again on
the same port with the same data. `build.py` builds the server, and `admin.py` sends requests to it.
"""

import asyncio
import contextlib
import signal
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from tests.apiserver.server.admin import (
    AGGREGATED,
    WIDGET_CRD,
    WIDGETS,
    AdminClient,
    ApiError,
    Json,
    Resource,
    all_lists_succeed,
    install_crd,
    wait_until,
)
from tests.apiserver.server.build import BuildFailed, BuildUnavailable, build
from tests.processes import send_signal, start_process

__all__ = [
    "AGGREGATED",
    "WIDGETS",
    "WIDGET_CRD",
    "AdminClient",
    "ApiError",
    "ApiServerProcess",
    "BuildFailed",
    "BuildUnavailable",
    "Json",
    "Resource",
    "ServerFailed",
    "build",
    "install_crd",
    "wait_until",
]

# Below the minute that a test may take, so that the error of this module, which contains the
# server's output, is raised first.
READY_SECONDS = 45.0
STOP_SECONDS = 15.0


class ServerFailed(Exception):
    """The server did not start. The message ends with the end of its stderr."""


class ApiServerProcess:
    """A server with one data directory, and at most one process at a time."""

    def __init__(self, binary: Path, data_dir: Path, *arguments: str) -> None:
        self.data_dir = data_dir
        self.kubeconfig = data_dir / "kubeconfig"
        self.ca_file = data_dir / "ca.crt"
        self.url = ""
        self._command = (str(binary), "--data-dir", str(data_dir), *arguments)
        self._log = data_dir / "stderr.log"
        self._process: Process | None = None

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    async def start(self) -> None:
        """Start the server, on the previous port if any, and wait until it serves lists."""
        if self._process is not None:
            raise RuntimeError("the server is running already")
        async with contextlib.AsyncExitStack() as undo:
            undo.push_async_callback(self.kill)
            await self._start_until_ready()
            undo.pop_all()

    async def kill(self) -> None:
        """Send SIGKILL, so that connections are not closed and no data is flushed; idempotent."""
        process, self._process = self._process, None
        if process is not None:
            await _reap(process)

    def pause(self) -> None:
        """Send SIGSTOP: until `resume`, connections stay open without responses."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Send SIGCONT."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None:
            raise RuntimeError("the server is not running")
        send_signal(self._process, number)

    async def restart(self) -> None:
        """Kill the server if it runs, and start it with the same data on the same port."""
        await self.kill()
        await self.start()

    async def stop(self) -> None:
        """Send SIGTERM, and SIGKILL if the server does not end in time; idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        send_signal(process, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        await _reap(process)

    async def _start_until_ready(self) -> None:
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._spawn()
                await wait_until(lambda: all_lists_succeed(self))
        except (TimeoutError, ServerFailed) as error:
            reason = str(error) or f"not ready within {READY_SECONDS:.0f} seconds"
            raise ServerFailed(f"{reason}\n{self._log_tail()}") from error

    async def _spawn(self) -> None:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        port = self.url.rpartition(":")[2] or "0"
        options = ("--port", port, "--kubeconfig", str(self.kubeconfig), "--exit-with-stdin")
        with self._log.open("ab") as log:
            self._process = await start_process(
                *self._command, *options, stdin=PIPE, stdout=PIPE, stderr=log
            )
        assert self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode()
        if not line.startswith("listening https://"):
            raise ServerFailed(f"the server said {line!r} instead of where it listens")
        self.url = line.split()[1]

    def _log_tail(self) -> str:
        if not self._log.exists():
            return "(it wrote nothing to stderr)"
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-40:])


async def _reap(process: Process) -> None:
    send_signal(process, signal.SIGKILL)
    # Unlike wait(), this reads the pipes to their ends, after which asyncio closes the transports.
    await process.communicate()
