"""The time from the return of a server to caches that show its state, in simulated time.

The server of these tests is a cluster in memory, whose requests are counted. ``test_politeness``
and ``test_request_budget`` limit the number of requests.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from statistics import median

import pytest

from aioinformer import SharedInformer, SharedInformerFactory
from aioinformer.testing import Cluster, ClusterSource, Faults
from tests.promises.function_lister_watcher import (
    InformerHarness,
    loop_time,
    run_simulated,
    wait_until,
)
from tests.runtime.informers import cluster_with_pods, label_pod
from tests.runtime.scripted_source import PODS

INFORMERS = 15
NAMESPACES = [f"n{number}" for number in range(INFORMERS)]
LOOK = 0.01
"""Seconds between two looks at the caches."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """The measurements of one outage."""

    stale: list[float]
    """Seconds from the return of the server to each fresh cache, the shortest first."""
    refused: int
    """Connections that were refused."""
    answered: int
    """Requests from the return of the server to a minute after."""


async def measure(outage: float, *, compacted: bool, seed: int) -> Recovery:
    """Measure fifteen informers of one client whose server is down for ``outage`` seconds."""
    cluster, faults = Cluster(), Faults()
    for name in NAMESPACES:
        cluster.create("pods", {"metadata": {"name": "a", "namespace": name}}, namespace=name)
    async with SharedInformerFactory(ClusterSource(cluster, faults)) as factory:
        informers = [factory.informer("pods", namespace=name) for name in NAMESPACES]
        await factory.wait_synced(timeout=60)
        await asyncio.sleep(200.0 + seed)
        with faults.refuse() as refusing:
            with faults.reset():
                await asyncio.sleep(LOOK)
            for name in NAMESPACES:
                cluster.create("pods", {"metadata": {"name": "b"}}, namespace=name)
            if compacted:
                cluster.compact()
            await asyncio.sleep(outage)
        counter, back = faults.latency(0.001), loop_time()
        stale = await asyncio.gather(*(_wait_fresh(informer) for informer in informers))
        await asyncio.sleep(max(0.0, back + 60.0 - loop_time()))
        return Recovery(sorted(at - back for at in stale), refusing.hits, counter.hits)


async def _wait_fresh(informer: SharedInformer) -> float:
    while len(informer.lister.list()) < 2:  # noqa: ASYNC110 - looks at the cache, as a user would
        await asyncio.sleep(LOOK)
    return loop_time()


@pytest.mark.parametrize("compacted", [False, True], ids=["resumed", "expired"])
@pytest.mark.parametrize(
    ("outage", "longest"),
    [
        pytest.param(5.0, 8.0, marks=pytest.mark.simulation),
        (20.0, 8.0),
        pytest.param(60.0, 8.0, marks=pytest.mark.simulation),
        pytest.param(300.0, 15.0, marks=pytest.mark.simulation),
    ],
)
def test_fifteen_informers_are_fresh_seconds_after_their_server_is_back(
    outage: float, longest: float, compacted: bool
) -> None:
    """The first informer that reaches the server ends the waits of the others, and a 410 is
    followed at once. client-go: a median of 20 s and at most 46 s behind an outage of 20 s.
    """
    medians, worst = list[float](), list[float]()
    for seed in range(5):
        found = run_simulated(partial(measure, outage, compacted=compacted, seed=seed), seed=seed)
        medians.append(median(found.stale))
        worst.append(found.stale[-1])
        assert found.answered <= 4 * INFORMERS  # the check, the watch, the state, a watch's end
    print(f"down {outage:g} s: medians {medians}, worst {worst}")  # noqa: T201 - read with -s
    assert median(medians) <= 3.0
    assert max(worst) <= longest


def test_a_restored_server_is_read_again_within_4_seconds_of_its_return() -> None:
    """The server accepts a watch from a version that it hasn't reached, and is silent."""

    async def scenario() -> tuple[float, list[str]]:
        cluster, faults = cluster_with_pods("a"), Faults()
        past = cluster.snapshot()
        for number in range(30):
            label_pod(cluster, "a", f"lost-{number}")
        cluster.create("pods", {"metadata": {"name": "b"}}, namespace="web")
        harness = InformerHarness(ClusterSource(cluster, faults).lister_watcher(PODS))
        async with harness.running():
            await harness.informer.wait_synced(30)
            await asyncio.sleep(200.0)
            with faults.refuse():
                with faults.reset():
                    await asyncio.sleep(LOOK)
                cluster.restore(past)
                await asyncio.sleep(2.0)
            back, before = loop_time(), len(harness.request_summaries)
            await wait_until(lambda: set(harness.cached_versions) == {"a"})
            assert harness.informer.health.rewinds == 1
            return loop_time() - back, harness.request_summaries[before:]

    seconds, requests = run_simulated(scenario)
    assert seconds <= 4.0, "the wait under way, and three requests"
    assert requests == ["probe", "stream newest"]


def test_a_server_that_answers_429_to_all_is_read_soon_after_its_load_ends() -> None:
    """kube-apiserver with too many requests in flight: 429 with Retry-After: 1."""

    async def scenario(seconds: float) -> tuple[float, int]:
        cluster, faults = cluster_with_pods("a"), Faults()
        source = ClusterSource(cluster, faults)
        harness = InformerHarness(source.lister_watcher(PODS))
        with faults.status(429, retry_after=1) as busy:
            async with harness.running():
                await asyncio.sleep(seconds)
                busy.end()
                ended = loop_time()
                await harness.informer.wait_synced(300)
                return loop_time() - ended, busy.hits

    after, attempts = run_simulated(lambda: scenario(90.0))
    assert after <= 6.0
    assert 15 <= attempts <= 30, "a server that serves one request in ten lets it through"
    after, attempts = run_simulated(lambda: scenario(600.0))
    assert after <= 40.0
    assert attempts <= 3 * 10 + 40
