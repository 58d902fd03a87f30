"""A mailbox with a wake-up, and the gate for full mailboxes."""

from __future__ import annotations

import asyncio
from operator import length_hint

import pytest

from aioinformer import Added, Event, KubeObject
from aioinformer._core.delivery.mailbox import MAX_SKIPPED, Mailbox
from aioinformer._core.delivery.overflow import OverflowName
from aioinformer._runtime.delivery.listener import BackpressureGate, Listener
from aioinformer.errors import ListenerOverflow, NotRunning
from aioinformer.testing.simulation.loop import run
from tests.runtime.informers import running_in_background
from tests.runtime.registrations import make_registration
from tests.runtime.registrations import running_registration as handling
from tests.runtime.scripted_source import pod, wait_until, yield_to_loop


def held(obj: KubeObject) -> bool:
    return bool(obj.name)


def listener(
    limit: int = 4, gate: BackpressureGate | None = None, overflow: OverflowName = "block"
) -> Listener:
    mailbox = Mailbox(limit=limit, overflow=overflow, holds=held)
    return Listener("stream of pods", mailbox, gate or BackpressureGate())


def additions(count: int) -> list[Event]:
    return [Added(pod(f"web-{n}", n)) for n in range(count)]


def shut(gate: BackpressureGate) -> bool:
    return gate.closed


# -- waiting ----------------------------------------------------------------------------------


async def test_the_consumer_sleeps_until_an_event_is_put() -> None:
    box = listener()
    waiting = asyncio.create_task(box.next())
    await yield_to_loop()
    assert not waiting.done()

    box.put(additions(1))

    assert await waiting == additions(1)[0]


async def test_a_listener_that_is_closed_with_drop_delivers_nothing() -> None:
    box = listener()
    box.put(additions(2))

    box.close(drop=True)

    assert await box.next() is None
    assert box.statistics().pending == 0


def test_dropped_pending_objects_are_freed_at_once_without_a_loop() -> None:
    box = listener()
    objects = iter([pod(f"web-{n}", n) for n in range(1000)])
    box.replay(objects)

    box.close(drop=True)

    assert length_hint(objects) == 0


async def test_closing_wakes_the_consumer() -> None:
    box = listener()
    waiting = asyncio.create_task(box.next())
    await yield_to_loop()

    box.close(drop=False)

    assert await waiting is None


# -- the gate ---------------------------------------------------------------------------------


async def test_a_full_listener_opens_the_gate_when_it_is_half_empty() -> None:
    gate = BackpressureGate()
    box = listener(4, gate)
    box.put(additions(4))
    waiting = asyncio.create_task(gate.wait())
    await yield_to_loop()

    box.next_nowait()
    assert shut(gate)
    box.next_nowait()

    await waiting


# -- synced -----------------------------------------------------------------------------------


async def test_a_listener_is_synced_at_the_call_of_next_after_the_last_replayed_object() -> None:
    box = listener()
    box.replay([pod("web-0", 1), pod("web-1", 2)])

    await box.next()
    await box.next()
    assert not box.statistics().synced

    assert box.next_nowait() is None
    assert box.synced
    await box.wait_synced()


async def test_a_listener_is_synced_at_the_end_of_the_initial_list_before_a_live_batch() -> None:
    """The consumer receives the live batch together with the mark, and may process it for long."""
    box = listener(overflow="coalesce")
    box.put([Added(pod("a", 1))])
    box.put_relist([[Added(pod("b", 1), initial=True)]], initial=True)
    box.put([Added(pod("c", 1))])
    for name in "abc":
        assert next(box.take()).obj.name == name

    await box.wait_synced(timeout=0)


async def test_a_closed_listener_delivers_pending_events_but_no_pending_resync() -> None:
    box = listener()
    box.replay([pod("a", 1)])
    box.put(additions(1))
    box.resync([pod(f"again-{n}", 1) for n in range(1000)], lambda _: True)
    box.close(drop=False)
    received = list[Event]()
    while event := await box.next():
        received.append(event)

    assert [event.obj.name for event in received] == ["a", "web-0"]
    assert box.ended


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_a_closed_listener_has_ended_only_after_its_last_event(count: int) -> None:
    box, received = listener(), list[Event]()
    for addition in additions(count):  # each in a batch of its own
        box.put([addition])
    box.close(drop=False)
    while await box.ready():
        assert not box.ended
        event = box.next_nowait()
        assert event is not None
        received.append(event)

    assert received == additions(count)
    assert box.ended


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("busy", [False, True])
async def test_a_handler_that_drains_receives_its_last_event(
    *, concurrency: int, busy: bool
) -> None:
    received, go_on = list[str](), asyncio.Event()

    async def handle(event: Event) -> None:
        received.append(event.obj.name)
        await go_on.wait()

    registration = make_registration(handle, drain=True, concurrency=concurrency)
    async with handling(registration):
        if busy:
            registration.listener.put([Added(pod("web-0", 0))])
            await wait_until(lambda: received == ["web-0"])
        else:
            await yield_to_loop()  # the handler waits for its first event
        registration.listener.put([Added(pod("web-0", 1))])
        go_on.set()
        await registration.aclose(timeout=10)

    assert received == ["web-0"] * (1 + busy)


# -- numbers ----------------------------------------------------------------------------------


def test_the_statistics_contain_the_age_of_the_oldest_pending_event() -> None:
    async def main() -> list[float]:
        box = listener()
        now = asyncio.get_running_loop().time()
        box.put(additions(1), now)
        box.put(additions(1), now + 1)
        await asyncio.sleep(5)
        seen = [box.statistics().oldest]
        while box.next_nowait():
            seen.append(box.statistics().oldest)
        return seen

    assert run(main(), seed=0) == pytest.approx([5.0, 4.0, 0.0])


async def test_the_statistics_contain_the_durations_of_calls() -> None:
    box = listener()
    box.call_times.record(3.0)
    box.call_times.record_calls(2, 6.0, 1.0, 5.0)

    numbers = box.statistics()

    assert (numbers.spent_last, numbers.spent_max) == (1.0, 5.0)
    assert numbers.spent_mean == pytest.approx(3.0)


# -- many at once -----------------------------------------------------------------------------


async def test_take_returns_a_batch_of_pending_events() -> None:
    box = listener()
    box.put(additions(2))
    box.put(additions(1))
    seen: list[list[Event]] = []

    while not box.mailbox.empty and await box.ready():
        seen.append(list(box.take()))

    assert seen == [additions(2), additions(1)]


async def test_a_consumer_can_wait_for_the_future_of_a_listener() -> None:
    box = listener()
    waiter = box.waiter()
    assert waiter is not None
    box.put(additions(1))
    await waiter

    assert box.waiter() is None, "there is something"
    assert list(box.take()) == additions(1)
    box.close(drop=True)
    assert box.waiter() is None
    assert box.ended, "nothing more will come"


async def test_a_cancelled_waiter_is_not_woken() -> None:
    box = Listener("stream of pods", Mailbox(holds=lambda _: False), BackpressureGate())
    box.replay([pod(f"web-{n}", n) for n in range(2 * MAX_SKIPPED)])
    assert box.next_nowait() is None
    waiter = box.waiter()
    assert waiter is not None
    waiter.cancel()
    await yield_to_loop(2)

    assert box.waiter() is None


async def test_replayed_events_can_be_taken_in_a_batch() -> None:
    box = listener()
    box.replay([pod("web-0", 1), pod("web-1", 2)])
    box.put(additions(1))

    assert [event.obj.name for event in box.take()] == ["web-0", "web-1", "web-0"]
    assert box.synced
    await box.wait_synced()


async def test_take_returns_no_events_from_an_empty_closed_listener() -> None:
    box = listener()
    waiting = asyncio.create_task(box.ready())
    await yield_to_loop()
    box.close(drop=True)

    assert not await waiting
    assert list(box.take()) == []
    assert box.ended


async def test_taking_in_one_go_opens_the_gate_too() -> None:
    gate = BackpressureGate()
    box = listener(2, gate)
    box.put(additions(2))
    waiting = asyncio.create_task(gate.wait())
    await yield_to_loop()

    assert len(list(box.take())) == 2
    box.release()

    await waiting


async def test_skipping_many_events_yields_in_between() -> None:
    box = Listener("stream of pods", Mailbox(holds=lambda _: False), BackpressureGate())
    box.replay([pod(f"web-{n}", n) for n in range(3 * MAX_SKIPPED)])
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with running_in_background(other()):
        waiting = asyncio.create_task(box.next())
        await wait_until(lambda: box.synced)
        assert turns >= 3
        box.close(drop=True)
        assert await waiting is None


async def test_a_consumer_of_several_listeners_is_woken_by_any() -> None:
    one, other = listener(), listener()
    waiter = asyncio.get_running_loop().create_future()
    for box in (one, other):
        box.wake(waiter)
    assert not waiter.done()

    other.put(additions(1))

    assert waiter.done()
    one.put(additions(1))  # nobody waits any more


async def test_a_waiter_is_set_at_once_if_an_event_is_pending() -> None:
    box = listener()
    box.put(additions(1))
    waiter = asyncio.get_running_loop().create_future()

    box.wake(waiter)

    assert waiter.done()


# -- too slow ---------------------------------------------------------------------------------


async def test_a_listener_with_overflow_error_is_closed_with_an_error_at_its_limit() -> None:
    gate = BackpressureGate()
    box = listener(2, gate, "error")
    box.put(additions(3))

    assert box.closed
    assert isinstance(box.failure, ListenerOverflow)
    assert box.failure.limit == 2
    assert "stream of pods was ended: it was too slow for a limit of 2" in str(box.failure)
    assert (await box.next(), box.mailbox.pending) == (None, 0)
    with pytest.raises(NotRunning) as caught:
        await box.wait_synced()
    assert caught.value.__cause__ is box.failure


async def test_a_second_relist_before_the_first_was_taken_is_an_overflow() -> None:
    box = listener(overflow="error")
    box.put_relist([additions(1)])
    assert box.failure is None
    box.put_relist([additions(1)])

    assert box.failure is not None
