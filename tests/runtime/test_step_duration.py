"""No step holds the event loop for long, whatever happens to many objects at once.

A generous guard in CPU time, because machines may be busy. The time of each step is measured by the
benchmarks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

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
    pod,
    scripted_lister_watcher,
    wait_until,
    watch_response,
    yield_to_loop,
)

MANY = 20_000
LONG_TURN = 0.2
"""Seconds of CPU time of a turn of the loop with work on all objects; the promise is 0.01."""
CALLS_PER_TURN = 4_000
"""Filter calls of 20 µs that take longer than any turn of the loop: of the pump, the reflector,
and the handlers. Without steps, a turn would make 10,000 calls or more."""
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


async def test_all_of_them_vanish() -> None:
    informer = relisted()
    await patiently(informer)
    assert not len(informer.lister)


async def test_all_of_them_change() -> None:
    informer = relisted(*(body(f"web-{number}", 15) for number in range(MANY)))
    await patiently(informer)
    assert len(informer.lister) == MANY


async def test_all_of_them_are_refused_by_an_index_function() -> None:
    def broken(obj: KubeObject) -> str:
        raise KeyError(obj.name)

    informer = relisted(*(body(f"web-{number}", 15) for number in range(MANY)))
    informer.add_indexers({"broken": broken})
    await patiently(informer)
    assert informer.health.rejections == MANY


async def test_all_of_them_went_before_a_handler_came_to_them() -> None:
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
        await registration.wait_synced(10)
    assert received <= 2


# -- with filters -----------------------------------------------------------------------------


def fussy(obj: KubeObject) -> bool:
    """Match every object after about 20 µs, the time of a filter that decodes a pod."""
    return sum(range(2000)) > len(obj.name)


def filter_seconds(calls: int) -> float:
    """Return the CPU time of that many calls of a filter on this machine, with its load of now."""
    obj, start = pod("a", 1), time.thread_time()
    for _ in range(calls):
        fussy(obj)
    return time.thread_time() - start


def fussy_too(obj: KubeObject) -> bool:
    """Match no object, after the same time."""
    return not fussy(obj)


@pytest.mark.parametrize("filtered", [fussy, fussy_too])
async def test_a_burst_of_changes_and_several_filters(
    filtered: Callable[[KubeObject], bool],
) -> None:
    burst = [added(f"web-{number}", 100 + number) for number in range(BURST)]
    informer = SharedInformer(
        scripted_lister_watcher(
            list_response(version="10"), watch_response(*burst, never_ends=True)
        )
    )
    for _ in range(10):
        informer.add_handler(lambda _: None, filter=filtered)
    async with running_informer(informer), short_turns(filter_seconds(CALLS_PER_TURN)):
        await wait_until(lambda: informer.health.resource_version == str(99 + BURST))


@pytest.mark.parametrize("filtered", [None, fussy])
async def test_changes_while_handlers_that_hang_have_all_of_a_list_pending(
    filtered: Callable[[KubeObject], bool] | None,
) -> None:
    """Pending events must be filtered and merged to make room."""
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

        informer.add_handler(hangs, filter=filtered)
    async with running_informer(informer):
        await wait_until(lambda: informer.health.resource_version != "10")
        async with short_turns(filter_seconds(CALLS_PER_TURN)):
            await wait_until(lambda: informer.health.resource_version == str(99 + BURST))
