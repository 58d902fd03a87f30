"""The requested documents, and the effect of a missing document."""

from __future__ import annotations

import pytest

from aioinformer import Resource
from aioinformer.api import ResourceList
from aioinformer.errors import (
    ConnectionLost,
    FetchError,
    Forbidden,
    NotFound,
    ProtocolError,
    ServerFailure,
    Status,
    TooManyRequests,
    Unauthorized,
)
from tests.client.discovery_servers import (
    CORE,
    EMPTY,
    GROUPS,
    INGRESS_404,
    PLAIN_404,
    STATUS_404,
    VERSIONS,
    Answer,
    DocumentServer,
    aggregated_document,
    client_of,
    group_document,
    group_list_document,
    legacy_server,
    modern_server,
    resource_list_document,
    standalone_server,
)

WIDGETS = Resource("example.com", "v1", "widgets", "Widget", short_names=("wi",))
PODS = Resource("", "v1", "pods", "Pod")


async def fetch_all(documents: DocumentServer) -> ResourceList:
    async with client_of(documents) as client:
        return await client.discover()


async def find(documents: DocumentServer, name: str) -> Resource:
    async with client_of(documents) as client:
        return await client.resource(name)


async def find_served(documents: DocumentServer, resource: Resource = WIDGETS) -> Resource | None:
    async with client_of(documents) as client:
        return await client.served(resource)


def plurals(found: ResourceList, name: str) -> list[str]:
    return [str(each.resource) for each in found.find(name=name)]


# -- everything --------------------------------------------------------------------------------


async def test_two_aggregated_documents_describe_everything() -> None:
    documents = modern_server()

    catalogue = await fetch_all(documents)

    assert plurals(catalogue, "deploy") == ["deployments.apps"]
    assert documents.requested_paths == ["/api", "/apis"]


async def test_an_older_server_is_read_group_by_group() -> None:
    documents = legacy_server()

    catalogue = await fetch_all(documents)

    assert plurals(catalogue, "sts") == ["statefulsets.apps"]
    assert plurals(catalogue, "po") == ["pods"]
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
    catalogue = await fetch_all(legacy_server(**{"/apis/metrics.io/v1": broken}))

    assert plurals(catalogue, "sts") == ["statefulsets.apps"]
    assert catalogue.unread == ("/apis/metrics.io/v1",)


@pytest.mark.parametrize("broken", [503, 403])
async def test_an_error_of_the_list_of_groups_does_not_hide_core_resources(broken: int) -> None:
    documents = DocumentServer({"/api": VERSIONS, "/api/v1": CORE, "/apis": broken})

    catalogue = await fetch_all(documents)

    assert plurals(catalogue, "pods") == ["pods"]
    assert catalogue.unread == ("/apis",)


async def test_an_error_of_the_core_group_does_not_hide_other_groups() -> None:
    documents = DocumentServer({"/api": 403, "/api/v1": 403, "/apis": GROUPS})

    catalogue = await fetch_all(documents)

    assert plurals(catalogue, "deploy") == ["deployments.apps"]
    assert catalogue.unread == ("/api/v1",)


async def test_an_aggregated_api_that_is_down_is_unread() -> None:
    documents = DocumentServer({"/api": EMPTY, "/apis": aggregated_document("metrics.io", v1=())})

    assert (await fetch_all(documents)).unread == ("/apis/metrics.io/v1",)


@pytest.mark.parametrize(("code", "kind"), [(401, Unauthorized), (429, TooManyRequests)])
async def test_an_error_that_concerns_all_requests_ends_a_discovery_group_by_group(
    code: int, kind: type[FetchError]
) -> None:
    with pytest.raises(kind):
        await fetch_all(legacy_server(**{"/apis/metrics.io/v1": code}))


async def test_an_unauthorized_request_is_an_error() -> None:
    with pytest.raises(Unauthorized):
        await fetch_all(DocumentServer({"/api": 401}))


async def test_a_server_that_can_not_be_reached_is_an_error() -> None:
    with pytest.raises(ConnectionLost):
        await fetch_all(DocumentServer({"/api": EMPTY, "/apis": None}))


async def test_a_404_for_every_path_of_another_server_is_an_error() -> None:
    with pytest.raises(NotFound, match="doesn't look like a Kubernetes"):
        await fetch_all(DocumentServer({"/api": INGRESS_404, "/apis": INGRESS_404}))
    assert not await fetch_all(DocumentServer({"/api": INGRESS_404}))


async def test_the_error_for_an_invalid_document_names_the_server() -> None:
    async with client_of(DocumentServer({"/apis": b"{}"})) as client:
        with pytest.raises(ProtocolError, match=rf"^/apis of {client.server} is no"):
            await client.discover()


async def test_a_document_that_is_no_json_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match=r"/apis of \S+ is not a discovery document"):
        await fetch_all(DocumentServer({"/apis": b"<html>"}))


# -- one group ---------------------------------------------------------------------------------


async def test_a_name_with_a_version_needs_that_one_document() -> None:
    documents = standalone_server()

    await find(documents, "widgets.v1.example.com")

    assert documents.requested_paths == ["/api", "/apis", "/apis/example.com/v1"]


async def test_the_core_group_is_requested_by_its_version() -> None:
    documents = DocumentServer({"/api": 403, "/api/v1": 503, "/apis": EMPTY})

    with pytest.raises(ServerFailure):
        await find(documents, "po.v1")

    assert documents.requested_paths == ["/api", "/api/v1", "/apis", "/api/v1"]


# -- whether one is served ---------------------------------------------------------------------


def served(**documents: Answer) -> DocumentServer:
    """Return a current server with the group ``example.com``."""
    return DocumentServer({"/api": EMPTY, "/apis": EMPTY, **documents})


async def test_a_resource_that_did_not_move_needs_one_request() -> None:
    documents = served(**{"/apis/example.com/v1": resource_list_document("widgets")})

    assert await find_served(documents) == WIDGETS
    assert documents.requested_paths == ["/apis/example.com/v1"]


async def test_a_core_resource_is_one_request_too() -> None:
    documents = DocumentServer({"/api/v1": CORE})

    assert await find_served(documents, PODS) == PODS
    assert documents.requested_paths == ["/api/v1"]


async def test_a_resource_is_absent_if_two_documents_do_not_contain_it() -> None:
    """The plain 404 of a removed group version, and the list of all groups."""
    documents = served()

    assert await find_served(documents) is None
    assert documents.requested_paths == ["/apis/example.com/v1", "/apis"]


async def test_a_404_with_a_status_counts_as_absence_too() -> None:
    assert await find_served(served(**{"/apis/example.com/v1": 404})) is None


async def test_a_resource_that_its_group_version_no_longer_contains_is_absent() -> None:
    documents = served(
        **{
            "/apis/example.com/v1": resource_list_document("gadgets"),
            "/apis": aggregated_document("example.com", v1=("gadgets",)),
        }
    )

    assert await find_served(documents) is None


async def test_a_resource_is_found_in_another_version() -> None:
    both = aggregated_document("example.com", v2=("widgets",), v1beta1=("widgets",))

    found = await find_served(served(**{"/apis": both}))

    assert found is not None
    assert (found.version, found.plural) == ("v2", "widgets")


async def test_a_resource_that_one_of_two_documents_contains_is_present() -> None:
    documents = served(
        **{"/apis": aggregated_document("example.com", v2=("widgets",), v1=("widgets",))}
    )

    found = await find_served(documents)

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

    found = await find_served(documents)

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
        await find_served(documents)
    assert documents.requested_paths[-1] == "/apis/example.com"

    documents.served["/apis/example.com"] = group_document("example.com", "v2")
    documents.served["/apis/example.com/v2"] = resource_list_document("widgets")
    found = await find_served(documents)
    assert found is not None
    assert found.version == "v2"


async def test_a_core_resource_that_its_version_no_longer_contains_is_absent() -> None:
    other = Resource("", "v1", "podz", "Podz")

    for core in (VERSIONS, EMPTY):
        assert await find_served(DocumentServer({"/api": core, "/api/v1": CORE}), other) is None
    with pytest.raises(ProtocolError, match="can't find out if the server has /api: "):
        await find_served(DocumentServer({}), other)


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
        await find_served(documents)
    assert caught.value.phase == "discovery"


async def test_a_failed_connection_does_not_prove_absence() -> None:
    documents = served(**{"/apis": None})

    with pytest.raises(ConnectionLost):
        await find_served(documents)


@pytest.mark.parametrize("status", [INGRESS_404, PLAIN_404, STATUS_404], ids=str)
async def test_the_404s_of_a_proxy_do_not_prove_absence(status: Status) -> None:
    paths = ("/apis/example.com/v1", "/apis", "/apis/example.com")

    with pytest.raises(ProtocolError, match=r"can't find out if the server has /apis/example\.com"):
        await find_served(DocumentServer(dict.fromkeys(paths, status)))
    with pytest.raises(ProtocolError, match=r"has /api: .*; is the server's URL right\?$"):
        await find_served(DocumentServer({"/api": status, "/api/v1": status}), PODS)


@pytest.mark.parametrize("listed", [("v1",), ("v2",), ("v1", "v2"), ("v2", "v1")])
async def test_a_version_that_is_listed_and_has_no_document_does_not_prove_absence(
    listed: tuple[str, ...],
) -> None:
    documents = DocumentServer({"/apis": group_list_document(("example.com", *listed))})
    if listed == ("v2", "v1"):
        documents.served["/apis/example.com/v1"] = resource_list_document("gadgets")

    with pytest.raises(ProtocolError, match="can't find out if the server has /apis/example"):
        await find_served(documents)


async def test_a_document_of_the_group_alone_does_not_prove_absence() -> None:
    documents = DocumentServer(
        {
            "/apis/example.com": group_document("example.com", "v1"),
            "/apis/example.com/v1": resource_list_document("gadgets"),
        }
    )

    with pytest.raises(ProtocolError, match="can't find out if the server has /apis/example"):
        await find_served(documents)


async def test_a_forbidden_group_does_not_prove_absence() -> None:
    documents = DocumentServer({"/apis": 403, "/apis/example.com": 403})

    with pytest.raises(Forbidden):
        await find_served(documents)


async def test_an_unavailable_aggregated_api_of_another_group_does_not_matter() -> None:
    documents = served(**{"/apis": aggregated_document("metrics.io", v1=())})

    assert await find_served(documents) is None


# -- long documents ----------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [b"[", b'{"kind":"x"}'])
async def test_a_long_invalid_document_is_a_protocol_error(wrong: bytes) -> None:
    documents = DocumentServer({"/api": EMPTY, "/apis": wrong + b" " * 1_000_000})

    with pytest.raises(ProtocolError, match=r"/apis of \S+ is not a discovery document"):
        await fetch_all(documents)
