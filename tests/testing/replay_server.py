"""Replay of a recorded exchange: its request, and the writes while it was served.

The clock stands still except where a script advances it. Therefore a watch of 20 seconds is
replayed in milliseconds, with its bytes in the same order each time.
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

READ_TIMEOUT = 30.0
"""Seconds after which a read of missing bytes fails the test."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A recorded request."""

    target: str
    headers: CIMultiDict[str]

    @classmethod
    def load(cls, name: str) -> RecordedRequest:
        """Load the request of an exchange, without the headers that an HTTP client adds."""
        head = (FOLDER / f"{name}.request.http").read_text()
        first, *lines = head.strip().splitlines()
        split = [line.partition(": ") for line in lines]
        headers = CIMultiDict((name, value) for name, _, value in split)
        for own in ("Host", "Connection"):
            headers.popall(own, None)
        return cls(first.split(" ")[1], headers)


def is_chunked(name: str) -> bool:
    """Return True if a recorded answer is chunked."""
    head = (FOLDER / f"{name}.response.http").read_bytes().partition(b"\r\n\r\n")[0]
    return b"Transfer-Encoding: chunked" in head


def recorded_body(name: str) -> bytes:
    """Return a recorded body, decompressed."""
    answer = read_recording(name)
    compressed = answer.headers.get("Content-Encoding") == "gzip"
    return gzip.decompress(answer.body) if compressed else answer.body


def recorded_events(name: str) -> list[dict[str, Any]]:
    """Return the events of a recorded watch."""
    return [msgspec.json.decode(line) for line in recorded_body(name).splitlines()]


@dataclass(slots=True)
class ServerResponse:
    """A received response."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def decompressed(self) -> bytes:
        """The body, decompressed."""
        compressed = self.headers.get("Content-Encoding") == "gzip"
        return gzip.decompress(self.body) if compressed else self.body


@dataclass(slots=True)
class ReplayServer:
    """A server, its cluster and its clock, for one exchange."""

    server: ApiServer
    clock: ManualClock
    http: aiohttp.ClientSession

    @property
    def cluster(self) -> Cluster:
        """The cluster that is served."""
        return self.server.cluster

    async def send(self, request: RecordedRequest) -> ServerResponse:
        """Send a request, advance the clock by three seconds, and return the whole response.

        Three seconds are the time in which a list waits for a version that is not reached yet.
        """
        response = asyncio.create_task(self._send(request))
        async with asyncio.timeout(READ_TIMEOUT):
            while not (response.done() or self.clock.waiting):  # noqa: ASYNC110 - a socket away
                await asyncio.sleep(0)
        self.clock.advance(3.0)
        return await response

    async def _send(self, request: RecordedRequest) -> ServerResponse:
        async with self.http.get(request.target, headers=request.headers) as response:
            return ServerResponse(response.status, response.headers, await response.read())

    @asynccontextmanager
    async def watch(self, request: RecordedRequest) -> AsyncGenerator[StreamReader]:
        """Open a watch, and yield its response."""
        async with self.http.get(request.target, headers=request.headers) as response:
            yield StreamReader(response)


@dataclass(slots=True)
class StreamReader:
    """A response that is read in parts."""

    response: aiohttp.ClientResponse
    received: bytearray = field(default_factory=bytearray)

    async def read_lines(self, count: int) -> None:
        """Read until ``count`` lines were received in all."""
        async with asyncio.timeout(READ_TIMEOUT):
            while self.received.count(b"\n") < count:
                chunk = await self.response.content.readany()
                assert chunk, f"the stream ended too early: {bytes(self.received)!r}"
                self.received += chunk

    async def read_rest(self) -> None:
        """Read until the end of the stream."""
        async with asyncio.timeout(READ_TIMEOUT):
            self.received += await self.response.content.read()


@asynccontextmanager
async def running_replay_server(
    cluster: Cluster, *, token: str | None = None
) -> AsyncGenerator[ReplayServer]:
    """Run a server for a cluster, with a clock that stands still."""
    clock = ManualClock()
    async with (
        ApiServer(cluster, clock=clock, token=token) as server,
        # Like the recorder, the client sends no headers that the recording doesn't have.
        aiohttp.ClientSession(
            server.url, skip_auto_headers=("Accept-Encoding", "Accept"), auto_decompress=False
        ) as http,
    ):
        yield ReplayServer(server, clock, http)


# -- writes ------------------------------------------------------------------------------------


def advance_to(cluster: Cluster, version: int) -> None:
    """Write an unrelated object until the cluster has reached a version."""
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
    """Write the change of a recorded event, at the event's version."""
    obj = event["object"]
    metadata = obj["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    terminating = "deletionTimestamp" in metadata
    if terminating and event["type"] == "DELETED":
        return  # the graceful deletion of the event before wrote this one too
    advance_to(cluster, int(metadata["resourceVersion"]) - 1)
    if event["type"] == "ADDED":
        cluster.create(resource, as_submitted(obj))
    elif terminating or event["type"] == "DELETED":
        cluster.delete(resource, name, namespace=namespace, graceful=terminating)
    else:
        cluster.merge_patch(resource, name, as_submitted(obj), namespace=namespace)
