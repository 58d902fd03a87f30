"""Exercises of the clients that are generated from Kubernetes' OpenAPI document.

``kubernetes`` is synchronous. ``kubernetes.aio`` and ``kubernetes_asyncio`` have the same methods
as coroutines, so they share their exercises.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.clients.exercises import (
    COLLECTION,
    LISTS,
    OBJECTS,
    PATCHES,
    WATCHES,
    Target,
    exercise,
    gadget,
)

MERGE_PATCH = "application/merge-patch+json"


# -- kubernetes ----------------------------------------------------------------------------------


def connect(target: Target) -> tuple[Any, Any]:
    """Return the package, and a client of the kubeconfig."""
    kubernetes: Any = pytest.importorskip("kubernetes")
    return kubernetes, kubernetes.config.new_client_from_config(str(target.kubeconfig))


def names(found: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in found["items"]]


@exercise("kubernetes", OBJECTS)
def sync_objects(target: Target) -> None:
    kubernetes, client = connect(target)
    api, where = kubernetes.client.CustomObjectsApi(client), target.where
    api.create_namespaced_custom_object(**where, body=gadget("a"))
    found = api.get_namespaced_custom_object(**where, name="a")
    found["spec"]["size"] = 2
    api.replace_namespaced_custom_object(**where, name="a", body=found)
    assert api.get_namespaced_custom_object(**where, name="a")["spec"] == {"size": 2}
    api.delete_namespaced_custom_object(**where, name="a")
    with pytest.raises(kubernetes.client.ApiException) as raised:
        api.get_namespaced_custom_object(**where, name="a")
    assert raised.value.status == 404


@exercise("kubernetes", LISTS)
def sync_lists(target: Target) -> None:
    kubernetes, client = connect(target)
    api, where = kubernetes.client.CustomObjectsApi(client), target.where
    for name in "abc":
        api.create_namespaced_custom_object(**where, body=gadget(name))
    api.create_namespaced_custom_object(**where, body=gadget("other", app="cart"))
    first = api.list_namespaced_custom_object(**where, label_selector="app=shop", limit=2)
    token = first["metadata"]["continue"]
    second = api.list_namespaced_custom_object(
        **where, label_selector="app=shop", limit=2, _continue=token
    )
    assert (names(first), names(second)) == (["a", "b"], ["c"])


@exercise("kubernetes", PATCHES)
def sync_patches(target: Target) -> None:
    kubernetes, client = connect(target)
    dynamic = kubernetes.dynamic.DynamicClient(client)
    gadgets = dynamic.resources.get(api_version="example.com/v1", kind="Gadget")
    own = {"namespace": target.namespace}
    gadgets.create(body=gadget("a"), **own)
    gadgets.patch(name="a", body={"spec": {"size": 2}}, content_type=MERGE_PATCH, **own)
    assert gadgets.get(name="a", **own).spec.size == 2
    applied = gadgets.server_side_apply(
        name="a", body=gadget("a", 3), field_manager="test", force_conflicts=True, **own
    )
    assert applied.spec.size == 3
    api = kubernetes.client.CustomObjectsApi(client)
    patched = api.patch_namespaced_custom_object_status(
        **target.where,
        name="a",
        body={"status": {"phase": "good"}, "spec": {"size": 9}},
        _content_type=MERGE_PATCH,
    )
    assert (patched["spec"], patched["status"]) == ({"size": 3}, {"phase": "good"})


@exercise("kubernetes", WATCHES)
def sync_watches(target: Target) -> None:
    kubernetes, client = connect(target)
    api, where = kubernetes.client.CustomObjectsApi(client), target.where
    version = api.list_namespaced_custom_object(**where)["metadata"]["resourceVersion"]
    api.create_namespaced_custom_object(**where, body=gadget("a"))
    api.delete_namespaced_custom_object(**where, name="a")
    stream = kubernetes.watch.Watch().stream(
        api.list_namespaced_custom_object, **where, resource_version=version, timeout_seconds=20
    )
    seen = [next(stream)["type"], next(stream)["type"]]
    stream.close()
    assert seen == ["ADDED", "DELETED"]


@exercise("kubernetes", COLLECTION)
def sync_collection(target: Target) -> None:
    kubernetes, client = connect(target)
    api, where = kubernetes.client.CustomObjectsApi(client), target.where
    for name, app in (("a", "shop"), ("b", "shop"), ("c", "cart")):
        api.create_namespaced_custom_object(**where, body=gadget(name, app=app))
    api.delete_collection_namespaced_custom_object(**where, label_selector="app=shop")
    assert names(api.list_namespaced_custom_object(**where)) == ["c"]


@exercise("kubernetes", "typed pods, scale, evict", built_in=True)
def sync_built_in(target: Target) -> None:
    kubernetes, client = connect(target)
    core, apps = kubernetes.client.CoreV1Api(client), kubernetes.client.AppsV1Api(client)
    space = target.namespace
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "web:1"}]}
    for name in ("web-0", "web-1"):
        core.create_namespaced_pod(space, {"metadata": {"name": name}, "spec": spec})
    assert core.delete_namespaced_pod("web-0", space).metadata.name == "web-0"
    eviction = kubernetes.client.V1Eviction(metadata={"name": "web-1", "namespace": space})
    core.create_namespaced_pod_eviction("web-1", space, eviction)
    assert core.list_namespaced_pod(space).items == []
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    deployment = {"selector": {"matchLabels": labels}, "template": template}
    body = {"metadata": {"name": "web"}, "spec": deployment}
    apps.create_namespaced_deployment(space, body)
    apps.patch_namespaced_deployment_scale("web", space, {"spec": {"replicas": 4}})
    assert apps.read_namespaced_deployment_scale("web", space).spec.replicas == 4


# -- kubernetes.aio and kubernetes_asyncio -------------------------------------------------------


class AsyncPackage:
    """One of the two asynchronous packages."""

    def __init__(self, name: str) -> None:
        self.name = name

    @asynccontextmanager
    async def connect(self, target: Target) -> AsyncGenerator[tuple[Any, Any]]:
        """Yield the package's module ``watch``, and its API of custom objects."""
        pytest.importorskip(self.name)
        client, config, watch = (
            importlib.import_module(f"{self.name}.{part}") for part in ("client", "config", "watch")
        )
        settings = client.Configuration()
        await config.load_kube_config(str(target.kubeconfig), client_configuration=settings)
        async with client.ApiClient(settings) as connection:
            yield watch, client.CustomObjectsApi(connection)

    async def objects(self, target: Target) -> None:
        async with self.connect(target) as (_, api):
            where = target.where
            await api.create_namespaced_custom_object(**where, body=gadget("a"))
            found = await api.get_namespaced_custom_object(**where, name="a")
            found["spec"]["size"] = 2
            await api.replace_namespaced_custom_object(**where, name="a", body=found)
            found = await api.get_namespaced_custom_object(**where, name="a")
            assert found["spec"] == {"size": 2}
            await api.delete_namespaced_custom_object(**where, name="a")
            assert names(await api.list_namespaced_custom_object(**where)) == []

    async def lists(self, target: Target) -> None:
        async with self.connect(target) as (_, api):
            where = target.where
            for name in "abc":
                await api.create_namespaced_custom_object(**where, body=gadget(name))
            first = await api.list_namespaced_custom_object(
                **where, label_selector="app=shop", limit=2
            )
            token = first["metadata"]["continue"]
            second = await api.list_namespaced_custom_object(**where, limit=2, _continue=token)
            assert (names(first), names(second)) == (["a", "b"], ["c"])

    async def patches(self, target: Target) -> None:
        async with self.connect(target) as (_, api):
            where = target.where
            await api.create_namespaced_custom_object(**where, body=gadget("a"))
            patched = await api.patch_namespaced_custom_object(
                **where, name="a", body={"spec": {"size": 2}}, _content_type=MERGE_PATCH
            )
            assert patched["spec"] == {"size": 2}
            patched = await api.patch_namespaced_custom_object(
                **where,
                name="a",
                body=gadget("a", 3),
                field_manager="test",
                force=True,
                _content_type="application/apply-patch+yaml",
            )
            assert patched["spec"] == {"size": 3}
            patched = await api.patch_namespaced_custom_object_status(
                **where,
                name="a",
                body={"status": {"phase": "good"}, "spec": {"size": 9}},
                _content_type=MERGE_PATCH,
            )
            assert (patched["spec"], patched["status"]) == ({"size": 3}, {"phase": "good"})

    async def watches(self, target: Target) -> None:
        async with self.connect(target) as (watch, api):
            where, seen = target.where, list[str]()
            version = (await api.list_namespaced_custom_object(**where))["metadata"][
                "resourceVersion"
            ]
            await api.create_namespaced_custom_object(**where, body=gadget("a"))
            await api.delete_namespaced_custom_object(**where, name="a")
            async with watch.Watch().stream(
                api.list_namespaced_custom_object,
                **where,
                resource_version=version,
                timeout_seconds=20,
            ) as stream:
                async for event in stream:
                    seen.append(event["type"])
                    if len(seen) == 2:
                        break
            assert seen == ["ADDED", "DELETED"]

    async def collection(self, target: Target) -> None:
        async with self.connect(target) as (_, api):
            where = target.where
            for name, app in (("a", "shop"), ("b", "shop"), ("c", "cart")):
                await api.create_namespaced_custom_object(**where, body=gadget(name, app=app))
            await api.delete_collection_namespaced_custom_object(**where, label_selector="app=shop")
            assert names(await api.list_namespaced_custom_object(**where)) == ["c"]

    def register(self) -> None:
        """Register the exercises."""
        operations: dict[str, Callable[[Target], Awaitable[None]]] = {
            OBJECTS: self.objects,
            LISTS: self.lists,
            PATCHES: self.patches,
            WATCHES: self.watches,
            COLLECTION: self.collection,
        }
        for operation, perform in operations.items():
            self._register(operation, perform)

    def _register(self, operation: str, perform: Callable[[Target], Awaitable[None]]) -> None:
        @exercise(self.name, operation)
        def run(target: Target) -> None:
            async def main() -> None:
                await perform(target)

            asyncio.run(main())


AsyncPackage("kubernetes.aio").register()
AsyncPackage("kubernetes_asyncio").register()
