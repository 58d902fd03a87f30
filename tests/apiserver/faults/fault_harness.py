"""A real API server, an informer in another process, and a fault between both.

A ``FaultHarness`` has everything that a fault needs: the server's process, a proxy, writes that
don't pass the proxy, the informer's process and its log.
"""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.apiserver.server.server_process import AdminClient, ApiServerProcess, Json
from tests.apiserver.server.tcp_proxy import TcpProxy
from tests.processes import send_signal, start_process

__all__ = ["FaultHarness", "InformerProcess", "run_informer_process", "widget", "write_kubeconfig"]

NAMESPACE = "web"
WIDGETS_AT_START = 120
PADDING = 1500
"""Bytes of each widget at least: a server compresses lists of 128 kB and more."""
POLL = 0.1
"""Seconds between two questions to the informer's process."""


def widget(name: str, size: int) -> Json:
    """Return a widget to write."""
    spec = {"size": size, "colour": "red", "padding": "x" * PADDING}
    head = {"apiVersion": "example.com/v1", "kind": "Widget"}
    return {**head, "metadata": {"name": name}, "spec": spec}


@dataclass
class InformerProcess:
    """A running ``tests.apiserver.programs.informer_process``."""

    process: Process
    log_file: Path

    @property
    def log(self) -> str:
        """The log up to now."""
        return self.log_file.read_text()

    async def ask(self, command: str) -> Any:
        """Send a command, and return its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n".encode())
        await self.process.stdin.drain()
        return await self._read_answer()

    async def state(self) -> dict[str, Any]:
        """Return the state of the informer."""
        found: dict[str, Any] = await self.ask("state")
        return found

    async def wait_for(self, condition: Callable[[dict[str, Any]], bool], seconds: float) -> float:
        """Wait until the state fulfils a condition. Return the seconds that this took."""
        began = time.monotonic()
        async with asyncio.timeout(seconds):
            while not condition(await self.state()):  # noqa: ASYNC110 - another process's
                await asyncio.sleep(POLL)
        return time.monotonic() - began

    async def wait_for_cause(self, cause: str, seconds: float = 30.0) -> None:
        """Wait until the informer has reported a problem with this cause."""
        await self.wait_for(lambda state: cause in state["causes"], seconds)

    async def leave(self) -> Any:
        """End the informer, and return the numbers of what is left."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await self._read_answer()

    async def _read_answer(self) -> Any:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the informer's process has ended:\n{self.log}")
        return json.loads(line)


@asynccontextmanager
async def run_informer_process(
    folder: Path,
    kubeconfig: Path,
    *options: str,
    wrapper: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> AsyncGenerator[InformerProcess]:
    """Run the process of an informer.

    Args:
        folder: for the log.
        kubeconfig: the server and the credentials.
        options: of the process.
        wrapper: a command that runs the command that is appended to it.
        environment: of the process; this process's own by default.
    """
    command = (
        sys.executable,
        "-m",
        "tests.apiserver.programs.informer_process",
        str(kubeconfig),
        *options,
    )
    log_file = folder / "informer.log"
    with log_file.open("wb") as log:
        process = await start_process(
            *wrapper, *command, env=environment, stdin=PIPE, stdout=PIPE, stderr=log
        )
    try:
        yield InformerProcess(process, log_file)
    finally:
        send_signal(process, signal.SIGKILL)
        await process.communicate()


@dataclass
class FaultHarness:
    """The parts of a test of one fault."""

    server: ApiServerProcess
    folder: Path
    proxy: TcpProxy | None = None
    running: InformerProcess | None = None
    written: int = 0
    names: list[str] = field(default_factory=list[str])
    """Widgets that exist."""

    @property
    def informer(self) -> InformerProcess:
        """The process of the informer, which runs."""
        assert self.running is not None
        return self.running

    @property
    def connection(self) -> TcpProxy:
        """The proxy between the informer and the server."""
        assert self.proxy is not None
        return self.proxy

    async def populate(self) -> None:
        """Create the widgets that exist before the informer."""
        self.names = [f"w-{number:03d}" for number in range(WIDGETS_AT_START)]
        async with AdminClient(self.server) as admin:
            for start in range(0, WIDGETS_AT_START, 20):
                names = self.names[start : start + 20]
                await asyncio.gather(*(admin.create(widget(name, 0), NAMESPACE) for name in names))

    async def write(self, count: int = 8) -> None:
        """Change widgets, and delete, create and re-create one each, past the proxy."""
        async with AdminClient(self.server) as admin:
            for name in self.names[:count]:
                self.written += 1
                patch = {"spec": {"size": self.written}}
                await admin.merge_patch(name, patch, namespace=NAMESPACE)
            self.written += 1
            await admin.delete(self.names.pop(), namespace=NAMESPACE)
            await admin.delete(self.names[-1], namespace=NAMESPACE)
            await admin.create(widget(self.names[-1], self.written), NAMESPACE)
            self.names.insert(0, f"new-{self.written:03d}")
            await admin.create(widget(self.names[0], self.written), NAMESPACE)

    async def list_widgets(self) -> dict[str, list[str]]:
        """Return the uid and version of each widget, by key."""
        async with AdminClient(self.server) as admin:
            found = (await admin.list(NAMESPACE))["items"]
        return {
            f"{each['namespace']}/{each['name']}": [each["uid"], each["resourceVersion"]]
            for each in (item["metadata"] for item in found)
        }

    async def wait_until_fresh(self, seconds: float) -> float:
        """Wait until the cache and the handler show the server's state; return the seconds."""
        truth = await self.list_widgets()
        return await self.informer.wait_for(
            lambda state: state["cache"] == truth and state["delivered"] == truth, seconds
        )


def write_kubeconfig(
    file: Path, url: str, authority: bytes | None, *, token_file: Path | None = None, name: str = ""
) -> Path:
    """Write a kubeconfig in one step, and return its path.

    Args:
        file: the file.
        url: of the server.
        authority: the certificate of the authority that signed the server's.
        token_file: the file of a token, if the user has one.
        name: the name in the server's certificate, if the URL has another one.
    """
    data = base64.b64encode(authority or b"").decode()
    cluster = {"server": url, "certificate-authority-data": data}
    cluster |= {"tls-server-name": name} if name else {}
    user = {"tokenFile": str(token_file)} if token_file else {"token": "any"}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(content))
    return temporary.replace(file)
