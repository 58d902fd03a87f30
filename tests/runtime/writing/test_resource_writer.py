"""A writer that checks before each write whether it is allowed, and writers of other libraries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any

import pytest

from aioinformer import KubeObject, ObjectKey, ResourceWriter
from aioinformer._runtime.writing.resource_writer import CheckedClient, CheckedWriter
from aioinformer.errors import Conflict, LeadershipLost, NotFound
from aioinformer.testing import Cluster, ClusterSource

BODY = {"metadata": {"name": "a"}}

WRITES: dict[str, Callable[[ResourceWriter], Awaitable[KubeObject | None]]] = {
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


def guarded(cluster: Cluster, leadership: Leadership) -> ResourceWriter:
    client = CheckedClient(ClusterSource(cluster), leadership.check)
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


PRECONDITIONS: list[Callable[[ResourceWriter], Awaitable[object]]] = [
    lambda writer: writer.apply({**BODY, "data": {"x": "4"}}, field_manager="m", force=False),
    lambda writer: writer.delete("a", uid="another"),
    lambda writer: writer.delete("a", resource_version="99"),
]


@pytest.mark.parametrize("write", PRECONDITIONS)
async def test_the_preconditions_of_a_write_are_passed_on(
    write: Callable[[ResourceWriter], Awaitable[object]],
) -> None:
    cluster = make_cluster()
    with pytest.raises(Conflict):
        await write(guarded(cluster, Leadership()))
    assert [*cluster.objects("configmaps")]


# -- writers of other libraries ----------------------------------------------------------------


class OtherWriter:
    """A ``ResourceWriter`` of another library, which notes its calls."""

    def __init__(self) -> None:
        self.calls = list[tuple[str, tuple[object, ...], dict[str, object]]]()

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: object, **options: object) -> str:
            self.calls.append((name, arguments, options))
            return f"the answer to {name}"

        return call


CALLS: dict[str, tuple[tuple[object, ...], dict[str, object]]] = {
    "get": (("a",), {}),
    "create": ((BODY,), {}),
    "update": ((BODY,), {"subresource": "status"}),
    "update_status": ((BODY,), {}),
    "patch": ((ObjectKey("web", "a"), BODY), {"subresource": "scale"}),
    "apply": ((BODY,), {"field_manager": "", "force": False, "subresource": ""}),
    "delete": (
        ("a",),
        {"uid": "1", "resource_version": "2", "propagation": "Orphan", "grace_period": 3},
    ),
}


@pytest.mark.parametrize("method", CALLS)
async def test_a_writer_of_another_library_gets_each_call_as_the_program_made_it(
    method: str,
) -> None:
    other: Any = OtherWriter()
    arguments, options = CALLS[method]

    answer = await getattr(CheckedWriter(other, lambda: None), method)(*arguments, **options)

    assert other.calls == [(method, arguments, options)]
    assert answer == f"the answer to {method}"
