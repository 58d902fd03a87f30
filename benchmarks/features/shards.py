"""Replicas that share one cluster's objects by shards: CPU, memory, and the time of a takeover.

    python -m benchmarks.features.shards [--replicas 1 2 4 8] [--objects 50000] [--events 20000]
                                [--rate 2000] [--lease-duration 15] [--no-gate] [--real]

The server is the embedded API server; with ``--real``, the API server in Go with etcd of
``tests/apiserver``, which needs Go for its first build. The objects are ConfigMaps, or custom
resources on the real server, which has no built-in ones. Each replica is a controller on a
``ShardGroup`` in a process of its own. The changes begin when all objects are reconciled; after
them, one replica is killed by SIGKILL. CPU time is that of the replica's process, so that other
processes don't influence the figures; the times of the takeover are wall time. Without the gate the
server sends every object and change to each replica, as servers do by default.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from aioinformer import Client, Controller, ObjectKey, ReconcileContext, Resource, ShardGroup
from aioinformer.testing import ApiServer, Cluster, Features
from benchmarks.features.servers import cpu_seconds
from benchmarks.load.processes import ROOT, MeasurementFailed

__all__ = ["REAL_SIZE", "Arguments", "GroupFigures", "Report", "main", "measure", "table"]

LIMIT = 300
"""Seconds for one step of a measurement."""
WRITERS = 32
"""Requests at a time that create and change the objects of the real server."""
INTERVAL = 0.25
"""Seconds between two reports of a replica."""
PAYLOAD = "x" * 700
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
"""The objects of the real server."""
SHARDS = 64
PACE = 0.02
"""Seconds between two batches of changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The size of the measurement."""

    replicas: Sequence[int] = (1, 2, 4, 8)
    objects: int = 50_000
    events: int = 20_000
    """Changes of random objects."""
    rate: int = 2000
    """Changes a second."""
    gate: bool = True
    """True for a server that selects shards (``ShardedListAndWatch``)."""
    lease_duration: float = 15.0
    real: bool = False
    """True for the API server in Go."""


REAL_SIZE = Arguments(objects=20_000, events=5_000, rate=500, real=True)
"""The size that the real server holds on two cores: etcd and the server write about a thousand
objects a second while nothing else runs, and eight replicas run on the same cores."""


class Report(Struct):
    """The state of one replica."""

    objects: int
    shards: int
    events: int
    """Changes that were delivered."""
    idle: bool
    """True if no key waits to be reconciled. A key waits some time after its object was cached."""
    reconciles: int
    reconciled_at: float
    """The time of the last reconcile, by the system's monotonic clock."""


class GroupFigures(Struct):
    """The figures of one number of replicas."""

    replicas: int
    sync_cpu: float
    """Seconds of CPU time of a replica until all objects were reconciled, on average."""
    event_cpu: float
    """Microseconds of CPU time of a replica for each change in the cluster, on average."""
    total_event_cpu: float
    """The same of all replicas together."""
    memory: float
    """Resident MB of a replica, on average."""
    total_memory: float
    owned: float | None
    """Seconds from the death of a replica until other replicas read all of its shards."""
    takeover: float | None
    """Seconds from the death of a replica to the last reconcile of its objects."""


# -- the servers ---------------------------------------------------------------------------------


async def serve(objects: int, *, gate: bool) -> None:
    """Serve a cluster of ConfigMaps, and change them as the lines of stdin say."""
    cluster = Cluster(features=Features(sharding=gate))
    for number in range(objects):
        body = {"metadata": {"name": f"c{number}"}, "data": {"payload": PAYLOAD}}
        cluster.create("configmaps", body, namespace="default")
    async with ApiServer(cluster) as server:
        print(server.url, flush=True)
        lines = await _stdin_lines()
        while line := await lines.readline():
            events, rate = map(int, line.split())
            await _change(cluster, objects, events, rate)
            print("done", flush=True)


async def _change(cluster: Cluster, objects: int, events: int, rate: int) -> None:
    """Change objects in turn, at a rate that a slow machine may not reach."""
    loop, batch = asyncio.get_running_loop(), max(1, int(rate * PACE))
    due = loop.time()
    for start in range(0, events, batch):
        for number in range(start, min(start + batch, events)):
            patch = {"data": {"after": str(cluster.resource_version)}}  # never the same again
            cluster.merge_patch("configmaps", f"c{number * 7 % objects}", patch)
        due += PACE
        await asyncio.sleep(max(0.0, due - loop.time()))


async def write(kubeconfig: str, objects: int) -> None:
    """Create the objects of the real server, and change them as the lines of stdin say."""
    async with Client.connect(kubeconfig=Path(kubeconfig)) as client:
        widgets = client.api(WIDGETS, namespace="default")

        async def create(number: int) -> None:
            body = {"metadata": {"name": f"c{number}"}, "data": {"payload": PAYLOAD}}
            await widgets.create(body)

        async def change(number: int) -> None:
            patch = {"data": {"after": time.monotonic()}}  # never the same again
            await widgets.patch(f"c{number * 7 % objects}", patch)

        await _at_rate(create, objects, float("inf"))
        print(kubeconfig, flush=True)
        lines = await _stdin_lines()
        while line := await lines.readline():
            events, rate = map(int, line.split())
            await _at_rate(change, events, rate)
            print("done", flush=True)


async def _at_rate(send: Callable[[int], Awaitable[None]], count: int, rate: float) -> None:
    """Send requests with several workers, at a rate that a slow server may not reach."""
    start, numbers = time.monotonic(), iter(range(count))

    async def work() -> None:
        for number in numbers:
            await asyncio.sleep(max(0.0, start + number / rate - time.monotonic()))
            await send(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(WRITERS):
            group.create_task(work())


@asynccontextmanager
async def _real_server(*, gate: bool) -> AsyncGenerator[Path]:
    """Run the real server with Leases and widgets, and return its kubeconfig."""
    from tests.apiserver.server.admin import WIDGET_CRD, install_crd
    from tests.apiserver.server.build import build
    from tests.apiserver.server.built_in_crds import install_leases
    from tests.apiserver.server.server_process import ApiServerProcess

    gates = f"--feature-gates=ShardedListAndWatch={str(gate).lower()}"
    with tempfile.TemporaryDirectory() as folder:
        server = ApiServerProcess(build(), Path(folder) / "data", gates)
        await server.start()
        try:
            await install_crd(server, WIDGET_CRD)
            await install_leases(server)
            yield server.kubeconfig
        finally:
            await server.kill()


async def _stdin_lines() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    return reader


# -- a replica -----------------------------------------------------------------------------------


async def replicate(address: str, name: str, identity: str, lease_duration: float) -> None:
    """Reconcile the objects of this replica's shards, and report on each line of stdin.

    Args:
        address: the URL of the embedded server, or the kubeconfig of the real one.
        name: the name of the group.
        identity: the name of this replica.
        lease_duration: seconds.
    """
    embedded = address.startswith("http")
    reconciled_at, events, reconciles = 0.0, 0, 0

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        nonlocal reconciled_at, reconciles
        reconciled_at = time.monotonic()
        reconciles += 1

    async with (
        Client(address) if embedded else Client.connect(kubeconfig=Path(address)) as client,
        ShardGroup(
            client,
            name,
            namespace="default",
            identity=identity,
            shards=SHARDS,
            lease_duration=lease_duration,
            renew_deadline=lease_duration * 2 / 3,
            retry_period=lease_duration * 2 / 15,
        ) as group,
    ):
        objects = group.informer("configmaps" if embedded else WIDGETS)

        @objects.on_update
        def count(old: object, new: object, *, resync: bool) -> None:
            nonlocal events
            events += 1

        async with Controller(objects, reconcile) as controller:
            lines = await _stdin_lines()
            while await lines.readline():
                health = controller.health
                report = Report(
                    objects=objects.health.objects,
                    shards=len(objects.health.shards),
                    events=events,
                    idle=not health.waiting and not health.running,
                    reconciles=reconciles,
                    reconciled_at=reconciled_at,
                )
                print(msgspec.json.encode(report).decode(), flush=True)


# -- the measurement -----------------------------------------------------------------------------


@asynccontextmanager
async def _running(*arguments: object) -> AsyncGenerator[Process]:
    """Run this module in a process of its own, which is killed at the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.features.shards", *map(str, arguments)),
        stdin=PIPE,
        stdout=PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def _ask(process: Process, line: str) -> bytes:
    """Send a line to a process, and return its answer."""
    if process.stdin is None or process.stdout is None:
        raise AssertionError("the process has pipes")
    process.stdin.write(f"{line}\n".encode())
    answer = await process.stdout.readline()
    if not answer:
        raise MeasurementFailed(f"process {process.pid} ended")
    return answer


async def _until(
    replicas: Sequence[Process], reached: Callable[[Sequence[Report]], bool]
) -> list[Report]:
    """Ask replicas for reports until a condition holds."""
    async with asyncio.timeout(LIMIT):
        while True:
            lines = [await _ask(each, "") for each in replicas]
            reports = [msgspec.json.decode(line, type=Report) for line in lines]
            if reached(reports):
                return reports
            await asyncio.sleep(INTERVAL)


def _has_all(objects: int, reconciles: int) -> Callable[[Sequence[Report]], bool]:
    """Return a test that all replicas have shards, cache all objects together, and have reconciled
    that often, and all that they know.
    """
    return lambda reports: (
        sum(each.objects for each in reports) == objects
        and sum(each.reconciles for each in reports) >= reconciles
        and sum(each.shards for each in reports) == SHARDS
        and all(each.idle and each.shards for each in reports)
    )


def _is_idle(reports: Sequence[Report]) -> bool:
    return all(each.idle for each in reports)


def _has_all_shards(reports: Sequence[Report]) -> bool:
    return sum(each.shards for each in reports) == SHARDS


async def measure_group(
    address: str, writer: Process, number: int, given: Arguments
) -> GroupFigures:
    """Return the figures of one number of replicas.

    Raises:
        MeasurementFailed: a process ended.
        TimeoutError: a step took too long.
    """
    async with AsyncExitStack() as stack:
        replicas = [
            await stack.enter_async_context(
                _running("replica", address, f"group-{number}", f"r{index}", given.lease_duration)
            )
            for index in range(number)
        ]
        await _until(replicas, _has_all(given.objects, given.objects))
        synced = [cpu_seconds(each.pid) for each in replicas]
        await _ask(writer, f"{given.events} {given.rate}")
        await _until(replicas, lambda reports: sum(each.events for each in reports) == given.events)
        changed = [cpu_seconds(each.pid) for each in replicas]
        memory = [_resident(each.pid) for each in replicas]
        owned = takeover = None
        if number > 1:
            dead, *others = await _until(replicas, _is_idle)
            reconciles = dead.objects + sum(each.reconciles for each in others)
            killed_at = time.monotonic()
            replicas[0].kill()
            await _until(replicas[1:], _has_all_shards)
            owned = time.monotonic() - killed_at
            reports = await _until(replicas[1:], _has_all(given.objects, reconciles))
            takeover = max(each.reconciled_at for each in reports) - killed_at
    used = [after - before for before, after in zip(synced, changed, strict=True)]
    return GroupFigures(
        replicas=number,
        sync_cpu=sum(synced) / number,
        event_cpu=sum(used) / number / given.events * 1e6,
        total_event_cpu=sum(used) / given.events * 1e6,
        memory=sum(memory) / number,
        total_memory=sum(memory),
        owned=owned,
        takeover=takeover,
    )


def _resident(process: int) -> float:
    """Return the resident MB of a process."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise MeasurementFailed(f"process {process} has no memory: it has ended")


async def measure(given: Arguments) -> list[GroupFigures]:
    """Measure each number of replicas on one server, and return the figures."""
    async with AsyncExitStack() as stack:
        if given.real:
            kubeconfig = await stack.enter_async_context(_real_server(gate=given.gate))
            arguments: tuple[object, ...] = ("writer", kubeconfig, given.objects)
        else:
            arguments = ("server", given.objects, "gate" if given.gate else "no-gate")
        writer = await stack.enter_async_context(_running(*arguments))
        if writer.stdout is None:
            raise AssertionError("the process has pipes")
        async with asyncio.timeout(LIMIT):
            address = (await writer.stdout.readline()).decode().strip()
        if not address:
            raise MeasurementFailed("the objects could not be created")
        figures: list[GroupFigures] = []
        for number in given.replicas:
            figures.append(await measure_group(address, writer, number, given))
            print(f"measured {figures[-1]}", file=sys.stderr, flush=True)
        return figures


def table(figures: Sequence[GroupFigures]) -> str:
    """Return the figures as a table in Markdown."""
    lines = [
        "| replicas | sync, CPU s a replica | CPU µs a change: a replica, all "
        "| MB a replica, all | kill to new owners, last reconcile, s |",
        "|---|---|---|---|---|",
    ]
    for each in figures:
        takeover = "-" if each.takeover is None else f"{each.owned:.1f}, {each.takeover:.1f}"
        lines.append(
            f"| {each.replicas} | {each.sync_cpu:.1f} | {each.event_cpu:.0f}, "
            f"{each.total_event_cpu:.0f} | {each.memory:.0f}, {each.total_memory:.0f} "
            f"| {takeover} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the command, or a process of a measurement."""
    role, rest = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if role == "server":
        asyncio.run(serve(int(rest[0]), gate=rest[1] == "gate"))
    elif role == "writer":
        asyncio.run(write(rest[0], int(rest[1])))
    elif role == "replica":
        asyncio.run(replicate(rest[0], rest[1], rest[2], float(rest[3])))
    else:
        print(table(asyncio.run(measure(_parse()))))


def _parse() -> Arguments:
    default = REAL_SIZE if "--real" in sys.argv else Arguments()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.features.shards",
        description="Measure replicas that share the objects of a cluster by shards.",
    )
    parser.add_argument("--replicas", type=int, nargs="+", default=default.replicas)
    parser.add_argument("--objects", type=int, default=default.objects)
    parser.add_argument("--events", type=int, default=default.events)
    parser.add_argument("--rate", type=int, default=default.rate, help="changes a second")
    parser.add_argument(
        "--lease-duration", type=float, default=default.lease_duration, help="seconds"
    )
    parser.add_argument(
        "--no-gate", dest="gate", action="store_false", help="a server that selects no shards"
    )
    real = REAL_SIZE
    size = f"{real.objects:,} objects and {real.events:,} changes at {real.rate} a second"
    parser.add_argument(
        "--real", action="store_true", help=f"the API server in Go with etcd; by default {size}"
    )
    found: dict[str, Any] = vars(parser.parse_args())
    return Arguments(**found)


if __name__ == "__main__":
    main()
