"""Owner references of objects: the controller of an object, and entries for its children.

A reference is resolved as the garbage collector does it: by group and kind, in whatever version, in
the object's namespace or cluster-scoped. ``ControllerOf`` returns keys without comparing uids, so a
reconciler may run for an owner that was created again under the same name. ``is_controlled_by``
compares the uid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.selectors.projections import field
from aioinformer.errors import AlreadyOwned, UsageError

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


def owner_reference(
    owner: KubeObject, *, controller: bool = True, block_owner_deletion: bool | None = None
) -> dict[str, Any]:
    """Return the entry of an object's ``metadata.ownerReferences`` that names ``owner``.

    Kubernetes deletes an object after its last owner. The owner is in the object's namespace, or
    cluster-scoped.

    Args:
        owner: the object that owns.
        controller: True for the one owner that manages the object, which ``Controller.owns``
            follows (client-go's ``metav1.NewControllerRef``). False for a further owner.
        block_owner_deletion: True if a foreground deletion of the owner waits for the object; as
            ``controller`` by default. A cluster with the admission plugin
            OwnerReferencesPermissionEnforcement, such as OpenShift, accepts True only from a writer
            that may update the subresource ``finalizers`` of the owner.
    """
    reference = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
    }
    blocks = controller if block_owner_deletion is None else block_owner_deletion
    flags = {"controller": controller, "blockOwnerDeletion": blocks}
    return reference | {name: True for name, is_set in flags.items() if is_set}


def set_owner(
    child: Mapping[str, Any],
    owner: KubeObject,
    *,
    controller: bool = True,
    block_owner_deletion: bool | None = None,
) -> dict[str, Any]:
    """Return a copy of ``child`` with ``owner`` among its owners: ``SetControllerReference``.

    An entry of the same owner is replaced, also of an owner that was created again under the same
    name. Other entries stay. A child without a namespace gets the owner's. ``controller`` and
    ``block_owner_deletion`` are as for ``owner_reference``.

    Raises:
        AlreadyOwned: ``controller`` is True, and the child has another controller.
        UsageError: the child is in another namespace than its owner, which no server accepts: the
            garbage collector would take the owner for deleted, and delete the child. Or the child
            is the owner itself, or has no metadata.

    Example::

        deployment = deployments.lister.get("shop")
        child = set_owner({"metadata": {"name": "shop-settings"}, "data": {}}, deployment)
        created = await client.api("configmaps", namespace="web").create(child)
        assert is_controlled_by(created, deployment)
    """
    body = child.to_dict() if isinstance(child, KubeObject) else dict(child)
    given = body.get("metadata")
    if not isinstance(given, Mapping):
        raise UsageError(f"the child of {_describe(owner)} needs metadata, and it has none")
    metadata = dict(cast("Mapping[str, Any]", given))
    if _is_same(body, metadata, owner):
        raise UsageError(
            f"{_describe(owner)} can't own itself: the garbage collector would never delete it in "
            "the foreground. To write the own object, pass owned=False to ctx.apply or "
            "ctx.create_or_update, or don't call set_owner"
        )
    reference = owner_reference(
        owner, controller=controller, block_owner_deletion=block_owner_deletion
    )
    metadata["ownerReferences"] = _merge_references(metadata, owner, reference)
    if owner.namespace:
        _set_namespace(metadata, owner)
    return body | {"metadata": metadata}


def _is_same(body: Mapping[str, Any], metadata: Mapping[str, Any], owner: KubeObject) -> bool:
    """Return True if a body is that of the owner itself, in whatever version of its API."""
    if metadata.get("uid") and metadata["uid"] == owner.uid:
        return True
    namespace = metadata.get("namespace") or owner.namespace
    # The metadata of a cached object are known without decoding its body, which a model has not.
    head = {"apiVersion": owner.api_version, "kind": owner.kind}
    own = (_group_kind(head), owner.namespace, owner.name)
    return (_group_kind(body), namespace, metadata.get("name")) == own


def _group_kind(body: Mapping[str, Any]) -> tuple[str, object]:
    """Return the group of a body's ``apiVersion``, and its ``kind``."""
    return str(body.get("apiVersion", "")).rpartition("/")[0], body.get("kind")


def _set_namespace(metadata: dict[str, Any], owner: KubeObject) -> None:
    namespace = metadata.get("namespace") or owner.namespace
    if namespace != owner.namespace:
        raise UsageError(
            f"{metadata.get('name', 'an object')} in the namespace {namespace} can't be owned by "
            f"{_describe(owner)}: an owner is in the namespace of its children, or cluster-scoped"
        )
    metadata["namespace"] = namespace


def _merge_references(
    metadata: Mapping[str, Any], owner: KubeObject, reference: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the references of a child with ``reference``, that of ``owner``, each object once."""
    identity = _identity(reference)
    references: Sequence[Mapping[str, Any]] = metadata.get("ownerReferences") or ()
    merged: list[dict[str, Any]] = []
    for each in references:
        if _identity(each) == identity:
            # In its place: two owners that move their entries would change the child in turn.
            if reference not in merged:
                merged.append(reference)
            continue
        if reference.get("controller") and each.get("controller") is True:
            raise AlreadyOwned(
                f"{metadata.get('name', 'an object')} is controlled by {each.get('kind')} "
                f"{each.get('name')}, so {_describe(owner)} can't be its controller"
            )
        merged.append(dict(each))
    return merged if reference in merged else [*merged, reference]


def _identity(reference: Mapping[str, Any]) -> tuple[str, object, object]:
    """Return group, kind and name: the version of an API is no part of an object's identity."""
    return *_group_kind(reference), reference.get("name")


def _describe(owner: KubeObject) -> str:
    return f"{owner.kind} {owner.key}"


def is_controlled_by(child: KubeObject, owner: KubeObject) -> bool:
    """Return True if ``owner``, by uid, is the controller of ``child``.

    Raises:
        ObjectDecodeError: the child's body is not JSON.
    """
    references: Sequence[Mapping[str, Any]] = _owner_references(child) or ()
    return any(
        each.get("controller") is True and each.get("uid") == owner.uid for each in references
    )
