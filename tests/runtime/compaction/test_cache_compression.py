"""The compression of a cache's objects at rest, in virtual time, and its threads in real time."""

from __future__ import annotations

import asyncio
import json
import platform
import random
import subprocess
import sys
import threading
from collections.abc import Sequence

import pytest

from aioinformer import Delta, DeltaQueue, Indexer, KubeObject, field
from aioinformer._core.cache.compressed_index import CompressedIndex
from aioinformer._core.compression.compressed_object import (
    CompressedBytes,
    CompressedObject,
    KnownValues,
    saved_bytes,
)
from aioinformer._core.compression.compressor import MIN_SAMPLES, WINDOW, CompressionBatch
from aioinformer._runtime.compaction.cache_compression import LARGE_BYTES, CacheCompression
from aioinformer._runtime.compaction.free_memory import FreedMemory
from aioinformer._runtime.informer.pump import Pump
from aioinformer.testing.simulation import run
from tests.core.compression.rested import change, object_of, pod_bodies
from tests.cpu_time import short_turns
from tests.runtime.informers import running_in_background
from tests.runtime.virtual_waits import until

REST = 10.0
LONG_TURN = 0.05
"""Seconds of CPU time of a turn of the loop; the promise is 0.008. 3,000 pods at once take 0.1."""


class Parts:
    """A pump with its queue, and a cache that is compressed."""

    def __init__(self, rest: float = REST) -> None:
        self.indexer = Indexer({"node": field("spec.nodeName")}, index_type=CompressedIndex)
        self.queue = DeltaQueue(self.indexer)
        self.pump = Pump("pods", self.queue, self.indexer)
        self.compression = CacheCompression(self.indexer, rest)
        self.pump.observers = (self.compression,)

    async def relist(self, bodies: Sequence[bytes]) -> None:
        before = self.indexer.state
        self.queue.replace([object_of(raw) for raw in bodies], "1")
        await until(lambda: self.indexer.state is not before)

    async def change(self, *bodies: bytes) -> None:
        self.queue.feed([Delta("Updated", object_of(raw, packed=False)) for raw in bodies])
        await asyncio.sleep(0.01)

    @property
    def objects(self) -> list[KubeObject]:
        return list(self.indexer.state.objects.values())

    @property
    def compressed(self) -> int:
        """The number of cached objects that are compressed."""
        return sum(type(obj) is CompressedObject for obj in self.objects)

    @property
    def dictionaries(self) -> set[int]:
        """The identities of the dictionaries that the cached objects refer to."""
        found = [obj.stored for obj in self.objects]
        groups = [each.group for each in found if type(each) is CompressedBytes]
        return {id(group.codec) for group in groups if not group.is_reference}

    def check_saved(self) -> None:
        assert self.compression.saved_bytes == sum(map(saved_bytes, self.objects))
        assert self.compression.saved_bytes > 0


COUNT = WINDOW + 88
BODIES = pod_bodies(40)
"""Too few for a dictionary, which would be made in a thread."""


def newer(raw: bytes, version: int) -> bytes:
    return change(raw, resourceVersion=str(version))


def test_listed_objects_are_compressed_in_the_next_pass() -> None:
    async def main() -> None:
        parts = Parts()
        async with (
            running_in_background(parts.pump.run()),
            running_in_background(parts.compression.run()),
        ):
            await parts.relist(BODIES)
            await asyncio.sleep(REST / 2)
            assert parts.compressed == 0
            await asyncio.sleep(REST)
            assert parts.compressed == len(BODIES)
            assert {obj.raw for obj in parts.objects} == set(BODIES)
            parts.check_saved()

    run(main(), seed=0)


def test_a_changed_object_is_compressed_after_one_to_two_rest_times() -> None:
    async def main() -> None:
        parts = Parts()
        async with (
            running_in_background(parts.pump.run()),
            running_in_background(parts.compression.run()),
        ):
            await parts.relist(BODIES)
            await asyncio.sleep(1.5 * REST)
            for number in range(8):  # it changes more often than it could rest
                await parts.change(newer(BODIES[0], 10**9 + number))
                assert parts.compressed == len(BODIES) - 1
                parts.check_saved()
                await asyncio.sleep(REST / 2)
            await asyncio.sleep(0.45 * REST)
            assert parts.compressed == len(BODIES) - 1
            await asyncio.sleep(1.1 * REST)
            assert parts.compressed == len(BODIES)
            parts.check_saved()

    run(main(), seed=0)


def test_an_object_that_a_program_reads_is_not_compressed() -> None:
    async def main() -> None:
        parts = Parts()
        async with (
            running_in_background(parts.pump.run()),
            running_in_background(parts.compression.run()),
        ):
            await parts.relist(BODIES)
            assert parts.objects[3]["spec"]
            await asyncio.sleep(1.5 * REST)
            assert parts.compressed == len(BODIES) - 1
            for raw in BODIES[:20]:  # other objects are read
                assert object_of(raw)["spec"]
            await asyncio.sleep(2 * REST)
            assert parts.compressed == len(BODIES)

    run(main(), seed=0)


def test_the_saved_bytes_are_correct_after_deletions_and_after_a_relist() -> None:
    async def main() -> None:
        parts = Parts()
        async with (
            running_in_background(parts.pump.run()),
            running_in_background(parts.compression.run()),
        ):
            await parts.relist(BODIES)
            await asyncio.sleep(1.5 * REST)
            deleted = object_of(newer(BODIES[5], 10**9), packed=False)
            parts.queue.feed([Delta("Deleted", deleted)])
            await asyncio.sleep(0.01)
            assert parts.compressed == len(BODIES) - 1
            parts.check_saved()
            await parts.relist([newer(raw, 10**9) for raw in BODIES[:20]])
            await asyncio.sleep(1.5 * REST)
            assert parts.compressed == 20
            parts.check_saved()

    run(main(), seed=0)


async def test_a_dictionary_is_trained_and_trained_again_for_other_objects() -> None:
    parts = Parts(0.02)
    async with (
        running_in_background(parts.pump.run()),
        running_in_background(parts.compression.run()),
    ):
        await parts.relist(pod_bodies(COUNT))
        compressor = parts.compression.compressor
        await until(lambda: parts.compressed == COUNT)
        assert compressor.trainings == 1
        assert parts.compression.overhead_bytes > compressor.dictionary_bytes > 0
        first, kept = parts.dictionaries, parts.objects  # which keep their dictionary alive
        # The same pods with a hundred new labels each.
        chance = random.Random(0)
        extra = {f"example.com/{n}": f"{chance.getrandbits(200):x}" for n in range(100)}
        listed = [change(raw, labels=extra) for raw in pod_bodies(COUNT)]
        await parts.relist([newer(raw, 10**9) for raw in listed])
        await until(lambda: compressor.trainings == 2 and parts.compressed == COUNT)
        # The walk counts all objects, and then compresses them with the new dictionary.
        await until(lambda: len(parts.dictionaries) == 1 and parts.dictionaries != first)
        parts.check_saved()
        del kept


async def test_a_large_object_is_compressed_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, names = Parts(0.02), list[str]()
    compress = CompressionBatch.compress

    def observed(batch: CompressionBatch, obj: KubeObject, values: KnownValues) -> object:
        names.append(threading.current_thread().name)
        return compress(batch, obj, values)

    monkeypatch.setattr(CompressionBatch, "compress", observed)
    async with (
        running_in_background(parts.pump.run()),
        running_in_background(parts.compression.run()),
    ):
        large = json.loads(BODIES[1])
        large["data"] = "x" * LARGE_BYTES
        await parts.relist([BODIES[0], json.dumps(large).encode()])
        await until(lambda: parts.compressed == 2)
    assert len(names) == 2
    assert sum(name == threading.main_thread().name for name in names) == 1


async def test_the_saved_bytes_are_correct_after_a_change_during_a_walk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The changed object is compressed, and the walk meets it after the change."""
    monkeypatch.setattr("aioinformer._runtime.compaction.cache_compression.GROUPED_OBJECTS", 1)
    large = change(BODIES[0], annotations={"text": "x" * LARGE_BYTES})
    parts = Parts(0.02)
    compress, begun, go_on = CompressionBatch.compress, threading.Event(), threading.Event()

    def held_up(batch: CompressionBatch, obj: KubeObject, values: KnownValues) -> object:
        if len(obj.stored) >= LARGE_BYTES:
            begun.set()
            assert go_on.wait(60)
        return compress(batch, obj, values)

    async with (
        running_in_background(parts.pump.run()),
        running_in_background(parts.compression.run()),
    ):
        await parts.relist([large, *BODIES[1:]])
        await until(lambda: parts.compressed == len(BODIES))
        monkeypatch.setattr(CompressionBatch, "compress", held_up)
        await parts.relist([newer(large, 10**9), *BODIES[1:]])
        await until(begun.is_set)  # the walk has met no other object yet
        await parts.change(newer(BODIES[5], 10**9))
        assert parts.compressed == len(BODIES) - 2
        go_on.set()
        await until(lambda: parts.compressed == len(BODIES))
        parts.check_saved()


@pytest.fixture(name="many_bodies")
def make_many_bodies() -> list[bytes]:
    """Return many pods. They take a second to make: no loop waits for them."""
    bodies = pod_bodies(200)
    return [change(raw, name=f"pod-{n}-{m}") for n in range(15) for m, raw in enumerate(bodies)]


async def test_no_turn_of_the_loop_has_several_objects_of_much_json(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of them takes 10 ms, and 16 in one turn would take 0.15 s."""
    monkeypatch.setattr("aioinformer._runtime.compaction.cache_compression.LARGE_BYTES", 2**30)
    text = f"{random.Random(0).getrandbits(4 * 1_700_000):x}"
    changed = [
        newer(change(raw, annotations={"text": text[n:]}), 10**9)
        for n, raw in enumerate(BODIES[:16])
    ]
    parts = Parts(0.05)
    async with running_in_background(parts.pump.run()):
        await parts.relist(BODIES)
        async with running_in_background(parts.compression.run()):
            await until(lambda: parts.compressed == len(BODIES))
            await parts.change(*changed)
            async with short_turns(LONG_TURN):
                await until(lambda: parts.compressed == len(BODIES))


async def test_no_turn_of_the_loop_is_long(many_bodies: list[bytes]) -> None:
    parts, listed = Parts(0.05), many_bodies
    async with running_in_background(parts.pump.run()):
        await parts.relist(listed)
        async with (
            short_turns(LONG_TURN),
            running_in_background(parts.compression.run()),
        ):
            await until(lambda: parts.compressed == len(listed))
    assert parts.compression.compressor.trainings == 1
    assert len(listed) > MIN_SAMPLES


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can return memory")
def test_the_training_of_a_dictionary_leaves_no_memory_in_its_thread() -> None:
    """8 MB stayed at the end of the thread's heap."""
    program = """
import asyncio
from aioinformer._core.compression.zstd import find_zstd, train_dictionary
from aioinformer._runtime.compaction.free_memory import FreedMemory
from benchmarks.load.meter import resident
from benchmarks.load.workloads import make_pods

def train():
    assert train_dictionary(find_zstd(), samples, 32 * 1024)
    FreedMemory().release_from_thread()

samples = list(make_pods(300))
FreedMemory().release()
before = resident()
asyncio.run(asyncio.to_thread(train))
print(resident() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 4_000_000


def test_freed_memory_is_returned_unless_other_code_has_freed_much_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free, trimmed = [0], list[int]()

    def trim(pad: int) -> int:
        trimmed.append(pad)
        return 1

    monkeypatch.setattr(
        "aioinformer._runtime.compaction.free_memory._find_functions",
        lambda: (lambda: free[0], trim),
    )
    memory = FreedMemory()
    for free[0], expected in ((10**6, True), (30 * 10**6, True), (90 * 10**6, False)):
        assert memory.release() is expected
    assert trimmed == [0, 0]
