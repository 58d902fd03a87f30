"""Measure the workers of one service: with a shared cache file, and with a watch of each.

    python -m benchmarks.features.workers [--workers 4] [--objects 5000] [--rate 500] [--seconds 10]
                                 [--takeovers 20]

The embedded server and the writer run in this process, each worker in a process of its own. A
latency is the time from the write at the server to the call of the handler. For a takeover, the
leader is ended by ``kill -9``; the time is that until another worker has an open watch.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from aioinformer import CacheFile, Client, KubeObject, SharedInformerFactory
from aioinformer.testing import ApiServer
from aioinformer.testing.faults.faults import Fault, RequestVerb
from aioinformer.testing.workload.workload import PodWorkload
from benchmarks.load.processes import ROOT

__all__ = ["Arguments", "Figures", "measure"]

READY_SECONDS = 120.0
"""Seconds for the workers to begin, on a busy machine."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The size of the measurement."""

    workers: int = 4
    objects: int = 5000
    rate: float = 500.0
    """Writes a second."""
    seconds: float = 10.0
    takeovers: int = 20


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one kind of workers."""

    watches: int
    """Watches that the server has served, until the first takeover."""
    lists: int
    """Lists and initial lists after the start, the takeovers included."""
    events: int
    """Calls of the handlers of all workers in the measured time."""
    p50: float
    """Seconds from the server to the handler, of all workers."""
    p99: float
    last_p99: float
    """The same 99th percentile in the worker where it is highest."""
    cpu: tuple[float, ...]
    """CPU time of each worker as a part of the elapsed time; that of the leader is the first."""
    memory: tuple[float, ...]
    """Resident MB of each worker at the end."""
    takeovers: tuple[float, ...]
    """Seconds of each takeover."""
    equal: bool
    """True if all caches were equal to the server's state at the end."""


def _state_digest(pods: list[tuple[str, str]]) -> str:
    return hashlib.sha256(json.dumps(sorted(pods)).encode()).hexdigest()


# -- a worker ------------------------------------------------------------------------------------


class Latencies:
    """A handler that measures how old each change is."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def on_update(self, old: KubeObject, new: KubeObject, *, resync: bool) -> None:
        """Take the time since the write."""
        del old, resync
        if sent := new.annotations.get("sent"):
            self.seconds.append(time.time() - float(sent))


def _memory() -> float:
    """Return the resident memory of this process in MB."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def run_worker(server: str, path: Path | None) -> None:
    """Run an informer of pods, and answer each line of stdin by a line about it."""
    cache = None if path is None else CacheFile(path, shared=True)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    latencies = Latencies()
    async with (
        Client(server) as client,
        SharedInformerFactory(client, cache=cache) as informers,
    ):
        pods = informers.informer("pods")
        pods.add_handler(latencies)
        await pods.wait_synced(timeout=READY_SECONDS)
        while line := await reader.readline():
            answer: dict[str, Any] = {"state": pods.health.state, "at": time.time()}
            if line == b"report\n":
                objects = pods.lister.list()
                answer |= {
                    "problem": pods.health.cache_problem,
                    "version": pods.health.resource_version,
                    "digest": _state_digest([(str(o.key), o.resource_version) for o in objects]),
                    "memory": _memory(),
                    "cpu": time.process_time(),
                    "latencies": latencies.seconds,
                }
                latencies.seconds = []
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


# -- the measurement -----------------------------------------------------------------------------


class Worker:
    """A worker, as the measurement sees it."""

    def __init__(self, process: Process) -> None:
        self.process = process

    async def ask(self, line: str) -> dict[str, Any]:
        """Return the worker's answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n".encode())
        answer: dict[str, Any] = json.loads(await self.process.stdout.readline())
        return answer

    async def end(self) -> None:
        """End the worker as a program ends that leaves its factory."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        await self.process.wait()

    async def kill(self) -> None:
        """End the worker by ``kill -9``."""
        os.kill(self.process.pid, signal.SIGKILL)
        await self.process.wait()


class Service:
    """A server that changes, and the workers of one service."""

    def __init__(self, server: ApiServer, arguments: Arguments, path: Path | None) -> None:
        self.server = server
        self.arguments = arguments
        self.path = path
        self.workers: list[Worker] = []
        self.watches = count_requests(server, "watch")

    async def start_worker(self) -> None:
        """Start a worker, and wait until its cache is synced."""
        job = json.dumps([self.server.url, str(self.path or "")])
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.features.workers", "--job", job),
            cwd=ROOT,
            stdin=PIPE,
            stdout=PIPE,
            limit=2**26,
        )
        self.workers.append(worker := Worker(process))
        await worker.ask("state")

    async def write(self) -> None:
        """Change pods at the given rate."""
        cluster, random = self.server.cluster, Random(1)
        names = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in self.pods()]
        loop = asyncio.get_running_loop()
        began, written = loop.time(), 0
        while True:
            due = int((loop.time() - began) * self.arguments.rate)
            for _ in range(due - written):
                namespace, name = random.choice(names)
                patch = {"metadata": {"annotations": {"sent": f"{time.time():.6f}"}}}
                cluster.merge_patch("pods", name, patch, namespace=namespace)
            written = due
            await asyncio.sleep(0.002)

    def pods(self) -> list[dict[str, Any]]:
        """Return the server's pods."""
        return [dict(pod) for pod in self.server.cluster.objects("pods")]

    def digest(self) -> str:
        """Return a digest of the server's state."""
        metadata = [pod["metadata"] for pod in self.pods()]
        return _state_digest(
            [(f"{each['namespace']}/{each['name']}", each["resourceVersion"]) for each in metadata]
        )

    async def takeover(self) -> float:
        """Kill the leader. Return the seconds until another worker watches."""
        states = [(await each.ask("state"))["state"] for each in self.workers]
        leader = self.workers.pop(states.index("watching"))
        began = time.time()
        await leader.kill()
        while True:
            for worker in self.workers:
                answer = await worker.ask("state")
                if answer["state"] == "watching":
                    return float(answer["at"]) - began
            await asyncio.sleep(0.005)

    async def agrees(self) -> bool:
        """Wait until all caches are equal to the server's state. Return False if they are not."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            reports = [await each.ask("report") for each in self.workers]
            if all(each["digest"] == self.digest() for each in reports):
                return True
            await asyncio.sleep(0.1)
        return False


def count_requests(server: ApiServer, verb: RequestVerb) -> Fault:
    """Return a fault without an effect, whose ``hits`` are the requests from now on."""
    return server.faults.latency(1e-9, verb=verb)


@asynccontextmanager
async def running_service(arguments: Arguments, path: Path | None) -> AsyncGenerator[Service]:
    """Run a server with pods and the workers."""
    async with ApiServer() as server:
        workload = PodWorkload(server.cluster, objects=arguments.objects, seed=0)
        while not workload.populate(500):  # noqa: ASYNC110 - a turn of the loop between the steps
            await asyncio.sleep(0)
        service = Service(server, arguments, path)
        try:
            for _ in range(arguments.workers):
                await service.start_worker()
            yield service
        finally:
            for worker in service.workers:
                await worker.end()


async def measure_service(arguments: Arguments, path: Path | None) -> Figures:
    """Return the figures of workers that share ``path``, or that have a watch each."""
    async with running_service(arguments, path) as service:
        watches = service.watches.hits
        lists = [
            count_requests(service.server, "list"),
            count_requests(service.server, "watch_list"),
        ]
        writer = asyncio.create_task(service.write())
        try:
            await asyncio.sleep(1.0)
            before = [await each.ask("report") for each in service.workers]
            await asyncio.sleep(arguments.seconds)
            after = [await each.ask("report") for each in service.workers]
            takeovers: list[float] = []
            for _ in range(arguments.takeovers if path is not None else 0):
                takeovers.append(await service.takeover())
                await service.start_worker()
        finally:
            writer.cancel()
        equal = await service.agrees()
    return Figures(
        watches=watches,
        lists=sum(each.hits for each in lists),
        equal=equal,
        takeovers=tuple(takeovers),
        **_summarize(before, after),
    )


def _summarize(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of the measured time."""
    every = sorted(seconds for each in after for seconds in each["latencies"])
    own = [sorted(each["latencies"]) for each in after]
    pairs = list(zip(before, after, strict=True))
    return {
        "events": len(every),
        "p50": every[len(every) // 2],
        "p99": every[len(every) * 99 // 100],
        "last_p99": max(each[len(each) * 99 // 100] for each in own),
        "cpu": tuple((b["cpu"] - a["cpu"]) / (b["at"] - a["at"]) for a, b in pairs),
        "memory": tuple(each["memory"] for each in after),
    }


async def measure(arguments: Arguments) -> dict[str, Figures]:
    """Return the figures of both kinds of workers."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            "a watch each": await measure_service(arguments, None),
            "a shared file": await measure_service(arguments, Path(folder) / "cache.db"),
        }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    usual = Arguments()
    parser.add_argument("--workers", type=int, default=usual.workers)
    parser.add_argument("--objects", type=int, default=usual.objects)
    parser.add_argument("--rate", type=float, default=usual.rate)
    parser.add_argument("--seconds", type=float, default=usual.seconds)
    parser.add_argument("--takeovers", type=int, default=usual.takeovers)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        server, path = json.loads(given.job)
        asyncio.run(run_worker(server, Path(path) if path else None))
        return
    arguments = Arguments(given.workers, given.objects, given.rate, given.seconds, given.takeovers)
    for name, each in asyncio.run(measure(arguments)).items():
        print(f"{name}: {each.watches} watches; {each.events / arguments.seconds:.0f} calls/s")
        print(
            f"  server to handler: p50 {each.p50 * 1000:.0f} ms, p99 {each.p99 * 1000:.0f} ms, "
            f"p99 of the slowest worker {each.last_p99 * 1000:.0f} ms"
        )
        print(f"  CPU of a core: {', '.join(f'{cpu:.1%}' for cpu in each.cpu)}")
        print(f"  resident MB: {', '.join(f'{memory:.0f}' for memory in each.memory)}")
        print(f"  caches equal to the server: {each.equal}; lists after the start: {each.lists}")
        if each.takeovers:
            slowest, count = max(each.takeovers), len(each.takeovers)
            median = sorted(each.takeovers)[count // 2]
            print(f"  {count} takeovers: median {median:.2f} s, slowest {slowest:.2f} s")


if __name__ == "__main__":
    main()
