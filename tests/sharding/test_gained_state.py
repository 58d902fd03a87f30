"""The state of shards that move in: listed, or restored and followed to the present."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection

from aioinformer import Bookmark, KubeObject
from aioinformer._core.objects.deltas import Confirmed, Replaced
from aioinformer._core.objects.stored import ExcludedObject
from aioinformer.sharding.gained_state import GainedState
from aioinformer.sharding.state.ranges import HashRanges
from tests.core.builders import added, deleted, pod, updated

RANGES = HashRanges.of((1,), 8, "uid")


class Publisher:
    """Receives states, the first ones of which may be too old."""

    def __init__(self, *, too_old: int = 0) -> None:
        self.states = list[tuple[dict[str, str], str, bool]]()
        self.too_old = too_old

    def __call__(self, objects: Collection[KubeObject], version: str, *, follows: bool) -> bool:
        found = {obj.name: obj.resource_version for obj in objects}
        self.states.append((found, version, follows))
        return len(self.states) > self.too_old


class StoredPods:
    """The shards of a cache file in memory."""

    version = "5"
    problem = ""

    def find(self, shards: frozenset[int]) -> frozenset[int]:
        return shards

    def discard(self, shards: frozenset[int]) -> None:
        """Keep no state of shards."""

    async def read(self, ranges: HashRanges) -> AsyncIterator[list[KubeObject]]:
        assert ranges is RANGES
        yield [pod("a", rv="1"), pod("b", rv="2")]
        yield [pod("c", rv="3")]


async def restored(publisher: Publisher) -> GainedState:
    state = GainedState(publisher)
    await state.restore_from(StoredPods(), RANGES)
    return state


def test_a_listed_state_is_passed_on_at_once() -> None:
    publisher = Publisher()
    GainedState(publisher).put(Replaced([pod("a", rv="7")], "9"))

    assert publisher.states == [({"a": "7"}, "9", False)]


async def test_a_restored_state_is_passed_on_only_when_the_server_has_confirmed_it() -> None:
    publisher = Publisher()
    state = await restored(publisher)
    assert repr(state) == "<GainedState of 3 restored objects, 5>"
    assert publisher.states == []

    state.put(Confirmed())

    assert publisher.states == [({"a": "1", "b": "2", "c": "3"}, "5", True)]


async def test_the_changes_since_the_file_was_written_are_applied_to_its_state() -> None:
    publisher = Publisher()
    state = await restored(publisher)

    assert state.feed([updated(pod("a", rv="6")), deleted(pod("b", rv="7"))]) is False
    state.feed([added(pod("d", rv="8"))])
    state.put(Confirmed())

    assert publisher.states == [({"a": "6", "c": "3", "d": "8"}, "8", True)]


async def test_a_bookmark_moves_the_version_of_a_restored_state_and_an_empty_one_does_not() -> None:
    publisher = Publisher()
    state = await restored(publisher)

    state.feed([Bookmark("12"), Bookmark("")])
    state.put(Confirmed())

    assert publisher.states[0][1] == "12"


async def test_an_object_that_a_selection_drops_leaves_and_a_rejected_one_stays() -> None:
    publisher = Publisher()
    state = await restored(publisher)
    dropped, rejected = pod("a", rv="6"), pod("b", rv="7")

    state.feed([updated(ExcludedObject.of(dropped))])
    state.feed([updated(ExcludedObject.of(rejected, ValueError("no such model")))])
    state.put(Confirmed())

    assert publisher.states[0][0] == {"b": "7", "c": "3"}


async def test_a_state_that_is_too_old_is_passed_on_again_after_each_change_until_it_is_taken() -> (
    None
):
    publisher = Publisher(too_old=2)
    state = await restored(publisher)

    state.put(Confirmed())
    state.feed([updated(pod("a", rv="6"))])
    state.feed([updated(pod("a", rv="7"))])
    state.feed([updated(pod("a", rv="8"))])  # another reflector follows the shards by now

    assert [version for _, version, _ in publisher.states] == ["5", "6", "7"]


async def test_a_list_takes_the_place_of_a_restored_state_that_the_server_does_not_know() -> None:
    publisher = Publisher(too_old=1)
    state = await restored(publisher)

    state.put(Replaced([pod("z", rv="20")], "21"))
    assert publisher.states == [({"z": "20"}, "21", False)]
    assert repr(state) == "<GainedState of 0 restored objects, 21>"

    await state.room()  # its queue is never full


def test_the_changes_after_a_listed_state_are_those_of_the_watch_of_all_shards() -> None:
    publisher = Publisher()
    state = GainedState(publisher)
    state.put(Replaced([pod("a", rv="7")], "9"))
    state.feed([updated(pod("a", rv="10"))])

    assert len(publisher.states) == 1
