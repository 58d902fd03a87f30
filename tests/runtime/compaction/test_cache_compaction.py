"""The work on the cache in calm moments, in virtual time."""

from __future__ import annotations

import asyncio

import msgspec

from aioinformer import Delta, DeltaQueue, Indexer, KubeObject
from aioinformer._core.objects.object_body import IdentityPlace, ObjectBody
from aioinformer._runtime.compaction.cache_compaction import (
    CALM_CHANGES,
    CALM_SECONDS,
    MIN_CHANGES,
)
from aioinformer._runtime.informer.pump import Pump
from aioinformer.testing.simulation import run
from tests.runtime.informers import running_in_background
from tests.runtime.scripted_source import (
    pod,
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
