"""One reflector, one cache, many listeners."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, cast

import pytest

from aioinformer import Added, Deleted, Event, Handler, KubeObject, SharedInformer, Updated, field
from aioinformer.errors import (
    Forbidden,
    IndexFailed,
    NotRunning,
    NotSynced,
    SyncTimeout,
    UsageError,
)
from aioinformer.testing import Cluster
from tests.runtime.informers import (
    FAST_BACKOFF,
    SLOW_BACKOFF,
    cluster_with_pods,
    label_pod,
    names,
    pod_informer,
    running_in_background,
    running_informer,
)
from tests.runtime.scripted_source import (
    PODS,
    ErrorResponse,
    added,
    body,
    deleted,
    error_response,
    list_response,
    scripted_lister_watcher,
    wait_until,
    watch_response,
    yield_to_loop,
)


def in_short(events: list[Event]) -> list[str]:
    return [f"{type(event).__name__} {event.obj.name}" for event in events]


def create(cluster: Cluster, *pods: str) -> None:
    for name in pods:
        cluster.create("pods", {"metadata": {"name": name}})


# -- the cache --------------------------------------------------------------------------------


async def test_the_cache_follows_the_server() -> None:
    cluster = cluster_with_pods("a", "b")
    async with running_informer(pod_informer(cluster)) as informer:
        assert names(informer.lister.list()) == ["a", "b"]
        create(cluster, "c")
        cluster.delete("pods", "a")
        await wait_until(lambda: names(informer.lister.list()) == ["b", "c"])
        assert informer.health.resource_version == str(cluster.resource_version)


async def test_a_read_before_the_initial_list_raises_not_synced() -> None:
    informer = pod_informer(cluster_with_pods("a"))

    with pytest.raises(NotSynced):
        informer.lister.list()
    assert informer.lister.unsynced.list() == []


async def test_later_failures_never_empty_the_cache() -> None:
    source = scripted_lister_watcher(
        list_response(body("a", 3)),
        error_response(500, "InternalError"),
        error_response(410, "Expired"),
        error_response(403, "Forbidden", "pods is forbidden"),
        error_response(403, "Forbidden", "pods is forbidden"),
    )
    informer = SharedInformer(source, backoff=FAST_BACKOFF)

    async with running_informer(informer):
        await source.wait_for_request(5)
        assert names(informer.lister.list()) == ["a"]
        assert isinstance(informer.health.error, Forbidden)
        assert informer.health.error.status.message == "pods is forbidden"


@pytest.mark.client_go(12, 30, 54)
async def test_a_relist_replaces_the_state_and_delivers_the_difference() -> None:
    source = scripted_lister_watcher(
        list_response(body("a", 3), body("b", 4), version="10"),
        error_response(410, "Expired"),
        list_response(body("b", 4), body("c", 25), version="30"),
    )
    received: list[Event] = []
    informer = SharedInformer(source, backoff=FAST_BACKOFF)
    informer.add_handler(received.append)

    async with running_in_background(informer.run()):
        await wait_until(lambda: len(received) == 4)

    assert in_short(received) == ["Added a", "Added b", "Deleted a", "Added c"]
    assert isinstance(received[2], Deleted)
    assert received[2].reason == "vanished"


@pytest.mark.client_go(49)
async def test_indexes_find_objects() -> None:
    informer = pod_informer(cluster_with_pods("a", "b"))
    await informer.add_index("name", lambda obj: obj.name)

    async with running_informer(informer):
        assert names(informer.lister.by_index("name", "a")) == ["a"]


async def test_a_change_that_an_index_function_rejects_keeps_the_previous_version() -> None:
    cluster = cluster_with_pods("a")

    def picky(obj: KubeObject) -> str:
        if obj.labels.get("value") == "bad":
            raise ValueError("bad")
        return obj.labels.get("value", "")

    informer = pod_informer(cluster)
    await informer.add_index("value", picky)
    async with running_informer(informer):
        label_pod(cluster, "a", "bad")
        await wait_until(lambda: informer.health.rejected == ("default/a",))
        assert informer.lister.by_index("value", "") == informer.lister.list()
        assert informer.lister.list()[0].labels == {}

        label_pod(cluster, "a", "good")
        await wait_until(lambda: informer.health.rejected == ())
        assert names(informer.lister.by_index("value", "good")) == ["a"]


def labels_of(obj: KubeObject) -> Any:
    return obj.labels


def numbers_of(_: KubeObject) -> Any:
    return [80]


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (numbers_of, "list with int in it"),
        (labels_of, "FrozenMapping"),
        (field("spec.priority"), "int"),
        (field("spec.containers"), "FrozenSequence with FrozenMapping in it"),
    ],
    ids=["list", "mapping", "field of a number", "field of a list of objects"],
)
async def test_index_values_that_are_no_text_are_refused_wherever_the_function_is_called(
    function: Any, shown: str
) -> None:
    cluster, text = Cluster(), f"TypeError: it returned {shown}; .* return str"
    spec = {"priority": 80, "containers": [{"name": "a"}]}
    cluster.create("pods", {"metadata": {"name": "a"}, "spec": spec})
    async with running_informer(pod_informer(cluster)) as later:
        with pytest.raises(IndexFailed, match=f"'odd' was not added: .*: {text}"):
            await later.add_index("odd", function)
        assert names(later.lister.list()) == ["a"]

        informer = pod_informer(cluster)
        await informer.add_index("odd", function)
        async with running_informer(informer):
            assert informer.health.rejected == ("default/a",)
            with pytest.raises(IndexFailed, match=f"'odd' raised at pods default/a: {text}"):
                informer.lister.index("odd", later.lister["default/a"])


async def test_the_cache_may_be_read_from_threads_while_it_changes() -> None:
    cluster = cluster_with_pods("p-0")
    informer = pod_informer(cluster)
    await informer.add_index("all", lambda obj: ["all", obj.labels.get("value", "none")])
    stop, failures, reads = threading.Event(), list[Exception](), list[int]()

    def read() -> None:
        lister = informer.lister
        try:
            while not stop.is_set():
                assert lister.get("default/p-0") is not None
                assert "p-0" in names(lister.list())
                assert "p-0" in names(lister.by_index("all", "all"))
                reads.append(len(lister.index_values("all")) + len(lister.keys()))
                time.sleep(0.0002)  # or the loop hardly gets the interpreter's lock
        except Exception as error:  # noqa: BLE001 - it is for the test's own thread to raise
            failures.append(error)

    async with running_informer(informer):
        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for round_ in range(100):
            create(cluster, f"q-{round_}")
            label_pod(cluster, "p-0", str(round_))
            await yield_to_loop(3)
            cluster.delete("pods", f"q-{round_}")
        enough = len(reads) + 10
        await wait_until(lambda: len(reads) > enough or bool(failures))
        stop.set()
        for thread in threads:
            await asyncio.to_thread(thread.join)

    assert failures == []


# -- handlers ---------------------------------------------------------------------------------


@pytest.mark.client_go(51)
async def test_a_handler_that_was_added_before_the_start_receives_every_event() -> None:
    cluster, received = cluster_with_pods("a"), list[Event]()
    informer = pod_informer(cluster)
    registration = informer.add_handler(received.append)

    async with running_informer(informer):
        await registration.wait_synced(timeout=30)
        create(cluster, "b")
        await wait_until(lambda: len(received) == 2)

    assert received[0] == Added(received[0].obj, initial=True)
    assert in_short(received) == ["Added a", "Added b"]


@pytest.mark.client_go(67)
async def test_a_handler_that_joins_later_receives_the_cached_state_first() -> None:
    cluster, received = cluster_with_pods("a", "b"), list[Event]()
    async with running_informer(pod_informer(cluster)) as informer:
        registration = informer.add_handler(received.append)
        create(cluster, "c")
        await registration.wait_synced(timeout=30)
        await wait_until(lambda: len(received) == 3)

    assert sorted(in_short(received[:2])) == ["Added a", "Added b"]
    assert all(isinstance(event, Added) and event.initial for event in received[:2])
    assert received[2] == Added(received[2].obj)


async def test_a_handler_may_add_another() -> None:
    cluster, received = cluster_with_pods("a"), list[Event]()
    informer = pod_informer(cluster)

    async def first(event: Event) -> None:
        if isinstance(event, Added):
            informer.add_handler(received.append)

    informer.add_handler(first)
    async with running_informer(informer):
        await wait_until(lambda: len(received) == 1)
        assert len(informer.registrations) == 2

    assert in_short(received) == ["Added a"]


async def test_a_handler_may_remove_itself_and_another() -> None:
    cluster, received = cluster_with_pods("a"), list[Event]()
    informer = pod_informer(cluster)

    async def first(event: Event) -> None:
        mine.remove()
        other.remove()

    mine = informer.add_handler(first)
    other = informer.add_handler(received.append)
    async with running_informer(informer):
        await wait_until(lambda: informer.registrations == ())
        create(cluster, "b")
        await wait_until(lambda: len(informer.lister) == 2)
        await yield_to_loop()

    assert len(received) <= 1, "removed before the second event"


async def test_calls_come_in_order_and_one_at_a_time() -> None:
    cluster, log = cluster_with_pods("a"), list[str]()
    informer = pod_informer(cluster)

    async def slow(event: Event) -> None:
        log.append("begin")
        await yield_to_loop(3)
        log.append(event.obj.labels.get("value", "none"))

    informer.add_handler(slow)
    async with running_informer(informer):
        for value in "123":
            label_pod(cluster, "a", value)
        await wait_until(lambda: len(log) == 8)

    assert log == ["begin", "none", "begin", "1", "begin", "2", "begin", "3"]


async def test_decorated_functions_receive_only_their_kind_of_event() -> None:
    cluster, received = cluster_with_pods("a"), list[str]()
    informer = pod_informer(cluster)

    @informer.on_add
    async def appeared(obj: KubeObject, *, initial: bool) -> None:
        received.append(f"add {obj.name} initial={initial}")

    @informer.on_update
    def moved(old: KubeObject, new: KubeObject, *, resync: bool) -> None:
        received.append(f"update {old.labels.get('value')} {new.labels.get('value')} {resync}")

    @informer.on_delete
    async def went(obj: KubeObject, *, reason: str) -> None:
        received.append(f"delete {obj.name} {reason}")

    async with running_informer(informer):
        label_pod(cluster, "a", "1")
        await wait_until(lambda: len(received) == 2)
        cluster.delete("pods", "a")
        await wait_until(lambda: len(received) == 3)

    assert received == ["add a initial=True", "update None 1 False", "delete a deleted"]
    assert [callable(each) for each in (appeared, moved, went)] == [True] * 3


async def test_an_object_that_is_not_a_handler_is_rejected_and_not_registered() -> None:
    informer = pod_informer(cluster_with_pods())

    with pytest.raises(TypeError):
        informer.add_handler(cast("Handler", object()))

    assert informer.registrations == ()


async def test_a_handler_that_raises_does_not_affect_other_handlers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, received = cluster_with_pods("a"), list[Event]()
    informer = pod_informer(cluster)

    def clumsy(event: Event) -> None:
        raise ValueError("clumsy")

    registration = informer.add_handler(clumsy)
    informer.add_handler(received.append)
    async with running_informer(informer):
        label_pod(cluster, "a", "1")
        await wait_until(lambda: len(received) == 2 and registration.statistics().errors == 2)
        assert informer.health.state == "watching"

    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 2
    assert "clumsy of pods raised at Added of <Pod default/a" in errors[0].getMessage()


REQUEST = ContextVar("REQUEST", default="none")


async def test_a_handler_sees_the_context_in_which_it_was_added() -> None:
    seen: list[str] = []
    informer = pod_informer(cluster_with_pods("a"))

    token = REQUEST.set("early")
    informer.add_handler(lambda _: seen.append(REQUEST.get()))
    REQUEST.reset(token)
    async with running_informer(informer):
        token = REQUEST.set("late")
        informer.add_handler(lambda _: seen.append(REQUEST.get()))
        REQUEST.reset(token)
        await wait_until(lambda: len(seen) == 2)

    assert seen == ["early", "late"]


# -- a handler that doesn't keep up -----------------------------------------------------------


async def test_a_blocking_handler_stops_the_cache_at_its_limit_until_it_returns() -> None:
    cluster, free = cluster_with_pods(), asyncio.Event()
    received, brisk = list[Event](), list[Event]()
    informer = pod_informer(cluster)

    async def stuck(event: Event) -> None:
        received.append(event)
        await free.wait()

    informer.add_handler(stuck, limit=2, overflow="block")
    informer.add_handler(brisk.append)
    async with running_informer(informer):
        create(cluster, "a")
        await wait_until(lambda: len(received) == 1)
        create(cluster, "b", "c", "d", "e")
        await wait_until(lambda: bool(informer.health.blocked_by))
        await yield_to_loop()

        (blocker,) = informer.health.blocked_by
        assert blocker.endswith("stuck of pods")
        assert blocker in str(informer.health)
        assert names(informer.lister.list()) == ["a", "b", "c"]
        assert in_short(brisk) == ["Added a", "Added b", "Added c"]

        free.set()
        await wait_until(lambda: len(received) == len(brisk) == 5)
        assert informer.health.blocked_by == ()
        assert len(informer.lister) == 5


@pytest.mark.client_go(70)
async def test_the_cache_continues_after_the_removal_of_a_blocking_handler() -> None:
    cluster = cluster_with_pods()
    informer = pod_informer(cluster)

    async def stuck(event: Event) -> None:
        await asyncio.get_running_loop().create_future()

    registration = informer.add_handler(stuck, limit=1, overflow="block")
    async with running_informer(informer):
        create(cluster, "a", "b", "c")
        await wait_until(lambda: bool(informer.health.blocked_by))

        registration.remove()

        await wait_until(lambda: len(informer.lister) == 3)
        assert informer.health.blocked_by == ()


async def test_a_limit_below_one_is_rejected() -> None:
    informer = pod_informer(cluster_with_pods())

    with pytest.raises(ValueError, match="limit must be at least 1"):
        informer.add_handler(print, limit=0)


# -- resync -----------------------------------------------------------------------------------


async def test_a_resync_delivers_the_cached_state_again_without_a_request() -> None:
    source = scripted_lister_watcher(list_response(body("a", 3)), watch_response(never_ends=True))
    informer = SharedInformer(source, resync=0.002, backoff=SLOW_BACKOFF)
    received: list[Event] = []
    informer.add_handler(received.append)

    async with running_informer(informer):
        await wait_until(lambda: len(received) >= 3)

    obj = received[0].obj
    assert received[1] == received[2] == Updated(obj, obj, resync=True)
    assert len(source.requests) == 2


def test_a_resync_period_is_not_negative() -> None:
    with pytest.raises(ValueError, match="resync must be seconds"):
        SharedInformer(scripted_lister_watcher(), resync=-1)


# -- waiting for the first state --------------------------------------------------------------


@pytest.mark.client_go(125)
async def test_a_sync_that_takes_too_long_names_the_informer_and_the_cause() -> None:
    source = scripted_lister_watcher(
        error_response(403, "Forbidden", "pods is forbidden: User x cannot list")
    )
    informer = SharedInformer(source, name="pods of x", backoff=SLOW_BACKOFF)

    async with running_in_background(informer.run()):
        await wait_until(lambda: informer.health.state == "waiting")
        with pytest.raises(SyncTimeout) as caught:
            await informer.wait_synced(timeout=0.001)

    assert list(caught.value.unsynced) == ["pods of x"]
    assert "403 Forbidden: pods is forbidden: User x cannot list" in str(caught.value)
    # What is left of a minute.
    assert re.search(r"next attempt in [1-6]\d\.\d s", str(caught.value))


async def test_synced_stays_true_whatever_happens_later() -> None:
    source = scripted_lister_watcher(list_response(), error_response(500, "InternalError"))
    informer = SharedInformer(source, backoff=SLOW_BACKOFF)

    async with running_informer(informer):
        await wait_until(lambda: informer.health.state == "waiting")
        assert informer.synced
        await informer.wait_synced(timeout=0)
    assert informer.synced


async def test_wait_synced_raises_not_running_when_the_informer_ends() -> None:
    informer = SharedInformer(scripted_lister_watcher())

    async with running_in_background(informer.run()):
        waiting = asyncio.create_task(informer.wait_synced())
        await yield_to_loop()

    with pytest.raises(NotRunning, match="the informer of pods ended before it was synced"):
        await waiting


# -- running and ending -----------------------------------------------------------------------


@pytest.mark.client_go(63)
async def test_an_informer_can_be_started_only_once() -> None:
    informer = pod_informer(cluster_with_pods())
    async with running_informer(informer):
        with pytest.raises(UsageError, match="was started before"):
            await informer.run()

    with pytest.raises(UsageError, match="was started before"):
        await informer.run()


@pytest.mark.client_go(64)
async def test_an_informer_that_has_ended_takes_no_listeners() -> None:
    informer = pod_informer(cluster_with_pods("a"))
    async with running_informer(informer):
        pass

    assert informer.health.state == "stopped"
    assert names(informer.lister.list()) == ["a"], "it can still be read"
    with pytest.raises(NotRunning, match="the informer of pods has ended"):
        informer.add_handler(print)


async def test_an_informer_is_not_used_from_a_thread() -> None:
    async with running_informer(pod_informer(cluster_with_pods())) as informer:
        with pytest.raises(UsageError, match="in the event loop, not from a thread"):
            await asyncio.to_thread(informer.add_handler, print)
        with pytest.raises(UsageError, match="runs in another event loop"):
            await asyncio.to_thread(_add_handler_in_another_loop, informer)

        assert informer.registrations == ()


def _add_handler_in_another_loop(informer: SharedInformer) -> None:
    async def add() -> None:
        informer.add_handler(print)

    asyncio.run(add())


async def test_the_end_of_an_informer_closes_its_response() -> None:
    source = scripted_lister_watcher(
        list_response(), watch_response(added("a", 11), never_ends=True)
    )

    async with running_informer(SharedInformer(source)):
        await source.wait_for_request(2)
        assert source.open_responses == 1

    assert source.open_responses == 0


async def test_a_bug_in_a_source_fails_the_informer_and_is_raised_unchanged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bug = RuntimeError("a bug")
    informer = SharedInformer(scripted_lister_watcher(list_response(), ErrorResponse(bug)))
    registration = informer.add_handler(print)
    async with informer.events() as events:
        with pytest.raises(RuntimeError, match="a bug") as caught:
            await informer.run()
        assert [event async for event in events] == []

    assert caught.value is bug
    assert informer.health.state == "failed"
    assert repr(informer.health.error) == repr(bug)
    assert not registration.running
    critical = [record for record in caplog.records if record.levelno == logging.CRITICAL]
    assert [record.getMessage() for record in critical] == ["the informer of pods failed"]


@pytest.mark.client_go(125)
async def test_wait_synced_raises_not_running_when_the_informer_fails() -> None:
    informer = SharedInformer(scripted_lister_watcher(ErrorResponse(RuntimeError("a bug"))))
    waiting = asyncio.create_task(informer.wait_synced())

    with suppress(RuntimeError):
        await informer.run()

    with pytest.raises(NotRunning):
        await waiting


@pytest.mark.client_go(63)
async def test_the_health_and_the_repr_of_an_informer_show_its_state() -> None:
    informer = pod_informer(cluster_with_pods("a"))
    assert repr(informer) == "<SharedInformer pods new synced=False objects=0 listeners=0>"
    assert (informer.health.state, informer.health.synced) == ("new", False)

    async with running_informer(informer):
        await wait_until(lambda: informer.health.state == "watching")
        health = informer.health
        assert (health.objects, health.synced, health.error) == (1, True, None)
        assert repr(informer) == "<SharedInformer pods watching synced=True objects=1 listeners=0>"
    assert repr(informer) == "<SharedInformer pods stopped synced=True objects=1 listeners=0>"


def test_an_informer_is_named_after_its_resource_unless_a_name_is_given() -> None:
    assert SharedInformer(scripted_lister_watcher()).name == "pods"
    assert SharedInformer(scripted_lister_watcher(), name="mine").name == "mine"
    assert SharedInformer(scripted_lister_watcher()).resource == PODS


async def test_a_part_of_an_informer_that_cancels_itself_is_a_reported_failure() -> None:
    informer = SharedInformer(scripted_lister_watcher(ErrorResponse(asyncio.CancelledError())))

    with pytest.raises(RuntimeError, match="reflector of pods was cancelled, but not by"):
        await informer.run()

    assert informer.health.state == "failed"
    assert "reflector of pods" in str(informer.health.error)


async def test_a_handler_that_cancels_its_own_task_is_a_failed_handler(
    caplog: pytest.LogCaptureFixture,
) -> None:
    informer = pod_informer(cluster_with_pods("a", "b"))
    reported: list[str] = []

    async def suicidal(event: Event) -> None:
        reported.append(event.obj.name)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    registration = informer.add_handler(suicidal)
    async with running_informer(informer):
        await registration.wait_synced(30)
        assert sorted(reported) == ["a", "b"]
        assert registration.statistics().errors == 2
        assert informer.health.state == "watching"
    assert "suicidal" in caplog.text


async def test_a_listener_can_not_join_an_informer_that_is_ending() -> None:
    informer = pod_informer(cluster_with_pods("a"))
    refused: list[NotRunning] = []

    async def stubborn(_event: Event) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            with pytest.raises(NotRunning) as caught:
                informer.add_handler(stubborn)
            refused.append(caught.value)

    informer.add_handler(stubborn)
    async with running_informer(informer):
        await yield_to_loop(10)
    assert len(refused) == 1


async def test_an_object_that_is_deleted_during_staging_is_not_cached_afterwards() -> None:
    """Staging takes many turns of the loop; the watch goes on meanwhile."""
    many = [body(f"web-{number}", 5) for number in range(20_000)]
    informer = SharedInformer(
        scripted_lister_watcher(
            list_response(*many, version="5"), watch_response(deleted("web-0", 6), never_ends=True)
        )
    )

    async with running_informer(informer):
        await wait_until(lambda: informer.health.resource_version == "6")

        assert "web/web-0" not in informer.lister
        assert len(informer.lister) == 19_999


async def test_the_sync_timeout_of_a_registration_contains_the_error_of_the_informer() -> None:
    informer = SharedInformer(
        scripted_lister_watcher(error_response(403, "Forbidden", "not you")), backoff=SLOW_BACKOFF
    )
    registration = informer.add_handler(lambda _event: None)
    async with running_in_background(informer.run()):
        await wait_until(lambda: informer.health.error is not None)
        with pytest.raises(SyncTimeout, match="403 Forbidden: not you"):
            await registration.wait_synced(0.001)


async def test_a_stream_that_resumes_after_all_objects_were_deleted_delivers_the_next_event() -> (
    None
):
    cluster = cluster_with_pods(*(f"p-{number}" for number in range(600)))
    informer = pod_informer(cluster)
    async with running_informer(informer), informer.events() as events:
        for number in range(600):
            cluster.delete("pods", f"p-{number}")
        await wait_until(lambda: not len(informer.lister))
        create(cluster, "last")
        assert (await anext(events)).obj.name == "last"
