"""Requests of writers to a ``Cluster``, without sockets: what ``ClusterSource.writer`` sends with.

Faults concern them as they do requests over HTTP, verb by verb: what is refused or answered with an
error was not done, what breaks in the answer was. Time is the event loop's, or that of another
clock.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from aioinformer._client.timeouts import Timeouts
from aioinformer._core.writes import WriteRequest
from aioinformer.errors import FetchError, RequestTimedOut
from aioinformer.testing.clock import Clock
from aioinformer.testing.cluster import Cluster
from aioinformer.testing.exchange import Exchange
from aioinformer.testing.faults import Faults
from aioinformer.testing.passage import Passage, chunks_of
from aioinformer.testing.single_objects import WRITES, Asked, answer
from aioinformer.testing.targets import Target

__all__ = ["ClusterSender"]

SECONDS = Timeouts().silence
"""What a request may take, by the event loop's time: as long as a client waits for a first byte."""


@dataclass(frozen=True, slots=True)
class ClusterSender:
    """Sends the requests of writers to a cluster."""

    cluster: Cluster
    faults: Faults
    clock: Clock

    async def send(self, request: WriteRequest) -> bytes:
        """Send one; the body of the answer, if it was done.

        Raises:
            ServerError: it was refused.
            TransportError: there is no answer, or not all of it. Whether it was done is unknown.
        """
        try:
            async with asyncio.timeout(SECONDS):
                return await self._answer(request)
        except TimeoutError as error:
            said = f"{request.method} {request.path}: no answer in {SECONDS:g} s"
            raise RequestTimedOut(said, phase="write") from error
        except FetchError as error:
            error.phase = "write"
            raise

    async def _answer(self, request: WriteRequest) -> bytes:
        cluster = self.cluster
        target = Target.parse(request.path, cluster.resources, cluster.with_status)
        verb = WRITES.get(request.method, "get")
        with Exchange(self.faults, verb, target.resource, target.namespace) as exchange:
            passage = Passage(exchange, self.clock)
            await passage.admit()
            asked = Asked(request.method, target, request.query, request.content_type, request.body)
            done = answer(cluster, asked).raw
            return b"".join([chunk async for chunk in passage.carry(chunks_of(done))])
