"""The FastAPI service in one file, with starlette's synchronous client."""

from __future__ import annotations

import ast
import sys
import time
import warnings
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from anyio.from_thread import BlockingPortal
from fastapi import FastAPI
from pydantic import BaseModel

from aioinformer import EventSource, KubeObject, SharedInformerFactory
from aioinformer import field as guide_field
from aioinformer.adapters.asgi import EventFeed
from aioinformer.testing import ApiServerThread, Cluster, ClusterSource
from examples.hosts import fastapi_pods
from examples.hosts.fastapi_pods import app, feed
from tests.adapters.asgi_clients import connected
from tests.markdown_pages import MarkdownPage

ROOT = Path(__file__).parent.parent.parent

with warnings.catch_warnings():  # newer releases of starlette prefer another HTTP client
    warnings.simplefilter("ignore")
    from fastapi import testclient

pytest_plugins = ["aioinformer.testing.plugin"]


@contextmanager
def client_of(app: FastAPI) -> Generator[httpx.Client]:
    """Run an application. The client is one of httpx, which type checkers don't see."""
    with cast("AbstractContextManager[httpx.Client]", testclient.TestClient(app)) as http:
        yield http


@pytest.fixture(name="http")
def service(cluster: Cluster, kubeconfig: Path) -> Generator[httpx.Client]:
    """Run the service with two pods, until it is ready."""
    for name, shop in (("web-0", "shop"), ("tool", "tools")):
        cluster.create("pods", {"metadata": {"name": name, "labels": {"app": shop}}})
    with client_of(app) as http:
        yield http


def wait_ready(http: httpx.Client) -> None:
    eventually(lambda: http.get("/readyz", follow_redirects=False).status_code == 200)


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_service_lists_pods_as_models(
    http: httpx.Client, api_server_thread: ApiServerThread
) -> None:
    wait_ready(http)
    assert http.get("/pods/default", params={"labels": "app=shop"}).json() == [
        {"metadata": {"name": "web-0", "labels": {"app": "shop"}}}
    ]
    api_server_thread.cluster.create("pods", {"metadata": {"name": "web-1"}})
    eventually(lambda: len(http.get("/pods/default").json()) == 3)


def test_a_selector_that_does_not_parse_is_the_clients_mistake(http: httpx.Client) -> None:
    wait_ready(http)
    answer = http.get("/pods/default", params={"labels": "app in ("})
    assert answer.status_code == 400
    assert "app in (" in answer.json()["detail"]


def test_the_openapi_document_describes_the_models(http: httpx.Client) -> None:
    schemas = http.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["Pod"]["properties"]["metadata"] == {"$ref": "#/components/schemas/Metadata"}


@pytest.mark.usefixtures("kubeconfig")
def test_the_service_is_not_ready_before_the_initial_list_is_complete(
    api_server_thread: ApiServerThread,
) -> None:
    with api_server_thread.faults.stall(resource="pods"), client_of(app) as http:
        probe = http.get("/readyz", follow_redirects=False)
        early = http.get("/pods/default")
    assert probe.status_code == 503
    assert probe.json() == {"ok": False}, "no address and no user for everybody"
    assert (early.status_code, early.headers["retry-after"]) == (503, "1")
    assert early.json() == {"detail": "the pods are being read"}


def test_the_service_serves_metrics(http: httpx.Client) -> None:
    wait_ready(http)
    answer = http.get("/metrics", follow_redirects=False)
    assert answer.status_code == 200
    assert 'aioinformer_objects{informer="pods"} 2.0' in answer.text


def test_the_service_sends_events_until_the_feed_is_closed(
    http: httpx.Client, cluster: Cluster
) -> None:
    wait_ready(http)
    with ThreadPoolExecutor() as pool:
        response = pool.submit(http.get, "/events")  # the test client returns whole responses
        eventually(lambda: "of 2 objects" in repr(feed))
        cluster.create("pods", {"metadata": {"name": "web-1"}})
        eventually(lambda: "of 3 objects" in repr(feed))
        portal: BlockingPortal = vars(http)["portal"]
        portal.call(feed.close)
        text = response.result(timeout=20).text
    events = [line for line in text.splitlines() if line.startswith("event: ")]
    assert events == ["event: reset", *["event: added"] * 2, "event: synced", "event: added"]


def test_the_program_has_about_thirty_lines_besides_its_imports() -> None:
    shown = MarkdownPage(ROOT / "README.md").block_under("FastAPI")
    lines = [line for line in shown.splitlines() if line]
    assert len([line for line in lines if not line.startswith(("from ", "import "))]) <= 30
    assert len(lines) <= 42


def test_the_readme_shows_the_same_program() -> None:
    source = Path(fastapi_pods.__file__).read_text()
    shown = MarkdownPage(ROOT / "README.md").block_under("FastAPI")
    assert without_docstrings(shown) == without_docstrings(source)


def without_docstrings(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case (
                ast.Module(body=[ast.Expr(ast.Constant(str())), *rest])
                | ast.ClassDef(body=[ast.Expr(ast.Constant(str())), *rest])
                | ast.FunctionDef(body=[ast.Expr(ast.Constant(str())), *rest])
                | ast.AsyncFunctionDef(body=[ast.Expr(ast.Constant(str())), *rest])
            ):
                node.body = rest
            case _:
                pass
    return ast.unparse(tree)


def test_the_guide_returns_whole_objects_and_tests_the_service(
    http: httpx.Client, cluster: Cluster
) -> None:
    page = MarkdownPage(ROOT / "examples" / "guides" / "informers.md")
    names: dict[str, Any] = {**vars(fastapi_pods), "KubeObject": KubeObject, "app": FastAPI()}
    exec(page.block("list_whole_pods"), names)  # noqa: S102 - the guide's own code
    names["app"].state.pods = app.state.pods
    wait_ready(http)
    with client_of(names["app"]) as whole:
        found: list[dict[str, Any]] = whole.get("/raw/default").json()
    pods = {pod["metadata"]["name"]: pod for pod in found}
    assert set(pods) == {"tool", "web-0"}
    assert pods["tool"] == cluster.get("pods", "tool", namespace="default")


async def test_the_encoder_of_the_guide_sends_the_rows_of_one_namespace() -> None:
    class PodRow(BaseModel):
        name: str
        phase: str

    cluster = Cluster()
    for namespace in ("shop", "web"):
        body = {"metadata": {"name": "a"}, "status": {"phase": "Running"}}
        cluster.create("pods", body, namespace=namespace)
    async with SharedInformerFactory(ClusterSource(cluster)) as kube:
        pods = kube.informer("pods")
        await kube.wait_synced(5)
        names: dict[str, Any] = {"PodRow": PodRow, "EventFeed": EventFeed, "field": guide_field}
        names |= {"EventSource": EventSource, "KubeObject": KubeObject}
        names["informers"] = lambda: [pods]
        page = MarkdownPage(ROOT / "examples" / "guides" / "informers.md")
        exec(page.block("PodRow("), names)  # noqa: S102 - the guide's own code
        async with connected(names["feed"]) as client:
            added = [each.data for each in client.messages if each.event == "added"]
    assert added == [{"name": "a", "phase": "Running"}]


def test_the_test_of_the_guide_passes(
    cluster: Cluster, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "service", fastapi_pods)
    page = MarkdownPage(ROOT / "examples" / "guides" / "informers.md")
    names: dict[str, Any] = {"app": app, "Cluster": Cluster, "Path": Path}
    exec(page.block("test_the_service_lists_pods"), names)  # noqa: S102 - the guide's own code
    names["test_the_service_lists_pods"](cluster, kubeconfig)
