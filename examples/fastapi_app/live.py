"""The parts that run as long as the application: a client, informers, counters and the history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from aioinformer import Client, Metrics, SharedInformer, SharedInformerFactory, field
from aioinformer.adapters.asgi import EventFeed
from aioinformer.errors import UnknownResource
from examples.fastapi_app.embedded import SHORT_BACKOFF, Embedded, embedded, running_app
from examples.fastapi_app.history import History
from examples.fastapi_app.settings import Settings
from examples.fastapi_app.status import ChangeCounter, Problems, StatusReport

__all__ = ["Live", "live"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The running parts, for endpoints."""

    informers: Mapping[str, SharedInformer]
    """The informers by the plural name of the resource, as in URLs."""
    status: StatusReport
    history: History
    embedded: Embedded | None
    """The embedded cluster, or ``None`` if the application shows a real one."""


@asynccontextmanager
async def live(settings: Settings, metrics: Metrics, feed: EventFeed) -> AsyncGenerator[Live]:
    """Run everything that the settings ask for. Probes report when it is ready."""
    clock = asyncio.get_running_loop().time
    problems = Problems(clock)
    async with (
        _cluster(settings) as (client, own),
        SharedInformerFactory(
            client,
            namespace=settings.namespace,
            backoff=settings.backoff or (SHORT_BACKOFF if own else None),
            metrics=metrics,
            on_error=problems.add,
        ) as factory,
    ):
        informers: dict[str, SharedInformer] = {}
        for name in settings.resources:
            informer = await _informer(factory, client, name)
            informers[informer.resource.plural] = informer
        if own is not None and "pods" in informers:
            await informers["pods"].add_index("running", running_app)
            own.count_running(partial(informers["pods"].lister.unsynced.index_counts, "running"))
        counters = {plural: ChangeCounter() for plural in informers}
        for plural, informer in informers.items():
            informer.add_handler(counters[plural], name="counter")
        history = History(informers, counters)
        async with history.running():
            yield Live(
                informers=informers,
                history=history,
                status=StatusReport(
                    informers=informers,
                    counters=counters,
                    problems=problems,
                    server=client.server,
                    embedded=own is not None,
                    clients=lambda: feed.clients,
                    clock=clock,
                ),
                embedded=own,
            )


@asynccontextmanager
async def _cluster(settings: Settings) -> AsyncGenerator[tuple[Client, Embedded | None]]:
    """Open a client of the cluster to show, and start the cluster if it is embedded."""
    if settings.cluster:
        async with Client.connect(kubeconfig=settings.kubeconfig) as client:
            yield client, None
        return
    async with (
        embedded(objects=settings.objects, rate=settings.rate) as own,
        Client(own.server.url) as client,
    ):
        yield client, own


async def _informer(factory: SharedInformerFactory, client: Client, name: str) -> SharedInformer:
    """Return the informer of a resource, built in or found by discovery."""
    try:
        informer = factory.informer(name)
    except UnknownResource:
        informer = factory.informer(await client.resource(name))
    if informer.resource.plural == "pods":
        await informer.add_index("node", field("spec.nodeName"))
    return informer
