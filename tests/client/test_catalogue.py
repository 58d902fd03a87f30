"""Discovery documents understood, and resources found by name."""

from __future__ import annotations

import pytest

from aioinformer._client.catalogue import (
    Catalogue,
    aggregated_resources,
    group_versions,
    legacy_groups,
    legacy_resources,
)
from aioinformer._core.resources import BUILT_IN, Resource
from aioinformer.errors import ProtocolError, UnknownResource
from tests.client.recordings import recorded

AGGREGATED = recorded("02-aggregated-discovery").body
CORE = recorded("01-core-v1-resources").body
APPS = recorded("03-group-version-resources").body


def catalogue() -> Catalogue:
    core = legacy_resources(CORE, "/api/v1", "v1")
    return Catalogue((*core, *(aggregated_resources(AGGREGATED, "/apis") or ())))


def resource(plural: str, group: str, version: str = "v1", *short_names: str) -> Resource:
    return Resource(group, version, plural, plural[:-1].title(), short_names=short_names)


# -- documents ---------------------------------------------------------------------------------


def test_the_aggregated_document_describes_every_group() -> None:
    found = aggregated_resources(AGGREGATED, "/apis")

    assert found is not None
    (deployments,) = [each for each in found if each.plural == "deployments"]
    assert deployments == Resource(
        "apps", "v1", "deployments", "Deployment", short_names=("deploy",)
    )
    assert {"apps", "batch", "rbac.authorization.k8s.io"} < {each.group for each in found}


def test_a_legacy_document_describes_one_group_version() -> None:
    found = legacy_resources(APPS, "/apis/apps/v1", "apps/v1")

    assert [each.plural for each in found] == [
        "controllerrevisions",
        "daemonsets",
        "deployments",
        "replicasets",
        "statefulsets",
    ]


def test_the_legacy_and_the_aggregated_form_say_the_same() -> None:
    aggregated = aggregated_resources(AGGREGATED, "/apis") or ()

    assert legacy_resources(APPS, "/apis/apps/v1", "apps/v1") == tuple(
        each for each in aggregated if each.group == "apps"
    )


def test_the_built_in_table_agrees_with_what_a_server_says() -> None:
    served = {(each.group, each.version, each.plural): each for each in catalogue().resources}
    both = [each for each in BUILT_IN if (each.group, each.version, each.plural) in served]

    assert len(both) > 40
    assert [served[each.group, each.version, each.plural] for each in both] == both


def test_subresources_are_left_out() -> None:
    assert not any("/" in each.plural for each in catalogue().resources)


def test_a_cluster_scoped_resource_is_one() -> None:
    nodes = catalogue().find("nodes")

    assert nodes is not None
    assert not nodes.namespaced


def test_the_legacy_answer_to_an_aggregated_question_is_noticed() -> None:
    assert aggregated_resources(b'{"kind":"APIGroupList","groups":[]}', "/apis") is None


def test_the_preferred_version_of_a_legacy_group_comes_first() -> None:
    group = (
        b'{"name":"example.com","versions":[{"groupVersion":"example.com/v2alpha1"},'
        b'{"groupVersion":"example.com/v1"}],'
        b'"preferredVersion":{"groupVersion":"example.com/v1"}}'
    )

    assert list(group_versions(group, "")) == ["example.com/v1", "example.com/v2alpha1"]
    assert list(legacy_groups(b'{"groups":[%s]}' % group, "")) == list(group_versions(group, ""))


@pytest.mark.parametrize(
    "document", [b"<html>", b"[]", b'{"kind":"APIGroupDiscoveryList","items":3}', b"\xff"]
)
def test_something_else_is_no_discovery_document(document: bytes) -> None:
    with pytest.raises(ProtocolError, match="/apis is no discovery document") as caught:
        aggregated_resources(document, "/apis")
    assert caught.value.phase == "discovery"


def test_a_group_version_that_is_empty_has_no_resources() -> None:
    assert legacy_resources(b'{"resources":null}', "/apis/a/v1", "a/v1") == ()


# -- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "deployments",
        "deployment",
        "deploy",
        "Deployment",
        "DEPLOYMENTS",
        "deployments.apps",
        "deploy.apps",
        "Deployment.apps",
        "deployments.v1.apps",
        "deploy.v1.apps",
    ],
)
def test_a_resource_has_many_names(name: str) -> None:
    found = catalogue().find(name)

    assert found is not None
    assert (found.group, found.version, found.plural) == ("apps", "v1", "deployments")


@pytest.mark.parametrize("name", ["pods", "po", "pod", "pods.v1"])
def test_the_core_group_is_named_by_its_version_alone(name: str) -> None:
    found = catalogue().find(name)

    assert found is not None
    assert (found.group, found.plural) == ("", "pods")


@pytest.mark.parametrize("name", ["widgets", "deployments.batch", "deployments.v2.apps", ""])
def test_what_is_not_there_is_not_found(name: str) -> None:
    assert catalogue().find(name) is None


def test_the_core_group_wins() -> None:
    """Events are in two groups, and metrics-server serves pods of its own."""
    found = catalogue().find("events")

    assert found is not None
    assert found.group == ""
    grouped = catalogue().find("events.events.k8s.io")
    assert grouped is not None
    assert grouped.group == "events.k8s.io"


def test_two_other_groups_are_an_ambiguity_that_lists_both() -> None:
    two = Catalogue((resource("gateways", "istio.io"), resource("gateways", "gateway.io")))

    with pytest.raises(UnknownResource) as caught:
        two.find("Gateways")
    assert str(caught.value) == (
        "several resources are called 'Gateways': say gateways.gateway.io or gateways.istio.io"
    )
    assert two.find("gateways.istio.io") == two.resources[0]


def test_a_plural_wins_over_the_short_name_of_another_group() -> None:
    two = Catalogue((resource("thinglets", "a.io", "v1", "things"), resource("things", "b.io")))

    assert two.find("things") == two.resources[1]


def test_the_first_version_of_a_group_is_the_preferred_one() -> None:
    two = Catalogue((resource("things", "a.io", "v2"), resource("things", "a.io", "v1")))

    assert two.find("things") == two.resources[0]
    assert two.find("things.a.io") == two.resources[0]
    assert two.find("things.v1.a.io") == two.resources[1]


def test_an_unknown_name_suggests_the_near_ones() -> None:
    message = str(catalogue().unknown("deploymets"))

    assert message.startswith("the server has no resource called 'deploymets' (did you mean ")
    assert "deployments" in message


def test_an_unknown_name_tells_which_groups_did_not_answer() -> None:
    down = Catalogue((), ("metrics.k8s.io/v1beta1",))

    assert str(down.unknown("x")) == (
        "the server has no resource called 'x'; it did not describe metrics.k8s.io/v1beta1"
    )


def test_a_catalogue_shows_how_much_is_in_it() -> None:
    assert repr(Catalogue(BUILT_IN[:3])) == "<Catalogue of 3 resources>"


AGGREGATED_OF = (
    b'{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"%s"},"versions":[{"version":'
    b'"%s","resources":[{"resource":"%s"}]}]}]}'
)


@pytest.mark.parametrize(
    ("group", "version", "plural"),
    [(b"a.io", b"v1", b""), (b"a.io", b"", b"pods"), (b"..", b"v1", b"pods"), (b"", b"v1", b"..")],
)
def test_a_resource_that_no_url_can_name_is_the_servers_fault(
    group: bytes, version: bytes, plural: bytes
) -> None:
    with pytest.raises(ProtocolError, match="/apis is no discovery document: a resource's"):
        aggregated_resources(AGGREGATED_OF % (group, version, plural), "/apis")


def test_a_legacy_resource_without_a_name_is_the_servers_fault() -> None:
    document = b'{"resources":[{"name":"","kind":"Pod","namespaced":true}]}'

    with pytest.raises(ProtocolError, match="plural is one URL segment") as caught:
        legacy_resources(document, "/api/v1", "v1")
    assert caught.value.phase == "discovery"


@pytest.mark.parametrize("name", ["", "../api/v1", "a.io/..", "a.io/v1/x", "a.io/"])
def test_a_group_version_that_no_url_can_name_is_the_servers_fault(name: str) -> None:
    group = b'{"name":"a.io","versions":[{"groupVersion":"%s"}]}' % name.encode()

    with pytest.raises(ProtocolError, match="it has a group version"):
        list(group_versions(group, "/apis/a.io"))


def test_a_document_nested_too_deeply_is_the_servers_fault() -> None:
    with pytest.raises(ProtocolError, match="no discovery document"):
        aggregated_resources(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "/apis")
