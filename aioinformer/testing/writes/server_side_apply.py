"""Server-side apply: merge a configuration into an object, and keep ``metadata.managedFields``.

The rules are those of the real server (structured-merge-diff), but without schemas. Maps are
merged, keyed lists are merged item by item, and everything else is replaced. A field that the
manager named in its last configuration and doesn't name any more is removed, unless another manager
owns the field too. A change to a field of another manager is a conflict without ``force``.

The real server keeps managed fields from the creation on. Here they are kept from the first request
on that applies or names a ``fieldManager``, so that other objects stay small, and their writes
fast. Earlier fields belong to ``before-first-apply``, as on a real server.

A field is named by a path, a tuple of the elements of ``fieldsV1``: ``f:name`` for a member,
``k:{...}`` for an item of a keyed list, ``v:...`` for an item of a set. The keys are known for the
metadata of all types, and for a few lists of built-in types (``LIST_KEYS``). Every other list is
one value, as is each list of a custom resource without ``x-kubernetes-list-type``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

import msgspec

from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding, JsonObject

FieldPath: TypeAlias = tuple[str, ...]
FieldSet: TypeAlias = frozenset[FieldPath]

CONTAINER = object()
"""The value of ``collect_fields`` for a map or keyed list, whose members have their own paths."""

BEFORE_FIRST_APPLY = "before-first-apply"

LIST_KEYS: Mapping[str, str] = {
    "f:containers": "name",
    "f:initContainers": "name",
    "f:ephemeralContainers": "name",
    "f:volumes": "name",
    "f:env": "name",
    "f:imagePullSecrets": "name",
    "f:volumeMounts": "mountPath",
    "f:conditions": "type",
}
"""The known keyed lists of built-in types with the keys of their items, for any path."""

METADATA = "f:metadata"
OWNER_REFERENCES: FieldPath = (METADATA, "f:ownerReferences")
FINALIZERS: FieldPath = (METADATA, "f:finalizers")

UNMANAGED_FIELDS = frozenset({("f:apiVersion",), ("f:kind",), (METADATA,)}) | {
    (METADATA, f"f:{name}")
    for name in (
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "resourceVersion",
        "managedFields",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    )
}
"""The fields without owners (apimachinery's ``stripMeta``), and those of the server alone."""


# -- the fields of an object -------------------------------------------------------------------


def split_members(path: FieldPath, value: Any, *, custom: bool) -> list[tuple[str, Any]] | None:
    """Return the members of a map or keyed list by the last element of their paths; ``None`` for
    others.
    """
    if isinstance(value, dict):
        return [(f"f:{name}", member) for name, member in cast("JsonObject", value).items()]
    if not isinstance(value, list) or path[:-1] == OWNER_REFERENCES:
        return None
    items = list(cast("Iterable[Any]", value))
    if path == FINALIZERS:  # a set: its items are their own keys
        return [(f"v:{_encode_json(each)}", each) for each in items]
    key = list_key(path, custom=custom)
    if key is None or not all(isinstance(each, dict) and key in each for each in items):
        return None
    return [(f"k:{_encode_json({key: each[key]})}", each) for each in items]


def list_key(path: FieldPath, *, custom: bool) -> str | None:
    """Return the key of the items of a list; ``None`` for a list without keys."""
    if path == OWNER_REFERENCES:
        return "uid"
    return None if custom or not path else LIST_KEYS.get(path[-1])


def collect_fields(body: Mapping[str, Any], *, custom: bool) -> dict[FieldPath, Any]:
    """Return the value of every field of an object; ``CONTAINER`` for fields with members."""
    found: dict[FieldPath, Any] = {}

    def visit(path: FieldPath, value: Any) -> None:
        members = split_members(path, value, custom=custom)
        if path[:-1] == OWNER_REFERENCES:
            members = None  # an owner reference is one value
        if path and path not in UNMANAGED_FIELDS:
            found[path] = value if members is None else CONTAINER
        if path not in UNMANAGED_FIELDS or path == (METADATA,):
            for element, member in members or ():
                visit((*path, element), member)

    visit((), dict(body))
    return found


def named_fields(body: Mapping[str, Any], *, custom: bool) -> FieldSet:
    """Return the fields that an applied configuration names: values, and entries of maps.

    A member that every type declares (``spec``, ``metadata.labels``) is not owned because a
    configuration names fields inside. Without a schema, deeper members count as entries of a map.
    """
    fields = collect_fields(body, custom=custom)
    parents = {path[:-1] for path in fields}

    def is_declared(path: FieldPath) -> bool:
        return len(path) == 1 or path[:-1] == (METADATA,)

    return frozenset(
        path
        for path, value in fields.items()
        if value is not CONTAINER or path not in parents or not is_declared(path)
    )


@dataclass(frozen=True, slots=True)
class FieldChanges:
    written: FieldSet
    """The fields that are new, or have another value."""
    removed: FieldSet

    def __bool__(self) -> bool:
        return bool(self.written or self.removed)


def diff_fields(old: Mapping[str, Any], new: Mapping[str, Any], *, custom: bool) -> FieldChanges:
    before, after = collect_fields(old, custom=custom), collect_fields(new, custom=custom)
    written = {path for path, value in after.items() if path not in before or before[path] != value}
    return FieldChanges(frozenset(written), frozenset(before.keys() - after.keys()))


# -- fieldsV1 ----------------------------------------------------------------------------------


def encode_fields_v1(fields: FieldSet) -> JsonObject:
    tree: JsonObject = {}
    for path in sorted(fields):
        node = tree
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return _simplify_tree(tree)


def _simplify_tree(tree: JsonObject) -> JsonObject:
    """Return ``{}`` for fields without fields inside; ``.`` stands for the field itself."""
    inside = {name: _simplify_tree(tree[name]) for name in sorted(tree)}
    return {} if inside.keys() == {"."} else inside


def decode_fields_v1(tree: Mapping[str, Any]) -> FieldSet:
    return frozenset(_iterate_paths((), tree))


def _iterate_paths(path: FieldPath, tree: Mapping[str, Any]) -> Iterable[FieldPath]:
    if path and (not tree or "." in tree):
        yield path
    for element, inside in tree.items():
        if element != "." and isinstance(inside, dict):
            yield from _iterate_paths((*path, element), cast("JsonObject", inside))


def _encode_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


# -- managers ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class FieldManager:
    """The identity of a field manager, as the server writes it in conflicts."""

    operation: Literal["Apply", "Update"]
    name: str
    api_version: str
    subresource: str = ""

    def __str__(self) -> str:
        part = f' with subresource "{self.subresource}"' if self.subresource else ""
        version = f" using {self.api_version}" if self.operation == "Update" else ""
        return f'"{self.name}"{part}{version}'


@dataclass(frozen=True, slots=True)
class ManagedFieldsEntry:
    """The fields of one manager, and the time of its last change."""

    fields: FieldSet
    time: str


@dataclass(frozen=True, slots=True)
class ManagedFields:
    entries: Mapping[FieldManager, ManagedFieldsEntry]

    @classmethod
    def from_object(cls, body: Mapping[str, Any]) -> ManagedFields:
        entries: dict[FieldManager, ManagedFieldsEntry] = {}
        for each in body["metadata"].get("managedFields") or ():
            manager = FieldManager(
                each.get("operation") or "Update",
                each.get("manager") or "",
                each.get("apiVersion") or "",
                each.get("subresource") or "",
            )
            tree = each.get("fieldsV1")
            fields = decode_fields_v1(cast("JsonObject", tree) if isinstance(tree, dict) else {})
            entries[manager] = ManagedFieldsEntry(fields, each.get("time") or "")
        return cls(entries)

    @classmethod
    def before_first_apply(cls, encoding: Encoding, body: Mapping[str, Any]) -> ManagedFields:
        """Return the managers of an object without any: ``before-first-apply`` owns all fields."""
        fields = frozenset(collect_fields(body, custom=encoding.custom))
        if not fields:
            return cls({})
        manager = FieldManager("Update", BEFORE_FIRST_APPLY, encoding.resource.api_version)
        time = body["metadata"].get("creationTimestamp") or ""
        return cls({manager: ManagedFieldsEntry(fields, time)})

    def fields_of(self, manager: FieldManager) -> FieldSet:
        entry = self.entries.get(manager)
        return entry.fields if entry else frozenset()

    def owned_by_others(self, manager: FieldManager) -> dict[FieldManager, FieldSet]:
        return {other: entry.fields for other, entry in self.entries.items() if other != manager}

    def find_conflicts(
        self, manager: FieldManager, change: FieldChanges
    ) -> dict[FieldManager, list[FieldPath]]:
        """Return the fields of other managers that a change writes, in the server's order."""
        conflicts = {
            other: fields & change.written
            for other, fields in self.owned_by_others(manager).items()
        }
        # A member comes before the fields inside of it.
        return {
            other: sorted(fields, key=lambda path: (len(path), path))
            for other, fields in sorted(conflicts.items(), key=lambda pair: pair[0].name)
            if fields
        }

    def record_change(
        self, manager: FieldManager, change: FieldChanges, owned: FieldSet, now: dt.datetime
    ) -> list[JsonObject]:
        """Return ``managedFields`` after a change, whose fields the other managers lose.

        ``owned`` are the manager's fields then; ``now`` is the time of its entry, if they change.
        """
        lost = change.written | change.removed
        entries = {
            other: replace(entry, fields=entry.fields - lost)
            for other, entry in self.entries.items()
            if other != manager
        }
        old = self.entries.get(manager)
        if old is None or old.fields != owned:
            time = now.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            old = ManagedFieldsEntry(owned, time)
        entries[manager] = old
        # The server's order: by operation, then by time.
        ranks = {(each.operation, entry.time, each): entry for each, entry in entries.items()}
        return [
            _encode_entry(rank[-1], ranks[rank]) for rank in sorted(ranks) if ranks[rank].fields
        ]

    def record_update(
        self, manager: FieldManager, change: FieldChanges, now: dt.datetime
    ) -> list[JsonObject]:
        """Return ``managedFields`` after an update, whose manager takes over all it writes."""
        owned = (self.fields_of(manager) | change.written) - change.removed
        return self.record_change(manager, change, owned, now)


def _encode_entry(manager: FieldManager, entry: ManagedFieldsEntry) -> JsonObject:
    encoded = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": encode_fields_v1(entry.fields),
    }
    return encoded | ({"subresource": manager.subresource} if manager.subresource else {})


# -- apply -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    config: JsonObject
    manager: FieldManager
    force: bool
    now: dt.datetime


def apply_configuration(
    encoding: Encoding, live: Mapping[str, Any], request: ApplyRequest
) -> JsonObject:
    """Return the next state; ``live`` has metadata alone for a new object. ``Conflict`` if not
    forced.
    """
    custom, manager = encoding.custom, request.manager
    managers = ManagedFields.from_object(live)
    if not managers.entries:
        managers = ManagedFields.before_first_apply(encoding, live)
    named = named_fields(request.config, custom=custom)
    owned = named.union(*managers.owned_by_others(manager).values())
    dropped = managers.fields_of(manager) - owned
    merged = merge_fields((), deepcopy(dict(live)), request.config, custom=custom)
    result = cast("JsonObject", remove_fields((), merged, dropped, owned, custom=custom))
    change = diff_fields(live, result, custom=custom)
    conflicts = managers.find_conflicts(manager, change)
    if conflicts and not request.force:
        raise statuses.apply_conflict(
            {
                str(other): [format_path(path) for path in paths]
                for other, paths in conflicts.items()
            }
        )
    return with_managed_fields(result, managers.record_change(manager, change, named, request.now))


def with_managed_fields(body: JsonObject, managed: object) -> JsonObject:
    """Return a body with these ``managedFields``, or without any if ``managed`` is empty."""
    metadata = {**body["metadata"]}
    metadata.pop("managedFields", None)
    return body | {"metadata": metadata | ({"managedFields": managed} if managed else {})}


def merge_fields(path: FieldPath, live: Any, config: Any, *, custom: bool) -> Any:
    """Return ``live`` with the fields of ``config`` written over it."""
    if config is None:
        return live
    wanted = split_members(path, config, custom=custom)
    present = split_members(path, live, custom=custom)
    if wanted is None or present is None:
        return config
    result = dict(present)
    for element, member in wanted:
        if element in result:
            member = merge_fields((*path, element), result[element], member, custom=custom)
        result[element] = member
    return _rebuild_container(config, result)


def remove_fields(
    path: FieldPath, live: Any, dropped: FieldSet, owned: FieldSet, *, custom: bool
) -> Any:
    """Remove ``dropped`` fields without another owner, and what becomes empty and has none."""
    members = split_members(path, live, custom=custom)
    if members is None:
        return live
    result: JsonObject = {}
    for element, member in members:
        inner = (*path, element)
        # A field is owned if the field itself, or a field inside of it, has an owner.
        is_owned = any(each[: len(inner)] == inner for each in owned)
        if inner in dropped and not is_owned:
            continue
        rest = remove_fields(inner, member, dropped, owned, custom=custom)
        if member and not rest and isinstance(rest, dict | list) and not is_owned:
            continue
        result[element] = rest
    return _rebuild_container(live, result)


def _rebuild_container(template: Any, members: Mapping[str, Any]) -> Any:
    """Return the map or list, of the template's type, that has these members."""
    if isinstance(template, dict):
        return {element[2:]: member for element, member in members.items()}
    return list(members.values())


def format_path(path: FieldPath) -> str:
    """Return a path in the server's notation: ``.spec.containers[name="web"].image``."""
    return "".join(_format_element(element) for element in path)


def _format_element(element: str) -> str:
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return f".{rest}"
    if kind == "v:":
        return f"[={rest}]"
    name, value = next(iter(cast("dict[str, str]", msgspec.json.decode(rest)).items()))
    return f"[{name}={_encode_json(value)}]"
