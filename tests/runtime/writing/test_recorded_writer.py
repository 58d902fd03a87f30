"""A writer that reports its successful writes, so that the next run waits for the cache."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from aioinformer import KubeObject, ObjectKey, Resource
from aioinformer._runtime.writing.recorded_writer import RecordedWriter
from aioinformer.errors import NotFound
from aioinformer.testing import Cluster, ClusterSource


class Recorder:
    """The writes that the server has accepted."""

    def __init__(self) -> None:
        self.writes = list[tuple[str, ObjectKey, str]]()
        self.deletions = list[tuple[str, ObjectKey, str]]()

    def record_write(self, resource: Resource, obj: KubeObject) -> None:
        self.writes.append((resource.plural, obj.key, obj.resource_version))

    def record_deletion(self, resource: Resource, key: ObjectKey, uid: str) -> None:
        self.deletions.append((resource.plural, key, uid))


class Setup:
    """A cluster with one Deployment, and a writer in its namespace."""

    def __init__(self, *, finalizers: list[str] | None = None) -> None:
        self.cluster, self.recorder = Cluster(), Recorder()
        self.body = {"metadata": {"name": "a", "finalizers": finalizers or []}, "spec": {}}
        self.uid = self.cluster.create("deployments", self.body, namespace="web")["metadata"]["uid"]
        api = ClusterSource(self.cluster).api("deployments", namespace="web")
        self.writer = RecordedWriter(api, self.recorder, "web")

    @property
    def version(self) -> str:
        return str(
            self.cluster.get("deployments", "a", namespace="web")["metadata"]["resourceVersion"]
        )


Write = Callable[[Setup], Awaitable[KubeObject]]

WRITES: dict[str, Write] = {
    "update": lambda it: it.writer.update({**it.body, "spec": {"replicas": 2}}),
    "update_status": lambda it: it.writer.update_status({**it.body, "status": {"replicas": 3}}),
    "patch": lambda it: it.writer.patch("a", {"spec": {"replicas": 4}}),
    "patch_status": lambda it: it.writer.patch(
        "a", {"status": {"replicas": 5}}, subresource="status"
    ),
    "apply": lambda it: it.writer.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "a"},
            "spec": {"replicas": 6},
        },
        field_manager="tests",
    ),
}


@pytest.mark.parametrize("write", WRITES)
async def test_a_write_is_recorded_in_the_version_that_the_server_stored(write: str) -> None:
    setup = Setup()
    before = setup.version

    written = await WRITES[write](setup)

    assert written.resource_version == setup.version != before
    assert setup.recorder.writes == [("deployments", ObjectKey("web", "a"), setup.version)]


async def test_a_created_object_is_recorded_under_the_name_that_the_server_chose() -> None:
    setup = Setup()

    created = await setup.writer.create({"metadata": {"generateName": "b-"}, "spec": {}})

    assert created.key.name.startswith("b-")
    assert setup.recorder.writes == [("deployments", created.key, created.resource_version)]


async def test_a_write_that_the_server_rejects_is_not_recorded() -> None:
    setup = Setup()
    with pytest.raises(NotFound):
        await setup.writer.patch("missing", {"spec": {}})
    with pytest.raises(NotFound):
        await setup.writer.delete("missing")

    assert setup.recorder.writes == setup.recorder.deletions == []


async def test_a_read_is_not_recorded() -> None:
    setup = Setup()

    assert (await setup.writer.get("a")).uid == setup.uid
    assert setup.writer.resource.plural == "deployments"
    assert setup.recorder.writes == []


@pytest.mark.parametrize("key", ["a", "web/a", ObjectKey("web", "a")])
async def test_a_deletion_is_recorded_with_the_namespace_of_the_writer(
    key: ObjectKey | str,
) -> None:
    setup = Setup()
    await setup.writer.delete(key, uid=setup.uid)

    assert setup.recorder.deletions == [("deployments", ObjectKey("web", "a"), setup.uid)]


async def test_a_deletion_through_a_writer_of_all_namespaces_is_recorded_with_that_of_the_key() -> (
    None
):
    setup = Setup()
    api = ClusterSource(setup.cluster).api("deployments")

    await RecordedWriter(api, setup.recorder).delete("web/a")

    assert setup.recorder.deletions == [("deployments", ObjectKey("web", "a"), "")]


async def test_the_uid_of_an_object_that_waits_for_its_finalizers_is_that_of_the_answer() -> None:
    setup = Setup(finalizers=["example.com/hold"])

    left = await setup.writer.delete("a")

    assert left is not None
    assert setup.recorder.deletions == [("deployments", ObjectKey("web", "a"), setup.uid)]
