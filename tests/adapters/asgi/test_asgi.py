"""Probes and event streams, as ASGI applications, without a server or a framework."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from aioinformer import Client, EventSource, KubeObject, SharedInformer, SharedInformerFactory
from aioinformer.adapters.asgi import EventFeed, Probe, alive, metadata, ready
from aioinformer.errors import HandlerCancelled, UsageError
from aioinformer.testing import ApiServer, Cluster, ClusterSource
from aioinformer.testing.simulation import run
from tests.adapters.asgi_clients import AsgiClient, connected, make_scope, request
from tests.promises.conftest import FAST_BACKOFF, wait_until


def create(cluster: Cluster, name: str, **labels: str) -> None:
    body = {"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": "node-1"}}
    cluster.create("pods", body, namespace="web")


def label(cluster: Cluster, name: str, value: str) -> None:
    patch = {"metadata": {"labels": {"app": value}}}
    cluster.merge_patch("pods", name, patch, namespace="web")


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    for name in "ab":
        create(cluster, name, app="shop")
    return cluster


@pytest.fixture
async def informers(cluster: Cluster) -> AsyncIterator[SharedInformerFactory]:
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        informers.informer("pods")
        await informers.wait_synced(30)
        yield informers


@pytest.fixture
async def pods(informers: SharedInformerFactory) -> SharedInformer:
    return informers.informer("pods")


# -- frames -----------------------------------------------------------------------------------


async def test_a_client_receives_the_cached_objects_and_then_the_changes(
    cluster: Cluster, informers: SharedInformerFactory
) -> None:
    async with connected(EventFeed(lambda: informers)) as client:
        assert client.status == 200
        assert client.headers["content-type"].startswith("text/event-stream")
        create(cluster, "c")
        label(cluster, "a", "cart")
        cluster.delete("pods", "b", namespace="web")
        await wait_until(lambda: bool(client.object_names("deleted")))
        events = [frame.event for frame in client.messages if frame.event]
        assert events == ["reset", "added", "added", "synced", "added", "updated", "deleted"]
        assert sorted(client.object_names("added")[:2]) == ["a", "b"]
        assert client.object_names("added")[2:] == ["c"]
        (update,) = [frame.data for frame in client.messages if frame.event == "updated"]
        assert update["labels"] == {"app": "cart"}


async def test_a_client_that_reconnects_receives_everything_again(
    cluster: Cluster, informers: SharedInformerFactory
) -> None:
    feed = EventFeed(lambda: informers)
    async with connected(feed):
        pass
    cluster.delete("pods", "b", namespace="web")
    await wait_until(lambda: len(informers.informer("pods").lister) == 1)
    async with connected(feed) as client:
        assert client.object_names("added") == ["a"]


async def test_the_contents_of_a_secret_are_not_sent_by_default() -> None:
    cluster = Cluster()
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}
    metadata = {"name": "password", "annotations": applied}
    cluster.create(
        "secrets", {"metadata": metadata, "data": {"p": "aHVudGVyMg=="}}, namespace="web"
    )
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        informers.informer("secrets")
        await informers.wait_synced(30)
        async with connected(EventFeed(lambda: informers)) as client:
            assert client.object_names("added") == ["password"]
            assert b"aHVudGVyMg" not in client.body
            assert b"hunter2" not in client.body


async def test_several_informers_share_one_event_stream(
    cluster: Cluster, informers: SharedInformerFactory
) -> None:
    cluster.create("nodes", {"metadata": {"name": "node-1"}})
    informers.informer("nodes")
    await informers.wait_synced(30)
    async with connected(EventFeed(lambda: informers)) as client:
        sources = {frame.data["informer"] for frame in client.messages if frame.event == "added"}
        assert sources == {"pods", "nodes"}


async def test_the_filter_decides_for_each_object(informers: SharedInformerFactory) -> None:
    feed = EventFeed(lambda: informers, filter=lambda pod: pod.name == "b")
    async with connected(feed) as client:
        assert client.object_names("added") == ["b"]


async def test_line_breaks_in_encoded_objects_do_not_break_frames(
    informers: SharedInformerFactory,
) -> None:
    def pretty(informer: EventSource, obj: KubeObject) -> bytes:
        return json.dumps({"name": obj.name}, indent=2).encode()

    async with connected(EventFeed(lambda: informers, encode=pretty)) as client:
        assert sorted(client.object_names("added")) == ["a", "b"]


async def test_an_object_is_encoded_once_for_all_clients(
    cluster: Cluster, informers: SharedInformerFactory
) -> None:
    asked: list[str] = []

    def encode(informer: EventSource, obj: KubeObject) -> bytes:
        asked.append(f"{obj.name} {obj.labels['app']}")
        return metadata(informer, obj)

    feed = EventFeed(lambda: informers, encode=encode)
    async with connected(feed) as one, connected(feed) as other:
        label(cluster, "a", "cart")
        await wait_until(
            lambda: one.object_names("updated") == other.object_names("updated") == ["a"]
        )
    assert sorted(asked) == ["a cart", "a shop", "b shop"]


async def test_two_informers_with_the_same_name_are_encoded_separately(cluster: Cluster) -> None:
    def relabelled(app: str) -> Callable[[KubeObject], dict[str, Any]]:
        def change(pod: KubeObject) -> dict[str, Any]:
            body = pod.to_dict()
            body["metadata"]["labels"] = {"app": app}
            return body

        return change

    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        for app in "xy":
            informers.informer("pods", transform=relabelled(app))
        await informers.wait_synced(30)
        assert len({each.name for each in informers}) == 1
        async with connected(EventFeed(lambda: informers)) as client:
            apps = [each.data["labels"]["app"] for each in client.messages if each.event == "added"]
            assert sorted(apps) == ["x", "x", "y", "y"]


async def test_an_encoding_error_is_logged_with_the_object_and_the_next_object_is_sent(
    cluster: Cluster, informers: SharedInformerFactory, caplog: pytest.LogCaptureFixture
) -> None:
    def encode(informer: EventSource, obj: KubeObject) -> bytes | None:
        if obj.name == "a":
            raise ValueError("hunter2")
        return metadata(informer, obj)

    feed = EventFeed(lambda: informers, encode=encode)
    with caplog.at_level(logging.ERROR):
        async with connected(feed) as client, connected(feed):
            assert client.object_names("failed") == ["a"]
            assert client.object_names("added") == ["b"]
            assert b"hunter2" not in client.body
    (record,) = caplog.records  # once for all clients
    assert record.getMessage().startswith("pods: web/a can't be encoded for an event stream: Value")


async def test_an_encoder_may_return_text(informers: SharedInformerFactory) -> None:
    feed = EventFeed(lambda: informers, encode=lambda informer, obj: json.dumps({"name": obj.name}))
    async with connected(feed) as client:
        assert sorted(client.object_names("added")) == ["a", "b"]


async def test_the_error_of_an_encoder_that_returns_a_dict_suggests_json_dumps(
    informers: SharedInformerFactory, caplog: pytest.LogCaptureFixture
) -> None:
    def row(informer: EventSource, obj: KubeObject) -> Any:
        return {"name": obj.name}

    with caplog.at_level(logging.ERROR):
        async with connected(EventFeed(lambda: informers, encode=row)) as client:
            assert sorted(client.object_names("failed")) == ["a", "b"]
            assert client.messages[-1].event == "synced"
    assert len(caplog.records) == 2, "one line for each object"
    for record in caplog.records:
        assert "row returned a dict" in record.getMessage()
        assert "json.dumps(...)" in record.getMessage()
    assert [bool(record.exc_info) for record in caplog.records] == [True, False]


async def test_a_wrong_argument_of_a_feed_raises_at_its_construction(
    informers: SharedInformerFactory,
) -> None:
    def one(obj: KubeObject) -> bytes:
        return obj.raw

    async def late(informer: EventSource, obj: KubeObject) -> bytes:
        return obj.raw

    make: Any = EventFeed
    with pytest.raises(TypeError, match=r"encode=.*one\(obj.*to be called as \(informer, obj\)"):
        make(lambda: informers, encode=one)
    with pytest.raises(TypeError, match=r"encode=.*late is async"):
        make(lambda: informers, encode=late)
    with pytest.raises(TypeError, match="encode= is a function of an informer and an object"):
        make(lambda: informers, encode="name")
    with pytest.raises(TypeError, match=r"write EventFeed\(lambda: \[pods\]\), not <SharedInf"):
        make(informers)
    with pytest.raises(TypeError, match="limit must be a whole number"):
        make(lambda: informers, limit="many")
    with pytest.raises(TypeError, match="clients must be a whole number"):
        make(lambda: informers, clients=1.5)
    with pytest.raises(ValueError, match="interval must be seconds, or 0 for no pause"):
        make(lambda: informers, interval=-1)
    with pytest.raises(ValueError, match="heartbeat must be seconds"):
        make(lambda: informers, heartbeat=0)
    with pytest.raises(TypeError, match="pulse="):
        make(lambda: informers, pulse=one)


async def test_a_feed_sends_the_stored_objects_of_an_informer_that_converts(
    cluster: Cluster,
) -> None:
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods", convert=lambda pod: pod.name.upper())
        await informers.wait_synced(5)
        async with connected(EventFeed(lambda: [pods])) as client:
            label(cluster, "a", "cart")
            cluster.delete("pods", "b", namespace="web")
            await wait_until(lambda: bool(client.object_names("deleted")))
            assert sorted(client.object_names("added")) == ["a", "b"]
            assert client.object_names("updated") == ["a"]
            assert client.object_names("deleted") == ["b"]


async def test_a_feed_rejects_an_informer_without_json_before_it_responds(
    cluster: Cluster,
) -> None:
    class Pod(msgspec.Struct, frozen=True):
        metadata: dict[str, Any]

    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods", model=Pod)
        await informers.wait_synced(5)
        feed, client = EventFeed(lambda: [pods]), AsgiClient()
        with pytest.raises(
            UsageError, match=r"an EventFeed sends an object's JSON.* use convert= in place"
        ):
            await feed(make_scope(), client.receive, client.send)
    assert client.body == b""


async def test_an_object_for_which_the_encoder_returns_none_is_left_out(
    informers: SharedInformerFactory,
) -> None:
    feed = EventFeed(lambda: informers, encode=lambda informer, obj: None)
    async with connected(feed) as client:
        assert client.object_names("added") == []


# -- when --------------------------------------------------------------------------------------


async def test_an_idle_feed_sends_heartbeats(informers: SharedInformerFactory) -> None:
    async with connected(EventFeed(lambda: informers, heartbeat=0.005)) as client:
        await wait_until(lambda: client.body.count(b": alive\n\n") > 3)


async def test_a_pulse_of_the_program_is_sent_right_after_the_reset(
    informers: SharedInformerFactory,
) -> None:
    pulse = b'event: health\ndata: {"fine":true}\n\n'
    async with connected(EventFeed(lambda: informers, pulse=lambda: pulse)) as client:
        assert [frame.event for frame in client.messages[:2]] == ["reset", "health"]


async def test_events_within_an_interval_are_sent_together(
    cluster: Cluster, informers: SharedInformerFactory
) -> None:
    async with connected(EventFeed(lambda: informers, interval=0.3)) as client:
        before = client.sends
        for number in range(10):
            create(cluster, f"new-{number}")
            await asyncio.sleep(0)
        await wait_until(lambda: len(client.object_names("added")) == 12)
        assert client.sends - before <= 3


# -- slow clients ------------------------------------------------------------------------------


async def test_a_client_whose_socket_is_full_delays_no_other(
    cluster: Cluster, informers: SharedInformerFactory
) -> None:
    feed = EventFeed(lambda: informers, limit=10)
    async with connected(feed) as slow, connected(feed) as quick:
        slow.writable.clear()
        for number in range(200):
            label(cluster, "ab"[number % 2], f"version-{number}")
            await asyncio.sleep(0)
        await wait_until(lambda: b"version-199" in quick.body)
        assert slow.object_names("updated") == []
        slow.writable.set()
        await wait_until(lambda: b"version-199" in slow.body and b"version-198" in slow.body)
        assert len(slow.object_names("updated")) <= 12, "merged by object beyond the limit"


async def test_a_large_cache_is_sent_in_parts_and_other_informers_have_their_turn(
    cluster: Cluster, informers: SharedInformerFactory
) -> None:
    for number in range(600):
        create(cluster, f"pod-{number}", padding="x" * 60)
    cluster.create("nodes", {"metadata": {"name": "node-1"}})
    informers.informer("nodes")
    await informers.wait_synced(30)
    await wait_until(lambda: len(informers.informer("pods").lister) == 602)
    async with connected(EventFeed(lambda: informers)) as client:
        names = client.object_names("added")
        assert len(names) == len(set(names)) == 603
        assert names.index("node-1") < 602, "it doesn't wait for all of the pods"
        assert client.messages[-1].event == "synced"


# -- leaving -----------------------------------------------------------------------------------


async def test_a_client_that_disconnects_frees_its_stream(
    informers: SharedInformerFactory, pods: SharedInformer
) -> None:
    feed = EventFeed(lambda: informers)
    async with connected(feed):
        assert feed.clients == 1
        assert "listeners=1" in repr(pods)
    assert feed.clients == 0
    assert "listeners=0" in repr(pods)


async def test_a_client_that_disconnects_with_a_full_socket_frees_its_stream(
    cluster: Cluster, informers: SharedInformerFactory, pods: SharedInformer
) -> None:
    async with connected(EventFeed(lambda: informers)) as client:
        client.writable.clear()
        label(cluster, "a", "cart")
        await asyncio.sleep(0.005)
    assert "listeners=0" in repr(pods)


async def test_a_server_that_raises_for_a_disconnected_client_ends_the_response(
    cluster: Cluster, informers: SharedInformerFactory, pods: SharedInformer
) -> None:
    async with connected(EventFeed(lambda: informers)) as client:
        client.broken = True
        label(cluster, "a", "cart")
        await wait_until(lambda: "listeners=0" in repr(pods))


async def test_a_request_that_is_cancelled_frees_its_stream(
    informers: SharedInformerFactory, pods: SharedInformer
) -> None:
    client = AsgiClient()
    scope = {"type": "http", "method": "GET"}
    serving = asyncio.ensure_future(
        EventFeed(lambda: informers)(scope, client.receive, client.send)
    )
    await wait_until(lambda: client.synced)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert "listeners=0" in repr(pods)


@pytest.mark.parametrize("interval", [0.0, 0.02])
async def test_closing_ends_every_response_and_rejects_new_ones(
    informers: SharedInformerFactory, interval: float
) -> None:
    feed = EventFeed(lambda: informers, interval=interval)
    async with connected(feed) as client:
        feed.close()
        await wait_until(lambda: client.ended, timeout=10)
    assert (await request(feed)).status == 503
    assert "closed" in repr(feed)


async def test_responses_end_with_the_informers(cluster: Cluster) -> None:
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        informers.informer("pods")
        feed = EventFeed(lambda: informers)
        client = AsgiClient()
        serving = asyncio.create_task(feed(make_scope(), client.receive, client.send))
        await wait_until(lambda: client.synced)
    await asyncio.wait_for(serving, 30)
    assert client.ended
    late = await request(feed)
    assert late.status == 503
    assert "has ended" in late.json["detail"]


def test_a_feed_of_an_informer_that_is_not_started_ends_with_an_error() -> None:
    async def main() -> None:
        informers = SharedInformerFactory(ClusterSource(Cluster()))
        informers.informer("pods")
        client = AsgiClient()
        with pytest.raises(UsageError, match="informer of pods was not started within 5 s"):
            await EventFeed(lambda: informers, heartbeat=1)(
                make_scope(), client.receive, client.send
            )

    run(main(), seed=1)


@pytest.mark.parametrize("function", ["encode", "pulse"])
async def test_a_function_of_a_feed_that_raises_a_cancellation_ends_no_response_silently(
    cluster: Cluster, informers: SharedInformerFactory, function: str
) -> None:
    def cancel(*_: object) -> Any:
        raise asyncio.CancelledError

    create(cluster, "web")
    broken: dict[str, Any] = {function: cancel}
    feed, client = EventFeed(lambda: informers, **broken), AsgiClient()
    serving = asyncio.create_task(feed(make_scope(), client.receive, client.send))
    if function == "encode":
        await wait_until(lambda: client.synced)
        client.disconnected.set()
        await serving
        assert "failed" in [each.event for each in client.messages]
    else:
        with pytest.raises(HandlerCancelled, match=r"pulse=.*raised a CancelledError of its own"):
            await serving


async def test_a_client_beyond_the_limit_receives_a_503(
    informers: SharedInformerFactory,
) -> None:
    feed = EventFeed(lambda: informers, clients=1)
    async with connected(feed):
        rejected = await request(feed)
        assert (rejected.status, rejected.headers["retry-after"]) == (503, "2")
    async with connected(feed) as client:
        assert client.status == 200


async def test_a_head_request_gets_a_head(informers: SharedInformerFactory) -> None:
    answer = await request(EventFeed(lambda: informers), "HEAD")
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize("kind", ["websocket", "lifespan"])
async def test_a_request_that_is_not_http_is_rejected(
    informers: SharedInformerFactory, kind: str
) -> None:
    client = AsgiClient()
    for app in (EventFeed(lambda: informers), Probe(lambda: informers)):
        with pytest.raises(UsageError, match=kind):
            await app({"type": kind}, client.receive, client.send)


# -- probes ------------------------------------------------------------------------------------


async def test_a_synced_and_fresh_cache_is_ready(informers: SharedInformerFactory) -> None:
    answer = await request(Probe(lambda: informers, ready))
    assert (answer.status, answer.json["ok"], answer.json["wrong"]) == (200, True, {})
    assert answer.json["informers"]["pods"].startswith("watching for ")


async def test_a_probe_gives_the_reason_while_a_cache_is_not_synced() -> None:
    async with ApiServer() as server:
        server.faults.forbid(resource="pods")
        async with (
            Client(server.url) as client,
            SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers,
        ):
            pods = informers.informer("pods")
            await wait_until(lambda: pods.health.error is not None)
            answer = await request(Probe(lambda: informers, ready))
            assert answer.status == 503
            assert "not synced" in answer.json["wrong"]["pods"]
            assert "forbidden" in answer.json["wrong"]["pods"]
            assert (await request(Probe(lambda: informers, alive))).status == 200
            server.faults.clear()
            await informers.wait_synced(30)
            assert (await request(Probe(lambda: informers, ready))).status == 200


async def test_a_probe_without_details_answers_with_its_result_only(
    informers: SharedInformerFactory,
) -> None:
    answer = await request(Probe(lambda: informers, ready, details=False))
    assert (answer.status, answer.json) == (200, {"ok": True})


async def test_a_wrong_argument_of_a_probe_raises_at_its_construction(
    informers: SharedInformerFactory,
) -> None:
    async def later(informers: object) -> dict[str, str]:
        return {}

    make: Any = Probe
    with pytest.raises(TypeError, match=r"write Probe\(lambda: \[pods\]\), not <SharedInformerF"):
        make(informers)
    with pytest.raises(TypeError, match="ready, alive or another function, not 'ready'"):
        make(lambda: informers, "ready")
    with pytest.raises(TypeError, match="later is async"):
        make(lambda: informers, later)
    with pytest.raises(TypeError, match=r"to be called as \(informers\)"):
        make(lambda: informers, lambda: None)


async def test_a_cache_is_not_ready_when_the_last_proof_is_too_old(
    informers: SharedInformerFactory,
) -> None:
    await asyncio.sleep(0.002)
    wrong = ready(informers, within=0.001)
    assert wrong["pods"].startswith("not known to be up to date: watching")
    assert ready(informers, within=None) == {}


async def test_an_informer_that_has_ended_is_neither_alive_nor_ready(cluster: Cluster) -> None:
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods")
        await informers.wait_synced(30)
    assert list(alive([pods])) == ["pods"]
    assert list(ready([pods])) == ["pods"]
    assert (await request(Probe(lambda: [pods], alive))).status == 503


async def test_an_informer_that_rejected_every_object_is_not_ready(cluster: Cluster) -> None:
    def broken(obj: KubeObject) -> str:
        raise KeyError(obj.name)

    cluster.create("pods", {"metadata": {"name": "rejected"}})
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods", indexers={"broken": broken})
        await informers.wait_synced(timeout=30)
        assert not pods.health.ok
        assert alive(informers) == {}
        assert "3 objects rejected: none is cached" in ready(informers)["pods"]
