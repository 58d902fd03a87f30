"""A writer of many widgets in a process of its own, at a rate.

    python -m tests.apiserver.programs.load_writer URL CA_FILE \
        --scopes N --objects N --rate N --seconds N

It creates the widgets in the namespaces ``load-0`` and so on, prints a line, and waits for a line.
Then it writes: changes, and now and then a deletion that is followed by a creation. It prints the
number of writes, the seconds that they took, and the seconds of CPU time that this process needed.

The rate is bounded by the CPU time of the server. So the requests are those that cost the server
least: a replacement by PUT, which needs no merge, of an object without ``managedFields``, which
takes a quarter of the time of a write. The writer itself speaks HTTP/1.1 over streams of asyncio,
which takes it 0.2 ms a write.
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
from urllib.parse import urlsplit

CONNECTIONS = 32
PADDING = 100
"""Bytes."""
RECREATED = 0.02
"""The share of writes that are a deletion and a creation."""


@dataclass
class Connection:
    """One connection, which is used for one request after the other."""

    host: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def open(cls, url: str, context: ssl.SSLContext) -> Connection:
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=context)
        return cls(parts.netloc, reader, writer)

    async def send(self, method: str, path: str, body: object = None) -> bytes:
        """Send a request and return the response; end the program if the status is an error."""
        data = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        self.writer.write(head.encode() + data)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        answer = await self._read_body(head.lower())
        if not head.startswith("HTTP/1.1 2"):
            raise SystemExit(f"{method} {path}: {head} {answer.decode()}")
        return answer

    async def _read_body(self, head: str) -> bytes:
        if (found := head.partition("\r\ncontent-length:")[2]) != "":
            return await self.reader.readexactly(int(found.partition("\r\n")[0]))
        body = b""
        while size := int(await self.reader.readline(), 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readline()
        return body


@dataclass
class Writer:
    """Writes over several connections. Each has its own widgets, so that writes never conflict."""

    connections: list[Connection]
    scopes: int
    written: int = 0
    versions: dict[int, str] = field(default_factory=dict[int, str])
    """The resourceVersion of each widget."""
    chance: random.Random = field(default_factory=lambda: random.Random(0))

    def path(self, number: int) -> str:
        return f"/apis/example.com/v1/namespaces/load-{number % self.scopes}/widgets"

    async def create(self, connection: Connection, number: int) -> None:
        await self.send(connection, "POST", self.path(number), number, {"name": f"w-{number}"})

    async def change(self, connection: Connection, number: int) -> None:
        """Replace a widget, or delete and create it."""
        path = f"{self.path(number)}/w-{number}"
        if self.chance.random() < RECREATED / 2:
            await connection.send("DELETE", path)
            self.written += 1
            await self.create(connection, number)
        else:
            metadata: dict[str, object] = {
                "name": f"w-{number}",
                "resourceVersion": self.versions[number],
                "managedFields": [dict[str, object]()],  # tells the server to record none
            }
            await self.send(connection, "PUT", path, number, metadata)

    async def send(
        self,
        connection: Connection,
        method: str,
        path: str,
        number: int,
        metadata: dict[str, object],
    ) -> None:
        body = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": metadata,
            "spec": {"size": self.written, "padding": "x" * PADDING},
        }
        answer = await connection.send(method, path, body)
        version = answer.partition(b'"resourceVersion":"')[2].partition(b'"')[0]
        self.versions[number] = version.decode()
        self.written += 1

    async def create_all(self, objects: int) -> None:
        async def create_some(first: int) -> None:
            for number in range(first, objects, len(self.connections)):
                await self.create(self.connections[first], number)

        await asyncio.gather(*map(create_some, range(len(self.connections))))

    async def write_at(self, rate: float, seconds: float, objects: int) -> None:
        """Write at the rate until the time is over, as fast as possible if that is too slow."""
        start = time.monotonic()

        async def write_some(first: int) -> None:
            mine, made = range(first, objects, len(self.connections)), 0
            while (elapsed := time.monotonic() - start) < seconds:
                if (early := made * len(self.connections) / rate - elapsed) > 0:
                    await asyncio.sleep(early)
                await self.change(self.connections[first], self.chance.choice(mine))
                made += 1

        await asyncio.gather(*map(write_some, range(len(self.connections))))


@asynccontextmanager
async def connected(url: str, ca_file: str, scopes: int) -> AsyncGenerator[Writer]:
    context = ssl.create_default_context(cafile=ca_file)
    connections = [await Connection.open(url, context) for _ in range(CONNECTIONS)]
    try:
        yield Writer(connections, scopes)
    finally:
        for each in connections:
            each.writer.close()


async def main(options: argparse.Namespace) -> None:
    async with connected(options.url, options.ca_file, options.scopes) as writer:
        await writer.create_all(options.objects)
        sys.stdout.write("created\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        before, start, cpu = writer.written, time.monotonic(), time.process_time()
        await writer.write_at(options.rate, options.seconds, options.objects)
        result = {
            "writes": writer.written - before,
            "seconds": time.monotonic() - start,
            "cpu": time.process_time() - cpu,
        }
        sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("ca_file")
    for name in ("scopes", "objects", "rate", "seconds"):
        parser.add_argument(f"--{name}", type=int, required=True)
    asyncio.run(main(parser.parse_args()))
