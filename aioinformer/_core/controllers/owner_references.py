"""Owner references of objects: the controller of an object, and entries for new objects.

The controller of an object is the one owner reference with ``controller: true``, as in client-go's
``metav1.GetControllerOf``. A reference is resolved as the garbage collector does it: by group and
kind, in whatever version, in the object's namespace or cluster-scoped. ``ControllerOf`` returns
keys without comparing uids, so a reconciler may run for an owner that was created again under the
same name. ``is_controlled_by`` compares the uid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.selectors.projections import field

__all__ = ["ControllerOf", "controller_reference", "is_controlled_by", "owner_reference"]

_owner_references = field("metadata.ownerReferences")
"""Reads the references without decoding the rest of the object."""


class ControllerOf:
    """A function of an object that returns the key of its controller in one resource."""

    def __init__(self, owner: Resource) -> None:
        """Return controllers among the objects of ``owner``."""
        self._owner = owner

    def __call__(self, obj: KubeObject) -> tuple[ObjectKey, ...]:
        """Return one key or none: an object has at most one controller.

        Raises:
            ObjectDecodeError: the object's body is not JSON.
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


def owner_reference(owner: KubeObject, *, controller: bool = True) -> dict[str, Any]:
    """Return the entry of an object's ``metadata.ownerReferences`` that names ``owner``.

    Kubernetes deletes an object after its last owner. The owner is in the object's namespace, or
    cluster-scoped.

    Args:
        owner: the object that owns.
        controller: True for the one owner that manages the object, which ``Controller.owns``
            follows. Then a foreground deletion of the owner waits for the object, as with
            client-go's ``metav1.NewControllerRef``. False for a further owner.
    """
    reference = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
    }
    return reference | {"controller": True, "blockOwnerDeletion": True} if controller else reference


def controller_reference(owner: KubeObject) -> dict[str, Any]:
    """Return ``owner_reference(owner, controller=True)``."""
    return owner_reference(owner)


def is_controlled_by(child: KubeObject, owner: KubeObject) -> bool:
    """Return True if ``owner`` is the controller of ``child``. An object of the same name with
    another uid isn't.

    Raises:
        ObjectDecodeError: the child's body is not JSON.
    """
    references: Sequence[Mapping[str, Any]] = _owner_references(child) or ()
    return any(
        each.get("controller") is True and each.get("uid") == owner.uid for each in references
    )
