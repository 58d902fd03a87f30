"""Who controls an object: the one owner reference with ``controller: true``, read and written.

As client-go's ``metav1.GetControllerOf``, and as the garbage collector resolves a reference: by
group and kind, whatever the version in it; the owner is in the namespace of what it owns, or in
none. Whoever looks for keys doesn't look at the uid: who is called for an owner that was re-created
finds that out, with ``is_controlled_by``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.selectors.projections import field

__all__ = ["ControllerOf", "controller_reference", "is_controlled_by"]

_owner_references = field("metadata.ownerReferences")
"""Reads them without building the rest of the object."""


class ControllerOf:
    """A function of an object: the keys of its controller, if that is of one resource."""

    def __init__(self, owner: Resource) -> None:
        """Look for controllers among the objects of ``owner``."""
        self._owner = owner

    def __call__(self, obj: KubeObject) -> tuple[ObjectKey, ...]:
        """No key or one: an object has at most one controller.

        Raises:
            ObjectDecodeError: the object's body is no JSON.
        """
        references: Sequence[Mapping[str, Any]] = _owner_references(obj) or ()
        for reference in references:
            if reference.get("controller") is True:
                return self._key(reference, obj.key.namespace)
        return ()

    def _key(self, reference: Mapping[str, Any], namespace: str) -> tuple[ObjectKey, ...]:
        group = str(reference.get("apiVersion", "")).rpartition("/")[0]
        if (group, reference.get("kind")) != (self._owner.group, self._owner.kind):
            return ()
        return (ObjectKey(namespace if self._owner.namespaced else "", str(reference["name"])),)

    def __repr__(self) -> str:
        return f"<ControllerOf {self._owner}>"


def controller_reference(owner: KubeObject) -> dict[str, Any]:
    """What makes an object the child of ``owner``: an entry of its ``metadata.ownerReferences``.

    As client-go's ``metav1.NewControllerRef``: Kubernetes deletes the child after its owner, and
    in a foreground deletion before it. The owner is in the child's namespace, or in none.
    """
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_controlled_by(child: KubeObject, owner: KubeObject) -> bool:
    """Whether ``owner`` is the controller of ``child``, by uid: not one of its name that is gone.

    Raises:
        ObjectDecodeError: the child's body is no JSON.
    """
    references: Sequence[Mapping[str, Any]] = _owner_references(child) or ()
    return any(
        each.get("controller") is True and each.get("uid") == owner.uid for each in references
    )
