"""The lifetime of a discovery result, and its sharing by concurrent callers."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import Resource
from aioinformer.errors import (
    AmbiguousResource,
    ConnectionLost,
    Forbidden,
    ServerFailure,
    Unauthorized,
    UnknownResource,
    UnwatchableResource,
)
from tests.client.accelerated_time import in_accelerated_time, run_accelerated
from tests.client.discovery_servers import (
    APPS,
    CORE,
    EMPTY,
    GROUPS,
    VERSIONS,
    DocumentServer,
    client_of,
    group_document,
    group_list_document,
    legacy_server,
    modern_server,
    resource_list_document,
    standalone_server,
)

EVERYTHING = ["/api", "/apis"]
RETRY_INTERVAL = 2.0
"""Seconds after which a missing name, or resource, is asked for again."""


async def find(documents: DocumentServer, name: str) -> Resource:
    async with client_of(documents) as client:
        return await client.resource(name)


# -- how long ----------------------------------------------------------------------------------


@in_accelerated_time
async def test_a_second_name_is_found_without_another_request() -> None:
    documents = modern_server()
    async with client_of(documents) as client:
        await client.resource("deploy")
        assert (await client.resource("jobs")).group == "batch"

        assert documents.requested_paths == EVERYTHING


def test_an_answer_is_used_for_ten_minutes() -> None:
    documents = modern_server()

    async def scenario() -> None:
        async with client_of(documents) as client:
            await client.resource("deploy")

            await asyncio.sleep(599)
            await client.resource("deploy")
            assert documents.requested_paths == EVERYTHING
            await asyncio.sleep(2)
            await client.resource("deploy")
            assert documents.requested_paths == EVERYTHING * 2

    run_accelerated(scenario(), speed=20_000)


@in_accelerated_time
async def test_a_missing_name_is_requested_again_after_an_interval() -> None:
    """The custom resource may have been installed a second ago."""
    documents = modern_server()
    async with client_of(documents) as client:
        await client.resource("deploy")
        documents.served["/apis"] = GROUPS.replace(b'"deployments"', b'"widgets"')

        with pytest.raises(UnknownResource):
            await client.resource("widgets")
        assert documents.requested_paths == EVERYTHING, "names that are missing are no flood"
        await asyncio.sleep(RETRY_INTERVAL)
        assert (await client.resource("widgets")).plural == "widgets"
        assert documents.requested_paths == EVERYTHING * 2


@in_accelerated_time
async def test_a_name_is_no_longer_ambiguous_after_one_of_its_resources_was_removed() -> None:
    both = group_list_document(("a.io", "v1"), ("b.io", "v1"))
    widgets = resource_list_document("widgets")
    served = {"/api": EMPTY, "/apis": both, "/apis/a.io/v1": widgets, "/apis/b.io/v1": widgets}
    documents = DocumentServer(served)
    async with client_of(documents) as client:
        with pytest.raises(AmbiguousResource):
            await client.resource("widgets")
        documents.served["/apis"] = group_list_document(("b.io", "v1"))

        with pytest.raises(AmbiguousResource):
            await client.resource("widgets")
        await asyncio.sleep(RETRY_INTERVAL)

        assert (await client.resource("widgets")).group == "b.io"


@in_accelerated_time
async def test_an_unknown_name_causes_one_discovery() -> None:
    documents = modern_server()

    with pytest.raises(UnknownResource, match="did you mean"):
        await find(documents, "deploymets")

    assert documents.requested_paths == EVERYTHING


@in_accelerated_time
async def test_the_error_of_a_resource_that_cannot_be_watched_names_the_missing_verbs() -> None:
    with pytest.raises(UnwatchableResource, match="doesn't support list or watch"):
        await find(legacy_server(), "bindings")


@in_accelerated_time
async def test_a_failed_discovery_is_repeated_at_the_next_call() -> None:
    documents = modern_server()
    async with client_of(documents) as client:
        documents.served["/apis"] = None

        with pytest.raises(ConnectionLost):
            await client.resource("deploy")
        documents.served["/apis"] = GROUPS

        assert (await client.resource("deploy")).plural == "deployments"


# -- at once -----------------------------------------------------------------------------------


@in_accelerated_time
async def test_concurrent_callers_share_one_discovery() -> None:
    documents = modern_server()
    async with client_of(documents) as client:
        await asyncio.gather(*(client.resource(name) for name in ("deploy", "jobs", "leases")))

        assert documents.requested_paths == EVERYTHING


@in_accelerated_time
async def test_concurrent_callers_share_the_failure_of_a_discovery() -> None:
    """Else ten informers at a server that is not there would wait for ten timeouts in a row."""
    documents = DocumentServer({"/api": 401})
    async with client_of(documents) as client:
        ended = await asyncio.gather(
            *map(client.resource, ("deploy", "jobs", "leases")), return_exceptions=True
        )

        assert [type(each) for each in ended] == [Unauthorized] * 3
        assert len(set(map(id, ended))) == 3, "each its own: tracebacks grow"
        assert documents.requested_paths == ["/api"]


@in_accelerated_time
async def test_a_waiting_caller_repeats_the_discovery_of_a_cancelled_one() -> None:
    documents = modern_server()
    async with client_of(documents) as client:
        first = asyncio.create_task(client.resource("deploy"))
        second = asyncio.create_task(client.resource("jobs"))
        while not documents.requested_paths:  # noqa: ASYNC110 - the server has no event
            await asyncio.sleep(0)
        first.cancel()

        assert (await second).plural == "jobs"
        assert documents.requested_paths == ["/api", *EVERYTHING]
        assert first.cancelled()


# -- what could not be read --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["widgets.example.com", "wi.example.com", "Widget.v1.example.com"])
@in_accelerated_time
async def test_a_name_with_its_group_is_found_without_a_list_of_groups(name: str) -> None:
    found = await find(standalone_server(), name)

    assert (found.group, found.version, found.plural) == ("example.com", "v1", "widgets")


@in_accelerated_time
async def test_a_name_with_its_group_is_found_where_the_list_of_groups_is_forbidden() -> None:
    documents = DocumentServer(
        {"/api": VERSIONS, "/api/v1": CORE, "/apis": 403, "/apis/apps/v1": APPS}
    )
    async with client_of(documents) as client:
        assert (await client.resource("pods")).plural == "pods"
        assert (await client.resource("deploy.v1.apps")).plural == "deployments"
        assert documents.requested_paths == ["/api", "/api/v1", "/apis", "/apis/apps/v1"]
        with pytest.raises(Forbidden):
            await client.resource("ingresses")


@in_accelerated_time
async def test_a_group_that_was_down_is_found_when_it_is_back() -> None:
    documents = legacy_server(**{"/apis/metrics.io/v1": 503})
    async with client_of(documents) as client:
        assert (await client.resource("sts")).plural == "statefulsets"
        with pytest.raises(UnknownResource, match=r"did not describe metrics\.io/v1"):
            await client.resource("podmetrics")
        with pytest.raises(ServerFailure):
            await client.resource("podmetrics.metrics.io")
        documents.served["/apis/metrics.io/v1"] = resource_list_document("podmetrics")
        await asyncio.sleep(RETRY_INTERVAL)

        assert (await client.resource("podmetrics.metrics.io")).group == "metrics.io"


@in_accelerated_time
async def test_a_name_in_an_unavailable_group_is_requested_once_in_an_interval() -> None:
    documents = DocumentServer(
        {"/apis": 503, "/apis/a.io": group_document("a.io", "v1"), "/apis/a.io/v1": 503}
    )
    async with client_of(documents) as client:
        for _ in range(3):
            with pytest.raises(ServerFailure):
                await client.resource("things.a.io")

        assert documents.requested_paths.count("/apis/a.io/v1") == 1


@in_accelerated_time
async def test_a_server_without_a_list_of_groups_finds_no_name_without_its_group() -> None:
    documents = standalone_server()

    with pytest.raises(UnknownResource, match=r"list its groups, so ask for widgets\.GROUP"):
        await find(documents, "widgets")

    assert documents.requested_paths == EVERYTHING


@pytest.mark.parametrize("name", ["widgets..", "widgets.a/../b", "widgets.%2e"])
@in_accelerated_time
async def test_a_name_with_a_group_that_is_no_url_segment_is_unknown(name: str) -> None:
    documents = standalone_server()

    with pytest.raises(UnknownResource):
        await find(documents, name)
    assert not any(".." in path or "%" in path for path in documents.requested_paths)


# -- one resource ------------------------------------------------------------------------------


@in_accelerated_time
async def test_the_served_check_is_repeated_after_an_interval() -> None:
    documents = standalone_server()
    async with client_of(documents) as client:
        widgets = await client.resource("widgets.example.com")
        assert await client.served(widgets) == widgets
        documents.served.clear()
        documents.served["/apis"] = EMPTY
        requests = len(documents.requested_paths)

        assert await client.served(widgets) == widgets
        assert len(documents.requested_paths) == requests
        await asyncio.sleep(RETRY_INTERVAL)
        assert await client.served(widgets) is None
        assert await client.served(Resource("example.com", "v1", "gadgets", "Gadget")) is None
