"""A writer that checks leadership before each request that writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from aioinformer import KubeObject, ObjectKey
from aioinformer._runtime.leaderelection.guarded_writer import GuardedClient, GuardedWriter
from aioinformer.errors import Conflict, LeadershipLost
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
async def test_no_write_is_sent_after_leadership_was_lost(write: str) -> None:
    cluster, leadership = make_cluster(), Leadership()
    writer, before = guarded(cluster, leadership), [*cluster.objects("configmaps")]
    leadership.lost = True

    with pytest.raises(LeadershipLost, match="another replica leads"):
        await WRITES[write](writer)

    assert [*cluster.objects("configmaps")] == before


@pytest.mark.parametrize("write", [name for name in WRITES if name != "update_status"])
async def test_a_leader_writes(write: str) -> None:
    cluster = make_cluster()
    before = [*cluster.objects("configmaps")]

    await WRITES[write](guarded(cluster, Leadership()))

    assert [*cluster.objects("configmaps")] != before


async def test_a_replica_that_does_not_lead_reads() -> None:
    cluster, leadership = make_cluster(), Leadership()
    writer = guarded(cluster, leadership)
    leadership.lost = True

    assert (await writer.get("a")).key == ObjectKey("web", "a")
    assert writer.resource.plural == "configmaps"


async def test_an_apply_that_must_not_take_fields_over_is_passed_on() -> None:
    writer = guarded(make_cluster(), Leadership())
    with pytest.raises(Conflict, match="conflict with"):
        await writer.apply({**BODY, "data": {"x": "4"}}, field_manager="m", force=False)


async def test_the_preconditions_of_a_deletion_are_passed_on() -> None:
    cluster = make_cluster()
    writer = guarded(cluster, Leadership())

    with pytest.raises(Conflict):
        await writer.delete("a", uid="another")
    with pytest.raises(Conflict):
        await writer.delete("a", resource_version="99")
    assert [*cluster.objects("configmaps")]
