"""Tests of lists: the state of a page, its end, and the errors for bad options."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.errors import BadRequest, Expired, Invalid, ServerError, ServerFailure
from aioinformer.testing import Cluster
from tests.client.recordings import read_recording
from tests.testing.recorded_exchanges import (
    WIDGETS,
    as_submitted,
    cluster_with,
    normalize,
    recorded_objects,
)

PODS = ("10-list-page-1", "11-list-page-2", "12-list-page-3-last")


def read(body: bytes) -> dict[str, Any]:
    page: dict[str, Any] = msgspec.json.decode(body)
    return page


def names(body: bytes) -> list[str]:
    return [item["metadata"]["name"] for item in read(body)["items"]]


def token_of(body: bytes) -> str:
    token: str = read(body)["metadata"].get("continue", "")
    return token


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    for number in range(8):
        labels = {"app": f"app-{number % 2}"}
        metadata = {"name": f"web-{number}", "labels": labels}
        cluster.create("pods", {"metadata": metadata, "spec": {"nodeName": f"node-{number % 3}"}})
    return cluster


# -- the bytes ---------------------------------------------------------------------------------


def test_pages_of_pods_are_written_as_a_real_server_writes_them() -> None:
    """Recordings 10 to 12, byte for byte but for versions, uids and times."""
    cluster, token = cluster_with(*PODS), ""
    for name in PODS:
        page = cluster.list("pods", namespace="default", limit=3, continue_token=token)
        assert normalize(page) == normalize(read_recording(name).body)
        token = token_of(page)
    assert not token


def test_a_list_of_custom_resources_is_written_as_a_real_server_writes_it() -> None:
    """Recording 50: keys sorted, so items come before metadata, and each item has its type."""
    cluster = Cluster()
    cluster.add_resource(WIDGETS)
    for widget in recorded_objects("50-cr-list"):
        cluster.create(WIDGETS, as_submitted(widget))
    body = cluster.list(WIDGETS, namespace="default")
    assert normalize(body) == normalize(read_recording("50-cr-list").body)


def test_characters_of_html_are_escaped(cluster: Cluster) -> None:
    cluster.merge_patch("pods", "web-0", {"metadata": {"annotations": {"a": "<&>"}}})
    assert rb'{"a":"\u003c\u0026\u003e"}' in cluster.list("pods")


def test_an_empty_list_has_items() -> None:
    body = Cluster().list("services")
    assert (
        body == b'{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"1"},'
        b'"items":[]}\n'
    )


# -- pages -------------------------------------------------------------------------------------


def test_every_page_shows_the_state_of_the_first(cluster: Cluster) -> None:
    first = cluster.list("pods", limit=3)
    cluster.delete("pods", "web-4")
    cluster.create("pods", {"metadata": {"name": "web-35"}})
    cluster.merge_patch("pods", "web-5", {"metadata": {"labels": {"new": "yes"}}})
    second = cluster.list("pods", limit=3, continue_token=token_of(first))
    third = cluster.list("pods", limit=3, continue_token=token_of(second))
    assert names(second) + names(third) == [f"web-{number}" for number in range(3, 8)]
    assert b'"new"' not in second + third
    versions = {read(page)["metadata"]["resourceVersion"] for page in (first, second, third)}
    assert len(versions) == 1


def test_a_page_has_the_remaining_count(cluster: Cluster) -> None:
    assert read(cluster.list("pods", limit=3))["metadata"]["remainingItemCount"] == 5
    whole = read(cluster.list("pods", limit=8))["metadata"]
    assert "remainingItemCount" not in whole
    assert "continue" not in whole


def test_a_page_of_a_selection_has_no_remaining_count(cluster: Cluster) -> None:
    page = read(cluster.list("pods", limit=2, labels="app=app-1"))
    assert page["metadata"]["continue"]
    assert "remainingItemCount" not in page["metadata"]


def test_pages_of_one_namespace_stay_in_it(cluster: Cluster) -> None:
    for namespace in ("defaul", "default-b", "defaultz"):
        cluster.create("pods", {"metadata": {"name": "other"}}, namespace=namespace)
    first = cluster.list("pods", namespace="default", limit=5)
    second = cluster.list("pods", namespace="default", limit=5, continue_token=token_of(first))
    assert names(first) + names(second) == [f"web-{number}" for number in range(8)]


def test_a_list_from_zero_ignores_the_limit(cluster: Cluster) -> None:
    """Recording 14: the watch cache answers, and it knows no pages."""
    page = cluster.list("pods", resource_version="0", limit=3)
    assert len(names(page)) == 8
    assert token_of(page) == ""


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans()), max_size=20),
    st.integers(0, 19),
    st.integers(1, 4),
)
def test_a_past_state_is_that_of_a_list_at_that_time(
    writes: list[tuple[str, bool]], moment: int, limit: int
) -> None:
    cluster = Cluster()
    past, version = cluster.list("pods"), cluster.resource_version
    for number, (name, there) in enumerate(writes):
        _write(cluster, name, there=there)
        if number == moment:
            past, version = cluster.list("pods"), cluster.resource_version
    if version == 1:
        return  # version 1 is the empty cluster, before any write
    items: list[Any] = []
    page = cluster.list("pods", resource_version=str(version), match="Exact", limit=limit)
    items += read(page)["items"]
    while token := token_of(page):
        page = cluster.list("pods", limit=limit, continue_token=token)
        items += read(page)["items"]
    assert items == read(past)["items"]


def _write(cluster: Cluster, name: str, *, there: bool) -> None:
    exists = name in names(cluster.list("pods"))
    if there and not exists:
        cluster.create("pods", {"metadata": {"name": name}})
    elif there:
        patch = {"metadata": {"labels": {"at": str(cluster.resource_version)}}}
        cluster.merge_patch("pods", name, patch)
    elif exists:
        cluster.delete("pods", name)


# -- selections --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "fields", "chosen"),
    [
        ("app=app-1", "", [1, 3, 5, 7]),
        ("", "spec.nodeName=node-0", [0, 3, 6]),
        ("app=app-1", "spec.nodeName=node-0", [3]),
        ("", "metadata.name=web-2", [2]),
        ("", "status.phase!=Running", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("app notin (app-0,app-1)", "", []),
    ],
)
def test_selectors_select_the_listed_objects(
    cluster: Cluster, labels: str, fields: str, chosen: list[int]
) -> None:
    body = cluster.list("pods", labels=labels, fields=fields)
    assert names(body) == [f"web-{number}" for number in chosen]


def test_a_missing_boolean_is_selected_as_false(cluster: Cluster) -> None:
    cluster.create("nodes", {"metadata": {"name": "a"}, "spec": {}})
    cluster.create("nodes", {"metadata": {"name": "b"}, "spec": {"unschedulable": True}})
    assert names(cluster.list("nodes", fields="spec.unschedulable=false")) == ["a"]
    assert names(cluster.list("nodes", fields="spec.unschedulable=true")) == ["b"]


def test_the_source_of_an_event_is_its_component(cluster: Cluster) -> None:
    cluster.create("events", {"metadata": {"name": "e"}, "source": {"component": "kubelet"}})
    assert names(cluster.list("events", fields="source=kubelet")) == ["e"]


@pytest.mark.parametrize(
    ("resource", "labels", "fields", "message"),
    [
        ("pods", "a===", "", "unable to parse requirement: found '=', expected: identifier"),
        ("pods", "", "spec.nope=1", "field label not supported: spec.nope"),
        (
            "configmaps",
            "",
            "spec.type=x",
            '"spec.type" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
def test_a_selector_that_the_server_does_not_know_is_a_bad_request(
    cluster: Cluster, resource: str, labels: str, fields: str, message: str
) -> None:
    """Recordings 21 and 22."""
    with pytest.raises(BadRequest) as caught:
        cluster.list(resource, labels=labels, fields=fields)
    assert caught.value.status.message == message
    assert caught.value.phase == "list"


# -- versions and tokens -----------------------------------------------------------------------


def test_a_version_from_the_future_is_too_large(cluster: Cluster) -> None:
    """Recording 20."""
    with pytest.raises(ServerFailure) as caught:
        cluster.list("pods", resource_version="99")
    status = caught.value.status
    assert (status.code, status.reason, status.retry_after) == (504, "Timeout", 1.0)
    assert status.details["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_a_version_is_a_lower_bound_without_an_exact_match(cluster: Cluster) -> None:
    assert len(names(cluster.list("pods", resource_version="4"))) == 8
    assert len(names(cluster.list("pods", resource_version="4", match="NotOlderThan"))) == 8
    assert len(names(cluster.list("pods", resource_version="4", match="Exact"))) == 3


def test_a_version_with_a_limit_is_exact(cluster: Cluster) -> None:
    """The API concepts page: the meaning of a bare version without resourceVersionMatch."""
    assert len(names(cluster.list("pods", resource_version="4", limit=5))) == 3


def test_a_list_at_a_compacted_version_is_expired(cluster: Cluster) -> None:
    cluster.compact()
    with pytest.raises(Expired, match="too old"):
        cluster.list("pods", resource_version="4", match="Exact")


def test_the_window_limits_the_age_of_the_version_of_a_list() -> None:
    cluster = Cluster(window=2)
    for name in "abcd":
        cluster.create("pods", {"metadata": {"name": name}})
    assert names(cluster.list("pods", resource_version="3", match="Exact")) == ["a", "b"]
    with pytest.raises(Expired):
        cluster.list("pods", resource_version="2", match="Exact")


def test_the_error_for_an_expired_token_has_a_token_for_the_rest(cluster: Cluster) -> None:
    """Recording 62."""
    token = token_of(cluster.list("pods", namespace="default", limit=3))
    cluster.delete("pods", "web-4")
    cluster.compact()
    with pytest.raises(Expired, match="continue parameter is too old") as caught:
        cluster.list("pods", namespace="default", limit=3, continue_token=token)
    fresh = caught.value.status.continue_token
    rest = cluster.list("pods", namespace="default", continue_token=fresh)
    assert names(rest) == ["web-3", "web-5", "web-6", "web-7"]
    assert read(rest)["metadata"]["resourceVersion"] == str(cluster.resource_version)


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("garbage", "invalid character '\\u0081' looking for beginning of value"),
        ("!", "illegal base64 data at input byte 0"),
        ("e30", "missing required field"),
        ("eyJ2IjoidjIiLCJydiI6MSwic3RhcnQiOiIifQ", 'this encoded version "v2"'),
    ],
)
def test_an_invalid_continue_token_is_a_bad_request(cluster: Cluster, token: str, why: str) -> None:
    """Recording 23 has the first of these tokens."""
    with pytest.raises(BadRequest) as caught:
        cluster.list("pods", continue_token=token)
    assert caught.value.status.message.startswith("invalid continue token: continue key is not")
    assert why in caught.value.status.message


@pytest.mark.parametrize(
    ("version", "match", "token", "error"),
    [
        ("", "Exact", "", Invalid),
        ("0", "Exact", "", Invalid),
        ("1", "Newest", "", Invalid),
        ("1", "Exact", "x", Invalid),
        ("1", "", "x", BadRequest),
        ("x", "", "", BadRequest),
    ],
)
def test_options_that_exclude_each_other_are_an_error(
    cluster: Cluster, version: str, match: str, token: str, error: type[ServerError]
) -> None:
    """Source: ValidateListOptions of apimachinery."""
    with pytest.raises(error):
        cluster.list("pods", resource_version=version, match=match, continue_token=token)


def test_a_token_from_another_cluster_s_future_is_too_large(cluster: Cluster) -> None:
    token = token_of(cluster.list("pods", limit=1))
    with pytest.raises(ServerFailure, match="Too large resource version"):
        Cluster().list("pods", continue_token=token)
