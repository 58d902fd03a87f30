"""``aioinformer health``: checks, the report, and the exit code."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aioinformer import Client
from aioinformer._cli.health.checks import (
    ResourceReport,
    ServerReport,
    check_resource,
    check_server,
)
from aioinformer._cli.health.command import format_report
from aioinformer._cli.terminal.style import render
from aioinformer.errors import RequestTimedOut
from aioinformer.testing import ApiServer, Cluster, Features
from tests.cli.processes import environment, started_cli
from tests.client.accelerated_time import in_accelerated_time


def filled(*, watch_list: bool = True) -> Cluster:
    cluster = Cluster(features=Features(watch_list=watch_list))
    for name in ("a", "b"):
        cluster.create("pods", {"metadata": {"name": name, "namespace": "web"}})
    return cluster


def two_pods_server() -> ApiServer:
    """Return a server to be entered, with two pods, for ``found``."""
    return ApiServer(filled(), token="secret-1")


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with two_pods_server() as server:
        yield server


async def found(
    server: ApiServer, name: str, namespace: str = "", timeout: float = 30
) -> ResourceReport:
    async with Client(server.url, token="secret-1") as client:
        return await check_resource(client, name, namespace, timeout=timeout)


# -- what is found -----------------------------------------------------------------------------


async def test_a_resource_that_works_is_listed_watched_and_synced(server: ApiServer) -> None:
    finding = await found(server, "po")

    assert finding.ok
    assert (finding.resource, finding.scope, finding.error) == ("pods", "all", "")
    assert (finding.lists, finding.watches, finding.bookmarks) == (True, True, True)
    assert (finding.strategy, finding.objects) == ("watchlist", 2)
    assert finding.size is not None
    assert finding.size > 500


async def test_a_server_without_watch_lists_is_listed() -> None:
    async with ApiServer(filled(watch_list=False)) as server:
        finding = await found(server, "pods", "web")

    assert finding.ok
    assert (finding.scope, finding.strategy, finding.objects) == ("web", "list", 2)
    assert finding.bookmarks is None, "none has come yet"


async def test_cluster_scoped_resources_have_no_namespace(server: ApiServer) -> None:
    assert (await found(server, "nodes", "web")).scope == "all"


async def test_a_group_is_part_of_the_name(server: ApiServer) -> None:
    assert (await found(server, "deploy")).resource == "deployments.apps"


async def test_the_error_for_a_forbidden_list_contains_a_solution(server: ApiServer) -> None:
    with server.faults.forbid(resource="pods"):
        finding = await found(server, "pods")

    assert not finding.ok
    assert (finding.lists, finding.watches, finding.synced) == (False, None, None)
    assert "403 Forbidden: pods is forbidden: " in finding.error
    assert "cannot list" in finding.error
    assert finding.error.endswith("log in again, or get a fresh kubeconfig")


async def test_a_forbidden_watch_is_distinguished_from_a_forbidden_list(server: ApiServer) -> None:
    with server.faults.forbid(verb="watch"):
        finding = await found(server, "pods")

    assert (finding.lists, finding.watches, finding.ok) == (True, False, False)
    assert "cannot watch" in finding.error


async def test_an_unknown_resource_is_reported_with_a_suggestion(server: ApiServer) -> None:
    finding = await found(server, "podz")

    assert (finding.resource, finding.lists, finding.ok) == ("podz", None, False)
    assert "did you mean pods?" in finding.error


@in_accelerated_time
async def test_a_server_that_ignores_the_parameters_of_a_watch_list_is_listed_with_a_note() -> None:
    """As Kubernetes before 1.27 does: the stream never says where the state ends."""
    async with two_pods_server() as server:
        server.faults.endless_watch_list()
        finding = await found(server, "pods", timeout=2.5)

    assert (finding.ok, finding.strategy, finding.objects) == (True, "list", 2)
    assert "watch_list=False" in finding.note
    assert (
        render(format_report(ServerReport(url="http://server"), [finding])[-1], colour=False)
        == f"pods: {finding.note}"
    )


@in_accelerated_time
async def test_a_watch_list_that_is_merely_slow_is_not_taken_for_an_endless_one() -> None:
    async with two_pods_server() as server:
        server.faults.drip(size=20, every=0.5, verb="watch")
        finding = await found(server, "pods", timeout=2.5)

    assert (finding.ok, finding.strategy, finding.note) == (False, "watchlist", "")
    assert "2.5 s" in finding.error


@in_accelerated_time
async def test_the_error_for_a_slow_initial_list_contains_the_timeout() -> None:
    async with two_pods_server() as server:
        server.cluster.create(
            "pods", {"metadata": {"name": "c", "namespace": "web"}, "data": "x" * 9000}
        )
        # Lists of one object and the opened watch get through; whole states don't.
        server.faults.endless_watch_list()
        server.faults.stall(verb="list", after=5000)
        finding = await found(server, "pods", timeout=2.5)

    assert (finding.lists, finding.watches, finding.synced, finding.ok) == (True, True, None, False)
    assert "2.5 s" in finding.error


async def test_a_server_that_accepts_requests_but_does_not_answer_is_reported(
    server: ApiServer,
) -> None:
    report = ServerReport(url=server.url)
    with server.faults.stall(verb="list"):
        finding = await found(server, "pods", timeout=1.0)
    with server.faults.stall(verb="get"):
        async with Client(server.url, token="secret-1") as client:
            with pytest.raises(RequestTimedOut, match=r"not answered within 0.1 s"):
                await check_server(client, report, timeout=0.1)

    assert (finding.lists, finding.ok) == (False, False)
    assert finding.error == "the server has not answered within 1 s"


async def test_the_check_measures_the_latency_of_several_version_requests(
    server: ApiServer,
) -> None:
    report = ServerReport(url=server.url)
    async with Client(server.url, token="secret-1") as client:
        await check_server(client, report, timeout=30)

    assert report.version == "v1.36.0"
    assert report.latency is not None
    assert report.slowest is not None
    assert 0 < report.latency <= report.slowest


async def test_a_forbidden_version_is_reported_without_an_error(server: ApiServer) -> None:
    report = ServerReport(url=server.url)
    with server.faults.status(403, reason="Forbidden", verb="get", times=1):
        async with Client(server.url, token="secret-1") as client:
            await check_server(client, report, timeout=30)

    assert (report.version, report.latency) == ("(version not readable)", None)


async def test_the_user_is_shown_if_the_server_reports_it(server: ApiServer) -> None:
    said, denied = ServerReport(url=server.url), ServerReport(url=server.url)
    async with Client(server.url, token="secret-1") as client:
        await check_server(client, said, timeout=30)
        with server.faults.status(404, resource="selfsubjectreviews"):
            await check_server(client, denied, timeout=30)

    assert said.user == "admin (groups system:masters, system:authenticated)"
    assert denied.user == ""
    assert denied.version


# -- the report --------------------------------------------------------------------------------


def test_the_report_has_facts_a_table_and_a_line_for_each_failure() -> None:
    report = ServerReport(
        url="https://10.0.0.1:6443",
        version="v1.36.0",
        credentials="token (context main)",
        first=0.0121,
        latency=0.0014,
        slowest=0.002,
    )
    good = ResourceReport(
        resource="pods",
        scope="web",
        lists=True,
        watches=True,
        strategy="watchlist",
        bookmarks=True,
        synced=0.125,
        objects=12345,
        size=1_100_000,
    )
    bad = ResourceReport(resource="nodes", scope="all", lists=False, error="403 Forbidden: no\x1b")

    assert "\n".join(
        render(line, colour=False).rstrip() for line in format_report(report, [good, bad])
    ) == (
        "server       https://10.0.0.1:6443 v1.36.0\n"
        "credentials  token (context main)\n"
        "latency      median 1.4 ms, slowest 2.0 ms, first 12.1 ms\n"
        "\n"
        "RESOURCE   SCOPE   LIST   WATCH   STRATEGY    BOOKMARKS   OBJECTS   SIZE     SYNC\n"
        "pods       web     yes    yes     watchlist   yes         12,345    1.1 MB   125 ms\n"
        "nodes      all     no     -       -           -           -         -        -\n"
        "\n"
        "nodes: 403 Forbidden: no\N{REPLACEMENT CHARACTER}"
    )


# -- as a process ------------------------------------------------------------------------------


async def checked(*argv: str, home: Path) -> tuple[int, str, str]:
    async with started_cli("health", *argv, env=environment(home)) as run:
        return await run.wait()


@pytest.mark.clients
async def test_a_default_selection_of_resources_is_checked(
    server: ApiServer, tmp_path: Path
) -> None:
    config = str(server.kubeconfig(tmp_path / "config"))
    code, out, err = await checked("--kubeconfig", config, "-n", "web", home=tmp_path)

    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert [row[0] for row in rows[6:]] == [
        "pods",
        "services",
        "deployments.apps",
        "namespaces",
        "nodes",
    ]
    assert rows[6][:6] == ["pods", "web", "yes", "yes", "watchlist", "yes"]
    assert rows[1][:2] == ["credentials", "token"]
    assert " ".join(rows[2]) == "user admin (groups system:masters, system:authenticated)"
    assert "secret-1" not in out


@pytest.mark.clients
async def test_json_is_one_document_and_a_failure_is_code_1(
    server: ApiServer, tmp_path: Path
) -> None:
    config = str(server.kubeconfig(tmp_path / "config"))
    argv = ("pods", "podz", "-A", "-o", "json", "--kubeconfig", config)
    code, out, _ = await checked(*argv, home=tmp_path)
    document = json.loads(out)

    assert code == 1
    assert document["ok"] is False
    assert [each["ok"] for each in document["resources"]] == [True, False]
    assert document["resources"][0]["strategy"] == "watchlist"
    assert document["server"]["version"] == "v1.36.0"
    assert "secret-1" not in out


@pytest.mark.clients
async def test_an_unreachable_server_is_reported_with_exit_code_1(
    server: ApiServer, tmp_path: Path
) -> None:
    config = str(server.kubeconfig(tmp_path / "config"))
    await server.stop()
    code, out, err = await checked("--kubeconfig", config, home=tmp_path)

    assert (code, err) == (1, "")
    assert "Connection refused; nothing listens there" in out.splitlines()[-1]
