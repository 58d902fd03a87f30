"""An informer of the server's tables, against the embedded server."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aioinformer import BackoffPolicy, Client, SharedInformer, SharedInformerFactory
from aioinformer._cli.watch.table_source import TableSource
from aioinformer._core.objects.resources import find_built_in
from aioinformer.testing import ApiServer, Cluster

PODS = find_built_in("pods")
SHORT = BackoffPolicy(initial=0.02, maximum=0.02)
NAMES = ["Name", "Ready", "Status", "Restarts", "Age"]


def filled(count: int) -> Cluster:
    cluster = Cluster()
    for number in range(count):
        cluster.create("pods", {"metadata": {"name": f"pod-{number}"}, "spec": {"nodeName": "n"}})
    return cluster


@asynccontextmanager
async def informed(
    server: ApiServer, *, objects: bool = False
) -> AsyncGenerator[tuple[SharedInformer, TableSource]]:
    async with Client(server.url) as client:
        tables = TableSource(client, whole_objects=objects)
        async with SharedInformerFactory(tables, backoff=SHORT) as informers:
            informer = informers.informer("pods", namespace="default")
            await informer.wait_synced(30)
            yield informer, tables


async def test_rows_are_cached_with_their_cells() -> None:
    async with ApiServer(filled(3)) as server, informed(server) as (informer, tables):
        strategy, obj = informer.health.strategy, informer.lister["pod-1"]

    assert strategy == "list", "which alone says how much is to come"
    assert [each.name for each in tables.columns][:5] == NAMES
    assert list(obj["tableCells"])[:2] == ["pod-1", "0/0"]
    assert "spec" not in obj
    assert tables.progress.items == 3


async def test_whole_objects_from_tables_equal_those_of_a_plain_informer() -> None:
    async with (
        ApiServer(filled(3)) as server,
        informed(server, objects=True) as (informer, tables),
        SharedInformerFactory(tables.client, namespace="default") as informers,
    ):
        plain = informers.informer("pods")
        await plain.wait_synced(30)
        ours = [obj.to_dict() for obj in informer.lister]
        theirs = [obj.to_dict() for obj in plain.lister]

    assert ours == theirs
    assert ours[0]["spec"] == {"nodeName": "n"}


async def test_the_informer_delivers_changes_from_tables() -> None:
    async with (
        ApiServer(filled(1)) as server,
        informed(server) as (informer, _),
        informer.events() as events,
    ):
        first = await anext(events)
        server.cluster.merge_patch("pods", "pod-0", {"status": {"phase": "Running"}})
        second = await anext(events)
        server.drop_connections()
        server.cluster.delete("pods", "pod-0")
        third = await anext(events)

    kinds = [type(event).__name__ for event in (first, second, third)]
    assert kinds == ["Added", "Updated", "Deleted"]
    assert second.obj["tableCells"][2] == "Running"


async def test_the_first_page_of_a_list_sets_the_total_of_the_progress() -> None:
    cluster = filled(1001)
    async with ApiServer(cluster) as server, informed(server) as (informer, tables):
        assert (tables.progress.items, tables.progress.total) == (1001, 1001)
        assert len(informer.lister) == 1001


async def test_an_expired_watch_is_followed_by_a_list_whose_changes_are_delivered() -> None:
    async with (
        ApiServer(filled(2)) as server,
        informed(server) as (informer, _),
        informer.events() as events,
    ):
        there = [await anext(events), await anext(events)]
        await server.stop()
        server.cluster.create("pods", {"metadata": {"name": "later"}})
        server.cluster.delete("pods", "pod-0")
        server.cluster.compact()
        await server.start()
        after = [await anext(events), await anext(events)]

    assert {event.obj.name for event in there} == {"pod-0", "pod-1"}
    assert {(type(event).__name__, event.obj.name) for event in after} == {
        ("Added", "later"),
        ("Deleted", "pod-0"),
    }
