"""Measure the memory of an informer with ``compress=`` beside one without, and beside client-go.

    python -m benchmarks.features.compression [--pods N] [--rest SECONDS] [--rounds N]

The pods are those of 400 workloads. Each informer runs in a process of its own, and a server in
this process sends the list. Memory is what a process holds above a client without informers, once
everything is compressed. The longest turn of the event loop is measured in CPU time while the cache
is compressed. Last, client-go's informer lists the same pods, if Go can build that program.

``benchmarks.features.compression_cost`` measures the CPU time of an event.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice

import msgspec
from msgspec import Struct

from aioinformer import Client, KubeObject, SharedInformerFactory, field
from aioinformer._core.compression.compressor import Compressor
from aioinformer._core.compression.zstd import find_zstd
from aioinformer._runtime.informer.options import COMPRESS_AFTER
from benchmarks.contestants.clientgo import CLIENT_GO, version
from benchmarks.contestants.compiled import PeerMissing
from benchmarks.contestants.ours import Count
from benchmarks.load.changes import random_changes
from benchmarks.load.meter import Sample, resident
from benchmarks.load.pod_server import PodServer
from benchmarks.load.processes import output
from benchmarks.load.workloads import make_pods

__all__ = [
    "Measurement",
    "Plan",
    "compared_with_client_go",
    "measure",
    "measure_client_go",
    "measure_informer",
]

READS = 5000
"""Objects that are read, and compressed once more, for the times of one."""
SEED = 7

LIMIT = 300
"""Seconds for client-go."""


class Plan(Struct, kw_only=True):
    """The sizes of the measurement."""

    pods: int = 50_000
    rest: float = COMPRESS_AFTER
    """Seconds of rest before a pod is compressed: those of ``compress=True``."""
    rounds: int = 1


class Measurement(Struct, kw_only=True):
    """The cost of one informer."""

    memory: float
    """Bytes an object above the bare process."""
    estimate: float
    """The same by ``informer.memory()``."""
    json: float
    """Bytes of JSON an object."""
    stored: float
    """Bytes an object that its JSON takes as stored."""
    longest_turn: float
    """CPU milliseconds of the longest turn of the event loop between the list and the rest."""
    read: float
    """Microseconds of ``get`` and one field."""
    compress: float = 0.0
    """Microseconds of compressing one object."""
    dictionary: int = 0
    """Bytes of the dictionary."""


# -- one informer --------------------------------------------------------------------------------


async def measure(server: str, plan: Plan, *, compressed: bool) -> Measurement:
    """Measure one informer against the server with this URL.

    Args:
        server: the URL.
        plan: the sizes.
        compressed: True to compress the cache.
    """
    async with (
        Client(server) as client,
        SharedInformerFactory(client, watch_list=False) as found,
    ):
        gc.collect()
        bare = resident()
        informer = found.informer(
            "pods",
            indexers={"node": field("spec.nodeName")},
            compress=plan.rest if compressed else False,
        )
        handler = Count()
        informer.add_handler(handler, overflow="block")
        await found.wait_synced(timeout=600)
        rest = _Rest(compressed=compressed)
        longest = await _longest_turn(lambda: rest.reached(informer.memory().saved_bytes))
        gc.collect()
        memory, settled = informer.memory(), resident()
        reads = random.Random(SEED).sample(list(informer.lister), min(READS, plan.pods))
        compress, dictionary = _time_compression(reads) if compressed else (0.0, 0)
        return Measurement(
            memory=(settled - bare) / plan.pods,
            estimate=memory.total / plan.pods,
            json=memory.json_bytes / plan.pods,
            stored=(memory.json_bytes - memory.saved_bytes) / plan.pods,
            longest_turn=longest * 1e3,
            read=_time_reads(informer.lister.get, reads),
            compress=compress,
            dictionary=dictionary,
        )


class _Rest:
    """Finds out when the cache is at rest: nothing was saved for a while."""

    def __init__(self, *, compressed: bool) -> None:
        """Begin to look at a cache that is compressed, or not."""
        self._compressed = compressed
        self._looks: list[int] = []

    def reached(self, saved: int) -> bool:
        """Return True if ``saved`` was the same for 300 looks, 3 seconds."""
        self._looks.append(saved)
        still = self._looks[-300:]
        return len(still) == 300 and len(set(still)) == 1 and (saved > 0 or not self._compressed)


async def _longest_turn(done: Callable[[], bool]) -> float:
    """Return the CPU seconds of the longest turn of the loop until ``done``."""
    longest, next_look, last = 0.0, 0.0, time.thread_time()
    while True:
        await asyncio.sleep(0)
        now = time.thread_time()
        longest, last = max(longest, now - last), now
        if (clock := time.monotonic()) >= next_look:
            next_look = clock + 0.01
            if done():
                return longest
            last = time.thread_time()


def _time_reads(get: Callable[..., KubeObject | None], objects: list[KubeObject]) -> float:
    read = field("status.podIP")
    pairs = [(obj.name, obj.namespace) for obj in objects]
    start = time.thread_time()
    for name, namespace in pairs:
        obj = get(name, namespace=namespace)
        assert obj is not None
        read(obj)
    return (time.thread_time() - start) / len(pairs) * 1e6


def _time_compression(objects: list[KubeObject]) -> tuple[float, int]:
    """Return microseconds of compressing one object, and bytes of the dictionary."""
    compressor, size = Compressor(find_zstd()), sum(len(obj.raw) for obj in objects)
    compressor.install(compressor.train([obj.raw for obj in objects[::2]], 10 * size), size)
    plain = [
        KubeObject(obj.key, obj.uid, obj.resource_version, obj.raw, obj.resource)
        for obj in objects[1::2]
    ]
    start = time.thread_time()
    for obj in plain:
        compressor.store(obj, compressor.compress(obj, {}))
    took = time.thread_time() - start
    return took / len(plain) * 1e6, compressor.dictionary_bytes


# -- in processes --------------------------------------------------------------------------------


def measure_informer(pods: Sequence[bytes], plan: Plan, *, compressed: bool) -> Measurement:
    """Measure one informer in a process of its own."""
    server = PodServer(pods, [], 1.0)
    job = msgspec.json.encode((server.url, plan, compressed)).decode()
    command = [sys.executable, "-m", "benchmarks.features.compression", f"--job={job}"]
    return msgspec.json.decode(output(command, "the informer"), type=Measurement)


def _run_job(job: str) -> None:
    """Measure one informer in this process, as ``measure_informer`` has asked for."""
    server, plan, compressed = msgspec.json.decode(job, type=tuple[str, Plan, bool])
    measurement = asyncio.run(measure(server, plan, compressed=compressed))
    sys.stdout.buffer.write(msgspec.json.encode(measurement))


def measure_client_go(pods: Sequence[bytes]) -> float:
    """Return the bytes a pod that client-go's informer takes above its bare process.

    Raises:
        PeerMissing: client-go can't be built here.
    """
    binary, server = CLIENT_GO.build(), PodServer(pods, islice(random_changes(pods), 1), 100.0)
    command = [str(binary), f"-server={server.url}", f"-pods={len(pods)}", "-events=1"]
    sample = msgspec.json.decode(output(command, "client-go", limit=LIMIT), type=Sample)
    return (sample.settled - sample.bare) / len(pods)


# -- all -----------------------------------------------------------------------------------------


def _print(plain: Sequence[Measurement], compressed: Sequence[Measurement]) -> None:
    rows = {
        "memory": "bytes an object, measured",
        "estimate": "bytes an object, by memory()",
        "json": "bytes of JSON",
        "stored": "bytes of JSON as stored",
        "longest_turn": "longest turn, CPU ms",
        "read": "get and a field, µs",
        "compress": "compress, µs",
        "dictionary": "bytes of the dictionary",
    }
    print(f"{'median':<32}{'plain':>12}{'compressed':>12}")
    for name, text in rows.items():
        cells = [
            statistics.median(getattr(each, name) for each in found)
            for found in (plain, compressed)
        ]
        print(f"{text:<32}" + "".join(f"{cell:>12,.1f}" for cell in cells))


def compared_with_client_go(peer: float, compressed: Sequence[Measurement]) -> str:
    """Return the memory of client-go, and the share of it that the compressed cache takes."""
    part = peer / statistics.median(each.memory for each in compressed)
    return f"client-go {version()} takes {peer:,.0f} bytes an object, {part:.1f} times as much"


def main() -> None:
    """Measure and print the results."""
    usual = Plan()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pods", type=int, default=usual.pods)
    parser.add_argument("--rest", type=float, default=usual.rest)
    parser.add_argument("--rounds", type=int, default=usual.rounds)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = vars(parser.parse_args())
    if job := options.pop("job"):
        _run_job(job)
        return
    plan = Plan(**options)
    pods = list(make_pods(plan.pods))
    plain, compressed = [
        [measure_informer(pods, plan, compressed=each) for _ in range(plan.rounds)]
        for each in (False, True)
    ]
    _print(plain, compressed)
    try:
        print(compared_with_client_go(measure_client_go(pods), compressed))
    except PeerMissing as missing:
        print(f"client-go is missing: {missing}", file=sys.stderr)


if __name__ == "__main__":
    main()
