"""The memory of a factory that was left: reference counts alone free it, without a collection."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import traceback
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from aioinformer import (
    CacheFile,
    Client,
    Controller,
    Event,
    KubeObject,
    Lister,
    ObjectKey,
    ReconcileContext,
    ShardGroup,
    SharedInformer,
    SharedInformerFactory,
    labelled,
    merge,
)
from aioinformer.errors import CacheWaitTimeout, Forbidden, ListenerOverflow
from aioinformer.testing import ApiServer, Cluster
from tests.runtime.informers import cluster_with_pods
from tests.runtime.scripted_source import wait_until


@pytest.fixture(autouse=True)
def _no_collections() -> Generator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(autouse=True)
def _no_log_records() -> Generator[None]:
    """Switch the log off: pytest keeps records, which keep exceptions and their frames."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@dataclass
class Left:
    """The remains of a factory: its informer, if something refers to that, and an object."""

    informer: weakref.ref[SharedInformer[Any]]
    obj: KubeObject

    @classmethod
    def of(cls, informer: SharedInformer[Any], key: str = "default/a") -> Left:
        obj = informer.stored(ObjectKey.parse(key))
        assert obj is not None
        return cls(weakref.ref(informer), obj)

    @property
    def freed(self) -> bool:
        # The attribute and the argument of getrefcount refer to the object: no cache does.
        return self.informer() is None and sys.getrefcount(self.obj) <= 2


Use: TypeAlias = Callable[[SharedInformerFactory], Awaitable[Left]]


@asynccontextmanager
async def serving() -> AsyncGenerator[tuple[Cluster, Client]]:
    cluster = cluster_with_pods("a", "b")
    labels = {"team": "shop"}
    cluster.create("namespaces", {"metadata": {"name": "default", "labels": labels}})
    async with ApiServer(cluster) as server, Client(server.url) as client:
        yield cluster, client


async def enter(client: Client, use: Use, **options: Any) -> Left:
    """Enter a factory, use it and leave it. Afterwards nothing here refers to it."""
    async with SharedInformerFactory(client, **options) as informers:
        return await use(informers)


async def assert_freed(left: Left) -> None:
    """Assert that reference counts free the informer and the object.

    Transports end in the next turns of the loop, and the blocking detector looks at a task for a
    moment.
    """
    await wait_until(lambda: left.freed)


# -- ways to use an informer -----------------------------------------------------------------------


async def listen(informers: SharedInformerFactory) -> Left:
    pods = informers.informer("pods", indexers={"name": lambda pod: pod.name})
    pods.add_handler(lambda event: None)
    async with pods.events():
        await informers.wait_synced(timeout=30)
    return Left.of(pods)


async def listen_in_many_ways(informers: SharedInformerFactory) -> Left:
    async def handle(event: Event) -> None:
        await asyncio.sleep(0)

    def block(event: Event) -> None:
        pass

    pods = informers.informer("pods")
    registrations = [
        pods.add_handler(handle, timeout=30),
        pods.add_handler(handle, name="concurrent", concurrency=4),
        pods.add_handler(block, run_in_thread=True),
        pods.add_handler(block, name="blocking", overflow="block", drain=True),
    ]
    for each in registrations:
        await each.wait_synced(timeout=30)
    await pods.add_index("name", lambda pod: pod.name)
    async with pods.events() as events:
        assert (await anext(events)).obj.name in ("a", "b")
    async with merge(pods.events(), pods.events()) as merged:
        await anext(merged)
    return Left.of(pods)


async def remove_handlers(informers: SharedInformerFactory) -> Left:
    pods = informers.informer("pods")
    registration = pods.add_handler(lambda event: None)
    await registration.wait_synced(timeout=30)
    registration.remove()
    other = pods.add_handler(lambda event: None)
    await other.aclose()
    return Left.of(pods)


async def wait(informers: SharedInformerFactory) -> Left:
    pods = informers.informer("pods")
    await pods.wait_until("default/a", lambda pod: pod is not None, timeout=30)
    await pods.wait_until_all(lambda pod: True, at_least=2, timeout=30)
    with suppress(CacheWaitTimeout):
        await pods.wait_until("default/other", lambda pod: pod is not None, timeout=0.01)
    with suppress(CacheWaitTimeout):
        await pods.wait_until_all(lambda pod: False, timeout=0.01)
    assert await pods.verify(timeout=30)
    return Left.of(pods)


async def leave_waiting_tasks(informers: SharedInformerFactory) -> Left:
    pods = informers.informer("pods")
    await pods.wait_synced(timeout=30)
    waiting = asyncio.create_task(pods.wait_until("default/other", lambda pod: pod is not None))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    return Left.of(pods)


async def read_namespaces(informers: SharedInformerFactory) -> Left:
    pods = informers.informer("pods", namespaces=["default", "other"], indexers={"name": _name})
    pods.add_handler(lambda event: None)
    await informers.wait_synced(timeout=30)
    pods.add_namespace("third")
    pods.remove_namespace("other")
    return Left.of(pods)


async def follow_namespaces(informers: SharedInformerFactory) -> Left:
    pods = informers.informer("pods", namespaces=labelled("team=shop"))
    await pods.wait_until("default/a", lambda pod: pod is not None, timeout=30)
    return Left.of(pods)


async def control(informers: SharedInformerFactory) -> Left:
    pods = informers.informer("pods")
    seen = set[ObjectKey]()

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        seen.add(key)
        await asyncio.sleep(0)

    async with Controller(pods, reconcile).watches(pods, lambda pod: [pod.key]):
        await wait_until(lambda: len(seen) == 2)
    return Left.of(pods)


async def resync(informers: SharedInformerFactory) -> Left:
    pods = informers.informer("pods", resync=1.0)
    await pods.wait_synced(timeout=30)
    return Left.of(pods)


def _name(pod: KubeObject) -> str:
    return pod.name


@pytest.mark.parametrize(
    "use",
    [
        listen,
        listen_in_many_ways,
        remove_handlers,
        wait,
        leave_waiting_tasks,
        read_namespaces,
        follow_namespaces,
        control,
        resync,
    ],
)
async def test_reference_counts_free_the_informers_of_a_factory_that_was_left(use: Use) -> None:
    async with serving() as (_, client):
        left = [await enter(client, use) for _ in range(2)]
        for each in left:
            await assert_freed(each)


async def test_reference_counts_free_an_informer_with_a_cache_file(tmp_path: Path) -> None:
    async def listen_durably(informers: SharedInformerFactory) -> Left:
        pods = informers.informer("pods")
        pods.add_handler(lambda event: None, durable="ours")
        await informers.wait_synced(timeout=30)
        return Left.of(pods)

    cache = CacheFile(tmp_path / "pods.db")
    async with serving() as (_, client):
        for _ in range(2):
            await assert_freed(await enter(client, listen_durably, cache=cache))


async def test_reference_counts_free_an_informer_on_a_group() -> None:
    async def use(informers: SharedInformerFactory) -> Left:
        pods = informers.informer("pods", namespaces=["default"], shard=group)
        await pods.wait_until("default/a", lambda pod: pod is not None, timeout=60)
        return Left.of(pods)

    async with (
        serving() as (_, client),
        ShardGroup(client, "shop", namespace="default", identity="a", shards=4) as group,
    ):
        await assert_freed(await enter(client, use))


async def test_a_lister_is_readable_after_its_factory_was_left() -> None:
    async def leave(client: Client) -> Lister:
        async with SharedInformerFactory(client) as informers:
            pods = informers.informer("pods")
            await pods.wait_synced(timeout=30)
            return pods.lister

    async with serving() as (_, client):
        lister = await leave(client)
        assert {pod.name for pod in lister.list()} == {"a", "b"}


async def test_reference_counts_free_an_informer_that_its_last_user_has_left() -> None:
    async def use(informers: SharedInformerFactory) -> Left:
        async with informers.use("pods") as pods:
            await pods.wait_synced(timeout=30)
            return Left.of(pods)

    async with serving() as (_, client), SharedInformerFactory(client) as informers:
        await assert_freed(await use(informers))


async def test_reference_counts_free_an_informer_that_never_ran() -> None:
    def make(client: Client) -> weakref.ref[Callable[[KubeObject], str]]:
        def name(pod: KubeObject) -> str:
            return pod.name

        informers = SharedInformerFactory(client)
        pods = informers.informer("pods", namespaces=["default"], indexers={"name": name})
        pods.add_handler(lambda event: None)
        return weakref.ref(name)

    async with serving() as (_, client):
        assert make(client)() is None


# -- errors that end an informer -------------------------------------------------------------------


found: list[Left] = []
"""The objects of the tests below, whose uses of a factory raise and return nothing."""


async def fail_in_a_handler(informers: SharedInformerFactory) -> Left:
    async def handle(event: Event) -> None:
        await asyncio.sleep(0)
        raise ValueError("mine")

    pods = informers.informer("pods")
    await pods.wait_synced(timeout=30)
    found.append(Left.of(pods))
    pods.add_handler(handle, fail_fast=True)
    return await _never()


async def fail_in_a_plain_handler(informers: SharedInformerFactory) -> Left:
    def handle(event: Event) -> None:
        raise ValueError("mine")

    pods = informers.informer("pods", namespaces=["default"])
    await pods.wait_synced(timeout=30)
    found.append(Left.of(pods))
    pods.add_handler(handle, fail_fast=True)
    return await _never()


async def fail_in_a_concurrent_handler(informers: SharedInformerFactory) -> Left:
    async def handle(event: Event) -> None:
        await asyncio.sleep(0)
        raise ValueError("mine")

    pods = informers.informer("pods")
    await pods.wait_synced(timeout=30)
    found.append(Left.of(pods))
    pods.add_handler(handle, fail_fast=True, concurrency=2)
    return await _never()


async def fail_in_the_body(informers: SharedInformerFactory) -> Left:
    pods = informers.informer("pods")
    await pods.wait_synced(timeout=30)
    found.append(Left.of(pods))
    raise ValueError("mine")


async def fail_in_a_reconciler(informers: SharedInformerFactory) -> Left:
    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        raise ValueError("mine")

    pods = informers.informer("pods")
    async with Controller(pods, reconcile) as controller:
        await wait_until(lambda: controller.health.failing_keys > 0)
        found.append(Left.of(pods))
        raise ValueError("mine")


async def _never() -> Left:
    await asyncio.get_running_loop().create_future()
    raise AssertionError("the informer goes on")


@pytest.mark.parametrize(
    "use",
    [
        fail_in_a_handler,
        fail_in_a_plain_handler,
        fail_in_a_concurrent_handler,
        fail_in_the_body,
        fail_in_a_reconciler,
    ],
)
async def test_reference_counts_free_a_factory_that_was_left_with_an_error(use: Use) -> None:
    async with serving() as (_, client):
        with suppress(ValueError):
            await enter(client, use)
        await assert_freed(found.pop())


async def test_the_caught_error_of_an_informer_has_its_traceback_until_it_is_dropped() -> None:
    async def leave(client: Client) -> str:
        try:
            await enter(client, fail_in_a_handler)
        except ValueError as error:
            return "".join(traceback.format_exception(error))
        return ""

    async with serving() as (_, client):
        shown = await leave(client)
        await assert_freed(found.pop())

    assert "in handle" in shown
    assert 'raise ValueError("mine")' in shown


@pytest.mark.parametrize("namespaces", [None, ["default"]])
async def test_reference_counts_free_an_informer_whose_requests_the_server_has_denied(
    namespaces: list[str] | None,
) -> None:
    async def use(informers: SharedInformerFactory) -> Left:
        pods = informers.informer("pods", namespaces=namespaces)
        await pods.wait_synced(timeout=30)
        found.append(Left.of(pods))
        server.faults.status(403)
        server.faults.end_watches()
        return await _never()

    async with ApiServer(cluster_with_pods("a")) as server, Client(server.url) as client:
        with suppress(Forbidden):
            await enter(client, use, fail_fast=(Forbidden,))
        await assert_freed(found.pop())


async def test_reference_counts_free_an_informer_whose_stream_was_too_slow() -> None:
    async def use(informers: SharedInformerFactory) -> Left:
        pods = informers.informer("pods")
        await pods.wait_synced(timeout=30)
        async with pods.events(limit=1, overflow="error") as events:
            for name in "cdef":
                cluster.create("pods", {"metadata": {"name": name}})
            await pods.wait_until("default/f", lambda pod: pod is not None, timeout=30)
            with suppress(ListenerOverflow):
                async for _ in events:
                    pass
        return Left.of(pods)

    async with serving() as (cluster, client):
        await assert_freed(await enter(client, use))
