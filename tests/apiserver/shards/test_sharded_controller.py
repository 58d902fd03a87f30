"""A sharded controller in three processes on the real server: one is killed, one stopped."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from tests.apiserver.programs.sharded_process import ANNOTATION, LEASE_DURATION
from tests.apiserver.server.built_in_crds import install_leases
from tests.apiserver.server.server_process import AdminClient, ApiServerProcess, Json
from tests.processes import send_signal, start_process

pytestmark = pytest.mark.apiserver

ROOT = Path(__file__).parents[3]
WIDGETS = 40
SLACK = 25.0
"""Seconds for which a busy machine may be late; the times of the group are shorter."""


@dataclass
class Replica:
    """A process, and the reconciles that it has reported: key, begin, and time of the write."""

    process: Process
    reported: list[tuple[str, float, float]] = field(default_factory=list[tuple[str, float, float]])

    async def read(self) -> None:
        """Read its reports until its end."""
        assert self.process.stdout is not None
        while line := (await self.process.stdout.readline()).decode():
            if line.endswith("\n"):
                key, began, sent = line.split()
                self.reported.append((key, float(began), float(sent)))

    def send(self, number: signal.Signals) -> None:
        send_signal(self.process, number)


@asynccontextmanager
async def replica(server: ApiServerProcess, identity: str) -> AsyncGenerator[Replica]:
    """Run a replica in a process of its own, which is killed at the end."""
    arguments = ("-m", "tests.apiserver.programs.sharded_process", str(server.kubeconfig), identity)
    process = await start_process(sys.executable, *arguments, stdout=PIPE, cwd=ROOT)
    found = Replica(process)
    reading = asyncio.create_task(found.read())
    try:
        yield found
    finally:
        send_signal(process, signal.SIGCONT)
        send_signal(process, signal.SIGKILL)
        await asyncio.wait({reading})
        await process.communicate()


def widget(number: int) -> Json:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": f"w{number}", "labels": {"version": "0"}},
    }


async def set_version(admin: AdminClient, version: str) -> None:
    for number in range(WIDGETS):
        await admin.merge_patch(f"w{number}", {"metadata": {"labels": {"version": version}}})


async def wait_reconciled(admin: AdminClient, version: str, *replicas: str, within: float) -> None:
    """Wait until every widget was reconciled in this version, by each of these replicas a part."""
    found: list[str] = []
    try:
        async with asyncio.timeout(within):
            while True:
                items = (await admin.list("default"))["items"]
                found = [
                    each["metadata"].get("annotations", {}).get(ANNOTATION, " ") for each in items
                ]
                owners = {each.split(" ")[0] for each in found}
                if owners == set(replicas) and {each.split(" ")[1] for each in found} == {version}:
                    return
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"not reconciled in version {version}: {found}") from None


def find_overlaps(*reports: list[tuple[str, float, float]]) -> list[str]:
    """Return the reconciles of one key by two replicas that have overlapped."""
    spans = sorted(
        (key, began, sent, number)
        for number, reported in enumerate(reports)
        for key, began, sent in reported
    )
    return [
        f"{key}: {number} from {began} to {sent}, {other} from {begins}"
        for (key, began, sent, number), (same, begins, _, other) in pairwise(spans)
        if key == same and begins < sent and number != other
    ]


@pytest.mark.timeout(240)
async def test_no_object_is_reconciled_by_two_replicas_at_once_and_each_is_reconciled(
    api_server: ApiServerProcess, admin: AdminClient
) -> None:
    await install_leases(api_server)
    for number in range(WIDGETS):
        await admin.create(widget(number))
    async with (
        replica(api_server, "a") as a,
        replica(api_server, "b") as b,
        replica(api_server, "c") as c,
    ):
        await wait_reconciled(admin, "0", "a", "b", "c", within=30 + SLACK)
        c.send(signal.SIGKILL)
        await set_version(admin, "1")
        await wait_reconciled(admin, "1", "a", "b", within=LEASE_DURATION + 5 + SLACK)

        b.send(signal.SIGSTOP)  # in the middle of reconciles
        await set_version(admin, "2")
        await wait_reconciled(admin, "2", "a", within=LEASE_DURATION + 5 + SLACK)
        b.send(signal.SIGCONT)
        await set_version(admin, "3")
        await wait_reconciled(admin, "3", "a", "b", within=LEASE_DURATION + 10 + SLACK)
    assert find_overlaps(a.reported, b.reported, c.reported) == []
    assert {key for key, _, _ in a.reported} == {f"default/w{each}" for each in range(WIDGETS)}
    assert b.reported
    assert c.reported


def test_the_check_finds_overlapping_runs() -> None:
    assert find_overlaps([("w", 1.0, 3.0)], [("w", 2.0, 4.0)]) != []
    assert find_overlaps([("w", 1.0, 3.0), ("v", 2.0, 4.0)], [("w", 3.5, 4.0)]) == []
