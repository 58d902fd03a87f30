"""An informer of a custom resource whose definition comes, goes, comes back and is switched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

import pytest

from aioinformer import (
    BackoffPolicy,
    Client,
    Deleted,
    Event,
    Problem,
    Resource,
    SharedInformer,
    SharedInformerFactory,
)
from tests.apiserver.server.server_process import (
    WIDGET_CRD,
    AdminClient,
    ApiServerProcess,
    Json,
    install_crd,
)
from tests.apiserver.server.server_process import wait_until as process_until
from tests.promises.conftest import wait_until

pytestmark = pytest.mark.apiserver

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = Resource("example.com", "v1", "widgets", "Widget", short_names=("wd",))
BACKOFF = BackoffPolicy(initial=0.1, maximum=1.0)


class Watched:
    """An informer of widgets, what it told a handler, and what it complained of."""

    def __init__(self, informer: SharedInformer, problems: list[Problem]) -> None:
        self.informer = informer
        self.problems = problems
        self.events: list[Event] = []
        informer.add_handler(self.events.append)

    @property
    def names(self) -> list[str]:
        return sorted(obj.name for obj in self.informer.lister.list())

    async def becomes(self, state: str) -> None:
        await wait_until(lambda: self.informer.health.state == state)


@asynccontextmanager
async def watched(api_server: ApiServerProcess) -> AsyncGenerator[Watched]:
    problems: list[Problem] = []
    async with (
        Client.connect(kubeconfig=api_server.kubeconfig) as client,
        SharedInformerFactory(client, backoff=BACKOFF, on_error=problems.append) as informers,
    ):
        yield Watched(informers.informer(WIDGETS), problems)


def widget(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 1, "colour": "red"},
    }


async def remove(admin: AdminClient) -> None:
    """Delete the definition. The server serves what it defined for a second or so yet."""
    await admin.request("DELETE", f"{CRD}/widgets.example.com")

    async def gone() -> bool:
        return not await admin.succeeds("/apis/example.com/v1/widgets")

    async with asyncio.timeout(20):
        await process_until(gone)


@pytest.mark.timeout(90)
async def test_an_informer_waits_for_its_definition_and_survives_its_deletion(
    api_server: ApiServerProcess, admin: AdminClient
) -> None:
    await remove(admin)
    async with watched(api_server) as widgets:
        await widgets.becomes("absent")
        assert not widgets.informer.synced
        assert "waiting for the resource" in str(widgets.informer.health)

        await install_crd(api_server, WIDGET_CRD)
        await widgets.informer.wait_synced(timeout=20)
        await admin.create(widget("first"))
        await wait_until(lambda: widgets.names == ["first"])

        await remove(admin)
        await widgets.becomes("absent")
        await wait_until(lambda: widgets.names == [])
        gone = widgets.events[-1]
        assert isinstance(gone, Deleted)
        assert gone.reason in ("deleted", "resource_gone")

        await install_crd(api_server, WIDGET_CRD)
        await admin.create(widget("second"))
        await wait_until(lambda: widgets.names == ["second"])
        await widgets.becomes("watching")


@pytest.mark.timeout(90)
async def test_an_informer_follows_a_resource_to_another_version(
    api_server: ApiServerProcess, admin: AdminClient
) -> None:
    definition = await admin.request("GET", f"{CRD}/widgets.example.com")
    definition["spec"]["versions"] = [_version("v1", storage=True), _version("v2")]
    definition = await admin.request("PUT", f"{CRD}/widgets.example.com", body=definition)
    async with watched(api_server) as widgets:
        await widgets.informer.wait_synced(timeout=20)
        await admin.create(widget("moved"))
        await wait_until(lambda: widgets.names == ["moved"])

        definition = await admin.request("GET", f"{CRD}/widgets.example.com")
        definition["spec"]["versions"][0]["served"] = False
        await admin.request("PUT", f"{CRD}/widgets.example.com", body=definition)

        await wait_until(lambda: "api_version_changed" in [each.cause for each in widgets.problems])
        await widgets.becomes("watching")
        await wait_until(lambda: widgets.informer.lister.list()[0].api_version == "example.com/v2")
        assert widgets.names == ["moved"]
        assert not any(isinstance(event, Deleted) for event in widgets.events)
        await asyncio.sleep(0)


def _version(name: str, *, storage: bool = False) -> Json:
    version: Json = deepcopy(WIDGET_CRD["spec"]["versions"][0])
    return {**version, "name": name, "storage": storage}
