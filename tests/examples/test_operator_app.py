"""The example of an operator: its life on the embedded server, faults, and simulated histories."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession
from prometheus_client import CollectorRegistry

from aioinformer import Client, Operator
from aioinformer.adapters.prometheus import PrometheusMetrics
from aioinformer.testing import ApiServer, Cluster, load_manifests, running_operator
from aioinformer.testing.simulation import simulate
from examples.operator_app.app import CONFIGMAPS, make_operator
from tests.examples.site_operator import CRD, Purges, Sites, sites_converge

RBAC = CRD.with_name("rbac.yaml")


class Setting:
    """A server, its Sites and the operator that runs on it."""

    def __init__(self, server: ApiServer, sites: Sites, operator: Operator, purges: Purges) -> None:
        self.server, self.sites, self.operator, self.purges = server, sites, operator, purges

    async def settled(self) -> None:
        await self.sites.cluster.settled(self.operator, timeout=30)


@asynccontextmanager
async def running(*, restricted: bool = False, **options: object) -> AsyncGenerator[Setting]:
    """Run the operator. A restricted one has the rights of ``rbac.yaml`` alone."""
    cluster, purges = Cluster(), Purges()
    sites = Sites(cluster)
    load_manifests(cluster, RBAC)
    server = ApiServer(cluster, authorization="RBAC" if restricted else "AlwaysAllow")
    server.access.add_user("system:serviceaccount:default:site-operator", token="t")
    async with server, Client(server.url, token="t") as client:
        operator = make_operator(client, purges, **options)
        async with running_operator(operator, timeout=30):
            yield Setting(server, sites, operator, purges)


@pytest.mark.parametrize("restricted", [False, True], ids=["all rights", "those of rbac.yaml"])
async def test_a_site_is_created_updated_and_cleaned_up(
    restricted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(restricted=restricted) as setting:
        sites = setting.sites
        sites.create("tea", page="<h1>tea</h1>", pods=2)
        await setting.settled()
        assert sites.page("tea") == "<h1>tea</h1>"
        assert sites.ready("tea")["reason"] == "Waiting"
        site, deployment = sites.get("tea"), sites.deployment("tea")
        assert site is not None
        assert deployment is not None
        assert site["metadata"]["finalizers"] == ["example.com/purge"]
        (owner,) = deployment["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Site", site["metadata"]["uid"])

        sites.report_available("tea")
        await setting.settled()
        ready = sites.ready("tea")
        assert (ready["status"], ready["reason"]) == ("True", "Available")
        assert sites.event_reasons("tea") == ["Available"]

        sites.cluster.delete(CONFIGMAPS, "tea")
        await setting.settled()
        assert sites.page("tea") == "<h1>tea</h1>"

        sites.change("tea", page="new")
        await setting.settled()
        assert sites.page("tea") == "new"
        assert sites.ready("tea")["observedGeneration"] == 2
        assert sites.ready("tea")["lastTransitionTime"] == ready["lastTransitionTime"]

        sites.delete("tea")
        await setting.settled()
        assert (sites.get("tea"), sites.page("tea"), sites.deployment("tea")) == (None, None, None)
        assert setting.purges.names == ["tea"]
    assert "403" not in caplog.text


async def test_a_run_without_changes_writes_nothing() -> None:
    async with running() as setting:
        setting.sites.create("tea")
        await setting.settled()
        setting.sites.report_available("tea")
        await setting.settled()
        (controller,) = setting.operator.controllers
        site = setting.sites.get("tea")
        assert site is not None
        runs = controller.health.runs
        controller.trigger("default/tea")
        await setting.settled()
        assert controller.health.runs == runs + 1
        assert setting.sites.get("tea") == site


async def test_a_cleanup_that_fails_is_retried_and_reported() -> None:
    async with running() as setting:
        setting.sites.create("tea")
        await setting.settled()
        setting.purges.failures = 5
        setting.sites.delete("tea")
        while setting.purges.failures > 2:  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.001)
        shown = setting.sites.condition("tea", "Synced")
        assert (shown["status"], shown["reason"]) == ("False", "CleanupFailed")
        assert "ConnectionError" in shown["message"]
        await setting.settled()
        assert setting.purges.names == ["tea"]
        assert setting.sites.get("tea") is None
        assert "CleanupFailed" in setting.sites.event_reasons("tea")


async def test_a_site_without_a_page_is_not_retried_before_it_changes() -> None:
    async with running() as setting:
        setting.sites.create("tea", page="")
        await setting.settled()
        (controller,) = setting.operator.controllers
        failing = controller.failing("default/tea")
        assert failing is not None
        assert failing.permanent
        assert setting.sites.event_reasons("tea") == ["PermanentError"]
        shown = setting.sites.condition("tea", "Synced")
        assert (shown["status"], shown["reason"]) == ("False", "PermanentError")
        assert shown["message"] == "PermanentError: spec.page is empty"
        setting.sites.change("tea", page="now")
        await setting.settled()
        assert setting.sites.page("tea") == "now"
        assert setting.sites.condition("tea", "Synced")["status"] == "True"


async def test_errors_and_broken_watches_only_delay_a_site() -> None:
    async with running() as setting:
        faults = setting.server.faults
        with faults.status(500, verb="patch", times=3), faults.reset(verb="watch", times=2):
            setting.sites.create("tea", page="hot")
            await setting.settled()
        assert setting.sites.page("tea") == "hot"


async def test_metrics_and_probes_are_served() -> None:
    metrics = PrometheusMetrics(CollectorRegistry())
    async with (
        running(port=0, host="127.0.0.1", metrics=metrics) as setting,
        ClientSession() as session,
    ):
        setting.sites.create("tea")
        await setting.settled()
        base = f"http://127.0.0.1:{setting.operator.port}"
        async with session.get(f"{base}/readyz") as answer:
            assert answer.status == 200
        async with session.get(f"{base}/metrics") as answer:
            text = await answer.text()
    assert re.search(
        r'aioinformer_reconcile_total\{controller="sites\.example\.com",result=.*\} \d', text
    )


def test_sites_converge_in_simulated_histories() -> None:
    simulate(sites_converge, seeds=[0])


@pytest.mark.simulation
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, 500, 100))
def test_sites_converge_in_many_simulated_histories(first: int) -> None:
    simulate(sites_converge, seeds=range(first, first + 100))
