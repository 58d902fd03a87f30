"""Random histories of an informer of several namespaces, in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from aioinformer import (
    BackoffPolicy,
    Event,
    ObjectKey,
    Scope,
    SharedInformer,
    SharedInformerFactory,
    labelled,
)
from aioinformer.testing import Cluster, Faults
from aioinformer.testing.simulation import run
from tests.namespaces.refusing_source import RefusingSource
from tests.promises.event_recorder import check_event_order, states

NAMESPACES = ("a", "b", "c", "d")
NAMES = ("x", "y", "z")
STEPS = 80
BACKOFF = BackoffPolicy(initial=0.5, maximum=5.0)


class HistoryDriver:
    """Writes, refusals, broken connections and namespaces that come and go, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.cluster = Cluster()
        self.source = RefusingSource(self.cluster)
        self.selected: set[str] = set()
        for namespace in NAMESPACES:
            team = self.random.choice(["shop", "other"])
            metadata = {"name": namespace, "labels": {"team": team}}
            self.cluster.create("namespaces", {"metadata": metadata})

    async def write(self, pods: SharedInformer) -> None:
        namespace, name = self.random.choice(NAMESPACES), self.random.choice(NAMES)
        exists = any(key.name == name for key in cluster_keys(self.cluster, namespace))
        if not exists:
            self.cluster.create("pods", {"metadata": {"name": name}}, namespace=namespace)
        elif self.random.random() < 0.4:
            self.cluster.delete("pods", name, namespace=namespace)
        else:
            labels = {"value": str(self.random.randrange(99))}
            patch = {"metadata": {"labels": labels}}
            self.cluster.merge_patch("pods", name, patch, namespace=namespace)

    async def refuse(self, pods: SharedInformer) -> None:
        namespace = self.random.choice(NAMESPACES)
        self.source.refused ^= {namespace}
        self.source.faults.setdefault(namespace, Faults()).reset(under_way=True)

    async def break_watch(self, pods: SharedInformer) -> None:
        self.source.faults.setdefault(self.random.choice(NAMESPACES), Faults()).reset(
            under_way=True
        )

    async def compact(self, pods: SharedInformer) -> None:
        self.cluster.compact()
        self.cluster.empty_watch_cache()

    async def wait(self, pods: SharedInformer) -> None:
        await asyncio.sleep(self.random.choice([0.0, 0.01, 1.0, 20.0]))

    async def change_namespaces(self, pods: SharedInformer) -> None:
        namespace = self.random.choice(NAMESPACES)
        if namespace in (pods.namespaces or ()):
            pods.remove_namespace(namespace)
        else:
            pods.add_namespace(namespace, Scope(optional=self.random.random() < 0.3))

    async def move_namespace(self, pods: SharedInformer) -> None:
        namespace = self.random.choice(NAMESPACES)
        if self.random.random() < 0.3:
            self.cluster.delete("namespaces", namespace)
            metadata = {"name": namespace, "labels": {"team": "shop"}}
            self.cluster.create("namespaces", {"metadata": metadata})
        else:
            labels = {"team": self.random.choice(["shop", "other"])}
            self.cluster.merge_patch("namespaces", namespace, {"metadata": {"labels": labels}})

    def team_namespaces(self) -> set[str]:
        """Return the namespaces with the label that is followed."""
        found = json.loads(self.cluster.list("namespaces", labels="team=shop"))["items"]
        return {item["metadata"]["name"] for item in found}

    def truth(self, namespaces: tuple[str, ...]) -> dict[ObjectKey, tuple[str, str]]:
        return {
            key: version
            for namespace in namespaces
            for key, version in cluster_keys(self.cluster, namespace).items()
        }


def recorder(events: list[Event]) -> Callable[[Event], Awaitable[None]]:
    """Return a handler that records events, and is sometimes slower than they arrive."""

    async def record(event: Event) -> None:
        await asyncio.sleep(0.01)
        events.append(event)

    return record


def cluster_keys(cluster: Cluster, namespace: str) -> dict[ObjectKey, tuple[str, str]]:
    items = json.loads(cluster.list("pods", namespace=namespace))["items"]
    return {
        ObjectKey(namespace, meta["name"]): (meta["uid"], meta["resourceVersion"])
        for meta in (item["metadata"] for item in items)
    }


async def live(driver: HistoryDriver, *, follow: bool) -> None:
    """Live one history, and check what the listeners received and what the cache shows."""
    change = driver.move_namespace if follow else driver.change_namespaces
    steps = [driver.write] * 8 + [driver.wait] * 3 + [driver.refuse, driver.break_watch]
    steps += [driver.compact, change, change]
    async with SharedInformerFactory(driver.source, backoff=BACKOFF) as informers:
        pods = informers.informer(
            "pods", namespaces=labelled("team=shop") if follow else driver.random.sample("abcd", 2)
        )
        early, late = list[Event](), list[Event]()
        pods.add_handler(recorder(early))
        for step in range(STEPS):
            await driver.random.choice(steps)(pods)
            if step == STEPS // 2:
                pods.add_handler(recorder(late), limit=2)
        driver.source.refused.clear()
        await informers.wait_synced(600)

        def converged() -> bool:
            cached = states(pods.lister)
            expected = driver.truth(pods.namespaces or ())
            views = [check_event_order(events) for events in (early, late)]
            healthy = all(each.error is None and each.synced for each in pods.health.scopes)
            followed = not follow or set(pods.namespaces or ()) == driver.team_namespaces()
            return followed and healthy and cached == expected and views == [expected] * 2

        async with asyncio.timeout(600):
            while not converged():  # noqa: ASYNC110 - no single event stands for all of this
                await asyncio.sleep(1.0)
        assert await pods.verify(contents=True)


@pytest.mark.parametrize("follow", [False, True], ids=["changed", "followed"])
@pytest.mark.parametrize(
    "seed",
    [
        *range(10),
        *(pytest.param(seed, marks=pytest.mark.simulation) for seed in range(10, 25)),
    ],
)
def test_a_history_ends_in_the_server_s_state(seed: int, *, follow: bool) -> None:
    run(live(HistoryDriver(seed), follow=follow), seed=seed)
