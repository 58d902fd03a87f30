"""The audit log of example 10 has each change once, however often its process is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from aioinformer.testing import ApiServer
from tests.processes import send_signal, start_process

SCRIPT = Path(__file__).parent.parent.parent / "examples" / "10_audit_log.py"


class Changes:
    """Changes of pods, and the lines that they have in the log."""

    def __init__(self, server: ApiServer) -> None:
        self.random = Random(10)
        self.lines: list[str] = []
        self.deleted_while_down = 0
        self._cluster = server.cluster
        self._names: list[str] = []
        self._created = 0

    def make(self, count: int, *, down: bool = False) -> None:
        """Make a number of random changes."""
        for _ in range(count):
            choice = self.random.random()
            if not self._names or choice < 0.4:
                self._created += 1
                self._names.append(f"web-{self._created}")
                body = {"metadata": {"name": self._names[-1]}}
                self._note(self._cluster.create("pods", body))
                continue
            name = self.random.choice(self._names)
            if choice < 0.75:
                patch = {"metadata": {"labels": {"value": str(self.random.random())}}}
                self._note(self._cluster.merge_patch("pods", name, patch))
            else:
                self._names.remove(name)
                uid = self._cluster.delete("pods", name)["metadata"]["uid"]
                self.lines.append(f"- default/{name} {uid}")
                self.deleted_while_down += down

    def _note(self, written: dict[str, Any]) -> None:
        metadata = written["metadata"]
        uid, version = metadata["uid"], metadata["resourceVersion"]
        self.lines.append(f"+ default/{metadata['name']} {uid} {version}")


@asynccontextmanager
async def running_example(server: ApiServer, path: Path) -> AsyncGenerator[Process]:
    """Run the example in the directory ``path``, and end it by Ctrl-C."""
    environment = os.environ | {"KUBECONFIG": str(server.kubeconfig(path / "config"))}
    command = (sys.executable, "-W", "default", str(SCRIPT))
    process = await start_process(*command, env=environment, cwd=path, stdout=PIPE, stderr=PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(40):
            first = await process.stdout.readline()
            assert first.endswith(b" pods\n"), await process.stderr.read()
            yield process
    finally:
        send_signal(process, signal.SIGINT)
        _, stderr = await process.communicate()
    assert stderr == b""
    assert process.returncode in (0, -signal.SIGKILL)


def read_log(path: Path) -> list[str]:
    return (path / "audit.log").read_text().splitlines()


async def wait_for_lines(path: Path, lines: list[str]) -> None:
    async with asyncio.timeout(30):
        while not set(lines) <= set(read_log(path)):  # noqa: ASYNC110 - the writer is a process
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(2, marks=pytest.mark.clients),
        pytest.param(50, marks=pytest.mark.simulation),
    ],
)
@pytest.mark.timeout(900)
async def test_10_writes_each_change_once_across_kills(tmp_path: Path, kills: int) -> None:
    async with ApiServer() as server:
        changes = Changes(server)
        async with running_example(server, tmp_path):
            changes.make(5)
            await wait_for_lines(tmp_path, changes.lines)
        for _ in range(kills):
            changes.make(changes.random.randrange(10), down=True)
            async with running_example(server, tmp_path) as process:
                for _ in range(changes.random.randrange(60)):
                    changes.make(changes.random.randrange(3))
                    await asyncio.sleep(0.05 * changes.random.random())
                send_signal(process, signal.SIGKILL)
        changes.make(10, down=True)
        async with running_example(server, tmp_path):
            await wait_for_lines(tmp_path, changes.lines)
        log = read_log(tmp_path)
    assert sorted(log) == sorted(changes.lines), "each change once, and nothing else"
    assert changes.deleted_while_down
    order = [line.split()[1:] for line in log if line.startswith("+")]
    for uid in {uid for _, uid, _ in order}:
        versions = [int(version) for _, each, version in order if each == uid]
        assert versions == sorted(versions)
