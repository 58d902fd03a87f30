"""A writer of many widgets in a process of its own, at a rate.

    python -m tests.apiserver.programs.load_writer URL CA_FILE \
        --scopes N --objects N --rate N --seconds N

It creates the widgets in the namespaces ``load-0`` and so on, prints a line, and waits for a line.
Then it writes: changes, and now and then a deletion that is followed by a creation. It prints the
number of writes and the seconds that they took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import ssl
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

CONNECTIONS = 32
PADDING = 700
"""Bytes."""
RECREATED = 0.02
"""The share of writes that are a deletion and a creation."""
PATCH = {"Content-Type": "application/merge-patch+json"}


@dataclass
class Writer:
    """Writes over one session. Each worker has its own widgets, so that writes never conflict."""

    http: aiohttp.ClientSession
    scopes: int
    written: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(0))

    def path(self, number: int) -> str:
        return f"/apis/example.com/v1/namespaces/load-{number % self.scopes}/widgets"

    async def send(self, method: str, path: str, body: object, **headers: str) -> None:
        data = None if body is None else json.dumps(body)
        async with self.http.request(method, path, data=data, headers=headers) as response:
            answer = await response.read()
            if response.status >= 300:
                raise SystemExit(f"{method} {path}: {response.status} {answer.decode()}")
        self.written += 1

    async def create(self, number: int) -> None:
        body = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": f"w-{number}"},
            "spec": {"size": 0, "padding": "x" * PADDING},
        }
        await self.send("POST", self.path(number), body, **{"Content-Type": "application/json"})

    async def change(self, number: int) -> None:
        path = f"{self.path(number)}/w-{number}"
        if self.chance.random() < RECREATED / 2:
            await self.send("DELETE", path, None)
            await self.create(number)
        else:
            await self.send("PATCH", path, {"spec": {"size": self.written}}, **PATCH)

    async def create_all(self, first: int, objects: int) -> None:
        for number in range(first, objects, CONNECTIONS):
            await self.create(number)

    async def write_at(self, rate: float, seconds: float, first: int, objects: int) -> None:
        """Write at a share of the rate until the time is over, as fast as possible if too slow."""
        mine = range(first, objects, CONNECTIONS)
        start, made = time.monotonic(), 0
        while (elapsed := time.monotonic() - start) < seconds:
            if (early := made * CONNECTIONS / rate - elapsed) > 0:
                await asyncio.sleep(early)
            await self.change(self.chance.choice(mine))
            made += 1


@asynccontextmanager
async def connected(url: str, ca_file: str, scopes: int) -> AsyncGenerator[Writer]:
    context = ssl.create_default_context(cafile=ca_file)
    connector = aiohttp.TCPConnector(ssl=context, limit=CONNECTIONS)
    async with aiohttp.ClientSession(url, connector=connector) as http:
        yield Writer(http, scopes)


async def main(options: argparse.Namespace) -> None:
    async with connected(options.url, options.ca_file, options.scopes) as writer:
        workers = range(CONNECTIONS)
        await asyncio.gather(*(writer.create_all(each, options.objects) for each in workers))
        sys.stdout.write("created\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        before, start = writer.written, time.monotonic()
        await asyncio.gather(
            *(
                writer.write_at(options.rate, options.seconds, each, options.objects)
                for each in workers
            )
        )
        result = {"writes": writer.written - before, "seconds": time.monotonic() - start}
        sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("ca_file")
    for name in ("scopes", "objects", "rate", "seconds"):
        parser.add_argument(f"--{name}", type=int, required=True)
    asyncio.run(main(parser.parse_args()))
