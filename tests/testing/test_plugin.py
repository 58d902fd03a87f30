"""The pytest fixtures and the guide about them, each in a test run of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.markdown_pages import MarkdownPage, find_blocks

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
GUIDE = MarkdownPage(ROOT / "examples" / "guides" / "testing.md")

HEADER = """
import pytest
from pathlib import Path
from aioinformer import Client, Resource, SharedInformerFactory
from aioinformer.testing import ApiServer, ApiServerThread, Cluster

async def my_program(selector):
    async with Client.connect() as client, SharedInformerFactory(client) as informers:
        pods = informers.informer("pods")
        await informers.wait_synced(timeout=30)
        return [pod.name for pod in pods.lister.list(labels=selector)]
"""
"""The names of which the guide's reader has their own, and a program to test."""

SERVICE = """
from contextlib import asynccontextmanager
from fastapi import FastAPI

@asynccontextmanager
async def lifespan(app):
    async with Client.connect() as client, SharedInformerFactory(client) as informers:
        app.state.pods = informers.informer("pods")
        await informers.wait_synced(timeout=30)
        yield

app = FastAPI(lifespan=lifespan)

@app.get("/pods")
async def pods():
    return [pod.name for pod in app.state.pods.lister]
"""

MANIFESTS = """\
apiVersion: example.com/v1
kind: Shop
metadata: {name: tea}
spec: {motto: hot}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Shop, plural: shops, singular: shop}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""

FIXTURES = """
import os
import httpx
import pytest

async def test_a_client_reads_the_cluster(cluster, client, api_server):
    cluster.create("pods", {"metadata": {"name": "web-0"}}, namespace="web")
    assert client.server == api_server.url
    assert (await client.api("pods").get("web/web-0")).name == "web-0"

async def test_an_async_test_has_a_server_in_its_own_loop(kubeconfig, api_server):
    assert api_server.url in kubeconfig.read_text()
    assert os.environ["KUBECONFIG"] == str(kubeconfig)

def test_another_test_has_a_server_in_a_thread(kubeconfig, cluster, api_server_thread):
    assert api_server_thread.url in kubeconfig.read_text()
    cluster.create("pods", {"metadata": {"name": "web-0"}})
    assert httpx.get(f"{api_server_thread.url}/api/v1/pods").json()["items"]

async def test_an_async_test_can_have_a_server_in_a_thread(api_server_thread, kubeconfig):
    assert api_server_thread.url in kubeconfig.read_text()

def test_a_cluster_is_new_for_each_test(cluster):
    assert cluster.resource_version == 1

def test_the_variable_of_another_test_is_gone():
    assert "KUBECONFIG" not in os.environ
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Return a user's project with the settings of the guide, and nothing else."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    pytester.makepyprojecttoml(GUIDE.block("asyncio_mode", language="toml"))
    pytester.makeconftest(GUIDE.block("pytest_plugins"))
    return pytester


def run(project: pytest.Pytester) -> pytest.RunResult:
    return project.runpytest_subprocess("-p", "no:cacheprovider")


@pytest.mark.clients
def test_every_example_of_the_guide_runs(project: pytest.Pytester) -> None:
    blocks = [
        block
        for block in find_blocks(GUIDE.text, "python")
        if "def test_" in block or "class PodsTest" in block
    ]
    assert len(blocks) == 10
    folder = project.path / "deploy"
    folder.mkdir()
    (folder / "shop.yaml").write_text(MANIFESTS)
    project.makepyfile(test_guide="\n".join([HEADER, SERVICE, *blocks]))
    run(project).assert_outcomes(passed=10)  # starlette may warn of another HTTP library


def test_the_fixtures_choose_the_server_that_fits_the_test(project: pytest.Pytester) -> None:
    project.makepyfile(test_fixtures=FIXTURES)
    run(project).assert_outcomes(passed=6, warnings=0)


FAULTS = """
import httpx
import pytest

@pytest.mark.parametrize("verb", ["watch_list", "get"])
async def test_a_fault_that_occurs_or_not(api_server, client, verb):
    with api_server.faults.status(503, verb=verb):
        with pytest.raises(Exception):
            await client.api("pods").get("default/web-0")

@pytest.mark.parametrize("verb", ["watch_list", "list"])
def test_a_fault_in_a_thread(api_server_thread, verb):
    api_server_thread.faults.status(503, verb=verb)
    assert httpx.get(f"{api_server_thread.url}/api/v1/pods").status_code

@pytest.mark.filterwarnings("ignore:the fault")
async def test_a_fault_that_need_not_occur(api_server):
    api_server.faults.status(503)
"""


def test_a_fault_that_concerned_no_request_is_an_error_of_its_test(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(test_faults=FAULTS)
    result = run(project)
    result.assert_outcomes(passed=5, errors=2, warnings=0)
    result.stdout.fnmatch_lines(
        ['*UnusedFault: the fault ErrorStatus 503 for verb="watch_list"*get pods*']
    )


def test_a_project_may_let_faults_concern_no_request(project: pytest.Pytester) -> None:
    with (project.path / "pyproject.toml").open("a") as file:
        file.write('\nfilterwarnings = ["ignore::aioinformer.testing.UnusedFault"]\n')
    project.makepyfile(test_faults=FAULTS)
    run(project).assert_outcomes(passed=5, warnings=0)


def test_the_plugin_loads_no_server_before_a_test_uses_one() -> None:
    code = (
        "import pytest, pytest_asyncio, sys; before = set(sys.modules)\n"
        "import aioinformer.testing.plugin\n"
        "loaded = set(sys.modules) - before\n"
        "heavy = {'aiohttp', 'anyio', 'kubernetes_asyncio', 'msgspec', 'yaml'}\n"
        "sys.exit(', '.join(sorted(heavy & loaded)) or len(loaded) > 80)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
