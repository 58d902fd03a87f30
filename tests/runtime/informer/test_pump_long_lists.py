"""The pump with long lists: no container is long that the garbage collector would walk.

A collection visits every entry of each tracked container of its generations, 100,000 in 3 ms or
more, in whichever step of the loop an allocation begins the collection. The tests count entries of
tracked containers at the begin of each collection, and collect as often as Python can.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.chunked_list import ChunkedList
from aioinformer._core.objects.deltas import Replaced
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._runtime.delivery.listener import Listener
from tests.garbage_collector import DICTS_ARE_UNTRACKED, needs_untracked_dicts
from tests.runtime.informer.test_pump import Pipeline
from tests.runtime.scripted_source import pod, wait_until

OBJECTS = 4_000
LONG = OBJECTS // 4
"""Entries of a container that holds a part of all objects, and not a batch of them."""

CONTAINERS = (list, tuple, set, deque) + ((dict,) if DICTS_ARE_UNTRACKED else ())


@contextmanager
def tracked_lengths() -> Generator[list[int]]:
    """Give the length of the longest tracked container at the begin of each collection.

    Containers that exist before don't count.
    """
    lengths: list[int] = []

    def look(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found = (len(each) for each in gc.get_objects() if type(each) in CONTAINERS)
            lengths.append(max(found, default=0))

    gc.collect()
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.callbacks.append(look)
    gc.set_threshold(1, 1, 1)
    try:
        yield lengths
    finally:
        gc.callbacks.remove(look)
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def make_list(version: int) -> ChunkedList[KubeObject]:
    return ChunkedList(pod(str(number), version + number) for number in range(OBJECTS))


async def drain(listener: Listener, count: int) -> None:
    """Take ``count`` events, none of which is kept."""

    def take() -> bool:
        nonlocal count
        while listener.next_nowait() is not None:
            count -= 1
        return count <= 0

    await wait_until(take)
    assert count == 0


async def test_no_collection_walks_over_all_objects_of_a_list_or_a_replay() -> None:
    pipeline, listed, relisted = Pipeline(), make_list(1), make_list(OBJECTS)
    early = pipeline.listener("early")
    with tracked_lengths() as lengths:
        async with pipeline.pumping():
            pipeline.queue.replace(listed, str(OBJECTS))
            del listed
            await drain(early, OBJECTS)
            late = pipeline.listener("late")
            await drain(late, OBJECTS)
            pipeline.pump.resync([early])
            await drain(early, OBJECTS)
            pipeline.queue.replace(relisted, str(2 * OBJECTS))
            del relisted
            await drain(early, OBJECTS)
            await drain(late, OBJECTS)

    assert len(pipeline.indexer.state.objects) == OBJECTS
    assert len(lengths) > 20, "collections"
    assert max(lengths) < LONG


@needs_untracked_dicts
def test_the_dicts_of_a_cache_are_not_tracked() -> None:
    indexer, entry = Indexer({"all": lambda _: "x"}), Replaced(make_list(1), str(OBJECTS))
    with tracked_lengths() as lengths:
        replacement = indexer.replace(entry)
        while not replacement.step(64):
            gc.collect()
        replacement.commit()
        gc.collect()

    assert not gc.is_tracked(indexer.state.objects)
    assert not gc.is_tracked(indexer.state.indexes["all"].buckets["x"])
    assert max(lengths) < LONG
