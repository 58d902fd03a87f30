"""A writer that checks leadership before each request that writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import nullcontext

import pytest

from aioinformer import KubeObject, ObjectKey
from aioinformer.errors import Conflict, LeadershipLost, NotFound
from aioinformer.leaderelection.guarded_writer import GuardedClient, GuardedWriter
from aioinformer.testing import Cluster, ClusterSource

BODY = {"metadata": {"name": "a"}}

WRITES: dict[str, Callable[[GuardedWriter], Awaitable[KubeObject | None]]] = {
    "create": lambda writer: writer.create({"metadata": {"name": "b"}}),
    "update": lambda writer: writer.update({**BODY, "data": {"x": "2"}}),
    "update_status": lambda writer: writer.update_status(BODY),
    "patch": lambda writer: writer.patch("a", {"data": {"x": "3"}}),
    "apply": lambda writer: writer.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", **BODY, "data": {"x": "4"}},
        field_manager="m",
    ),
    "delete": lambda writer: writer.delete("a"),
}


class Leadership:
    """Leadership that can be lost."""

    lost = False

    def check(self) -> None:
        if self.lost:
            raise LeadershipLost("another replica leads")


def guarded(cluster: Cluster, leadership: Leadership) -> GuardedWriter:
    client = GuardedClient(ClusterSource(cluster), leadership.check)
    return client.api("configmaps", namespace="web")


def make_cluster() -> Cluster:
    cluster = Cluster()
    cluster.create("configmaps", {**BODY, "data": {"x": "1"}}, namespace="web")
    return cluster


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("lost", [False, True])
async def test_a_write_is_sent_unless_leadership_was_lost(write: str, lost: bool) -> None:
    cluster, leadership = make_cluster(), Leadership()
    writer, before = guarded(cluster, leadership), [*cluster.objects("configmaps")]
    leadership.lost = lost

    refused = LeadershipLost if lost else NotFound  # ConfigMaps have no status
    fails = lost or write == "update_status"
    with pytest.raises(refused) if fails else nullcontext():
        await WRITES[write](writer)

    assert ([*cluster.objects("configmaps")] == before) is fails
    if lost:
        assert (await writer.get("a")).key == ObjectKey("web", "a")
        assert writer.resource.plural == "configmaps"


PRECONDITIONS: list[Callable[[GuardedWriter], Awaitable[object]]] = [
    lambda writer: writer.apply({**BODY, "data": {"x": "4"}}, field_manager="m", force=False),
    lambda writer: writer.delete("a", uid="another"),
    lambda writer: writer.delete("a", resource_version="99"),
]


@pytest.mark.parametrize("write", PRECONDITIONS)
async def test_the_preconditions_of_a_write_are_passed_on(
    write: Callable[[GuardedWriter], Awaitable[object]],
) -> None:
    cluster = make_cluster()
    with pytest.raises(Conflict):
        await write(guarded(cluster, Leadership()))
    assert [*cluster.objects("configmaps")]
