"""Waits for something that nobody has started: they end with an error that says what to start."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aioinformer import Controller, Operator, SharedInformer, SharedInformerFactory, labelled, merge
from aioinformer.conditions import exists
from aioinformer.errors import SyncTimeout, UsageError
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation import run
from tests.runtime.informers import cluster_with_pods

ENTER = r"was not started within 5 s of this wait, .*: enter the factory .* 'async with'"


async def read(pods: SharedInformer) -> None:
    async with pods.events() as events:
        await anext(events)


async def read_merged(pods: SharedInformer) -> None:
    async with merge(pods.events(), pods.events()) as events:
        await anext(events)


async def read_snapshot(pods: SharedInformer) -> None:
    async with pods.snapshot_and_events():
        pass


def ignore(_: object) -> None:
    return


POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "1"},
}

WAITS: dict[str, Callable[[SharedInformer], Awaitable[object]]] = {
    "wait_synced": lambda pods: pods.wait_synced(),
    "wait_for": lambda pods: pods.wait_for(POD),
    "wait_until": lambda pods: pods.wait_until("default/web", exists),
    "wait_until_all": lambda pods: pods.wait_until_all(exists),
    "events": read,
    "merge": read_merged,
    "snapshot_and_events": read_snapshot,
    "the registration of a handler": lambda pods: pods.add_handler(ignore).wait_synced(),
}


def source() -> ClusterSource:
    return ClusterSource(cluster_with_pods("web"))


@pytest.mark.parametrize(
    ("namespaces", "name"),
    [
        (namespaces, name)
        for namespaces in (None, ["default"], labelled("team=a"))
        for name in WAITS
        # It refuses an object of a namespace that isn't followed.
        if (namespaces, name) != (labelled("team=a"), "wait_for")
    ],
)
def test_a_wait_for_an_informer_that_is_not_started_raises_after_five_seconds(
    namespaces: Any, name: str
) -> None:
    async def main() -> None:
        pods = SharedInformerFactory(source()).informer("pods", namespaces=namespaces)
        async with asyncio.timeout(60):
            with pytest.raises(UsageError, match=rf"(informer|handler) .*pods.* {ENTER}"):
                await WAITS[name](pods)
        assert asyncio.get_running_loop().time() == 5

    run(main(), seed=1)


TIMED_WAITS: dict[str, Callable[[SharedInformer], Awaitable[object]]] = {
    "wait_synced": lambda pods: pods.wait_synced(timeout=30),
    "wait_for": lambda pods: pods.wait_for(POD, timeout=30),
    "wait_until": lambda pods: pods.wait_until("default/web", exists, timeout=30),
    "wait_until_all": lambda pods: pods.wait_until_all(exists, timeout=30),
    "the registration of a handler": lambda pods: pods.add_handler(ignore).wait_synced(30),
}


@pytest.mark.parametrize(
    ("seconds", "wait"),
    [
        *((4.5, wait) for wait in WAITS.values()),
        *((20, wait) for wait in TIMED_WAITS.values()),  # which end in any case
    ],
)
def test_a_wait_may_begin_seconds_before_the_factory_is_entered(
    seconds: float, wait: Callable[[SharedInformer], Awaitable[object]]
) -> None:
    async def main() -> None:
        factory = SharedInformerFactory(source())
        waiting = asyncio.ensure_future(wait(factory.informer("pods")))
        await asyncio.sleep(seconds)
        async with factory:
            await asyncio.wait_for(waiting, 60)

    run(main(), seed=1)


def test_a_wait_that_was_refused_can_be_repeated() -> None:
    async def main() -> None:
        factory = SharedInformerFactory(source())
        pods = factory.informer("pods")
        async with pods.events() as events, merge(pods.events()) as merged:
            waits: list[Callable[[], Awaitable[object]]] = [
                *(pods.wait_synced, events.__anext__, merged.__anext__)
            ]
            for each in waits:
                with pytest.raises(UsageError, match=ENTER):
                    await each()
            async with factory:
                for each in waits:
                    await asyncio.wait_for(each(), 60)

    run(main(), seed=1)


def test_a_started_informer_is_waited_for_without_a_limit() -> None:
    async def main() -> None:
        cluster = Cluster()
        async with SharedInformerFactory(ClusterSource(cluster)) as factory:
            pods = factory.informer("pods")
            waiting = [asyncio.ensure_future(each) for each in (read(pods), read_merged(pods))]
            await asyncio.sleep(600)
            cluster.create("pods", {"metadata": {"name": "web"}})
            await asyncio.wait_for(asyncio.gather(*waiting), 60)

    run(main(), seed=1)


def test_a_merged_stream_delivers_events_while_one_of_its_informers_is_not_started() -> None:
    async def main() -> None:
        cluster = cluster_with_pods("web")
        late = SharedInformerFactory(ClusterSource(cluster))
        async with SharedInformerFactory(ClusterSource(cluster)) as factory:
            pods = factory.informer("pods")
            async with merge(pods.events(), late.informer("services").events()) as events:
                assert (await anext(events)).source is pods
                with pytest.raises(UsageError, match=f"the informer of services {ENTER}"):
                    await anext(events)

    run(main(), seed=1)


def test_a_timeout_that_is_shorter_says_why_the_wait_had_no_end() -> None:
    async def main() -> None:
        pods = SharedInformerFactory(source()).informer("pods")
        with pytest.raises(SyncTimeout, match="not started: enter the factory"):
            await pods.wait_synced(timeout=4)

    run(main(), seed=1)


async def reconcile(key: object, ctx: object) -> None:
    return


def test_a_wait_for_a_controller_or_an_operator_that_is_not_started_raises(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        informers = SharedInformerFactory(source())
        controller = Controller(informers.informer("pods"), reconcile, name="c")
        with pytest.raises(UsageError, match=r"the controller c was not started.*await run"):
            await controller.wait_synced()
        async with informers:  # as in a replica that waits for the lease
            with pytest.raises(SyncTimeout):
                await controller.wait_synced(timeout=100)
        operator = Operator(source(), name="o")
        with pytest.raises(UsageError, match=r"the operator o was not started.*await run"):
            await operator.wait_synced()

    run(main(), seed=1)
    assert [
        each.message.partition(" within")[0]
        for each in caplog.records
        if each.levelname == "WARNING"
    ] == ["the controller c was not started"]
