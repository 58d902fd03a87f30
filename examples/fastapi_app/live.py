"""What runs as long as the application does: a client, informers, and who counts what they tell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aioinformer import Client, Metrics, SharedInformer, SharedInformerFactory, field
from aioinformer.adapters.asgi import EventFeed
from aioinformer.errors import UnknownResource
from examples.fastapi_app.embedded import IMPATIENT, Embedded, embedded
from examples.fastapi_app.history import History
from examples.fastapi_app.news import News, Problems, Tally
from examples.fastapi_app.settings import Settings

__all__ = ["Live", "live"]

INDEXERS = {"pods": {"node": field("spec.nodeName")}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The running parts, for endpoints."""

    informers: Mapping[str, SharedInformer]
    """By the resource's plural name, which URLs have."""
    news: News
    history: History
    embedded: Embedded | None
    """The cluster that is shown, if it is the application's own."""


@asynccontextmanager
async def live(settings: Settings, metrics: Metrics, feed: EventFeed) -> AsyncGenerator[Live]:
    """Everything that the settings ask for; ready or not: probes say which."""
    clock = asyncio.get_running_loop().time
    problems = Problems(clock)
    async with (
        _cluster(settings) as (client, own),
        SharedInformerFactory(
            client,
            namespace=settings.namespace,
            backoff=settings.backoff or (IMPATIENT if own else None),
            metrics=metrics,
            on_error=problems.note,
        ) as factory,
    ):
        informers: dict[str, SharedInformer] = {}
        for name in settings.resources:
            informer = await _informer(factory, client, name)
            informers[informer.resource.plural] = informer
        tallies = {plural: Tally() for plural in informers}
        for plural, informer in informers.items():
            informer.add_handler(tallies[plural], name="tally")
        history = History(informers, tallies)
        async with history.kept():
            yield Live(
                informers=informers,
                history=history,
                news=News(
                    informers=informers,
                    tallies=tallies,
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
    """A client of the cluster that is to be shown, and that cluster if it is our own."""
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
    """The informer of a resource, built in or found on the server."""
    try:
        informer = factory.informer(name)
    except UnknownResource:
        informer = factory.informer(await client.resource(name))
    informer.add_indexers(INDEXERS.get(informer.resource.plural, {}))
    return informer
