"""Waits for the cache of one informer, through the parts of its pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aioinformer import KubeObject, ObjectKey
from aioinformer._core.cache.query import Query
from aioinformer._core.codec.shape import Shape
from aioinformer._runtime.informer.cache_reader import MAX_NAMED
from aioinformer._runtime.informer.pipeline import InformerPipeline
from aioinformer.conditions import deleted, exists
from aioinformer.errors import CacheWaitTimeout, NotRunning, SyncTimeout, UsageError
from aioinformer.testing import Cluster, Faults
from aioinformer.testing.simulation import run
from tests.runtime.informer.pipelines import make_pipeline, running_pipeline
from tests.runtime.informers import cluster_with_pods, label_pod, running_in_background
from tests.runtime.virtual_waits import until

KEY = ObjectKey("default", "a")
Test = Callable[[Cluster, InformerPipeline[Any]], Awaitable[None]]


def read(cluster: Cluster, test: Test, **options: Any) -> None:
    """Run a test with the reader of a synced informer, in simulated time."""

    async def main() -> None:
        pipeline = make_pipeline(cluster, **options)
        async with running_pipeline(pipeline):
            await test(cluster, pipeline)

    run(main(), seed=1)


def named(obj: KubeObject) -> str:
    return f"pod {obj.name}"


def test_the_timeout_of_the_initial_list_says_what_the_informer_does() -> None:
    async def main() -> None:
        faults = Faults()
        faults.refuse()
        pipeline = make_pipeline(cluster_with_pods(), faults=faults)
        async with running_in_background(pipeline.run(None)):
            with pytest.raises(SyncTimeout, match=r"pods: .*the connection was refused"):
                await pipeline.reader.wait_synced(timeout=3)

    run(main(), seed=1)


def test_a_wait_for_an_informer_that_ends_before_its_list_is_an_error() -> None:
    async def main() -> None:
        faults = Faults()
        faults.refuse()
        pipeline = make_pipeline(cluster_with_pods(), faults=faults)
        async with running_in_background(pipeline.run(None)):
            waiting = asyncio.create_task(pipeline.reader.wait_synced(None))
            await asyncio.sleep(1)
        with pytest.raises(NotRunning, match="the informer of pods ended before it was synced"):
            await waiting

    run(main(), seed=1)


def test_a_snapshot_shows_objects_as_programs_see_them_and_does_not_change() -> None:
    async def test(cluster: Cluster, pipeline: InformerPipeline[Any]) -> None:
        snapshot = pipeline.reader.snapshot()
        cluster.create("pods", {"metadata": {"name": "b"}})
        await pipeline.reader.wait_until(ObjectKey("default", "b"), exists, 10)
        assert dict(snapshot) == {KEY: "pod a"}
        assert len(pipeline.reader.snapshot()) == 2

    read(cluster_with_pods("a"), test, shape=Shape.of(convert=named))


def test_a_function_tests_and_a_wait_returns_the_converted_object() -> None:
    async def test(cluster: Cluster, pipeline: InformerPipeline[Any]) -> None:
        seen = list[object]()

        def see(obj: object) -> bool:
            seen.append(obj)
            return True

        found = await pipeline.reader.wait_until(KEY, see, 10)
        written = cluster.get("pods", "a")
        assert (seen, found) == (["pod a"], "pod a")
        assert await pipeline.reader.wait_for(written, 10) == "pod a"
        cluster.delete("pods", "a")
        assert await pipeline.reader.wait_until(KEY, lambda obj: obj is None, 10) is None

    read(cluster_with_pods("a"), test, shape=Shape.of(convert=named))


def test_a_timeout_names_the_version_that_was_waited_for_and_that_of_the_cache() -> None:
    async def test(cluster: Cluster, pipeline: InformerPipeline[Any]) -> None:
        written = cluster.get("pods", "a")
        written = {**written, "metadata": {**written["metadata"], "resourceVersion": "999"}}
        with pytest.raises(CacheWaitTimeout) as caught:
            await pipeline.reader.wait_for(written, 2.5)
        assert str(caught.value).startswith(
            "the cache of pods doesn't show default/a at resourceVersion 999 after 2.5 s: it is at "
            f"resourceVersion {caught.value.resource_version}; watching"
        )

    read(cluster_with_pods("a"), test)


def test_a_timeout_of_the_predicate_itself_is_raised_as_it_is() -> None:
    def late(obj: object) -> bool:
        raise TimeoutError("mine")

    async def test(cluster: Cluster, pipeline: InformerPipeline[Any]) -> None:
        for timeout in (5.0, None):
            with pytest.raises(TimeoutError, match=r"^mine$"):
                await pipeline.reader.wait_until(KEY, late, timeout)

    read(cluster_with_pods("a"), test)


@pytest.mark.parametrize(
    ("predicate", "error", "text"),
    [
        (3, TypeError, "wait_until needs a function or a condition, not 3"),
        (asyncio.sleep, TypeError, "wait_until: .*sleep"),
    ],
)
def test_a_predicate_that_can_not_be_called_is_rejected_at_once(
    predicate: Any, error: type[Exception], text: str
) -> None:
    async def test(cluster: Cluster, pipeline: InformerPipeline[Any]) -> None:
        with pytest.raises(error, match=text):
            await pipeline.reader.wait_until(KEY, predicate, 1)

    read(cluster_with_pods("a"), test)


def test_a_condition_is_asked_about_an_object_that_does_not_exist() -> None:
    async def test(cluster: Cluster, pipeline: InformerPipeline[Any]) -> None:
        assert await pipeline.reader.wait_until(KEY, deleted, 5) is None
        with pytest.raises(CacheWaitTimeout, match="default/a in a state that passes exists after"):
            await pipeline.reader.wait_until(KEY, exists, 1)

    read(cluster_with_pods(), test)


def test_an_object_of_another_kind_or_namespace_is_not_waited_for() -> None:
    async def test(cluster: Cluster, pipeline: InformerPipeline[Any]) -> None:
        pod = cluster.create("pods", {"metadata": {"name": "b"}}, namespace="web")
        with pytest.raises(
            UsageError, match=r"web/b at .* is in another namespace; this is of pods"
        ):
            await pipeline.reader.wait_for(pod, 1)
        with pytest.raises(UsageError, match="is a Node; this is the informer of pods"):
            await pipeline.reader.wait_for({**pod, "kind": "Node"}, 1)

    read(cluster_with_pods("a"), test, namespace="default")


def test_a_wait_for_all_objects_names_a_few_of_those_that_fail() -> None:
    names = [f"p{number}" for number in range(MAX_NAMED + 2)]

    async def test(cluster: Cluster, pipeline: InformerPipeline[Any]) -> None:
        def ready(obj: KubeObject | None) -> bool:
            return obj is not None and bool(obj.labels)

        query = Query()
        with pytest.raises(CacheWaitTimeout) as caught:
            await pipeline.reader.wait_until_all(ready, query, 1, 1)
        reason = str(caught.value).partition("(not yet: ")[2].partition(")")[0]
        assert len(reason.split(", ")) == MAX_NAMED + 1
        assert reason.endswith(", ...")

        for name in names[1:]:
            label_pod(cluster, name, "ready")
        with pytest.raises(CacheWaitTimeout, match=r"ready \(not yet: default/p0\) after 1 s"):
            await pipeline.reader.wait_until_all(ready, query, 1, 1)

        label_pod(cluster, "p0", "ready")
        assert await pipeline.reader.wait_until_all(ready, query, 1, 1) == len(names)
        with pytest.raises(CacheWaitTimeout, match=r"\(fewer than 8 objects\)"):
            await pipeline.reader.wait_until_all(ready, query, 8, 1)

    read(cluster_with_pods(*names), test)


def test_an_index_is_complete_when_it_appears_although_objects_change_meanwhile() -> None:
    async def test(cluster: Cluster, pipeline: InformerPipeline[Any]) -> None:
        def by_label(obj: KubeObject) -> list[str]:
            return [obj.labels.get("value", "none")]

        building = asyncio.create_task(pipeline.reader.add_index("value", by_label))
        label_pod(cluster, "a", "changed")
        await building

        def indexed(value: str) -> int:
            return len(pipeline.indexer.state.indexes["value"].buckets.get(value, ()))

        await until(lambda: indexed("changed") == 1)
        assert indexed("none") == 1
        await pipeline.reader.add_index("value", by_label)  # the informer has this index already
        assert repr(pipeline.reader) == "<CacheReader of pods>"

    read(cluster_with_pods("a", "b"), test)
