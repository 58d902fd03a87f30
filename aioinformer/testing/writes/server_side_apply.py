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
built-in ones (``KEYS``). Every other list is one value, as are those of custom resources without
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
    "BEFORE",
    "CONTAINER",
    "Applied",
    "Change",
    "Fields",
    "Manager",
    "Owners",
    "Path",
    "applied",
    "change_between",
    "decoded",
    "encoded",
    "named_fields",
    "nodes",
    "parts",
]


Path: TypeAlias = tuple[str, ...]
Fields: TypeAlias = frozenset[Path]

CONTAINER = object()
"""What ``nodes`` has for a map or a keyed list: its members are told apart."""

KEYS: Mapping[str, str] = {
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
OWNERS: Path = (METADATA, "f:ownerReferences")
FINALIZERS: Path = (METADATA, "f:finalizers")

UNOWNED = frozenset({("f:apiVersion",), ("f:kind",), (METADATA,)}) | {
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


def parts(path: Path, value: Any, *, custom: bool) -> list[tuple[str, Any]] | None:
    """The parts of a value that are told apart, each with the element of its path.

    ``None`` if it is one value: a scalar, or a list without keys.
    """
    if isinstance(value, dict):
        return [(f"f:{name}", part) for name, part in cast("dict[str, Any]", value).items()]
    if not isinstance(value, list) or path[:-1] == OWNERS:
        return None
    items = list(cast("Iterable[Any]", value))
    if path == FINALIZERS:
        return [(f"v:{_text(each)}", each) for each in items]
    key = "uid" if path == OWNERS else None if custom or not path else KEYS.get(path[-1])
    if key is None or not all(isinstance(each, dict) and key in each for each in items):
        return None
    return [(f"k:{_text({key: each[key]})}", each) for each in items]


def nodes(body: Mapping[str, Any], *, custom: bool) -> dict[Path, Any]:
    """Every field of an object, with its value; ``CONTAINER`` for those that have members."""
    found: dict[Path, Any] = {}

    def visit(path: Path, value: Any) -> None:
        inside = parts(path, value, custom=custom)
        if path[:-1] == OWNERS:
            inside = None  # a reference to an owner is one value
        if path and path not in UNOWNED:
            found[path] = value if inside is None else CONTAINER
        if path not in UNOWNED or path == (METADATA,):
            for element, part in inside or ():
                visit((*path, element), part)

    visit((), dict(body))
    return found


def named_fields(body: Mapping[str, Any], *, custom: bool) -> Fields:
    """The fields that an applied configuration names: values, and entries of maps.

    A member that every type declares (``spec``, ``metadata.labels``) is not owned for what is in
    it. Deeper ones can't be told from a map's entries without a schema, and count as those.
    """
    every = nodes(body, custom=custom)
    full = {path[:-1] for path in every}

    def declared(path: Path) -> bool:
        return len(path) == 1 or path[:-1] == (METADATA,)

    return frozenset(
        path
        for path, value in every.items()
        if value is not CONTAINER or path not in full or not declared(path)
    )


# -- as managedFields have them ----------------------------------------------------------------


def encoded(fields: Fields) -> dict[str, Any]:
    """``fieldsV1``."""
    tree: dict[str, Any] = {}
    for path in sorted(fields):
        here = tree
        for element in path:
            here = here.setdefault(element, {})
        here["."] = {}
    return _tidied(tree)


def _tidied(tree: dict[str, Any]) -> dict[str, Any]:
    """A field without fields inside is ``{}``; one with some says by ``.`` that it is meant too."""
    inside = {name: _tidied(tree[name]) for name in sorted(tree)}
    return {} if inside.keys() == {"."} else inside


def decoded(tree: Mapping[str, Any]) -> Fields:
    """The fields of a ``fieldsV1``."""
    return frozenset(_read((), tree))


def _read(path: Path, tree: Mapping[str, Any]) -> Iterable[Path]:
    if path and (not tree or "." in tree):
        yield path
    for element, inside in tree.items():
        if element != ".":
            yield from _read((*path, element), inside)


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


BEFORE = "before-first-apply"


@dataclass(frozen=True, slots=True, order=True)
class Manager:
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
class Change:
    """What is different from one state of an object to the next."""

    written: Fields
    """Fields that are new, or have another value."""
    removed: Fields

    def __bool__(self) -> bool:
        return bool(self.written or self.removed)


def change_between(old: Mapping[str, Any], new: Mapping[str, Any], *, custom: bool) -> Change:
    """What was changed."""
    before, after = nodes(old, custom=custom), nodes(new, custom=custom)
    written = {path for path, value in after.items() if path not in before or before[path] != value}
    return Change(frozenset(written), frozenset(before.keys() - after.keys()))


@dataclass(frozen=True, slots=True)
class Entry:
    """What one manager owns."""

    fields: Fields
    time: str


@dataclass(frozen=True, slots=True)
class Owners:
    """All the managers of an object."""

    entries: Mapping[Manager, Entry]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Owners:
        """Those that an object names."""
        entries: dict[Manager, Entry] = {}
        for each in body["metadata"].get("managedFields") or ():
            named = each.get("manager", ""), each.get("apiVersion", "")
            manager = Manager(each.get("operation", "Update"), *named, each.get("subresource", ""))
            entries[manager] = Entry(decoded(each.get("fieldsV1") or {}), each.get("time", ""))
        return cls(entries)

    def fields_of(self, manager: Manager) -> Fields:
        """What one owns."""
        entry = self.entries.get(manager)
        return entry.fields if entry else frozenset()

    def others(self, manager: Manager) -> dict[Manager, Fields]:
        """What all the others own."""
        return {one: entry.fields for one, entry in self.entries.items() if one != manager}

    def conflicts(self, manager: Manager, change: Change) -> dict[Manager, list[Path]]:
        """Fields of others that a change would write, in the server's order."""
        found = {one: fields & change.written for one, fields in self.others(manager).items()}
        # Members first, then what is inside of them.
        return {
            one: sorted(fields, key=lambda path: (len(path), path))
            for one, fields in sorted(found.items(), key=lambda pair: pair[0].name)
            if fields
        }

    def after(
        self, manager: Manager, change: Change, owned: Fields, now: dt.datetime
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
        entries[manager] = before if before is not None and kept else Entry(owned, stamp)
        ranks = {(one.operation, entry.time, one): entry for one, entry in entries.items()}
        return [_written(rank[-1], ranks[rank]) for rank in sorted(ranks) if ranks[rank].fields]

    def updated(self, manager: Manager, change: Change, now: dt.datetime) -> list[dict[str, Any]]:
        """``managedFields`` after an update, which takes over whatever it writes."""
        owned = (self.fields_of(manager) | change.written) - change.removed
        return self.after(manager, change, owned, now)


def _written(manager: Manager, entry: Entry) -> dict[str, Any]:
    written = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": encoded(entry.fields),
    }
    return written | ({"subresource": manager.subresource} if manager.subresource else {})


def first_owners(body: Mapping[str, Any], api_version: str, *, custom: bool, stamp: str) -> Owners:
    """The owners of an object that has none: all of it was there before."""
    every = frozenset(nodes(body, custom=custom))
    if not every:
        return Owners({})
    return Owners({Manager("Update", BEFORE, api_version): Entry(every, stamp)})


Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Applied:
    """A configuration, and who applies it."""

    config: Body
    manager: Manager
    force: bool
    now: dt.datetime


def applied(encoding: Encoding, live: Mapping[str, Any], wanted: Applied) -> Body:
    """The next state of an object; of a new one, ``live`` has nothing but its metadata.

    Raises:
        Conflict: it would change fields that other managers own.
    """
    custom, manager = encoding.custom, wanted.manager
    owners = Owners.of(live)
    if not owners.entries:
        stamp = live["metadata"].get("creationTimestamp") or ""
        version = encoding.resource.api_version
        owners = first_owners(live, version, custom=custom, stamp=stamp)
    named = named_fields(wanted.config, custom=custom)
    kept = named.union(*owners.others(manager).values())
    dropped = owners.fields_of(manager) - kept
    result = cast("Body", merged((), deepcopy(dict(live)), wanted.config, custom=custom))
    result = cast("Body", without((), result, dropped, kept, custom=custom))
    change = change_between(live, result, custom=custom)
    conflicts = owners.conflicts(manager, change)
    if conflicts and not wanted.force:
        raise statuses.apply_conflict(
            {str(one): [shown(path) for path in paths] for one, paths in conflicts.items()}
        )
    managed = owners.after(manager, change, named, wanted.now)
    metadata = {**result["metadata"]}
    metadata.pop("managedFields", None)
    return result | {"metadata": metadata | ({"managedFields": managed} if managed else {})}


def merged(path: Path, live: Any, config: Any, *, custom: bool) -> Any:
    """What is there with what is wanted put over it."""
    inside, there = parts(path, config, custom=custom), parts(path, live, custom=custom)
    if config is None:
        return live
    if inside is None or there is None:
        return config
    result = dict(there)
    for element, part in inside:
        deeper = (*path, element)
        result[element] = (
            merged(deeper, result[element], part, custom=custom) if element in result else part
        )
    return _assembled(config, result)


def without(path: Path, live: Any, dropped: Fields, kept: Fields, *, custom: bool) -> Any:
    """What is there without what nobody wants any more. A map that this leaves empty goes, too,
    unless somebody owns it.
    """
    inside = parts(path, live, custom=custom)
    if inside is None:
        return live
    result: dict[str, Any] = {}
    for element, part in inside:
        deeper = (*path, element)
        held = deeper in kept or any(one[: len(deeper)] == deeper for one in kept)
        if deeper in dropped and not held:
            continue
        left = without(deeper, part, dropped, kept, custom=custom)
        if part and not left and isinstance(left, dict | list) and not held:
            continue
        result[element] = left
    return _assembled(live, result)


def _assembled(like: Any, members: Mapping[str, Any]) -> Any:
    """The map or list that has these members."""
    if isinstance(like, dict):
        return {element[2:]: part for element, part in members.items()}
    return list(members.values())


def shown(path: Path) -> str:
    """A path as the server writes it: ``.spec.containers[name="web"].image``."""
    return "".join(_element(element) for element in path)


def _element(element: str) -> str:
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return f".{rest}"
    if kind == "v:":
        return f"[={rest}]"
    name, value = next(iter(cast("dict[str, str]", msgspec.json.decode(rest)).items()))
    return f"[{name}={msgspec.json.encode(value).decode()}]"
