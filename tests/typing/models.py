"""Models and conversions as type checkers see them: ``Pod`` flows from the call to every object.

mypy and pyright, both strict, read this with the tests; ``assert_type`` is theirs. The ignored
lines are mistakes that they must find: an ignore that hides nothing is an error itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TypedDict, assert_type

from attrs import frozen
from msgspec import Struct

from aioinformer import (
    Added,
    Deleted,
    DeleteReason,
    Event,
    EventStream,
    KubeObject,
    Lister,
    MergedStream,
    ObjectKey,
    Registration,
    Shape,
    SharedInformer,
    SharedInformerFactory,
    Sourced,
    Updated,
    field,
    label_index,
    merge,
    where,
)
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer.conditions import (
    all_of,
    any_of,
    condition_true,
    crd_established,
    deleted,
    exists,
    job_complete,
    negate,
    rollout_complete,
)


class Spec(Struct, frozen=True, gc=False):
    nodeName: str = ""  # noqa: N815 - the key in the JSON


class Metadata(Struct, frozen=True, gc=False):
    name: str


class Pod(Struct, frozen=True, gc=False):
    metadata: Metadata
    spec: Spec


@dataclass(frozen=True)
class Node:
    metadata: Metadata


class Claim(TypedDict):
    metadata: Metadata


@frozen
class Service:
    metadata: Metadata


def names(obj: KubeObject) -> str:
    return obj.name


def node_of(pod: Pod) -> str:
    return pod.spec.nodeName


def without_status(obj: KubeObject) -> Mapping[str, object] | None:
    body = obj.to_dict()
    body.pop("status", None)
    return body


def check_informer_types(informers: SharedInformerFactory) -> None:
    assert_type(informers.informer("pods"), SharedInformer[KubeObject])
    assert_type(informers.informer("pods", transform=without_status), SharedInformer)
    assert_type(informers.informer("pods", model=Pod), SharedInformer[Pod])
    assert_type(informers.informer("nodes", model=Node), SharedInformer[Node])
    assert_type(informers.informer("persistentvolumeclaims", model=Claim), SharedInformer[Claim])
    assert_type(informers.informer("services", model=Service), SharedInformer[Service])
    assert_type(informers.informer("pods", convert=names), SharedInformer[str])
    informers.informer("pods", model=Pod, indexers={"node": node_of})
    assert_type(
        informers.informer("pods", model=Pod, namespace="web", page_size=50), SharedInformer[Pod]
    )
    assert_type(informers.informer("pods", labels="app=shop", resync=30), SharedInformer)
    informers.informer("pods", page_size="50")  # type: ignore[call-overload] # pyright: ignore[reportArgumentType,reportCallIssue]
    informers.informer("pods", pagesize=50)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue]
    informers.informer("pods", convert=names, indexers={"l": label_index(), "n": field("spec.x")})
    informers.informer("pods", indexers={"node": node_of})  # type: ignore[dict-item] # pyright: ignore[reportArgumentType,reportCallIssue]


def check_single_informer_types(source: ListerWatcher) -> None:
    assert_type(SharedInformer(source), SharedInformer[KubeObject])
    assert_type(SharedInformer(source, resync=30), SharedInformer[KubeObject])
    assert_type(SharedInformer(source, shape=Shape.of(model=Pod)), SharedInformer[Pod])
    assert_type(SharedInformer(source, shape=Shape.of(convert=names)), SharedInformer[str])


async def check_lister_types(pods: SharedInformer[Pod], plain: SharedInformer) -> None:
    assert_type(pods.lister, Lister[Pod])
    assert_type(pods.lister.scan(), AsyncIterator[Pod])
    assert_type(plain.lister.get("web-0"), KubeObject | None)
    assert_type(pods.lister.get("web-0"), Pod | None)
    assert_type(pods.lister["web/web-0"], Pod)
    assert_type(pods.lister.list(where=lambda pod: pod.spec.nodeName), list[Pod])
    assert_type(pods.lister.by_index("node", "node-1"), list[Pod])
    assert_type(pods.lister.keys(), list[ObjectKey])
    for pod in pods.lister:
        assert_type(pod, Pod)
        assert_type(pods.lister.index("node", pod), list[Pod])
    async for pod in pods.lister.scan():
        assert_type(pod, Pod)
    assert_type(await pods.wait_for({}), Pod | None)
    assert_type(await pods.wait_until("web/a", lambda pod: pod is not None), Pod | None)
    for condition in (exists, rollout_complete, job_complete, crd_established):
        assert_type(await pods.wait_until("web/a", condition), Pod)
    assert_type(await plain.wait_until("web/a", condition_true("Ready")), KubeObject)
    assert_type(await plain.wait_until("web/a", where("spec.nodeName", "a")), KubeObject)
    assert_type(await plain.wait_until("a", all_of(exists, where("spec.x", 1))), KubeObject)
    assert_type(await plain.wait_until("a", any_of(exists, job_complete)), KubeObject)
    assert_type(await plain.wait_until("a", any_of(job_complete, deleted)), KubeObject | None)
    assert_type(await plain.wait_until("a", deleted), KubeObject | None)
    assert_type(await plain.wait_until("a", negate(exists)), KubeObject | None)
    await pods.add_index("node", node_of)
    plain.lister.list(where=where("spec.nodeName", "node-1"))
    reader: Lister[Pod] = pods.lister
    pods.lister.list(where=names)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert_type(reader.get("web/a"), Pod | None)


class Audit:
    async def on_add(self, obj: Pod, /, *, initial: bool) -> None: ...
    async def on_update(self, old: Pod, new: Pod, /, *, resync: bool) -> None: ...
    def on_delete(self, obj: Pod, /, *, reason: DeleteReason) -> None: ...


async def on_event(event: Event[Pod]) -> None:
    match event:
        case Added(obj, initial):
            assert_type(obj, Pod)
            assert_type(initial, bool)
        case Updated(old, new, resync):
            assert_type(old, Pod)
            assert_type(new, Pod)
            assert_type(resync, bool)
        case Deleted(obj, reason):
            assert_type(obj, Pod)
            assert_type(reason, DeleteReason)
    assert_type(event.obj, Pod)
    assert_type(event.key, ObjectKey)


def on_any_event(event: Event) -> None:
    assert_type(event.obj, KubeObject)


async def check_handler_types(pods: SharedInformer[Pod], plain: SharedInformer) -> None:
    assert_type(pods.add_handler(Audit()), Registration)
    assert_type(pods.add_handler(on_event, filter=node_of), Registration)
    plain.add_handler(on_any_event)
    pods.add_handler(on_any_event)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    plain.add_handler(Audit())  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]

    @pods.on_add
    async def added(obj: Pod, *, initial: bool) -> None: ...

    @pods.on_update
    def updated(old: Pod, new: Pod, *, resync: bool) -> None: ...

    @pods.on_delete
    async def deleted(obj: Pod, *, reason: DeleteReason) -> None: ...

    @plain.on_add  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    async def wrong(obj: Pod, *, initial: bool) -> None: ...

    await added(Pod(Metadata("a"), Spec()), initial=True)  # a decorated function stays one


async def check_stream_types(
    pods: SharedInformer[Pod], nodes: SharedInformer[Node], plain: SharedInformer
) -> None:
    assert_type(pods.events(), EventStream[Pod])
    assert_type(plain.events(), EventStream[KubeObject])
    async with pods.events(filter=node_of) as events:
        async for event in events:
            assert_type(event, Event[Pod])
    async with pods.snapshot_and_events() as (snapshot, events):
        assert_type(snapshot, Mapping[ObjectKey, Pod])
        assert_type(events.next_nowait(), Event[Pod] | None)
    async with merge(pods.events(), nodes.events()) as merged:
        assert_type(merged, MergedStream[Pod | Node])
        async for sourced in merged:
            assert_type(sourced, Sourced[Pod | Node])
            if isinstance(sourced.event, Added):
                assert_type(sourced.event.obj, Pod | Node)
