"""The fixtures that the library's users get, in a test run of their own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

README = (Path(__file__).parents[2] / "README.md").read_text()

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
    """A project of a user's."""
    pytester.makeini(
        "[pytest]\n"
        "asyncio_mode = auto\n"
        "asyncio_default_fixture_loop_scope = function\n"
        "filterwarnings = error\n"
    )
    pytester.makeconftest('pytest_plugins = ["aioinformer.testing.plugin"]')
    return pytester


def test_the_example_in_the_readme_runs(users: pytest.Pytester) -> None:
    blocks: list[str] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (example,) = [block for block in blocks if "informers: SharedInformerFactory" in block]
    users.makepyfile(test_example=example)
    users.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_a_server_and_a_cluster_can_be_asked_for(users: pytest.Pytester) -> None:
    users.makepyfile(test_http=OVER_HTTP)
    users.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)
