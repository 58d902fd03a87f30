"""Informers with models, conversions and transforms keep the promises too, over HTTP.

Each of them is compared with the others, and with the server, after connections were cut and
histories compacted: a model shows what the object has, a dropped object is nowhere, and only what
doesn't fit is left behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import pytest
from msgspec import Meta, Struct

from aioinformer import (
    Client,
    Deleted,
    Event,
    KubeObject,
    ObjectKey,
    SharedInformer,
    SharedInformerFactory,
)
from aioinformer.testing import ApiServer
from tests.promises.conftest import FAST_BACKOFF, wait_until

ROUNDS, PODS = 12, 30


Number: TypeAlias = Annotated[str, Meta(pattern="^[0-9]+$")]


class Metadata(Struct, frozen=True, gc=False):
    name: str
    resourceVersion: str  # noqa: N815 - the key in the JSON
    labels: dict[str, Number] = {}


class Pod(Struct, frozen=True, gc=False):
    metadata: Metadata


def without_big_ones(obj: KubeObject) -> Mapping[str, Any] | None:
    return None if obj.labels.get("n", "").startswith("9") else {**obj, "spec": {}}


def version_of(obj: KubeObject) -> str:
    return obj.resource_version


class LastEvents:
    """The last event of each object that was delivered to a listener."""

    def __init__(self) -> None:
        self.last: dict[ObjectKey, object] = {}

    def __call__(self, event: Event[Any]) -> None:
        if isinstance(event, Deleted):
            del self.last[event.key]
        else:
            self.last[event.key] = event.obj


async def shake(server: ApiServer, round_: int) -> None:
    """Change, create and delete pods; some don't fit the model, some are dropped."""
    cluster = server.cluster
    for number in range(PODS):
        name, value = f"p-{number}", str((number * 7 + round_ * 13) % 100)
        if value.endswith("3"):
            value = "a-word"
        if round_ == 0:
            cluster.create("pods", {"metadata": {"name": name, "labels": {"n": value}}})
        elif (number + round_) % 5 == 0:
            cluster.delete("pods", name)
            cluster.create("pods", {"metadata": {"name": name, "labels": {"n": value}}})
        else:
            cluster.merge_patch("pods", name, {"metadata": {"labels": {"n": value}}})
    if round_ % 3 == 1:
        cluster.compact()
    if round_ % 2 == 1:
        server.drop_connections()
    await asyncio.sleep(0.02)


def received_by(informer: SharedInformer[Any]) -> LastEvents:
    received = LastEvents()
    informer.add_handler(received)
    return received


@pytest.mark.parametrize("watch_list", [True, False])
async def test_1_caches_of_every_shape_converge_except_for_rejected_objects(
    server: ApiServer, client: Client, watch_list: bool
) -> None:
    await shake(server, 0)
    async with SharedInformerFactory(
        client, backoff=FAST_BACKOFF, watch_list=watch_list
    ) as informers:
        plain = informers.informer("pods")
        models = informers.informer("pods", model=Pod)
        versions = informers.informer("pods", convert=version_of)
        cut = informers.informer("pods", transform=without_big_ones)
        received = {each: received_by(each) for each in (models, versions, cut)}
        await informers.wait_synced(timeout=30)
        for round_ in range(1, ROUNDS):
            await shake(server, round_)
        goal = str(server.cluster.resource_version)
        await wait_until(lambda: all(each.lister.resource_version >= goal for each in informers))
        for each in informers:
            assert await each.verify(contents=True, timeout=10)
        objects = {obj.key: obj for obj in plain.lister}
        misfits = {key for key, obj in objects.items() if obj.labels["n"] == "a-word"}
        dropped = {key for key, obj in objects.items() if obj.labels["n"].startswith("9")}

        assert misfits
        assert dropped
        assert set(models.health.rejected) == set(map(str, misfits))
        for key, obj in objects.items():
            if key not in misfits:
                assert models.lister[key].metadata.resourceVersion == obj.resource_version
                assert models.lister[key].metadata.labels == obj.labels
            assert versions.lister[key] == obj.resource_version
            assert (cut.lister.get(key) is None) == (key in dropped)
        for informer, listener in received.items():
            keys = informer.lister.keys()
            shown = {key: informer.lister[key] for key in keys}
            await wait_until(lambda: listener.last == shown)  # noqa: B023 - called before the next turn
        assert all(obj["spec"] == {} for obj in cut.lister)
