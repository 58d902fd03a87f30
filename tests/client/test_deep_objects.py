"""One object that is nested too deeply to be decoded, as any tenant with a custom resource can
create it: it harms itself alone, and is named.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from msgspec import Struct

from aioinformer import (
    CacheFile,
    Client,
    KubeObject,
    Lister,
    SharedInformer,
    SharedInformerFactory,
    field,
    label_index,
    labelled,
    where,
)
from aioinformer.adapters.asgi import EventFeed
from aioinformer.errors import InvalidPath, ObjectDecodeError
from aioinformer.lowlevel import Indexer
from tests.adapters.asgi_clients import connected
from tests.client.servers import http_server
from tests.runtime.scripted_source import PODS, event_line, wait_until

DEEP_VALUE = "[" * 50_000 + "]" * 50_000


def pod(name: str, version: int, deep: str = "[]") -> str:
    metadata = f'"name":"{name}","namespace":"web","uid":"{name}","resourceVersion":"{version}"'
    more = '"labels":{"app":"shop"},"annotations":{"note":"x"},"finalizers":["example.com/x"]'
    spec = f'"nodeName":"node-1","paused":false,"deep":{deep}'
    return (
        f'{{"kind":"Pod","apiVersion":"v1","metadata":{{{metadata},{more}}},"spec":{{{spec}}},'
        '"status":{"phase":"Running"}}'
    )


class Server:
    """A server that lists three pods, and changes two of them in the first watch."""

    def __init__(self) -> None:
        self.changed = False

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            version, a, deep = (12, 12, 11) if self.changed else (10, 1, 2)
            items = ",".join([pod("a", a), pod("deep", deep, DEEP_VALUE), pod("b", 3)])
            head = f'{{"kind":"PodList","metadata":{{"resourceVersion":"{version}"}},'
            return web.Response(text=f'{head}"items":[{items}]}}')
        response = web.StreamResponse()
        await response.prepare(request)
        if not self.changed:
            self.changed = True
            await response.write(event_line("MODIFIED", pod("deep", 11, DEEP_VALUE)))
            await response.write(event_line("MODIFIED", pod("a", 12)))
        await asyncio.get_running_loop().create_future()
        return response


@asynccontextmanager
async def synced(
    url: str, cache: CacheFile | None = None, last: str = "Updated a", **options: Any
) -> AsyncGenerator[tuple[SharedInformer[Any], list[str]]]:
    """Run an informer until the changes have arrived; yield it and what its handler was given."""
    events: list[str] = []
    async with (
        Client(url) as client,
        SharedInformerFactory(client, cache=cache, watch_list=False) as informers,
    ):
        pods: SharedInformer[Any] = informers.informer("pods", **options)
        pods.add_handler(lambda event: events.append(f"{type(event).__name__} {event.key.name}"))
        await informers.wait_synced(timeout=30)
        await wait_until(lambda: pods.lister.resource_version == "12")
        await wait_until(lambda: bool(events) and events[-1] == last)
        yield pods, events


READS: dict[str, Callable[[Lister], list[KubeObject]]] = {
    "labels": lambda lister: lister.list(labels="app=shop"),
    "field": lambda lister: lister.list(fields="spec.nodeName=node-1"),
    "field behind the deep part": lambda lister: lister.list(fields="status.phase=Running"),
    "boolean field": lambda lister: lister.list(fields="spec.paused=false"),
    "field in the deep part": lambda lister: lister.list(fields="spec.deep.a!=x"),
    "the deep part": lambda lister: lister.list(fields="spec.deep!=x"),
    "field of another shape": lambda lister: lister.list(fields="spec.nodeName.a!=x"),
    "labelled": lambda lister: lister.list(where=labelled("app=shop")),
    "where": lambda lister: lister.list(where=where("spec.nodeName", "node-1")),
    "where there is a deep part": lambda lister: lister.list(where=~where("spec.deep", None)),
    "annotations": lambda lister: lister.list(where=lambda obj: obj.annotations["note"] == "x"),
    "timestamps": lambda lister: lister.list(where=lambda obj: obj.deletion_timestamp is None),
    "owners": lambda lister: lister.list(where=lambda obj: not obj.owner_references),
    "index of a field": lambda lister: lister.by_index("node", "node-1"),
    "index of a list": lambda lister: lister.by_index("finalizer", "example.com/x"),
    "index of labels": lambda lister: lister.by_index("app", "app=shop"),
    "iteration": list,
}


async def test_a_deep_object_is_found_by_each_read_as_the_others_are() -> None:
    indexers = {
        "node": field("spec.nodeName"),
        "finalizer": field("metadata.finalizers"),
        "app": label_index("app"),
    }
    async with http_server(Server().serve) as url, synced(url, indexers=indexers) as (pods, events):
        for way, read in READS.items():
            assert sorted(obj.name for obj in read(pods.lister)) == ["a", "b", "deep"], way
        assert events == ["Added a", "Added deep", "Added b", "Updated deep", "Updated a"]
        assert await pods.verify(contents=True)
        deep = pods.lister["web/deep"]
        for path in ("spec.deep", "spec"):
            with pytest.raises(ObjectDecodeError, match=r"pods web/deep .* it is nested too deep"):
                field(path)(deep)
        with pytest.raises(ObjectDecodeError, match=r"pods web/deep .* it is nested too deep"):
            deep["status"]


class Model(Struct):
    """A model of a pod."""

    spec: dict[str, Any]


def node_of(obj: KubeObject) -> str:
    return str(obj["spec"]["nodeName"])


OPENING: dict[str, dict[str, Any]] = {
    "model": {"model": Model},
    "transform": {"transform": KubeObject.to_dict},
    "index function": {"indexers": {"node": node_of}},
    "index of the deep part": {"indexers": {"deep": field("spec.deep")}},
}
"""Options with which each object is opened when it arrives."""


@pytest.mark.parametrize("options", OPENING.values(), ids=OPENING)
async def test_a_deep_object_that_has_to_be_opened_is_rejected_alone_and_named(
    options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with http_server(Server().serve) as url, synced(url, **options) as (pods, events):
        cached = pods.lister.keys()
        assert sorted(key.name for key in cached) == ["a", "b"]
        assert events == ["Added a", "Added b", "Updated a"]
        assert pods.health.rejected == ("web/deep",)
        assert pods.health.error is None
        assert "web/deep is not cached" in caplog.text
        assert await pods.verify(contents=True)


async def test_a_handler_with_convert_gets_the_events_of_the_other_objects(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        http_server(Server().serve) as url,
        synced(url, convert=KubeObject.to_dict) as (_, events),
    ):
        assert events == ["Added a", "Added b", "Updated a"]
    assert "pods web/deep at resourceVersion 2: its body can't be decoded" in caplog.text


async def test_a_cache_file_restores_a_deep_object_among_the_others(tmp_path: Path) -> None:
    cache = CacheFile(tmp_path / "pods.db")
    async with http_server(Server().serve) as url:
        async with synced(url, cache):
            pass
        async with synced(url, cache, "Added b") as (pods, _):
            assert pods.health.cache_problem == ""
            assert pods.lister.count(fields="spec.nodeName=node-1") == 3
            assert await pods.verify(contents=True)


def open_whole(informer: object, obj: KubeObject) -> bytes:
    return msgspec.json.encode({"name": obj.to_dict()["metadata"]["name"]})


@pytest.mark.parametrize(
    ("options", "failed"),
    [({}, []), ({"encode": open_whole}, ["deep"])],
    ids=["metadata", "whole objects"],
)
async def test_an_event_stream_has_the_other_objects(
    options: dict[str, Any], failed: list[str]
) -> None:
    async with (
        http_server(Server().serve) as url,
        synced(url) as (pods, _),
        connected(EventFeed(lambda: [pods], **options)) as client,
    ):
        assert client.object_names("failed") == failed
        assert sorted(client.object_names("added", "failed")) == ["a", "b", "deep"]


async def test_a_large_deep_object_is_cut_once_and_not_at_each_read() -> None:
    large = f"[{DEEP_VALUE}{',[]' * 400_000}]"
    items = f'{{"metadata":{{"resourceVersion":"12"}},"items":[{pod("deep", 2, large)}]}}'

    async def answer(request: web.Request) -> web.StreamResponse:
        return (
            await Server().serve(request) if "watch" in request.query else web.Response(text=items)
        )

    async with (
        http_server(answer) as url,
        Client(url) as client,
        SharedInformerFactory(client, watch_list=False) as informers,
    ):
        pods = informers.informer("pods")
        await informers.wait_synced(timeout=30)
        seconds: list[float] = []
        for _ in range(6):
            began = time.thread_time()
            assert pods.lister.list(labels="app=shop", fields="spec.nodeName=node-1")
            seconds.append(time.thread_time() - began)
        assert min(seconds[1:]) < seconds[0] / 3


PATHS: dict[str, Callable[[str], object]] = {
    "field": field,
    "where": lambda path: where(path, "x"),
    "selector": lambda path: Lister(Indexer(), PODS, unsynced=True).list(fields=f"{path}=x"),
}


@pytest.mark.parametrize("read", PATHS.values(), ids=PATHS)
def test_a_path_of_too_many_steps_is_an_invalid_path(read: Callable[[str], object]) -> None:
    with pytest.raises(InvalidPath, match="it has more than 64 steps"):
        read(".".join("a" * 2_000))
