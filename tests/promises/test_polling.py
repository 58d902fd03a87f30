"""Roles that may list and not watch, and servers that serve lists only.

The cache is refreshed by lists, at an interval, until the server accepts a watch.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

import pytest

from aioinformer import Client, KubeObject, Problem, SharedInformer
from aioinformer.errors import CacheWaitTimeout, Forbidden
from aioinformer.testing import ApiServer, Cluster, ClusterSource, Faults
from tests.promises.conftest import wait_until as wait_for_real
from tests.promises.function_lister_watcher import (
    InformerHarness,
    loop_time,
    run_simulated,
    wait_until,
)
from tests.runtime.informers import cluster_with_pods, label_pod, running_in_background
from tests.runtime.scripted_source import PODS

REFUSALS = [(403, "Forbidden"), (404, "NotFound"), (405, "MethodNotAllowed")]


def refused_watches(code: int, reason: str) -> tuple[Cluster, Faults]:
    """Return a cluster of one pod whose watches are all refused."""
    cluster, faults = cluster_with_pods("a"), Faults()
    faults.status(code, reason=reason, verb="watch")
    return cluster, faults


def _shows(harness: InformerHarness, version: str) -> bool:
    return harness.cached_versions["a"] == version


@pytest.mark.parametrize(("code", "reason"), REFUSALS)
def test_a_role_that_may_only_list_syncs_at_once_and_is_fresh_after_an_interval(
    code: int, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> InformerHarness:
        cluster, faults = refused_watches(code, reason)
        harness = InformerHarness(ClusterSource(cluster, faults).lister_watcher(PODS))
        async with harness.running():
            await harness.informer.wait_synced(30)
            assert loop_time() < 1.0
            for number in range(10):
                label_pod(cluster, "a", f"{number}")
                written = loop_time()
                await wait_until(partial(_shows, harness, str(cluster.resource_version)), every=0.5)
                assert loop_time() - written <= 67.0
                health = harness.informer.health
                assert health.state == "polling"
                assert health.error is not None
                assert f"{code} {reason}" in str(health)
            cluster.delete("pods", "a")
            await wait_until(lambda: harness.cached_versions == {})
        return harness

    caplog.set_level(logging.INFO, logger="aioinformer")
    harness = run_simulated(scenario)
    causes = [each.cause for _, each in harness.problems]
    assert causes.count("watch_refused") == 1, "the error hook is called once"
    assert len(causes) == 2, "and once for the WatchList"
    refused = [record for record in caplog.records if "refuses watches" in record.getMessage()]
    assert [record.levelname for record in refused].count("WARNING") == 1
    watches = sum(each.startswith("watch") for each in harness.request_summaries)
    lists = sum(each.split()[0] in ("list", "whole") for each in harness.request_summaries)
    assert 11 <= lists <= 13
    assert 3 <= watches <= 5, "at the start, and behind ever more lists"


def test_a_watch_that_is_allowed_later_ends_the_polling() -> None:
    async def scenario() -> None:
        cluster, faults = cluster_with_pods("a"), Faults()
        refusal = faults.status(403, reason="Forbidden", verb="watch")
        harness = InformerHarness(ClusterSource(cluster, faults).lister_watcher(PODS))
        async with harness.running():
            await harness.informer.wait_synced(30)
            await asyncio.sleep(30.0)
            refusal.end()
            await wait_until(lambda: harness.informer.health.state == "watching", timeout=70.0)
            assert harness.informer.health.error is None
            label_pod(cluster, "a", "heard")
            await asyncio.sleep(0.1)
            assert harness.cached_versions["a"] == str(cluster.resource_version)

    run_simulated(scenario)


def test_a_right_to_watch_that_is_revoked_keeps_the_cache_and_its_events_exact() -> None:
    async def scenario() -> None:
        cluster, faults = cluster_with_pods("a", "b"), Faults()
        harness = InformerHarness(ClusterSource(cluster, faults).lister_watcher(PODS))
        async with harness.running():
            await harness.informer.wait_synced(30)
            events: list[str] = []
            harness.informer.add_handler(
                lambda event: events.append(f"{type(event).__name__} {event.obj.name}")
            )
            await asyncio.sleep(40.0)
            faults.status(403, reason="Forbidden", verb="watch")
            with faults.reset():
                await asyncio.sleep(0.1)
            cluster.delete("pods", "b")
            label_pod(cluster, "a", "changed")
            await wait_until(lambda: harness.informer.health.state == "polling")
            await wait_until(lambda: "b" not in harness.cached_versions)
            await asyncio.sleep(300.0)
            assert sorted(events) == ["Added a", "Added b", "Deleted b", "Updated a"]

    run_simulated(scenario)


def test_health_shows_a_failed_list_and_afterwards_the_forbidden_watch_again() -> None:
    async def scenario() -> None:
        cluster, faults = refused_watches(403, "Forbidden")
        harness = InformerHarness(ClusterSource(cluster, faults).lister_watcher(PODS))
        async with harness.running():
            await harness.informer.wait_synced(30)
            with faults.status(500, reason="InternalError", verb="list"):
                await wait_until(lambda: harness.informer.health.state == "waiting")
                assert "500" in str(harness.informer.health.error)
            await wait_until(lambda: harness.informer.health.state == "polling")
            assert isinstance(harness.informer.health.error, Forbidden)

    run_simulated(scenario)


def test_a_wait_for_a_written_object_lists_at_once_and_every_five_seconds() -> None:
    async def scenario() -> None:
        cluster, faults = refused_watches(403, "Forbidden")
        harness = InformerHarness(ClusterSource(cluster, faults).lister_watcher(PODS))

        def count_lists() -> int:
            return sum(each.split()[0] in ("list", "whole") for each in harness.request_summaries)

        async with harness.running():
            informer = harness.informer
            await informer.wait_synced(30)
            await asyncio.sleep(20.0)
            label_pod(cluster, "a", "new")
            await informer.wait_for(cluster.get("pods", "a"), timeout=1.0)
            await asyncio.sleep(1.0)
            label_pod(cluster, "a", "newer")
            await informer.wait_for(cluster.get("pods", "a"), timeout=5.0)
            before, body = count_lists(), cluster.get("pods", "a")
            body["metadata"]["resourceVersion"] = "999999"
            waits = [informer.wait_for(body, timeout=60.0) for _ in range(3)]
            results = await asyncio.gather(*waits, return_exceptions=True)
            assert all(isinstance(each, CacheWaitTimeout) for each in results)
            assert 11 <= count_lists() - before <= 13
            await asyncio.sleep(240.0)
            assert count_lists() - before <= 18, "once a minute again"

    run_simulated(scenario)


def test_the_interval_is_an_option_of_the_informer() -> None:
    async def scenario() -> float:
        cluster, faults = refused_watches(403, "Forbidden")
        informer = SharedInformer(
            ClusterSource(cluster, faults).lister_watcher(PODS), poll_interval=600.0
        )
        async with running_in_background(informer.run()):
            await informer.wait_synced(30)
            label_pod(cluster, "a", "new")
            written = loop_time()
            await wait_until(
                lambda: informer.lister.list()[0].labels.get("value") == "new", every=0.5
            )
            return loop_time() - written

    assert 540.0 <= run_simulated(scenario) <= 661.0


def test_a_fatal_error_of_the_watch_is_raised_after_a_list_has_succeeded() -> None:
    async def scenario() -> InformerHarness:
        cluster, faults = refused_watches(403, "Forbidden")
        harness = InformerHarness(
            ClusterSource(cluster, faults).lister_watcher(PODS), fail_fast=(Forbidden,)
        )
        with pytest.raises(Forbidden):
            await harness.informer.run()
        return harness

    harness = run_simulated(scenario)
    assert [each.split()[0] for each in harness.request_summaries] == ["stream", "list", "watch"]


@pytest.mark.parametrize("interval", [4.0, 0.0, -1.0, float("nan"), float("inf")])
def test_an_interval_that_would_burden_the_server_is_rejected(interval: float) -> None:
    source = ClusterSource(Cluster()).lister_watcher(PODS)
    with pytest.raises(ValueError, match="poll_interval must be at least 5 seconds"):
        SharedInformer(source, poll_interval=interval)


async def test_a_role_that_may_only_list_is_served_over_http(
    server: ApiServer, client: Client
) -> None:
    server.cluster.create("pods", {"metadata": {"name": "a"}}, namespace="web")
    server.faults.status(403, reason="Forbidden", verb="watch")
    problems, seen = list[Problem](), list[KubeObject]()
    informer = SharedInformer(
        client.lister_watcher(PODS), poll_interval=5.0, on_error=problems.append
    )
    async with running_in_background(informer.run()):
        await informer.wait_synced(30)
        await wait_for_real(lambda: informer.health.state == "polling")
        server.cluster.create("pods", {"metadata": {"name": "b"}}, namespace="web")
        await wait_for_real(lambda: len(informer.lister.list()) == 2)
        seen += informer.lister.list()
    assert sorted(pod.name for pod in seen) == ["a", "b"]
    assert [each.cause for each in problems] == ["access_denied", "watch_refused"]
