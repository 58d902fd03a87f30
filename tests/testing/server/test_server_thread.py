"""The server in a thread, used from synchronous tests and other threads."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from aioinformer.errors import NotFound, NotRunning, UsageError
from aioinformer.testing import ApiServerThread, Cluster


def pods(server: ApiServerThread) -> list[str]:
    with urllib.request.urlopen(f"{server.url}/api/v1/pods", timeout=10) as response:  # noqa: S310
        items = json.load(response)["items"]
    return [item["metadata"]["name"] for item in items]


def test_a_synchronous_client_reads_what_the_test_writes() -> None:
    with ApiServerThread() as server:
        server.cluster.create("pods", {"metadata": {"name": "web-0"}})
        assert pods(server) == ["web-0"]
        server.cluster.delete("pods", "web-0")
        assert pods(server) == []


def test_the_caller_receives_the_errors_of_the_cluster() -> None:
    with ApiServerThread() as server, pytest.raises(NotFound):
        server.cluster.get("pods", "web-0")


def test_many_threads_write_at_once() -> None:
    cluster = Cluster()
    before = cluster.resource_version
    with ApiServerThread(cluster) as server:

        def write(number: int) -> None:
            server.cluster.create("pods", {"metadata": {"name": f"web-{number}"}})

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(write, range(100)))
        assert len(pods(server)) == 100
        assert server.cluster.resource_version == before + 100


def test_a_write_from_the_test_wakes_a_watch_at_once() -> None:
    with ApiServerThread() as server:
        version = server.cluster.resource_version
        query = f"watch=true&resourceVersion={version}&timeoutSeconds=30"
        url = f"{server.url}/api/v1/pods?{query}"
        with urllib.request.urlopen(url, timeout=10) as stream:  # noqa: S310
            server.cluster.create("pods", {"metadata": {"name": "web-0"}})
            assert json.loads(stream.readline())["type"] == "ADDED"


def test_faults_are_switched_from_the_test() -> None:
    with ApiServerThread() as server:
        with server.faults.status(503, verb="list") as fault:
            with pytest.raises(urllib.error.HTTPError, match="503") as refused:
                pods(server)
            refused.value.close()
            assert fault.active
        assert pods(server) == []
        with server.faults.refuse(), pytest.raises(urllib.error.URLError, match="refused"):
            pods(server)
        assert pods(server) == []
        assert server.faults.on == ()


def test_the_server_can_stop_and_start_again(tmp_path: Path) -> None:
    with ApiServerThread(token="secret") as server:
        url = server.url
        assert "secret" in server.kubeconfig(str(tmp_path / "config")).read_text()
        server.stop()
        with pytest.raises(urllib.error.URLError, match="refused"):
            pods(server)
        server.cluster.create("pods", {"metadata": {"name": "web-0"}})
        server.restart()
        assert server.url == url
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            pods(server)
        refused.value.close()
        server.drop_connections()


def test_a_server_in_a_thread_raises_not_running_outside_of_its_context() -> None:
    server = ApiServerThread()
    with pytest.raises(NotRunning):
        _ = server.url
    with pytest.raises(NotRunning, match="inside of its `with`"):
        server.cluster.list("pods")
    with server, pytest.raises(UsageError, match="enter it once"), server:
        pass
    with pytest.raises(NotRunning):
        server.stop()


def test_the_end_leaves_no_thread_and_the_server_may_start_again() -> None:
    before = set(threading.enumerate())
    server = ApiServerThread()
    for expected in (["web-0"], ["web-0", "web-1"]):
        with server:
            server.cluster.create("pods", {"metadata": {"name": expected[-1]}})
            assert pods(server) == expected
        assert set(threading.enumerate()) <= before


def test_a_taken_port_is_an_error_that_leaves_no_thread() -> None:
    with ApiServerThread() as first:
        before = set(threading.enumerate())
        port = int(first.url.rpartition(":")[2])
        with pytest.raises(OSError, match="in use"), ApiServerThread(port=port):
            pass
        assert set(threading.enumerate()) <= before
