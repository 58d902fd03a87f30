"""The fixtures that the library's users get, in a test run of their own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).parents[2] / "examples" / "guides" / "testing.md").read_text()


def told(pattern: str) -> str:
    """The one place on the page about testing that looks like this."""
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
def users(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project of a user's, who has what that page says, and nothing else."""
    pytester.makepyprojecttoml(told(r"```toml\n(.*?)```"))
    pytester.makeconftest(told(r"`(pytest_plugins = [^`]*)`"))
    return pytester


def run(users: pytest.Pytester) -> pytest.RunResult:
    return users.runpytest_subprocess("-p", "no:cacheprovider")


def test_the_example_on_the_page_runs(users: pytest.Pytester) -> None:
    users.makepyfile(test_example=told(r"```python\n((?:(?!```).)*async def test_my.*?)```"))
    run(users).assert_outcomes(passed=1, warnings=0)


def test_a_server_and_a_cluster_can_be_asked_for(users: pytest.Pytester) -> None:
    users.makepyfile(test_http=OVER_HTTP)
    run(users).assert_outcomes(passed=2, warnings=0)
