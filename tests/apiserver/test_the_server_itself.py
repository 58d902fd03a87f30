"""The properties of the server on which the other tests in this folder depend.

A failure here is a fault of the server, a failure in another module is a fault of the library.
These tests don't use the library.
"""

import asyncio
from contextlib import aclosing
from copy import deepcopy
from pathlib import Path

import pytest

from tests.apiserver.server.server_process import (
    AGGREGATED,
    WIDGET_CRD,
    WIDGETS,
    AdminClient,
    ApiError,
    ApiServerProcess,
    Json,
    ServerFailed,
    install_crd,
    wait_until,
)

pytestmark = pytest.mark.apiserver


def widget(name: str, **spec: object) -> Json:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": spec,
    }


async def first_events(admin: AdminClient, count: int, **query: str) -> list[Json]:
    """Return the first events of a watch in all namespaces."""
    events: list[Json] = []
    async with asyncio.timeout(20), aclosing(admin.watch(**query)) as watch:
        async for event in watch:
            events.append(event)
            if len(events) == count:
                break
    return events


def names(objects: list[Json]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


async def test_a_new_server_has_no_widgets(admin: AdminClient) -> None:
    widgets = await admin.list()

    assert widgets["kind"] == "WidgetList"
    assert widgets["items"] == []
    assert int(widgets["metadata"]["resourceVersion"]) > 0


async def test_a_widget_can_be_written_and_read(admin: AdminClient) -> None:
    # Nobody ever made this namespace; without admission nobody asks.
    made = await admin.create(widget("one", size=1, extra={"kept": True}), namespace="nowhere")
    assert await admin.get("one", namespace="nowhere") == made
    assert made["spec"] == {"size": 1, "extra": {"kept": True}}

    made["spec"]["size"] = 2
    updated = await admin.update(made)
    with pytest.raises(ApiError) as conflict:
        await admin.update(made)
    assert conflict.value.status == 409
    patched = await admin.merge_patch("one", {"spec": {"colour": "red"}}, namespace="nowhere")
    assert patched["spec"] == {**updated["spec"], "colour": "red"}

    await admin.delete("one", namespace="nowhere")
    with pytest.raises(ApiError) as missing:
        await admin.get("one", namespace="nowhere")
    assert missing.value.status == 404
    assert missing.value.body["reason"] == "NotFound"


async def test_a_watch_sends_the_changes_since_a_list(admin: AdminClient) -> None:
    since = (await admin.list())["metadata"]["resourceVersion"]
    await admin.create(widget("one", size=1))
    await admin.merge_patch("one", {"spec": {"size": 2}})
    await admin.delete("one")

    events = await first_events(admin, 3, resourceVersion=since)

    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert [event["object"]["spec"]["size"] for event in events] == [1, 2, 2]


async def test_selectors_and_pages_are_served(admin: AdminClient) -> None:
    for name, colour in (("a", "red"), ("b", "blue"), ("c", "red")):
        await admin.create(widget(name, colour=colour))

    red = await admin.list(fieldSelector="spec.colour=red")
    assert names(red["items"]) == ["a", "c"]
    page = await admin.list(limit="2")
    rest = await admin.list(limit="2", **{"continue": page["metadata"]["continue"]})
    assert names(page["items"] + rest["items"]) == ["a", "b", "c"]


async def test_a_watch_list_ends_its_initial_list_with_a_bookmark(admin: AdminClient) -> None:
    for name in ("one", "two"):
        await admin.create(widget(name))

    *initial, bookmark = await first_events(
        admin,
        3,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    )

    assert sorted(names([event["object"] for event in initial])) == ["one", "two"]
    assert {event["type"] for event in initial} == {"ADDED"}
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_killed_server_comes_back_with_its_data(
    api_server: ApiServerProcess, admin: AdminClient
) -> None:
    made = await admin.create(widget("one", size=1))
    url, ca = api_server.url, api_server.ca_file.read_bytes()

    await api_server.restart()

    assert (api_server.url, api_server.ca_file.read_bytes()) == (url, ca)
    assert await admin.get("one") == made
    assert await admin.create(widget("two"))


async def test_a_restarted_server_answers_an_older_version_with_expired(
    api_server: ApiServerProcess, admin: AdminClient
) -> None:
    since = (await admin.list())["metadata"]["resourceVersion"]
    await admin.create(widget("one"))

    await api_server.restart()
    (event,) = await first_events(admin, 1, resourceVersion=since)

    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    assert event["object"]["reason"] == "Expired"


async def test_a_stopped_server_does_not_answer_until_it_is_started(
    api_server: ApiServerProcess, admin: AdminClient
) -> None:
    made = await admin.create(widget("one"))

    await api_server.stop()
    assert not await admin.succeeds("/livez")

    await api_server.start()
    assert await admin.get("one") == made


async def test_a_definition_can_be_added_later(api_server: ApiServerProcess) -> None:
    definition = deepcopy(WIDGET_CRD)
    definition["metadata"]["name"] = "gadgets.example.com"
    definition["spec"]["names"] = {"kind": "Gadget", "plural": "gadgets"}

    await install_crd(api_server, definition)

    async with AdminClient(api_server, WIDGETS._replace(plural="gadgets")) as gadgets:
        assert (await gadgets.list())["kind"] == "GadgetList"


async def test_widgets_are_discovered_in_both_forms(admin: AdminClient) -> None:
    aggregated = await admin.request("GET", "/apis", accept=AGGREGATED)
    groups = {group["metadata"]["name"]: group for group in aggregated["items"]}
    (version,) = groups["example.com"]["versions"]
    (resource,) = version["resources"]
    assert aggregated["kind"] == "APIGroupDiscoveryList"
    assert version["version"] == "v1"
    assert (resource["resource"], resource["singularResource"]) == ("widgets", "widget")
    assert (resource["responseKind"]["kind"], resource["scope"]) == ("Widget", "Namespaced")
    assert resource["shortNames"] == ["wd"]

    legacy = await admin.request("GET", "/apis")
    preferred = [group["preferredVersion"]["groupVersion"] for group in legacy["groups"]]
    assert legacy["kind"] == "APIGroupList"
    assert "example.com/v1" in preferred
    assert (await admin.request("GET", "/api"))["versions"] == []
    assert (await admin.request("GET", "/api", accept=AGGREGATED))["items"] == []


async def test_the_server_becomes_ready(admin: AdminClient) -> None:
    async with asyncio.timeout(20):
        await wait_until(lambda: admin.succeeds("/readyz"))


async def test_a_server_that_does_not_start_reports_the_reason(
    apiserver_binary: Path, tmp_path: Path
) -> None:
    server = ApiServerProcess(apiserver_binary, tmp_path, "--no-such-flag")

    with pytest.raises(ServerFailed, match="not defined: -no-such-flag"):
        await server.start()
