"""Discovery documents, understood."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from msgspec.structs import astuple

from aioinformer._client.discovery.documents import (
    ServedResource,
    parse_aggregated_resources,
    parse_core_versions,
    parse_group_versions,
    parse_legacy_groups,
    parse_legacy_resources,
    version_path,
)
from aioinformer._client.discovery.fetcher import MAX_INLINE_BYTES, DiscoveryFetcher
from aioinformer._core.objects.resources import BUILT_IN, Resource
from aioinformer.errors import ProtocolError
from tests.client.discovery_servers import EMPTY
from tests.client.recordings import read_recording

AGGREGATED = read_recording("02-aggregated-discovery").body
CORE = read_recording("01-core-v1-resources").body
APPS = read_recording("03-group-version-resources").body


def aggregated() -> tuple[ServedResource, ...]:
    found = parse_aggregated_resources(AGGREGATED, "/apis")
    assert found is not None
    return found.served


def test_the_aggregated_document_describes_every_group() -> None:
    found = [each.resource for each in aggregated()]

    (deployments,) = [each for each in found if each.plural == "deployments"]
    assert astuple(deployments) == astuple(
        Resource("apps", "v1", "deployments", "Deployment", short_names=("deploy",))
    )
    assert {"apps", "batch", "rbac.authorization.k8s.io"} < {each.group for each in found}


def test_a_legacy_document_describes_one_group_version() -> None:
    found = parse_legacy_resources(APPS, "/apis/apps/v1", "apps/v1")

    assert [each.resource.plural for each in found] == [
        "controllerrevisions",
        "daemonsets",
        "deployments",
        "replicasets",
        "statefulsets",
    ]


def test_the_legacy_and_the_aggregated_documents_have_the_same_resources() -> None:
    assert parse_legacy_resources(APPS, "/apis/apps/v1", "apps/v1") == tuple(
        each for each in aggregated() if each.resource.group == "apps"
    )


def test_the_built_in_table_agrees_with_the_documents_of_a_server() -> None:
    everything = [*parse_legacy_resources(CORE, "/api/v1", "v1"), *aggregated()]
    found = [each.resource for each in everything]
    served = {(each.group, each.version, each.plural): each for each in found}
    both = [each for each in BUILT_IN if (each.group, each.version, each.plural) in served]

    assert len(both) > 40
    for each in both:
        assert astuple(served[each.group, each.version, each.plural]) == astuple(each)


def test_subresources_are_left_out() -> None:
    everything = [*parse_legacy_resources(CORE, "/api/v1", "v1"), *aggregated()]

    assert not any("/" in each.resource.plural for each in everything)


def test_a_resource_of_which_the_server_has_only_subresources_is_left_out() -> None:
    """KubeVirt serves ``virtualmachines/start`` in a group that has no ``virtualmachines``.

    kube-apiserver nests such a subresource in a resource without a kind and verbs.
    """
    parent = (
        b'{"resource":"virtualmachines","responseKind":{"group":"","version":"","kind":""},'
        b'"scope":"Namespaced","verbs":null,"subresources":[{"subresource":"start",'
        b'"responseKind":{"group":"","version":"","kind":""},"verbs":["update"]}]}'
    )
    version = b'{"version":"v1","resources":[%s],"freshness":"Current"}' % parent
    document = (
        b'{"kind":"APIGroupDiscoveryList","items":[{"metadata":'
        b'{"name":"subresources.kubevirt.io"},"versions":[%s]}]}' % version
    )

    found = parse_aggregated_resources(document, "/apis")

    assert found is not None
    assert found.served == ()


def test_a_cluster_scoped_resource_is_one() -> None:
    (nodes,) = [
        each.resource
        for each in parse_legacy_resources(CORE, "/api/v1", "v1")
        if each.resource.plural == "nodes"
    ]

    assert not nodes.namespaced


def test_a_resource_lists_the_verbs_that_it_lacks() -> None:
    """Recording 01: bindings can only be created, componentstatuses not be watched."""
    lacking = {
        each.resource.plural: each.lacks
        for each in parse_legacy_resources(CORE, "/api/v1", "v1")
        if each.lacks
    }

    assert lacking == {"bindings": ("list", "watch"), "componentstatuses": ("watch",)}
    assert not any(each.lacks for each in aggregated() if each.resource.group == "apps")
    assert ServedResource(BUILT_IN[0]).lacks == (), "a server that doesn't say forbids nothing"


def test_versions_of_an_aggregated_api_that_is_down_are_stale() -> None:
    document = AGGREGATED.replace(
        b'"freshness":"Current"}]},{"metadata":{"name":"apps"}',
        b'"freshness":"Stale"}]},{"metadata":{"name":"apps"}',
    )
    found = parse_aggregated_resources(document, "/apis")

    assert found is not None
    assert found.stale == ("apiregistration.k8s.io/v1",)


def test_a_group_version_has_the_path_of_its_document() -> None:
    assert version_path("v1") == "/api/v1"
    assert version_path("apps/v1") == "/apis/apps/v1"


def test_a_legacy_document_is_no_aggregated_one() -> None:
    assert parse_aggregated_resources(b'{"kind":"APIGroupList","groups":[]}', "/apis") is None


def test_the_preferred_version_of_a_legacy_group_comes_first() -> None:
    group = (
        b'{"kind":"APIGroup","name":"example.com",'
        b'"versions":[{"groupVersion":"example.com/v2alpha1"},'
        b'{"groupVersion":"example.com/v1"}],'
        b'"preferredVersion":{"groupVersion":"example.com/v1"}}'
    )

    assert list(parse_group_versions(group, "")) == ["example.com/v1", "example.com/v2alpha1"]
    groups = b'{"kind":"APIGroupList","groups":[%s]}' % group
    assert list(parse_legacy_groups(groups, "")) == list(parse_group_versions(group, ""))
    assert list(parse_core_versions(b'{"kind":"APIVersions","versions":["v1"]}')) == ["v1"]


@pytest.mark.parametrize("document", [b"{}", b'{"kind":"Status"}', b'{"kind":"List","items":[]}'])
def test_a_document_of_another_kind_is_an_error(document: bytes) -> None:
    """Else a proxy that answers 200 to everything would say that a resource is gone."""
    with pytest.raises(ProtocolError, match="not a discovery document: its kind is"):
        parse_legacy_resources(document, "/apis/a/v1", "a/v1")
    with pytest.raises(ProtocolError, match="not a discovery document: its kind is"):
        parse_legacy_groups(document, "/apis")
    with pytest.raises(ProtocolError, match="not a discovery document: "):
        parse_group_versions(b'{"name":"a",' + document[1:].replace(b"}", b" }"), "/apis/a")
    with pytest.raises(ProtocolError, match="not a discovery document: its kind is"):
        parse_core_versions(document)


def test_a_document_of_another_group_version_is_an_error() -> None:
    document = b'{"kind":"APIResourceList","groupVersion":"b/v1","resources":[]}'

    with pytest.raises(ProtocolError, match="it describes another group version than"):
        parse_legacy_resources(document, "/apis/a/v1", "a/v1")


@pytest.mark.parametrize(
    "document", [b"<html>", b"[]", b'{"kind":"APIGroupDiscoveryList","items":3}', b"\xff"]
)
def test_a_body_that_is_no_discovery_document_is_an_error(document: bytes) -> None:
    with pytest.raises(ProtocolError, match="/apis is not a discovery document") as caught:
        parse_aggregated_resources(document, "/apis")
    assert caught.value.phase == "discovery"


def test_a_group_version_that_is_empty_has_no_resources() -> None:
    assert (
        parse_legacy_resources(b'{"kind":"APIResourceList","resources":null}', "/apis/a/v1", "a/v1")
        == ()
    )


@pytest.mark.parametrize(
    "items",
    [
        b"null",
        b'[{"metadata":{"name":"a.io"},"versions":null}]',
        b'[{"metadata":{"name":"a.io"},"versions":[{"version":"v1","resources":null}]}]',
    ],
    ids=["groups", "versions", "resources"],
)
def test_a_list_that_go_writes_as_null_is_empty(items: bytes) -> None:
    document = b'{"kind":"APIGroupDiscoveryList","items":%s}' % items

    found = parse_aggregated_resources(document, "/apis")

    assert found is not None
    assert found.served == ()


def test_a_resource_whose_lists_go_writes_as_null_has_no_short_names_and_categories() -> None:
    resource = b'{"resource":"pods","shortNames":null,"categories":null,"subresources":null}'
    document = (
        b'{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"a.io"},"versions":'
        b'[{"version":"v1","resources":[%s]}]}]}' % resource
    )

    found = parse_aggregated_resources(document, "/apis")

    assert found is not None
    (pods,) = found.served
    assert (pods.resource.short_names, pods.categories) == ((), ())


def test_a_legacy_list_that_go_writes_as_null_is_empty() -> None:
    group = b'{"kind":"APIGroup","name":"a.io","versions":null}'

    assert list(parse_group_versions(group, "")) == []
    assert list(parse_legacy_groups(b'{"kind":"APIGroupList","groups":null}', "")) == []
    assert list(parse_core_versions(b'{"kind":"APIVersions","versions":null}')) == []


def test_a_group_whose_preferred_version_go_writes_empty_has_its_other_versions() -> None:
    group = (
        b'{"kind":"APIGroup","name":"a.io","versions":[{"groupVersion":"a.io/v1"}],'
        b'"preferredVersion":{"groupVersion":"","version":""}}'
    )

    assert list(parse_group_versions(group, "")) == ["a.io/v1"]


AGGREGATED_OF = (
    b'{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"%s"},"versions":[{"version":'
    b'"%s","resources":[{"resource":"%s"}]}]}]}'
)


@pytest.mark.parametrize(
    ("group", "version", "plural"),
    [
        (b"a.io", b"v1", b""),
        (b"a.io", b"", b"pods"),
        (b"..", b"v1", b"pods"),
        (b"", b"v1", b".."),
        (b"a.io", b"v1", b"Bearer pods"),
        (b"a.io", b"v1\\u001b[31m", b"pods"),
        (b"a\\nb", b"v1", b"pods"),
    ],
)
def test_a_resource_with_a_name_that_is_no_url_segment_is_a_protocol_error(
    group: bytes, version: bytes, plural: bytes
) -> None:
    with pytest.raises(ProtocolError, match="/apis is not a discovery document: a resource's"):
        parse_aggregated_resources(AGGREGATED_OF % (group, version, plural), "/apis")


def test_a_legacy_resource_without_a_name_is_a_protocol_error() -> None:
    document = (
        b'{"kind":"APIResourceList","resources":[{"name":"","kind":"Pod","namespaced":true}]}'
    )

    with pytest.raises(ProtocolError, match="plural is one URL segment") as caught:
        parse_legacy_resources(document, "/api/v1", "v1")
    assert caught.value.phase == "discovery"


@pytest.mark.parametrize("name", ["", "../api/v1", "a.io/..", "a.io/v1/x", "a.io/"])
def test_a_group_version_that_is_no_path_is_a_protocol_error(name: str) -> None:
    group = b'{"kind":"APIGroup","name":"a.io","versions":[{"groupVersion":"%s"}]}'
    group %= name.encode()

    with pytest.raises(ProtocolError, match="an invalid group version"):
        list(parse_group_versions(group, "/apis/a.io"))


def test_a_document_that_is_nested_too_deeply_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="not a discovery document"):
        parse_aggregated_resources(b'{"x":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}", "/apis")


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

    async def fetch(path: str, accept: str) -> bytes:
        return document if path == "/apis" else EMPTY

    beside = asyncio.create_task(others())
    catalogue = await DiscoveryFetcher(fetch).fetch_all()
    beside.cancel()
    assert catalogue.find("g40") is not None
    return turns


async def test_a_long_document_is_parsed_without_blocking_the_loop() -> None:
    assert await turns_while_reading(2000) > await turns_while_reading(5)
