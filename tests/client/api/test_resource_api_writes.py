"""Writes over HTTP: what goes out, what comes back, and that nothing is sent twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from traceback import format_exception
from typing import Any, cast

import pytest
from aiohttp import web

from aioinformer import Client, ResourceWriter, Timeouts
from aioinformer.api import Scale
from aioinformer.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    ConnectionFailed,
    ConnectionLost,
    Forbidden,
    Invalid,
    NotRunning,
    ProtocolError,
    RequestTimedOut,
    TooManyRequests,
    TransportError,
    UsageError,
)
from aioinformer.testing import ApiServer, Cluster
from tests.client.kubeconfigs import connect, make_kubeconfig, write_kubeconfig
from tests.client.servers import free_address, http_server, tcp_server
from tests.client.transports import PODS

MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_CONCURRENT_REQUESTS = 100
WEB_0: dict[str, Any] = {"metadata": {"name": "web-0"}, "spec": {"nodeName": "n"}}
STORED = {"metadata": {"name": "web-0", "namespace": "web", "uid": "u", "resourceVersion": "7"}}


def status(code: int, reason: str, message: str = "", **details: Any) -> web.Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return web.json_response(body | {"details": details}, status=code)


@dataclass
class Recorder:
    """A server that notes what it is sent, and answers the same to everything."""

    answer: web.Response | None = None
    received: list[web.Request] = field(default_factory=list[web.Request])
    bodies: list[bytes] = field(default_factory=list[bytes])

    async def receive(self, request: web.Request) -> web.Response:
        self.received.append(request)
        self.bodies.append(await request.read())
        code = 201 if request.method == "POST" else 200
        return self.answer or web.json_response(STORED, status=code)


@asynccontextmanager
async def writing(server: str, **options: Any) -> AsyncGenerator[ResourceWriter]:
    async with Client(server, **options) as client:
        yield client.api(PODS, namespace="web")


# -- what goes out -----------------------------------------------------------------------------


async def test_each_write_sends_its_method_its_content_type_and_its_body() -> None:
    recorder = Recorder()
    async with http_server(recorder.receive) as server, writing(server) as pods:
        await pods.create(WEB_0)
        await pods.apply(WEB_0, field_manager="me")
        await pods.delete("web-0", uid="u")
        await pods.get("web-0")
    created, applied, deleted, read = recorder.received
    assert (created.method, created.path) == ("POST", "/api/v1/namespaces/web/pods")
    assert created.headers["Content-Type"] == "application/json"
    assert created.headers["Accept"] == "application/json"
    assert json.loads(recorder.bodies[0])["spec"] == {"nodeName": "n"}
    assert dict(applied.query) == {"fieldManager": "me", "force": "true"}
    assert applied.headers["Content-Type"] == "application/apply-patch+yaml"
    assert json.loads(recorder.bodies[2])["preconditions"] == {"uid": "u"}
    assert (deleted.method, read.method) == ("DELETE", "GET")
    assert (recorder.bodies[3], "Content-Type" in read.headers) == (b"", False)


async def test_each_verb_works_against_a_server() -> None:
    cluster = Cluster()
    async with ApiServer(cluster) as server, writing(server.url) as pods:
        made = await pods.create(WEB_0)
        with pytest.raises(AlreadyExists) as caught:
            await pods.create(WEB_0)
        assert caught.value.phase == "write"
        changed = await pods.update({**made.to_dict(), "spec": {"nodeName": "m"}})
        with pytest.raises(Conflict, match="retry_on_conflict"):
            await pods.update(made)
        updated = await pods.update_status({**changed.to_dict(), "status": {"phase": "Running"}})
        assert updated["status"]["phase"] == "Running"
        patched = await pods.patch("web-0", [{"op": "add", "path": "/spec/x", "value": 1}])
        assert patched["spec"] == {"nodeName": "m", "x": 1}
        applied = await pods.apply(
            {"metadata": {"name": "web-0"}, "spec": {"y": 1}}, field_manager="me"
        )
        assert applied["spec"]["y"] == 1
        assert await pods.get("web-0") == applied
        deleted = await pods.delete("web-0", uid=made.uid)
        assert deleted is not None  # the last state, which servers answer for a pod
        assert deleted.uid == made.uid


async def test_the_deletion_of_an_object_with_a_finalizer_returns_the_object() -> None:
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "a", "namespace": "web", "finalizers": ["x/y"]}})
    async with ApiServer(cluster) as server, writing(server.url) as pods:
        left = await pods.delete("a")
        assert left is not None
        assert left.deletion_timestamp is not None


# -- once, and no more -------------------------------------------------------------------------


async def test_a_write_with_a_rejected_token_is_sent_again_with_a_new_one(tmp_path: Path) -> None:
    """Nothing was done by a server that doesn't know who asks."""
    received: list[tuple[str, bytes]] = []

    async def receive(request: web.Request) -> web.Response:
        received.append((request.headers["Authorization"], await request.read()))
        known = request.headers["Authorization"] == "Bearer new"
        return web.json_response(STORED) if known else status(401, "Unauthorized")

    token = tmp_path / "token"
    token.write_text("old")
    async with http_server(receive) as server:
        content = make_kubeconfig(cluster={"server": server}, user={"tokenFile": "token"})
        async with connect(write_kubeconfig(tmp_path, content)) as client:
            token.write_text("new")
            assert (await client.api(PODS, namespace="web").update(WEB_0)).uid == "u"
    assert [header for header, _ in received] == ["Bearer old", "Bearer new"]
    assert received[0][1] == received[1][1] != b""


@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete"])
async def test_a_write_on_a_connection_that_breaks_is_not_sent_again(verb: str) -> None:
    """Aiohttp would send PUT and DELETE once more: the connection has carried a request before."""
    requests: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            requests.append(head.split()[0])
            if not head.startswith(b"GET"):
                return  # it hangs up; perhaps it has done it
            body = json.dumps(STORED).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()

    async with tcp_server(talk) as address, writing(f"http://{address}") as pods:
        writes: dict[str, Callable[[], Awaitable[object]]] = {
            "create": lambda: pods.create(WEB_0),
            "update": lambda: pods.update(WEB_0),
            "patch": lambda: pods.patch("web-0", {}),
            "delete": lambda: pods.delete("web-0"),
        }
        await pods.get("web-0")
        with pytest.raises(ConnectionLost, match="may or may not have done it") as caught:
            await writes[verb]()
    assert caught.value.phase == "write"
    assert len(requests) == 2


async def test_a_write_without_a_connection_is_reported_as_failed() -> None:
    async with writing(f"http://{await free_address()}") as pods:
        with pytest.raises(ConnectionFailed) as caught:
            await pods.create(WEB_0)
    assert "unknown" not in str(caught.value)
    assert caught.value.phase == "write"


async def test_the_error_of_a_write_that_timed_out_states_that_its_effect_is_unknown() -> None:
    async def silent(request: web.Request) -> web.Response:
        await asyncio.sleep(10)
        return web.Response()

    brisk = Timeouts(read=0.05)
    async with http_server(silent) as server, writing(server, timeouts=brisk) as pods:
        with pytest.raises(RequestTimedOut, match="may or may not have done it") as caught:
            await pods.update(WEB_0)
    assert str(caught.value).startswith("PUT http://")


async def test_a_slow_endless_response_to_a_write_ends_at_the_total_timeout() -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.005)

    async with http_server(drip) as server, writing(server, timeouts=Timeouts(whole=0.05)) as pods:
        with pytest.raises(RequestTimedOut, match=r"did not end in 0\.05 s; the server") as late:
            await pods.create(WEB_0)
    assert "CancelledError" not in "".join(format_exception(late.value))


async def test_a_response_to_a_write_beyond_the_size_limit_is_a_protocol_error() -> None:
    async def endless(request: web.Request) -> web.Response:
        return web.Response(body=b" " * (MAX_BODY_BYTES + 1))

    async with http_server(endless) as server, writing(server) as pods:
        with pytest.raises(ProtocolError, match="longer than"):
            await pods.create(WEB_0)


async def test_an_answer_that_is_no_object_is_an_error_of_the_write() -> None:
    for answer in (web.Response(text="<html>", content_type="text/html"), web.Response(status=204)):
        async with http_server(Recorder(answer).receive) as server, writing(server) as pods:
            with pytest.raises(ProtocolError) as caught:
                await pods.create(WEB_0)
        assert caught.value.phase == "write"


async def test_writes_do_not_wait_behind_lists() -> None:
    """As many lists as there are places for hang; a lease is read and renewed all the same."""
    full = asyncio.Event()
    hanging: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/api/v1/pods":
            hanging.append(request.path)
            if len(hanging) == MAX_CONCURRENT_REQUESTS:
                full.set()
            await asyncio.sleep(60)
        return web.json_response(STORED)

    async def lists(client: Client) -> None:
        sent = (client.get_raw("/api/v1/pods") for _ in range(MAX_CONCURRENT_REQUESTS + 1))
        await asyncio.gather(*sent)

    async with http_server(answer) as server, Client(server) as client:
        listing = asyncio.create_task(lists(client))
        await full.wait()
        pods = client.api(PODS, namespace="web")
        async with asyncio.timeout(30):
            await pods.update(await pods.get("web-0"))
        listing.cancel()
        await asyncio.gather(listing, return_exceptions=True)


async def test_a_write_with_a_closed_client_raises_not_running() -> None:
    pods = Client("http://127.0.0.1:1").api(PODS, namespace="web")
    with pytest.raises(NotRunning):
        await pods.create(WEB_0)


def test_a_writer_shows_its_resource_and_its_namespace() -> None:
    client = Client("http://127.0.0.1:1")
    writer = client.api(PODS, namespace="web")
    assert (writer.resource, writer.namespace) == (PODS, "web")
    assert repr(writer) == "<ResourceApi of pods in web>"
    with pytest.raises(ValueError, match="cluster-scoped"):
        client.api("nodes", namespace="web")


# -- refusals ----------------------------------------------------------------------------------


async def test_the_error_of_a_forbidden_write_names_the_missing_permission() -> None:
    recorder = Recorder(status(403, "Forbidden", 'pods is forbidden: User "jane" cannot patch'))
    async with http_server(recorder.receive) as server, writing(server) as pods:
        with pytest.raises(Forbidden) as caught:
            await pods.patch("web-0", {}, subresource="status")
    command = "kubectl auth can-i patch pods/web-0 -n web --subresource=status --as=jane"
    assert f"must allow patch on pods/status: check with `{command}`" in str(caught.value)


async def test_the_error_of_an_invalid_write_names_the_invalid_fields() -> None:
    causes = [{"field": "spec.size", "message": "must be positive", "reason": "FieldValueInvalid"}]
    recorder = Recorder(status(422, "Invalid", "Pod is invalid", causes=causes))
    async with http_server(recorder.receive) as server, writing(server) as pods:
        with pytest.raises(Invalid, match=r"Pod is invalid; spec\.size: must be positive"):
            await pods.create(WEB_0)


async def test_a_failed_tls_handshake_of_a_write_is_a_transport_error() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None: ...

    async with tcp_server(hang_up) as address, writing(f"https://{address}") as pods:
        with pytest.raises(TransportError) as caught:
            await pods.create(WEB_0)
    assert caught.value.phase == "write"


# -- subresources and collections --------------------------------------------------------------

SCALE = {
    "kind": "Scale",
    "apiVersion": "autoscaling/v1",
    "metadata": {"name": "shop", "namespace": "web", "resourceVersion": "9"},
    "spec": {"replicas": 3},
    "status": {"replicas": 2, "selector": "app=shop"},
}


async def test_replicas_are_read_and_set_by_the_scale() -> None:
    recorder = Recorder()
    async with http_server(recorder.receive) as server, Client(server) as client:
        deployments = client.api("deployments", namespace="web")

        async def scaled(key: str, replicas: int | None) -> Scale:
            recorder.answer = web.json_response(SCALE)
            if replicas is None:
                return await deployments.get_scale(key)
            return await deployments.scale(key, replicas)

        assert await scaled("shop", None) == Scale(3, 2, "app=shop", "9")
        assert (await scaled("shop", 3)).replicas == 3
    path = "/apis/apps/v1/namespaces/web/deployments/shop/scale"
    assert [(each.method, each.path) for each in recorder.received] == [
        ("GET", path),
        ("PATCH", path),
    ]
    assert json.loads(recorder.bodies[1]) == {"spec": {"replicas": 3}}


async def test_an_answer_that_is_no_scale_is_a_protocol_error_without_its_bytes() -> None:
    recorder = Recorder(web.json_response(STORED))
    async with http_server(recorder.receive) as server, Client(server) as client:
        with pytest.raises(ProtocolError, match=r"the answer of \d+ bytes is no Scale") as caught:
            await client.api("deployments", namespace="web").get_scale("shop")
    assert "web-0" not in repr(caught.value)


async def test_a_pod_is_evicted_by_its_subresource() -> None:
    recorder = Recorder()
    async with http_server(recorder.receive) as server, Client(server) as client:
        await client.api("pods").evict("web/web-0", grace_period=5)
        recorder.answer = status(429, "TooManyRequests", "disruption budget")
        with pytest.raises(TooManyRequests, match="disruption budget"):
            await client.api("pods").evict("web/web-0")
    assert recorder.received[0].path == "/api/v1/namespaces/web/pods/web-0/eviction"
    assert json.loads(recorder.bodies[0]) == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web-0", "namespace": "web"},
        "deleteOptions": {"gracePeriodSeconds": 5},
    }


async def test_a_collection_is_deleted_in_one_namespace_with_its_selectors() -> None:
    recorder = Recorder()
    async with http_server(recorder.receive) as server, Client(server) as client:
        pods = client.api("pods", namespace="web")
        await pods.delete_collection(labels="app=shop", propagation="Foreground")
        with pytest.raises(UsageError, match="one namespace at a time"):
            await client.api("pods").delete_collection()
        await client.api("nodes").delete_collection(fields="metadata.name=a")
    one, other = recorder.received
    assert (one.method, one.path) == ("DELETE", "/api/v1/namespaces/web/pods")
    assert dict(one.query) == {"labelSelector": "app=shop"}
    assert json.loads(recorder.bodies[0])["propagationPolicy"] == "Foreground"
    assert (other.path, dict(other.query)) == (
        "/api/v1/nodes",
        {"fieldSelector": "metadata.name=a"},
    )


async def test_a_log_is_read_line_by_line_as_it_arrives() -> None:
    received: list[web.Request] = []

    async def respond(request: web.Request) -> web.StreamResponse:
        received.append(request)
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in (b"one\ntw", b"o\n\nfo\xff", b"ur"):
            await response.write(chunk)
            await asyncio.sleep(0.01)
        return response

    async with http_server(respond) as server, Client(server) as client:
        pods = client.api("pods", namespace="web")
        async with pods.log("web-0", container="main", tail_lines=5, follow=True) as lines:
            assert [line async for line in lines] == ["one", "two", "", "fo\ufffdur"]
        async with pods.log("web-0") as lines:
            assert await anext(lines) == "one"
    assert received[0].path == "/api/v1/namespaces/web/pods/web-0/log"
    assert dict(received[0].query) == {"container": "main", "tailLines": "5", "follow": "true"}


async def test_a_log_that_the_server_rejects_is_an_error() -> None:
    recorder = Recorder(status(400, "BadRequest", "a container name must be specified"))
    async with http_server(recorder.receive) as server, Client(server) as client:
        with pytest.raises(BadRequest, match="a container name must be specified"):
            async with client.api("pods").log("web/web-0"):
                pass
        with pytest.raises(TypeError, match="did you mean 'tail_lines'"):
            async with client.api("pods").log("web/web-0", **cast("Any", {"taillines": 5})):
                pass
