"""After warnings, one line says that all is well again, and after which time."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest

from aioinformer import (
    Controller,
    EventRecorder,
    KubeObject,
    ListRequest,
    ObjectKey,
    ReconcileContext,
    SharedInformerFactory,
)
from aioinformer._core.objects.resources import find_built_in
from aioinformer._runtime.reading.object_list import ListOptions, read_list
from aioinformer._runtime.reading.object_watch import ObjectWatch
from aioinformer.testing import Cluster, ClusterSource, Fault, Faults
from aioinformer.testing.simulation import run
from tests.runtime.informers import cluster_with_pods
from tests.runtime.scripted_source import PODS

AGAIN = re.compile(r"(.*), (\d+\.\d) s after the first warning")


def recoveries(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, float]]:
    """Return the logger, text and seconds of each line of a recovery."""
    found = [(each, AGAIN.fullmatch(each.getMessage())) for each in caplog.records]
    assert {each.levelname for each, match in found if match} <= {"INFO"}
    return [(each.name, match[1], float(match[2])) for each, match in found if match]


OUTAGES: dict[str, Callable[[Faults], Fault]] = {
    "refused": lambda faults: faults.refuse(),
    "503": lambda faults: faults.status(503),
    "401": lambda faults: faults.status(401),
    "forbidden": lambda faults: faults.forbid(),
}


@pytest.mark.parametrize("name", OUTAGES)
def test_an_informer_says_once_when_it_is_fresh_again(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        cluster, faults = Cluster(), Faults()
        async with SharedInformerFactory(ClusterSource(cluster, faults)) as factory:
            pods = factory.informer("pods")
            await pods.wait_synced(30)
            for seconds in (60, 30):
                with OUTAGES[name](faults):
                    faults.reset(verb="watch", after=0).retire()
                    await asyncio.sleep(seconds)
                await asyncio.sleep(300)

    caplog.set_level(logging.DEBUG, logger="aioinformer")
    run(main(), seed=1)
    found = recoveries(caplog)
    assert [each[:2] for each in found] == [("aioinformer.reflector", "pods: fresh again")] * 2
    assert 60 <= found[0][2] <= 95
    assert 30 <= found[1][2] <= 60


def test_an_informer_that_polls_says_when_it_is_fresh_and_when_it_watches_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        cluster, faults = Cluster(), Faults()
        async with SharedInformerFactory(ClusterSource(cluster, faults)) as factory:
            refused = faults.status(405, verb="watch"), faults.status(405, verb="watch_list")
            await factory.informer("pods").wait_synced(60)
            await asyncio.sleep(60)
            with faults.status(503, verb="list"):
                await asyncio.sleep(120)
            await asyncio.sleep(120)
            for each in refused:
                each.end()
            await asyncio.sleep(3600)

    caplog.set_level(logging.INFO, logger="aioinformer")
    run(main(), seed=1)
    assert [each[1] for each in recoveries(caplog)] == ["pods: fresh again", "pods: watches again"]


async def _watch_without_a_cache(source: ClusterSource, faults: Faults) -> None:
    async with ObjectWatch(source.lister_watcher(PODS)) as events:
        reading = asyncio.ensure_future(anext(events))
        await asyncio.sleep(1)
        with faults.refuse():
            faults.reset(verb="watch", after=0).retire()
            await asyncio.sleep(60)
        await asyncio.sleep(60)
        reading.cancel()


async def _list_without_a_cache(source: ClusterSource, faults: Faults) -> None:
    with faults.refuse():
        listing = asyncio.ensure_future(
            read_list(source.lister_watcher(PODS), ListOptions[KubeObject](request=ListRequest("")))
        )
        await asyncio.sleep(5)
    await listing


async def _events(source: ClusterSource, faults: Faults) -> None:
    pod = KubeObject(ObjectKey("default", "a"), "u", "1", b'{"metadata":{"name":"a"}}', PODS)
    async with EventRecorder(
        source.api(find_built_in("events.events.k8s.io")), controller="shop"
    ) as recorder:
        with faults.forbid(verb="create"):
            recorder.record(pod, "Normal", "One")
            await asyncio.sleep(30)
        recorder.record(pod, "Normal", "Two")
        await asyncio.sleep(60)


async def _blocked_watch(source: ClusterSource, faults: Faults) -> None:
    async with SharedInformerFactory(source) as factory:
        pods = factory.informer("pods")
        pods.add_handler(_sleep, overflow="block", limit=1)
        for _ in range(4):
            source.cluster.merge_patch("pods", "web", {"metadata": {"labels": {"a": str(_)}}})
            await asyncio.sleep(1)
        await asyncio.sleep(200)


def _reject_labelled(obj: KubeObject) -> KubeObject:
    if obj.labels:
        raise ValueError("it has labels")
    return obj


async def _rejection(source: ClusterSource, faults: Faults) -> None:
    async with SharedInformerFactory(source) as factory:
        factory.informer("pods", transform=_reject_labelled)
        for value in ("1", "2", None, None):
            await asyncio.sleep(10)
            source.cluster.merge_patch("pods", "web", {"metadata": {"labels": {"a": value}}})
        await asyncio.sleep(10)


async def _sleep(_: object) -> None:
    await asyncio.sleep(30)


Scenario: TypeAlias = Callable[[ClusterSource, Faults], Awaitable[None]]

SCENARIOS: dict[Scenario, tuple[str, str]] = {
    _watch_without_a_cache: ("aioinformer.reflector", "pods: fresh again"),
    _list_without_a_cache: ("aioinformer.api", "list of pods: read"),
    _events: (
        "aioinformer.events",
        "events of shop: sent again",
    ),
    _rejection: ("aioinformer.pump", "pods through _reject_labelled: no object is rejected"),
    _blocked_watch: ("aioinformer.pump", "pods: the watch is read again"),
}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__.strip("_"))
def test_what_was_warned_of_is_said_to_be_well_again(
    scenario: Scenario, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        faults = Faults()
        await scenario(ClusterSource(cluster_with_pods("web"), faults), faults)

    caplog.set_level(logging.INFO, logger="aioinformer")
    run(main(), seed=1)
    found = recoveries(caplog)
    assert {each[:2] for each in found} == {SCENARIOS[scenario]}
    assert {"WARNING", "ERROR"} & {each.levelname for each in caplog.records}


def test_a_call_that_was_said_to_take_long_is_said_to_be_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with SharedInformerFactory(ClusterSource(cluster_with_pods("a", "b"))) as factory:
            factory.informer("pods").add_handler(_sleep, name="slow", concurrency=2)
            await asyncio.sleep(100)

    caplog.set_level(logging.INFO, logger="aioinformer.handlers")
    run(main(), seed=1)
    warned, done = caplog.messages  # of one of the two calls
    assert warned.startswith("handler slow of pods has not returned after 10 s, at Added of ")
    assert done.startswith("handler slow of pods is done after 30.0 s, at Added of ")


def test_a_controller_that_waited_for_its_informer_says_that_it_starts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        return

    async def main() -> None:
        faults = Faults()
        async with SharedInformerFactory(ClusterSource(Cluster(), faults)) as factory:
            refused = faults.refuse()
            async with Controller(factory.informer("pods"), reconcile, name="c"):
                await asyncio.sleep(40)
                refused.end()
                await asyncio.sleep(60)

    caplog.set_level(logging.INFO, logger="aioinformer.controller")
    run(main(), seed=1)
    found = [each.getMessage() for each in caplog.records if each.name == "aioinformer.controller"]
    warned, started = found[:2]
    assert warned.startswith("controller c has not started its workers yet: ")
    assert started.startswith("controller c starts its workers after ")
