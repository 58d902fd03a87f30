"""Informers with ``model=``, ``convert=`` or ``transform=``, from the server to the handler."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import Struct

from aioinformer import (
    Added,
    Deleted,
    DeleteReason,
    Event,
    KubeObject,
    ObjectKey,
    Problem,
    Shape,
    SharedInformer,
    SharedInformerFactory,
    Updated,
    field,
    label_index,
    labelled,
    merge,
)
from aioinformer.errors import ModelMismatch, TransformFailed, UsageError
from aioinformer.testing import Cluster, ClusterSource
from tests.runtime.informers import FAST_BACKOFF, cluster_with_pods, label_pod, running_informer
from tests.runtime.scripted_source import (
    PODS,
    body,
    error_event,
    event_line,
    list_response,
    scripted_lister_watcher,
    wait_until,
    watch_response,
)


class Metadata(Struct, frozen=True, gc=False):
    name: str
    labels: dict[str, int] = {}  # of which the server knows nothing


class Pod(Struct, frozen=True, gc=False):
    """A pod that fits as long as its labels are no words."""

    metadata: Metadata


def shaped(cluster: Cluster, shape: Shape[Any], **options: Any) -> SharedInformer[Any]:
    source = ClusterSource(cluster).lister_watcher(PODS)
    return SharedInformer(source, shape=shape, backoff=FAST_BACKOFF, **options)


def value(obj: KubeObject) -> str:
    """Convert an object to its name and label ``value``; raise if the label is ``bad``."""
    found = obj.labels.get("value", "none")
    if found == "bad":
        raise ValueError("a bad value")
    return f"{obj.name}={found}"


def without_secrets(obj: KubeObject) -> Mapping[str, Any] | None:
    if obj.labels.get("value") == "raise":
        raise ValueError("no")
    if obj.labels.get("value") == "drop":
        return None
    return {**obj, "spec": "cut"}


def put(cluster: Cluster, name: str, value: str) -> None:
    """Create a pod."""
    cluster.create("pods", {"metadata": {"name": name, "labels": {"value": value}}})


def name_of(pod: Pod) -> str:
    return pod.metadata.name


# -- models ------------------------------------------------------------------------------------


async def test_handlers_streams_and_waits_get_models() -> None:
    received: list[str] = []

    class Handler:
        async def on_add(self, obj: Pod, /, *, initial: bool) -> None:
            received.append(f"add {obj.metadata.name} {initial}")

        def on_update(self, old: Pod, new: Pod, /, *, resync: bool) -> None:
            received.append(f"update {old.metadata.labels} {new.metadata.labels} {resync}")

        async def on_delete(self, obj: Pod, /, *, reason: DeleteReason) -> None:
            received.append(f"delete {obj.metadata.name} {reason}")

    cluster = cluster_with_pods("a")
    pods = shaped(cluster, Shape.of(model=Pod))
    pods.add_handler(Handler())
    async with running_informer(pods), pods.events() as events:
        reported = [await anext(events)]
        label_pod(cluster, "a", "7")  # the labels of a pod are strings
        await wait_until(lambda: bool(pods.health.rejected))
        cluster.merge_patch("pods", "a", {"metadata": {"labels": None}})
        await pods.wait_until("default/a", lambda pod: not pods.health.rejected, timeout=5)
        reported.append(await anext(events))
        await wait_until(lambda: len(received) == 2)
        cluster.delete("pods", "a")
        await pods.wait_until("default/a", lambda pod: pod is None, timeout=5)
        reported.append(await anext(events))
        await wait_until(lambda: len(received) == 3)

    model = Pod(Metadata("a"))
    assert received == ["add a True", "update {} {} False", "delete a deleted"]
    assert reported == [Added(model, True), Updated(model, model), Deleted(model)]
    assert {event.key for event in reported} == {ObjectKey("default", "a")}


async def test_decorated_functions_and_threads_get_models() -> None:
    received: list[object] = []
    cluster = cluster_with_pods("a")
    pods = shaped(cluster, Shape.of(model=Pod))

    @pods.on_add
    def added(obj: Pod, *, initial: bool) -> None:
        received.append((obj, initial))

    def in_a_thread(event: Event[Pod]) -> None:
        received.append((event, threading.current_thread() is threading.main_thread()))

    pods.add_handler(in_a_thread, run_in_thread=True)
    async with running_informer(pods):
        await wait_until(lambda: len(received) == 2)

    assert (Pod(Metadata("a")), True) in received
    assert (Added(Pod(Metadata("a")), True), False) in received


async def test_a_handler_of_models_that_raises_is_named_with_the_key_and_not_the_model(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pods = shaped(cluster_with_pods("a"), Shape.of(model=Pod))

    async def clumsy(event: Event[Pod]) -> None:
        raise ValueError("no")

    registration = pods.add_handler(clumsy)
    async with running_informer(pods):
        await wait_until(lambda: registration.statistics().errors == 1)

    (message,) = [each.getMessage() for each in caplog.records if "raised at" in each.getMessage()]
    assert "clumsy of pods raised at Added of <Pod default/a rv=" in message
    assert "Metadata" not in message


async def test_a_snapshot_has_models_in_it() -> None:
    pods = shaped(cluster_with_pods("a"), Shape.of(model=Pod))
    async with running_informer(pods), pods.snapshot_and_events() as (snapshot, events):
        assert dict(snapshot) == {ObjectKey("default", "a"): Pod(Metadata("a"))}
        assert events.next_nowait() is None


async def test_streams_of_models_can_be_merged() -> None:
    models = shaped(cluster_with_pods("a"), Shape.of(model=Pod))
    texts = shaped(cluster_with_pods("b"), Shape.of(convert=value))
    async with (
        running_informer(models),
        running_informer(texts),
        merge(models.events(), texts.events()) as events,
    ):
        reported = [await anext(events), await anext(events)]

    assert [(each.source, each.event.obj) for each in reported] == [
        (models, Pod(Metadata("a"))),
        (texts, "b=none"),
    ]


async def test_an_object_that_a_model_rejects_is_reported_and_the_previous_one_stays_cached(
    caplog: pytest.LogCaptureFixture,
) -> None:
    problems: list[Problem] = []
    cluster = cluster_with_pods("a")
    pods = shaped(cluster, Shape.of(model=Pod), on_error=problems.append)
    async with running_informer(pods):
        label_pod(cluster, "a", "word")
        put(cluster, "never", "word")
        await wait_until(lambda: pods.health.rejections == 2)

        assert [pod.metadata.labels for pod in pods.lister] == [{}]
        assert pods.health.rejected == ("default/a", "default/never")
        assert "2 objects rejected" in str(pods.health)
    assert (problems[0].phase, problems[0].cause) == ("object", "rejected")
    assert isinstance(problems[0].error, ModelMismatch)
    message = [each.getMessage() for each in caplog.records if each.name == "aioinformer.pump"]
    assert any(
        "pods: pods default/a at resourceVersion" in text
        and "it doesn't fit the model Pod: ValidationError: Expected `int`, got `str`" in text
        and text.endswith("; the previous version of default/a stays cached")
        for text in message
    )


async def test_wait_for_returns_the_cached_object_if_a_model_rejects_the_write() -> None:
    cluster = cluster_with_pods("a")
    pods = shaped(cluster, Shape.of(model=Pod))
    async with running_informer(pods):
        answer = cluster.merge_patch("pods", "a", {"metadata": {"labels": {"value": "word"}}})
        shown = await pods.wait_for(answer, timeout=5)
        never = cluster.create("pods", {"metadata": {"name": "b", "labels": {"value": "word"}}})

        assert shown == Pod(Metadata("a"))
        assert await pods.wait_for(never, timeout=5) is None
        assert len(pods.health.rejected) == 2


async def test_a_relist_with_rejected_objects_deletes_nothing() -> None:
    good = '{"metadata":{"name":"a","namespace":"web","uid":"u","resourceVersion":"1"}}'
    bad = (
        '{"metadata":{"name":"a","namespace":"web","uid":"u","resourceVersion":"12",'
        '"labels":{"x":"word"}}}'
    )
    deleted = error_event(410, "Expired")
    source = scripted_lister_watcher(
        list_response(good),
        watch_response(deleted),
        list_response(bad, version="20"),
        watch_response(never_ends=True),
    )
    pods: SharedInformer[Pod] = SharedInformer(
        source, shape=Shape.of(model=Pod), backoff=FAST_BACKOFF, watch_list=False
    )
    reported: list[Event[Pod]] = []
    pods.add_handler(reported.append)
    async with running_informer(pods):
        await wait_until(lambda: pods.health.rejected == ("web/a",))

        assert pods.lister.list() == [Pod(Metadata("a"))]
    assert reported == [Added(Pod(Metadata("a")), True)]


async def test_a_cache_of_models_can_be_verified() -> None:
    cluster = cluster_with_pods("a", "b")
    pods = shaped(cluster, Shape.of(model=Pod))
    async with running_informer(pods):
        assert await pods.verify(contents=True, timeout=5)
        put(cluster, "bad", "word")
        await wait_until(lambda: bool(pods.health.rejected))
        found = await pods.verify(contents=True, timeout=5)

    assert found
    assert found.rejected == 1


async def test_predicates_that_read_json_are_rejected_for_models() -> None:
    pods = shaped(cluster_with_pods(), Shape.of(model=Pod))

    with pytest.raises(UsageError, match="the filter"):
        pods.add_handler(print, filter=labelled("app=shop"))
    with pytest.raises(UsageError, match="the filter"):
        pods.events(filter=labelled("app=shop"))
    with pytest.raises(UsageError, match="the index 'node'"):
        await pods.add_index("node", field("spec.nodeName"))
    with pytest.raises(UsageError, match="the index 'labels'"):
        await pods.add_index("labels", label_index())
    async with running_informer(pods):
        with pytest.raises(UsageError, match="the label selector 'app=shop' reads"):
            pods.lister.list(labels="app=shop")


async def test_an_index_of_models_can_be_added_after_the_start() -> None:
    pods = shaped(cluster_with_pods("a", "b"), Shape.of(model=Pod))
    async with running_informer(pods):
        await pods.add_index("name", name_of)

        assert pods.lister.by_index("name", "a") == [Pod(Metadata("a"))]


# -- conversions -------------------------------------------------------------------------------


async def test_an_object_that_can_not_be_converted_is_an_error_of_one_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    problems: list[Problem] = []
    cluster = cluster_with_pods("a")
    texts = shaped(cluster, Shape.of(convert=value), on_error=problems.append)
    received: list[Event[str]] = []
    registration = texts.add_handler(received.append, filter=lambda text: text != "never")
    async with running_informer(texts):
        label_pod(cluster, "a", "bad")
        await wait_until(lambda: bool(problems))
        with pytest.raises(ModelMismatch, match="pods default/a at resourceVersion"):
            texts.lister.get("default/a")
        with pytest.raises(ModelMismatch):
            await texts.wait_until("default/a", lambda text: text == "a=good", timeout=5)
        label_pod(cluster, "a", "good")
        await wait_until(lambda: len(received) == 2)

        assert received == [Added("a=none", True), Updated("a=none", "a=good")]
        assert registration.statistics().errors == 1
        assert texts.health.unconverted > 0
        assert "convert= failed" in str(texts.health)
        assert not texts.health.rejected
    assert all(isinstance(problem.error, ModelMismatch) for problem in problems)
    assert all(problem.phase == "handler" for problem in problems)
    assert any("convert= value failed: ValueError: a bad value" in text for text in caplog.messages)


@pytest.mark.parametrize("threads", [False, True])
async def test_a_deletion_is_delivered_with_the_last_state_that_could_be_converted(
    threads: bool,
) -> None:
    cluster = cluster_with_pods("a", "odd")
    label_pod(cluster, "odd", "bad")
    texts = shaped(cluster, Shape.of(convert=value))
    received, merged, removed = list[Event[str]](), list[Event[str]](), list[str]()

    def remove(text: str, *, reason: DeleteReason) -> None:
        removed.append(f"{text} {reason}")

    options: dict[str, Any] = {"run_in_thread": threads}
    registration = texts.add_handler(received.append, **options)
    texts.add_handler(merged.append, filter=lambda text: text != "never", limit=1)
    texts.on_delete(remove)
    async with running_informer(texts), texts.events() as events:
        assert await anext(events) == Added("a=none", True)
        with pytest.raises(ModelMismatch):
            await anext(events)
        for number in range(3):
            metadata = {"labels": {"value": "bad"}, "annotations": {"n": f"{number}"}}
            cluster.merge_patch("pods", "a", {"metadata": metadata})
        await wait_until(lambda: registration.statistics().errors == 4)
        cluster.delete("pods", "a")
        cluster.delete("pods", "odd")
        await wait_until(lambda: len(received) == len(merged) == 3)

        assert received[:2] == merged[:2] == [Added("a=none", True), Deleted("a=none")]
        assert received[2].key == merged[2].key == ObjectKey("default", "odd")
        assert removed == ["a=none deleted"]
        for _ in range(3):
            with pytest.raises(ModelMismatch):
                await anext(events)
        assert await anext(events) == Deleted("a=none")
        last = await anext(events)
        assert last.key == ObjectKey("default", "odd")
        with pytest.raises(ModelMismatch):
            _ = last.obj


async def test_a_merged_deletion_has_the_last_state_that_could_be_converted() -> None:
    cluster = cluster_with_pods("a", "b")
    texts = shaped(cluster, Shape.of(convert=value))
    received, go_on = list[Event[str]](), asyncio.Event()

    async def slow(event: Event[str]) -> None:
        received.append(event)
        if event.key.name == "b":
            await go_on.wait()

    texts.add_handler(slow, limit=1)
    async with running_informer(texts):
        await wait_until(lambda: len(received) == 2)
        label_pod(cluster, "b", "x")
        label_pod(cluster, "a", "bad")
        cluster.delete("pods", "a")
        await texts.wait_until("default/a", lambda text: text is None, timeout=5)
        go_on.set()
        await wait_until(lambda: len(received) == 4)

    assert received[-1] == Deleted("a=none")


async def test_a_deletion_is_delivered_although_its_last_state_can_not_be_converted() -> None:
    last = body("a", 5).replace('"metadata":{', '"metadata":{"labels":{"value":"bad"},')
    source = scripted_lister_watcher(
        list_response(body("a", 3), version="4"),
        watch_response(event_line("DELETED", last), never_ends=True),
    )
    problems: list[Problem] = []
    texts = SharedInformer(source, shape=Shape.of(convert=value), on_error=problems.append)
    received: list[Event[str]] = []
    texts.add_handler(received.append)
    async with running_informer(texts):
        await wait_until(lambda: len(received) == 2)

    assert received == [Added("a=none", True), Deleted("a=none")]
    assert problems == []


async def test_a_stream_can_be_read_on_behind_an_object_that_does_not_convert() -> None:
    cluster = cluster_with_pods()
    texts = shaped(cluster, Shape.of(convert=value))
    async with running_informer(texts), texts.events() as events:
        put(cluster, "bad", "bad")
        with pytest.raises(ModelMismatch):
            await anext(events)
        put(cluster, "good", "1")

        assert await anext(events) == Added("good=1")


async def test_a_scan_returns_converted_objects_that_match() -> None:
    texts = shaped(cluster_with_pods("a", "b", "c"), Shape.of(convert=value))
    async with running_informer(texts):
        found = [text async for text in texts.lister.scan(where=lambda text: text != "b=none")]

    assert sorted(found) == ["a=none", "c=none"]


# -- transforms --------------------------------------------------------------------------------


@pytest.mark.client_go(57, 112)
async def test_indexes_filters_and_handlers_receive_transformed_objects() -> None:
    cluster = cluster_with_pods("a")
    pods = shaped(cluster, Shape.of(transform=without_secrets), indexers={"spec": field("spec")})
    reported: list[Event] = []
    pods.add_handler(reported.append)
    async with running_informer(pods):
        assert pods.lister["default/a"]["spec"] == "cut"
        assert len(pods.lister.by_index("spec", "cut")) == 1
        put(cluster, "b", "drop")
        label_pod(cluster, "a", "drop")
        await wait_until(lambda: len(pods.lister) == 0)
        label_pod(cluster, "a", "back")
        await pods.wait_until("default/a", lambda pod: pod is not None, timeout=5)
        cluster.delete("pods", "a")
        await pods.wait_until("default/a", lambda pod: pod is None, timeout=5)
        await wait_until(lambda: len(reported) == 4)

    kinds = [
        (type(event).__name__, event.reason if isinstance(event, Deleted) else "")
        for event in reported
    ]
    assert kinds == [("Added", ""), ("Deleted", "dropped"), ("Added", ""), ("Deleted", "deleted")]
    assert all(event.obj["spec"] == "cut" for event in reported)


async def test_a_transform_that_raises_keeps_the_cached_object() -> None:
    problems: list[Problem] = []
    cluster = cluster_with_pods("a")
    pods = shaped(cluster, Shape.of(transform=without_secrets), on_error=problems.append)
    reported: list[Event] = []
    pods.add_handler(reported.append)
    async with running_informer(pods):
        version = pods.lister["default/a"].resource_version
        label_pod(cluster, "a", "raise")
        await wait_until(lambda: pods.health.rejected == ("default/a",))
        assert pods.lister["default/a"].resource_version == version
        cluster.delete("pods", "a")  # in a last state at which it raises as well
        await wait_until(lambda: len(reported) == 2)

        assert not pods.health.rejected
    assert isinstance(reported[-1], Deleted)
    assert reported[-1].obj.resource_version == version
    assert isinstance(problems[0].error, TransformFailed)
    assert isinstance(problems[0].error.__cause__, ValueError)


@pytest.mark.client_go(31)
async def test_a_transform_is_applied_to_every_page_of_the_initial_list() -> None:
    cluster = cluster_with_pods(*(f"p-{number}" for number in range(40)))
    put(cluster, "dropped", "drop")
    source = ClusterSource(cluster).lister_watcher(PODS)
    shape = Shape.of(transform=without_secrets)
    pods = SharedInformer(source, shape=shape, watch_list=False, page_size=7, backoff=FAST_BACKOFF)
    async with running_informer(pods):
        assert len(pods.lister) == 40
        assert {obj["spec"] for obj in pods.lister} == {"cut"}
        assert await pods.verify(contents=True, timeout=5)


# -- one informer for each shape ---------------------------------------------------------------


async def test_a_slow_transform_holds_the_loop_for_one_object_at_a_time() -> None:
    turns: list[int] = []
    turn = 0

    def slow(obj: KubeObject) -> KubeObject:
        turns.append(turn)
        time.sleep(0.002)
        return obj

    events = [
        event_line("ADDED", body(f"p-{number}", 11 + number, size=4000)) for number in range(30)
    ]
    source = scripted_lister_watcher(
        list_response(), watch_response(b"".join(events), never_ends=True)
    )
    pods = SharedInformer(source, shape=Shape.of(transform=slow))
    async with running_informer(pods):
        while len(pods.lister) < 30:
            await asyncio.sleep(0)
            turn += 1
    most = max(turns.count(each) for each in set(turns))
    assert most <= 7, "4 ms, and what a portion has beyond that"


async def test_requests_with_different_shapes_have_different_informers() -> None:
    async with SharedInformerFactory(ClusterSource(cluster_with_pods("a"))) as informers:
        plain, models = informers.informer("pods"), informers.informer("pods", model=Pod)
        texts = informers.informer("pods", convert=value)
        cut = informers.informer("pods", transform=without_secrets)
        assert len({plain, models, texts, cut}) == 4
        assert informers.informer("po", model=Pod) is models
        assert informers.informer("pod", convert=value) is texts
        assert informers.informer("pods", transform=without_secrets) is cut
        await informers.wait_synced(timeout=30)

        assert [each.name for each in informers] == [
            "pods",
            "pods as Pod",
            "pods as value",
            "pods through without_secrets",
        ]
        assert texts.lister.list() == ["a=none"]
        assert models.lister.list() == [Pod(Metadata("a"))]


async def test_a_type_that_is_not_a_model_is_rejected_at_once() -> None:
    async with SharedInformerFactory(ClusterSource(cluster_with_pods())) as informers:
        with pytest.raises(UsageError, match="model= takes"):
            informers.informer("pods", model=int)
        with pytest.raises(UsageError, match="model= takes"):
            async with informers.use("pods", model=int):
                raise AssertionError
        assert list(informers) == []


async def test_use_can_have_an_informer_of_models() -> None:
    async with SharedInformerFactory(ClusterSource(cluster_with_pods("a"))) as informers:
        by_name = {"n": name_of}
        async with informers.use("pods", model=Pod, indexers=by_name) as pods:
            await pods.wait_synced(timeout=30)
            assert pods.lister.by_index("n", "a") == [Pod(Metadata("a"))]
        assert list(informers) == []
