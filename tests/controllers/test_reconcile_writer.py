"""The writer of a run reports its successful writes, so that the next run waits for the cache."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from aioinformer import KubeObject, ObjectKey, Resource
from aioinformer.controllers.reconcile_writer import ReconcileWriter
from aioinformer.errors import NotFound
from aioinformer.testing import Cluster, ClusterSource


class Recorder:
    """The writes that the server has accepted."""

    def __init__(self) -> None:
        self.writes = list[tuple[str, ObjectKey, str]]()
        self.deletions = list[tuple[str, ObjectKey, str]]()

    def own_state(self, resource: Resource, key: ObjectKey) -> None:
        """Return no state: the run has no object of its own."""

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
        self.writer = ReconcileWriter(api, self.recorder, "web")

    @property
    def version(self) -> str:
        return str(
            self.cluster.get("deployments", "a", namespace="web")["metadata"]["resourceVersion"]
        )


Write = Callable[[Setup], Awaitable[KubeObject]]

WRITES: dict[str, Write] = {
    "create": lambda it: it.writer.create({"metadata": {"generateName": "b-"}, "spec": {}}),
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

    assert written.resource_version != before
    assert written.key.name.startswith("b-" if write == "create" else "a")
    assert setup.recorder.writes == [("deployments", written.key, written.resource_version)]


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
@pytest.mark.parametrize("finalizers", [[], ["example.com/hold"]])
@pytest.mark.parametrize("names_uid", [False, True])
async def test_a_deletion_is_recorded_with_the_namespace_and_the_uid_as_far_as_it_is_known(
    key: ObjectKey | str, finalizers: list[str], names_uid: bool
) -> None:
    setup = Setup(finalizers=finalizers)
    api = ClusterSource(setup.cluster).api("deployments")
    writer = setup.writer if key == "a" else ReconcileWriter(api, setup.recorder)

    left = await writer.delete(key, uid=setup.uid if names_uid else "")

    assert (left is not None) == bool(finalizers)
    known = setup.uid if names_uid or finalizers else ""
    assert setup.recorder.deletions == [("deployments", ObjectKey("web", "a"), known)]
