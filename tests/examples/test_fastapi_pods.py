"""The FastAPI service in one file, with starlette's synchronous client."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from aioinformer.testing import ApiServerThread, Cluster
from examples.hosts.fastapi_pods import app, feed

with warnings.catch_warnings():  # newer releases of starlette prefer another HTTP client
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

pytest_plugins = ["aioinformer.testing.plugin"]


@pytest.fixture(name="http")
def service(cluster: Cluster, kubeconfig: Path) -> Iterator[TestClient]:
    """Run the service with two pods, until it is ready."""
    for name, shop in (("web-0", "shop"), ("tool", "tools")):
        cluster.create("pods", {"metadata": {"name": name, "labels": {"app": shop}}})
    with TestClient(app) as http:
        yield http


def wait_ready(http: TestClient) -> None:
    eventually(lambda: http.get("/readyz", follow_redirects=False).status_code == 200)


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_lists_pods_as_models(http: TestClient, api_server_thread: ApiServerThread) -> None:
    wait_ready(http)
    assert http.get("/pods/default", params={"labels": "app=shop"}).json() == [
        {"metadata": {"name": "web-0", "labels": {"app": "shop"}}}
    ]
    api_server_thread.cluster.create("pods", {"metadata": {"name": "web-1"}})
    eventually(lambda: len(http.get("/pods/default").json()) == 3)


def test_it_describes_its_models(http: TestClient) -> None:
    schemas = http.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["Pod"]["properties"]["metadata"] == {"$ref": "#/components/schemas/Metadata"}


@pytest.mark.usefixtures("kubeconfig")
def test_it_is_not_ready_before_the_initial_list(api_server_thread: ApiServerThread) -> None:
    with api_server_thread.faults.stall(resource="pods"), TestClient(app) as http:
        probe = http.get("/readyz", follow_redirects=False)
        early = http.get("/pods/default")
    assert probe.status_code == 503
    assert (early.status_code, early.headers["retry-after"]) == (503, "1")


def test_it_serves_metrics(http: TestClient) -> None:
    wait_ready(http)
    answer = http.get("/metrics", follow_redirects=False)
    assert answer.status_code == 200
    assert 'aioinformer_objects{informer="pods"} 2.0' in answer.text


def test_it_sends_events_until_the_feed_is_closed(http: TestClient, cluster: Cluster) -> None:
    wait_ready(http)
    with ThreadPoolExecutor() as pool:
        response = pool.submit(http.get, "/events")  # the test client returns whole responses
        eventually(lambda: "of 2 objects" in repr(feed))
        cluster.create("pods", {"metadata": {"name": "web-1"}})
        eventually(lambda: "of 3 objects" in repr(feed))
        assert http.portal is not None
        http.portal.call(feed.close)
        text = response.result(timeout=20).text
    events = [line for line in text.splitlines() if line.startswith("event: ")]
    assert events == ["event: reset", *["event: added"] * 2, "event: synced", "event: added"]
