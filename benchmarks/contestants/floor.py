"""The floor: aiohttp reads the same bytes and counts lines.

No asyncio client that uses aiohttp can be faster, and the table compares the library with this
floor. With ``--decode`` each event is decoded by ``json.loads`` too, which is the least that a loop
written by hand costs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

import aiohttp
import msgspec

from benchmarks.load.meter import Sample, Stopwatch

__all__ = ["measure"]

PATH = "/api/v1/pods"


async def measure(server: str, events: int, *, decode: bool = False) -> Sample:
    """Read the list to its end, then ``events`` lines of the watch."""
    read_lines = _decode if decode else _count
    async with aiohttp.ClientSession(server) as session:
        watch = Stopwatch()
        async with session.get(PATH) as response:
            listed = bytearray()
            async for chunk in response.content.iter_any():
                if decode:
                    listed += chunk
            if decode:
                json.loads(listed)
        sync_wall, sync_cpu = watch.stop()
        async with session.get(PATH, params={"watch": "true"}) as response:
            watch = Stopwatch()
            async with session.post("/go"):
                pass
            lines = await read_lines(response.content, events)
            events_wall, events_cpu = watch.stop()
    return Sample(
        sync_wall=sync_wall,
        sync_cpu=sync_cpu,
        events_wall=events_wall,
        events_cpu=events_cpu,
        delivered=lines,
    )


async def _count(content: aiohttp.StreamReader, events: int) -> int:
    lines = 0
    while lines < events:
        lines += (await content.readany()).count(b"\n")
    return lines


async def _decode(content: aiohttp.StreamReader, events: int) -> int:
    for _ in range(events):
        json.loads(await content.readline())
    return events


def main() -> None:
    """Measure and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--decode", action="store_true", help="json.loads of everything")
    arguments = parser.parse_args()
    sample = asyncio.run(measure(arguments.server, arguments.events, decode=arguments.decode))
    sys.stdout.buffer.write(msgspec.json.encode(sample) + b"\n")


if __name__ == "__main__":
    main()
