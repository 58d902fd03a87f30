"""Waiters for a state of a cache, without an informer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import Bookmark, Delta, Event, Indexer, KubeObject, ObjectKey
from aioinformer._core.objects.deltas import Replaced
from aioinformer._runtime.informer.waiters import CacheWaiters, ObjectVersion
from aioinformer.errors import NotComparable, UsageError
from tests.runtime.scripted_source import pod, yield_to_loop


class Cache:
    """A cache with its waiters, which are notified as by a pump."""

    def __init__(self, *objects: KubeObject, version: str = "10") -> None:
        self.indexer = Indexer()
        self.waits = CacheWaiters(self.indexer, "pods")
        self.replace(*objects, version=version)

    def apply(self, kind: Any, obj: KubeObject) -> None:
        events: list[Event] = []
        self.indexer.apply(Delta(kind, obj), events)
        self.waits.notify(events)

    def bookmark(self, version: int) -> None:
        self.indexer.bookmark(Bookmark(str(version)))
        self.waits.notify(())

    def replace(self, *objects: KubeObject, version: str) -> None:
        replacement = self.indexer.replace(Replaced(objects, version))
        while not replacement.step(64):
            pass
        replacement.commit()
        self.waits.notify_all()


def waiting(cache: Cache, obj: KubeObject) -> asyncio.Task[KubeObject | None]:
    return asyncio.create_task(cache.waits.wait_for_version(ObjectVersion.of(obj)))


# -- one version of one object -----------------------------------------------------------------


async def test_a_waiter_returns_none_for_an_unselected_object_when_its_version_is_reached() -> None:
    cache = Cache()
    task = waiting(cache, pod("a", 12))
    await yield_to_loop()
    cache.bookmark(11)
    await yield_to_loop()
    assert not task.done()
    cache.bookmark(12)

    assert await task is None


async def test_a_waiter_ignores_another_object_of_the_same_name() -> None:
    """The cached object was deleted before this one was created."""
    cache = Cache(pod("a", 5, uid="first"))
    task = waiting(cache, pod("a", 12, uid="second"))
    await yield_to_loop()
    cache.apply("Deleted", pod("a", 11, uid="first"))
    await yield_to_loop()
    assert not task.done()
    cache.apply("Added", pod("a", 12, uid="second"))

    found = await task
    assert found is not None
    assert found.uid == "second"


async def test_a_waiter_returns_none_when_the_object_is_created_again() -> None:
    cache = Cache(pod("a", 5, uid="first"))
    task = waiting(cache, pod("a", 12, uid="first"))
    await yield_to_loop()
    cache.apply("Added", pod("a", 14, uid="second"))

    assert await task is None


async def test_no_wait_ends_before_the_initial_list_is_complete() -> None:
    cache = Cache()
    cache.indexer = Indexer()
    cache.waits = CacheWaiters(cache.indexer, "pods")
    task = waiting(cache, pod("a", 12))
    await yield_to_loop()
    cache.apply("Added", pod("a", 12))
    await yield_to_loop()
    assert not task.done()
    cache.replace(pod("a", 12), version="12")

    assert await task == pod("a", 12)


async def test_a_version_of_another_form_cannot_be_waited_for() -> None:
    cache = Cache(KubeObject(ObjectKey("web", "a"), "u", "abc", b"{}", pod("a", 1).resource))
    (held,) = cache.indexer.state.objects.values()
    assert await cache.waits.wait_for_version(ObjectVersion.of(held)) is held

    with pytest.raises(NotComparable):
        await cache.waits.wait_for_version(ObjectVersion(held.key, "u", "abd"))
    with pytest.raises(NotComparable):
        await cache.waits.wait_for_version(ObjectVersion(held.key, "u", "12"))


# -- what is waited for ------------------------------------------------------------------------


def test_a_dict_and_an_object_give_the_same_version() -> None:
    metadata = {"name": "a", "namespace": "web", "uid": "uid-a", "resourceVersion": "12"}
    assert ObjectVersion.of({"metadata": metadata}) == ObjectVersion.of(pod("a", 12))
    assert str(ObjectVersion.of(pod("a", 12))) == "web/a at resourceVersion 12"


def test_an_object_in_no_namespace_can_be_waited_for() -> None:
    written = ObjectVersion.of({"metadata": {"name": "n", "uid": "u", "resourceVersion": "1"}})
    assert written.key == ObjectKey("", "n")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"metadata": None},
        {"metadata": {"name": "a", "resourceVersion": "1"}},
        {"metadata": {"name": "a", "uid": "", "resourceVersion": "1"}},
        {"kind": "Status", "metadata": {}},
    ],
    ids=str,
)
def test_a_body_without_server_metadata_is_rejected(body: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"name, uid and resourceVersion.*answer to a write"):
        ObjectVersion.of(body)


# -- a condition -------------------------------------------------------------------------------


# -- ends --------------------------------------------------------------------------------------


async def test_a_cancelled_waiter_is_removed() -> None:
    cache = Cache()
    task = waiting(cache, pod("a", 12))
    await yield_to_loop()
    assert len(cache.waits) == 1
    assert repr(cache.waits) == "<CacheWaiters pods waiting=1>"
    task.cancel()
    await yield_to_loop()

    assert len(cache.waits) == 0


async def test_a_waiter_that_is_cancelled_in_the_step_that_woke_it_raises_cancelled_error() -> None:
    cache = Cache()
    task = waiting(cache, pod("a", 12))
    await yield_to_loop()
    cache.apply("Added", pod("a", 12))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    cache.apply("Updated", pod("a", 13))


# -- all objects -------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["Updated", "Deleted", "replace", "yield"]),
            st.sampled_from("abc"),
            st.booleans(),
        ),
        max_size=20,
    )
)
async def test_all_objects_pass_in_the_state_at_which_the_wait_ends(
    steps: list[tuple[str, str, bool]],
) -> None:
    """The model: one dictionary of the objects, tested as a whole."""
    cache = Cache(pod("a", 1))
    passing, version = set[tuple[str, int]](), 1

    def passes(obj: KubeObject) -> bool:
        return (obj.name, int(obj.resource_version)) in passing

    def all_pass() -> bool:
        cached = cache.indexer.state.objects.values()
        return len(cached) >= 2 and all(map(passes, cached))

    task = asyncio.create_task(
        cache.waits.wait_for_all(lambda _obj: True, passes, set(), at_least=2)
    )
    await yield_to_loop()
    for action, name, good in steps:
        version += 1
        if good:
            passing.add((name, version))
        if action == "replace":
            cache.replace(pod(name, version), pod("d", version), version=str(version))
        elif action == "yield":
            await yield_to_loop()
        elif action == "Updated" or ObjectKey("default", name) in cache.indexer.state.objects:
            cache.apply(action, pod(name, version))
        if action == "yield" and all_pass():
            break
    await yield_to_loop()

    assert task.done() == all_pass()
    if task.done():
        assert await task == len(cache.indexer.state.objects)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert len(cache.waits) == 0
