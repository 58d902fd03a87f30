"""The requested documents, and the effect of a missing document."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from aioinformer._client.discovery.fetcher import MAX_INLINE_BYTES, DiscoveryFetcher
from aioinformer._core.objects.resources import Resource, find_built_in
from aioinformer.errors import (
    ConnectionFailed,
    FetchError,
    Forbidden,
    NotFound,
    ProtocolError,
    ServerFailure,
    Status,
    TooManyRequests,
    Unauthorized,
    server_error,
)
from tests.client.discovery_servers import (
    CORE,
    EMPTY,
    GROUPS,
    INGRESS_404,
    PLAIN_404,
    STATUS_404,
    VERSIONS,
    DocumentServer,
    aggregated_document,
    group_document,
    group_list_document,
    legacy_server,
    modern_server,
    resource_list_document,
    standalone_server,
)

WIDGETS = Resource("example.com", "v1", "widgets", "Widget", short_names=("wi",))
PODS = find_built_in("pods")


# -- everything --------------------------------------------------------------------------------


async def test_two_aggregated_documents_describe_everything() -> None:
    documents = modern_server()

    catalogue = await DiscoveryFetcher(documents).fetch_all()

    assert catalogue.find("deploy") == find_built_in("deploy")
    assert documents.requested_paths == ["/api", "/apis"]


async def test_an_older_server_is_read_group_by_group() -> None:
    documents = legacy_server()

    catalogue = await DiscoveryFetcher(documents).fetch_all()

    assert catalogue.find("sts") == find_built_in("sts")
    assert catalogue.find("po") == PODS
    assert documents.requested_paths == [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/metrics.io/v1",
        "/apis/apps/v1",
    ]


@pytest.mark.parametrize(
    "broken",
    [503, 403, 404, 302, 400, 405, 410, b"<html>down</html>"],
    ids=["503", "403", "404", "302", "400", "405", "410", "a page"],
)
async def test_an_error_of_one_group_does_not_hide_the_others(broken: bytes | int) -> None:
    catalogue = await DiscoveryFetcher(legacy_server(**{"/apis/metrics.io/v1": broken})).fetch_all()

    assert catalogue.find("sts") == find_built_in("sts")
    assert list(catalogue.unread) == ["/apis/metrics.io/v1"]


@pytest.mark.parametrize("broken", [503, 403])
async def test_an_error_of_the_list_of_groups_does_not_hide_core_resources(broken: int) -> None:
    documents = DocumentServer({"/api": VERSIONS, "/api/v1": CORE, "/apis": broken})

    catalogue = await DiscoveryFetcher(documents).fetch_all()

    assert catalogue.find("pods") == PODS
    assert list(catalogue.unread) == ["/apis"]


async def test_an_error_of_the_core_group_does_not_hide_other_groups() -> None:
    documents = DocumentServer({"/api": 403, "/api/v1": 403, "/apis": GROUPS})

    catalogue = await DiscoveryFetcher(documents).fetch_all()

    assert catalogue.find("deploy") == find_built_in("deploy")
    assert list(catalogue.unread) == ["/api/v1"]


async def test_an_aggregated_api_that_is_down_is_unread() -> None:
    documents = DocumentServer({"/api": EMPTY, "/apis": aggregated_document("metrics.io", v1=())})

    assert (await DiscoveryFetcher(documents).fetch_all()).unread == {"/apis/metrics.io/v1": None}


@pytest.mark.parametrize(("code", "kind"), [(401, Unauthorized), (429, TooManyRequests)])
async def test_an_error_that_concerns_all_requests_ends_a_discovery_group_by_group(
    code: int, kind: type[FetchError]
) -> None:
    with pytest.raises(kind):
        await DiscoveryFetcher(legacy_server(**{"/apis/metrics.io/v1": code})).fetch_all()


async def test_an_unauthorized_request_is_an_error() -> None:
    with pytest.raises(Unauthorized):
        await DiscoveryFetcher(DocumentServer({"/api": 401})).fetch_all()


async def test_a_server_that_can_not_be_reached_is_an_error() -> None:
    gone = ConnectionFailed("refused", phase="discovery")

    with pytest.raises(ConnectionFailed):
        await DiscoveryFetcher(DocumentServer({"/api": EMPTY, "/apis": gone})).fetch_all()


async def test_a_404_for_every_path_of_another_server_is_an_error() -> None:
    lost = server_error(INGRESS_404, phase="discovery", target="GET /apis")

    with pytest.raises(NotFound, match="default backend"):
        await DiscoveryFetcher(DocumentServer({"/api": lost, "/apis": lost})).fetch_all()
    assert (await DiscoveryFetcher(DocumentServer({"/api": lost})).fetch_all()).served == ()


async def test_the_error_for_an_invalid_document_names_the_server() -> None:
    survey = DiscoveryFetcher(DocumentServer({"/apis": b"{}"}), lambda: "https://10.0.0.1 (config)")

    with pytest.raises(ProtocolError, match=r"^/apis of https://10\.0\.0\.1 \(config\) is no"):
        await survey.fetch_all()


async def test_a_document_that_is_no_json_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="/apis is not a discovery document"):
        await DiscoveryFetcher(DocumentServer({"/apis": b"<html>"})).fetch_all()


# -- one group ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["widgets.example.com", "wi.example.com", "Widget.v1.example.com"])
async def test_the_group_in_a_name_is_requested_directly(name: str) -> None:
    assert (await DiscoveryFetcher(standalone_server()).fetch_named_groups(name)).find(
        name
    ) == WIDGETS


async def test_a_name_with_a_version_needs_that_one_document() -> None:
    documents = standalone_server()

    await DiscoveryFetcher(documents).fetch_named_groups("widgets.v1.example.com")

    assert documents.requested_paths == ["/apis/example.com/v1"]


async def test_the_core_group_is_requested_by_its_version() -> None:
    documents = DocumentServer({"/api": 403, "/api/v1": CORE})

    assert (await DiscoveryFetcher(documents).fetch_named_groups("po.v1")).find("po.v1") == PODS
    assert documents.requested_paths == ["/api/v1"]


async def test_the_error_of_a_group_is_raised_for_a_name_in_it() -> None:
    documents = DocumentServer({"/apis/a.io": group_document("a.io", "v1"), "/apis/a.io/v1": 503})

    found = await DiscoveryFetcher(documents).fetch_named_groups("things.a.io")

    assert isinstance(found.make_lookup_error("things.a.io"), ServerFailure)


# -- whether one is served ---------------------------------------------------------------------


def served(**documents: bytes | int | FetchError) -> DocumentServer:
    """Return a current server with the group ``example.com``."""
    return DocumentServer({"/api": EMPTY, "/apis": EMPTY, **documents})


async def test_a_resource_that_did_not_move_needs_one_request() -> None:
    documents = served(**{"/apis/example.com/v1": resource_list_document("widgets")})

    assert await DiscoveryFetcher(documents).served(WIDGETS) == WIDGETS
    assert documents.requested_paths == ["/apis/example.com/v1"]


async def test_a_core_resource_is_one_request_too() -> None:
    documents = DocumentServer({"/api/v1": CORE})

    assert await DiscoveryFetcher(documents).served(PODS) == PODS
    assert documents.requested_paths == ["/api/v1"]


async def test_a_resource_is_absent_if_two_documents_do_not_contain_it() -> None:
    """The plain 404 of a removed group version, and the list of all groups."""
    documents = served()

    assert await DiscoveryFetcher(documents).served(WIDGETS) is None
    assert documents.requested_paths == ["/apis/example.com/v1", "/apis"]


async def test_a_404_with_a_status_counts_as_absence_too() -> None:
    assert await DiscoveryFetcher(served(**{"/apis/example.com/v1": 404})).served(WIDGETS) is None


async def test_a_resource_that_its_group_version_no_longer_contains_is_absent() -> None:
    documents = served(
        **{
            "/apis/example.com/v1": resource_list_document("gadgets"),
            "/apis": aggregated_document("example.com", v1=("gadgets",)),
        }
    )

    assert await DiscoveryFetcher(documents).served(WIDGETS) is None


async def test_a_resource_is_found_in_another_version() -> None:
    both = aggregated_document("example.com", v2=("widgets",), v1beta1=("widgets",))

    found = await DiscoveryFetcher(served(**{"/apis": both})).served(WIDGETS)

    assert found is not None
    assert (found.version, found.plural) == ("v2", "widgets")


async def test_a_resource_that_one_of_two_documents_contains_is_present() -> None:
    documents = served(
        **{"/apis": aggregated_document("example.com", v2=("widgets",), v1=("widgets",))}
    )

    found = await DiscoveryFetcher(documents).served(WIDGETS)

    assert found is not None
    assert found.version == "v1"


async def test_the_other_versions_of_the_group_are_requested_from_an_older_server() -> None:
    documents = DocumentServer(
        {
            "/apis": group_list_document(("a.io", "v1"), ("example.com", "v1", "v2", "v3")),
            "/apis/example.com/v2": resource_list_document("gadgets"),
            "/apis/example.com/v3": resource_list_document("widgets"),
        }
    )

    found = await DiscoveryFetcher(documents).served(WIDGETS)

    assert found is not None
    assert found.version == "v3"
    assert documents.requested_paths == [
        "/apis/example.com/v1",
        "/apis",
        "/apis/example.com/v2",
        "/apis/example.com/v3",
    ]


@pytest.mark.parametrize("refusal", [404, 403])
async def test_without_a_list_of_groups_the_document_of_the_group_is_requested(
    refusal: int,
) -> None:
    documents = DocumentServer({"/apis": refusal})

    with pytest.raises(ProtocolError, match="can't find out if the server has /apis/example"):
        await DiscoveryFetcher(documents).served(WIDGETS)
    assert documents.requested_paths[-1] == "/apis/example.com"

    documents.served["/apis/example.com"] = group_document("example.com", "v2")
    documents.served["/apis/example.com/v2"] = resource_list_document("widgets")
    found = await DiscoveryFetcher(documents).served(WIDGETS)
    assert found is not None
    assert found.version == "v2"


async def test_a_core_resource_that_its_version_no_longer_contains_is_absent() -> None:
    other = Resource("", "v1", "podz", "Podz")

    for core in (VERSIONS, EMPTY):
        assert (
            await DiscoveryFetcher(DocumentServer({"/api": core, "/api/v1": CORE})).served(other)
            is None
        )
    with pytest.raises(ProtocolError, match="can't find out if the server has /api: "):
        await DiscoveryFetcher(DocumentServer({})).served(other)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/apis/example.com/v1", 401),
        ("/apis/example.com/v1", 403),
        ("/apis/example.com/v1", 503),
        ("/apis/example.com/v1", b"{}"),
        ("/apis/example.com/v1", b'{"kind":"APIResourceList","groupVersion":"other/v1"}'),
        ("/apis", 401),
        ("/apis", 500),
        ("/apis", b"{}"),
        ("/apis", b"<html>"),
        ("/apis", aggregated_document("example.com", v2=())),
        ("/apis", group_list_document(("example.com", "v2"))),  # and v2 answers 503
    ],
)
async def test_an_error_or_an_invalid_document_does_not_prove_absence(
    path: str, answer: bytes | int
) -> None:
    documents = served(**{"/apis/example.com/v2": 503, path: answer})

    with pytest.raises(FetchError) as caught:
        await DiscoveryFetcher(documents).served(WIDGETS)
    assert caught.value.phase == "discovery"


async def test_a_failed_connection_does_not_prove_absence() -> None:
    documents = served(**{"/apis": ConnectionFailed("refused", phase="discovery")})

    with pytest.raises(ConnectionFailed):
        await DiscoveryFetcher(documents).served(WIDGETS)


@pytest.mark.parametrize("status", [INGRESS_404, PLAIN_404, STATUS_404], ids=str)
async def test_the_404s_of_a_proxy_do_not_prove_absence(status: Status) -> None:
    lost = server_error(status, phase="discovery")
    paths = ("/apis/example.com/v1", "/apis", "/apis/example.com")

    with pytest.raises(ProtocolError, match=r"can't find out if the server has /apis/example\.com"):
        await DiscoveryFetcher(DocumentServer(dict.fromkeys(paths, lost))).served(WIDGETS)
    with pytest.raises(ProtocolError, match=r"has /api: .*; is the server's URL right\?$"):
        await DiscoveryFetcher(DocumentServer({"/api": lost, "/api/v1": lost})).served(PODS)


@pytest.mark.parametrize("listed", [("v1",), ("v2",), ("v1", "v2"), ("v2", "v1")])
async def test_a_version_that_is_listed_and_has_no_document_does_not_prove_absence(
    listed: tuple[str, ...],
) -> None:
    documents = DocumentServer({"/apis": group_list_document(("example.com", *listed))})
    if listed == ("v2", "v1"):
        documents.served["/apis/example.com/v1"] = resource_list_document("gadgets")

    with pytest.raises(ProtocolError, match="can't find out if the server has /apis/example"):
        await DiscoveryFetcher(documents).served(WIDGETS)


async def test_a_document_of_the_group_alone_does_not_prove_absence() -> None:
    documents = DocumentServer(
        {
            "/apis/example.com": group_document("example.com", "v1"),
            "/apis/example.com/v1": resource_list_document("gadgets"),
        }
    )

    with pytest.raises(ProtocolError, match="can't find out if the server has /apis/example"):
        await DiscoveryFetcher(documents).served(WIDGETS)


async def test_a_forbidden_group_does_not_prove_absence() -> None:
    documents = DocumentServer({"/apis": 403, "/apis/example.com": 403})

    with pytest.raises(Forbidden):
        await DiscoveryFetcher(documents).served(WIDGETS)


async def test_an_unavailable_aggregated_api_of_another_group_does_not_matter() -> None:
    documents = served(**{"/apis": aggregated_document("metrics.io", v1=())})

    assert await DiscoveryFetcher(documents).served(WIDGETS) is None


# -- long documents ----------------------------------------------------------------------------


def long_list(groups: int) -> bytes:
    """Return an aggregated document of many groups with ten resources each."""

    def described(name: str) -> dict[str, object]:
        found = [{"resource": f"{name}{n}", "responseKind": {"kind": "T"}} for n in range(10)]
        versions = [{"version": "v1", "resources": found}]
        return {"metadata": {"name": f"{name}.io"}, "versions": versions}

    items = [described(f"g{number}") for number in range(groups)]
    return msgspec.json.encode({"kind": "APIGroupDiscoveryList", "items": items})


async def turns_while_reading(groups: int) -> int:
    """Count the iterations of the loop while a document of so many groups is parsed."""
    document, turns = long_list(groups), 0
    assert (len(document) > MAX_INLINE_BYTES) is (groups > 5)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    catalogue = await DiscoveryFetcher(
        DocumentServer({"/api": EMPTY, "/apis": document})
    ).fetch_all()
    beside.cancel()
    assert catalogue.find("g40") is not None
    return turns


async def test_a_long_document_is_parsed_without_blocking_the_loop() -> None:
    assert await turns_while_reading(2000) > await turns_while_reading(5)


@pytest.mark.parametrize("wrong", [b"[", b'{"kind":"x"}'])
async def test_a_long_invalid_document_is_a_protocol_error(wrong: bytes) -> None:
    documents = DocumentServer({"/api": EMPTY, "/apis": wrong + b" " * MAX_INLINE_BYTES})

    with pytest.raises(ProtocolError, match="/apis is not a discovery document"):
        await DiscoveryFetcher(documents).fetch_all()
