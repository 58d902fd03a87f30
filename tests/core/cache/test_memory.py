"""The estimate of a cache's memory, beside the memory that Python has traced."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from functools import cache

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import KubeObject, field, label_index
from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.cache.memory import DECODED_FACTOR, CacheMemory
from aioinformer._core.codec.event_decoder import EventDecoder
from aioinformer._core.objects.deltas import Delta, Replaced
from aioinformer._core.objects.kube_object import pack_identity
from benchmarks.load.pods import modified
from tests.core.builders import PODS, pod


def relist(indexer: Indexer, objects: list[KubeObject]) -> None:
    replacement = indexer.replace(Replaced(objects, "9"))
    while not replacement.step(64):
        pass
    replacement.commit()
    while not replacement.step(64):
        pass


def rejects_some(obj: KubeObject) -> str:
    if obj["spec"]["nodeName"] == "rejected":
        raise ValueError("no such node")
    return "all"


pods = st.builds(
    pod,
    st.sampled_from("abc"),
    rv=st.integers(1, 10**6).map(str),
    uid=st.sampled_from(("one", "other")),
    node=st.sampled_from(("n", "node", "rejected")),
)
changes = st.lists(
    st.tuples(st.sampled_from(("Updated", "Deleted", "relist")), st.lists(pods, min_size=1))
)


@given(changes)
def test_the_bytes_of_json_are_counted_exactly(steps: list[tuple[str, list[KubeObject]]]) -> None:
    indexer = Indexer({"node": rejects_some})
    for kind, objects in steps:
        if kind == "relist":
            relist(indexer, objects)
        else:
            for obj in objects:
                indexer.apply(Delta("Deleted" if kind == "Deleted" else "Updated", obj), [])
        state = indexer.state
        assert state.json_bytes == sum(len(obj.raw) for obj in state.objects.values())


@cache
def decoder_of_all() -> EventDecoder:
    """Return the decoder of all objects, as those of a watch share one."""
    return EventDecoder(PODS)


def realistic(number: int) -> KubeObject:
    entry = decoder_of_all().decode(modified(number, number))
    assert isinstance(entry, Delta)
    return entry.obj


def small(number: int) -> KubeObject:
    uid = f"0b1d2c3e-5f60-4a7b-8c9d-{number:012d}"
    line = (
        '{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{'
        f'"name":"p-{number}","namespace":"web","uid":"{uid}","resourceVersion":"{number + 1}",'
        f'"labels":{{"app":"a-{number % 50}"}}}},"spec":{{"nodeName":"node-{number % 9}"}}}}}}\n'
    )
    entry = decoder_of_all().decode(line.encode())
    assert isinstance(entry, Delta)
    return entry.obj


@pytest.mark.parametrize("make", [realistic, small])
@pytest.mark.parametrize("packed", [True, False])
def test_the_estimate_is_within_a_tenth_of_the_allocated_memory(
    make: Callable[[int], KubeObject], packed: bool
) -> None:
    count = 1000
    indexer = Indexer({"node": field("spec.nodeName"), "app": label_index("app")})
    relist(indexer, [make(0)])  # what Python and msgspec keep from the first use
    gc.collect()
    tracemalloc.start()
    try:
        objects = [make(number) for number in range(count)]
        if packed:
            for obj in objects:
                pack_identity(obj)
        relist(indexer, objects)
        del objects
        gc.collect()
        traced = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    state = indexer.state
    estimate = CacheMemory.estimate(
        objects=len(state.objects),
        json_bytes=state.json_bytes,
        overhead_bytes=state.overhead_bytes,
        opened=(),
        pending=0,
        queued_bytes=0,
    )
    assert estimate.objects == count
    assert estimate.total == pytest.approx(traced, rel=0.1)


def test_decoded_bodies_exceed_their_json_by_the_assumed_factor() -> None:
    raws = [realistic(number).raw for number in range(200)]
    decode = msgspec.json.Decoder().decode
    decode(raws[0])
    tracemalloc.start()
    try:
        bodies = [decode(raw) for raw in raws]
        traced = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert len(bodies) == len(raws)
    assert traced / sum(map(len, raws)) == pytest.approx(DECODED_FACTOR, rel=0.3)


def test_pending_events_and_queued_deltas_count() -> None:
    memory = CacheMemory.estimate(
        objects=10,
        json_bytes=10_000,
        overhead_bytes=3_000,
        opened=(100, 200),
        pending=5,
        queued_bytes=7_000,
    )

    assert memory.open_bytes == DECODED_FACTOR * 300
    assert 7_000 + 5 * 1_000 < memory.pending_bytes < 7_000 + 5 * 1_300
    assert memory.total == 13_000 + memory.open_bytes + memory.pending_bytes


def test_an_empty_cache_takes_almost_no_memory() -> None:
    state = Indexer({"node": field("spec.nodeName")}).state

    assert state.json_bytes == 0
    assert state.overhead_bytes < 500
