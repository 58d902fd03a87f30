"""The frames of a feed: which object is encoded again, and what a client knows of each object."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import ref

from aioinformer import Deleted, KubeObject, SharedInformer, SharedInformerFactory
from aioinformer._core.objects.kube_object import Added, ObjectKey
from aioinformer._core.objects.resources import find_built_in
from aioinformer._runtime.delivery.streams import EventSource
from aioinformer.adapters.asgi import Encode, EventFeed
from aioinformer.adapters.asgi.sse import FrameEncoder
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation import run
from tests.adapters.asgi_clients import AsgiClient, connected

CONFIG_MAPS = find_built_in("configmaps")
HIDDEN = "hidden"
BROKEN = "broken"


class Stage:
    """A ConfigMap ``web/a`` in a cluster, and a feed that sends its name and its value."""

    def __init__(self, cluster: Cluster, informer: SharedInformer, encode: Encode) -> None:
        self.cluster = cluster
        self.informer = informer
        self.feed = EventFeed(lambda: [informer], encode=encode)

    async def set(self, value: str) -> None:
        self.cluster.merge_patch(CONFIG_MAPS, "a", {"data": {"x": value}}, namespace="web")
        await asyncio.sleep(1)

    async def delete(self) -> None:
        self.cluster.delete(CONFIG_MAPS, "a", namespace="web")
        await asyncio.sleep(1)


def frames(client: AsgiClient) -> list[tuple[str, Any]]:
    """Return the frames about objects: the event, and the value or the error in its data."""
    return [
        (frame.event, frame.data.get("x", frame.data.get("error")))
        for frame in client.messages
        if frame.event in ("added", "updated", "deleted", "failed")
    ]


def encode(informer: EventSource, obj: KubeObject) -> str | None:
    value = obj["data"]["x"]
    if value == BROKEN:
        raise ValueError(value)
    return None if value == HIDDEN else json.dumps({"name": obj.name, "x": value})


def staged(
    act: Callable[[Stage], Awaitable[None]], value: str = "1", encode: Encode = encode
) -> None:
    async def main() -> None:
        cluster = Cluster()
        cluster.create(
            CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"x": value}}, namespace="web"
        )
        async with SharedInformerFactory(ClusterSource(cluster)) as informers:
            informer = informers.informer(CONFIG_MAPS)
            await informers.wait_synced(30)
            await act(Stage(cluster, informer, encode))

    run(main(), seed=0)


# -- which object is encoded again -------------------------------------------------------------


def test_a_client_receives_other_content_under_an_unchanged_resource_version() -> None:
    def convert(obj: dict[str, Any]) -> dict[str, Any]:
        return obj | {"data": {"x": "converted"}}

    async def act(stage: Stage) -> None:
        async with connected(stage.feed) as client:
            before = stage.informer.lister["web/a"].resource_version
            stage.cluster.convert_resource(CONFIG_MAPS, convert)
            await asyncio.sleep(30)
            assert stage.informer.lister["web/a"].resource_version == before
            assert frames(client) == [("added", "1"), ("updated", "converted")]
        async with connected(stage.feed) as client:
            assert frames(client) == [("added", "converted")]

    staged(act)


def test_an_object_is_encoded_once_for_clients_that_come_one_after_the_other() -> None:
    encoded: list[str] = []

    def counting(informer: EventSource, obj: KubeObject) -> str | None:
        encoded.append(obj.name)
        return encode(informer, obj)

    async def act(stage: Stage) -> None:
        for _ in range(3):
            async with connected(stage.feed) as client:
                assert frames(client) == [("added", "1")]
        assert encoded == ["a"]

    staged(act, encode=counting)


class Source:
    """An informer that can be replaced."""

    def __init__(self, name: str) -> None:
        self.name = name


def make_object(value: str) -> KubeObject:
    raw = json.dumps({"metadata": {"name": "a"}, "data": {"x": value}}).encode()
    return KubeObject(ObjectKey("web", "a"), "uid", "7", raw, CONFIG_MAPS)


def test_the_data_of_an_informer_is_not_sent_for_a_later_one_at_the_same_address() -> None:
    frames = FrameEncoder(lambda informer, obj: json.dumps(informer.name))
    event = Added(make_object("1"))
    for number in range(20):  # CPython gives the memory of a freed object to the next one
        source = Source(f"informer-{number}")
        assert source.name.encode() in frames.encode(source, event)
        freed = ref(source)
        del source
        assert freed() is None, "the encoder doesn't keep an informer alive"


# -- what a client knows of an object -------------------------------------------------------------


def test_an_object_that_the_encoder_leaves_out_from_now_on_is_deleted_for_a_client() -> None:
    async def act(stage: Stage) -> None:
        async with connected(stage.feed) as client:
            await stage.set(HIDDEN)
            assert frames(client) == [("added", "1"), ("deleted", "1")]
            await stage.delete()
            assert frames(client) == [("added", "1"), ("deleted", "1")]

    staged(act)


def test_an_object_that_the_encoder_no_longer_leaves_out_is_added_for_a_client() -> None:
    async def act(stage: Stage) -> None:
        async with connected(stage.feed) as client:
            await stage.set("2")
            await stage.set("3")
            assert frames(client) == [("added", "2"), ("updated", "3")]

    staged(act, HIDDEN)


def test_a_client_receives_no_event_of_an_object_that_the_encoder_has_always_left_out() -> None:
    async def act(stage: Stage) -> None:
        async with connected(stage.feed) as client:
            stage.cluster.merge_patch(
                CONFIG_MAPS, "a", {"metadata": {"labels": {"app": "shop"}}}, namespace="web"
            )
            await asyncio.sleep(1)
            await stage.delete()
            assert frames(client) == []

    staged(act, HIDDEN)


def test_an_object_is_deleted_for_a_client_although_the_encoder_leaves_out_its_last_state() -> None:
    frames = FrameEncoder(encode)
    source = Source("configmaps")
    deleted = Deleted(make_object(HIDDEN), "deleted", make_object("1"))
    assert frames.encode(source, deleted) == b'event: deleted\ndata: {"name": "a", "x": "1"}\n\n'


def test_an_object_is_deleted_for_a_client_although_its_last_state_cannot_be_encoded() -> None:
    async def act(stage: Stage) -> None:
        async with connected(stage.feed) as client:
            await stage.set(BROKEN)
            await stage.delete()
            shown = [("added", "1"), ("failed", "ValueError"), ("deleted", "ValueError")]
            assert frames(client) == shown
            assert client.object_names("deleted") == ["a"]

    staged(act)


def test_an_object_that_can_be_encoded_again_is_updated_for_a_client() -> None:
    async def act(stage: Stage) -> None:
        async with connected(stage.feed) as client:
            await stage.set("2")
            assert frames(client) == [("failed", "ValueError"), ("updated", "2")]
            await stage.set(BROKEN)
            await stage.set(HIDDEN)
            assert frames(client)[2:] == [("failed", "ValueError"), ("deleted", "ValueError")]

    staged(act, BROKEN)
