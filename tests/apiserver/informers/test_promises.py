"""Promises 1 to 4 against a real API server, which is killed and comes back.

The same judge as for the embedded server; what is asked of an informer doesn't depend on who
serves it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from functools import partial
from typing import Any

import pytest

from aioinformer import (
    BackoffPolicy,
    Client,
    Deleted,
    Event,
    KubeObject,
    ObjectKey,
    Resource,
    SharedInformer,
    SharedInformerFactory,
)
from tests.apiserver.server.server_process import AdminClient, ApiServerProcess
from tests.promises.conftest import wait_until
from tests.promises.event_recorder import RecordingHandler, check_event_order, states

pytestmark = pytest.mark.apiserver

WIDGETS = Resource("example.com", "v1", "widgets", "Widget", short_names=("wd",))
BACKOFF = BackoffPolicy(initial=0.05, maximum=0.5)


def colour(obj: KubeObject) -> str:
    """Return the value of an index."""
    name: str = obj["spec"]["colour"]
    return name


def widget(name: str, rng: random.Random) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": rng.randrange(1000), "colour": rng.choice(("red", "green", "blue"))},
    }


async def write(admin: AdminClient, names: list[str], seed: int) -> None:
    """Create each widget, change it once or twice, and delete every fifth."""
    rng = random.Random(seed)

    async def one(name: str) -> None:
        await admin.create(widget(name, rng), namespace="web")
        for _ in range(rng.randint(1, 2)):
            patch = {"spec": {"size": rng.randrange(1000)}}
            await admin.merge_patch(name, patch, namespace="web")
        if rng.random() < 0.2:
            await admin.delete(name, namespace="web")
            if rng.random() < 0.5:
                await admin.create(widget(name, rng), namespace="web")

    for start in range(0, len(names), 10):
        await asyncio.gather(*(one(name) for name in names[start : start + 10]))


def _is_current(recorder: RecordingHandler, truth: object) -> bool:
    return check_event_order(recorder.events) == truth


async def served(admin: AdminClient) -> dict[ObjectKey, tuple[str, str]]:
    """Return the state of a new list."""
    found = (await admin.list("web"))["items"]
    return {
        ObjectKey(meta["namespace"], meta["name"]): (meta["uid"], meta["resourceVersion"])
        for meta in (item["metadata"] for item in found)
    }


async def read(informer: SharedInformer, events: list[Event]) -> None:
    async with informer.events() as stream:
        async for event in stream:
            events.append(event)  # noqa: PERF401 - the list is looked at while it grows


@pytest.mark.timeout(300)  # a thousand writes, on a machine that may be busy
async def test_the_guarantees_hold_for_a_thousand_widgets_and_a_killed_server(
    api_server: ApiServerProcess, admin: AdminClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "aioinformer.reflector")
    streamed: list[Event] = []
    async with (
        Client.connect(kubeconfig=api_server.kubeconfig) as client,
        SharedInformerFactory(client, namespace="web", backoff=BACKOFF) as informers,
    ):
        widgets = informers.informer(WIDGETS, indexers={"colour": colour})
        recorders = [RecordingHandler(widgets), RecordingHandler(widgets)]
        for recorder in recorders:
            widgets.add_handler(recorder)
        await informers.wait_synced(60)
        reading = asyncio.create_task(read(widgets, streamed))

        await write(admin, [f"early-{i}" for i in range(500)], seed=1)
        late = RecordingHandler(widgets)
        widgets.add_handler(late)
        writing = asyncio.create_task(write(admin, [f"middle-{i}" for i in range(300)], seed=2))
        await wait_until(lambda: len(widgets.lister) > 450, timeout=60)
        await writing

        await api_server.kill()
        await wait_until(lambda: widgets.health.error is not None)
        assert len(widgets.lister) > 600  # an unreachable server empties nothing
        gone = [obj.name for obj in widgets.lister][::7]
        await api_server.start()
        async with AdminClient(api_server) as again:
            for name in gone:
                await again.delete(name, namespace="web")
            await write(again, [f"later-{i}" for i in range(200)], seed=3)
            truth = await served(again)

        await wait_until(lambda: states(widgets.lister) == truth, timeout=60)
        for recorder in (*recorders, late):
            await wait_until(partial(_is_current, recorder, truth))
        await wait_until(lambda: check_event_order(streamed) == truth)
        reading.cancel()
        await asyncio.wait({reading})

        indexed = [widgets.lister.by_index("colour", name) for name in ("red", "green", "blue")]
        assert states(obj for found in indexed for obj in found) == truth
        assert [each.statistics().errors for each in widgets.registrations] == [0, 0, 0]
    delivered = {event.obj.name for event in recorders[0].events if isinstance(event, Deleted)}
    assert set(gone) <= delivered


async def test_an_expired_version_after_a_restart_leads_to_a_diff(
    api_server: ApiServerProcess, admin: AdminClient
) -> None:
    rng = random.Random(4)
    for name in "abc":
        await admin.create(widget(name, rng), namespace="web")
    async with (
        Client.connect(kubeconfig=api_server.kubeconfig) as client,
        SharedInformerFactory(client, backoff=BackoffPolicy(initial=2.0)) as informers,
    ):
        widgets = informers.informer(WIDGETS)
        recorder = RecordingHandler(widgets)
        await widgets.add_handler(recorder).wait_synced(30)
        recorder.events.clear()
        await api_server.restart()
        # The informer waits two seconds or more; so these come before it is back.
        await admin.delete("a", namespace="web")
        await admin.merge_patch("b", {"spec": {"size": 7}}, namespace="web")
        truth = await served(admin)
        await wait_until(lambda: states(widgets.lister) == truth, timeout=60)
        # The handlers run after the cache has changed.
        await wait_until(lambda: len(recorder.events) > 1)
    delivered = [(type(event).__name__, event.obj.name) for event in recorder.events]
    # "c" has the version that it had, so that no event is delivered for this object.
    assert sorted(delivered) == [("Deleted", "a"), ("Updated", "b")]


async def test_discovery_finds_a_custom_resource_by_any_of_its_names(
    api_server: ApiServerProcess,
) -> None:
    async with Client.connect(kubeconfig=api_server.kubeconfig) as client:
        for name in ("widgets", "widget", "wd", "Widget", "widgets.example.com"):
            found = await client.resource(name)
            assert (found.group, found.version, found.plural) == ("example.com", "v1", "widgets")
            assert found.namespaced
