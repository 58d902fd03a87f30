"""A recorded exchange played again: the request as it was sent, what happens while it is served.

Time stands still except where a script lets it pass, so that the bytes of a watch of 20 seconds
are there in milliseconds, in the same order each time.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec
from multidict import CIMultiDict, CIMultiDictProxy

from aioinformer.testing import ApiServer, Cluster, ManualClock
from tests.client.recordings import FOLDER, read_recording
from tests.testing.recorded_exchanges import as_submitted

READ_TIMEOUT = 5.0
"""How long a script may wait for bytes that don't come."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A recorded request."""

    target: str
    headers: CIMultiDict[str]

    @classmethod
    def load(cls, name: str) -> RecordedRequest:
        """The request of an exchange; what an HTTP client adds of its own is left out."""
        head = (FOLDER / f"{name}.request.http").read_text()
        first, *lines = head.strip().splitlines()
        split = [line.partition(": ") for line in lines]
        headers = CIMultiDict((name, value) for name, _, value in split)
        for own in ("Host", "Connection"):
            headers.popall(own, None)
        return cls(first.split(" ")[1], headers)


def is_chunked(name: str) -> bool:
    """Whether a recorded answer came in chunks."""
    head = (FOLDER / f"{name}.response.http").read_bytes().partition(b"\r\n\r\n")[0]
    return b"Transfer-Encoding: chunked" in head


def recorded_body(name: str) -> bytes:
    """A recorded body, unzipped."""
    answer = read_recording(name)
    zipped = answer.headers.get("Content-Encoding") == "gzip"
    return gzip.decompress(answer.body) if zipped else answer.body


def recorded_events(name: str) -> list[dict[str, Any]]:
    """The events of a recorded watch."""
    return [msgspec.json.decode(line) for line in recorded_body(name).splitlines()]


@dataclass(slots=True)
class ServerResponse:
    """What came."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def decompressed(self) -> bytes:
        """The body, decompressed."""
        zipped = self.headers.get("Content-Encoding") == "gzip"
        return gzip.decompress(self.body) if zipped else self.body


@dataclass(slots=True)
class ReplayServer:
    """A server, its cluster and its clock, for one exchange."""

    server: ApiServer
    clock: ManualClock
    http: aiohttp.ClientSession

    @property
    def cluster(self) -> Cluster:
        """What is served."""
        return self.server.cluster

    async def send(self, asked: RecordedRequest) -> ServerResponse:
        """The whole answer; the clock runs three seconds ahead for those who wait for it."""
        waiting = asyncio.create_task(self._send(asked))
        async with asyncio.timeout(READ_TIMEOUT):
            while not (waiting.done() or self.clock.waiting):  # noqa: ASYNC110 - a socket away
                await asyncio.sleep(0)
        self.clock.advance(3.0)
        return await waiting

    async def _send(self, asked: RecordedRequest) -> ServerResponse:
        async with self.http.get(asked.target, headers=asked.headers) as response:
            return ServerResponse(response.status, response.headers, await response.read())

    @asynccontextmanager
    async def watch(self, asked: RecordedRequest) -> AsyncGenerator[StreamReader]:
        """An answer that comes bit by bit."""
        async with self.http.get(asked.target, headers=asked.headers) as response:
            yield StreamReader(response)


@dataclass(slots=True)
class StreamReader:
    """Someone who reads a stream."""

    response: aiohttp.ClientResponse
    received: bytearray = field(default_factory=bytearray)

    async def read_lines(self, count: int) -> None:
        """Read until there are so many lines in all."""
        async with asyncio.timeout(READ_TIMEOUT):
            while self.received.count(b"\n") < count:
                chunk = await self.response.content.readany()
                assert chunk, f"the stream ended too early: {bytes(self.received)!r}"
                self.received += chunk

    async def read_rest(self) -> None:
        """Read until the end."""
        async with asyncio.timeout(READ_TIMEOUT):
            self.received += await self.response.content.read()


@asynccontextmanager
async def running_replay_server(
    cluster: Cluster, *, token: str | None = None
) -> AsyncGenerator[ReplayServer]:
    """A server for a cluster, whose time stands still."""
    clock = ManualClock()
    async with (
        ApiServer(cluster, clock=clock, token=token) as server,
        # As the recorder: nothing is sent that the recording doesn't have.
        aiohttp.ClientSession(
            server.url, skip_auto_headers=("Accept-Encoding", "Accept"), auto_decompress=False
        ) as http,
    ):
        yield ReplayServer(server, clock, http)


# -- writes ------------------------------------------------------------------------------------


def advance_to(cluster: Cluster, version: int) -> None:
    """Write something of no interest until the cluster is at a version."""
    if cluster.resource_version > version:
        raise ValueError(f"{cluster} is past {version}")
    if cluster.resource_version < version and not _has_filler(cluster):
        cluster.create("leases", {"metadata": {"name": "filler", "namespace": "kube-system"}})
    while cluster.resource_version < version:
        spec = {"renewals": cluster.resource_version}
        cluster.merge_patch("leases", "filler", {"spec": spec}, namespace="kube-system")


def _has_filler(cluster: Cluster) -> bool:
    return b'"filler"' in cluster.list("leases")


def replay_event(cluster: Cluster, event: dict[str, Any], resource: str = "pods") -> None:
    """Do what an event of a recorded watch tells of, at its version."""
    obj = event["object"]
    metadata = obj["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    dying = "deletionTimestamp" in metadata
    if dying and event["type"] == "DELETED":
        return  # this came with the event before
    advance_to(cluster, int(metadata["resourceVersion"]) - 1)
    if event["type"] == "ADDED":
        cluster.create(resource, as_submitted(obj))
    elif dying or event["type"] == "DELETED":
        cluster.delete(resource, name, namespace=namespace, graceful=dying)
    else:
        cluster.merge_patch(resource, name, as_submitted(obj), namespace=namespace)
