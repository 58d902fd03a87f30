"""Events, and the identity of objects in and beside their bytes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TypeAlias

import pytest
from msgspec.structs import asdict

from aioinformer._core.objects.kube_object import (
    DIFFERENT,
    SAME_UID,
    SAME_VERSION,
    Added,
    Deleted,
    KubeObject,
    ObjectKey,
    Updated,
    compare_identity,
    create_object,
    create_packed_object,
    held_state,
    key_of,
    pack_identity,
)
from aioinformer._core.objects.object_body import IdentityPlace
from aioinformer._core.objects.stored import ModelObject
from tests.core.builders import PODS, encode, key, pod, pod_body

A1, A2 = pod("a", rv="1"), pod("a", rv="2")


# -- events ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event", [Added(A1), Updated(A1, A2), Deleted(A1), Deleted(A1, "vanished")], ids=repr
)
def test_each_event_has_the_key_of_its_object(event: Added | Updated | Deleted) -> None:
    assert event.key == key("a")


def test_the_object_of_an_update_is_the_new_state() -> None:
    assert Updated(A1, A2).obj is A2
    assert Updated(pod("b"), A2).key == key("a")


def test_deletions_are_equal_by_state_and_reason() -> None:
    deleted = Deleted(A1, "vanished")

    assert deleted == Deleted(pod("a", rv="1"), "vanished")
    assert not deleted != Deleted(pod("a", rv="1"), "vanished")  # noqa: SIM202
    assert hash(deleted) == hash(Deleted(pod("a", rv="1"), "vanished"))
    assert hash(deleted) != hash(Deleted(A1))
    assert deleted != Deleted(A1)
    assert deleted != Deleted(A2, "vanished")
    assert deleted != Added(A1)
    assert deleted != "vanished"
    assert repr(deleted) == f"Deleted(obj={A1!r}, reason='vanished')"


def test_a_deletion_is_equal_for_any_held_state() -> None:
    assert Deleted(A2, "deleted", A1) == Deleted(A2)
    assert hash(Deleted(A2, "deleted", A1)) == hash(Deleted(A2))


def test_the_held_state_of_a_deletion_is_the_cached_one() -> None:
    assert held_state(Deleted(A2, "deleted", A1)) is A1
    assert held_state(Deleted(A2)) is A2


def test_an_object_without_a_key_is_an_error() -> None:
    assert key_of(A1) == key("a")
    with pytest.raises(TypeError, match=r"^cannot derive a key from a dict; pass a KubeObject$"):
        key_of({})


# -- identity ----------------------------------------------------------------------------------


def in_bytes(name: str, uid: str, version: str) -> KubeObject:
    raw = encode(pod_body(name, uid=uid, rv=version))
    return create_packed_object(key(name), uid, version, raw, PODS)


def beside_bytes(name: str, uid: str, version: str) -> KubeObject:
    raw = encode(pod_body(name, uid=uid, rv=version))
    return create_object(key(name), uid, version, raw, PODS)


def not_in_bytes(name: str, uid: str, version: str) -> KubeObject:
    """Return an object whose bytes have uid and version in another place than a server's."""
    raw = encode({"metadata": {"resourceVersion": version, "uid": uid, "x": [], "name": name}})
    return create_packed_object(key(name), uid, version, raw, PODS)


def without_bytes(name: str, uid: str, version: str) -> KubeObject:
    return ModelObject(ObjectKey("web", name), b"", PODS, stored_uid=uid, stored_version=version)


Form: TypeAlias = Callable[[str, str, str], KubeObject]
FORMS: tuple[Form, ...] = (in_bytes, beside_bytes, not_in_bytes, without_bytes)


@pytest.mark.parametrize("uids", ["36", "short"])
@pytest.mark.parametrize(
    ("old", "new"),
    [pytest.param(*each, id=" ".join(f.__name__ for f in each)) for each in product(FORMS, FORMS)],
)
def test_identities_are_compared_in_every_form(old: Form, new: Form, uids: str) -> None:
    u, w = ("1" * 36, "2" * 36) if uids == "36" else ("u", "w")
    first = old("a", u, "100")

    assert compare_identity(first, new("a", u, "100")) == SAME_VERSION
    assert compare_identity(first, new("a", u, "101")) == SAME_UID
    assert compare_identity(first, new("a", u, "1000")) == SAME_UID
    assert compare_identity(first, new("a", w, "100")) == DIFFERENT
    assert compare_identity(first, new("a", w, "101")) == DIFFERENT


@pytest.mark.parametrize("form", FORMS)
def test_an_object_has_its_uid_and_version_in_every_form(form: Form) -> None:
    obj = form("a", "1" * 36, "100")

    assert (obj.key, obj.uid, obj.resource_version) == (key("a"), "1" * 36, "100")


def test_an_identity_moves_into_the_bytes_if_it_is_found_there() -> None:
    obj = beside_bytes("a", "1" * 36, "100")
    same = in_bytes("a", "1" * 36, "100")

    pack_identity(obj)
    place = asdict(obj)["_body"]
    assert isinstance(place, IdentityPlace)
    assert asdict(same)["_body"] is place, "the place of the bytes is shared"
    assert (obj.uid, obj.resource_version) == ("1" * 36, "100")


def test_an_identity_that_is_not_found_stays_beside_the_bytes() -> None:
    raw = encode({"metadata": {"name": "a"}})
    obj = create_object(key("a"), "u", "7", raw, PODS)
    pack_identity(obj)

    assert (obj.uid, obj.resource_version, obj.raw) == ("u", "7", raw)
