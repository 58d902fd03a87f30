"""The requests of a reflector."""

from __future__ import annotations

import pytest

from aioinformer._core.listwatch.reflector_requests import (
    AnyRequest,
    DiscoveryRequest,
    ListRequest,
    Request,
    Verb,
    WatchRequest,
)


@pytest.mark.client_go(11)
@pytest.mark.parametrize(
    ("request_", "query"),
    [
        (ListRequest(), {"limit": "500", "resourceVersion": "0"}),
        (ListRequest("", 500), {"limit": "500"}),
        (ListRequest("10", 0), {"resourceVersion": "10"}),
        (ListRequest("0", 500, "t1"), {"limit": "500", "continue": "t1"}),
        (ListRequest("10", 0, "t1"), {"continue": "t1"}),
        (ListRequest("", 0), {}),
        (
            WatchRequest("10", 301),
            {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersion": "10",
                "timeoutSeconds": "301",
            },
        ),
        (
            WatchRequest("10", 301, initial=True),
            {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersion": "10",
                "resourceVersionMatch": "NotOlderThan",
                "sendInitialEvents": "true",
                "timeoutSeconds": "301",
            },
        ),
        (
            WatchRequest("", 301, initial=True),
            {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersionMatch": "NotOlderThan",
                "sendInitialEvents": "true",
                "timeoutSeconds": "301",
            },
        ),
        (ListRequest("", 1, freshness_check=True), {"limit": "1"}),
    ],
    ids=str,
)
def test_a_request_has_its_query_parameters(request_: Request, query: dict[str, str]) -> None:
    """A continue token and a resourceVersion together are answered with 400."""
    assert request_.query() == query


@pytest.mark.parametrize(
    ("request_", "verb"),
    [
        (ListRequest(), "list"),
        (ListRequest("", 1, freshness_check=True), "freshness_check"),
        (WatchRequest("10", 300), "watch"),
        (WatchRequest("", 300, initial=True), "watchlist"),
        (DiscoveryRequest(), "discovery"),
    ],
    ids=str,
)
def test_a_request_has_its_verb(request_: AnyRequest, verb: Verb) -> None:
    assert request_.verb == verb


def test_only_the_first_page_of_an_exact_list_requests_the_version() -> None:
    """A token carries its version; both is an error."""
    first = ListRequest("7", exact=True)
    assert first.query() == {
        "limit": "500",
        "resourceVersion": "7",
        "resourceVersionMatch": "Exact",
    }
    assert ListRequest("7", exact=True, continue_token="t").query() == {
        "limit": "500",
        "continue": "t",
    }
