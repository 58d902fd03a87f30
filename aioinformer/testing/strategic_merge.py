"""Strategic merge patch: a merge patch that knows which lists are sets of things with a name.

It is what kubectl and the generated clients send by default, and for built-in kinds alone: the API
server takes it from its Go structs which list is merged by what, which custom resources don't
have. Here that is a table of names, since one name nearly always means one thing.

Not done: ``$setElementOrder`` is ignored, so that what is new comes last; lists of names that the
table doesn't have are replaced, as lists without a merge key are.

Source: apimachinery's strategicpatch package (``mergeMap``, ``mergeSlice``), and the
``patchMergeKey`` tags in k8s.io/api.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from aioinformer.testing import statuses

__all__ = ["StrategicMergePatch"]

Body = dict[str, Any]

_KEYS: Mapping[str, tuple[str, ...]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "podIPs": ("ip",),
    "ports": ("containerPort", "port"),  # of a container; of a Service
    "resourceClaims": ("name",),
    "secrets": ("name",),
    "topologySpreadConstraints": ("topologyKey",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
    "webhooks": ("name",),
}
"""Lists that are merged, and by which field of their items: the first that the patch has. All
others are replaced: ``args``, ``command``, ``tolerations``, ``taints``, ..."""

_SETS = frozenset({"finalizers"})
"""Lists of strings to which a patch adds."""

_HOW = "$patch"
_KEPT = "$retainKeys"
_TAKEN = "$deleteFromPrimitiveList/"


@dataclass(frozen=True, slots=True)
class StrategicMergePatch:
    """A change of a built-in object's body."""

    patch: Mapping[str, Any]

    def change(self, body: Body) -> Body:
        """The body, merged with the patch. No part of the old one is written to.

        Raises:
            BadRequest: an item of a list lacks its key, or ``$patch`` is none of the three.
        """
        return _mapping(body, self.patch)


def _mapping(target: Mapping[str, Any], patch: Mapping[str, Any]) -> Body:
    how = _directive(patch)
    if how == "delete":
        return {}
    result: Body = {} if how == "replace" else dict(target)
    for name, value in patch.items():
        if name.startswith(_TAKEN):
            _take(result, name.removeprefix(_TAKEN), value)
        elif name.startswith("$"):
            continue
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(name, result.get(name), value)
    kept = patch.get(_KEPT)
    return result if kept is None else {name: result[name] for name in result if name in kept}


def _directive(patch: Mapping[str, Any]) -> str:
    how: object = patch.get(_HOW, "merge")
    if how not in ("merge", "replace", "delete"):
        raise statuses.bad_request(f"unknown patch type: {how}")
    return str(how)


def _merged(name: str, old: Any, new: Any) -> Any:
    if isinstance(new, Mapping):
        before = cast("Body", old) if isinstance(old, dict) else {}
        return _mapping(before, cast("Mapping[str, Any]", new))
    if not isinstance(new, list):
        return new
    items = cast("Sequence[Any]", new)
    known = cast("Sequence[Any]", old) if isinstance(old, list) else ()
    if name in _SETS:
        return [*known, *(item for item in items if item not in known)]
    if name in _KEYS and all(isinstance(item, Mapping) for item in items):
        return _items(_KEYS[name], known, cast("Sequence[Mapping[str, Any]]", items))
    return items


def _items(
    keys: tuple[str, ...], before: Sequence[Any], patches: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """A list of things with a name: what is known keeps its place, what is new comes last."""
    meant = [patch for patch in patches if patch.keys() - {_HOW}]
    if len(meant) < len(patches) and any(
        _directive(patch) == "replace" for patch in patches if patch not in meant
    ):
        return [_mapping({}, patch) for patch in meant]
    result = list(before)
    for patch in meant:
        key = next((key for key in keys if key in patch), None)
        if key is None:
            shown = " or ".join(keys)
            raise statuses.bad_request(f"map: {patch} does not contain declared merge key: {shown}")
        at = next((i for i, each in enumerate(result) if each.get(key) == patch[key]), None)
        if _directive(patch) == "delete":
            result[:] = [each for each in result if each.get(key) != patch[key]]
        elif at is None:
            result.append(_mapping({}, patch))
        else:
            result[at] = _mapping(result[at], patch)
    return result


def _take(result: Body, name: str, values: list[Any]) -> None:
    """Take values out of a list of strings."""
    if name in result:
        result[name] = [value for value in result[name] if value not in values]
