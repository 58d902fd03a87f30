"""Tests of requests over HTTP with a plain client, compared with the answers of a real server."""

from __future__ import annotations

import asyncio
import datetime as dt
import gzip
import io
from random import Random

import aiohttp
import msgspec
import pytest

from aioinformer.testing import ApiServer, Cluster, Features, ManualClock
from tests.client.kubeconfig.kubectl_cases import BOMB
from tests.client.recordings import read_recording
from tests.testing.conftest import get
from tests.testing.recorded_exchanges import WIDGETS

POD = {"metadata": {"name": "web-0", "labels": {"app": "shop"}}, "spec": {"nodeName": "node-1"}}
PODS = "/api/v1/namespaces/default/pods"
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
APPLY_PATCH = {"Content-Type": "application/apply-patch+yaml"}


# -- errors ------------------------------------------------------------------------------------


async def test_a_wrong_or_missing_token_is_unauthorized() -> None:
    """Recording 24."""
    expected = read_recording("24-list-unauthorized")
    async with ApiServer(token="right") as server, aiohttp.ClientSession(server.url) as http:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            async with http.get(PODS, headers=headers) as response:
                assert response.status == 401
                assert await response.read() == expected.body
        async with http.get(PODS, headers={"Authorization": "Bearer right"}) as response:
            assert response.status == 200


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status"),
    [
        ("POST", PODS, {"Content-Type": "application/yaml"}, b"- a", 400),
        ("POST", PODS, {"Content-Type": "application/yaml"}, BOMB.encode(), 400),
        ("PATCH", f"{PODS}/a?fieldManager=m", APPLY_PATCH, BOMB.encode(), 400),
        ("POST", PODS, {"Content-Type": "text/plain"}, b"a: b", 415),
        ("POST", PODS, {"Content-Type": "application/json"}, b"[1]", 400),
        ("POST", f"{PODS}?dryRun=Some", {"Content-Type": "application/json"}, b"{}", 422),
        ("PATCH", f"{PODS}/a", {"Content-Type": "application/json"}, b"{}", 415),
        ("PATCH", f"{PODS}/a", {"Content-Type": "application/json-patch+json"}, b"[]", 404),
        ("PUT", f"{PODS}/a", {"Content-Type": "application/json"}, b'{"metadata":1}', 400),
        ("PUT", f"{PODS}/a", {}, b'{"metadata":{"name":"b"}}', 400),
        ("DELETE", f"{PODS}/a", {}, b'{"preconditions":1}', 400),
        ("DELETE", "/api/v1/namespaces", {}, b"", 405),
        ("DELETE", "/api/v1/pods", {}, b"", 405),
        ("POST", "/api/v1/pods", {"Content-Type": "application/json"}, b"{}", 405),
        ("GET", PODS, {"Accept": "application/vnd.kubernetes.protobuf"}, b"", 406),
        ("GET", "/api/v1/namespaces/web/nodes", {}, b"", 404),
        ("GET", f"{PODS}/a/log", {}, b"", 404),
        ("GET", f"{PODS}?limit=x", {}, b"", 400),
        ("GET", f"{PODS}?sendInitialEvents=true", {}, b"", 422),
        ("GET", "/nowhere", {}, b"", 404),
    ],
)
async def test_a_bad_request_is_answered_with_a_status(
    http: aiohttp.ClientSession,
    method: str,
    path: str,
    headers: dict[str, str],
    body: bytes,
    status: int,
) -> None:
    async with http.request(method, path, headers=headers, data=body) as response:
        assert response.status == status
        if response.content_type == "application/json":
            assert (await response.json())["code"] == status


async def test_an_exception_of_the_server_is_logged_and_answered_with_a_status(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def read_broken_clock() -> dt.datetime:
        raise ZeroDivisionError("the clock of this test")

    async with (
        ApiServer(Cluster(clock=read_broken_clock)) as server,
        aiohttp.ClientSession(server.url) as http,
    ):
        async with http.post(PODS, json=POD) as response:
            assert response.status == 500
            status = await response.json()
        assert (status["kind"], status["reason"]) == ("Status", "InternalError")
        assert "ZeroDivisionError('the clock of this test')" in status["message"]
        assert (await get(http, PODS))["items"] == []
    [record] = [each for each in caplog.records if each.exc_info]
    assert record.getMessage() == f"POST {PODS}: the embedded server failed"


async def test_a_body_that_is_too_long_is_an_error(http: aiohttp.ClientSession) -> None:
    headers = {"Content-Type": "application/json"}
    body = io.BytesIO(b" " * (3 * 1024 * 1024 + 1))
    async with http.post(PODS, headers=headers, data=body) as response:
        assert response.status == 413
        assert (await response.json())["reason"] == "RequestEntityTooLarge"


# -- objects -----------------------------------------------------------------------------------


async def test_an_object_is_created_changed_and_deleted(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    async with http.post(PODS, json=POD) as response:
        assert response.status == 201
        created = await response.json()
    assert created == server.cluster.get("pods", "web-0")
    created["spec"]["nodeName"] = "node-2"
    async with http.put(f"{PODS}/web-0", json=created) as response:
        assert (await response.json())["spec"] == {"nodeName": "node-2"}
    async with http.put(f"{PODS}/web-0", json=created) as response:
        assert response.status == 409
    patch = b'{"metadata":{"labels":{"app":null}}}'
    async with http.patch(f"{PODS}/web-0", data=patch, headers=MERGE_PATCH) as response:
        assert "labels" not in (await response.json())["metadata"]
    assert (await get(http, f"{PODS}/web-0"))["metadata"]["generation"] == 2
    async with http.delete(f"{PODS}/web-0") as response:
        done = await response.json()
    assert (done["kind"], done["metadata"]["name"]) == ("Pod", "web-0")
    async with http.get(f"{PODS}/web-0") as response:
        assert response.status == 404


async def test_a_deletion_that_waits_for_finalizers_is_answered_with_the_object(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    server.cluster.create("nodes", {"metadata": {"name": "n", "finalizers": ["a.b/c"]}})
    async with http.delete("/api/v1/nodes/n") as response:
        assert (await response.json())["metadata"]["deletionTimestamp"]


async def test_a_deletion_checks_its_preconditions(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    server.cluster.create("pods", POD)
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}}
    async with http.delete(f"{PODS}/web-0", json=options) as response:
        assert response.status == 409


async def test_a_namespace_can_be_read_as_an_object(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    server.cluster.create("namespaces", {"metadata": {"name": "web"}})
    assert (await get(http, "/api/v1/namespaces/web"))["kind"] == "Namespace"
    assert (await get(http, "/api/v1/namespaces"))["kind"] == "NamespaceList"
    assert (await get(http, "/api/v1/namespaces/web/pods"))["kind"] == "PodList"


async def test_custom_resources_are_added_and_removed(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    server.cluster.add_resource(WIDGETS)
    server.cluster.create(WIDGETS, {"metadata": {"name": "w"}})
    path = "/apis/example.com/v1/widgets"
    assert (await get(http, path))["kind"] == "WidgetList"
    server.cluster.remove_resource(WIDGETS)
    async with http.get(path) as response:
        assert response.status == 404
        assert await response.text() == "404 page not found\n"


async def test_a_long_list_is_chunked_and_compressed_if_accepted(
    server: ApiServer,
) -> None:
    """Recordings 55 and 56."""
    noise = Random(0).randbytes(70_000).hex()  # long also after compression
    server.cluster.create("configmaps", {"metadata": {"name": "c"}, "data": {"x": noise}})
    expected = server.cluster.list("configmaps")
    async with aiohttp.ClientSession(server.url, auto_decompress=False) as http:
        for accepted in ("gzip", "identity"):
            headers = {"Accept-Encoding": accepted}
            async with http.get("/api/v1/configmaps", headers=headers) as response:
                assert response.headers["Transfer-Encoding"] == "chunked"
                body = await response.read()
            assert response.headers.get("Content-Encoding", "identity") == accepted
            assert (gzip.decompress(body) if accepted == "gzip" else body) == expected


# -- watches -----------------------------------------------------------------------------------


async def test_a_watch_sends_each_event_as_one_chunk_when_it_happens(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    async with http.get("/api/v1/pods?watch=1&resourceVersion=1") as response:
        assert response.status == 200  # the head is sent before any event
        assert response.headers["Transfer-Encoding"] == "chunked"
        for number in range(3):
            server.cluster.create("pods", {"metadata": {"name": f"web-{number}"}})
            chunk, ends_chunk = await response.content.readchunk()
            assert ends_chunk
            assert msgspec.json.decode(chunk)["object"]["metadata"]["name"] == f"web-{number}"


async def test_a_watch_ends_cleanly_after_its_timeout() -> None:
    clock = ManualClock()
    query = "watch=true&resourceVersion=1&timeoutSeconds=600&allowWatchBookmarks=true"
    async with (
        ApiServer(clock=clock) as server,
        aiohttp.ClientSession(server.url) as http,
        http.get(f"/api/v1/pods?{query}") as response,
    ):
        clock.advance(600)
        assert await response.read() == b""


async def test_a_watch_ends_when_its_client_disconnects(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    async with http.get("/api/v1/pods?watch=1&resourceVersion=1"):
        assert "1 watch" in repr(server)
    for _ in range(1000):
        if "0 watches" in repr(server):
            return
        await asyncio.sleep(0.001)
    pytest.fail(f"{server} still has the watch")


async def test_a_compressed_watch_list_has_a_member_for_each_event() -> None:
    """Aiohttp reads all members since 3.14 (aio-libs/aiohttp#12674)."""
    cluster = Cluster(features=Features(minor=37))
    options = ("watch=1", "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan")
    query = f"{PODS}?{'&'.join(options)}&allowWatchBookmarks=true"
    cluster.create("pods", {"metadata": {"name": "web-0"}})
    async with ApiServer(cluster) as server, aiohttp.ClientSession(server.url) as http:
        async with http.get(query, headers={"Accept-Encoding": "gzip"}) as watching:
            assert watching.headers["Content-Encoding"] == "gzip"
            for event_type in (b"ADDED", b"BOOKMARK"):
                assert event_type in await watching.content.readline()
            cluster.delete("pods", "web-0")
            assert b"DELETED" in await watching.content.readline()
        async with http.get(query, headers={"Accept-Encoding": "identity"}) as watching:
            assert "Content-Encoding" not in watching.headers


async def test_the_user_agent_is_the_field_manager_of_a_request_that_names_none(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    server.cluster.create("pods", POD)
    text = '{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"1"}}}'
    path = f"{PODS}/web-0?fieldManager=one"
    async with http.patch(path, data=text, headers=APPLY_PATCH) as response:
        assert response.status == 200
    for agent, label in (("shop/1.2 (linux)", "b"), ("", "c")):
        headers = MERGE_PATCH | {"User-Agent": agent}
        change = msgspec.json.encode({"metadata": {"labels": {label: "1"}}})
        async with http.patch(f"{PODS}/web-0", data=change, headers=headers) as response:
            assert response.status == 200
    managed = server.cluster.get("pods", "web-0")["metadata"]["managedFields"]
    owners = {each["manager"]: each["operation"] for each in managed}
    assert owners == {
        "one": "Apply",
        "before-first-apply": "Update",
        "shop": "Update",
        "unknown": "Update",
    }
