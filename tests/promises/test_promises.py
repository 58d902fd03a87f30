"""The guarantees of the library, one by one, over HTTP against the embedded server."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import warnings
from collections.abc import Callable
from functools import partial

import pytest

from aioinformer import (
    Added,
    BackoffPolicy,
    Client,
    Deleted,
    Event,
    KubeObject,
    Problem,
    SharedInformer,
    SharedInformerFactory,
    Updated,
)
from aioinformer.errors import IndexFailed, NotSynced, SyncTimeout, Unauthorized, UsageError
from aioinformer.testing import ApiServer, Cluster, ClusterSource
from tests.promises.conftest import FAST_BACKOFF, wait_until
from tests.promises.event_recorder import (
    RecordingHandler,
    check_event_order,
    states,
    version_number,
)
from tests.promises.pod_workload import PodWorkload


def node(obj: KubeObject) -> str:
    """Return the value of an index."""
    name: str = obj["spec"]["nodeName"]
    return name


def _has_events(recorder: RecordingHandler) -> bool:
    return bool(recorder.events)


def _is_current(recorder: RecordingHandler, churn: PodWorkload) -> Callable[[], bool]:
    """Return a condition: the last events of the listener describe the cluster's state."""
    return lambda: check_event_order(recorder.events) == churn.current_state


def converged(informer: SharedInformer, churn: PodWorkload) -> Callable[[], bool]:
    """Return True if the cache has the same content as the server."""
    return lambda: states(informer.lister.unsynced.list()) == churn.current_state


@pytest.mark.parametrize("seed", range(5))
async def test_1_the_cache_converges_after_any_mix_of_faults(
    seed: int, server: ApiServer, client: Client
) -> None:
    churn = PodWorkload(server.cluster, seed)
    churn.apply_changes(30)
    async with SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods", indexers={"node": node})
        first, second = RecordingHandler(pods), RecordingHandler(pods)
        pods.add_handler(first)
        await informers.wait_synced(30)
        pods.add_handler(second)
        for fault in range(8):
            churn.apply_changes(20)
            match (fault + seed) % 4:
                case 0:
                    server.drop_connections()
                case 1:
                    await server.stop()
                    churn.apply_changes(20)
                    await server.start()
                case 2:
                    server.drop_connections()
                    churn.apply_changes(20)
                    server.cluster.compact()
                case _:
                    await wait_until(converged(pods, churn))
            await asyncio.sleep(0.005)
        await wait_until(converged(pods, churn))
        await wait_until(lambda: check_event_order(first.events) == churn.current_state)
        await wait_until(lambda: check_event_order(second.events) == churn.current_state)
        by_node = {
            name: pods.lister.by_index("node", name) for name in pods.lister.index_values("node")
        }
        assert states(obj for found in by_node.values() for obj in found) == churn.current_state
        assert all(node(obj) == name for name, found in by_node.items() for obj in found)


async def test_2_the_order_is_correct_for_an_object_recreated_during_an_outage(
    server: ApiServer, client: Client
) -> None:
    cluster = server.cluster
    cluster.create("pods", {"metadata": {"name": "a"}, "spec": {}}, namespace="web")
    async with SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods")
        recorder = RecordingHandler(pods)
        pods.add_handler(recorder)
        await informers.wait_synced(30)
        await server.stop()
        cluster.delete("pods", "a", namespace="web")
        cluster.create("pods", {"metadata": {"name": "a"}, "spec": {}}, namespace="web")
        cluster.compact()  # so that only a list can tell
        await server.start()
        await wait_until(lambda: len(recorder.events) == 3)
    added, deleted, again = recorder.events
    assert isinstance(added, Added)
    assert added.initial
    assert isinstance(deleted, Deleted)
    assert deleted.obj.uid == added.obj.uid
    assert isinstance(again, Added)
    assert not again.initial
    assert again.obj.uid != added.obj.uid


async def test_2_events_of_each_object_have_the_order_of_the_server(
    server: ApiServer, client: Client
) -> None:
    churn = PodWorkload(server.cluster, seed=7, names=3)
    async with SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods")
        recorder = RecordingHandler(pods)
        pods.add_handler(recorder)
        await informers.wait_synced(30)
        churn.apply_changes(500)
        await wait_until(converged(pods, churn))
        await wait_until(lambda: check_event_order(recorder.events) == churn.current_state)
    delivered = [version_number(event.obj) for event in recorder.events]
    # One watch, no relist: everything was told, in the order of the server's changes.
    assert delivered == sorted(delivered)
    assert len(delivered) >= 400


@pytest.mark.client_go(116)
async def test_3_the_cache_is_always_a_past_state_and_never_behind_the_events(
    server: ApiServer, client: Client
) -> None:
    churn = PodWorkload(server.cluster, seed=3)
    churn.apply_changes(50)
    async with SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods")
        recorder = RecordingHandler(pods)  # asserts at each event that the cache leads
        registration = pods.add_handler(recorder)
        seen: set[str] = set()

        @pods.on_update
        def past_state(_old: KubeObject, _new: KubeObject, *, resync: bool) -> None:
            cached = pods.lister.resource_version
            seen.add(cached)
            assert not resync
            assert states(pods.lister) == churn.states_by_version[cached]

        await informers.wait_synced(30)
        for _ in range(40):
            churn.apply_changes(10)
            await asyncio.sleep(0.001)
        server.drop_connections()
        churn.apply_changes(30)
        server.cluster.compact()
        await wait_until(converged(pods, churn))
        await wait_until(lambda: check_event_order(recorder.events) == churn.current_state)
        assert [each.statistics().errors for each in pods.registrations] == [0, 0]
        assert registration.statistics().delivered == len(recorder.events)
    assert len(seen) > 10


async def test_4_readers_see_the_objects_of_before_or_after_a_relist(
    server: ApiServer, client: Client
) -> None:
    cluster = server.cluster
    for i in range(300):
        cluster.create("pods", {"metadata": {"name": f"old-{i}"}, "spec": {}}, namespace="web")
    for i in range(100):
        cluster.create("pods", {"metadata": {"name": f"kept-{i}"}, "spec": {}}, namespace="web")
    async with SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods")
        await informers.wait_synced(30)
        recorder = RecordingHandler(pods)
        await pods.add_handler(recorder).wait_synced(30)
        recorder.events.clear()
        old = {obj.name for obj in pods.lister}

        await server.stop()
        for i in range(300):
            cluster.delete("pods", f"old-{i}", namespace="web")
            cluster.create("pods", {"metadata": {"name": f"new-{i}"}, "spec": {}}, namespace="web")
        cluster.compact()
        new = {f"new-{i}" for i in range(300)} | {f"kept-{i}" for i in range(100)}
        with _Reader(pods) as reader:
            await wait_until(lambda: bool(reader.seen))
            await server.start()
            await wait_until(lambda: {obj.name for obj in pods.lister} == new)
            await wait_until(lambda: len(recorder.events) == 600)
            await wait_until(lambda: frozenset(new) in reader.seen)
    assert reader.seen == {frozenset(old), frozenset(new)}
    deleted = [event for event in recorder.events if isinstance(event, Deleted)]
    assert {event.obj.name for event in deleted} == old - new
    assert {event.reason for event in deleted} == {"vanished"}
    # What was kept has the version that it had, so nothing is told of it.
    assert {event.obj.name for event in recorder.events} == old ^ new


class _Reader(threading.Thread):
    """Reads the cache from a thread, over and over."""

    def __init__(self, informer: SharedInformer) -> None:
        super().__init__()
        self._informer = informer
        self._over = threading.Event()
        self.seen: set[frozenset[str]] = set()

    def run(self) -> None:
        while not self._over.wait(0.0005):
            self.seen.add(frozenset(obj.name for obj in self._informer.lister))

    def __enter__(self) -> _Reader:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


async def test_5_a_late_listener_receives_each_object_once(
    server: ApiServer, client: Client
) -> None:
    churn = PodWorkload(server.cluster, seed=5, names=40)
    churn.apply_changes(100)
    async with SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods")
        await informers.wait_synced(30)
        recorders: list[RecordingHandler] = []
        streams: list[asyncio.Task[list[Event]]] = []
        stop = asyncio.Event()
        for _ in range(8):
            churn.apply_changes(20)
            await asyncio.sleep(0.002)
            cached = {obj.uid for obj in pods.lister}
            recorder = RecordingHandler(pods)
            pods.add_handler(recorder)
            recorders.append(recorder)
            streams.append(asyncio.create_task(_read(pods, churn, stop)))
            churn.apply_changes(20)
            await wait_until(partial(_has_events, recorder))
            initial = [e.obj.uid for e in recorder.events if isinstance(e, Added) and e.initial]
            assert len(initial) == len(set(initial))
            assert set(initial) <= cached
        await wait_until(converged(pods, churn))
        for recorder in recorders:
            await wait_until(_is_current(recorder, churn))
        stop.set()
        for events in await asyncio.gather(*streams):
            assert check_event_order(events) == churn.current_state


async def _read(pods: SharedInformer, churn: PodWorkload, stop: asyncio.Event) -> list[Event]:
    """Return the events of a stream until it has delivered all changes."""
    events: list[Event] = []
    async with pods.events() as stream:
        async for event in stream:
            events.append(event)
            if stop.is_set() or check_event_order(events) == churn.current_state:
                await stop.wait()
                if check_event_order(events) == churn.current_state:
                    break
    return events


async def test_5_a_late_listener_does_not_receive_an_object_that_was_deleted_before_its_replay(
    server: ApiServer, client: Client
) -> None:
    cluster = server.cluster
    for i in range(10):
        cluster.create("pods", {"metadata": {"name": f"pod-{i}"}, "spec": {}}, namespace="web")
    async with SharedInformerFactory(client, namespace="web", backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods")
        await informers.wait_synced(30)
        async with pods.events() as stream:
            cluster.delete("pods", "pod-3", namespace="web")
            cluster.create("pods", {"metadata": {"name": "pod-3"}, "spec": {}}, namespace="web")
            cluster.delete("pods", "pod-4", namespace="web")
            again = cluster.get("pods", "pod-3", namespace="web")["metadata"]["uid"]
            await wait_until(lambda: "pod-4" not in pods.lister)
            delivered = [await anext(stream) for _ in range(9)]
    assert all(isinstance(event, Added) for event in delivered)
    assert [event.obj.name for event in delivered].count("pod-3") == 1
    assert delivered[-1] == Added(delivered[-1].obj, initial=False)
    assert delivered[-1].obj.uid == again
    assert "pod-4" not in {event.obj.name for event in delivered}


async def test_6_an_informer_is_synced_from_the_initial_list_on(
    server: ApiServer, client: Client
) -> None:
    for i in range(700):  # more than a page would hold
        server.cluster.create("pods", {"metadata": {"name": f"pod-{i}"}}, namespace="web")
    async with SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods")
        with pytest.raises(NotSynced):
            pods.lister.list()
        await pods.wait_synced(30)
        assert len(pods.lister) == 700
        await server.stop()
        await wait_until(lambda: pods.health.error is not None)
        assert pods.synced
        assert len(pods.lister) == 700


@pytest.mark.client_go(120)
async def test_6_a_registration_is_synced_when_its_handler_has_handled_all_initial_objects(
    server: ApiServer, client: Client
) -> None:
    for name in "abc":
        server.cluster.create("pods", {"metadata": {"name": name}}, namespace="web")
    async with SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods")
        delivered: list[str] = []
        last = asyncio.Event()

        async def slow(event: Event) -> None:
            delivered.append(event.obj.name)
            if len(delivered) == 3:
                await last.wait()

        registration = pods.add_handler(slow)
        await informers.wait_synced(30)
        await wait_until(lambda: len(delivered) == 3)
        with pytest.raises(SyncTimeout, match="slow"):
            await registration.wait_synced(0.01)
        last.set()
        await registration.wait_synced(30)
        assert registration.synced

        async with pods.events() as stream:
            for _ in range(3):
                await anext(stream)
            found = stream.synced
            server.cluster.create("pods", {"metadata": {"name": "d"}}, namespace="web")
            await anext(stream)
            assert (found, stream.synced) == (False, True)


@pytest.mark.client_go(68)
async def test_9_a_closed_factory_leaves_no_task_socket_or_warning(server: ApiServer) -> None:
    before = asyncio.all_tasks()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            async with Client(server.url) as client:
                async with SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers:
                    for resource in ("pods", "nodes", "services", "configmaps"):
                        informer = informers.informer(resource)
                        informer.add_handler(RecordingHandler(informer))
                    await informers.wait_synced(30)
                assert [informer.health.state for informer in informers] == ["stopped"] * 4
        await asyncio.sleep(0)
        gc.collect()
    assert not [str(warning.message) for warning in caught]
    ours = {task for task in asyncio.all_tasks() - before if "aioinformer" in repr(task)}
    assert not {task for task in ours if "testing" not in repr(task)}


async def test_9_every_wait_ends_on_cancellation(server: ApiServer) -> None:
    await server.stop()  # nothing will ever sync
    async with Client(server.url) as client, SharedInformerFactory(client) as informers:
        pods = informers.informer("pods")
        registration = pods.add_handler(RecordingHandler(pods))
        async with pods.events() as stream:
            waits = [
                asyncio.ensure_future(wait)
                for wait in (
                    informers.wait_synced(),
                    pods.wait_synced(),
                    registration.wait_synced(),
                    anext(stream),
                )
            ]
            await asyncio.sleep(0.01)
            for wait in waits:
                assert not wait.done()
                wait.cancel()
            done, pending = await asyncio.wait(waits, timeout=30)
            assert len(done) == 4
            assert not pending


TOKEN = "canary-7b1f0c"


async def test_12_secrets_reach_no_log_repr_or_exception(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    output: list[str] = []
    async with (
        ApiServer(token="another") as server,
        Client(server.url, token=TOKEN) as client,
        SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers,
    ):
        pods = informers.informer("pods")
        await wait_until(lambda: isinstance(pods.health.error, Unauthorized))
        with pytest.raises(SyncTimeout) as failure:
            await informers.wait_synced(0.2)
        output += [str(failure.value), repr(failure.value), repr(pods), repr(client)]
        output += [str(pods.health), repr(pods.health), repr(informers)]
        assert isinstance(pods.health.error, Unauthorized)
        assert "Unauthorized" in str(failure.value)
        await server.stop()
        await wait_until(lambda: not isinstance(pods.health.error, Unauthorized))
        output += [repr(pods.health), repr(pods.health.error)]
    output += [record.getMessage() for record in caplog.records]
    output += [str(record.exc_text) for record in caplog.records]
    assert not [text for text in output if TOKEN in text]
    assert any("Unauthorized" in text for text in output)


async def test_12_the_contents_of_a_secret_reach_no_log_when_a_function_raises_at_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """``int()`` quotes the text that is no number."""

    def pin(secret: KubeObject) -> int:
        return int(secret["data"]["pin"])

    caplog.set_level(logging.DEBUG)
    problems: list[Problem] = []
    cluster = Cluster()
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        secrets = informers.informer(
            "secrets", indexers={"pin": lambda obj: str(pin(obj))}, on_error=problems.append
        )
        plain = informers.informer("secrets", fields="metadata.name!=x", on_error=problems.append)
        await informers.wait_synced(30)
        filtered = plain.add_handler(print, filter=lambda obj: pin(obj) > 0, name="audit")
        cluster.create("secrets", {"metadata": {"name": "a"}, "data": {"pin": "hunter2"}})
        await wait_until(lambda: bool(secrets.health.rejected))
        await wait_until(lambda: filtered.statistics().errors > 0)
        with pytest.raises(IndexFailed) as added:
            await plain.add_index("pin", lambda obj: str(pin(obj)))
        with pytest.raises(IndexFailed) as read:
            secrets.lister.index("pin", plain.lister["default/a"])
    shown = [caplog.text, *map(repr, problems), *map(str, problems)]
    for failure in (added.value, read.value):
        shown += [str(failure), str(failure.__cause__)]
    assert [text for text in shown if "hunter2" in text] == []
    assert "the filter of audit of secrets" in caplog.text
    assert caplog.text.count("a ValueError was raised; its text may quote the Secret") >= 2
    hidden = str(added.value.__cause__)
    assert {type(each.error) for each in problems} == {IndexFailed, UsageError}
    assert all(str(each.error).endswith(hidden) for each in problems)


async def test_12_a_forbidden_list_is_shown_in_health_and_does_not_empty_the_cache(
    server: ApiServer, client: Client
) -> None:
    server.cluster.create("pods", {"metadata": {"name": "a"}}, namespace="web")
    async with SharedInformerFactory(client, backoff=BackoffPolicy(initial=0.01)) as informers:
        pods = informers.informer("pods")
        await informers.wait_synced(30)
        server.cluster.remove_resource("pods")
        await wait_until(lambda: pods.health.state == "waiting")
        assert "404" in str(pods.health.error)
        assert pods.synced


def test_the_match_arguments_of_events_are_those_of_the_readme() -> None:
    assert Added.__match_args__ == ("obj", "initial")
    assert Updated.__match_args__ == ("old", "new", "resync")
    assert Deleted.__match_args__[:2] == ("obj", "reason")  # a private field follows
