"""Content that the real API server changes without a write: the schema of a custom resource."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from aioinformer import Client, Event, Resource, SharedInformer, Updated
from tests.apiserver.server.server_process import AdminClient, ApiServerProcess, Json
from tests.apiserver.server.server_process import wait_until as wait_for_server
from tests.runtime.informers import running_in_background

pytestmark = pytest.mark.apiserver

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


async def put_schema(admin: AdminClient, properties: Json) -> None:
    """Give the spec of widgets these properties and no others."""
    definition = await admin.request("GET", CRD)
    schema: Json = {
        "type": "object",
        "properties": {"spec": {"type": "object", "default": {}, "properties": properties}},
    }
    for version in definition["spec"]["versions"]:
        version.pop("selectableFields", None)  # a selectable field must be in the schema
        version["schema"] = {"openAPIV3Schema": deepcopy(schema)}
    definition["spec"]["preserveUnknownFields"] = False
    await admin.request("PUT", CRD, body=definition)


@pytest.mark.parametrize("watch_list", [True, False])
async def test_a_default_and_a_removed_property_reach_the_cache_and_the_handlers(
    api_server: ApiServerProcess, admin: AdminClient, watch_list: bool
) -> None:
    number: Json = {"type": "integer"}
    text: Json = {"type": "string"}
    # The test creates the widgets before it changes the schema: the server may refuse a write just
    # after such a change (503, "apiserver is shutting down"). The initial schema keeps all fields.
    for name in ("a", "b"):
        await admin.create(
            {
                "apiVersion": "example.com/v1",
                "kind": "Widget",
                "metadata": {"name": name},
                "spec": {"size": 1, "note": "kept"},
            },
            "web",
        )
    events: list[Event] = []

    async def handled() -> bool:
        specs = [event.new["spec"] for event in events[-2:] if isinstance(event, Updated)]
        return specs == [{"size": 1, "color": "red"}] * 2

    async with Client.connect(kubeconfig=api_server.kubeconfig) as client:
        source = client.lister_watcher(WIDGETS, namespace="web")
        widgets = SharedInformer(source, namespace="web", watch_list=watch_list)
        widgets.add_handler(events.append)
        async with running_in_background(widgets.run()):
            await widgets.wait_synced(30)
            # The server may answer the initial list from a watch cache that is still empty. The
            # watch sends the widgets then.
            await widgets_show(widgets, {"size": 1, "note": "kept"})
            versions = {obj.name: obj.resource_version for obj in widgets.lister.list()}

            red = text | {"default": "red"}
            await put_schema(admin, {"size": number, "note": text, "color": red})
            await widgets_show(widgets, {"size": 1, "note": "kept", "color": "red"})
            await put_schema(admin, {"size": number, "color": red})
            await widgets_show(widgets, {"size": 1, "color": "red"})

            assert {obj.name: obj.resource_version for obj in widgets.lister.list()} == versions
            found = await widgets.verify(contents=True, timeout=20)
            assert found, str(found)
            await wait_for_server(handled)
    updates = [event for event in events if isinstance(event, Updated)]
    assert len(updates) == len(events) - 2
    assert all(update.old["spec"] != update.new["spec"] for update in updates)
    assert {"red"} == {update.new["spec"].get("color") for update in updates}


async def widgets_show(widgets: SharedInformer, spec: dict[str, Any]) -> None:
    """Wait until the cache shows the two widgets of the test, both with this spec."""

    async def shown() -> bool:
        specs = [obj.to_dict()["spec"] for obj in widgets.lister.list()]
        return specs == [spec, spec]

    await wait_for_server(shown)
