"""Measure the worker processes of one service, each of which has a watch of its own.

    python -m benchmarks.features.workers [--workers 1 2 4] [--objects 10000] [--rate 200]
                                          [--seconds 30]

A load server in a process of its own sends pods of 3.3 kB and changes of random pods to each
worker. A worker has one informer with one handler. CPU time counts, since other processes influence
wall time.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from aioinformer import Client, KubeObject, SharedInformerFactory
from benchmarks.contestants.ours import release
from benchmarks.load.meter import resident
from benchmarks.load.pods import Dataset
from benchmarks.load.processes import PACED, ROOT, MeasurementFailed, machine_name, serving
from benchmarks.load.scratch import scratch

__all__ = ["Worker", "measure"]

LIMIT = 300
"""Seconds for the workers to begin, on a busy machine."""


class Worker(Struct):
    """The figures of one worker."""

    sync_cpu: float
    """CPU seconds of the process until its informer was synced, without its imports."""
    load: float
    """CPU seconds for each second of the changes."""
    memory: int
    """Resident bytes at the end."""
    events: int
    """Calls of the handler in the measured time."""


class Count:
    """A handler that counts the changes."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.events = 0

    def on_update(self, old: KubeObject, new: KubeObject, *, resync: bool) -> None:
        """Count a change."""
        del old, new, resync
        self.events += 1
        self.began.set()


async def run_worker(server: str, seconds: float) -> Worker:
    """Run an informer of pods until changes have arrived for some seconds."""
    cpu, handler = time.process_time(), Count()
    async with Client(server) as client, SharedInformerFactory(client) as informers:
        informers.informer("pods").add_handler(handler)
        await informers.wait_synced(timeout=LIMIT)
        sync_cpu = time.process_time() - cpu
        print("synced", flush=True)
        await handler.began.wait()
        wall, cpu, events = time.perf_counter(), time.process_time(), handler.events
        await asyncio.sleep(seconds)
        load = (time.process_time() - cpu) / (time.perf_counter() - wall)
        return Worker(sync_cpu, load, resident(), handler.events - events)


async def measure(count: int, folder: Path, options: Sequence[str], seconds: float) -> list[Worker]:
    """Return the figures of ``count`` workers on one server.

    Args:
        count: the number of workers.
        folder: the dataset.
        options: the pods, events and rate of the load server.
        seconds: the seconds for which the changes are measured.
    """
    with serving(folder, *options, program=PACED) as server:
        command = ("-m", "benchmarks.features.workers", "--job", server, "--seconds", str(seconds))
        workers = [
            await asyncio.create_subprocess_exec(sys.executable, *command, cwd=ROOT, stdout=PIPE)
            for _ in range(count)
        ]
        async with asyncio.timeout(LIMIT + seconds):
            for worker in workers:
                await _read_line(worker)
            await release(server)
            found = [msgspec.json.decode(await _read_line(each), type=Worker) for each in workers]
            for worker in workers:
                await worker.wait()
        return found


async def _read_line(worker: Process) -> bytes:
    if worker.stdout is None or not (line := await worker.stdout.readline()):
        raise MeasurementFailed("a worker has ended")
    return line


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        print(msgspec.json.encode(asyncio.run(run_worker(given.job, given.seconds))).decode())
        return
    events = int(given.rate * (given.seconds + 5))
    options = [f"--pods={given.objects}", f"--events={events}", f"--rate={given.rate}"]
    print(f"{given.objects} pods, {given.rate} changes/s, {machine_name()}\n")
    print(
        "| workers | CPU to sync, s each | CPU of a core: each, all | MB: each, all | changes/s |"
    )
    print("|---|---|---|---|---|")
    with scratch() as folder:
        Dataset.write(folder, given.objects, 0)
        for count in given.workers:
            found = asyncio.run(measure(count, folder, options, given.seconds))
            sync = sum(each.sync_cpu for each in found) / count
            load, memory = sum(each.load for each in found), sum(each.memory for each in found)
            changes = sum(each.events for each in found) / count / given.seconds
            print(
                f"| {count} | {sync:.2f} | {load / count:.1%}, {load:.1%} "
                f"| {memory / count / 1e6:.0f}, {memory / 1e6:.0f} | {changes:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
