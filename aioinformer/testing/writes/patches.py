"""Patches of a body: JSON patch, merge patch and strategic merge patch.

JSON patch (RFC 6902) departs from the RFC where the API server's library does: ``replace`` and
``copy`` read a missing member as ``null``, an index can count from the end, and ``1`` is not
``1.0``. Every failed operation is answered with the same error.

Strategic merge patch merges some lists item by item, by a key that the API server takes from its Go
structs, so only built-in kinds have them. Here they are a table of list names, since one name
nearly always means one thing. ``$setElementOrder`` is ignored, so new items come last. Source:
apimachinery's strategicpatch package, and the ``patchMergeKey`` tags in k8s.io/api.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, cast

import msgspec

from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import JsonObject


class BodyPatch(Protocol):
    def apply(self, body: JsonObject) -> JsonObject:
        """Return the changed body, not ``body`` itself; raise ``ServerError`` on failure."""
        ...


# -- merge patch -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MergePatch:
    """A merge patch (RFC 7396)."""

    patch: Mapping[str, Any]

    def apply(self, body: JsonObject) -> JsonObject:
        merged: JsonObject = apply_merge_patch(body, self.patch)
        return merged


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """Merge a patch; ``null`` removes a member. Unchanged parts are shared with ``target``."""
    if not isinstance(patch, Mapping):
        return patch
    result: JsonObject = dict(cast("JsonObject", target)) if isinstance(target, dict) else {}
    for name, value in cast("Mapping[str, Any]", patch).items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = apply_merge_patch(result.get(name), value)
    return result


# -- JSON patch --------------------------------------------------------------------------------

Json = Any
Container = JsonObject | list[Json]

_MISSING = object()
"""A member that an object doesn't have, which is not the same as ``null``."""


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """A JSON patch (RFC 6902)."""

    operations: Sequence[Mapping[str, Json]]

    @classmethod
    def decode(cls, body: bytes) -> JsonPatch:
        """Decode a request; raise ``BadRequest`` if the body is not a list of JSON objects."""
        try:
            decoded: Json = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise statuses.bad_request("invalid JSON patch") from error
        if not isinstance(decoded, list):
            raise statuses.undecodable_patch(decoded, "[]handlers.jsonPatchOp")
        operations = list(cast("Iterable[Any]", decoded))
        for each in operations:
            if not isinstance(each, dict):
                raise statuses.undecodable_patch(each, "handlers.jsonPatchOp")
            _check_operation(cast("JsonObject", each))
        return cls(operations)

    def apply(self, body: JsonObject) -> JsonObject:
        """Return a copy of the body after all operations; raise ``Invalid`` if one fails."""
        result = deepcopy(body)
        for operation in self.operations:
            apply_operation = _OPERATIONS.get(operation.get("op") or "")
            if apply_operation is None:
                _fail()
            apply_operation(result, operation)
        return result


def _check_operation(operation: JsonObject) -> None:
    for name in ("op", "path", "from"):
        value = operation.get(name)
        if value is not None and not isinstance(value, str):
            raise statuses.undecodable_patch(value, "string", field=f"jsonPatchOp.{name}")


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
    value = deepcopy(_get_value(body, _parse_pointer(operation, "from")))
    _insert(body, _parse_pointer(operation), value)


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


def _parse_pointer(operation: Mapping[str, Json], name: str = "path") -> list[str]:
    """Return the parts of a JSON pointer (RFC 6901). The root is not a valid target."""
    text = operation.get(name)
    if not isinstance(text, str) or not text.startswith("/"):
        _fail()
    # This order of replacements is the RFC's: "~01" is "~1", not "/".
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _find_parent(body: Json, path: list[str]) -> tuple[Container, str]:
    """Return the container of the last part of a path, and that part."""
    container = body
    for part in path[:-1]:
        container = _get_member(container, part)
    if not isinstance(container, dict | list):
        _fail()
    return cast("Container", container), path[-1]


def _get_value(body: Json, path: list[str]) -> Json:
    """Return the value at a path; ``None`` if only the last part of the path is missing."""
    parent, last = _find_parent(body, path)
    value = _get_member(parent, last)
    return None if value is _MISSING else value


def _get_member(container: Json, part: str) -> Json:
    if isinstance(container, list):
        items = list(cast("Iterable[Any]", container))
        return items[_parse_index(part, len(items))]
    if not isinstance(container, dict):
        _fail()
    return cast("JsonObject", container).get(part, _MISSING)


def _parse_index(part: str, size: int) -> int:
    if not part.removeprefix("-").isdecimal() or not -size <= int(part) < size:
        _fail()
    return int(part) % size


def _is_same_json(one: Json, other: Json) -> bool:
    """Return True if two values are the same JSON text: 1 is not 1.0."""
    encode = msgspec.json.Encoder(order="sorted").encode
    return encode(one) == encode(other)


def _fail() -> NoReturn:
    raise statuses.failed_patch()


# -- strategic merge patch ---------------------------------------------------------------------

_MERGE_KEYS: Mapping[str, tuple[str, ...]] = {
    "allocatedResourcesStatus": ("name",),
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "evictionResponders": ("name",),
    "hostAliases": ("ip",),
    "hostIPs": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "matchConditions": ("name",),
    "ownerReferences": ("uid",),
    "podIPs": ("ip",),
    "ports": ("containerPort", "port"),  # of a container; of a Service
    "reservedFor": ("uid",),
    "resourceClaimStatuses": ("name",),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "secrets": ("name",),
    "spec.drivers": ("name",),
    "spec.variables": ("name",),
    "status.addresses": ("type",),
    "topologySpreadConstraints": ("topologyKey",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
    "webhooks": ("name",),
}
"""The lists that are merged, with the fields that can be the key of their items: the first one that
the patch has. A name with a dot is that of a list in a member of this name, for names that have
other meanings elsewhere. Other lists are replaced: ``args``, ``command``, ``tolerations``,
``taints``, ..."""

_REPLACED_LISTS = frozenset({"egress.ports", "ingress.ports", "subsets.ports"})
"""The lists that are replaced, although lists of that name are merged elsewhere."""

_SET_LISTS = frozenset({"finalizers", "podCIDRs"})
"""Lists of strings to which a patch adds its strings."""

_DIRECTIVE = "$patch"
_RETAIN_KEYS = "$retainKeys"
_DELETE_FROM_LIST = "$deleteFromPrimitiveList/"


@dataclass(frozen=True, slots=True)
class StrategicMergePatch:
    patch: Mapping[str, Any]

    def apply(self, body: JsonObject) -> JsonObject:
        """Return the merged body; raise ``BadRequest`` for a missing key or unknown ``$patch``."""
        return _merge_mapping(body, self.patch)


def _merge_mapping(
    target: Mapping[str, Any], patch: Mapping[str, Any], parent: str = ""
) -> JsonObject:
    """Return an object merged with a patch; ``parent`` is the member that holds the object."""
    directive = _patch_directive(patch)
    if directive == "delete":
        return {}
    result: JsonObject = {} if directive == "replace" else dict(target)
    for name, value in patch.items():
        if name.startswith(_DELETE_FROM_LIST):
            _remove_values(result, name.removeprefix(_DELETE_FROM_LIST), value)
        elif name.startswith("$"):
            continue
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = _merge_value(parent, name, result.get(name), value)
    if _RETAIN_KEYS not in patch:
        return result
    retained = _read_retained_keys(patch)
    return {name: value for name, value in result.items() if name in retained}


def _read_retained_keys(patch: Mapping[str, Any]) -> Sequence[Any]:
    """Return the keys that a patch retains, which must include those that the patch sets."""
    keys = patch[_RETAIN_KEYS]
    written = (name for name, value in patch.items() if value is not None and name[:1] != "$")
    if not isinstance(keys, list) or any(name not in keys for name in written):
        raise statuses.bad_request("invalid patch format of retainKeys")
    return cast("Sequence[Any]", keys)


def _patch_directive(patch: Mapping[str, Any]) -> str:
    directive: object = patch.get(_DIRECTIVE, "merge")
    if directive not in ("merge", "replace", "delete"):
        raise statuses.bad_request(f"unknown patch type: {directive}")
    return str(directive)


def _merge_value(parent: str, name: str, old: Any, new: Any) -> Any:
    if isinstance(new, Mapping):
        before = cast("JsonObject", old) if isinstance(old, dict) else {}
        return _merge_mapping(before, cast("Mapping[str, Any]", new), name)
    if not isinstance(new, list):
        return new
    items = cast("Sequence[Any]", new)
    present = cast("Sequence[Any]", old) if isinstance(old, list) else ()
    if name in _SET_LISTS:
        return [*present, *(item for item in items if item not in present)]
    keys = _find_merge_keys(parent, name)
    if keys and all(isinstance(item, Mapping) for item in items):
        return _merge_list(name, keys, present, cast("Sequence[Mapping[str, Any]]", items))
    return items


def _find_merge_keys(parent: str, name: str) -> tuple[str, ...]:
    """Return the possible keys of the items of a list; none if the list is replaced."""
    place = f"{parent}.{name}"
    if place in _REPLACED_LISTS:
        return ()
    return _MERGE_KEYS.get(place) or _MERGE_KEYS.get(name, ())


def _merge_list(
    name: str, keys: tuple[str, ...], old: Sequence[Any], patches: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """Return a keyed list merged with a patch. Old items keep their places, new ones come last."""
    # An item with nothing but ``$patch`` is a directive for the whole list.
    items = [patch for patch in patches if patch.keys() - {_DIRECTIVE}]
    directives = (_patch_directive(patch) for patch in patches if patch not in items)
    if "replace" in directives:
        return [_merge_mapping({}, patch, name) for patch in items]
    result = list(old)
    for patch in items:
        key = _merge_key(keys, patch)
        place = next((i for i, each in enumerate(result) if _has_key(each, key, patch)), None)
        if _patch_directive(patch) == "delete":
            result = [each for each in result if not _has_key(each, key, patch)]
        elif place is None:
            result.append(_merge_mapping({}, patch, name))
        else:
            result[place] = _merge_mapping(result[place], patch, name)
    return result


def _has_key(item: object, key: str, patch: Mapping[str, Any]) -> bool:
    return isinstance(item, Mapping) and cast("JsonObject", item).get(key) == patch[key]


def _merge_key(keys: tuple[str, ...], patch: Mapping[str, Any]) -> str:
    for key in keys:
        if key in patch:
            return key
    expected = " or ".join(keys)
    raise statuses.bad_request(f"map: {patch} does not contain declared merge key: {expected}")


def _remove_values(result: JsonObject, name: str, values: object) -> None:
    if not isinstance(values, list):
        raise statuses.bad_request("invalid patch format of primitive list")
    present = result.get(name)
    if isinstance(present, list):
        removed = cast("Sequence[Any]", values)
        result[name] = [value for value in cast("Sequence[Any]", present) if value not in removed]
