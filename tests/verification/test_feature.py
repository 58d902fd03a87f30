"""The comparison of an informer's cache with the server, and its results in health."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer.errors import NotSynced
from aioinformer.testing import Faults
from aioinformer.testing.simulation import run
from aioinformer.verification.feature import verify_informer
from tests.runtime.informer.pipelines import make_pipeline, running_pipeline
from tests.runtime.informers import cluster_with_pods
from tests.runtime.virtual_waits import until


def test_nothing_is_verified_before_the_initial_list_is_complete() -> None:
    async def main() -> None:
        pipeline = make_pipeline(cluster_with_pods("a"))
        with pytest.raises(NotSynced, match="before the initial list is complete"):
            await verify_informer(pipeline, contents=True, repair=False, timeout=None)

    run(main(), seed=1)


def test_a_comparison_is_counted_in_the_health_and_repairs_only_if_it_is_to() -> None:
    async def main() -> None:
        cluster, faults = cluster_with_pods("a", "b"), Faults()
        pipeline = make_pipeline(cluster, faults=faults)
        async with running_pipeline(pipeline):
            with faults.rewrite_events(lambda line: ()):
                cluster.delete("pods", "a")
                await asyncio.sleep(1)
            cluster.create("pods", {"metadata": {"name": "c"}})
            await until(lambda: len(pipeline.reader.snapshot()) == 3)
            found = await verify_informer(pipeline, contents=True, repair=False, timeout=None)
            assert len(found.differences) == 1
            health = pipeline.status.health()
            assert (health.differences, health.repaired) == (1, 0)
            await verify_informer(pipeline, contents=True, repair=True, timeout=None)
            await until(lambda: len(pipeline.reader.snapshot()) == 2)
            health = pipeline.status.health()
            assert (health.differences, health.repaired) == (0, 1)

    run(main(), seed=1)


def test_a_comparison_that_repaired_everything_proves_nothing_about_the_cache_before() -> None:
    async def main() -> None:
        cluster, faults = cluster_with_pods("a"), Faults()
        pipeline = make_pipeline(cluster, faults=faults)
        async with running_pipeline(pipeline):
            assert pipeline.status.health().verified is None
            await verify_informer(pipeline, contents=True, repair=False, timeout=None)
            await asyncio.sleep(5)
            assert pipeline.status.health().verified == pytest.approx(5.0)
            with faults.rewrite_events(lambda line: ()):
                cluster.delete("pods", "a")
                await asyncio.sleep(1)
            cluster.create("pods", {"metadata": {"name": "b"}})
            await until(lambda: len(pipeline.reader.snapshot()) == 2)
            await verify_informer(pipeline, contents=True, repair=True, timeout=None)
            health = pipeline.status.health()
            assert (health.differences, health.repaired) == (0, 1)
            assert health.verified is not None
            assert health.verified > 5.0

    run(main(), seed=1)
