"""No step holds the event loop for long, whatever happens to many objects at once.

A generous guard in CPU time, because machines may be busy. The time of each step is measured by the
benchmarks.
"""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import Event, KubeObject, SharedInformer
from tests.cpu_time import short_turns
from tests.runtime.informers import FAST_BACKOFF, running_informer
from tests.runtime.scripted_source import (
    added,
    body,
    error_event,
    list_response,
    modified,
    scripted_lister_watcher,
    wait_until,
    watch_response,
    yield_to_loop,
)

MANY = 20_000
LONG_TURN = 0.2
"""Seconds of CPU time of a turn of the loop with work on all objects; the promise is 0.01."""
CALLS_PER_TURN = 5_000
"""Filter calls, more than any turn of the loop makes. They depend on the machine less than seconds:
a slow machine makes fewer calls in a time slice. Without steps, a turn makes 10,000 at least."""
BURST = 2_000
"""Live events at once."""


def relisted(*after: str) -> SharedInformer:
    """Create an informer of many objects, whose second list contains ``after``."""
    first = list_response(*(body(f"web-{number}", 5) for number in range(MANY)), version="10")
    deleted = watch_response(error_event(410, "Expired"))
    then = list_response(*after, version="20")
    return SharedInformer(
        scripted_lister_watcher(first, deleted, then, watch_response(never_ends=True)),
        backoff=FAST_BACKOFF,
    )


async def patiently(informer: SharedInformer) -> None:
    """Run an informer to the end of its second list, and measure each turn of the loop."""
    async with short_turns(LONG_TURN), running_informer(informer):
        await wait_until(lambda: informer.health.resource_version == "20")
        await yield_to_loop(MANY // 64)  # what the old state held is freed in steps of 64


async def test_no_step_is_long_when_all_objects_vanish() -> None:
    informer = relisted()
    await patiently(informer)
    assert not len(informer.lister)


async def test_no_step_is_long_when_all_objects_change() -> None:
    informer = relisted(*(body(f"web-{number}", 15) for number in range(MANY)))
    await patiently(informer)
    assert len(informer.lister) == MANY


async def test_no_step_is_long_when_an_index_function_rejects_all_objects() -> None:
    def broken(obj: KubeObject) -> str:
        raise KeyError(obj.name)

    informer = relisted(*(body(f"web-{number}", 15) for number in range(MANY)))
    await informer.add_index("broken", broken)
    await patiently(informer)
    assert informer.health.rejections == MANY


async def test_no_step_is_long_when_all_objects_vanish_before_their_delivery() -> None:
    informer = relisted()
    go_on, received = asyncio.Event(), 0

    async def slow(_event: Event) -> None:
        nonlocal received
        received += 1
        await go_on.wait()

    registration = informer.add_handler(slow)
    async with short_turns(LONG_TURN), running_informer(informer):
        await wait_until(lambda: informer.health.resource_version == "20")
        go_on.set()
        await registration.wait_synced(30)
    assert received <= 2


# -- with filters -----------------------------------------------------------------------------


class CountedFilter:
    """A filter that takes about 20 µs, as one does that decodes a pod, and counts its calls."""

    def __init__(self, *, matches: bool) -> None:
        self.calls = 0
        self._matches = matches

    def __call__(self, obj: KubeObject) -> bool:
        self.calls += 1
        return (sum(range(2000)) > len(obj.name)) is self._matches


@pytest.mark.parametrize("matches", [True, pytest.param(False, marks=pytest.mark.simulation)])
async def test_no_step_calls_many_filters_during_a_burst_of_changes(*, matches: bool) -> None:
    filtered = CountedFilter(matches=matches)
    burst = [added(f"web-{number}", 100 + number) for number in range(BURST)]
    informer = SharedInformer(
        scripted_lister_watcher(
            list_response(version="10"), watch_response(*burst, never_ends=True)
        )
    )
    for _ in range(5):
        informer.add_handler(lambda _: None, filter=filtered)
    async with running_informer(informer), short_turns(CALLS_PER_TURN, lambda: filtered.calls):
        await wait_until(lambda: informer.health.resource_version == str(99 + BURST))


@pytest.mark.parametrize("filters", [False, True])
async def test_no_step_calls_many_filters_while_a_whole_list_is_pending(*, filters: bool) -> None:
    """Pending events must be filtered and merged to make room."""
    filtered = CountedFilter(matches=True)
    first = list_response(*(body(f"web-{number}", 5) for number in range(BURST)), version="10")
    then = list_response(*(body(f"web-{number}", 15) for number in range(BURST)), version="20")
    burst = [modified(f"web-{number}", 100 + number) for number in range(BURST)]
    deleted = watch_response(error_event(410, "Expired"))
    informer = SharedInformer(
        scripted_lister_watcher(first, deleted, then, watch_response(*burst, never_ends=True)),
        backoff=FAST_BACKOFF,
    )
    for _ in range(5):

        async def hangs(_event: Event) -> None:
            await asyncio.sleep(3600)

        informer.add_handler(hangs, filter=filtered if filters else None)
    async with running_informer(informer):
        await wait_until(lambda: informer.health.resource_version != "10")
        async with short_turns(LONG_TURN), short_turns(CALLS_PER_TURN, lambda: filtered.calls):
            await wait_until(lambda: informer.health.resource_version == str(99 + BURST))
