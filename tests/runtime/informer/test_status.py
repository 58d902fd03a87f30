"""The status of an informer: health for programs, gauges for metrics, memory for people."""

from __future__ import annotations

import gc

import pytest
from msgspec import Struct

from aioinformer import KubeObject
from aioinformer._core.codec.shape import Shape
from aioinformer._runtime.informer.status import MAX_REJECTED_KEYS
from aioinformer.testing.simulation import run
from tests.runtime.informer.pipelines import make_pipeline, running_pipeline
from tests.runtime.informers import cluster_with_pods
from tests.runtime.virtual_waits import until


class Numbered(Struct):
    """A model that fits no pod."""

    number: int


def test_an_informer_that_has_not_started_has_levels_and_no_freshness() -> None:
    status = make_pipeline(cluster_with_pods("a")).status
    levels = status.levels()

    assert (levels.resource_version, levels.objects, levels.synced) == (0, 0, False)
    assert levels.freshness_seconds == float("inf")
    assert repr(status) == f"<InformerStatus {status.describe()}>"


def test_the_levels_and_the_health_follow_the_cache() -> None:
    async def main() -> None:
        cluster = cluster_with_pods("a", "b")
        pipeline = make_pipeline(cluster)
        async with running_pipeline(pipeline):
            levels, health = pipeline.status.levels(), pipeline.status.health()
            assert (levels.objects, health.objects, levels.synced, health.synced) == (
                2,
                2,
                True,
                True,
            )
            assert str(levels.resource_version) == health.resource_version != "0"
            assert levels.json_bytes == sum(
                len(obj.raw) for obj in pipeline.reader.snapshot().values()
            )
            assert levels.freshness_seconds == health.fresh
            assert pipeline.status.describe() == str(health)

    run(main(), seed=1)


def test_the_health_lists_a_hundred_rejected_objects_and_counts_all() -> None:
    names = [f"p{number}" for number in range(MAX_REJECTED_KEYS + 20)]

    async def main() -> None:
        pipeline = make_pipeline(cluster_with_pods(*names), shape=Shape.of(model=Numbered))
        async with running_pipeline(pipeline):
            health, levels = pipeline.status.health(), pipeline.status.levels()
            assert (len(health.rejected), health.rejections) == (MAX_REJECTED_KEYS, len(names))
            assert levels.rejected == len(names)
            assert health.rejected[0].startswith("default/p")

    run(main(), seed=1)


def test_a_conversion_that_raises_is_counted() -> None:
    def fail(obj: KubeObject) -> str:
        raise LookupError(obj.name)

    async def main() -> None:
        pipeline = make_pipeline(cluster_with_pods("a"), shape=Shape.of(convert=fail))
        async with running_pipeline(pipeline):
            before = pipeline.status.health().unconverted
            with pytest.raises(Exception, match="LookupError: a"):
                _ = [*pipeline.reader.snapshot().values()]
            assert pipeline.status.health().unconverted == before + 1

    run(main(), seed=1)


def test_a_description_for_the_parts_does_not_keep_the_status() -> None:
    pipeline = make_pipeline(cluster_with_pods("a"))
    describe = pipeline.status.weak_describe()
    assert describe().startswith("not started: ")

    del pipeline
    gc.collect()

    assert describe() == "the informer has ended"


def test_the_memory_counts_what_programs_have_opened() -> None:
    async def main() -> None:
        cluster = cluster_with_pods("a", "b")
        pipeline = make_pipeline(cluster)
        async with running_pipeline(pipeline):
            closed = pipeline.status.memory()
            for obj in pipeline.reader.snapshot().values():
                assert obj["metadata"]["name"] == obj.name
            opened = pipeline.status.memory()
            assert opened.open_bytes > closed.open_bytes
            assert opened.total > closed.total
            cluster.create("pods", {"metadata": {"name": "c"}})
            await until(lambda: pipeline.status.levels().objects == 3)
            assert pipeline.status.memory().total > opened.total

    run(main(), seed=1)
