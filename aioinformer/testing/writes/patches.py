"""The kinds of patch: what is there in, what shall be there out.

A ``BodyPatch`` knows no storage and no rules of objects; ``registry`` gives it the newest state and
checks what comes of it as it checks an update.

JSON patch (RFC 6902), as the API server reads it.

Where its library departs from the RFC, so does this: ``replace`` and ``copy`` take a member that
isn't there for ``null``, an index may count from the end, and ``1`` is not ``1.0``. Every operation
that fails is refused in the same words, which say nothing of it.

Strategic merge patch: a merge patch that knows which lists are sets of things with a name.

It is what kubectl and the generated clients send by default, and for built-in kinds alone: the API
server takes it from its Go structs which list is merged by what, which custom resources don't
have. Here that is a table of names, since one name nearly always means one thing.

Not done: ``$setElementOrder`` is ignored, so that what is new comes last; lists of names that the
table doesn't have are replaced, as lists without a merge key are.

Source: apimachinery's strategicpatch package (``mergeMap``, ``mergeSlice``), and the
``patchMergeKey`` tags in k8s.io/api.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, cast

import msgspec

from aioinformer.testing.wire import statuses
from aioinformer.testing.wire import statuses as write_statuses

__all__ = [
    "BodyPatch",
    "JsonPatch",
    "MergePatch",
    "StrategicMergePatch",
    "apply_json_patch",
    "decode_operations",
]


Json = Any
Container = dict[str, Json] | list[Json]

_MISSING = object()


def decode_operations(body: bytes) -> list[dict[str, Any]]:
    """The operations that a request's body has.

    Raises:
        BadRequest: it has none.
    """
    try:
        found: Json = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise statuses.bad_request("invalid JSON patch") from error
    if not isinstance(found, list):
        raise write_statuses.undecodable_patch(found, "[]handlers.jsonPatchOp")
    operations = list(cast("Iterable[Any]", found))
    for each in operations:
        if not isinstance(each, dict):
            raise write_statuses.undecodable_patch(each, "handlers.jsonPatchOp")
    return operations


def apply_json_patch(body: Mapping[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    """A copy of ``body`` after all operations.

    Raises:
        Invalid: one of them fails; none is done then.
    """
    result: dict[str, Any] = deepcopy(dict(body))
    for operation in operations:
        act = _OPERATIONS.get(operation.get("op", ""))
        if act is None:
            _fail()
        act(result, operation)
    return result


def _add(body: Json, operation: Mapping[str, Json]) -> None:
    _insert(body, _parse_pointer(operation), operation.get("value"))


def _insert(body: Json, path: list[str], value: Json) -> None:
    parent, last = _find_parent(body, path)
    if isinstance(parent, dict):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    else:
        parent.insert(_parse_index(last, len(parent) + 1), value)


def _remove(body: Json, operation: Mapping[str, Json]) -> None:
    _pop(body, _parse_pointer(operation))


def _pop(body: Json, path: list[str]) -> Json:
    parent, last = _find_parent(body, path)
    if isinstance(parent, list):
        return parent.pop(_parse_index(last, len(parent)))
    if last not in parent:
        _fail()
    return parent.pop(last)


def _replace(body: Json, operation: Mapping[str, Json]) -> None:
    parent, last = _find_parent(body, _parse_pointer(operation))
    if isinstance(parent, list):
        parent[_parse_index(last, len(parent))] = operation.get("value")
    else:
        parent[last] = operation.get("value")


def _move(body: Json, operation: Mapping[str, Json]) -> None:
    _insert(body, _parse_pointer(operation), _pop(body, _parse_pointer(operation, "from")))


def _copy(body: Json, operation: Mapping[str, Json]) -> None:
    _insert(
        body,
        _parse_pointer(operation),
        deepcopy(_get_value(body, _parse_pointer(operation, "from"))),
    )


def _test(body: Json, operation: Mapping[str, Json]) -> None:
    if not _is_same_json(_get_value(body, _parse_pointer(operation)), operation.get("value")):
        _fail()


_OPERATIONS: Mapping[str, Callable[[Json, Mapping[str, Json]], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


# -- paths -------------------------------------------------------------------------------------


def _parse_pointer(operation: Mapping[str, Json], name: str = "path") -> list[str]:
    """A JSON pointer (RFC 6901), which leads somewhere inside the object."""
    text = operation.get(name)
    if not isinstance(text, str) or not text.startswith("/"):
        _fail()
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _find_parent(body: Json, path: list[str]) -> tuple[Container, str]:
    """What the last part of a path is a part of, and that part."""
    here = body
    for part in path[:-1]:
        here = _get_member(here, part)
    if not isinstance(here, dict | list):
        _fail()
    return cast("Container", here), path[-1]


def _get_value(body: Json, path: list[str]) -> Json:
    """What is at a path; ``null`` if only the last part of it is missing."""
    parent, last = _find_parent(body, path)
    found = _get_member(parent, last)
    return None if found is _MISSING else found


def _get_member(container: Json, part: str) -> Json:
    if isinstance(container, list):
        items = list(cast("Iterable[Any]", container))
        return items[_parse_index(part, len(items))]
    if not isinstance(container, dict):
        _fail()
    return cast("dict[str, Json]", container).get(part, _MISSING)


def _parse_index(part: str, size: int) -> int:
    if not part.removeprefix("-").isdecimal() or not -size <= int(part) < size:
        _fail()
    return int(part) % size


def _is_same_json(one: Json, other: Json) -> bool:
    """Whether two values are the same JSON; numbers by how they are written: 1 is not 1.0."""
    exact = msgspec.json.Encoder(order="sorted").encode
    return exact(one) == exact(other)


def _fail() -> NoReturn:
    raise write_statuses.failed_patch()


JsonObject = dict[str, Any]


class BodyPatch(Protocol):
    """A change of a body."""

    def apply(self, body: JsonObject) -> JsonObject:
        """The body after it. No part of the old one is written to.

        Raises:
            ServerError: it can't be applied.
        """
        ...


@dataclass(frozen=True, slots=True)
class MergePatch:
    """RFC 7396."""

    patch: Mapping[str, Any]

    def apply(self, body: JsonObject) -> JsonObject:
        """The body, merged with the patch."""
        changed: JsonObject = apply_merge_patch(body, self.patch)
        return changed


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """RFC 6902."""

    operations: list[dict[str, Any]]

    def apply(self, body: JsonObject) -> JsonObject:
        """The body after all operations."""
        return apply_json_patch(body, self.operations)


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7396: objects are merged, ``null`` removes, anything else replaces. No copy is made."""
    if not isinstance(patch, Mapping):
        return patch
    result: JsonObject = dict(cast("JsonObject", target)) if isinstance(target, dict) else {}
    for name, value in cast("Mapping[str, Any]", patch).items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = apply_merge_patch(result.get(name), value)
    return result


_MERGE_KEYS: Mapping[str, tuple[str, ...]] = {
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

_SET_LISTS = frozenset({"finalizers"})
"""Lists of strings to which a patch adds."""

_DIRECTIVE = "$patch"
_RETAIN_KEYS = "$retainKeys"
_DELETE_FROM_LIST = "$deleteFromPrimitiveList/"


@dataclass(frozen=True, slots=True)
class StrategicMergePatch:
    """A change of a built-in object's body."""

    patch: Mapping[str, Any]

    def apply(self, body: JsonObject) -> JsonObject:
        """The body, merged with the patch. No part of the old one is written to.

        Raises:
            BadRequest: an item of a list lacks its key, or ``$patch`` is none of the three.
        """
        return _merge_mapping(body, self.patch)


def _merge_mapping(target: Mapping[str, Any], patch: Mapping[str, Any]) -> JsonObject:
    how = _patch_directive(patch)
    if how == "delete":
        return {}
    result: JsonObject = {} if how == "replace" else dict(target)
    for name, value in patch.items():
        if name.startswith(_DELETE_FROM_LIST):
            _remove_values(result, name.removeprefix(_DELETE_FROM_LIST), value)
        elif name.startswith("$"):
            continue
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = _merge_value(name, result.get(name), value)
    kept = patch.get(_RETAIN_KEYS)
    return result if kept is None else {name: result[name] for name in result if name in kept}


def _patch_directive(patch: Mapping[str, Any]) -> str:
    how: object = patch.get(_DIRECTIVE, "merge")
    if how not in ("merge", "replace", "delete"):
        raise statuses.bad_request(f"unknown patch type: {how}")
    return str(how)


def _merge_value(name: str, old: Any, new: Any) -> Any:
    if isinstance(new, Mapping):
        before = cast("JsonObject", old) if isinstance(old, dict) else {}
        return _merge_mapping(before, cast("Mapping[str, Any]", new))
    if not isinstance(new, list):
        return new
    items = cast("Sequence[Any]", new)
    known = cast("Sequence[Any]", old) if isinstance(old, list) else ()
    if name in _SET_LISTS:
        return [*known, *(item for item in items if item not in known)]
    if name in _MERGE_KEYS and all(isinstance(item, Mapping) for item in items):
        return _merge_list(_MERGE_KEYS[name], known, cast("Sequence[Mapping[str, Any]]", items))
    return items


def _merge_list(
    keys: tuple[str, ...], before: Sequence[Any], patches: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """A list of things with a name: what is known keeps its place, what is new comes last."""
    meant = [patch for patch in patches if patch.keys() - {_DIRECTIVE}]
    if len(meant) < len(patches) and any(
        _patch_directive(patch) == "replace" for patch in patches if patch not in meant
    ):
        return [_merge_mapping({}, patch) for patch in meant]
    result = list(before)
    for patch in meant:
        key = next((key for key in keys if key in patch), None)
        if key is None:
            shown = " or ".join(keys)
            raise statuses.bad_request(f"map: {patch} does not contain declared merge key: {shown}")
        at = next((i for i, each in enumerate(result) if each.get(key) == patch[key]), None)
        if _patch_directive(patch) == "delete":
            result[:] = [each for each in result if each.get(key) != patch[key]]
        elif at is None:
            result.append(_merge_mapping({}, patch))
        else:
            result[at] = _merge_mapping(result[at], patch)
    return result


def _remove_values(result: JsonObject, name: str, values: list[Any]) -> None:
    """Take values out of a list of strings."""
    if name in result:
        result[name] = [value for value in result[name] if value not in values]
