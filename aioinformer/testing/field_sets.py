"""Which fields an object has: the paths that ``managedFields`` are made of.

A path is a tuple of the elements that ``fieldsV1`` has: ``f:name`` of a member, ``k:{...}`` of a
list's item by its key, ``v:...`` of a set's by its value. The real server knows from a type's
schema which lists are keyed; here that is known of metadata in all types, and of a few lists in
built-in ones (``KEYS``). Every other list is one value, as are those of custom resources without
``x-kubernetes-list-type``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, cast

import msgspec

__all__ = ["CONTAINER", "Fields", "Path", "decoded", "encoded", "named_fields", "nodes", "parts"]

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
