"""Owner references of objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioinformer import KubeObject, ObjectKey, Resource
from aioinformer.controllers.state.owner_references import (
    ControllerOf,
    is_controlled_by,
    owner_reference,
    set_owner,
)
from aioinformer.errors import AlreadyOwned, UsageError

FOOS = Resource("samples.example.com", "v1", "foos", "Foo")
REALMS = Resource("samples.example.com", "v1", "realms", "Realm", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")


def ref(name: str, **changed: object) -> dict[str, Any]:
    base = {"apiVersion": "samples.example.com/v1", "kind": "Foo", "controller": True}
    return {**base, "name": name, "uid": "1", **changed}


def child(*references: dict[str, Any], namespace: str = "web") -> KubeObject:
    body = {"metadata": {"name": "c", "namespace": namespace, "ownerReferences": references}}
    return KubeObject(ObjectKey(namespace, "c"), "u", "1", json.dumps(body).encode(), PODS)


def test_the_controller_has_the_namespace_of_the_controlled_object() -> None:
    assert ControllerOf(FOOS)(child(ref("a"))) == (ObjectKey("web", "a"),)


def test_an_owner_that_is_no_controller_is_passed_over() -> None:
    references = ref("a", controller=False), ref("b", controller=None), ref("c")
    assert ControllerOf(FOOS)(child(*references)) == (ObjectKey("web", "c"),)


@pytest.mark.parametrize(
    "reference",
    [
        pytest.param(ref("a", kind="Bar"), id="kind"),
        pytest.param(ref("a", apiVersion="other.example.com/v1"), id="group"),
        pytest.param(ref("a", apiVersion="v1"), id="core"),
    ],
)
def test_a_controller_of_another_kind_gives_no_key(reference: dict[str, Any]) -> None:
    assert ControllerOf(FOOS)(child(reference)) == ()


def test_another_version_of_the_same_kind_is_the_same_owner() -> None:
    reference = ref("a", apiVersion="samples.example.com/v1alpha1")
    assert ControllerOf(FOOS)(child(reference)) == (ObjectKey("web", "a"),)


def test_a_pod_can_own() -> None:
    reference = ref("a", apiVersion="v1", kind="Pod")
    assert ControllerOf(PODS)(child(reference)) == (ObjectKey("web", "a"),)


def test_a_cluster_scoped_controller_has_no_namespace() -> None:
    assert ControllerOf(REALMS)(child(ref("r", kind="Realm"))) == (ObjectKey("", "r"),)


def test_an_object_without_owners_gives_no_key() -> None:
    assert ControllerOf(FOOS)(child()) == ()
    bare = KubeObject(ObjectKey("web", "c"), "u", "1", b'{"metadata":{"name":"c"}}', PODS)
    assert ControllerOf(FOOS)(bare) == ()


def test_the_reference_in_a_child_maps_to_the_key_of_its_owner() -> None:
    owner = KubeObject(ObjectKey("web", "a"), "uid-a", "1", b'{"metadata": {"name": "a"}}', FOOS)
    made = child(owner_reference(owner))
    assert ControllerOf(FOOS)(made) == (owner.key,)
    assert is_controlled_by(made, owner)


def test_a_further_owner_is_not_the_controller() -> None:
    owner = KubeObject(ObjectKey("web", "a"), "uid-a", "1", b'{"metadata": {"name": "a"}}', FOOS)
    reference = owner_reference(owner, controller=False)
    assert reference == {
        "apiVersion": "samples.example.com/v1",
        "kind": "Foo",
        "name": "a",
        "uid": "uid-a",
    }
    assert ControllerOf(FOOS)(child(reference)) == ()


def test_an_owner_of_the_same_name_that_was_created_again_does_not_control() -> None:
    again = KubeObject(ObjectKey("web", "a"), "uid-b", "9", b'{"metadata": {"name": "a"}}', FOOS)
    assert not is_controlled_by(child(ref("a")), again)
    assert not is_controlled_by(child(), again)


# -- set_owner ---------------------------------------------------------------------------------


def owner(name: str = "a", *, uid: str = "1", namespace: str = "web") -> KubeObject:
    resource = FOOS if namespace else REALMS
    return KubeObject(ObjectKey(namespace, name), uid, "1", b"{}", resource)


def test_a_child_gets_the_owner_and_the_owners_namespace() -> None:
    given: dict[str, Any] = {"metadata": {"name": "c"}}
    body = set_owner(given, owner())
    assert body["metadata"] == {
        "name": "c",
        "namespace": "web",
        "ownerReferences": [owner_reference(owner())],
    }
    assert given == {"metadata": {"name": "c"}}


def test_an_entry_of_the_same_owner_is_replaced() -> None:
    once = set_owner({"metadata": {"name": "c"}}, owner(uid="old"), controller=False)
    (entry,) = set_owner(once, owner(uid="new"))["metadata"]["ownerReferences"]
    assert entry == owner_reference(owner(uid="new"))


def test_an_owner_that_is_set_again_keeps_its_place() -> None:
    references = [owner_reference(owner(), controller=False), ref("b", controller=False)]
    body = set_owner(child(*references), owner(), controller=False)
    assert body["metadata"]["ownerReferences"] == references


def test_entries_of_other_owners_stay() -> None:
    other = ref("b", controller=False)
    references = set_owner(child(other), owner())["metadata"]["ownerReferences"]
    assert references == [other, owner_reference(owner())]
    references = set_owner(child(ref("b")), owner(), controller=False)["metadata"][
        "ownerReferences"
    ]
    assert references == [ref("b"), owner_reference(owner(), controller=False)]


def test_a_child_with_another_controller_is_an_error() -> None:
    with pytest.raises(AlreadyOwned, match=r"c is controlled by Foo b, so Foo web/a can't be"):
        set_owner(child(ref("b")), owner())


def test_an_owner_in_another_namespace_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"c in the namespace other can't be owned by Foo web/a"):
        set_owner({"metadata": {"name": "c", "namespace": "other"}}, owner())


def test_a_cluster_scoped_owner_owns_objects_of_any_namespace() -> None:
    realm = owner("r", namespace="")
    body = set_owner({"metadata": {"name": "c", "namespace": "other"}}, realm)
    assert body["metadata"]["namespace"] == "other"
    assert "namespace" not in set_owner({"metadata": {"name": "c"}}, realm)["metadata"]


def test_a_child_without_metadata_is_an_error() -> None:
    with pytest.raises(UsageError, match="the child of Foo web/a needs metadata"):
        set_owner({"kind": "Bar"}, owner())


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"uid": "1", "name": "other"}},
        {"kind": "Foo", "apiVersion": "samples.example.com/v2", "metadata": {"name": "a"}},
        {
            "kind": "Foo",
            "apiVersion": "samples.example.com/v1",
            "metadata": {"name": "a", "namespace": "web", "uid": "earlier"},
        },
    ],
    ids=["the uid", "another version of the API", "the name"],
)
def test_an_object_can_not_own_itself(body: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        set_owner(body, owner())
    assert str(caught.value) == (
        "Foo web/a can't own itself: the garbage collector would never delete it in the "
        "foreground. To write the own object, pass owned=False to ctx.apply or "
        "ctx.create_or_update, or don't call set_owner"
    )


def test_set_owner_returns_a_mutable_copy_of_a_cached_child() -> None:
    raw = b'{"metadata":{"name":"c","namespace":"web"},"spec":{"ports":[{"port":80}]}}'
    cached = KubeObject(ObjectKey("web", "c"), "u", "1", raw, PODS)
    body = set_owner(cached, owner())
    body["spec"]["ports"].append({"port": 81})
    assert body["spec"] == {"ports": [{"port": 80}, {"port": 81}]}
    assert cached["spec"] == {"ports": [{"port": 80}]}


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "Bar"},
        {"apiVersion": "v1"},
        {"metadata": {"name": "b"}},
        {"metadata": {"name": "a", "uid": "2", "namespace": "web"}, "kind": "Bar"},
    ],
    ids=["the kind", "the group", "the name", "the uid and the kind"],
)
def test_an_object_that_differs_in_one_respect_is_another(changed: dict[str, Any]) -> None:
    body = {"kind": "Foo", "apiVersion": "samples.example.com/v1", "metadata": {"name": "a"}}
    references = set_owner(body | changed, owner())["metadata"]["ownerReferences"]
    assert references == [owner_reference(owner())]


def test_an_object_of_the_same_name_in_another_namespace_is_not_the_owner_itself() -> None:
    body = {
        "kind": "Foo",
        "apiVersion": "samples.example.com/v1",
        "metadata": {"name": "a", "namespace": "other"},
    }
    with pytest.raises(UsageError, match="a in the namespace other can't be owned by Foo web/a"):
        set_owner(body, owner())


def test_several_entries_of_one_owner_become_one() -> None:
    twice = [owner_reference(owner(uid="old")), ref("b", controller=False), ref("a")]
    references = set_owner(child(*twice), owner())["metadata"]["ownerReferences"]
    assert references == [owner_reference(owner()), ref("b", controller=False)]


def test_an_owner_of_the_same_name_in_another_group_is_another_one() -> None:
    other = ref("a", apiVersion="other.example.com/v1", controller=False)
    references = set_owner(child(other), owner())["metadata"]["ownerReferences"]
    assert references == [other, owner_reference(owner())]


def test_a_child_without_a_name_is_called_an_object() -> None:
    with pytest.raises(UsageError, match=r"^an object in the namespace other can't be owned"):
        set_owner({"metadata": {"namespace": "other"}}, owner())
    with pytest.raises(AlreadyOwned, match=r"^an object is controlled by Foo b, so Foo web/a"):
        set_owner({"metadata": {"ownerReferences": [ref("b")]}}, owner())


def test_a_reference_names_the_owner_and_whether_it_is_the_controller() -> None:
    names = {"apiVersion": "samples.example.com/v1", "kind": "Foo", "name": "a", "uid": "1"}
    assert owner_reference(owner(), controller=False) == names
    controlling = {**names, "controller": True, "blockOwnerDeletion": True}
    assert owner_reference(owner()) == controlling


@pytest.mark.parametrize("controller", [True, False])
@pytest.mark.parametrize("blocks", [True, False])
def test_an_owner_waits_for_a_child_whether_it_is_its_controller_or_not(
    controller: bool, blocks: bool
) -> None:
    reference = owner_reference(owner(), controller=controller, block_owner_deletion=blocks)
    assert (reference.get("controller"), reference.get("blockOwnerDeletion")) == (
        controller or None,
        blocks or None,
    )
    given = child(owner_reference(owner()))  # with the default of a controller
    body = set_owner(given, owner(), controller=controller, block_owner_deletion=blocks)
    assert body["metadata"]["ownerReferences"] == [reference]


def test_only_the_controller_with_the_uid_controls() -> None:
    assert is_controlled_by(child(ref("b", uid="2"), ref("a")), owner())
    assert not is_controlled_by(child(ref("a", controller=False)), owner())
    assert not is_controlled_by(child(ref("a", uid="2")), owner())


def test_a_controller_in_no_namespace_has_a_key_without_one() -> None:
    reference = ref("r", kind="Realm")
    assert ControllerOf(REALMS)(child(reference)) == (ObjectKey("", "r"),)
    assert ControllerOf(REALMS)(child(ref("r", kind="Realm", apiVersion=None))) == ()
    assert repr(ControllerOf(REALMS)) == "<ControllerOf realms.samples.example.com>"
