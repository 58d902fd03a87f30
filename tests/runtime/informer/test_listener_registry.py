"""Handlers of an informer that runs: filters, names, drains, and what ends a factory."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import WeakSet

import pytest

from aioinformer import (
    Added,
    Deleted,
    Event,
    KubeObject,
    Problem,
    Registration,
    SharedInformer,
    SharedInformerFactory,
    Updated,
    changed,
    field,
    labelled,
)
from aioinformer.errors import HandlerTimeout, InformerError, ShutdownIncomplete, UsageError
from aioinformer.testing import ClusterSource
from aioinformer.testing.simulation import run
from tests.runtime.informers import (
    FAST_BACKOFF,
    cluster_with_pods,
    label_pod,
    pod_informer,
    running_in_background,
    running_informer,
)
from tests.runtime.scripted_source import (
    PODS,
    error_event,
    event_line,
    list_response,
    pod,
    scripted_lister_watcher,
    wait_until,
    watch_response,
    yield_to_loop,
)

# -- filters -----------------------------------------------------------------------------------

SHOWN = labelled("value=shown")


class View:
    """A handler's view of the objects, after checking the order of events, and the events."""

    def __init__(self) -> None:
        self.held: dict[str, KubeObject] = {}
        self.received: list[tuple[object, ...]] = []

    def __call__(self, event: Event) -> None:
        name = event.obj.name
        match event:
            case Added(obj, initial):
                assert name not in self.held
                self.held[name] = obj
                self.received.append((name, "added", initial))
            case Updated(old, new, resync):
                assert self.held[name] == old
                self.held[name] = new
                self.received.append((name, "updated", resync))
            case Deleted(_, reason):
                del self.held[name]
                self.received.append((name, "deleted", reason))


async def test_a_filtered_handler_sees_objects_come_and_go_as_they_pass() -> None:
    cluster, view = cluster_with_pods("a", "b"), View()
    label_pod(cluster, "a", "shown")
    async with running_informer(pod_informer(cluster)) as pods:
        registration = pods.add_handler(view, filter=SHOWN)
        await registration.wait_synced(30)
        for name, value in (("b", "other"), ("b", "shown"), ("a", "hidden"), ("a", "more-hidden")):
            label_pod(cluster, name, value)
        cluster.merge_patch("pods", "b", {"metadata": {"labels": {"more": "labels"}}})
        cluster.delete("pods", "a")
        cluster.delete("pods", "b")
        await wait_until(lambda: len(view.received) == 5)
        await yield_to_loop()

    assert view.received == [
        ("a", "added", True),
        ("b", "added", False),
        ("a", "deleted", "filtered"),
        ("b", "updated", False),
        ("b", "deleted", "deleted"),
    ]
    assert registration.statistics().delivered == 5


async def test_the_changes_of_a_relist_are_filtered_too() -> None:
    view = View()
    first = list_response(
        labelled_pod("a", 1, "shown"), labelled_pod("b", 2), labelled_pod("c", 3, "shown")
    )
    second = list_response(labelled_pod("a", 11), labelled_pod("b", 12, "shown"), version="20")
    source = scripted_lister_watcher(first, watch_response(error_event(410, "Expired")), second)
    informer = SharedInformer(source, backoff=FAST_BACKOFF)
    informer.add_handler(view, filter=SHOWN)

    async with running_informer(informer):
        await wait_until(lambda: len(view.received) == 5)
        await yield_to_loop()

    assert sorted(view.received[2:]) == [
        ("a", "deleted", "filtered"),
        ("b", "added", False),
        ("c", "deleted", "vanished"),
    ]


def labelled_pod(name: str, version: int, value: str = "hidden") -> str:
    return (
        f'{{"metadata":{{"name":"{name}","namespace":"web","uid":"uid-{name}",'
        f'"resourceVersion":"{version}","labels":{{"value":"{value}"}}}}}}'
    )


def test_a_resync_is_filtered_by_objects_and_passes_predicates_of_changes() -> None:
    seen: list[list[Event]] = [[], []]

    async def main() -> None:
        cluster = cluster_with_pods("a", "b")
        label_pod(cluster, "a", "shown")
        async with SharedInformerFactory(ClusterSource(cluster)) as informers:
            pods = informers.informer("pods")
            pods.add_handler(seen[0].append, filter=SHOWN, resync=60)
            pods.add_handler(seen[1].append, filter=changed("spec"), resync=60)
            await informers.wait_synced(30)
            await asyncio.sleep(100)

    run(main(), seed=0)

    resynced = [
        [event.obj.name for event in each if isinstance(event, Updated) and event.resync]
        for each in seen
    ]
    assert set(resynced[0]) == {"a"}
    assert set(resynced[1]) == {"a", "b"}


async def test_a_slow_filtered_handler_ends_with_the_objects_that_pass() -> None:
    cluster, view, may_go_on = cluster_with_pods("a", "b", "c"), View(), asyncio.Event()

    async def slow(event: Event) -> None:
        await may_go_on.wait()
        view(event)

    async with running_informer(pod_informer(cluster)) as pods:
        registration = pods.add_handler(slow, filter=SHOWN, limit=2)
        for number in range(30):
            label_pod(cluster, "abc"[number % 3], "shown" if number % 4 else "hidden")
            await yield_to_loop(3)
        may_go_on.set()
        await wait_until(lambda: registration.statistics().pending == 0)
        await yield_to_loop()
        expected = [obj.name for obj in pods.lister if SHOWN(obj)]

    assert sorted(view.held) == sorted(expected)
    assert registration.statistics().merged > 0


async def test_an_object_whose_filter_raises_is_reported_and_delivered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, view = cluster_with_pods("a"), View()

    def clumsy(obj: KubeObject) -> bool:
        return bool(obj["metadata"]["labels"]["value"] == "shown")

    async with running_informer(pod_informer(cluster)) as pods:
        registration = pods.add_handler(view, filter=clumsy, name="audit")
        await registration.wait_synced(30)
        label_pod(cluster, "a", "hidden")
        await wait_until(lambda: len(view.received) == 2)

    assert view.received == [("a", "added", True), ("a", "deleted", "filtered")]
    assert registration.statistics().errors == 2
    assert "the filter of audit of pods raised at <Pod" in caplog.text
    assert "which is taken to pass: KeyError: 'labels'" in caplog.text


async def test_a_filter_that_raises_at_every_object_is_logged_in_two_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, view, problems = cluster_with_pods(*"abcdefgh"), View(), list[Problem]()

    def clumsy(obj: KubeObject) -> bool:
        return bool(obj["metadata"]["labels"]["value"] == "shown")

    source = ClusterSource(cluster).lister_watcher(PODS)
    async with running_informer(SharedInformer(source, on_error=problems.append)) as pods:
        registration = pods.add_handler(view, filter=clumsy, name="audit")
        await registration.wait_synced(30)

    assert len(view.received) == registration.statistics().errors == len(problems) == 8
    records = [each for each in caplog.records if each.name == "aioinformer.handlers"]
    assert [each.exc_info is not None for each in records] == [True, False]
    assert "7 further failures with KeyError, the last of them: the filter of audit" in caplog.text


@pytest.mark.parametrize(("when", "version"), [("found", "1"), ("live", "12"), ("relist", "11")])
async def test_a_handler_that_its_own_filter_removes_receives_no_further_event(
    when: str, version: str
) -> None:
    view = View()
    first = list_response(labelled_pod("a", 1, "shown"), labelled_pod("b", 2, "shown"))
    second = list_response(
        labelled_pod("a", 11, "shown"), labelled_pod("b", 12, "shown"), version="20"
    )
    change = event_line("MODIFIED", labelled_pod("b", 12, "shown"))
    live = watch_response(change, change.replace(b'"12"', b'"13"'), never_ends=True)
    deleted = watch_response(error_event(410, "Expired"))
    pods = SharedInformer(
        scripted_lister_watcher(first, *([deleted, second] if when == "relist" else [live])),
        backoff=FAST_BACKOFF,
    )

    def removing(obj: KubeObject) -> bool:
        if obj.resource_version == version:
            registration.remove()
        return True

    registration = pods.add_handler(view, filter=removing)
    async with running_in_background(pods.run()):
        await wait_until(lambda: registration.closed)
        await yield_to_loop()

    found = [] if when == "found" else [("a", "added", True), ("b", "added", True)]
    assert view.received == found[: len(view.received)], "and nothing of what has come later"
    assert (registration.listener.mailbox.empty, registration.running) == (True, False)


async def test_a_handler_that_the_filter_of_another_removes_receives_no_further_event() -> None:
    cluster, view = cluster_with_pods("a"), View()

    def removing(obj: KubeObject) -> bool:
        if "value" in obj.labels:
            registration.remove()
        return True

    async with running_informer(pod_informer(cluster)) as pods:
        pods.add_handler(View(), filter=removing)
        registration = pods.add_handler(view)
        await registration.wait_synced(30)
        label_pod(cluster, "a", "shown")
        await wait_until(lambda: registration.closed)
        await yield_to_loop()

    assert view.received == [("a", "added", True)]


async def test_field_can_be_used_as_an_index_function() -> None:
    cluster = cluster_with_pods("a", "b")
    cluster.merge_patch("pods", "a", {"spec": {"nodeName": "node-1"}})
    source = ClusterSource(cluster)
    async with SharedInformerFactory(source, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods", indexers={"node": field("spec.nodeName")})
        assert informers.informer("pods", indexers={"node": field("spec.nodeName")}) is pods
        await informers.wait_synced(30)

        assert [obj.name for obj in pods.lister.by_index("node", "node-1")] == ["a"]
        assert pods.lister.index_values("node") == ["node-1"]


# -- arguments ---------------------------------------------------------------------------------


async def plain_async(event: Event) -> None: ...


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"limit": 0}, ValueError, "limit must be at least 1"),
        ({"overflow": "drop"}, ValueError, "overflow must be one of"),
        ({"concurrency": 0}, ValueError, "concurrency must be at least 1"),
        ({"concurrency": 2.5}, TypeError, "concurrency must be a whole number, not 2.5"),
        ({"limit": 2.5}, TypeError, "limit must be a whole number, not 2.5"),
        ({"limit": float("nan")}, TypeError, "limit must be a whole number, not nan"),
        ({"resync": float("nan")}, ValueError, "resync must be seconds, or 0 for never, not nan"),
        ({"timeout": float("nan")}, ValueError, "timeout must be seconds"),
        ({"timeout": -1}, ValueError, "timeout must be seconds"),
        ({"timeout": "5"}, TypeError, "timeout must be seconds, or None for no limit, not '5'"),
        ({"resync": "60"}, TypeError, "resync must be seconds, or 0 for never, not '60'"),
        ({"concurency": 3}, TypeError, r"add_handler\(\) has no .*'concurency'; .*'concurrency'"),
        ({"filter": "app=shop"}, TypeError, "a filter is a predicate or a function"),
        ({"filter": plain_async}, TypeError, "the filter plain_async is async"),
        ({"filter": partial(plain_async)}, TypeError, "the filter functools.partial.* is async"),
        ({"run_in_thread": True}, TypeError, "plain_async of pods is async"),
    ],
)
def test_a_handler_with_invalid_options_is_rejected_and_not_registered(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    informer = pod_informer(cluster_with_pods())

    with pytest.raises(error, match=message):
        informer.add_handler(plain_async, **arguments)

    assert informer.registrations == ()


def test_a_handler_may_be_given_a_name() -> None:
    informer = pod_informer(cluster_with_pods())

    assert informer.add_handler(print, name="audit").name == "audit of pods"
    assert informer.add_handler(print).name == "print of pods"


# -- what ends a factory -----------------------------------------------------------------------


async def _within(informers: SharedInformerFactory, body: Callable[[], Awaitable[None]]) -> None:
    async with informers:
        await body()


async def _for_ever() -> None:
    await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_with_fail_fast_the_factory_raises_the_exception_of_the_handler(
    concurrency: int,
) -> None:
    mine = ValueError("mine")

    async def clumsy(event: Event) -> None:
        raise mine

    informers = SharedInformerFactory(ClusterSource(cluster_with_pods("a")))
    informers.informer("pods").add_handler(clumsy, fail_fast=True, concurrency=concurrency)

    with pytest.raises(ValueError, match="mine") as caught:
        await _within(informers, _for_ever)

    assert caught.value is mine


def test_with_fail_fast_a_time_out_ends_the_factory() -> None:
    async def main() -> None:
        async def slow(event: Event) -> None:
            await asyncio.sleep(99)

        informers = SharedInformerFactory(ClusterSource(cluster_with_pods("a")))
        informers.informer("pods").add_handler(slow, fail_fast=True, timeout=5)
        await _within(informers, _for_ever)

    with pytest.raises(HandlerTimeout, match="slow of pods took longer than 5 s"):
        run(main(), seed=0)


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_fatal_error_reaches_the_body_although_another_handler_never_returns(
    in_thread: bool, caplog: pytest.LogCaptureFixture
) -> None:
    finish, release = asyncio.Event(), threading.Event()
    mine, states = ValueError("mine"), list[str]()

    async def deaf(event: Event) -> None:
        while not finish.is_set():
            with suppress(asyncio.CancelledError):
                await finish.wait()

    def blocked(event: Event) -> None:
        release.wait(10)

    async def clumsy(event: Event) -> None:
        await asyncio.sleep(0.001)
        raise mine

    informers = SharedInformerFactory(ClusterSource(cluster_with_pods("a")), shutdown_timeout=0.01)
    pods = informers.informer("pods")
    stuck = pods.add_handler(blocked if in_thread else deaf, run_in_thread=in_thread)
    pods.add_handler(clumsy, fail_fast=True)

    async def body() -> None:
        try:
            await _for_ever()
        finally:
            states.append(pods.health.state)

    try:
        with pytest.raises(ValueError, match="mine") as caught:
            await _within(informers, body)

        assert caught.value is mine
        assert states == ["failed"]
        assert pods.health.error is mine
        message = [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]
        left = f"still running 0.01 s after being asked to end: {stuck.name} (at Added of default/a"
        assert any(each.startswith(left) for each in message)
    finally:  # or nothing would ever end
        finish.set()
        await wait_until(lambda: not stuck.running)  # of a thread, who waits has given up
        release.set()
        await yield_to_loop()


async def test_a_fatal_call_ends_the_factory_although_another_call_never_returns() -> None:
    finish, mine = asyncio.Event(), ValueError("mine")

    async def handler(event: Event) -> None:
        if event.obj.name == "b":
            raise mine
        while not finish.is_set():
            with suppress(asyncio.CancelledError):
                await finish.wait()

    informers = SharedInformerFactory(
        ClusterSource(cluster_with_pods("a", "b")), shutdown_timeout=0.01
    )
    it = informers.informer("pods").add_handler(handler, fail_fast=True, concurrency=2)

    with pytest.raises(ValueError, match="mine"):
        await _within(informers, _for_ever)

    finish.set()
    await wait_until(lambda: not it.running)
    await yield_to_loop()


def test_run_drains_and_waits_no_longer_than_the_shutdown_timeout(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen = list[Event]()

    async def slow(event: Event) -> None:
        await asyncio.sleep(1)
        seen.append(event)

    async def main() -> None:
        finish = asyncio.Event()

        async def deaf(event: Event) -> None:
            while not finish.is_set():
                with suppress(asyncio.CancelledError):
                    await finish.wait()

        informers = SharedInformerFactory(
            ClusterSource(cluster_with_pods("a", "b", "c")), shutdown_timeout=5
        )
        pods = informers.informer("pods")
        stuck = pods.add_handler(deaf, name="stuck")
        pods.add_handler(slow, drain=True)
        running = asyncio.create_task(informers.run())
        await pods.wait_synced(30)
        ended_at = asyncio.get_running_loop().time() + 5
        running.cancel()
        await asyncio.wait({running})

        assert running.cancelled()
        assert asyncio.get_running_loop().time() == pytest.approx(ended_at)
        finish.set()
        await wait_until(lambda: not stuck.running)
        await yield_to_loop()

    run(main(), seed=0)
    assert len(seen) == 3
    # The pending events took 3 s of the 5 s.
    assert "still running 2 s after being asked to end: stuck" in caplog.text


async def test_a_thread_that_returns_after_the_loop_is_closed_causes_no_error() -> None:
    release, threads = threading.Event(), list[threading.Thread]()

    def blocked(event: Event) -> None:
        threads.append(threading.current_thread())
        release.wait(10)

    async def main() -> None:
        async with SharedInformerFactory(
            ClusterSource(cluster_with_pods("a")), shutdown_timeout=0.01
        ) as informers:
            informers.informer("pods").add_handler(blocked, run_in_thread=True)
            await wait_until(lambda: bool(threads))

    def program() -> None:
        with pytest.raises(ShutdownIncomplete, match="blocked of pods"):
            asyncio.run(main())

    await asyncio.to_thread(program)
    release.set()
    await asyncio.to_thread(threads[0].join, 5)
    assert not threads[0].is_alive()


# -- draining ----------------------------------------------------------------------------------


def leave(*, drain: bool, seconds: float = 1.0) -> tuple[list[str], float]:
    """Return what a slow handler did when its factory was left during its first call, and when."""
    done: list[str] = []

    async def slow(event: Event) -> None:
        await asyncio.sleep(seconds)
        done.append(event.obj.name)

    async def main() -> float:
        informers = SharedInformerFactory(
            ClusterSource(cluster_with_pods("a", "b", "c")), shutdown_timeout=10
        )
        informers.informer("pods").add_handler(slow, drain=drain)
        async with informers:
            await informers.wait_synced(30)
            await asyncio.sleep(seconds / 2)
            left_at = asyncio.get_running_loop().time()
        return asyncio.get_running_loop().time() - left_at

    took = run(main(), seed=0)
    return done, took


def test_the_end_of_a_factory_drops_pending_events() -> None:
    assert leave(drain=False) == ([], 0.0)


def test_the_end_of_a_factory_waits_for_a_handler_that_drains() -> None:
    done, took = leave(drain=True)

    assert sorted(done) == ["a", "b", "c"]
    assert took == pytest.approx(2.5)


def test_a_handler_that_does_not_drain_in_time_is_named_and_cancelled() -> None:
    with pytest.raises(ShutdownIncomplete, match=r"running 10 s .*\.slow of pods") as caught:
        leave(drain=True, seconds=8)

    assert len(caught.value.left) == 1


def test_the_end_of_a_use_waits_for_handlers_that_drain() -> None:
    done: list[str] = []

    async def slow(event: Event) -> None:
        await asyncio.sleep(1)
        done.append(event.obj.name)

    async def main() -> None:
        source = ClusterSource(cluster_with_pods("a", "b"))
        async with SharedInformerFactory(source) as informers, informers.use("pods") as pods:
            pods.add_handler(slow, drain=True)
            await pods.wait_synced(30)
            await asyncio.sleep(0.5)

    run(main(), seed=0)

    assert sorted(done) == ["a", "b"]


def test_a_cancellation_while_leaving_ends_the_draining() -> None:
    done: list[Event] = []

    async def slow(event: Event) -> None:
        await asyncio.sleep(1)
        done.append(event)

    async def main() -> float:
        informers = SharedInformerFactory(ClusterSource(cluster_with_pods("a", "b", "c")))
        informers.informer("pods").add_handler(slow, drain=True)
        body = asyncio.create_task(_within(informers, _for_ever))
        await asyncio.sleep(0.5)
        body.cancel()
        await asyncio.sleep(1)
        assert not body.done()
        body.cancel()
        await asyncio.wait({body})
        assert body.cancelled()
        return asyncio.get_running_loop().time()

    assert run(main(), seed=0) == 1.5
    assert len(done) == 1


def test_a_factory_that_fails_drops_pending_events() -> None:
    done: list[Event] = []

    async def slow(event: Event) -> None:
        await asyncio.sleep(1)
        done.append(event)

    def clumsy(event: Event) -> None:
        raise ValueError("mine")

    async def main() -> None:
        informers = SharedInformerFactory(ClusterSource(cluster_with_pods("a", "b")))
        pods = informers.informer("pods")
        pods.add_handler(slow, drain=True)
        pods.add_handler(clumsy, fail_fast=True)
        await _within(informers, _for_ever)

    with pytest.raises(ValueError, match="mine"):
        run(main(), seed=0)

    assert not done


# -- waiting for oneself -----------------------------------------------------------------------


@pytest.mark.parametrize("overflow", ["block", "coalesce"])
async def test_a_handler_that_blocks_its_informer_can_not_wait_for_it(overflow: Any) -> None:
    informer, errors = SharedInformer(scripted_lister_watcher()), list[InformerError]()

    async def waits(event: Event) -> None:
        try:
            await asyncio.create_task(informer.wait_synced(timeout=0.001))
        except InformerError as error:
            errors.append(error)

    registration = informer.add_handler(waits, overflow=overflow)
    task = asyncio.create_task(informer.run())
    registration.listener.put([Added(pod("a", 1))])
    await wait_until(lambda: bool(errors))
    task.cancel()
    await asyncio.wait({task})

    assert isinstance(errors[0], UsageError) is (overflow == "block")
    if overflow == "block":
        assert "inside a call, it can't wait for its own informer" in str(errors[0])


async def test_a_blocking_handler_may_wait_for_an_informer_that_is_synced() -> None:
    asked: list[bool] = []
    pods = pod_informer(cluster_with_pods("a"))

    async def asks(event: Event) -> None:
        await pods.wait_synced(timeout=1)
        asked.append(pods.synced)

    pods.add_handler(asks, overflow="block")
    async with running_informer(pods):
        await wait_until(lambda: asked == [True])


# -- adding and removing -----------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_handlers_that_register_their_successors_are_freed(concurrency: int) -> None:
    """Each is registered in the context of a call of the one before."""
    pods, alive, count = pod_informer(cluster_with_pods("a")), WeakSet[Registration](), 0
    left: list[int] = []

    async def next_one(event: Event) -> None:
        nonlocal count
        count += 1
        for registration in pods.registrations:
            registration.remove()
        if count < 100:
            alive.add(pods.add_handler(next_one, concurrency=concurrency))
        await asyncio.sleep(0)
        if count == 90:
            gc.collect()
            left.append(len(alive))

    pods.add_handler(next_one)
    async with running_informer(pods):
        await wait_until(lambda: count == 100)
        await yield_to_loop()
        assert pods.unfinished == ()

    assert max(left) <= 10


@pytest.mark.client_go(62)
async def test_handlers_may_be_added_and_removed_from_inside_a_handler() -> None:
    cluster, received = cluster_with_pods("a"), list[Event]()
    pods, added = pod_informer(cluster), list[Registration]()

    def first(event: Event) -> None:
        registration.remove()
        added.append(pods.add_handler(received.append))

    registration = pods.add_handler(first)
    async with running_informer(pods):
        await wait_until(lambda: len(received) == 1)
        label_pod(cluster, "a", "1")
        await wait_until(lambda: len(received) == 2)
        assert pods.registrations == tuple(added)
        assert pods.unfinished == tuple(added)
        added[0].remove()
        await wait_until(lambda: pods.unfinished == ())
        label_pod(cluster, "a", "2")
        await yield_to_loop()

    assert len(received) == 2


@pytest.mark.parametrize("seconds", [1.0, 60.0])
def test_a_handler_that_keeps_the_watch_from_being_read_is_warned_of(
    seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    async def slow(event: Event) -> None:
        await asyncio.sleep(seconds)

    async def main() -> tuple[str, ...]:
        cluster = cluster_with_pods("a", "b", "c", "d")
        async with SharedInformerFactory(ClusterSource(cluster)) as informers:
            pods = informers.informer("pods")
            await informers.wait_synced(30)
            pods.add_handler(slow, overflow="block", limit=1)
            for name in "abcd":
                label_pod(cluster, name, "1")
            await asyncio.sleep(2)
            blocked_by = pods.health.blocked_by
            await asyncio.sleep(13)
            return blocked_by

    blocked_by = run(main(), seed=0)

    assert len(blocked_by) == 1
    warning = (
        "pods: the watch was not read for 10 s, because of overflow='block' and the full mailbox "
        f"of {blocked_by[0]}"
    )
    logged = [each.getMessage() for each in caplog.records if each.name == "aioinformer.pump"]
    assert logged == ([warning] if seconds == 60 else [])


@pytest.mark.client_go(68)
async def test_a_handler_that_is_removed_before_the_start_is_not_kept() -> None:
    informer = pod_informer(cluster_with_pods("a"))
    removed = WeakSet([informer.add_handler(lambda _: None)])
    while_held = list(removed)
    while_held.pop().remove()
    async with running_informer(informer):
        gc.collect()
        assert not removed
