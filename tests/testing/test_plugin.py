"""The pytest fixtures for project, each in a test run of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).parents[2] / "examples" / "guides" / "testing.md").read_text()


def find_in_guide(pattern: str) -> str:
    """Return the one match of a pattern on the guide page about testing."""
    (found,) = re.finditer(pattern, PAGE, re.DOTALL)
    return found[1]


OVER_HTTP = """
from aioinformer import Client, SharedInformerFactory

async def test_over_http(cluster, api_server, tmp_path):
    cluster.create("pods", {"metadata": {"name": "web-0"}}, namespace="web")
    config = api_server.kubeconfig(tmp_path / "config")
    async with Client.connect(kubeconfig=config) as client, SharedInformerFactory(client) as own:
        pods = own.informer("pods")
        await own.wait_synced(timeout=5)
        assert [pod.name for pod in pods.lister] == ["web-0"]

def test_a_cluster_is_new_for_each_test(cluster):
    assert cluster.resource_version == 1
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a user's project with the settings of that page, and nothing else."""
    pytester.makepyprojecttoml(find_in_guide(r"```toml\n(.*?)```"))
    pytester.makeconftest(find_in_guide(r"`(pytest_plugins = [^`]*)`"))
    return pytester


def run(project: pytest.Pytester) -> pytest.RunResult:
    return project.runpytest_subprocess("-p", "no:cacheprovider")


def test_the_example_on_the_page_runs(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_example=find_in_guide(r"```python\n((?:(?!```).)*async def test_my.*?)```")
    )
    run(project).assert_outcomes(passed=1, warnings=0)


def test_a_server_and_a_cluster_are_fixtures(project: pytest.Pytester) -> None:
    project.makepyfile(test_http=OVER_HTTP)
    run(project).assert_outcomes(passed=2, warnings=0)
