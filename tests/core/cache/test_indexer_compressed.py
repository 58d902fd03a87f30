"""A cache whose objects are compressed at rest equals one whose objects are not."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from aioinformer import Indexer, KubeObject, Lister, field, label_index
from aioinformer._core.cache.compressed_index import MAX_KEPT, CompressedIndex
from aioinformer._core.cache.partitions import PartitionedIndexer
from aioinformer._core.compression.compressed_object import CompressedObject
from aioinformer._core.compression.compressor import Compressor
from aioinformer._core.compression.zstd import BodyCodec, find_zstd
from aioinformer._core.objects.deltas import Delta, DeltaKind, Replaced
from aioinformer._core.objects.kube_object import Event
from tests.core.builders import PODS, key, pod
from tests.core.compression.rested import object_of, pod_bodies

NAMES = ("a", "b", "c", "d")
INDEXERS: dict[str, Any] = {"node": field("spec.nodeName"), "labels": label_index("app", "tier")}


def version_of(name: str, content: int, version: int, *, packed: bool) -> KubeObject:
    """Return a version of a pod, with the content of one of some workloads."""
    return object_of(_bytes_of_version(name, content, version), packed=packed)


@lru_cache(maxsize=256)
def _bytes_of_version(name: str, content: int, version: int) -> bytes:
    body = json.loads(pod_bodies()[content])
    body["metadata"] |= {
        "name": name,
        "namespace": "web",
        "uid": f"0b1d2c3e-5f60-4a7b-8c9d-{int.from_bytes(name.encode(), 'big'):012d}",
        "resourceVersion": str(version),
    }
    return json.dumps(body, separators=(",", ":")).encode()


@cache
def codec_of_pods() -> BodyCodec | None:
    """Return a codec that is trained once: the training takes longer than a history."""
    samples = pod_bodies()
    return Compressor(find_zstd()).train(samples, sum(map(len, samples)))


def trained_on_pods() -> Compressor:
    """Return a new compressor with the trained codec."""
    compressor = Compressor(find_zstd())
    compressor.install(codec_of_pods(), sum(map(len, pod_bodies())))
    return compressor


class TwoCaches:
    """A compressed cache and another one, to which the same is applied."""

    def __init__(self) -> None:
        self.plain = Indexer(INDEXERS)
        self.compressed = Indexer(INDEXERS, index_type=CompressedIndex)
        self.compressors = [Compressor(find_zstd()), trained_on_pods()]
        self.version = 0

    def _both(self) -> tuple[Indexer, Indexer]:
        return self.plain, self.compressed

    def change(self, kind: DeltaKind, name: str, content: int, *, repeat: bool) -> None:
        self.version += not repeat
        found: list[list[Event]] = []
        for indexer in self._both():
            events: list[Event] = []
            obj = version_of(name, content, self.version or 1, packed=False)
            indexer.apply(Delta(kind, obj), events)
            found.append(events)
        assert found[0] == found[1]

    def relist(self, states: Sequence[tuple[str, int]], *, renew: bool) -> None:
        self.version += renew
        found: list[list[Event]] = []
        for indexer in self._both():
            objects = [
                indexer.deduplicate(version_of(name, content, self.version or 1, packed=True))
                for name, content in dict(states).items()
            ]
            replacement = indexer.replace(Replaced(objects, str(self.version)))
            while not replacement.step(2):
                if indexer is self.compressed:  # while the new state is staged
                    self.compress(0)
            found.append([*replacement.commit()])
            while not replacement.step(2):
                pass
        assert found[0] == found[1]

    def compress(self, dictionary: int) -> None:
        compressor, state = self.compressors[dictionary], self.compressed.state
        for obj in state.objects.values():
            if compressor.is_due(obj):
                values = {index.name: index.values(obj) for index in state.indexes.values()}
                compressor.store(obj, compressor.compress(obj, values))

    def check(self) -> None:
        plain, compressed = self.plain.state, self.compressed.state
        assert compressed.objects == plain.objects
        assert compressed.json_bytes == plain.json_bytes == sum(
            len(obj.raw) for obj in plain.objects.values()
        )  # fmt: skip
        for name, index in plain.indexes.items():
            assert compressed.indexes[name].buckets == index.buckets
        listers = [Lister(each, PODS) for each in self._both()]
        for selector in ("tier=data", "tier!=data", "tier in (frontend,backend)"):
            assert listers[0].list(labels=selector) == listers[1].list(labels=selector)
        for obj in listers[0]:
            other = listers[1].get(obj.key)
            assert other is not None
            assert (other.raw, other.to_dict(), hash(other)) == (
                obj.raw,
                obj.to_dict(),
                hash(obj),
            )
            assert pickle.dumps(other) == pickle.dumps(obj)
            fields = {"spec.nodeName": field("spec.nodeName")(obj)}
            assert listers[0].list(fields=fields) == listers[1].list(fields=fields)


STEPS = st.one_of(
    st.tuples(st.just("compress"), st.integers(0, 1)),
    st.tuples(
        st.just("change"),
        st.sampled_from(("Added", "Updated", "Deleted")),
        st.sampled_from(NAMES),
        st.integers(0, 5),
        st.booleans(),
    ),
    st.tuples(
        st.just("relist"),
        st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 5)), max_size=6),
        st.booleans(),
    ),
)


@given(st.lists(STEPS, max_size=12))
def test_after_any_history_both_caches_are_equal(steps: list[tuple[Any, ...]]) -> None:
    caches = TwoCaches()
    caches.relist([("a", 0), ("b", 1)], renew=True)
    for name, *arguments in steps:
        match name:
            case "compress":
                caches.compress(*arguments)
            case "change":
                kind, which, content, repeat = arguments
                caches.change(kind, which, content, repeat=repeat)
            case _:
                caches.relist(arguments[0], renew=arguments[1])
        caches.check()


# -- indexes -------------------------------------------------------------------------------------


class CountedIndex:
    """An index function that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, obj: KubeObject) -> str:
        self.calls += 1
        return str(obj["spec"]["nodeName"])


@pytest.mark.parametrize("make", [Indexer, PartitionedIndexer])
def test_the_kept_index_values_of_a_compressed_object_are_not_computed_again(
    make: type[Indexer] | type[PartitionedIndexer],
) -> None:
    function = CountedIndex()
    indexer = make({"node": function}, index_type=CompressedIndex)
    if isinstance(indexer, PartitionedIndexer):
        indexer.add_scope("web")
    listed = version_of("a", 0, 1, packed=True)
    relist(indexer, [listed])
    compressor, state = Compressor(find_zstd()), indexer.scope_states()
    index = next(iter(state.values())).indexes["node"]
    compressor.store(listed, compressor.compress(listed, {"node": index.values(listed)}))
    assert type(listed) is CompressedObject
    calls = function.calls

    relist(indexer, [indexer.deduplicate(version_of("a", 0, 1, packed=True))])
    assert indexer.state.objects[key("a")] is listed
    assert function.calls == calls, "a relist of the unchanged object"

    indexer.apply(Delta("Updated", version_of("a", 1, 2, packed=False)), [])
    assert function.calls == calls + 1, "the new version alone is read"
    index = next(iter(indexer.scope_states().values())).indexes["node"]
    assert len(index.buckets) == 1


def relist(indexer: Indexer | PartitionedIndexer, objects: list[KubeObject]) -> None:
    scope = "web" if isinstance(indexer, PartitionedIndexer) else None
    replacement = indexer.replace(Replaced(objects, "1", scope=scope))
    while not replacement.step(10):
        pass
    replacement.commit()
    while not replacement.step(10):
        pass


def test_an_index_that_is_added_later_reads_compressed_objects() -> None:
    indexer = Indexer(index_type=CompressedIndex)
    relist(indexer, [version_of(name, 0, 1, packed=True) for name in NAMES])
    compressor = Compressor(find_zstd())
    for obj in indexer.state.objects.values():
        compressor.store(obj, compressor.compress(obj, {}))
    build = indexer.build_index("node", field("spec.nodeName"))
    assert build is not None
    while not build.step(1):
        pass
    build.commit()
    index = indexer.state.indexes["node"]
    assert type(index) is CompressedIndex
    assert [len(bucket) for bucket in index.buckets.values()] == [len(NAMES)]
    indexer.apply(Delta("Deleted", version_of("a", 0, 2, packed=False)), [])
    assert [len(bucket) for bucket in index.buckets.values()] == [len(NAMES) - 1]


def test_the_index_values_of_a_new_object_are_used_once_for_its_compression() -> None:
    function = CountedIndex()
    indexer = Indexer({"node": function}, index_type=CompressedIndex)
    for version in (1, 2):
        indexer.apply(Delta("Updated", version_of("a", 0, version, packed=False)), [])
    index, obj = indexer.state.indexes["node"], indexer.state.objects[key("a")]
    assert isinstance(index, CompressedIndex)
    assert function.calls == 2
    found = index.take_values(obj)
    assert function.calls == 2
    assert found == (obj["spec"]["nodeName"],)
    assert index.take_values(obj) == found
    assert function.calls == 3, "the values were taken"


def test_values_of_another_version_are_not_taken_for_those_of_the_cached_one() -> None:
    indexer = Indexer({"node": field("spec.nodeName")}, index_type=CompressedIndex)
    indexer.apply(Delta("Updated", version_of("a", 0, 1, packed=False)), [])
    index, obj = indexer.state.indexes["node"], indexer.state.objects[key("a")]
    assert isinstance(index, CompressedIndex)
    other = version_of("a", 1, 2, packed=False)
    assert index.values(other) != index.take_values(obj) == (obj["spec"]["nodeName"],)


def test_values_are_kept_for_a_bounded_number_of_objects() -> None:
    function = CountedIndex()
    index = CompressedIndex("node", function)
    objects = [pod(f"a{number}") for number in range(MAX_KEPT + 1)]
    for obj in objects:
        index.values(obj)
    calls = function.calls
    index.take_values(objects[-1])
    assert function.calls == calls
    index.take_values(objects[0])
    assert function.calls == calls + 1
