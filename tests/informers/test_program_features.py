"""Features of a program, ``features=(...)``, beside those of the library."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from aioinformer import CacheFile, Deleted, Event, Shard, SharedInformer, SharedInformerFactory
from aioinformer.errors import UsageError
from aioinformer.lowlevel import Feature, Indexer, Replaced
from aioinformer.testing import Cluster, ClusterSource
from tests.cachefile.programs import running, until


class Broken(Exception):
    """What a feature of these tests raises."""


class Observed(Feature):
    """Follows the cache by its changes alone."""

    def __init__(self) -> None:
        self.uids = Counter[str]()
        self.restored = 0
        self.events = 0
        self.closed = False

    def record(self, events: Sequence[Event]) -> None:
        for event in events:
            self._apply(event)

    def record_list(self, batches: Sequence[Sequence[Event]], kind: Replaced) -> None:
        self.restored += kind.restored
        for batch in batches:
            self.record(batch)

    async def prepare_removal(self, scope: str) -> None: ...

    def _apply(self, event: Event) -> None:
        self.events += 1
        uid = event.obj.uid
        if isinstance(event, Deleted):
            self.uids[uid] -= 1
        elif type(event).__name__ == "Added":
            self.uids[uid] += 1
        assert self.uids[uid] in (0, 1), f"{event!r} is received more than once"

    async def close(self) -> None:
        self.closed = True

    def agrees_with(self, informer: SharedInformer[Any]) -> bool:
        return {uid for uid, number in self.uids.items() if number} == {
            pod.uid for pod in informer.lister
        }


def cluster_with(*namespaces: str) -> Cluster:
    cluster = Cluster()
    for namespace in namespaces:
        for number in range(3):
            put(cluster, namespace, number)
    return cluster


def put(cluster: Cluster, namespace: str, number: int) -> None:
    cluster.create("pods", {"metadata": {"name": f"p{number}"}}, namespace=namespace)


async def test_an_observer_receives_each_change_of_restored_namespaces_once(
    tmp_path: Path,
) -> None:
    cluster, path = cluster_with("a", "b", "c"), tmp_path / "cache.db"
    async with running(cluster, path, namespaces=["a", "b"]):
        pass
    put(cluster, "a", 7)
    cluster.delete("pods", "p0", namespace="b")
    observed = Observed()
    features = (lambda: observed,)
    async with running(cluster, path, namespaces=["a", "b"], features=features) as program:
        await until(lambda: observed.agrees_with(program.pods))
        assert program.pods.health.cache_problem == ""
        assert observed.restored == 2
        assert observed.events == 6 + 2, "six restored objects, and two changes since"
        program.pods.add_namespace("c")
        await until(lambda: observed.agrees_with(program.pods) and len(program.pods.lister) == 9)
        program.pods.remove_namespace("a")
        await until(lambda: observed.agrees_with(program.pods) and len(program.pods.lister) == 5)
        program.pods.add_namespace("a")
        await until(lambda: observed.agrees_with(program.pods) and len(program.pods.lister) == 9)
        assert await program.pods.verify(repair=True)
    assert observed.closed


def raising(method: str) -> type[Feature]:
    """Return a class of features with a method that raises."""

    def fail(*_: object) -> Any:
        raise Broken(method)

    async def fail_later(*_: object) -> None:
        raise Broken(method)

    how: Any = {"close": fail_later, "identity": property(fail)}.get(method, fail)
    return type("Raising", (Observed,), {method: how})


@pytest.mark.parametrize("method", ["__init__", "make_cache", "select", "attach", "identity"])
def test_a_feature_that_raises_as_it_is_attached_leaves_the_factory_usable(
    method: str, tmp_path: Path
) -> None:
    kind = raising(method)

    async def program() -> None:
        cache = CacheFile(tmp_path / "cache.db")
        informers = SharedInformerFactory(ClusterSource(cluster_with("a")), cache=cache)
        with pytest.raises(Broken):
            informers.informer("pods", features=(kind,))
        pods = informers.informer("pods")
        pods.add_handler(print, durable="audit")
        async with informers:
            await pods.wait_synced(timeout=10)
            assert pods.health.cache_problem == ""

    asyncio.run(program())


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("method", ["start", "record", "record_list"])
async def test_a_feature_that_raises_at_work_ends_its_informer_with_the_error(
    method: str, cached: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster, last = cluster_with("a"), Observed()
    options: Any = {"cache": CacheFile(tmp_path / "cache.db")} if cached else {}
    informers = SharedInformerFactory(ClusterSource(cluster), **options)
    pods = informers.informer("pods", features=(raising(method), lambda: last))

    async def work() -> None:
        async with informers:
            await pods.wait_synced(timeout=10)
            put(cluster, "a", 7)
            await asyncio.sleep(10)

    with pytest.raises(Broken, match=method):
        await work()
    assert pods.health.state == "failed"
    assert isinstance(pods.health.error, Broken)
    assert last.closed
    assert [each.message for each in caplog.records if each.levelname in ("ERROR", "CRITICAL")] == [
        "the informer of pods failed"
    ]


async def test_all_features_are_closed_though_one_raises(tmp_path: Path) -> None:
    first, last = Observed(), Observed()
    informers = SharedInformerFactory(
        ClusterSource(cluster_with("a")), cache=CacheFile(tmp_path / "cache.db", interval=0.01)
    )
    features = (lambda: first, raising("close"), lambda: last)
    pods = informers.informer("pods", features=features)

    async def work() -> None:
        async with informers:
            await pods.wait_synced(timeout=10)

    with pytest.raises(Broken, match="close"):
        await work()
    assert (first.closed, last.closed) == (True, True)
    assert pods.health.state == "stopped"


class AdmitsAll:
    list_options: Mapping[str, str] = {}

    def admits(self, uid: str, namespace: str) -> bool:
        return True

    def check_list(self, envelope: bytes) -> bool:
        return False


class Selecting(Feature):
    def select(self, resource: Any, queue: Any) -> Any:
        return queue, AdmitsAll()


class Caching(Feature):
    def make_cache(self, indexers: Any, view: Any) -> Any:
        return Indexer(indexers, view=view)


class Both(Selecting, Caching): ...


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"shard": Shard(0, 4), "features": (Selecting,)}, "ShardFeature and Selecting select"),
        ({"features": (Selecting, Both)}, "Selecting and Both select objects"),
        ({"features": (Caching, Both)}, "Caching and Both make a cache"),
        ({"namespaces": ["a"], "features": (Caching,)}, "NamespacesFeature and Caching make"),
    ],
)
def test_only_one_feature_chooses_the_objects_or_makes_the_cache(
    options: dict[str, Any], text: str
) -> None:
    informers = SharedInformerFactory(ClusterSource(Cluster()))
    with pytest.raises(UsageError, match=text):
        informers.informer("pods", **options)


@pytest.mark.parametrize("taken", ["version", "shape", "shard", "mine"])
def test_a_feature_does_not_replace_what_a_cache_file_knows_of_another_part(
    taken: str, tmp_path: Path
) -> None:
    first = type("First", (Feature,), {"identity": {"mine": "1"}})
    other = type("Other", (Feature,), {"identity": {taken: "2"}})
    informers = SharedInformerFactory(
        ClusterSource(Cluster()), cache=CacheFile(tmp_path / "cache.db")
    )
    with pytest.raises(UsageError, match=rf"Other.identity has the name '{taken}'"):
        informers.informer("pods", shard=Shard(0, 4), features=(first, other))


def test_a_function_that_makes_no_feature_is_named() -> None:
    def make_nothing() -> Any:
        return None

    informers = SharedInformerFactory(ClusterSource(Cluster()))
    with pytest.raises(TypeError, match=r"return a Feature: .*make_nothing.* made None"):
        informers.informer("pods", features=(make_nothing,))


def test_requests_with_other_features_do_not_share_an_informer_unnoticed() -> None:
    informers = SharedInformerFactory(ClusterSource(Cluster()))
    pods = informers.informer("pods", features=(Observed,))
    assert informers.informer("pods") is pods
    assert informers.informer("pods", features=(Observed,)) is pods
    with pytest.raises(UsageError, match="features"):
        informers.informer("pods", features=(Caching,))
