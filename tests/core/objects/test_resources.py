"""Resources, their URL paths, and the table of built-in resources."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter

import pytest

from aioinformer._core.objects.resources import (
    BUILT_IN,
    Resource,
    find_built_in,
    parse_table,
    resolve_built_in,
    versioned_name,
)
from aioinformer.errors import UnknownResource

DEPLOYMENTS = find_built_in("deployments")
PODS = find_built_in("pods")
NODES = find_built_in("nodes")


@pytest.mark.parametrize(
    "name",
    [
        "deployments",
        "deployment",
        "deploy",
        "Deployment",
        "DEPLOY",
        "deployments.apps",
        "deployments.v1.apps",
    ],
)
def test_a_built_in_is_found_by_any_of_its_names(name: str) -> None:
    assert find_built_in(name) is DEPLOYMENTS


@pytest.mark.parametrize("name", ["po", "pods", "Pod", "pods.v1", "pod.v1", "po.v1"])
def test_a_core_resource_is_found_by_any_of_its_names(name: str) -> None:
    assert find_built_in(name) is PODS


def test_events_are_those_of_the_core_group_unless_the_group_is_named() -> None:
    """As in kubectl: the core group comes first."""
    assert find_built_in("events").group == ""
    assert find_built_in("ev").group == ""
    assert find_built_in("events.events.k8s.io").group == "events.k8s.io"


def test_the_table_gives_group_version_kind_scope_and_short_names() -> None:
    assert (DEPLOYMENTS.group, DEPLOYMENTS.version, DEPLOYMENTS.kind) == (
        "apps",
        "v1",
        "Deployment",
    )
    assert (PODS.group, PODS.version, PODS.kind, PODS.namespaced) == ("", "v1", "Pod", True)
    assert (NODES.namespaced, NODES.short_names) == (False, ("no",))
    assert find_built_in("hpa").api_version == "autoscaling/v2"
    assert find_built_in("crds").short_names == ("crd", "crds")
    assert find_built_in("csr").namespaced is False
    assert find_built_in("configmaps").short_names == ("cm",)


def test_a_row_of_a_table_is_a_resource_of_the_group_and_version_above() -> None:
    table = """
v1
  nodes Node - no nd
  pods Pod po
  secrets Secret
rbac.example.com/v2
  roles Role
  clusterroles ClusterRole -
"""

    members = ("group", "version", "plural", "kind", "namespaced", "singular", "short_names")
    assert list(map(attrgetter(*members), parse_table(table))) == [
        ("", "v1", "nodes", "Node", False, "node", ("no", "nd")),
        ("", "v1", "pods", "Pod", True, "pod", ("po",)),
        ("", "v1", "secrets", "Secret", True, "secret", ()),
        ("rbac.example.com", "v2", "roles", "Role", True, "role", ()),
        ("rbac.example.com", "v2", "clusterroles", "ClusterRole", False, "clusterrole", ()),
    ]


def test_the_table_names_no_resource_twice() -> None:
    counted = Counter((each.group, each.plural) for each in BUILT_IN)

    assert max(counted.values()) == 1
    assert len(BUILT_IN) > 40


def test_every_built_in_is_found_by_its_plural_and_group() -> None:
    for resource in BUILT_IN:
        assert find_built_in(str(resource)).kind == resource.kind
        if resource.group:
            assert find_built_in(str(resource)) is resource


def test_the_cluster_scoped_built_ins_are_those_of_kubernetes() -> None:
    """Discovery of Kubernetes 1.36; a wrong scope would make wrong URLs."""
    core = {each.plural for each in BUILT_IN if not each.group and not each.namespaced}
    others = {each.plural for each in BUILT_IN if each.group and each.namespaced}

    assert core == {"namespaces", "nodes", "persistentvolumes"}
    assert not any(name.startswith(("cluster", "storageclass", "priority")) for name in others)
    assert {"leases", "endpointslices", "roles", "rolebindings", "csistoragecapacities"} <= others


def test_an_unknown_name_suggests_the_nearest_and_the_way_to_custom_resources() -> None:
    with pytest.raises(UnknownResource) as caught:
        find_built_in("deploymnts")

    assert "'deploymnts'" in str(caught.value)
    assert "did you mean deployments" in str(caught.value)
    assert "client.resource('deploymnts')" in str(caught.value)


def test_a_resource_is_suggested_once_by_its_plural() -> None:
    with pytest.raises(UnknownResource) as caught:
        find_built_in("PODZ")

    assert str(caught.value) == (
        "no built-in resource is called 'PODZ' (did you mean pods?); for a custom resource pass a "
        "Resource, or what `await client.resource('PODZ')` finds on the server"
    )


def test_at_most_three_resources_are_suggested() -> None:
    """A fourth one, clusterrolebindings, is near too."""
    with pytest.raises(UnknownResource) as caught:
        find_built_in("roles.rbac.authorizati")

    names = (f"{plural}.rbac.authorization.k8s.io" for plural in ("roles", "rolebindings"))
    suggested = " or ".join((*names, "clusterroles.rbac.authorization.k8s.io"))
    assert f" (did you mean {suggested}?); " in str(caught.value)


def test_a_name_unlike_any_suggests_nothing() -> None:
    with pytest.raises(UnknownResource) as caught:
        find_built_in("xqzw")

    assert "did you mean" not in str(caught.value)


def test_the_path_of_a_core_resource() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path("web") == "/api/v1/namespaces/web/pods"
    assert PODS.path("web", "web-0") == "/api/v1/namespaces/web/pods/web-0"


def test_the_path_of_a_resource_of_a_group() -> None:
    assert DEPLOYMENTS.path() == "/apis/apps/v1/deployments"
    assert DEPLOYMENTS.path("web", "shop") == "/apis/apps/v1/namespaces/web/deployments/shop"


def test_a_cluster_scoped_resource_has_no_namespace() -> None:
    assert NODES.path(name="node-1") == "/api/v1/nodes/node-1"
    with pytest.raises(ValueError, match=r"^nodes is cluster-scoped: it has no namespace 'web'$"):
        NODES.path("web")


def test_a_resource_prints_as_its_plural_and_group() -> None:
    assert str(PODS) == "pods"
    assert str(DEPLOYMENTS) == "deployments.apps"


def test_the_singular_is_the_kind_in_lower_case_unless_given() -> None:
    assert Resource("example.com", "v1", "widgets", "Widget").singular == "widget"
    assert Resource("", "v1", "oxen", "Ox", singular="bull").singular == "bull"


def test_names_are_in_lower_case_and_come_once() -> None:
    names = list(Resource("a.io", "v1", "widgets", "Widget", short_names=("wd",)).names())

    assert names == ["widgets", "widget", "wd", "widgets.v1.a.io", "widgets.a.io"]


@pytest.mark.parametrize("plural", ["", "pods/status", ".", "..", "%2e%2e", "po ds", "pods\n"])
def test_a_plural_is_one_segment_of_a_url(plural: str) -> None:
    with pytest.raises(ValueError, match=r"^a resource's plural is one URL segment") as caught:
        Resource("", "v1", plural, "Pod")
    assert str(caught.value).endswith(f", not {plural!r}")


@pytest.mark.parametrize("version", ["", "apps/v1", ".."])
def test_a_version_is_one_segment_of_a_url(version: str) -> None:
    with pytest.raises(ValueError, match=r"^a resource's version is one URL segment"):
        Resource("", version, "pods", "Pod")


def test_resources_are_equal_by_group_version_and_plural() -> None:
    widgets = Resource("a.io", "v1", "widgets", "Widget")

    assert widgets == Resource(
        "a.io", "v1", "widgets", "Widget", singular="widget", short_names=("wd",)
    )
    assert widgets == Resource("a.io", "v1", "widgets", "Gadget", namespaced=False)
    assert widgets != Resource("b.io", "v1", "widgets", "Widget")
    assert widgets != Resource("a.io", "v2", "widgets", "Widget")
    assert widgets != Resource("a.io", "v1", "gadgets", "Widget")
    assert widgets != "widgets.a.io"
    assert hash(widgets) == hash(Resource("a.io", "v1", "widgets", "Gadget", namespaced=False))
    assert hash(widgets) != hash(Resource("a.io", "v2", "widgets", "Widget"))


def test_a_built_in_resource_written_by_hand_is_the_built_in_one() -> None:
    assert resolve_built_in(Resource("", "v1", "pods", "pod", namespaced=False)) is PODS
    widgets = Resource("a.io", "v1", "widgets", "Widget")
    assert resolve_built_in(widgets) is widgets
    assert resolve_built_in("po") is PODS


def test_resources_are_hashable() -> None:
    assert len({Resource("a.io", "v1", "widgets", "Widget"), *BUILT_IN, *BUILT_IN}) == (
        len(BUILT_IN) + 1
    )


@pytest.mark.parametrize(
    "namespace",
    ["web/../kube-system", "..", ".", "Web", "web.db", "-web", "web-", "w" * 64, "web\n", "w%2e"],
)
def test_a_namespace_is_a_dns_label(namespace: str) -> None:
    """Anything else could reach another namespace than the one that the program may read."""
    with pytest.raises(ValueError, match=r"^a namespace is a DNS label") as caught:
        PODS.path(namespace)
    assert str(caught.value) == (
        "a namespace is a DNS label (at most 63 lower-case letters, digits and '-', with a letter "
        f"or digit at both ends), not {namespace!r}"
    )


@pytest.mark.parametrize("namespace", ["w", "web", "kube-system", "0", "w" * 63])
def test_every_dns_label_may_be_a_namespace(namespace: str) -> None:
    assert PODS.path(namespace) == f"/api/v1/namespaces/{namespace}/pods"


@pytest.mark.parametrize("name", ["..", ".", "a/b", "../web-0", "a%2fb"])
def test_a_name_in_a_path_is_one_segment(name: str) -> None:
    with pytest.raises(ValueError, match=r"^the name of an object is one URL segment") as caught:
        PODS.path("web", name)
    assert str(caught.value).endswith(f" (no '/', no '%', not '.' or '..'), not {name!r}")


def test_a_name_need_not_be_a_dns_label() -> None:
    roles = find_built_in("clusterroles")

    assert roles.path(name="system:node").endswith("/clusterroles/system:node")
    assert PODS.path("web", "a..b").endswith("/pods/a..b")


@pytest.mark.parametrize("group", ["..", "apps/v1", "a%2e"])
def test_a_group_is_one_segment_of_a_url(group: str) -> None:
    with pytest.raises(ValueError, match=r"^a resource's group is one URL segment"):
        Resource(group, "v1", "pods", "Pod")


@pytest.mark.parametrize(
    "name", ["deployment.apps", "deploy.apps", "Deployment.apps", "deployment.v1.apps"]
)
def test_every_form_of_a_name_can_have_a_group(name: str) -> None:
    assert str(find_built_in(name)) == "deployments.apps"


@pytest.mark.parametrize("name", ["deployment.batch", "deployment.v2.apps", "deployment."])
def test_a_name_with_another_group_is_unknown(name: str) -> None:
    with pytest.raises(UnknownResource):
        find_built_in(name)


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        (PODS, "pods"),
        (DEPLOYMENTS, "deployments.apps"),
        (Resource("", "v2", "pods", "Pod"), "pods.v2"),
        (Resource("example.com", "v1", "widgets", "Widget"), "widgets.example.com"),
        (Resource("example.com", "v1beta1", "widgets", "Widget"), "widgets.v1beta1.example.com"),
        (
            Resource("autoscaling", "v2", "horizontalpodautoscalers", "X"),
            "horizontalpodautoscalers.autoscaling",
        ),
        (
            Resource("autoscaling", "v1", "horizontalpodautoscalers", "X"),
            "horizontalpodautoscalers.v1.autoscaling",
        ),
    ],
    ids=str,
)
def test_the_usual_version_is_no_part_of_a_name(resource: Resource, name: str) -> None:
    assert versioned_name(resource) == name


def test_resources_of_one_url_are_equal_in_each_comparison() -> None:
    own = Resource("apps", "v1", "deployments", "Rollout", short_names=("ro",))
    assert own == DEPLOYMENTS
    assert not own != DEPLOYMENTS  # noqa: SIM202  # ``!=`` is a method of its own
    assert len({own, DEPLOYMENTS}) == 1
    other = Resource("apps", "v1beta1", "deployments", "Deployment")
    assert other != DEPLOYMENTS
    assert not other == DEPLOYMENTS  # noqa: SIM201
    assert other != str(other)
