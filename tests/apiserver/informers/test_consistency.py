"""Reading one's own writes, and proving that a cache is right, against a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from aioinformer import Client, Resource, SharedInformer, field, label_index
from aioinformer.errors import CacheWaitTimeout
from tests.apiserver.server.server_process import AdminClient, ApiServerProcess, Json
from tests.runtime.informers import running_in_background

pytestmark = pytest.mark.apiserver

WIDGETS = Resource("example.com", "v1", "widgets", "Widget", short_names=("wd",))
MANY = 700
"""More than a page."""


def widget(name: str, **labels: str) -> Json:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "labels": labels},
        "spec": {"size": 1},
    }


@asynccontextmanager
async def reading(server: ApiServerProcess) -> AsyncGenerator[SharedInformer]:
    """Run an informer of the widgets until it is synced."""
    async with Client.connect(kubeconfig=server.kubeconfig) as client:
        widgets = SharedInformer(client.lister_watcher(WIDGETS, namespace="web"), namespace="web")
        async with running_in_background(widgets.run()):
            await widgets.wait_synced(30)
            yield widgets


async def test_the_cache_shows_an_own_write_after_wait_for(
    api_server: ApiServerProcess, admin: AdminClient
) -> None:
    async with reading(api_server) as widgets:
        answer = await admin.create(widget("w", app="shop"), "web")
        shown = await widgets.wait_for(answer, timeout=10)
        assert shown is widgets.lister["w"]
        for size in range(2, 12):
            answer = await admin.merge_patch("w", {"spec": {"size": size}}, "web")
            await widgets.wait_for(answer, timeout=10)
            assert widgets.lister["w"]["spec"]["size"] == size
        deleted = asyncio.create_task(widgets.wait_until("w", lambda obj: obj is None, timeout=10))
        await admin.delete("w", "web")
        assert await deleted is None
        assert await widgets.wait_for(answer, timeout=10) is None


async def test_a_wait_for_a_version_times_out_while_the_server_is_down(
    api_server: ApiServerProcess, admin: AdminClient
) -> None:
    async with reading(api_server) as widgets:
        answer = await admin.create(widget("w"), "web")
        await widgets.wait_for(answer, timeout=10)
        await api_server.kill()
        answer["metadata"]["resourceVersion"] = str(10**9)
        with pytest.raises(
            CacheWaitTimeout, match=r"web/w at resourceVersion 1000000000 after 0\.5 s"
        ):
            await widgets.wait_for(answer, timeout=0.5)


async def test_verify_finds_no_difference_while_objects_are_created_changed_and_deleted(
    api_server: ApiServerProcess, admin: AdminClient
) -> None:
    for start in range(0, MANY, 20):
        names = [f"w-{number:04d}" for number in range(start, start + 20)]
        await asyncio.gather(*(admin.create(widget(name, app="a"), "web") for name in names))

    async def churn() -> None:
        for number in range(60):
            await admin.merge_patch(f"w-{number:04d}", {"spec": {"size": number}}, "web")
            await admin.delete(f"w-{number + 600:04d}", "web")

    async with reading(api_server) as widgets:
        churning = asyncio.create_task(churn())
        await widgets.add_index("labels", label_index("app"))
        await widgets.add_index("size", lambda obj: str(field("spec.size")(obj)))
        while not churning.done():
            found = await widgets.verify(contents=True, timeout=20)
            assert found, str(found)
        await churning
        last = await admin.create(widget("last", app="b"), "web")
        await widgets.wait_for(last, timeout=10)
        found = await widgets.verify(contents=True, timeout=20)
        assert found, str(found)
        assert found.objects == MANY - 60 + 1
        assert widgets.lister.index_counts("labels") == {"app=a": MANY - 60, "app=b": 1}
        assert len(widgets.lister.by_index("size", "1")) == MANY - 60 + 1 - 59
