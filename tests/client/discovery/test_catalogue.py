"""The lookup of names, and the errors for unknown names."""

from __future__ import annotations

from itertools import count

import pytest

from aioinformer._client.discovery.catalogue import Catalogue, copy_error, split_group_version
from aioinformer._client.discovery.documents import (
    ServedResource,
    parse_aggregated_resources,
    parse_legacy_resources,
)
from aioinformer._core.objects.resources import BUILT_IN, Resource
from aioinformer.errors import (
    AmbiguousResource,
    Forbidden,
    NotFound,
    ProtocolError,
    ServerFailure,
    Status,
    UnknownResource,
    UnwatchableResource,
    server_error,
)
from tests.client.recordings import read_recording


def catalogue() -> Catalogue:
    core = parse_legacy_resources(read_recording("01-core-v1-resources").body, "/api/v1", "v1")
    groups = parse_aggregated_resources(read_recording("02-aggregated-discovery").body, "/apis")
    assert groups is not None
    return Catalogue((*core, *groups.served))


def resource(plural: str, group: str, version: str = "v1", *short_names: str) -> Resource:
    return Resource(group, version, plural, plural[:-1].title(), short_names=short_names)


def similar(catalogue: Catalogue, name: str) -> tuple[tuple[str, ...], int]:
    """Return the similar names, and the number of steps of the search."""
    steps = catalogue.find_similar(name)
    for number in count():
        try:
            next(steps)
        except StopIteration as end:
            near: tuple[str, ...] = end.value
            return near, number
    raise AssertionError("unreachable")


def of(*resources: Resource) -> Catalogue:
    return Catalogue(tuple(map(ServedResource, resources)))


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
def test_a_resource_is_found_by_each_of_its_names(name: str) -> None:
    found = catalogue().find(name)

    assert found is not None
    assert (found.group, found.version, found.plural) == ("apps", "v1", "deployments")


@pytest.mark.parametrize("name", ["pods", "po", "pod", "pods.v1"])
def test_a_core_resource_is_found_with_its_version_and_without_a_group(name: str) -> None:
    found = catalogue().find(name)

    assert found is not None
    assert (found.group, found.plural) == ("", "pods")


@pytest.mark.parametrize("name", ["widgets", "deployments.batch", "deployments.v2.apps", ""])
def test_an_unknown_name_is_not_found(name: str) -> None:
    assert catalogue().find(name) is None


def test_the_core_group_takes_precedence() -> None:
    """Events are in two groups, and metrics-server serves pods of its own."""
    found = catalogue().find("events")

    assert found is not None
    assert found.group == ""
    grouped = catalogue().find("events.events.k8s.io")
    assert grouped is not None
    assert grouped.group == "events.k8s.io"


def test_two_other_groups_are_an_ambiguity_that_lists_both() -> None:
    two = of(resource("gateways", "istio.io"), resource("gateways", "gateway.io"))

    with pytest.raises(AmbiguousResource) as caught:
        two.find("Gateways")
    assert str(caught.value) == (
        "several resources are called 'Gateways': use gateways.gateway.io or gateways.istio.io"
    )
    assert caught.value.candidates == ("gateways.gateway.io", "gateways.istio.io")
    for candidate in caught.value.candidates:
        found = two.find(candidate)
        assert str(found) == candidate


def test_a_plural_wins_over_the_short_name_of_another_group() -> None:
    two = of(resource("thinglets", "a.io", "v1", "things"), resource("things", "b.io"))

    assert two.find("things") == two.served[1].resource


def test_the_first_version_of_a_group_is_the_preferred_one() -> None:
    two = of(resource("things", "a.io", "v2"), resource("things", "a.io", "v1"))

    assert two.find("things") == two.served[0].resource
    assert two.find("things.a.io") == two.served[0].resource
    assert two.find("things.v1.a.io") == two.served[1].resource


def test_a_resource_that_cannot_be_watched_does_not_hide_another_one() -> None:
    only_created = ServedResource(resource("reviews", "a.io"), frozenset({"create"}))
    watchable = ServedResource(resource("reviews", "b.io"), frozenset({"list", "watch"}))

    assert Catalogue((only_created, watchable)).find("reviews") == watchable.resource


def test_a_resource_that_can_not_be_watched_is_no_unknown_one() -> None:
    error = catalogue().make_lookup_error("componentstatuses")

    assert isinstance(error, UnwatchableResource)
    assert error.lacks == ("watch",)
    assert str(error) == (
        "'componentstatuses' (componentstatuses in v1) can't be cached: the "
        "resource doesn't support watch (it supports get, list)"
    )


# -- names that carry a group ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("widgets", []),
        ("pods.v1", [("", "v1")]),
        ("widgets.example.com", [("example.com", ""), ("com", "example")]),
        ("Widgets.V1.example.com", [("example.com", "v1"), ("v1.example.com", "")]),
        ("deploy.apps", [("apps", "")]),
        ("widgets..", []),
        ("widgets.a/b.c", [("c", "a/b")][1:]),
    ],
)
def test_a_name_may_carry_its_group_and_version(name: str, pairs: list[tuple[str, str]]) -> None:
    assert list(split_group_version(name)) == pairs


# -- what is not found -------------------------------------------------------------------------


def test_an_unknown_name_suggests_the_near_ones() -> None:
    near, _ = similar(catalogue(), "Deploymets")
    error = catalogue().make_lookup_error("Deploymets", near)

    assert isinstance(error, UnknownResource)
    assert str(error) == (
        "the server has no resource called 'Deploymets' (did you mean deployments?); "
        "`kubectl api-resources` lists what the server has"
    )


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("podz", "pods"),
        ("svcs", "services"),
        ("deployment.app", "deployments.apps"),
        ("pod.v2", "pods.v1"),
    ],
)
def test_suggested_names_can_be_found(name: str, first: str) -> None:
    near, _ = similar(catalogue(), name)

    assert near[0] == first
    assert all(catalogue().find(each) for each in near)


def test_another_resource_of_the_same_group_is_not_suggested() -> None:
    sites = of(resource("sites", "example.com", "v1", "site"))

    assert similar(sites, "widgets.example.com") == ((), 1)
    assert similar(sites, "site5.example.com")[0] == ("sites.example.com",)


def test_a_resource_is_suggested_once_by_its_plural_and_three_at_most() -> None:
    names = [resource(f"thing{each}s", "a.io", "v1", f"thing{each}") for each in "abcde"]
    near, _ = similar(of(*names), "things")

    assert len(near) == 3
    assert all(each.endswith("s") for each in near)


def test_the_error_of_an_ambiguous_name_lists_five_candidates_and_counts_the_others() -> None:
    many = of(*(resource("gateways", f"g{each}.io") for each in range(9)))

    with pytest.raises(AmbiguousResource) as caught:
        many.find("gateways")
    assert str(caught.value).endswith("gateways.g3.io or gateways.g4.io or one of 4 more")
    assert len(caught.value.candidates) == 9


def test_a_core_resource_is_found_by_a_name_that_ends_with_a_dot() -> None:
    """As kubectl takes it: ``pods.``, and with the version ``pods.v1.``."""
    for name in ("pods.", "pod.", "pods.v1.", "pod.v1."):
        found = catalogue().find(name)
        assert found is not None
        assert str(found) == "pods"
    assert catalogue().find("deployments.v1.") is None


def test_the_error_of_an_unknown_name_names_the_server() -> None:
    text = str(
        catalogue().make_lookup_error("x", location="https://10.0.0.1 (config: context 'main')")
    )

    assert text.startswith(
        "the server https://10.0.0.1 (config: context 'main') has no resource called 'x'; "
    )


def test_the_error_of_a_server_without_resources_asks_for_a_kubernetes_server() -> None:
    assert str(Catalogue((), {"/apis": LOST}).make_lookup_error("widgets.a.io")).endswith(
        "it lists no resources at all: is it a Kubernetes API server?"
    )


def test_a_resource_that_cannot_be_watched_is_not_suggested() -> None:
    near, _ = similar(catalogue(), "componentstatusez")

    assert near == ()


def test_a_thousand_names_are_compared_in_steps() -> None:
    many = of(*(resource(f"things{number}", "a.io") for number in range(1000)))

    (first, *_), steps = similar(many, "thing777")

    assert (first, steps) == ("things777", 5)


DOWN = server_error(Status(503, message="the backend is down"), phase="discovery")
NOT_ALLOWED = server_error(Status(403, "Forbidden"), phase="discovery")
LOST = server_error(Status(404, "NotFound"), phase="discovery")


def test_the_error_of_an_unknown_name_lists_the_groups_that_did_not_answer() -> None:
    dark = Catalogue((), {"/apis/metrics.k8s.io/v1beta1": DOWN, "/apis/a.io/v1": None})

    assert str(dark.make_lookup_error("x")) == (
        "the server has no resource called 'x'; it did not describe metrics.k8s.io/v1beta1, "
        "a.io/v1; `kubectl api-resources` lists what the server has"
    )


def test_a_name_in_a_group_that_did_not_answer_raises_the_error_of_the_group() -> None:
    dark = Catalogue((), {"/apis/metrics.k8s.io/v1beta1": DOWN})

    for name in ("pods.metrics.k8s.io", "pods.v1beta1.metrics.k8s.io"):
        assert isinstance(dark.make_lookup_error(name), ServerFailure)
    assert isinstance(dark.make_lookup_error("pods.other.io"), UnknownResource)


@pytest.mark.parametrize("path", ["/apis", "/api/v1"])
def test_a_name_without_a_group_raises_the_error_of_an_unread_list(path: str) -> None:
    blind = Catalogue((), {path: NOT_ALLOWED})

    assert isinstance(blind.make_lookup_error("widgets"), Forbidden)
    assert isinstance(blind.make_lookup_error("widgets.example.com"), UnknownResource)


def test_the_error_of_a_server_without_a_list_of_groups_asks_for_the_group() -> None:
    assert str(Catalogue((), {"/apis": LOST}).make_lookup_error("widgets")) == (
        "the server has no resource called 'widgets'; it doesn't list its groups, so ask for "
        "widgets.GROUP, if it is a Kubernetes API server at all"
    )


def test_a_group_that_is_read_later_is_covered() -> None:
    dark = Catalogue((), {"/apis/a.io/v1": DOWN, "/apis/b.io/v1": DOWN})
    lighter = dark.union(of(resource("things", "a.io")))

    assert not dark.covers_group("a.io")
    assert lighter.covers_group("a.io")
    assert not lighter.covers_group("b.io")
    assert lighter.covers_group("")
    assert lighter.find("things") == resource("things", "a.io")


def test_a_stored_error_keeps_no_traceback() -> None:
    try:
        raise DOWN
    except ServerFailure as error:
        kept = copy_error(error)

    assert (type(kept), str(kept), kept.phase) == (ServerFailure, str(DOWN), "discovery")
    assert kept.__traceback__ is None
    other = copy_error(ProtocolError("nonsense", phase="discovery"))
    assert (type(other), str(other), other.phase) == (ProtocolError, "nonsense", "discovery")
    assert isinstance(copy_error(LOST), NotFound)


def test_the_repr_shows_the_number_of_resources_and_unread_documents() -> None:
    assert repr(of(*BUILT_IN[:3])) == "<Catalogue of 3 resources>"
    assert repr(Catalogue((), {"/apis": None})) == "<Catalogue of 0 resources, 1 document unread>"
