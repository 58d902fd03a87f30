"""Informers with a model, a conversion and a transform against a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

import pytest
from msgspec import Struct

from aioinformer import Added, Client, Deleted, Event, KubeObject, Resource, SharedInformerFactory
from tests.apiserver.server.server_process import AdminClient, ApiServerProcess, Json
from tests.runtime.scripted_source import wait_until

pytestmark = pytest.mark.apiserver

WIDGETS = Resource("example.com", "v1", "widgets", "Widget", short_names=("wd",))


class Metadata(Struct, frozen=True, gc=False):
    name: str
    labels: dict[str, Literal["shop", "cart"]] = {}


class Widget(Struct, frozen=True, gc=False):
    metadata: Metadata
    kind: str
    apiVersion: str  # noqa: N815 - the key in the JSON


def app_of(obj: KubeObject) -> str:
    return obj.labels["app"]


def carts_only(obj: KubeObject) -> Mapping[str, Any] | None:
    return {**obj, "spec": {"size": 0}} if obj.labels["app"] == "cart" else None


def widget(name: str, app: str) -> Json:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"size": 1},
    }


def labelled(app: str) -> Json:
    return {"metadata": {"labels": {"app": app}}}


async def test_models_conversions_and_transforms_show_all_objects_that_fit(
    api_server: ApiServerProcess, admin: AdminClient
) -> None:
    await admin.create(widget("a", "shop"), "web")
    async with (
        Client.connect(kubeconfig=api_server.kubeconfig) as client,
        SharedInformerFactory(client, namespace="web") as informers,
    ):
        models = informers.informer(WIDGETS, model=Widget)
        apps = informers.informer(WIDGETS, convert=app_of)
        carts = informers.informer(WIDGETS, transform=carts_only)
        events: list[Event] = []
        carts.add_handler(events.append)
        await informers.wait_synced(30)
        # As an item of a list it came without them, or in an event with them.
        assert models.lister["a"] == Widget(
            Metadata("a", {"app": "shop"}), "Widget", "example.com/v1"
        )

        misfit = await admin.merge_patch("a", labelled("other"), "web")
        last = await admin.create(widget("b", "cart"), "web")
        assert await models.wait_for(misfit, timeout=10) == models.lister["a"]
        await asyncio.gather(*(each.wait_for(last, timeout=10) for each in (models, apps, carts)))
        assert models.health.rejected == ("web/a",)
        assert sorted(apps.lister) == ["cart", "other"]
        assert [obj["spec"]["size"] for obj in carts.lister] == [0]

        await admin.merge_patch("b", labelled("shop"), "web")
        last = await admin.merge_patch("a", labelled("cart"), "web")
        await asyncio.gather(*(each.wait_for(last, timeout=10) for each in (models, apps, carts)))
        assert not models.health.rejections
        await wait_until(lambda: len(events) == 3)
        assert [(type(event), event.obj.name) for event in events] == [
            *((Added, "b"), (Deleted, "b"), (Added, "a")),
        ]
        assert isinstance(events[1], Deleted)
        assert events[1].reason == "dropped"
        for each in (models, apps, carts):
            assert await each.verify(contents=True, timeout=20)
