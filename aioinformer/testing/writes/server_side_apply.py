"""Server-side apply: a configuration, what is there, and who owns what, made the next state.

What the real server does (structured-merge-diff), without schemas: maps are merged, keyed lists
item by item (``field_sets`` says which lists are keyed), everything else is replaced. What the
manager named before and no longer does is removed, unless somebody else owns it too. To change what
others own is a conflict, but for ``force``.

Who owns which fields of an object: ``metadata.managedFields``, kept as the server keeps them.

Written from the first apply on, and by requests that name a ``fieldManager``; the real server
writes them always, with the User-Agent for a name. What was there before the first apply belongs
to ``before-first-apply`` then, as it does there for objects from before managedFields.

Which fields an object has: the paths that ``managedFields`` are made of.

A path is a tuple of the elements that ``fieldsV1`` has: ``f:name`` of a member, ``k:{...}`` of a
list's item by its key, ``v:...`` of a set's by its value. The real server knows from a type's
schema which lists are keyed; here that is known of metadata in all types, and of a few lists in
built-in ones (``LIST_KEYS``). Every other list is one value, as are those of custom resources without
``x-kubernetes-list-type``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

import msgspec

from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding

__all__ = [
    "BEFORE_FIRST_APPLY",
    "CONTAINER",
    "ApplyRequest",
    "FieldChanges",
    "FieldManager",
    "FieldPath",
    "FieldSet",
    "ManagedFields",
    "apply_configuration",
    "collect_fields",
    "decode_fields_v1",
    "diff_fields",
    "encode_fields_v1",
    "named_fields",
    "split_members",
]


FieldPath: TypeAlias = tuple[str, ...]
FieldSet: TypeAlias = frozenset[FieldPath]

CONTAINER = object()
"""What ``collect_fields`` has for a map or a keyed list: its members are told apart."""

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
"""The keyed lists of built-in types that are known here, by their names wherever they stand."""

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
"""What nobody owns (apimachinery's ``stripMeta``), and what the server alone writes."""


def split_members(path: FieldPath, value: Any, *, custom: bool) -> list[tuple[str, Any]] | None:
    """The parts of a value that are told apart, each with the element of its path.

    ``None`` if it is one value: a scalar, or a list without keys.
    """
    if isinstance(value, dict):
        return [(f"f:{name}", part) for name, part in cast("dict[str, Any]", value).items()]
    if not isinstance(value, list) or path[:-1] == OWNER_REFERENCES:
        return None
    items = list(cast("Iterable[Any]", value))
    if path == FINALIZERS:
        return [(f"v:{_encode_json(each)}", each) for each in items]
    key = (
        "uid"
        if path == OWNER_REFERENCES
        else None
        if custom or not path
        else LIST_KEYS.get(path[-1])
    )
    if key is None or not all(isinstance(each, dict) and key in each for each in items):
        return None
    return [(f"k:{_encode_json({key: each[key]})}", each) for each in items]


def collect_fields(body: Mapping[str, Any], *, custom: bool) -> dict[FieldPath, Any]:
    """Every field of an object, with its value; ``CONTAINER`` for those that have members."""
    found: dict[FieldPath, Any] = {}

    def visit(path: FieldPath, value: Any) -> None:
        inside = split_members(path, value, custom=custom)
        if path[:-1] == OWNER_REFERENCES:
            inside = None  # a reference to an owner is one value
        if path and path not in UNMANAGED_FIELDS:
            found[path] = value if inside is None else CONTAINER
        if path not in UNMANAGED_FIELDS or path == (METADATA,):
            for element, part in inside or ():
                visit((*path, element), part)

    visit((), dict(body))
    return found


def named_fields(body: Mapping[str, Any], *, custom: bool) -> FieldSet:
    """The fields that an applied configuration names: values, and entries of maps.

    A member that every type declares (``spec``, ``metadata.labels``) is not owned for what is in
    it. Deeper ones can't be told from a map's entries without a schema, and count as those.
    """
    every = collect_fields(body, custom=custom)
    full = {path[:-1] for path in every}

    def declared(path: FieldPath) -> bool:
        return len(path) == 1 or path[:-1] == (METADATA,)

    return frozenset(
        path
        for path, value in every.items()
        if value is not CONTAINER or path not in full or not declared(path)
    )


# -- as managedFields have them ----------------------------------------------------------------


def encode_fields_v1(fields: FieldSet) -> dict[str, Any]:
    """``fieldsV1``."""
    tree: dict[str, Any] = {}
    for path in sorted(fields):
        here = tree
        for element in path:
            here = here.setdefault(element, {})
        here["."] = {}
    return _simplify_tree(tree)


def _simplify_tree(tree: dict[str, Any]) -> dict[str, Any]:
    """A field without fields inside is ``{}``; one with some says by ``.`` that it is meant too."""
    inside = {name: _simplify_tree(tree[name]) for name in sorted(tree)}
    return {} if inside.keys() == {"."} else inside


def decode_fields_v1(tree: Mapping[str, Any]) -> FieldSet:
    """The fields of a ``fieldsV1``."""
    return frozenset(_iterate_paths((), tree))


def _iterate_paths(path: FieldPath, tree: Mapping[str, Any]) -> Iterable[FieldPath]:
    if path and (not tree or "." in tree):
        yield path
    for element, inside in tree.items():
        if element != ".":
            yield from _iterate_paths((*path, element), inside)


def _encode_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


BEFORE_FIRST_APPLY = "before-first-apply"


@dataclass(frozen=True, slots=True, order=True)
class FieldManager:
    """One who owns fields."""

    operation: Literal["Apply", "Update"]
    name: str
    api_version: str
    subresource: str = ""

    def __str__(self) -> str:
        part = f' with subresource "{self.subresource}"' if self.subresource else ""
        version = f" using {self.api_version}" if self.operation == "Update" else ""
        return f'"{self.name}"{part}{version}'


@dataclass(frozen=True, slots=True)
class FieldChanges:
    """What is different from one state of an object to the next."""

    written: FieldSet
    """Fields that are new, or have another value."""
    removed: FieldSet

    def __bool__(self) -> bool:
        return bool(self.written or self.removed)


def diff_fields(old: Mapping[str, Any], new: Mapping[str, Any], *, custom: bool) -> FieldChanges:
    """What was changed."""
    before, after = collect_fields(old, custom=custom), collect_fields(new, custom=custom)
    written = {path for path, value in after.items() if path not in before or before[path] != value}
    return FieldChanges(frozenset(written), frozenset(before.keys() - after.keys()))


@dataclass(frozen=True, slots=True)
class ManagedFieldsEntry:
    """What one manager owns."""

    fields: FieldSet
    time: str


@dataclass(frozen=True, slots=True)
class ManagedFields:
    """All the managers of an object."""

    entries: Mapping[FieldManager, ManagedFieldsEntry]

    @classmethod
    def from_object(cls, body: Mapping[str, Any]) -> ManagedFields:
        """Those that an object names."""
        entries: dict[FieldManager, ManagedFieldsEntry] = {}
        for each in body["metadata"].get("managedFields") or ():
            named = each.get("manager", ""), each.get("apiVersion", "")
            manager = FieldManager(
                each.get("operation", "Update"), *named, each.get("subresource", "")
            )
            entries[manager] = ManagedFieldsEntry(
                decode_fields_v1(each.get("fieldsV1") or {}), each.get("time", "")
            )
        return cls(entries)

    def fields_of(self, manager: FieldManager) -> FieldSet:
        """What one owns."""
        entry = self.entries.get(manager)
        return entry.fields if entry else frozenset()

    def owned_by_others(self, manager: FieldManager) -> dict[FieldManager, FieldSet]:
        """What all the others own."""
        return {one: entry.fields for one, entry in self.entries.items() if one != manager}

    def find_conflicts(
        self, manager: FieldManager, change: FieldChanges
    ) -> dict[FieldManager, list[FieldPath]]:
        """Fields of others that a change would write, in the server's order."""
        found = {
            one: fields & change.written for one, fields in self.owned_by_others(manager).items()
        }
        # Members first, then what is inside of them.
        return {
            one: sorted(fields, key=lambda path: (len(path), path))
            for one, fields in sorted(found.items(), key=lambda pair: pair[0].name)
            if fields
        }

    def record_change(
        self, manager: FieldManager, change: FieldChanges, owned: FieldSet, now: dt.datetime
    ) -> list[dict[str, Any]]:
        """``managedFields`` after a change by one of them, who owns ``owned`` then."""
        stamp = now.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        lost = change.written | change.removed
        entries = {
            one: replace(entry, fields=entry.fields - lost)
            for one, entry in self.entries.items()
            if one != manager
        }
        before = self.entries.get(manager)
        kept = before is not None and before.fields == owned
        entries[manager] = (
            before if before is not None and kept else ManagedFieldsEntry(owned, stamp)
        )
        ranks = {(one.operation, entry.time, one): entry for one, entry in entries.items()}
        return [
            _encode_entry(rank[-1], ranks[rank]) for rank in sorted(ranks) if ranks[rank].fields
        ]

    def record_update(
        self, manager: FieldManager, change: FieldChanges, now: dt.datetime
    ) -> list[dict[str, Any]]:
        """``managedFields`` after an update, which takes over whatever it writes."""
        owned = (self.fields_of(manager) | change.written) - change.removed
        return self.record_change(manager, change, owned, now)


def _encode_entry(manager: FieldManager, entry: ManagedFieldsEntry) -> dict[str, Any]:
    written = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": encode_fields_v1(entry.fields),
    }
    return written | ({"subresource": manager.subresource} if manager.subresource else {})


def build_initial_managed_fields(
    body: Mapping[str, Any], api_version: str, *, custom: bool, stamp: str
) -> ManagedFields:
    """The owners of an object that has none: all of it was there before."""
    every = frozenset(collect_fields(body, custom=custom))
    if not every:
        return ManagedFields({})
    return ManagedFields(
        {FieldManager("Update", BEFORE_FIRST_APPLY, api_version): ManagedFieldsEntry(every, stamp)}
    )


JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """A configuration, and who applies it."""

    config: JsonObject
    manager: FieldManager
    force: bool
    now: dt.datetime


def apply_configuration(
    encoding: Encoding, live: Mapping[str, Any], request: ApplyRequest
) -> JsonObject:
    """The next state of an object; of a new one, ``live`` has nothing but its metadata.

    Raises:
        Conflict: it would change fields that other managers own.
    """
    custom, manager = encoding.custom, request.manager
    owners = ManagedFields.from_object(live)
    if not owners.entries:
        stamp = live["metadata"].get("creationTimestamp") or ""
        version = encoding.resource.api_version
        owners = build_initial_managed_fields(live, version, custom=custom, stamp=stamp)
    named = named_fields(request.config, custom=custom)
    kept = named.union(*owners.owned_by_others(manager).values())
    dropped = owners.fields_of(manager) - kept
    result = cast(
        "JsonObject", merge_fields((), deepcopy(dict(live)), request.config, custom=custom)
    )
    result = cast("JsonObject", remove_fields((), result, dropped, kept, custom=custom))
    change = diff_fields(live, result, custom=custom)
    conflicts = owners.find_conflicts(manager, change)
    if conflicts and not request.force:
        raise statuses.apply_conflict(
            {str(one): [format_path(path) for path in paths] for one, paths in conflicts.items()}
        )
    managed = owners.record_change(manager, change, named, request.now)
    metadata = {**result["metadata"]}
    metadata.pop("managedFields", None)
    return result | {"metadata": metadata | ({"managedFields": managed} if managed else {})}


def merge_fields(path: FieldPath, live: Any, config: Any, *, custom: bool) -> Any:
    """What is there with what is wanted put over it."""
    inside, there = (
        split_members(path, config, custom=custom),
        split_members(path, live, custom=custom),
    )
    if config is None:
        return live
    if inside is None or there is None:
        return config
    result = dict(there)
    for element, part in inside:
        deeper = (*path, element)
        result[element] = (
            merge_fields(deeper, result[element], part, custom=custom)
            if element in result
            else part
        )
    return _rebuild_container(config, result)


def remove_fields(
    path: FieldPath, live: Any, dropped: FieldSet, owned: FieldSet, *, custom: bool
) -> Any:
    """What is there without what nobody wants any more. A map that this leaves empty goes, too,
    unless somebody owns it.
    """
    inside = split_members(path, live, custom=custom)
    if inside is None:
        return live
    result: dict[str, Any] = {}
    for element, part in inside:
        deeper = (*path, element)
        held = deeper in owned or any(one[: len(deeper)] == deeper for one in owned)
        if deeper in dropped and not held:
            continue
        left = remove_fields(deeper, part, dropped, owned, custom=custom)
        if part and not left and isinstance(left, dict | list) and not held:
            continue
        result[element] = left
    return _rebuild_container(live, result)


def _rebuild_container(template: Any, members: Mapping[str, Any]) -> Any:
    """The map or list that has these members."""
    if isinstance(template, dict):
        return {element[2:]: part for element, part in members.items()}
    return list(members.values())


def format_path(path: FieldPath) -> str:
    """A path as the server writes it: ``.spec.containers[name="web"].image``."""
    return "".join(_format_element(element) for element in path)


def _format_element(element: str) -> str:
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return f".{rest}"
    if kind == "v:":
        return f"[={rest}]"
    name, value = next(iter(cast("dict[str, str]", msgspec.json.decode(rest)).items()))
    return f"[{name}={msgspec.json.encode(value).decode()}]"
