"""Leases and events on the real server: written and read by what is meant for the built-in ones."""

import asyncio

import pytest

from aioinformer import Client, EventRecorder, ObjectKey, SharedInformerFactory
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import Conflict, Invalid
from tests.apiserver.server.built_in_crds import install_events, install_leases
from tests.apiserver.server.server_process import ApiServerProcess

pytestmark = pytest.mark.apiserver

LEASES = find_built_in("leases")
EVENTS = find_built_in("events.events.k8s.io")


async def test_a_lease_is_created_renewed_and_watched(api_server: ApiServerProcess) -> None:
    await install_leases(api_server)
    async with Client.connect(kubeconfig=api_server.kubeconfig) as client:
        assert await client.resource("leases") == LEASES
        leases = client.api(LEASES, namespace="default")
        created = await leases.create(
            {
                "metadata": {"name": "foo"},
                "spec": {
                    "holderIdentity": "a",
                    "leaseDurationSeconds": 15,
                    "renewTime": "2026-01-01T00:00:00.000000Z",
                },
            }
        )
        assert created["spec"]["renewTime"] == "2026-01-01T00:00:00.000000Z"
        mine = created.to_dict()
        mine["spec"]["holderIdentity"] = "b"
        renewed = await leases.update(mine)
        with pytest.raises(Conflict):
            await leases.update(mine)
        async with SharedInformerFactory(client, namespace="default") as informers:
            informer = informers.informer(LEASES)
            await informer.wait_for(renewed, timeout=20)
            assert informer.lister[ObjectKey("default", "foo")]["spec"]["holderIdentity"] == "b"


async def test_events_are_recorded_and_counted(api_server: ApiServerProcess) -> None:
    await install_events(api_server)
    async with Client.connect(kubeconfig=api_server.kubeconfig) as client:
        widgets = client.api(await client.resource("widgets"), namespace="default")
        widget = await widgets.create({"metadata": {"name": "w"}, "spec": {}})
        async with EventRecorder(client.api(EVENTS), controller="example.com/foo") as recorder:
            recorder.record(widget, "Normal", "Created", "made it", action="Create")
            for _ in range(3):
                recorder.record(widget, "Warning", "Failed", "it broke", related=widget)
                await asyncio.sleep(0.2)
        statistics = recorder.statistics()
        assert (statistics.failed, statistics.dropped, statistics.queued) == (0, 0, 0)
        async with SharedInformerFactory(client, namespace="default") as informers:
            informer = informers.informer(EVENTS)
            await informers.wait_synced(timeout=20)
            events = {event["reason"]: event for event in informer.lister.list()}
        assert events.keys() == {"Created", "Failed"}
        assert events["Failed"]["series"]["count"] == 3
        assert events["Created"]["regarding"]["uid"] == widget.uid


async def test_an_invalid_event_is_rejected(api_server: ApiServerProcess) -> None:
    await install_events(api_server)
    async with Client.connect(kubeconfig=api_server.kubeconfig) as client:
        events = client.api(EVENTS, namespace="default")
        with pytest.raises(Invalid, match="eventTime"):
            await events.create({"metadata": {"name": "e"}, "type": "Normal"})
