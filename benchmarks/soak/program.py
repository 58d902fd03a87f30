"""The program under test: informers, listeners that come and go, and a controller.

    python -m benchmarks.soak.program --server URL --seconds N --every N --file FILE

It writes one ``Sample`` each ``--every`` seconds, and an ``Ending`` after its informers have ended.
Streams and a second factory with informers of its own are entered and left all the time, so that
what one of them leaves behind adds up.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec

from aioinformer import (
    Client,
    Controller,
    DeleteReason,
    KubeObject,
    ObjectKey,
    Problem,
    ReconcileContext,
    SharedInformer,
    SharedInformerFactory,
    label_index,
)
from aioinformer import field as json_field
from aioinformer.errors import FetchError
from benchmarks.load.meter import count_sockets, resident
from benchmarks.soak.samples import Ending, Sample
from benchmarks.soak.server import STAMP, STAMP_NAMESPACE

__all__ = ["Program"]

APP_LABEL = "app.kubernetes.io/name"
STREAM_SECONDS = 1.0
FACTORY_EVERY = 20.0
VERIFY_ATTEMPTS = 5
"""Verifications of one informer: the server may discard the version that is compared."""


@dataclass
class Program:
    """The counts of the program, and its factories."""

    client: Client
    latencies: list[float] = field(default_factory=list[float])
    """Seconds of each stamp since the last sample."""
    events: int = 0
    disturbances: int = 0
    restarts: int = 0

    def on_add(self, obj: KubeObject, *, initial: bool) -> None:
        """Count an event."""
        self.events += 1

    def on_update(self, old: KubeObject, new: KubeObject, *, resync: bool) -> None:
        """Count an event, and time a stamp."""
        self.events += 1
        if new.name == STAMP and not resync and (sent := new.annotations.get("sent")):
            self.latencies.append((time.monotonic_ns() - int(sent)) / 1e9)

    def on_delete(self, obj: KubeObject, *, reason: DeleteReason) -> None:
        """Count an event."""
        self.events += 1

    def on_error(self, problem: Problem) -> None:
        """Count a failure."""
        self.disturbances += 1

    async def reconcile(self, key: ObjectKey, ctx: ReconcileContext) -> None:
        """Read the object, as a reconciler does first."""
        if ctx.obj is not None:
            ctx.obj.labels.get(APP_LABEL)
        await asyncio.sleep(0)

    def make_informers(self, informers: SharedInformerFactory) -> list[SharedInformer]:
        """Return informers of the kinds that programs use."""
        pods = informers.informer(
            "pods", indexers={"node": json_field("spec.nodeName"), "app": label_index(APP_LABEL)}
        )
        return [
            pods,
            informers.informer("pods", labels=APP_LABEL, metadata_only=True),
            informers.informer("pods", namespaces=["shop", STAMP_NAMESPACE]),
            informers.informer("deployments"),
            informers.informer("services"),
        ]

    async def run(self, seconds: float, every: float, file: BinaryIO) -> bool:
        """Run everything, and write the samples.

        Returns:
            True if all caches were equal to the server's lists at the end.
        """
        async with SharedInformerFactory(
            self.client, resync=60.0, on_error=self.on_error
        ) as informers:
            each = self.make_informers(informers)
            each[0].add_handler(self)
            await informers.wait_synced(timeout=60)
            async with (
                Controller(each[0], self.reconcile, concurrency=4),
                _running(self._enter_streams(each[0])),
                _running(self._enter_factories()),
            ):
                await self._sample(each, seconds, every, file)
            return all([await _verify(informer) for informer in each])

    async def _sample(
        self, informers: list[SharedInformer], seconds: float, every: float, file: BinaryIO
    ) -> None:
        """Write a sample each ``every`` seconds."""
        clock = asyncio.get_running_loop().time
        start, cpu, events = clock(), time.process_time(), self.events
        for number in range(1, int(seconds / every) + 1):
            await asyncio.sleep(max(0.0, start + number * every - clock()))
            latencies, self.latencies = sorted(self.latencies) or [0.0], []
            used, received = time.process_time() - cpu, self.events - events
            cpu, events = cpu + used, events + received
            sample = Sample(
                time=clock() - start,
                memory=resident(),
                p50=latencies[len(latencies) // 2],
                p99=latencies[len(latencies) * 99 // 100],
                cpu=used / max(received, 1),
                tasks=len(asyncio.all_tasks()),
                sockets=count_sockets(),
                objects=sum(len(informer.lister) for informer in informers),
                events=self.events,
            )
            file.write(msgspec.json.encode(sample) + b"\n")
            file.flush()

    async def _enter_streams(self, informer: SharedInformer) -> None:
        """Enter and leave one stream after the other. Each reads for a second."""
        while True:
            self.restarts += 1
            async with informer.events(limit=1024, overflow="coalesce") as events:
                try:
                    async with asyncio.timeout(STREAM_SECONDS):
                        async for _ in events:
                            self.events += 1
                except TimeoutError:
                    pass

    async def _enter_factories(self) -> None:
        """Enter and leave one factory after the other."""
        while True:
            await asyncio.sleep(FACTORY_EVERY)
            self.restarts += 1
            await self._enter_factory()

    async def _enter_factory(self) -> None:
        async with SharedInformerFactory(self.client) as informers:
            self.make_informers(informers)
            await informers.wait_synced(timeout=60)


@asynccontextmanager
async def _running(work: Coroutine[object, object, None]) -> AsyncGenerator[None]:
    """Run a coroutine in a task for the time of the context. Its failure ends the program."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(work)
        yield
        task.cancel()


async def _verify(informer: SharedInformer) -> bool:
    """Return True if the cache equals the server's objects."""
    for _ in range(VERIFY_ATTEMPTS - 1):
        try:
            return bool(await informer.verify(contents=True, timeout=30))
        except FetchError:
            continue  # a disturbance
    return bool(await informer.verify(contents=True, timeout=30))


async def main() -> None:
    """Run the program of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--every", type=float, required=True)
    parser.add_argument("--file", type=Path, required=True)
    options = parser.parse_args()
    with options.file.open("wb") as file:
        sockets = count_sockets()  # those of the event loop
        async with Client(options.server) as client:
            program = Program(client)
            verified = await program.run(options.seconds, options.every, file)
        # asyncio closes the sockets of connections in the next turns of the loop.
        await asyncio.sleep(1.0)
        ending = Ending(
            tasks=len(asyncio.all_tasks()) - 1,
            sockets=count_sockets() - sockets,
            verified=verified,
            disturbances=program.disturbances,
            restarts=program.restarts,
        )
        file.write(msgspec.json.encode(ending) + b"\n")


if __name__ == "__main__":
    asyncio.run(main())
