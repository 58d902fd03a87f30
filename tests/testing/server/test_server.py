"""Tests of the server as a process: restarts, broken connections, ports, certificates."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import ssl
import stat
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import msgspec
import pytest
import trustme

from aioinformer.errors import NotRunning
from aioinformer.testing import ApiServer, Cluster
from tests.testing.conftest import get

POD = {"metadata": {"name": "web-0"}}
PODS = "/api/v1/namespaces/default/pods"


def change(server: ApiServer, value: str) -> None:
    server.cluster.merge_patch("pods", "web-0", {"metadata": {"labels": {"v": value}}})


async def test_a_server_without_a_given_cluster_stamps_objects_with_the_real_time() -> None:
    """A cluster that the test makes is the same in each run: its time begins in 2026."""
    before = dt.datetime.now(dt.UTC).replace(microsecond=0)
    made = ApiServer().cluster.create("pods", POD)["metadata"]["creationTimestamp"]
    same = Cluster().create("pods", POD)["metadata"]["creationTimestamp"]

    assert before <= dt.datetime.fromisoformat(made) <= dt.datetime.now(dt.UTC)
    assert same == "2026-01-01T00:00:01Z"


async def test_a_server_that_restarts_breaks_its_watches_and_keeps_its_objects(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    server.cluster.create("pods", POD)
    url = server.url
    async with http.get("/api/v1/pods?watch=1") as response:
        assert b"web-0" in await response.content.readline()
        await server.stop()
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.content.read()
    with pytest.raises(aiohttp.ClientConnectorError):
        await http.get(PODS)
    await server.start()
    assert server.url == url
    assert len((await get(http, PODS))["items"]) == 1


async def test_a_restarted_server_keeps_its_data_but_not_the_earlier_events_of_watches(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    server.cluster.create("pods", POD)
    change(server, "a")
    async with http.get(f"{PODS}?watch=1&resourceVersion=2") as watching:
        assert b"MODIFIED" in await watching.content.readline()
        await server.restart()
        with pytest.raises(aiohttp.ClientError):
            await watching.content.read()
    assert len((await get(http, PODS))["items"]) == 1
    async with http.get(f"{PODS}?watch=1&resourceVersion=2") as watching:
        assert b'"code":410' in await watching.content.read()
    exact = await get(http, f"{PODS}?resourceVersion=2&resourceVersionMatch=Exact")
    assert len(exact["items"]) == 1


async def test_a_restarted_server_may_have_lost_everything(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    server.cluster.create("pods", POD)
    await server.restart(lose_data=True)
    assert await get(http, PODS) == {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "1"},
        "items": [],
    }


async def test_a_restarted_server_may_be_back_in_the_past(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    server.cluster.create("pods", POD)
    past, before = server.cluster.snapshot(), await get(http, PODS)
    change(server, "a")
    server.cluster.create("pods", {"metadata": {"name": "web-1"}})
    await server.restart(state=past)
    assert await get(http, PODS) == before
    change(server, "b")
    assert server.cluster.resource_version == 3  # this version is used a second time


async def test_dropped_connections_do_not_stop_the_server(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    async with http.get("/api/v1/pods?watch=1&resourceVersion=1") as response:
        server.drop_connections()
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.content.read()
    assert (await get(http, PODS))["items"] == []


@pytest.mark.parametrize("size", [1, 4 * 1024 * 1024], ids=["short", "long"])
async def test_a_broken_connection_ends_its_watch_and_is_not_logged(
    size: int, server: ApiServer, http: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    """Aiohttp would log an exception of a handler, with a traceback."""
    async with http.get("/api/v1/pods?watch=1&resourceVersion=1") as response:
        server.cluster.create("pods", POD | {"spec": {"x": "x" * size}})
        server.drop_connections()  # before the watch can write the event
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.content.read()
    assert len((await get(http, PODS))["items"]) == 1
    assert "0 watches" in repr(server)
    assert [record.getMessage() for record in caplog.records if record.name != "asyncio"] == []


async def test_leaving_ends_open_watches_at_once() -> None:
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ApiServer())
        http = await stack.enter_async_context(aiohttp.ClientSession(server.url))
        for _ in range(3):
            await stack.enter_async_context(http.get("/api/v1/pods?watch=1&resourceVersion=1"))
        assert "3 watches" in repr(server)
        before = loop.time()
        await server.stop()
        assert loop.time() - before < 1
        assert "0 watches" in repr(server)


async def test_two_servers_can_share_a_cluster() -> None:
    cluster = Cluster()
    async with ApiServer(cluster) as one, ApiServer(cluster) as other:
        assert one.url != other.url
        cluster.create("pods", POD)
        for server in (one, other):
            async with aiohttp.ClientSession(server.url) as http:
                assert len((await get(http, PODS))["items"]) == 1


async def test_a_server_on_a_used_port_is_an_error_and_does_not_run(
    server: ApiServer,
) -> None:
    other = ApiServer(port=int(server.url.rpartition(":")[2]))
    with pytest.raises(OSError, match="Address already in use"):
        await other.start()
    assert not other.running


def test_a_server_without_a_port_has_no_url() -> None:
    with pytest.raises(NotRunning):
        _ = ApiServer().url
    assert "no port yet stopped" in repr(ApiServer())


async def test_the_kubeconfig_names_the_server_and_only_its_owner_can_read_it(
    tmp_path: Path,
) -> None:
    async with ApiServer(token="sesame") as server:
        path = server.kubeconfig(tmp_path / "config")
        config = msgspec.yaml.decode(path.read_bytes())
        assert config["clusters"][0]["cluster"] == {"server": server.url}
        assert config["users"][0]["user"] == {"token": "sesame"}
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert "sesame" not in repr(server)


def names_in(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


@pytest.mark.parametrize("before", ["a file", "a link to a file", "a link to nothing", "hard link"])
async def test_a_kubeconfig_keeps_neither_mode_nor_links_of_what_it_replaces(
    tmp_path: Path, before: str
) -> None:
    path, other = tmp_path / "config", tmp_path / "other"
    if before != "a link to nothing":
        other.write_text("old")
        other.chmod(0o644)
    if "to" in before:
        path.symlink_to(other)
    else:
        path.hardlink_to(other)
    if before == "a file":
        other.unlink()

    async with ApiServer(token="sesame") as server:
        assert server.kubeconfig(path) == path

    assert not path.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "sesame" in path.read_text()
    assert before not in ("a link to a file", "hard link") or other.read_text() == "old"
    assert other.exists() == (before in ("a link to a file", "hard link"))
    assert set(names_in(tmp_path)) <= {"config", "other"}


@pytest.mark.parametrize("kind", ["a folder", "a FIFO", "a missing folder"])
async def test_a_kubeconfig_replaces_nothing_but_files(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "config"
    if kind == "a folder":
        path.mkdir()
    elif kind == "a FIFO":
        os.mkfifo(path)
    else:
        path = path / "config"
    before = names_in(tmp_path)

    async with ApiServer(token="sesame") as server:
        with pytest.raises(OSError, match=r"exists and is not a file|No such file"):
            server.kubeconfig(path)

    assert names_in(tmp_path) == before


async def test_a_server_with_a_tls_context_serves_https(tmp_path: Path) -> None:
    authority = trustme.CA()
    server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.tempfile() as chain:
        server_tls.load_cert_chain(chain)
    client_tls = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
    async with ApiServer(tls=server_tls) as server, aiohttp.ClientSession(server.url) as http:
        assert server.url.startswith("https://")
        async with http.get("/api/v1/pods?watch=1", ssl=client_tls) as response:
            assert response.status == 200
            server.drop_connections()
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.content.read()
        for ca, expected in (
            (None, {"server": server.url, "insecure-skip-tls-verify": True}),
            (tmp_path / "ca", {"server": server.url, "certificate-authority": f"{tmp_path}/ca"}),
        ):
            path = server.kubeconfig(tmp_path / "config", certificate_authority=ca)
            assert msgspec.yaml.decode(path.read_bytes())["clusters"][0]["cluster"] == expected
