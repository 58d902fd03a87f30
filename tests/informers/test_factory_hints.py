"""Lines of the log about informers that are probably not what the program means."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from aioinformer import SharedInformerFactory, labelled
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation import run
from tests.runtime.informers import cluster_with_pods


@pytest.fixture(autouse=True)
def info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="aioinformer")


def lines(caplog: pytest.LogCaptureFixture, text: str) -> list[str]:
    return [f"{each.levelname} {each.getMessage()}" for each in caplog.records if text in each.msg]


@pytest.mark.parametrize(
    ("mine", "theirs", "said"),
    [
        ({}, {}, True),
        ({"namespace": "web"}, {"namespace": "web"}, True),
        ({"namespace": "web"}, {}, False),
        ({"labels": "a=b"}, {}, False),
        ({"metadata_only": True}, {}, False),
    ],
)
def test_an_informer_of_two_factories_of_one_client_is_said_once(
    mine: dict[str, Any], theirs: dict[str, Any], said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        source = ClusterSource(Cluster())
        one, two, three = (SharedInformerFactory(source) for _ in range(3))
        one.informer("pods", **mine)
        async with one, two, three:
            two.informer("pods", **theirs)
            three.informer("pods", **theirs)
            two.informer("pods", **theirs)
            await two.wait_synced(30)

    run(main(), seed=1)
    found = lines(caplog, "factories of one client")
    assert len(found) == 1  # of ``two`` and ``three`` in any case
    assert found[0].startswith("INFO pods")
    assert found[0].endswith("2 times: share one factory")
    if said:
        assert found[0].startswith("INFO pods in web:" if mine else "INFO pods:")


def test_informers_one_after_the_other_or_of_two_clients_are_not_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        cluster = Cluster()
        source = ClusterSource(cluster)
        for _ in range(3):
            async with SharedInformerFactory(source) as factory:
                for _ in range(2):
                    async with factory.use("pods") as pods:
                        await pods.wait_synced(30)
        async with (
            SharedInformerFactory(ClusterSource(cluster)) as one,
            SharedInformerFactory(ClusterSource(cluster)) as two,
        ):
            one.informer("pods")
            two.informer("pods")
            await asyncio.sleep(10)

    run(main(), seed=1)
    assert lines(caplog, "factories of one client") == []


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (
            {"namespace": "shpo"},
            "pods in shpo: 0 objects listed: the namespace shpo has none, or doesn't exist",
        ),
        ({"namespace": "default"}, "pods in default: 1 object listed"),
        ({"labels": "a=b"}, "pods where a=b: 0 objects listed"),
        (
            {"namespaces": ["default", "shpo", "web"]},
            "pods in default, shpo, web: nothing in shpo, web: empty, or absent",
        ),
        (
            {"namespaces": [f"n{number}" for number in range(9)]},
            "pods in 9 namespaces: nothing in n0, n1, n2, n3, n4, ...: empty, or absent",
        ),
        ({"namespaces": ["default"]}, None),
    ],
)
def test_an_empty_or_absent_namespace_is_said_in_one_line(
    request_: dict[str, Any], line: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with SharedInformerFactory(ClusterSource(cluster_with_pods("a"))) as factory:
            factory.informer("pods", **request_)
            await factory.wait_synced(30)
            await asyncio.sleep(600)

    run(main(), seed=1)
    found = [each.getMessage() for each in caplog.records if each.name == "aioinformer.pump"]
    assert found == ([line] if line else [])


def test_followed_namespaces_without_objects_are_said_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        cluster = Cluster()
        for name in ("one", "two"):
            cluster.create("namespaces", {"metadata": {"name": name, "labels": {"team": "a"}}})
        async with SharedInformerFactory(ClusterSource(cluster)) as factory:
            factory.informer("pods", namespaces=labelled("team=a"))
            await factory.wait_synced(30)

    run(main(), seed=1)
    assert len(lines(caplog, "empty, or absent")) == 1
