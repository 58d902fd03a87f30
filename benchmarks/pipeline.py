"""How fast the pipeline is without a network: bytes in, handler out.

    python benchmarks/pipeline.py [--pods N] [--events N]

It feeds pre-encoded 3.3 kB pods through a whole informer in one process: the initial list, then
watch events to one handler, each counted. Beside it, in the same run, what the same bytes cost
``json.loads``, as a yardstick for the machine. Memory is what the process grew by, with one index
and one drained handler. The comparison with other informers, over sockets, is yet to come.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aioinformer import (
    Event,
    KubeObject,
    ListRequest,
    Resource,
    SharedInformer,
    Updated,
    WatchRequest,
)

PODS = Resource("", "v1", "pods", "Pod")
CHUNK = 64 * 1024


def pod(number: int, version: int) -> dict[str, Any]:
    """A pod of 3.3 kB, a quarter of it managedFields."""
    env = [{"name": f"VARIABLE_{i}", "value": "v" * 20} for i in range(6)]
    containers = [
        {"name": f"c{i}", "image": f"registry.test/shop/web:{i}", "env": env} for i in range(4)
    ]
    conditions = [
        {"type": f"Type{i}", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for i in range(6)
    ]
    return {
        "metadata": {
            "name": f"web-{number}",
            "namespace": f"team-{number % 20}",
            "uid": f"0b1d2c3e-1111-2222-3333-{number:012d}",
            "resourceVersion": str(version),
            "labels": {"app": "shop", "tier": "web"},
            "managedFields": [
                {"manager": "kubelet", "fieldsV1": {f"f:{i}": {} for i in range(70)}}
            ],
        },
        "spec": {"nodeName": f"node-{number % 100}", "containers": containers},
        "status": {"phase": "Running", "conditions": conditions, "podIP": "10.0.0.1"},
    }


def encode(value: object) -> bytes:
    """Compact JSON, as servers write it."""
    return json.dumps(value, separators=(",", ":")).encode()


@dataclass
class Replay:
    """A list and a watch from memory, cut into chunks as a socket would."""

    listed: bytes
    watched: bytes
    go: asyncio.Event = field(default_factory=asyncio.Event)
    resource: Resource = PODS

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The whole list."""
        yield self._cut(self.listed)

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """All events at once when told to, then silence."""

        async def stream() -> AsyncGenerator[bytes]:
            await self.go.wait()
            async for chunk in self._cut(self.watched):
                yield chunk
            await asyncio.Event().wait()

        yield stream()

    async def _cut(self, body: bytes) -> AsyncGenerator[bytes]:
        for start in range(0, len(body), CHUNK):
            yield body[start : start + CHUNK]


def node(obj: KubeObject) -> str:
    """An index function that opens the body."""
    name: str = obj["spec"]["nodeName"]
    return name


def namespace(obj: KubeObject) -> str:
    """An index function that doesn't."""
    return obj.namespace


async def longest_step(over: asyncio.Event) -> float:
    """The longest time, in seconds, that the loop was kept from this task."""
    longest, last = 0.0, time.perf_counter()
    while not over.is_set():
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest


def resident() -> int:
    """Bytes of memory that the process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


async def measure(replay: Replay, events: int, index: Callable[[KubeObject], str]) -> None:
    """One informer, one handler: sync, then events."""
    gc.collect()
    before = resident()
    informer = SharedInformer(replay, indexers={"one": index})
    done, count = asyncio.Event(), 0

    async def handler(event: Event) -> None:
        nonlocal count
        count += isinstance(event, Updated)
        if count == events:
            done.set()

    registration = informer.add_handler(handler)
    over = asyncio.Event()
    stalls = asyncio.create_task(longest_step(over))
    start = time.perf_counter()
    running = asyncio.create_task(informer.run())
    await registration.wait_synced(300)
    synced = time.perf_counter() - start
    grown = resident() - before
    over.set()
    objects = len(informer.lister)
    held = sum(len(obj.raw) for obj in informer.lister)

    replay.go.set()
    start, cpu = time.perf_counter(), time.process_time()
    await asyncio.wait_for(done.wait(), 300)
    took, cpu = time.perf_counter() - start, time.process_time() - cpu
    running.cancel()
    await asyncio.wait({running})

    print(f"  sync of {objects:,} pods             {synced * 1e3:9.0f} ms")
    print(f"  longest step during it         {await stalls * 1e3:9.1f} ms")
    print(f"  memory grown / bytes served    {grown / len(replay.listed):9.2f}")
    print(f"  memory grown per pod, beyond its kept bytes {(grown - held) / objects:7.0f} B")
    print(f"  events to one handler          {events / took:9,.0f} /s")
    print(f"  CPU an event                   {cpu / events * 1e6:9.2f} us")


def yardstick(lines: list[bytes]) -> float:
    """Seconds that json.loads takes for one line."""
    start = time.perf_counter()
    for line in lines:
        json.loads(line)
    return (time.perf_counter() - start) / len(lines)


def main() -> None:
    """Make the bytes, run, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--events", type=int, default=50_000)
    arguments = parser.parse_args()
    items = b",".join(encode(pod(i, i + 1)) for i in range(arguments.pods))
    head = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"999999"},"items":['
    lines = [
        b'{"type":"MODIFIED","object":%b}\n'
        % encode({"kind": "Pod", "apiVersion": "v1", **pod(i % arguments.pods, 1_000_000 + i)})
        for i in range(arguments.events)
    ]
    listed, watched = head + items + b"]}\n", b"".join(lines)
    print(f"{len(lines[0])} bytes an event, {len(listed) / 1e6:.0f} MB listed")
    print(f"json.loads of an event           {yardstick(lines[:2000]) * 1e6:9.2f} us")
    for name, index in (("an index on the namespace", namespace), ("an index on the node", node)):
        print(name)
        asyncio.run(measure(Replay(listed, watched), arguments.events, index))


if __name__ == "__main__":
    main()
