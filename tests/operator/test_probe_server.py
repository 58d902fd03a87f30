"""The port of an operator: probes for the kubelet, and metrics for Prometheus."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from aioinformer import Client, Operator, Problem
from aioinformer.adapters.prometheus import PrometheusMetrics
from aioinformer.errors import Forbidden
from aioinformer.testing import ApiServer, Cluster, ClusterSource, Faults
from tests.controllers.reconcilers import FOOS
from tests.operator.operators import answered, get, opened, running, succeed


def make_cluster() -> Cluster:
    cluster = Cluster()
    cluster.create("configmaps", {"metadata": {"name": "a"}})
    return cluster


async def test_a_replica_is_ready_when_its_caches_are_filled_although_another_leads() -> None:
    async with ApiServer(make_cluster()) as server:
        first, second = (
            Operator(
                Client(server.url),
                name="it",
                leader_election="default/it",
                identity=identity,
                port=0,
                host="127.0.0.1",
            )
            for identity in ("one", "two")
        )
        for each in (first, second):
            each.controller("configmaps", succeed)
        async with running(first):
            await first.wait_synced(20)
            async with running(second):
                await second.wait_synced(20)
                for path in ("/readyz", "/livez", "/healthz"):
                    status, answer = await get(second, path)
                    assert (status, answer["ok"], answer["wrong"]) == (200, True, {})
                assert "configmaps" in answer["health"]
        assert first.port is None


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "10.244.1.7:8080", "User-Agent": "kube-probe/1.36"}, 200),
        ({"Host": "[fd00:10:244::7]:8080", "User-Agent": "kube-probe/1.36"}, 200),
        ({"Host": "set-by-httpHeaders.example"}, 200),
        ({"Host": "shop-operator.shop.svc:8080", "User-Agent": "Prometheus/3.5.0"}, 200),
        ({"Host": "localhost:8080", "Origin": "http://localhost:8080"}, 200),
        ({"Host": "localhost:8080", "Origin": "http://evil.example"}, 403),
        ({"Host": "localhost:8080", "Origin": "http://localhost:3000"}, 403),
        ({"Host": "localhost:8080", "Origin": "null"}, 403),
        ({"Host": "localhost:8080", "Origin": ""}, 403),
    ],
)
async def test_kubelets_and_prometheus_are_answered_by_any_host_and_foreign_pages_are_not(
    headers: dict[str, str], status: int
) -> None:
    operator = Operator(
        ClusterSource(make_cluster()),
        name="it",
        port=0,
        host="127.0.0.1",
        metrics=PrometheusMetrics(registry=CollectorRegistry()),
    )
    operator.controller("configmaps", succeed)
    async with running(operator):
        await operator.wait_synced(20)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{operator.port}") as http:
            for path in ("/livez", "/healthz", "/readyz", "/metrics"):
                async with http.get(path, headers=headers) as response:
                    assert response.status == status
                    assert ("another site" in await response.text()) is (status == 403)


async def test_a_replica_is_alive_but_not_ready_while_the_server_does_not_answer() -> None:
    faults = Faults()
    async with ApiServer(make_cluster(), faults=faults) as server:
        operator = Operator(Client(server.url), name="it", port=0, host="127.0.0.1")
        operator.controller("configmaps", succeed)
        with faults.refuse():
            async with running(operator):
                await opened(operator)
                answer = await answered(operator, lambda wrong: "configmaps" in wrong)
                assert not answer["ok"]
                assert (await get(operator, "/livez"))[0] == 200


async def test_an_operator_requests_names_until_the_server_answers() -> None:
    cluster, faults = make_cluster(), Faults()
    cluster.add_resource(FOOS)
    async with ApiServer(cluster, faults=faults) as server:
        operator = Operator(Client(server.url), name="it", port=0, host="127.0.0.1")
        operator.controller("foos.samples.example.com", succeed)
        down = faults.refuse()
        async with running(operator):
            await opened(operator)
            status, answer = await get(operator, "/readyz")
            assert (status, answer["wrong"]) == (503, {"operator": "starting"})
            down.end()
            await operator.wait_synced(30)
            assert (await get(operator, "/readyz"))[0] == 200


async def test_metrics_are_served_if_prometheus_can_scrape_them() -> None:
    async with ApiServer(make_cluster()) as server, aiohttp.ClientSession() as http:
        for metrics, status, said in (
            (PrometheusMetrics(CollectorRegistry()), 200, "aioinformer_workqueue_depth"),
            (None, 404, "pass metrics=PrometheusMetrics()"),
        ):
            operator = Operator(
                Client(server.url), name="it", port=0, host="127.0.0.1", metrics=metrics
            )
            operator.controller("configmaps", succeed)
            async with running(operator):
                await operator.wait_synced(20)
                url = f"http://127.0.0.1:{operator.port}/metrics"
                async with http.get(url) as response:
                    assert (response.status, said in await response.text()) == (status, True)


async def test_a_replica_that_may_not_read_its_lease_is_ready_and_says_why_it_waits() -> None:
    problems = list[Problem]()
    async with ApiServer(make_cluster()) as server:
        server.faults.forbid(resource="leases")
        operator = Operator(
            Client(server.url),
            name="it",
            leader_election="default/it",
            identity="one",
            port=0,
            host="127.0.0.1",
            on_error=problems.append,
        )
        operator.controller("configmaps", succeed)
        async with running(operator):
            await operator.wait_synced(20)
            async with asyncio.timeout(20):
                while not problems:  # noqa: ASYNC110 - a hook has no event
                    await asyncio.sleep(0.01)
            for path in ("/readyz", "/livez", "/healthz"):
                status, answer = await get(operator, path)
                assert (status, answer["ok"], answer["wrong"]) == (200, True, {})
                assert answer["health"]["operator"].startswith("waiting; election: waiting for")
                assert "last error: Forbidden" in answer["health"]["operator"]
            election = operator.health.election
            assert election is not None
            assert isinstance(election.error, Forbidden)
    assert (problems[0].informer, problems[0].phase) == ("lease default/it", "lease")
