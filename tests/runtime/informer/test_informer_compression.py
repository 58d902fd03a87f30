"""Informers with ``compress=``: their options, what they share, and what works with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from aioinformer import (
    InformerOptions,
    KubeObject,
    Lister,
    Shard,
    SharedInformer,
    SharedInformerFactory,
    field,
)
from aioinformer._core.compression.compressed_object import CompressedObject
from aioinformer.errors import UsageError
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation import run
from tests.core.compression.rested import compress
from tests.runtime.cachefile.programs import running
from tests.runtime.informers import running_informer
from tests.runtime.scripted_source import PODS
from tests.runtime.virtual_waits import until
from tests.zstd_modules import without_zstd


class Metadata(Struct):
    name: str


class Pod(Struct):
    metadata: Metadata


def cluster_of(count: int = 8) -> Cluster:
    """Return a cluster with pods that are worth compressing."""
    cluster = Cluster()
    for number in range(count):
        body = {
            "metadata": {"name": f"web-{number}", "annotations": {"note": "abcdefg " * 200}},
            "spec": {"nodeName": f"node-{number % 2}"},
        }
        cluster.create("pods", body, namespace=f"ns-{number % 3}")
    return cluster


def compress_all(informer: SharedInformer) -> int:
    """Compress what an informer holds, as it does at rest; return the number of objects."""
    objects: list[KubeObject] = list(informer.lister)
    return len([compress(obj) for obj in objects if type(obj) is KubeObject])


# -- the option ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("compress", "rest"), [(False, None), (True, 10.0), (30, 30.0), (1, 1.0), (2.5, 2.5)]
)
def test_the_compress_option_is_true_or_a_number_of_seconds(
    compress: float, rest: float | None
) -> None:
    assert InformerOptions(compress=compress).compress_after == rest


@pytest.mark.parametrize(
    ("compress", "error", "message"),
    [
        ("zstd", TypeError, "compress must be True, False or seconds of rest, not 'zstd'"),
        (None, TypeError, "not None"),
        (0, ValueError, "compress must be True, False, or 1 or more seconds of rest, not 0"),
        (-3.0, ValueError, "not -3"),
        (float("nan"), ValueError, "not nan"),
        (float("inf"), ValueError, "not inf"),
    ],
)
def test_another_value_is_an_error(compress: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        InformerOptions(compress=compress)


async def test_without_zstd_the_error_names_the_extra() -> None:
    with without_zstd():
        assert InformerOptions(compress=False).compress_after is None
        async with SharedInformerFactory(ClusterSource(Cluster())) as informers:
            with pytest.raises(UsageError, match=r"pip install 'aioinformer\[zstd\]'"):
                informers.informer("pods", compress=True)


async def test_callers_of_one_informer_must_agree_on_compression() -> None:
    async with SharedInformerFactory(ClusterSource(cluster_of())) as informers:
        pods = informers.informer("pods", compress=True)
        assert informers.informer("pods") is pods
        with pytest.raises(UsageError, match=r"has compress=True.*can't have compress=30"):
            informers.informer("pods", compress=30)


def show_name_and_uid(obj: KubeObject) -> tuple[str, str]:
    return obj.name, obj.uid


def drop_web_3(obj: KubeObject) -> KubeObject | None:
    return obj if obj.name != "web-3" else None


def add_status(obj: KubeObject) -> dict[str, Any]:
    return {**obj.to_dict(), "status": {"note": "x" * 600}}


# -- informers -----------------------------------------------------------------------------------


def test_an_informer_compresses_its_objects_and_reports_the_saved_bytes() -> None:
    async def main() -> None:
        cluster = cluster_of()
        async with SharedInformerFactory(ClusterSource(cluster)) as informers:
            pods = informers.informer("pods", compress=5, indexers={"node": field("spec.nodeName")})
            await informers.wait_synced(timeout=10)
            before = pods.memory()
            assert before.saved_bytes == 0
            await until(lambda: pods.memory().saved_bytes > 0)
            after = pods.memory()
            assert after.json_bytes == before.json_bytes == sum(len(p.raw) for p in pods.lister)
            assert after.total < before.total / 1.5
            assert all(type(pod) is CompressedObject for pod in pods.lister)
            assert len(pods.lister.by_index("node", "node-1")) == 4
            label_pod_in(cluster, "ns-0", "web-0")
            await until(lambda: len(pods.lister.list(labels="value=new")) == 1)
            assert pods.memory().saved_bytes < after.saved_bytes

    run(main(), seed=0)


def label_pod_in(cluster: Cluster, namespace: str, name: str) -> None:
    patch = {"metadata": {"labels": {"value": "new"}}}
    cluster.merge_patch("pods", name, patch, namespace=namespace)


def test_a_model_has_no_json_to_compress() -> None:
    async def main() -> None:
        async with SharedInformerFactory(ClusterSource(cluster_of()), compress=2) as informers:
            pods = informers.informer("pods", model=Pod)
            await informers.wait_synced(timeout=10)
            assert {pod.metadata.name for pod in pods.lister} == {f"web-{n}" for n in range(8)}
            assert pods.memory().saved_bytes == 0

    run(main(), seed=0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"namespaces": ["ns-0", "ns-1", "ns-2"]},
        {"shard": Shard(0, 2)},
        {"metadata_only": True},
        {"convert": show_name_and_uid},
        {"transform": drop_web_3},
        {"transform": add_status},
    ],
)
def test_a_compressed_informer_has_the_same_objects_as_a_plain_informer(
    options: dict[str, Any],
) -> None:
    async def main() -> None:
        cluster = cluster_of()
        source = ClusterSource(cluster)
        indexers = {"namespace": field("metadata.namespace")}
        async with (
            SharedInformerFactory(source) as plain_ones,
            SharedInformerFactory(source, compress=2) as informers,
        ):
            plain = plain_ones.informer("pods", indexers=indexers, **options)
            compressed = informers.informer("pods", indexers=indexers, **options)
            for each in (plain_ones, informers):
                await each.wait_synced(timeout=10)
            await until(lambda: compressed.memory().saved_bytes > 0)
            check_equal(plain.lister, compressed.lister)
            label_pod_in(cluster, "ns-1", "web-1")
            cluster.delete("pods", "web-2", namespace="ns-2")
            await asyncio.sleep(1)
            check_equal(plain.lister, compressed.lister)
            verification = await compressed.verify(contents=True)
            assert verification, str(verification)

    run(main(), seed=0)


def check_equal(plain: Lister[Any], compressed: Lister[Any]) -> None:
    def ordered(found: list[Any]) -> list[Any]:
        return sorted(found, key=repr)

    reads: list[Callable[[Lister[Any]], list[Any]]] = [
        lambda lister: lister.list(),
        lambda lister: lister.by_index("namespace", "ns-1"),
        lambda lister: lister.list(namespace="ns-0"),
    ]
    for read in reads:
        assert ordered(read(plain)) == ordered(read(compressed))


async def test_a_cache_file_restores_a_compressed_cache(tmp_path: Path) -> None:
    cluster, path = cluster_of(), tmp_path / "cache.db"
    async with running(cluster, path, compress=1) as cold:
        assert compress_all(cold.pods) == 8
        label_pod_in(cluster, "ns-0", "web-0")
        await until(lambda: len(cold.heard) == 9)
    async with running(cluster, path, compress=1) as warm:
        assert warm.requests.verbs.count("watchlist") == 0
        assert len(warm.pods.lister) == 8
        for pod in warm.pods.lister:
            assert pod.to_dict()["metadata"]["annotations"]["note"] == "abcdefg " * 200


@pytest.mark.parametrize("given", [False, True])
async def test_an_informer_without_the_option_has_no_task_for_it(given: bool) -> None:
    source = ClusterSource(cluster_of()).lister_watcher(PODS)
    async with running_informer(SharedInformer(source, compress=given)):
        names = {task.get_name() for task in asyncio.all_tasks()}
        assert "pump of pods" in names
        assert ("compression of pods" in names) is given
