"""The work on the cache in calm moments, in virtual time."""

from __future__ import annotations

import asyncio
import platform
import subprocess
import sys

import msgspec
import pytest

from aioinformer import Delta, DeltaQueue, Indexer, KubeObject, SharedInformer
from aioinformer._core.objects.object_body import IdentityPlace, ObjectBody
from aioinformer._runtime.compaction.cache_compaction import (
    CALM_CHANGES,
    CALM_SECONDS,
    MIN_CHANGES,
    MIN_LISTED,
    SETTLE_SECONDS,
)
from aioinformer._runtime.compaction.free_memory import MAX_FREE
from aioinformer._runtime.informer.pump import Pump
from aioinformer.testing.simulation import run
from tests.runtime.informers import running_in_background
from tests.runtime.scripted_source import (
    body,
    list_response,
    pod,
    scripted_lister_watcher,
    watch_response,
)


def changed_pod(number: int, version: int) -> KubeObject:
    """Return a pod with a uid as API servers give them."""
    return pod(f"web-{number}", version, uid=f"0b1d2c3e-5f60-4a7b-8c9d-{number:012d}")


def is_packed(obj: KubeObject) -> bool:
    body: ObjectBody = msgspec.structs.asdict(obj)["_body"]
    return isinstance(body, IdentityPlace)


class Parts:
    """A pump with its queue and cache."""

    def __init__(self) -> None:
        self.indexer = Indexer()
        self.queue = DeltaQueue(self.indexer)
        self.pump = Pump("pods", self.queue, self.indexer)

    def change(self, numbers: range, version: int) -> None:
        self.queue.feed([Delta("Updated", changed_pod(number, version)) for number in numbers])

    @property
    def packed(self) -> int:
        """The number of cached objects that are packed."""
        return sum(is_packed(obj) for obj in self.indexer.state.objects.values())


def test_changed_objects_are_packed_when_few_changes_follow() -> None:
    async def main() -> None:
        parts = Parts()
        async with (
            running_in_background(parts.pump.run()),
            running_in_background(parts.pump.compaction.run()),
        ):
            parts.change(range(MIN_CHANGES), 1)
            await asyncio.sleep(CALM_SECONDS / 2)
            assert parts.packed == 0, "the calm isn't certain yet"
            await asyncio.sleep(3 * CALM_SECONDS)
            assert parts.packed == MIN_CHANGES
            versions = {obj.resource_version for obj in parts.indexer.state.objects.values()}
            assert versions == {"1"}

    run(main(), seed=0)


def test_no_object_is_packed_while_many_objects_change() -> None:
    async def main() -> None:
        parts = Parts()
        async with (
            running_in_background(parts.pump.run()),
            running_in_background(parts.pump.compaction.run()),
        ):
            parts.change(range(MIN_CHANGES), 1)
            for version in range(2, 12):
                parts.change(range(2 * CALM_CHANGES), version)
                await asyncio.sleep(CALM_SECONDS / 2)
                assert parts.packed == 0
            await asyncio.sleep(3 * CALM_SECONDS)
            assert parts.packed == MIN_CHANGES

    run(main(), seed=0)


def test_too_few_changes_do_not_start_a_pass() -> None:
    async def main() -> None:
        parts = Parts()
        async with (
            running_in_background(parts.pump.run()),
            running_in_background(parts.pump.compaction.run()),
        ):
            parts.change(range(MIN_CHANGES - 1), 1)
            await asyncio.sleep(100 * CALM_SECONDS)
            assert parts.packed == 0

    run(main(), seed=0)


@pytest.mark.parametrize(("count", "expected"), [(MIN_LISTED - 1, 0), (MIN_LISTED, 1)])
def test_after_the_initial_list_free_memory_is_returned(
    monkeypatch: pytest.MonkeyPatch, count: int, expected: int
) -> None:
    released: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(
            "aioinformer._runtime.compaction.free_memory.release_free_memory",
            lambda: released.append(loop.time()),
        )
        parts = Parts()
        async with (
            running_in_background(parts.pump.run()),
            running_in_background(parts.pump.compaction.run()),
        ):
            for _ in range(3):
                objects = [changed_pod(number, 1) for number in range(count)]
                parts.queue.fifo.replace(objects, "1")
                parts.change(range(1), 1)
                await asyncio.sleep(10)
                assert len(released) == expected

    run(main(), seed=0)


def free_after_allocating(count: int) -> subprocess.CompletedProcess[str]:
    """Leave ``count`` holes of 0.1 MB in the memory of a process, and return what it prints."""
    program = (
        "from aioinformer._runtime.compaction.free_memory import release_free_memory\n"
        f"kept = [bytes(100_000) for _ in range(2 * {count})]\n"
        "del kept[::2]\n"
        "print(release_free_memory())"
    )
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can return memory")
@pytest.mark.parametrize(("holes", "expected"), [(50, True), (MAX_FREE // 50_000, False)])
def test_free_memory_is_returned_unless_it_takes_long(holes: int, expected: bool) -> None:
    assert free_after_allocating(holes).stdout.strip() == str(expected)


@pytest.mark.parametrize(("objects", "tasks"), [(MIN_LISTED - 1, 0), (MIN_LISTED, 1)])
def test_an_informer_starts_the_task_when_there_is_something_to_do(
    objects: int, tasks: int
) -> None:
    async def main() -> None:
        listed = list_response(*(body(f"web-{number}", 1) for number in range(objects)))
        source = scripted_lister_watcher(listed, watch_response(never_ends=True))
        informer = SharedInformer(source, watch_list=False)
        async with running_in_background(informer.run()):
            await informer.wait_synced()
            await asyncio.sleep(SETTLE_SECONDS)
            names = [task.get_name() for task in asyncio.all_tasks()]
            assert names.count("pump of pods") == 1
            assert names.count("compaction of pods") == tasks

    run(main(), seed=0)
