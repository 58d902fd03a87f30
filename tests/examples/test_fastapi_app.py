"""The FastAPI example, without a browser: probes, reads, streams and the end of it all."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from aioinformer.testing import ApiServer
from examples.fastapi_app.app import STATIC, create_app
from examples.fastapi_app.live import Live
from examples.fastapi_app.settings import LOCAL, RESOURCES, Settings
from tests.examples.fastapi_service import (
    Service,
    make_settings,
    reading_events,
    running_service,
    stalled_client,
)
from tests.processes import send_signal, start_process
from tests.promises.conftest import wait_until

ROOT = Path(__file__).parent.parent.parent


def pod(server: ApiServer, name: str, *, app: str = "shop", padding: str = "") -> dict[str, Any]:
    metadata = {"name": name, "labels": {"app": app, "padding": padding}}
    body = {"metadata": metadata, "spec": {"nodeName": "node-1"}, "status": {"phase": "Running"}}
    return server.cluster.create("pods", body, namespace="web")


@asynccontextmanager
async def entered(settings: Settings) -> AsyncGenerator[tuple[FastAPI, httpx.AsyncClient]]:
    """Run the application in its lifespan, with a client and no server in between."""
    app = create_app(settings)
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as http,
    ):
        yield app, http


async def synced(app: FastAPI) -> Live:
    live: Live = app.state.live
    for informer in live.informers.values():
        await informer.wait_synced(30)
    return live


# -- probes ------------------------------------------------------------------------------------


async def test_the_service_is_alive_but_not_ready_until_every_cache_is_synced(
    tmp_path: Path,
) -> None:
    async with ApiServer() as server:
        server.faults.status(503, resource="nodes", message="etcd is electing")
        async with entered(make_settings(server, tmp_path)) as (app, http):
            await app.state.live.informers["pods"].wait_synced(30)
            await wait_until(lambda: app.state.live.informers["nodes"].health.error is not None)
            assert (await http.get("/healthz")).status_code == 200
            answer = await http.get("/readyz")
            assert answer.status_code == 503
            assert "etcd is electing" in answer.json()["wrong"]["nodes"]
            assert "pods" not in answer.json()["wrong"]
            early = await http.get("/api/nodes")
            assert (early.status_code, early.headers["retry-after"]) == (503, "1")
            assert early.json()["detail"].startswith("the service has not read all nodes")
            server.faults.clear()
            await synced(app)
            assert (await http.get("/readyz")).json()["ok"] is True


# -- reads -------------------------------------------------------------------------------------


async def test_objects_are_answered_from_the_cache_as_the_server_sent_them(tmp_path: Path) -> None:
    async with ApiServer() as server:
        for name in ("web-0", "web-1"):
            pod(server, name)
        pod(server, "cart-0", app="cart")
        server.cluster.create("nodes", {"metadata": {"name": "node-1"}})
        async with entered(make_settings(server, tmp_path)) as (app, http):
            pods = (await synced(app)).informers["pods"].lister
            one = await http.get("/api/pods/web/web-0")
            assert one.content == pods["web/web-0"].raw
            assert one.headers["content-type"] == "application/json"
            assert (await http.get("/api/nodes/node-1")).json()["metadata"]["name"] == "node-1"
            many = (await http.get("/api/pods", params={"labels": "app=shop"})).json()
            names = {item["metadata"]["name"] for item in many["items"]}
            assert names == {"web-0", "web-1"}
            assert many["resourceVersion"] == pods.resource_version
            few = (await http.get("/api/pods", params={"limit": 1})).json()
            assert len(few["items"]) == 1
            counted = await http.get("/api/counts/pods", params={"fields": "spec.nodeName=node-1"})
            assert counted.json() == {"count": 3}
            assert (await http.get("/api/on-node/node-2")).json() == []


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/api/pods?labels=app%20in", 400, "unable to parse"),
        ("/api/counts/pods?labels=app%20in", 400, "unable to parse"),
        ("/api/pods?fields=spec..nodeName%3Da", 400, "spec..nodeName"),
        ("/api/pods?limit=-1", 422, "greater than"),
        ("/api/pods/web/web-7", 404, "no object 'web-7' in the namespace 'web'"),
        ("/api/widgets", 404, "not watched here"),
        ("/api/secrets", 403, "not shown"),
        ("/api/secrets/web/password", 403, "not shown"),
        ("/api/counts/secrets?fields=data.p%3DaHVudGVyMg%3D%3D", 403, "not shown"),
        ("/api/pods/web-0", 404, "/api/pods/NAMESPACE/web-0"),
    ],
)
async def test_the_answer_to_an_impossible_request_contains_the_reason(
    tmp_path: Path, path: str, status: int, says: str
) -> None:
    async with ApiServer() as server:
        secret = {"metadata": {"name": "password"}, "data": {"p": "aHVudGVyMg=="}}
        server.cluster.create("secrets", secret, namespace="web")
        async with entered(make_settings(server, tmp_path, "pods", "secrets")) as (app, http):
            await synced(app)
            answer = await http.get(path)
            assert answer.status_code == status
            assert says in answer.text
            assert (await http.get("/api/counts/secrets")).json() == {"count": 1}


async def test_the_history_contains_the_samples_of_the_last_minute(tmp_path: Path) -> None:
    async with ApiServer() as server:
        pod(server, "web-0")
        async with entered(make_settings(server, tmp_path, "pods")) as (app, http):
            live = await synced(app)
            live.history.sample()
            pod(server, "web-1")
            await wait_until(lambda: live.status.counters["pods"].added == 1)
            live.history.sample()
            samples = (await http.get("/history")).json()
            assert [each["objects"] for each in samples] == [1, 2]
            assert [each["added"] for each in samples] == [0, 1]


async def test_metrics_are_those_of_its_informers(tmp_path: Path) -> None:
    async with ApiServer() as server:
        pod(server, "web-0")
        async with entered(make_settings(server, tmp_path)) as (app, http):
            await synced(app)
            text = (await http.get("/metrics")).text
            assert 'aioinformer_objects{informer="pods"} 1.0' in text


# -- who may ask -------------------------------------------------------------------------------


async def test_requests_for_other_host_names_are_rejected(tmp_path: Path) -> None:
    async with ApiServer() as server, entered(make_settings(server, tmp_path)) as (_, http):
        foreign = await http.get("/", headers={"Host": "rebound.example"})
        assert foreign.status_code == 400


async def test_the_page_and_its_files_use_no_other_host_and_insert_no_html(
    tmp_path: Path,
) -> None:
    async with ApiServer() as server, entered(make_settings(server, tmp_path)) as (_, http):
        page = await http.get("/")
        assert (await http.head("/")).status_code == 200
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        linked = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
        assert len(linked) == 3
        for path in linked:
            answer = await http.get(f"/{path}")
            assert answer.status_code == 200
            assert answer.headers["content-security-policy"] == policy
    for file in STATIC.iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|[\"'(=]//", text), file.name
        assert not re.search(r"[\"'`(]/\w", text), f"{file.name}: not below a proxy's prefix"
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text)


def test_the_example_imports_no_private_module() -> None:
    private = re.compile(r"^\s*(?:from|import) aioinformer\S*\._", re.MULTILINE)
    sources = [file for file in STATIC.parent.glob("*.py") if private.search(file.read_text())]
    assert sources == []


async def test_the_api_server_of_a_cluster_is_never_stopped(tmp_path: Path) -> None:
    async with ApiServer() as server, entered(make_settings(server, tmp_path)) as (_, http):
        headers = {"X-Requested-With": "page"}
        answer = await http.post("/embedded/outage", headers=headers)
        assert answer.status_code == 403
        assert server.running


# -- the embedded cluster ----------------------------------------------------------------------


async def test_without_a_cluster_the_app_shows_an_embedded_cluster_that_changes() -> None:
    async with entered(Settings(objects=30, rate=200)) as (app, http):
        live = await synced(app)
        assert live.embedded is not None
        before = live.informers["pods"].lister.resource_version
        await wait_until(lambda: live.informers["pods"].lister.resource_version != before)
        assert len(live.informers["nodes"].lister) == 12
        deployments = live.informers["deployments"].lister
        await wait_until(lambda: any(each["status"]["readyReplicas"] > 0 for each in deployments))
        assert (await http.post("/embedded/outage")).status_code == 403, "from another site"
        answer = await http.post("/embedded/outage", headers={"X-Requested-With": "page"})
        assert answer.status_code == 202
        await wait_until(lambda: live.informers["pods"].health.error is not None)
        assert live.status.facts()["problem"]["message"]


def test_environment_variables_select_the_cluster_and_the_resources() -> None:
    assert Settings.from_environment({}) == Settings()
    assert Settings.from_environment({"KUBECONFIG": "/some/file"}).cluster
    assert Settings.from_environment({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}).cluster
    given = {"APP_RESOURCES": "pods, jobs", "APP_HOSTS": "live.example", "APP_NAMESPACE": "web"}
    settings = Settings.from_environment(given)
    assert settings.resources == ("pods", "jobs")
    assert settings.hosts == (*LOCAL, "live.example")
    assert (settings.namespace, settings.cluster) == ("web", False)
    assert Settings.from_environment({"APP_RESOURCES": ""}).resources == RESOURCES


# -- streams, over sockets ---------------------------------------------------------------------


async def test_a_page_receives_changes_and_the_status_of_the_informers(tmp_path: Path) -> None:
    async with ApiServer() as server:
        pod(server, "web-0")
        async with (
            running_service(make_settings(server, tmp_path)) as service,
            reading_events(service) as page,
        ):
            assert page.object_names("added") == ["web-0"]
            pod(server, "web-1")
            await wait_until(lambda: page.object_names("added") == ["web-0", "web-1"], timeout=10)
            server.cluster.delete("pods", "web-0", namespace="web")
            await wait_until(lambda: page.object_names("deleted") == ["web-0"], timeout=10)
            row = page.events[[name for name, _ in page.events].index("added")][1]
            assert (row["of"], row["status"], row["tone"]) == ("pods", "Running", "good")
            assert "metadata" not in row
            health = next(data for name, data in page.events if name == "health")
            assert [each["of"] for each in health["informers"]] == ["pods", "nodes"]
            assert health["clients"] == 1


async def test_a_page_that_is_closed_frees_its_streams(tmp_path: Path) -> None:
    async with ApiServer() as server, running_service(make_settings(server, tmp_path)) as service:
        async with reading_events(service):
            assert service.clients == 1
        await wait_until(lambda: service.clients == 0)
        await wait_until(lambda: "listeners=1" in repr(service.live.informers["pods"]))  # a counter


async def test_a_stalled_client_delays_neither_other_clients_nor_the_cache(tmp_path: Path) -> None:
    async with ApiServer() as server:
        for number in range(100):
            pod(server, f"web-{number}", padding="x" * 60)
        async with (
            running_service(make_settings(server, tmp_path)) as service,
            stalled_client(service),
            reading_events(service) as page,
        ):
            await service.wait_synced()
            await fill_its_buffers(server, service)
            pod(server, "late")
            await wait_until(lambda: "late" in page.object_names("added"), timeout=10)
            assert "web/late" in service.live.informers["pods"].lister
            assert service.clients == 2, "it is still there"
        await wait_until(lambda: service.clients == 0)


async def fill_its_buffers(server: ApiServer, service: Service) -> None:
    """Change pods until some events for the stalled client are pending in its mailbox:
    the page's own is empty, so that whatever stays pending is the other's.
    """
    pods = service.live.informers["pods"]
    async with asyncio.timeout(40):
        for version in range(1000):
            for number in range(100):
                labels = {"metadata": {"labels": {"padding": f"{version:060}"}}}
                server.cluster.merge_patch("pods", f"web-{number}", labels, namespace="web")
            await asyncio.sleep(0.12)
            if pending(service) > 300:
                break
    assert pods.health.blocked_by == ()


def pending(service: Service) -> float:
    """Live events that wait for listeners of pods, as the metrics say."""
    registry = service.app.state.registry
    value: float = registry.get_sample_value("aioinformer_events_pending", {"informer": "pods"})
    return value


async def test_the_server_ends_at_once_though_pages_listen(tmp_path: Path) -> None:
    async with ApiServer() as server:
        async with (
            running_service(make_settings(server, tmp_path), shutdown_seconds=50) as service,
            reading_events(service) as page,
        ):
            before = asyncio.get_running_loop().time()
            service.begin_shutdown()
            await wait_until(lambda: service.clients == 0)
        assert asyncio.get_running_loop().time() - before < 20
        assert page.events


# -- one command -------------------------------------------------------------------------------


@pytest.mark.clients
async def test_one_command_serves_an_embedded_cluster_until_it_is_interrupted() -> None:
    command = (sys.executable, "-m", "examples.fastapi_app", "--port", "0", "--objects", "20")
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    process = await start_process(
        *command, "--embedded", cwd=ROOT, env=environment, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(40):
            while not (found := re.search(rb"running on (\S+)", await process.stderr.readline())):
                pass
            url = found[1].decode()
            async with (
                httpx.AsyncClient(base_url=url) as http,
                http.stream("GET", "/events") as news,
            ):
                assert news.status_code == 200
                send_signal(process, signal.SIGINT)
                async for _ in news.aiter_bytes():
                    pass  # until the server ends the stream
            said = await process.stderr.read()
            assert await process.wait() == 0
    finally:
        send_signal(process, signal.SIGKILL)
        await process.wait()
    assert b"Traceback" not in said
    assert b"exceeded" not in said, "it waits for no page"
