"""A client's writer against the real server: what controllers do, and what they wait for."""

from collections.abc import AsyncIterator

import pytest

from aioinformer import Client, Resource, ResourceWriter, SharedInformerFactory, retry_on_conflict
from aioinformer.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound
from tests.apiserver.fidelity.write_requests import GIZMO_CRD
from tests.apiserver.server.server_process import ApiServerProcess, install_crd

pytestmark = pytest.mark.apiserver

GIZMOS = Resource("example.com", "v1", "gizmos", "Gizmo")


@pytest.fixture
async def client(api_server: ApiServerProcess) -> AsyncIterator[Client]:
    async with Client.connect(kubeconfig=api_server.kubeconfig) as client:
        yield client


@pytest.fixture
async def widgets(client: Client) -> ResourceWriter:
    return client.api(await client.resource("widgets"), namespace="default")


async def test_wait_for_returns_when_the_cache_has_the_written_object(
    client: Client, widgets: ResourceWriter
) -> None:
    async with SharedInformerFactory(client, namespace="default") as informers:
        informer = informers.informer(widgets.resource)
        await informers.wait_synced(timeout=20)
        made = await widgets.create({"metadata": {"name": "a"}, "spec": {"size": 1}})
        await informer.wait_for(made, timeout=20)
        assert informer.lister[made.key] == made, "not a byte is different"
        for size in range(2, 6):
            changed = await widgets.patch("a", {"spec": {"size": size}})
            await informer.wait_for(changed, timeout=20)
            assert informer.lister[made.key]["spec"]["size"] == size


async def test_each_kind_of_conflict_has_its_own_error(widgets: ResourceWriter) -> None:
    made = await widgets.create({"metadata": {"name": "a"}, "spec": {"size": 1}})
    with pytest.raises(AlreadyExists):
        await widgets.create({"metadata": {"name": "a"}})
    mine = made.to_dict()
    mine["spec"]["size"] = 2
    await widgets.update(mine)
    with pytest.raises(Conflict, match="retry_on_conflict"):
        await widgets.update(mine)

    async def grow() -> int:
        newest = (await widgets.get("a")).to_dict()
        newest["spec"]["size"] += 1
        size: int = (await widgets.update(newest))["spec"]["size"]
        return size

    assert await retry_on_conflict(grow) == 3
    config = {"metadata": {"name": "a"}, "spec": {"size": 9}}
    with pytest.raises(Conflict, match="force=True"):
        await widgets.apply(config, field_manager="me", force=False)
    forced = await widgets.apply(config, field_manager="me")
    assert forced["spec"]["size"] == 9


async def test_a_deletion_with_another_uid_fails_and_a_finalizer_delays_a_deletion(
    widgets: ResourceWriter,
) -> None:
    held = {"name": "a", "finalizers": ["example.com/held"]}
    made = await widgets.create({"metadata": held})
    with pytest.raises(Conflict, match="the object with that uid no longer exists"):
        await widgets.delete("a", uid="other")
    left = await widgets.delete("a", uid=made.uid, propagation="Background")
    assert left is not None
    assert left.deletion_timestamp is not None
    gone = [{"op": "remove", "path": "/metadata/finalizers"}]
    await widgets.patch("a", gone)
    with pytest.raises(NotFound):
        await widgets.get("a")


async def test_the_error_of_an_invalid_write_names_the_field(widgets: ResourceWriter) -> None:
    with pytest.raises(Invalid, match=r"spec\.size"):
        await widgets.create({"metadata": {"name": "a"}, "spec": {"size": "large"}})
    with pytest.raises(BadRequest, match="labels"):
        await widgets.create({"metadata": {"name": "a", "labels": {"x": 1}}})


async def test_a_status_is_written_through_its_subresource(
    api_server: ApiServerProcess, client: Client, widgets: ResourceWriter
) -> None:
    await install_crd(api_server, GIZMO_CRD)
    gizmos = client.api(GIZMOS, namespace="default")
    made = await gizmos.create({"metadata": {"generateName": "g-"}, "status": {"x": 1}})
    assert "status" not in made
    updated = await gizmos.update_status({**made.to_dict(), "status": {"x": 2}})
    assert (updated["status"], updated["metadata"]["generation"]) == ({"x": 2}, 1)
    await widgets.create({"metadata": {"name": "a"}})
    with pytest.raises(NotFound, match="A CustomResourceDefinition must declare it"):
        await widgets.update_status(await widgets.get("a"))


async def test_a_field_that_the_server_drops_is_logged_once(
    widgets: ResourceWriter, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        await widgets.create({"metadata": {"name": name, "nope": 1}})
    warned = [record.getMessage() for record in caplog.records if "warns" in record.getMessage()]
    assert warned == ['the server warns: unknown field "metadata.nope"']
