"""A mailbox that can be waited at, and the gate in front of full ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from aioinformer import Added, Deleted, Event, KubeObject, Statistics, Updated
from aioinformer._core.mailbox import Mailbox
from aioinformer._runtime.listeners import Gate, Listener
from aioinformer.errors import NotRunning, SyncTimeout
from tests.runtime.sources import pod, settle


def held(obj: KubeObject) -> bool:
    return bool(obj.name)


def listener(limit: int = 4, gate: Gate | None = None) -> Listener:
    return Listener("stream of pods", Mailbox(limit=limit, holds=held), gate or Gate())


def additions(count: int) -> list[Added]:
    return [Added(pod(f"web-{n}", n)) for n in range(count)]


def shut(gate: Gate) -> bool:
    return gate.closed


# -- waiting ----------------------------------------------------------------------------------


async def test_the_consumer_sleeps_until_something_comes() -> None:
    box = listener()
    waiting = asyncio.create_task(box.next())
    await settle()
    assert not waiting.done()

    box.put(additions(1))

    assert await waiting == additions(1)[0]


async def test_every_kind_of_news_wakes_the_consumer() -> None:
    box, obj = listener(), pod("web-0", 1)
    expected: list[tuple[Callable[[], None], Event]] = [
        (lambda: box.put([Added(obj)]), Added(obj)),
        (lambda: box.tell([Deleted(obj, "vanished")], initial=False), Deleted(obj, "vanished")),
        (lambda: box.replay([obj]), Added(obj, initial=True)),
        (lambda: box.resync([obj]), Updated(obj, obj, resync=True)),
    ]

    for news, event in expected:
        waiting = asyncio.create_task(box.next())
        await settle()
        news()
        assert await waiting == event


async def test_a_closed_listener_still_gives_what_is_pending() -> None:
    box = listener()
    box.put(additions(1))

    box.close(drop=False)

    assert await box.next() == additions(1)[0]
    assert await box.next() is None


async def test_a_listener_that_is_closed_for_good_gives_nothing() -> None:
    box = listener()
    box.put(additions(2))

    box.close(drop=True)

    assert await box.next() is None
    assert box.statistics().pending == 0


async def test_closing_wakes_the_consumer() -> None:
    box = listener()
    waiting = asyncio.create_task(box.next())
    await settle()

    box.close(drop=False)

    assert await waiting is None


# -- the gate ---------------------------------------------------------------------------------


async def test_a_gate_is_closed_while_somebody_waits_at_it() -> None:
    gate = Gate()
    assert not shut(gate)
    waiting = asyncio.create_task(gate.wait())
    await settle()
    assert shut(gate)

    gate.open()
    await waiting

    assert not shut(gate)


async def test_a_full_listener_opens_the_gate_when_it_is_half_empty() -> None:
    gate = Gate()
    box = listener(4, gate)
    box.put(additions(4))
    waiting = asyncio.create_task(gate.wait())
    await settle()

    box.next_nowait()
    assert shut(gate)
    box.next_nowait()

    await waiting


async def test_a_full_listener_that_is_closed_opens_the_gate() -> None:
    gate = Gate()
    box = listener(1, gate)
    box.put(additions(1))
    waiting = asyncio.create_task(gate.wait())
    await settle()

    box.close(drop=True)

    await waiting


# -- synced -----------------------------------------------------------------------------------


async def test_it_is_synced_when_the_consumer_comes_back_after_all_that_was_there() -> None:
    box = listener()
    box.replay([pod("web-0", 1), pod("web-1", 2)])

    await box.next()
    await box.next()
    assert not box.statistics().synced

    assert box.next_nowait() is None
    assert box.synced
    await box.wait_synced()


async def test_waiting_for_synced_says_whose_time_is_up() -> None:
    with pytest.raises(SyncTimeout) as caught:
        await listener().wait_synced(timeout=0.001)

    assert list(caught.value.unsynced) == ["stream of pods"]
    assert "pending=0/4" in str(caught.value)


async def test_waiting_for_a_listener_that_ends_first_is_told_so() -> None:
    box = listener()
    waiting = asyncio.create_task(box.wait_synced())
    await settle()

    box.close(drop=True)

    with pytest.raises(NotRunning, match="stream of pods ended before it was synced"):
        await waiting


async def test_a_listener_that_was_synced_before_it_ended_stays_so() -> None:
    box = listener()
    box.replay([])
    box.next_nowait()

    box.close(drop=True)

    await box.wait_synced()


# -- numbers ----------------------------------------------------------------------------------


async def test_its_statistics_are_those_of_the_mailbox() -> None:
    box = listener()
    box.put(additions(3))
    box.next_nowait()

    assert box.statistics() == Statistics(pending=2, limit=4, delivered=1, errors=0, synced=False)
    assert box.room == 2


async def test_its_repr_says_how_it_is() -> None:
    box = listener()
    assert repr(box).startswith("<Listener stream of pods open <Mailbox pending=0/4")

    box.close(drop=True)
    assert repr(box).startswith("<Listener stream of pods closed ")
