"""A 404 from whatever stands before the API server empties no cache, in simulated time.

The informer reads a cluster, and discovery reads documents, as a client does. A front answers
everything with a 404 for a while, or a server that has just started lacks the group of a custom
resource.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields

import msgspec
import pytest

from aioinformer import Deleted, Event, Resource, SharedInformer
from aioinformer._client.discovery.discovery import Discovery
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import Status, server_error
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.server.source import ClusterListerWatcher
from aioinformer.testing.simulation import run
from aioinformer.testing.wire import discovery_documents as documents
from tests.client.discovery_servers import INGRESS_404, PLAIN_404, STATUS_404
from tests.runtime.informers import running_in_background

MINUTE = 60.0

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
RESOURCES = (find_built_in("pods"), find_built_in("deployments"), WIDGETS)

FRONTS = {"a Go proxy": PLAIN_404, "a Status": STATUS_404, "an ingress": INGRESS_404}


class Front:
    """What answers before the API server: lists and watches by ``source``, discovery by paths."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.cluster = Cluster()
        if resource is WIDGETS:
            self.cluster.add_resource(WIDGETS)
        self.cluster.create(resource, {"metadata": {"name": "a"}, "spec": {}})
        self.source = ClusterSource(self.cluster)
        self.discovery = Discovery(self.fetch)
        self.lost: Status | None = None
        """The answer to each request; ``None`` while the API server answers."""
        self.lists_resource = True
        """False while the API server doesn't list the resource."""

    async def fetch(self, path: str, accept: str) -> bytes:
        """Return a discovery document, as the API server has it."""
        del accept
        if self.lost is not None:
            raise server_error(self.lost, phase="discovery", target=f"GET {path}")
        served = [
            each
            for each in self.cluster.served
            if self.lists_resource or each.resource != self.resource
        ]
        if path in ("/api", "/apis"):
            return msgspec.json.encode(
                documents.api_group_discovery_list(served, core=path == "/api")
            )
        version = path.removeprefix("/apis/").removeprefix("/api/")
        found = documents.api_resource_list(served, version)
        if found is None:
            raise server_error(PLAIN_404, phase="discovery", target=f"GET {path}")
        return msgspec.json.encode(found)

    @asynccontextmanager
    async def failing(self, status: Status) -> AsyncGenerator[None]:
        """Cut the watch, then answer each list and watch with a 404."""
        faults = self.source.faults
        reason, message = status.reason, status.message
        with (
            faults.status(404, verb="watch", reason=reason, message=message),
            faults.status(404, verb="list", reason=reason, message=message),
        ):
            with faults.reset(verb="watch", times=1):
                await asyncio.sleep(0.1)
            yield


@dataclass(frozen=True)
class FrontListerWatcher(ClusterListerWatcher):
    """A lister-watcher with the discovery of a client."""

    discovery: Discovery = field(kw_only=True)

    async def discover(self) -> Resource | None:
        return await self.discovery.served(self.resource)


@asynccontextmanager
async def informer_behind(
    front: Front, resource: Resource, delivered: list[Event]
) -> AsyncGenerator[SharedInformer]:
    plain = front.source.lister_watcher(resource)
    chosen = {each.name: getattr(plain, each.name) for each in fields(plain)}
    informer = SharedInformer(FrontListerWatcher(**chosen, discovery=front.discovery))
    informer.add_handler(delivered.append)
    async with running_in_background(informer.run()):
        await informer.wait_synced(timeout=30)
        yield informer


@pytest.mark.parametrize("seconds", [20.0, 10 * MINUTE])
@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("resource", RESOURCES, ids=str)
def test_a_front_that_answers_404_to_everything_empties_no_cache(
    resource: Resource, front: str, seconds: float
) -> None:
    async def main() -> None:
        server, delivered = Front(resource), list[Event]()
        async with informer_behind(server, resource, delivered) as informer:
            async with server.failing(FRONTS[front]):
                server.lost = FRONTS[front]
                await asyncio.sleep(seconds)
                assert len(informer.lister) == 1
                assert informer.health.error is not None
                assert (informer.health.fresh or 0.0) >= seconds
                server.lost = None
            await asyncio.sleep(2 * MINUTE)
            assert informer.health.state == "watching"
            assert [type(event).__name__ for event in delivered] == ["Added"]

    run(main(), seed=1)


@pytest.mark.parametrize("resource", RESOURCES[:2], ids=str)
def test_a_built_in_resource_that_no_document_lists_keeps_its_cache(resource: Resource) -> None:
    async def main() -> None:
        server, delivered = Front(resource), list[Event]()
        async with (
            informer_behind(server, resource, delivered) as informer,
            server.failing(PLAIN_404),
        ):
            server.lists_resource = False
            await asyncio.sleep(10 * MINUTE)
            assert informer.health.state == "absent"
            assert len(informer.lister) == 1
            assert [type(event).__name__ for event in delivered] == ["Added"]

    run(main(), seed=1)


@pytest.mark.parametrize("seed", range(10))
def test_a_group_that_is_not_listed_for_20_seconds_keeps_its_cache(seed: int) -> None:
    """kube-apiserver has answered so for a while after its start."""

    async def main() -> None:
        server, delivered = Front(WIDGETS), list[Event]()
        async with informer_behind(server, WIDGETS, delivered) as informer:
            async with server.failing(PLAIN_404):
                server.lists_resource = False
                await asyncio.sleep(20)
                server.lists_resource = True
            await asyncio.sleep(2 * MINUTE)
            assert informer.health.state == "watching"
            assert [type(event).__name__ for event in delivered] == ["Added"]

    run(main(), seed=seed)


def test_a_custom_resource_whose_group_is_missing_for_a_minute_is_gone() -> None:
    async def main() -> None:
        server, delivered = Front(WIDGETS), list[Event]()
        async with (
            informer_behind(server, WIDGETS, delivered) as informer,
            server.failing(PLAIN_404),
        ):
            server.lists_resource = False
            await asyncio.sleep(2 * MINUTE)
            assert informer.health.state == "absent"
            assert len(informer.lister) == 0
            assert isinstance(gone := delivered[-1], Deleted)
            assert gone.reason == "resource_gone"

    run(main(), seed=1)
