"""Finalizers: the next step for an object, and the patches that add and remove one entry.

The rules are those of kube-rs' ``finalizer`` and of controller-runtime's ``controllerutil``. The
patches are JSON patches: a test of the uid protects an object that was created again under the same
name, a test of the list or of the entry protects the entries of other controllers.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

from aioinformer._core.objects.kube_object import KubeObject

FinalizerStep: TypeAlias = Literal["add", "reconcile", "cleanup", "ignore"]
"""``ignore``: the object is being deleted, and this controller has nothing to clean up."""

JsonPatchOperations: TypeAlias = list[dict[str, Any]]

_NAME = re.compile(
    r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
"""A DNS subdomain, a slash, and up to 63 characters. The API server accepts names without a domain
for custom resources, with a warning, and rejects them for built-in ones."""


def check_finalizer_name(name: object) -> None:
    """Raise unless this is a qualified name: a ``TypeError``, or a ``ValueError`` for a text."""
    if not isinstance(name, str):
        raise TypeError(f"finalizer must be a name such as 'example.com/cleanup', not {name!r}")
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"finalizer must be a domain, a slash and a name, such as 'example.com/cleanup', "
            f"not {name!r}"
        )


def next_step(obj: KubeObject, finalizer: str) -> FinalizerStep:
    """Return the next step for an object."""
    present = finalizer in finalizers_of(obj)
    if obj.deletion_timestamp is not None:
        return "cleanup" if present else "ignore"
    return "reconcile" if present else "add"


def adding_patch(obj: KubeObject, finalizer: str) -> JsonPatchOperations | None:
    """Return the patch that adds the entry; ``None`` if it is there, or the object is being
    deleted, for which the server rejects new entries.
    """
    if next_step(obj, finalizer) != "add":
        return None
    path, present = "/metadata/finalizers", finalizers_of(obj)
    if present:
        return [_test_uid(obj), _test(path, present), _add(f"{path}/-", finalizer)]
    # A test for null passes for an absent list, but not for an empty one.
    empty = None if obj["metadata"].get("finalizers") is None else present
    return [_test_uid(obj), _test(path, empty), _add(path, [finalizer])]


def removing_patch(obj: KubeObject, finalizer: str) -> JsonPatchOperations | None:
    """Return the patch that removes the entry and no other; ``None`` if the entry is absent."""
    present = finalizers_of(obj)
    if finalizer not in present:
        return None
    path = f"/metadata/finalizers/{present.index(finalizer)}"
    return [_test_uid(obj), _test(path, finalizer), {"op": "remove", "path": path}]


def finalizers_of(obj: KubeObject) -> list[str]:
    """Return the entries of ``metadata.finalizers``."""
    found: Any = obj["metadata"].get("finalizers")
    return list(found or ())


def _test_uid(obj: KubeObject) -> dict[str, Any]:
    return _test("/metadata/uid", obj.uid)


def _test(path: str, value: object) -> dict[str, Any]:
    return {"op": "test", "path": path, "value": value}


def _add(path: str, value: object) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}
