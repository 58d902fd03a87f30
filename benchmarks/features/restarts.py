"""Measure a restart with a cache file beside ones without, and the cost of the file under changes.

    python -m benchmarks.features.restarts [--objects 50000] [--rate 1000] [--seconds 10]
                                           [--settle 3] [--no-peer]

The server and each measured program are processes of their own, and the programs run one after the
other on the same server. CPU time counts, since other processes influence wall time. client-go,
which keeps no file, is a row of the table where Go is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from aioinformer import CacheFile, Client, SharedInformerFactory
from aioinformer.metrics import Metrics
from benchmarks.contestants.clientgo import CLIENT_GO
from benchmarks.contestants.compiled import PeerMissing
from benchmarks.load.processes import ROOT, MeasurementFailed
from benchmarks.measures.callbacks import timing

__all__ = ["Arguments", "Restart", "measure"]


@dataclass(frozen=True, slots=True)
class Arguments:
    """The size of the measurement."""

    objects: int = 50_000
    rate: int = 1000
    seconds: float = 10.0
    """Seconds for which the load is measured."""
    settle: float = 3.0
    """Seconds before that, in which a new file is written for the first time."""
    peer: bool = True
    """True to measure client-go as well."""


@dataclass(frozen=True, slots=True)
class Restart:
    """The figures of one program."""

    readable: float
    """Seconds to a cache with a whole state."""
    synced: float
    """Seconds to a cache that the server has confirmed."""
    received: int
    """Bytes of lists and watches until then."""
    cpu: float
    """Seconds of CPU time of the process until then."""
    longest: float
    """Seconds of CPU time of the longest callback of the event loop until then; 0 for client-go."""
    load: float
    """The CPU time of the process afterwards, as a part of the elapsed time."""
    events: int
    """The changes that were received meanwhile."""


class Received(Metrics):
    """The bytes and events that an informer receives."""

    def __init__(self) -> None:
        self.bytes = self.events = 0

    def received(self, informer: str, verb: str, size: int, events: int) -> None:
        """Count what has arrived."""
        self.bytes += size
        self.events += events


async def run_program(server: str, path: Path | None, arguments: Arguments) -> Restart:
    """Run an informer of pods until it is synced, and some seconds longer."""
    cache, received = None if path is None else CacheFile(path), Received()
    with timing() as timer:
        wall, cpu = time.perf_counter(), time.process_time()
        async with (
            Client(server) as client,
            SharedInformerFactory(client, cache=cache, metrics=received) as informers,
        ):
            pods = informers.informer("pods")
            timer.take()
            while not len(pods.lister.unsynced):  # noqa: ASYNC110 - a state appears as a whole
                await asyncio.sleep(0.002)
            readable = time.perf_counter() - wall
            await pods.wait_synced(timeout=120)
            synced, ready_cpu = time.perf_counter() - wall, time.process_time()
            longest, size = timer.take().cpu, received.bytes
            await asyncio.sleep(arguments.settle)
            began, before, events = time.perf_counter(), time.process_time(), received.events
            await asyncio.sleep(arguments.seconds)
            load = (time.process_time() - before) / (time.perf_counter() - began)
            changes = received.events - events
    return Restart(readable, synced, size, ready_cpu - cpu, longest, load, changes)


@asynccontextmanager
async def running_server(arguments: Arguments) -> AsyncGenerator[str]:
    """Run the embedded server with pods that change, in a process of its own."""
    command = ("-m", "aioinformer", "serve", "--port", "0")
    options = ("--objects", str(arguments.objects), "--rate", str(arguments.rate))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, *options, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        while line := (await process.stdout.readline()).decode():
            found = [word for word in line.split() if word.startswith("http://")]
            if found:
                yield found[0].rstrip(".,")
                return
        raise MeasurementFailed("the server printed no URL")
    finally:
        process.terminate()
        await process.wait()


async def _measure_program(server: str, path: Path | None, arguments: Arguments) -> Restart:
    job = json.dumps([server, str(path or ""), asdict(arguments)])
    return await _read_figures(sys.executable, "-m", "benchmarks.features.restarts", "--job", job)


async def _measure_peer(server: str, binary: Path, arguments: Arguments) -> Restart:
    options = (f"--settle={arguments.settle}", f"--seconds={arguments.seconds}")
    return await _read_figures(str(binary), "restart", f"--server={server}", *options)


async def _read_figures(*command: str) -> Restart:
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=-1)
    output, _ = await process.communicate()
    if process.returncode:
        raise MeasurementFailed(f"a program of the restarts ended with {process.returncode}")
    return Restart(**json.loads(output))


async def measure(arguments: Arguments) -> dict[str, Restart]:
    """Return the figures of a start without a file, with a new one, and with a file."""
    with tempfile.TemporaryDirectory() as folder:
        async with running_server(arguments) as server:
            path = Path(folder) / "cache.db"
            figures = {
                "without a file": await _measure_program(server, None, arguments),
                "with a new file": await _measure_program(server, path, arguments),
                "restart with the file": await _measure_program(server, path, arguments),
            }
            if arguments.peer:
                try:
                    binary = await asyncio.to_thread(CLIENT_GO.build)
                except PeerMissing as missing:
                    print(f"client-go is missing: {missing}", file=sys.stderr)
                else:
                    figures["client-go, JSON"] = await _measure_peer(server, binary, arguments)
            return figures


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    usual = Arguments()
    parser.add_argument("--objects", type=int, default=usual.objects)
    parser.add_argument("--rate", type=int, default=usual.rate)
    parser.add_argument("--seconds", type=float, default=usual.seconds)
    parser.add_argument("--settle", type=float, default=usual.settle)
    parser.add_argument("--no-peer", action="store_true", help="leave client-go out")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        server, path, given = json.loads(options.job)
        program = run_program(server, Path(path) if path else None, Arguments(**given))
        sys.stdout.write(json.dumps(asdict(asyncio.run(program))))
        return
    arguments = Arguments(
        *(options.objects, options.rate, options.seconds, options.settle), not options.no_peer
    )
    print(f"{'':22}readable   synced     bytes  CPU to sync  longest step  load  events/s")
    for name, each in asyncio.run(measure(arguments)).items():
        print(
            f"{name:22}{each.readable:6.2f} s {each.synced:6.2f} s {each.received / 1e6:6.1f} MB"
            f"  {each.cpu:8.2f} s  {each.longest * 1000:8.1f} ms  {each.load:4.1%}"
            f"  {each.events / arguments.seconds:7.0f}"
        )


if __name__ == "__main__":
    main()
